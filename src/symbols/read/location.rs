//! What symbols say of one address.

use std::borrow::Cow;
use std::sync::Arc;

use super::spelling::method::RawName;
use super::spelling::native;

/// What an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The function that has the code: scope, name and template arguments, without parameters, as its symbols spell them.
    /// [`shorten`](Location::shorten) makes the form for people.
    pub function: String,
    /// Its name as the runtime writes it, if it is a .NET method; `function` is then the readable form.
    pub method: Option<Arc<RawName>>,
    /// Which method it is, if it is one of another assembly than the image's own.
    pub definition: Option<Definition>,
    /// Bytes from its start; from the start of the part, if a part of the function was moved away.
    pub offset: u32,
    /// Source file of the line *in this function* that the code belongs to. With inlined calls, that of the call.
    pub file: Option<String>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// The functions inlined there, innermost first.
    pub inlined: Vec<InlinedFunction>,
    /// How many more there are than [`Limits`](super::limits::Limits) allow. A line in the middle of `inlined` stands for them.
    pub left_out: usize,
    /// What the name rests on.
    pub evidence: Evidence,
    /// The nearest name before the address, without proof that the function has the address.
    pub approximate: bool,
}

impl Location {
    /// Gives native functions the short names that people write.
    pub fn shorten(&mut self) {
        let own = if self.method.is_none() { Some(&mut self.function) } else { None };
        for name in own.into_iter().chain(self.inlined.iter_mut().map(|call| &mut call.function)) {
            if let Cow::Owned(short) = native::short(name) {
                *name = short;
            }
        }
    }
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
    pub(super) fn left_out(calls: usize) -> Self {
        InlinedFunction { function: format!("[{calls} inlined calls left out]"), file: None, line: None }
    }
}

/// A .NET method by the assembly that defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The assembly's simple name.
    pub assembly: Arc<str>,
    /// The method's metadata token there, `0x06......`; 0 where only the assembly is known.
    pub token: u32,
}

/// What a name rests on, in the order of evidence: the best comes first and is the least. Of several names for one
/// address the best is taken, wherever they come from, and of equal ones the one that symbols give.
///
/// | | what shows that the code is the function's | and what it is called |
/// |---|---|---|
/// | `Pdb` | begin and end in the PDB | the compiler's record |
/// | `Dwarf` | begin and end in the image | the compiler's record |
/// | `R2r` | begin and end of every method in the image's tables | the metadata of its assembly |
/// | `Ngen` | begin; the PDB of an NGEN image lists every method | the same list |
/// | `CodeEvent` | begin and end, as the runtime or engine said at that time; or as `R2r` | the same event; or one of the same token |
/// | `Public` | begin; the end by whatever comes next | a linker symbol |
/// | `EntryPoint` | begin; every method's first call was recorded, so the nearest is right | the same event |
/// | `Token` | as `R2r` or `CodeEvent` | nothing: a number in place of a name, or of a part of it |
/// | `NearestEntryPoint` | begin; another method that is not known may lie between | the event of the first call |
/// | `Export` | begin; the end by the functions that the image shows | an export |
/// | `FunctionTable` | begin of the function, as the image shows it | nothing |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// A procedure of the PDB.
    Pdb,
    /// DWARF in the image.
    Dwarf,
    /// The ReadyToRun tables of a precompiled .NET image.
    R2r,
    /// The PDB of an NGEN image, which lists every method.
    Ngen,
    /// An event of a runtime or a script engine that has the code's address and size.
    CodeEvent,
    /// A linker symbol without a size: a public symbol of the PDB, or the image's COFF symbol table.
    Public,
    /// An event that says where a precompiled method begins, and not where it ends (R2RGetEntryPoint); none is missing.
    EntryPoint,
    /// Metadata tokens: the ReadyToRun tables without the metadata of an assembly, or an event without names.
    Token,
    /// As [`Evidence::EntryPoint`], where some may be missing.
    NearestEntryPoint,
    /// An export of the image.
    Export,
    /// What the image itself shows, its exception table above all: where the function begins, and no name.
    FunctionTable,
}

impl Evidence {
    /// The word for it in outputs.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Pdb => "pdb",
            Evidence::R2r => "r2r",
            Evidence::Ngen => "ngen",
            Evidence::CodeEvent => "event",
            Evidence::Public => "public",
            Evidence::Dwarf => "dwarf",
            Evidence::EntryPoint | Evidence::NearestEntryPoint => "entry_point",
            Evidence::Token => "token",
            Evidence::Export => "export",
            Evidence::FunctionTable => "function_table",
        }
    }

    /// Whether it gives a name.
    pub fn is_name(self) -> bool {
        !matches!(self, Evidence::Token | Evidence::FunctionTable)
    }
}
