//! Names for native code: from an image and its PDB to function, file, line and inlined calls of an address.
//!
//! The best evidence wins, address by address, in the order of [`Evidence`]: the PDB's procedures, DWARF in the image,
//! the PDB's public symbols, the image's exports. Symbols without a size name an address only within the function that
//! the image itself shows ([`Functions`]); where it shows none, a symbol of a list that has every function goes up to the
//! next one.
//!
//! Addresses are RVAs: bytes from the load address. Everything is borrowed from the two files' bytes and read when
//! an address needs it. The result is `Send`, so images can be done in parallel.

mod dwarf;
mod exports;

use rustc_hash::FxHashSet;

use super::functions::Functions;
use super::limits::Limits;
use super::location::{Evidence, Location};
use super::pdb::{PdbError, PdbSymbols};
use super::pe::{Image, PdbReference};
use super::spelling::method::RawName;
use crate::debug_id::DebugId;
use dwarf::DwarfSymbols;
use exports::ImageNames;

/// Why a pair of files cannot name addresses.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The PDB cannot be read.
    #[error(transparent)]
    Pdb(#[from] PdbError),
    /// The PDB is another build's.
    #[error("PDB {found} does not belong to the image, which needs {}", names(.expected))]
    Mismatch {
        /// What the PDB carries.
        found: DebugId,
        /// What the image asks for; empty when it names none.
        expected: Vec<PdbReference>,
    },
}

fn names(references: &[PdbReference]) -> String {
    let each: Vec<_> = references.iter().map(|pdb| format!("{} {}", pdb.file_name(), pdb.id)).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

/// Names the addresses of one image.
#[derive(Debug)]
pub struct NativeSymbols<'a> {
    pdb: Option<PdbSymbols<'a>>,
    dwarf: Option<DwarfSymbols<'a>>,
    /// Only without a PDB. Every export is among the PDB's symbols too; where those know nothing, the nearest
    /// export would be a guess.
    image: Option<ImageNames<'a>>,
    functions: Option<Functions<'a>>,
    limits: Limits,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<NativeSymbols<'static>>();
};

impl<'a> NativeSymbols<'a> {
    /// Takes what there is: an image, its PDB, or both. With neither, no address has a name.
    ///
    /// # Errors
    /// [`NativeError`] when the PDB cannot be read, or its GUID and age are not what the image names.
    pub fn open(image: Option<&Image<'a>>, pdb: Option<&'a [u8]>) -> Result<Self, NativeError> {
        let pdb = pdb.map(PdbSymbols::open).transpose()?;
        if let (Some(image), Some(pdb)) = (image, &pdb) {
            let expected = image.pdbs();
            if !expected.iter().any(|reference| reference.id == pdb.id()) {
                return Err(NativeError::Mismatch { found: pdb.id(), expected });
            }
        }
        Ok(NativeSymbols {
            dwarf: image.and_then(DwarfSymbols::new),
            image: image.filter(|_| pdb.is_none()).map(ImageNames::new),
            pdb,
            functions: image.map(Functions::new),
            limits: Limits::default(),
        })
    }

    /// The same within other limits than the usual ones.
    pub fn limited(self, limits: Limits) -> Self {
        NativeSymbols { limits, ..self }
    }

    /// The name of the code at `rva`, `None` when nothing says what it is.
    pub fn lookup(&mut self, rva: u32) -> Option<Location> {
        let functions = self.functions.as_ref();
        let pdb = self.pdb.as_mut().and_then(|pdb| pdb.lookup(rva, functions, self.limits));
        let (better, public) = match pdb {
            Some(found) if found.evidence < Evidence::Dwarf => (Some(found), None),
            other => (None, other),
        };
        better
            .or_else(|| self.dwarf.as_mut()?.lookup(rva, self.limits))
            .or(public)
            .or_else(|| self.image.as_ref()?.lookup(rva, functions))
    }

    /// The better of `other` and the name of the code at `rva`; of equal evidence `other`. What cannot be better is not
    /// looked up.
    pub fn better(&mut self, rva: u32, other: Option<Location>) -> Option<Location> {
        let best = match (&self.pdb, &self.dwarf) {
            (Some(_), _) => Evidence::Pdb,
            (None, Some(_)) => Evidence::Dwarf,
            (None, None) => Evidence::Public,
        };
        match other {
            Some(other) if other.evidence <= best => Some(other),
            other => [other, self.lookup(rva)].into_iter().flatten().min_by_key(|location| location.evidence),
        }
    }

    /// The names of all .NET methods of these (outermost) types that the PDB of an NGEN image lists.
    pub(crate) fn methods_of(&self, types: &FxHashSet<String>) -> Vec<RawName> {
        self.pdb.as_ref().map(|pdb| pdb.methods_of(types)).unwrap_or_default()
    }

    /// Where the function at `rva` begins, by what the image shows: for code that has no name. `None` without an image, and
    /// for code that nothing is known to reach.
    pub fn function_start(&self, rva: u32) -> Option<u32> {
        Some(self.functions.as_ref()?.at(rva)?.function)
    }
}
