//! Image events: loads and unloads, and the identities that a merge adds to them.

use crate::bytes::{Ansi, Utf16};
use crate::event::Event;
use crate::guid::Guid;

use super::Phase;

/// An image load, unload, or rundown record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image<'a> {
    /// Start is a load, End an unload.
    pub phase: Phase,
    /// Where it is mapped.
    pub base: u64,
    /// The size of the mapping.
    pub size: u64,
    /// Its process; 0 for kernel modules. The header's process is somebody else at times.
    pub pid: u32,
    /// The checksum in its header; 0 for images without one.
    pub checksum: u32,
    /// The link time in its header; 0 in every rundown record of user mode (29,926 of 29,926).
    pub timestamp: u32,
    /// Its path in one of nine forms; see [`Paths`](crate::trace::Paths).
    pub file_name: Utf16<'a>,
}

/// Layouts (2 and 3 verified on real files, 0 and 1 on Vista fixtures):
///
/// - 0: base P, size u32, name
/// - 1: base P, size P, process, name
/// - 2: base P, size P, process, checksum, timestamp, 4 bytes, default base P, 16 bytes, name
/// - 3: the same, the 4 bytes being the signature level
pub(super) fn decode<'a>(event: &Event<'a>, phase: Phase) -> Option<Image<'a>> {
    let mut r = event.reader();
    let p = event.pointer;
    let base = p.read(&mut r)?;
    let size = if event.version == 0 { u64::from(r.u32()?) } else { p.read(&mut r)? };
    let pid = if event.version == 0 { event.pid } else { r.u32()? };
    let (mut checksum, mut timestamp) = (0, 0);
    if event.version >= 2 {
        (checksum, timestamp) = (r.u32()?, r.u32()?);
        r.skip(4 + p.bytes() + 16)?;
    }
    Some(Image { phase, base, size, pid, checksum, timestamp, file_name: r.utf16() })
}

/// What the merge step knows of an image event's file. It precedes that event and shares its time, base and process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageId<'a> {
    /// The link time and the file's original name.
    File {
        /// Where it is mapped.
        base: u64,
        /// The size of the mapping.
        size: u64,
        /// Its process.
        pid: u32,
        /// The link time in its header; 0 for every reproducible build (diaghub.etl: 13,054 of 13,054).
        timestamp: u32,
        /// The name that its version resource gives.
        original_name: Utf16<'a>,
    },
    /// A PDB of the image.
    Pdb {
        /// Where the image is mapped.
        base: u64,
        /// Its process.
        pid: u32,
        /// The PDB's GUID.
        guid: Guid,
        /// The PDB's age.
        age: u32,
        /// The PDB's name, often a path on the machine that built it.
        name: Ansi<'a>,
        /// True for the second PDB of a precompiled .NET image: the one of its IL.
        managed: bool,
    },
    /// The image names no PDB.
    NoPdb {
        /// Where the image is mapped.
        base: u64,
        /// Its process.
        pid: u32,
    },
    /// Marks of a portable PDB (38) or a reproducible build (40).
    Mark {
        /// Where the image is mapped.
        base: u64,
        /// Its process.
        pid: u32,
        /// True for a reproducible build, whose link time is a hash.
        reproducible: bool,
    },
    /// The version resource; belongs to the file of this size and link time.
    Version {
        /// The size of the mapping.
        size: u32,
        /// The link time in its header.
        timestamp: u32,
        /// The original name.
        original_name: Utf16<'a>,
        /// What it is, in words.
        description: Utf16<'a>,
        /// Its version.
        version: Utf16<'a>,
    },
}

/// All of them verified on net.4.5.2.x64.etl and diaghub.etl.
pub(super) fn decode_id<'a>(event: &Event<'a>) -> Option<Option<ImageId<'a>>> {
    let mut r = event.reader();
    let p = event.pointer;
    Some(Some(match event.opcode {
        0 => ImageId::File {
            base: p.read(&mut r)?,
            size: p.read(&mut r)?,
            pid: r.u32()?,
            timestamp: r.u32()?,
            original_name: r.utf16(),
        },
        32 => ImageId::NoPdb { base: p.read(&mut r)?, pid: r.u32()? },
        36 | 37 => ImageId::Pdb {
            base: p.read(&mut r)?,
            pid: r.u32()?,
            guid: r.guid()?,
            age: r.u32()?,
            name: r.ansi(),
            managed: event.opcode == 37,
        },
        38 | 40 => ImageId::Mark { base: p.read(&mut r)?, pid: r.u32()?, reproducible: event.opcode == 40 },
        64 => ImageId::Version {
            size: r.u32()?,
            timestamp: r.u32()?,
            original_name: r.utf16(),
            description: r.utf16(),
            version: r.utf16(),
        },
        _ => return Some(None),
    }))
}
