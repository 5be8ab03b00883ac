//! Files mapped into memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// A file's bytes, read-only, paged in as they are used.
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Mapped {
    /// Maps the file at `path`.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        // Windows would call it a denied access.
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Mapped::of(&File::open(path)?)
    }

    /// Maps an open file.
    pub fn of(file: &File) -> io::Result<Mapped> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        // An empty file cannot be mapped on every system.
        if metadata.len() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: the map is read-only and private to us. A writer that cuts the file while we read could fault the
        // process or change bytes under us; recordings and symbol files are finished before they are opened, and
        // every value read is checked before it is used, so changed bytes give a wrong value and nothing worse.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Mapped(Some(map)))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
