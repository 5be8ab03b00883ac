//! The identity of a symbol file: the GUID and age that the linker writes into the image and into its PDB.

use std::fmt;

use crate::guid::Guid;

/// What must agree between an image and a PDB before the one may name addresses of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DebugId {
    /// Made anew by every full link.
    pub guid: Guid,
    /// Counted up when the PDB is changed in place (incremental link, a tool that rewrites the image).
    /// Portable PDBs have none; images state 1 for them.
    pub age: u32,
}

impl DebugId {
    /// The GUID and the age in hexadecimal digits with nothing between them, upper-case: how Breakpad and its viewers
    /// write it.
    pub fn digits(&self) -> String {
        format!("{}{:X}", self.guid.digits(), self.age)
    }
}

impl fmt::Display for DebugId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} age {}", self.guid, self.age)
    }
}
