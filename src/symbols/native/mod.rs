//! Names for native code: from an image and its PDB to function, file, line and inlined calls of an address.
//!
//! The best evidence wins, address by address: the PDB's procedures, the PDB's public symbols, DWARF in the
//! image, the image's exports. Symbols without a size name an address only within the function that the image's
//! exception table gives ([`FunctionTable`]), or up to whatever comes next where there is none.
//!
//! Addresses are RVAs: bytes from the load address. Everything is borrowed from the two files' bytes and read when
//! an address needs it. The result is `Send`, so images can be done in parallel.

mod dwarf;
mod exports;
pub mod function_table;
mod names;
pub mod pdb;

use std::sync::Arc;

use function_table::FunctionTable;
use pdb::{PdbError, PdbSymbols};

use super::debug_id::DebugId;
use super::limits::Limits;
use super::managed::RawName;
use super::pe::{Image, PdbReference};
use dwarf::DwarfSymbols;
use exports::ImageNames;

/// What an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The function that has the code: scope, name and template arguments, without parameters.
    pub function: String,
    /// Its name as the runtime writes it, if it is a .NET method; `function` is then the readable form.
    pub method: Option<Arc<RawName>>,
    /// Bytes from its start; from the start of the part, if a part of the function was moved away.
    pub offset: u32,
    /// Source file of the line *in this function* that the code belongs to. With inlined calls, that of the call.
    pub file: Option<String>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// The functions inlined there, innermost first.
    pub inlined: Vec<InlinedFunction>,
    /// How many more there are than [`Limits`] allow. A line in the middle of `inlined` stands for them.
    pub left_out: usize,
    /// Where the name comes from.
    pub source: Source,
    /// The nearest name before the address, without proof that the function has the address.
    pub approximate: bool,
}

/// A function without code of its own at an address: it was inlined into its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFunction {
    /// Scope, name and template arguments.
    pub function: String,
    /// Source file of the line.
    pub file: Option<String>,
    /// The line in this function, from 1: of the code, or of the call that is inlined next.
    pub line: Option<u32>,
}

impl InlinedFunction {
    /// What stands for calls that were left out.
    fn left_out(calls: usize) -> Self {
        InlinedFunction { function: format!("[{calls} inlined calls left out]"), file: None, line: None }
    }
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A procedure of the PDB.
    Pdb,
    /// A linker symbol without a size: a public symbol of the PDB, or the image's COFF symbol table.
    Public,
    /// DWARF in the image.
    Dwarf,
    /// An export of the image.
    Export,
    /// The ReadyToRun tables of a precompiled .NET image.
    R2r,
}

impl Source {
    /// The word for it in outputs.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Pdb => "pdb",
            Source::Public => "public",
            Source::Dwarf => "dwarf",
            Source::Export => "export",
            Source::R2r => "r2r",
        }
    }
}

/// Why a pair of files cannot name addresses.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The PDB cannot be read.
    #[error(transparent)]
    Pdb(#[from] PdbError),
    /// The PDB is another build's.
    #[error("PDB {found} does not belong to the image, which names {}", names(.expected))]
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
    functions: Option<FunctionTable<'a>>,
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
            functions: image.and_then(FunctionTable::new),
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
        pdb.or_else(|| self.dwarf.as_mut()?.lookup(rva, self.limits))
            .or_else(|| self.image.as_ref()?.lookup(rva, functions))
    }
}
