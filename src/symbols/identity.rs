//! Is this the file that was asked for? The checks that every file passes before it is used or cached.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::debug_id::DebugId;
use super::key::{FileId, PORTABLE_AGE};
use super::lookup::Verdict;
use super::native::pdb;
use super::pe::Image;
use crate::guid::Guid;
use crate::mmap::{self, Mapped};
use crate::trace::{ModuleId, Trace};

/// A portable PDB begins as all ECMA-335 metadata does.
const METADATA: [u8; 4] = *b"BSJB";

/// Checks a candidate for the PDB with this GUID and age.
pub fn check_pdb(path: &Path, wanted: DebugId) -> Verdict {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Verdict::Unreadable(error.to_string()),
    };
    if is_portable(&bytes) {
        return match portable_guid(&bytes) {
            Some(guid) if guid == wanted.guid => Verdict::Matches,
            Some(guid) => Verdict::Differs(format!("{guid} (portable)")),
            None => Verdict::Unreadable("a portable PDB without its #Pdb stream".to_owned()),
        };
    }
    match pdb::id(&bytes) {
        Ok(id) if id == wanted || id.guid == wanted.guid && wanted.age == PORTABLE_AGE => Verdict::Matches,
        Ok(id) => Verdict::Differs(id.to_string()),
        Err(error) => Verdict::Unreadable(error.to_string()),
    }
}

/// What a trace tells of an image.
///
/// The size alone, in whole pages, proves nothing. A load and a merged trace tell the time stamp. The rundown of an
/// unmerged one tells at most the checksum, which Windows' own files have and others often lack. Of those, the
/// file at the recorded path is taken if nobody has written to it since it was surely there: a program can be replaced
/// while the old one runs.
#[derive(Clone, Debug)]
pub(super) struct ImageEvidence {
    /// SizeOfImage.
    pub(super) size: u32,
    pub(super) timestamp: Option<u32>,
    pub(super) checksum: Option<u32>,
    /// Where the trace says that it is.
    pub(super) path: PathBuf,
    /// When it was surely there.
    pub(super) there: Option<SystemTime>,
}

/// Whether the file at the path of a module is the one that was mapped, as far as the trace can tell; `None` where the
/// trace has no path.
pub fn at_its_path(trace: &Trace, module: ModuleId) -> Option<Verdict> {
    ImageEvidence::of(trace, module).map(|evidence| evidence.check(&evidence.path))
}

impl ImageEvidence {
    /// What the trace tells of a module; `None` where it tells neither path nor size.
    pub(super) fn of(trace: &Trace, id: ModuleId) -> Option<ImageEvidence> {
        let module = trace.module(id)?;
        let size = u32::try_from(module.size).ok().filter(|_| !module.path.is_empty())?;
        Some(ImageEvidence {
            size,
            timestamp: Some(module.timestamp).filter(|timestamp| *timestamp != 0),
            checksum: Some(module.checksum).filter(|checksum| *checksum != 0),
            path: PathBuf::from(&module.path),
            there: system_time(trace.there_since(id)),
        })
    }

    /// Checks a candidate for the image.
    pub(super) fn check(&self, path: &Path) -> Verdict {
        let bytes = match Mapped::open(path) {
            Ok(bytes) => bytes,
            Err(error) => return Verdict::Unreadable(error.to_string()),
        };
        let image = match Image::parse(&bytes) {
            Ok(image) => image,
            Err(error) => return Verdict::Unreadable(error.to_string()),
        };
        let id = FileId::Image { timestamp: image.timestamp, size_of_image: image.size_of_image };
        let same = match (self.timestamp, self.checksum) {
            (Some(timestamp), _) => image.timestamp == timestamp,
            (None, Some(checksum)) => image.checksum == checksum,
            (None, None) => path == self.path && !self.written_since(path),
        };
        match same && image.size_of_image == self.size {
            true => Verdict::Matches,
            false if self.timestamp.is_some() => Verdict::Differs(id.to_string()),
            false => match self.checksum {
                Some(_) => Verdict::Differs(format!("{id} with checksum {:08x}", image.checksum)),
                None => Verdict::Differs(format!("{id}, written after it was loaded")),
            },
        }
    }

    fn written_since(&self, path: &Path) -> bool {
        let written = std::fs::metadata(mmap::openable(path)).and_then(|metadata| metadata.modified());
        match (written, self.there) {
            (Ok(written), Some(there)) => written >= there,
            _ => true,
        }
    }
}

/// A FILETIME (100 ns since 1601), unless it lies before 1970.
fn system_time(filetime: i64) -> Option<SystemTime> {
    const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
    let since = u64::try_from(filetime.checked_sub(UNIX_EPOCH)?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(since / 10))
}

/// True for the bytes of a portable PDB.
pub fn is_portable(bytes: &[u8]) -> bool {
    bytes.starts_with(&METADATA)
}

/// True for a portable PDB, which tells nothing of machine code.
pub(super) fn is_portable_pdb(path: &Path) -> bool {
    let mut start = [0; METADATA.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == METADATA
}

/// The GUID of a portable PDB: the first 16 bytes of its `#Pdb` stream (the Portable PDB format, "#Pdb stream").
///
/// The metadata root (ECMA-335 II.24.2.1) is: signature, version, reserved, the length of a version text and the
/// text, flags, the number of streams; then for each its offset, size, and name padded to 4 bytes.
fn portable_guid(bytes: &[u8]) -> Option<Guid> {
    use crate::bytes::Reader;
    let mut r = Reader::new(bytes);
    r.skip(12)?;
    let version = r.u32()?;
    r.skip(usize::try_from(version).ok()?)?;
    r.skip(2)?;
    for _ in 0..r.u16()? {
        let (offset, _size) = (r.u32()?, r.u32()?);
        let before = r.rest().len();
        let name = r.ansi();
        let taken = before - r.rest().len();
        r.skip(taken.next_multiple_of(4) - taken)?;
        if name.0 == b"#Pdb" {
            return Reader::at(bytes, usize::try_from(offset).ok()?).guid();
        }
    }
    None
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
