//! FileIo events (group 04): the names of files; what else the group holds is of no use here.

use crate::bytes::Utf16;
use crate::event::Event;

/// What a record says of the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Naming {
    /// The key means this file from now on (0, 32).
    Begins,
    /// The key means this file until now (35).
    Ends,
    /// The key means this file now: from the rundown at the end of a session (36).
    Listed,
}

/// The name of a file, by the key that other events have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileName<'a> {
    /// From when on or until when.
    pub naming: Naming,
    /// The address of a kernel object, which the system uses again for other files.
    pub key: u64,
    /// The path, as the kernel has it: `\Device\HarddiskVolume2\...`.
    pub path: Utf16<'a>,
}

/// Key P, path wZ, in every version (verified on slow-ppt.etl, PerfViewData.etl and net.4.5.2.x64.etl).
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<FileName<'a>>> {
    let naming = match event.opcode {
        0 | 32 => Naming::Begins,
        35 => Naming::Ends,
        36 => Naming::Listed,
        _ => return Some(None),
    };
    let mut r = event.reader();
    Some(Some(FileName { naming, key: event.pointer.read(&mut r)?, path: r.utf16() }))
}
