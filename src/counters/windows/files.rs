//! The DLLs of this Windows: where they are, and what they are.

use std::ffi::OsString;
use std::fs;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::System::Environment::ExpandEnvironmentStringsW;

use super::wide;
use crate::counters::perflib::{Files, Library, MOST_BYTES};

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Files for Here {
    fn library(&self, library: &str) -> Library {
        let Some(path) = find(&expanded(library)) else { return Library::Missing };
        let shown = path.display().to_string();
        if fs::metadata(&path).is_ok_and(|file| file.len() > MOST_BYTES) {
            return Library::NotChecked;
        }
        // One that this user may not read may be in order.
        fs::read(&path).map_or(Library::NotChecked, |file| Library::parse(&shown, &file))
    }

    fn exists(&self, path: &str) -> Option<bool> {
        expanded(path).try_exists().ok()
    }
}

/// The path with the values of its variables.
fn expanded(path: &str) -> PathBuf {
    let path = wide(path);
    let mut room = vec![0_u16; 32_768];
    // SAFETY: the path ends with 0, and the length is that of the room.
    let length =
        unsafe { ExpandEnvironmentStringsW(path.as_ptr(), room.as_mut_ptr(), room.len() as u32) } as usize;
    // With the zero.
    let text = length.checked_sub(1).and_then(|length| room.get(..length));
    let text = text.or(path.strip_suffix(&[0])).unwrap_or_default();
    OsString::from_wide(text).into()
}

/// Where the loader finds a DLL: a name without a folder in the system's folders and those of `PATH`. One that is only there
/// for programs of 32 bits is found as well.
fn find(library: &Path) -> Option<PathBuf> {
    let mut name = library.to_owned();
    if name.extension().is_none() {
        name.set_extension("dll");
    }
    if library.components().count() > 1 {
        return [library, &name].into_iter().find(|path| path.is_file()).map(Path::to_owned);
    }
    let windows = PathBuf::from(std::env::var_os("SystemRoot")?);
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [windows.join("System32"), windows.clone()]
        .into_iter()
        .chain(std::env::split_paths(&of_path))
        .chain([windows.join("SysWOW64")]);
    folders.map(|folder| folder.join(&name)).find(|path| path.is_file())
}
