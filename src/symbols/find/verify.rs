//! Is this the file that was asked for? The checks that every file passes before it is used or cached.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::key::{FileId, PORTABLE_AGE};
use super::lookup::Checked;
use crate::debug_id::DebugId;
use crate::mmap::{self, Mapped};
use crate::symbols::read::dotnet::metadata::{self, Metadata};
use crate::symbols::read::pdb;
use crate::symbols::read::pe::Image;

/// Checks a candidate for the PDB with this GUID and age.
pub fn check_pdb(path: &Path, wanted: DebugId) -> Checked {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Checked::Unreadable(error.to_string()),
    };
    if is_portable(&bytes) {
        return match Metadata::parse(&bytes).map(|metadata| metadata.pdb_id()) {
            Ok(Some(guid)) if guid == wanted.guid => Checked::Matches,
            Ok(Some(guid)) => Checked::Differs(format!("{guid} (portable)")),
            Ok(None) => Checked::Unreadable("metadata without a #Pdb stream".to_owned()),
            Err(error) => Checked::Unreadable(error.to_string()),
        };
    }
    match pdb::id(&bytes) {
        Ok(id) if id == wanted || id.guid == wanted.guid && wanted.age == PORTABLE_AGE => Checked::Matches,
        Ok(id) => Checked::Differs(id.to_string()),
        Err(error) => Checked::Unreadable(error.to_string()),
    }
}

/// Where a file belongs in a store, as the file itself says. What serves for a key need not be the file of that key: a
/// portable PDB serves for the Windows one with its GUID, an image for the PDB inside.
pub(super) fn identity(path: &Path) -> Option<FileId> {
    let bytes = Mapped::open(path).ok()?;
    if is_portable(&bytes) {
        let guid = Metadata::parse(&bytes).ok()?.pdb_id()?;
        return Some(FileId::Pdb(DebugId { guid, age: PORTABLE_AGE }));
    }
    if bytes.starts_with(pdb::MAGIC) {
        return pdb::id(&bytes).ok().map(FileId::Pdb);
    }
    let image = Image::parse(&bytes).ok()?;
    Some(FileId::Image { timestamp: image.timestamp, size_of_image: image.size_of_image })
}

/// What is known of an image before it is found.
///
/// The size alone, in whole pages, proves nothing. A load and a merged trace tell the time stamp. The rundown of an
/// unmerged one tells at most the checksum, which Windows' own files have and others often lack. Of those, the
/// file at the recorded path is taken if nobody has written to it since it was surely there: a program can be replaced
/// while the old one runs.
#[derive(Clone, Debug)]
pub(in crate::symbols) struct ImageFacts {
    /// SizeOfImage.
    pub(in crate::symbols) size: u32,
    pub(in crate::symbols) timestamp: Option<u32>,
    pub(in crate::symbols) checksum: Option<u32>,
    /// Where the trace says that it is.
    pub(in crate::symbols) path: PathBuf,
    /// When it was surely there.
    pub(in crate::symbols) there: Option<SystemTime>,
}

impl ImageFacts {
    /// Checks a candidate for the image.
    pub(in crate::symbols) fn check(&self, path: &Path) -> Checked {
        let bytes = match Mapped::open(path) {
            Ok(bytes) => bytes,
            Err(error) => return Checked::Unreadable(error.to_string()),
        };
        let image = match Image::parse(&bytes) {
            Ok(image) => image,
            Err(error) => return Checked::Unreadable(error.to_string()),
        };
        let id = FileId::Image { timestamp: image.timestamp, size_of_image: image.size_of_image };
        let same = match (self.timestamp, self.checksum) {
            (Some(timestamp), _) => image.timestamp == timestamp,
            (None, Some(checksum)) => image.checksum == checksum,
            (None, None) => path == self.path && !self.written_since(path),
        };
        match same && image.size_of_image == self.size {
            true => Checked::Matches,
            false if self.timestamp.is_some() => Checked::Differs(id.to_string()),
            false => match self.checksum {
                Some(_) => Checked::Differs(format!("{id} with checksum {:08x}", image.checksum)),
                None => Checked::Differs(format!("{id}, written after it was loaded")),
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

/// True for the bytes of a portable PDB.
pub fn is_portable(bytes: &[u8]) -> bool {
    bytes.starts_with(metadata::MAGIC)
}

/// True for a portable PDB, which tells nothing of machine code.
pub(in crate::symbols) fn is_portable_pdb(path: &Path) -> bool {
    let mut start = [0; metadata::MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *metadata::MAGIC
}
