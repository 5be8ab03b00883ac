//! Files mapped into memory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The path by which Windows opens a file that the kernel names: a volume need not have a drive letter.
///
/// `GLOBALROOT` stands for the root of the kernel's names (documentation of naming files). Other paths stay as they are.
/// This is no path to show.
pub fn openable(path: &Path) -> Cow<'_, Path> {
    const KERNEL: [&str; 3] = [r"\Device\", r"\SystemRoot\", r"\??\"];
    let is_kernels = |text: &&str| {
        let starts =
            |prefix: &&str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        cfg!(windows) && KERNEL.iter().any(starts)
    };
    match path.to_str().filter(is_kernels) {
        Some(text) => Cow::Owned(PathBuf::from(format!(r"\\?\GLOBALROOT{text}"))),
        None => Cow::Borrowed(path),
    }
}

/// A file's bytes, read-only, paged in as they are used.
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Mapped {
    /// Maps the file at `path`.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let path = openable(path);
        // Windows would call it a denied access.
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Mapped::of(&File::open(&path)?)
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

#[cfg(all(test, windows))]
mod tests {
    use super::{Mapped, openable};

    #[test]
    fn a_path_of_the_kernel_is_opened_by_the_root_of_its_names() {
        for (path, opened) in [
            (r"\Device\HarddiskVolume7\x.dll", r"\\?\GLOBALROOT\Device\HarddiskVolume7\x.dll"),
            (r"\systemroot\system32\ntoskrnl.exe", r"\\?\GLOBALROOT\systemroot\system32\ntoskrnl.exe"),
            (r"C:\Windows\x.dll", r"C:\Windows\x.dll"),
            (r"\Devices\x.dll", r"\Devices\x.dll"),
            (r"\\server\share\x.dll", r"\\server\share\x.dll"),
        ] {
            assert_eq!(openable(path.as_ref()), std::path::Path::new(opened));
        }
        assert!(Mapped::open(r"C:\windows\system32\ntdll.dll".as_ref()).is_ok());
    }
}
