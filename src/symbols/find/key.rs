//! The key of a file on a symbol server: its name and what identifies its contents.
//!
//! A symbol store is a tree `name/INDEX/name`. For a PDB, INDEX is the 32 upper-case digits of its GUID and the age
//! in hexadecimal; for an image, the eight upper-case digits of its time stamp and SizeOfImage in hexadecimal
//! (verified on Microsoft's `basic32.pd_` store entry and symstore's own output). Servers are asked for just this, and
//! for the name as the image has it: static ones, in which case counts, hold what symstore.exe wrote.
//!
//! A portable PDB has no age: its place is taken by `FFFFFFFF`, and its name and GUID are lower-case, as dotnet/symstore's
//! SSQP_Key_Conventions lays down and Visual Studio asks. Nobody else writes such stores, so no other spelling is tried.
//!
//! The name comes from a trace, so from anybody. It becomes a folder and a file of the cache, hence only its last
//! component is taken, and only if every system that we run on would take it for a plain file name.

use std::fmt;

use thiserror::Error;

use crate::debug_id::DebugId;
use crate::guid::Guid;

/// The longest file name taken from a trace, in bytes of UTF-8. File systems stop at 255.
const MAX_NAME: usize = 200;

/// The age that stands in the index of a portable PDB, which has none.
pub const PORTABLE_AGE: u32 = u32::MAX;

/// A file to find, by its name and identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    recorded: String,
    name: Result<String, RefusedName>,
    id: FileId,
}

/// What identifies the contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileId {
    /// A PDB: the RSDS record of its image names the same GUID and age.
    /// The age of a portable one is [`PORTABLE_AGE`].
    Pdb(DebugId),
    /// An image (PE): two fields of its header.
    Image {
        /// TimeDateStamp of the file header: seconds since 1970, or a hash for a reproducible build.
        timestamp: u32,
        /// SizeOfImage of the optional header, in bytes.
        size_of_image: u32,
    },
}

/// Why a name from a trace is not used as a file name.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum RefusedName {
    /// Nothing after the last slash.
    #[error("it is empty")]
    Empty,
    /// `.` or `..`.
    #[error("it is the name of a folder")]
    Folder,
    /// More than 200 bytes.
    #[error("it is longer than {MAX_NAME} bytes")]
    TooLong,
    /// A control character, or one that Windows forbids in names: `< > : " | ? *`.
    #[error("it contains the character {0:?}")]
    Character(char),
    /// Windows drops a dot or space at the end, and would open another file.
    #[error("it ends in a dot or a space")]
    Ending,
    /// `CON`, `NUL.txt`, `COM1` and the like: devices on Windows.
    #[error("it is the name of a Windows device")]
    Device,
    /// The folder in which the cache keeps its own files.
    #[error("it is reserved by the cache")]
    Reserved,
}

impl FileKey {
    /// The key of a PDB. `path` is the recorded path or name, with either slash; its last component counts.
    pub fn pdb(path: &str, id: DebugId) -> FileKey {
        FileKey::new(path, FileId::Pdb(id))
    }

    /// The key of a portable PDB (the symbol file of managed code), which is stored without an age.
    pub fn portable_pdb(path: &str, guid: Guid) -> FileKey {
        FileKey::pdb(path, DebugId { guid, age: PORTABLE_AGE })
    }

    /// The key of an image: an .exe, .dll or .sys.
    pub fn image(path: &str, timestamp: u32, size_of_image: u32) -> FileKey {
        FileKey::new(path, FileId::Image { timestamp, size_of_image })
    }

    fn new(path: &str, id: FileId) -> FileKey {
        let last = crate::winpath::file_name(path);
        FileKey { recorded: path.to_owned(), name: check_name(last).map(|()| last.to_owned()), id }
    }

    /// The path or name as the trace has it. Not to be used as a path.
    pub fn recorded(&self) -> &str {
        &self.recorded
    }

    /// The file name, safe on every system, or why it is not.
    pub fn name(&self) -> Result<&str, RefusedName> {
        self.name.as_deref().map_err(|&why| why)
    }

    /// What identifies the contents.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The middle part of the store path, such as `11F772844EDE7667A5234B0E7B07EEF11`.
    pub fn index(&self) -> String {
        self.id.to_string()
    }

    /// The name in a store, for a name that is safe.
    pub(super) fn stored_name(&self, name: &str) -> String {
        if self.id.is_portable() { name.to_lowercase() } else { name.to_owned() }
    }

    /// The folders that debuggers sort such a file into: named for the ending of the image, also for its PDB.
    pub(super) fn sorted_below<'a>(&self, name: &'a str) -> Vec<&'a str> {
        match self.id {
            // Which of them it is, the PDB's name does not say.
            FileId::Pdb(_) => vec!["dll", "exe", "sys", "pdb"],
            FileId::Image { .. } => name.rsplit_once('.').map(|(_, ending)| ending).into_iter().collect(),
        }
    }

    /// The name of the file compressed: its last character replaced by `_`.
    pub(super) fn compressed(name: &str) -> String {
        let mut short = name.to_owned();
        short.pop();
        short + "_"
    }
}

impl FileId {
    fn is_portable(self) -> bool {
        matches!(self, FileId::Pdb(DebugId { age: PORTABLE_AGE, .. }))
    }
}

/// The index of the store path.
impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FileId::Pdb(DebugId { guid, .. }) if self.is_portable() => {
                write!(f, "{}{PORTABLE_AGE:X}", guid.digits().to_ascii_lowercase())
            }
            FileId::Pdb(DebugId { guid, age }) => write!(f, "{}{age:x}", guid.digits()),
            FileId::Image { timestamp, size_of_image } => write!(f, "{timestamp:08X}{size_of_image:x}"),
        }
    }
}

/// `ntdll.pdb 11F772844EDE7667A5234B0E7B07EEF11`.
impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name().unwrap_or(&self.recorded), self.id)
    }
}

fn check_name(name: &str) -> Result<(), RefusedName> {
    if name.is_empty() {
        return Err(RefusedName::Empty);
    }
    if name == "." || name == ".." {
        return Err(RefusedName::Folder);
    }
    if name.len() > MAX_NAME {
        return Err(RefusedName::TooLong);
    }
    let forbidden =
        |c: char| c.is_control() || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '/' | '\\');
    if let Some(c) = name.chars().find(|&c| forbidden(c)) {
        return Err(RefusedName::Character(c));
    }
    if name.ends_with(['.', ' ']) {
        return Err(RefusedName::Ending);
    }
    if is_device(name) {
        return Err(RefusedName::Device);
    }
    if name.eq_ignore_ascii_case(super::cache::OWN_FOLDER) {
        return Err(RefusedName::Reserved);
    }
    Ok(())
}

/// Windows takes these for devices whatever follows the first dot, and with spaces before it.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].contains(&stem.as_str()) {
        return true;
    }
    // COM and LPT with a digit, of which Windows also knows the superscript one, two and three.
    stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")).is_some_and(|n| {
        matches!(n.chars().next(), Some('0'..='9' | '¹' | '²' | '³')) && n.chars().count() == 1
    })
}
