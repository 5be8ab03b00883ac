//! Process events (group 03).

use crate::bytes::{Ansi, Reader, Utf16};
use crate::event::Event;

use super::{Phase, block};

/// A process start, end, or rundown record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process<'a> {
    /// What is said of the process.
    pub phase: Phase,
    /// Its id.
    pub pid: u32,
    /// The id of the process that made it; may belong to another process by now.
    pub parent_pid: u32,
    /// The kernel object's address: unique among live processes. 0 before version 2.
    pub key: u64,
    /// The terminal session.
    pub session: u32,
    /// The exit status; 259 while it runs.
    pub exit_status: i32,
    /// 1 packaged application, 2 WOW64, 4 protected, 8 package related. 0 before version 4.
    pub flags: u32,
    /// The user's SID; empty where there is none.
    pub sid: &'a [u8],
    /// The executable's file name, without a directory.
    pub image_file_name: Ansi<'a>,
    /// The command line; empty for system processes.
    pub command_line: Utf16<'a>,
    /// FILETIME of the exit (version 5, defunct processes).
    pub exit_time: Option<i64>,
}

impl Process<'_> {
    /// True for a 32-bit process on a 64-bit system.
    pub fn is_wow64(&self) -> bool {
        self.flags & 2 != 0
    }
}

/// Layouts (version 4 and 5 verified on net.4.5.2.x64.etl and real payloads; 0 to 3 on Vista and 7 fixtures):
///
/// - 0: ProcessId P, ParentId P, SID, name
/// - 1: PageDirectoryBase P, pid, parent, session, exit status, SID, name
/// - 2: UniqueProcessKey P in place of the page directory; command line behind the name
/// - 3: DirectoryTableBase P before the SID
/// - 4: Flags u32 before the SID; package and application names at the end
/// - 5: FILETIME of the exit at the end
pub(super) fn decode<'a>(event: &Event<'a>, phase: Phase) -> Option<Process<'a>> {
    let mut r = event.reader();
    let p = event.pointer;
    let mut process = Process {
        phase,
        pid: 0,
        parent_pid: 0,
        key: 0,
        session: 0,
        exit_status: 0,
        flags: 0,
        sid: &[],
        image_file_name: Ansi::default(),
        command_line: Utf16::default(),
        exit_time: None,
    };
    if event.version == 0 {
        process.pid = p.read(&mut r)? as u32;
        process.parent_pid = p.read(&mut r)? as u32;
    } else {
        let key = p.read(&mut r)?;
        process.key = if event.version >= 2 { key } else { 0 };
        process.pid = r.u32()?;
        process.parent_pid = r.u32()?;
        process.session = r.u32()?;
        process.exit_status = r.i32()?;
        if event.version >= 3 {
            p.read(&mut r)?;
        }
        if event.version >= 4 {
            process.flags = r.u32()?;
        }
    }
    process.sid = block::sid(&mut r, p)?;
    process.image_file_name = r.ansi();
    if event.version >= 2 {
        process.command_line = r.utf16();
    }
    if event.version >= 5 {
        process.exit_time = exit_time(r);
    }
    Some(process)
}

/// Behind the package and application names.
fn exit_time(mut r: Reader<'_>) -> Option<i64> {
    r.utf16();
    r.utf16();
    r.i64()
}
