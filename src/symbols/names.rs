//! What symbols say of a code address.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::read::dotnet::lines::SourceLine;
use super::read::location::Evidence;
use super::read::spelling::method::RawName;
use crate::trace::ModuleId;
use crate::trace::code::ManagedModuleId;

/// A function at a code address: the one whose code it is, or one that the compiler put into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: FunctionName,
    /// How it was found.
    pub evidence: Evidence,
    /// How sure the name is.
    pub certainty: Certainty,
    /// The simple name of the assembly that defines a .NET method, where it is known and not the image's own.
    pub assembly: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line in it.
    pub line: Option<u32>,
    /// The RVA where its code begins, or that part of it; `None` where that is not known, and of an inlined function.
    pub start: Option<u32>,
    /// True for a function that was inlined into the one before it.
    pub inlined: bool,
}

/// A function's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FunctionName {
    /// As it is shown.
    Text(Arc<str>),
    /// Of native code, exactly as its symbols have it; [`short_name`](super::short_name) is for people.
    Native(Arc<str>),
    /// Of a .NET method. Which readable form is enough depends on the other methods of its module.
    Method(Arc<RawName>),
    /// Of a .NET method of which only the metadata token is known.
    Token(u32),
    /// None: a function that begins at this RVA, by what the image itself shows.
    Start(u32),
}

/// How sure it is that the code at an address is the named function's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// The evidence covers the address.
    #[default]
    Exact,
    /// The nearest name before the address, without proof that the code is its.
    Nearest,
    /// Several functions have the same code, and this is the first of them.
    Shared,
}

/// Names code addresses of modules.
pub trait Names {
    /// The functions at `rva` of `module`, from the function whose code it is to the innermost one inlined there;
    /// empty if nothing is known.
    ///
    /// `rva` is the address to look up: of a return address, the byte before it.
    fn functions(&self, module: ModuleId, rva: u64) -> Vec<&Function>;

    /// Other .NET methods in the image of `module`, of the types of those that it names: what a short name must differ
    /// from.
    fn siblings(&self, _module: ModuleId) -> &[Siblings] {
        &[]
    }

    /// The source line of a place in the IL of a module; `None` if nothing is known.
    fn source(&self, _module: ManagedModuleId, _place: IlPlace) -> Option<&SourceLine> {
        None
    }
}

/// .NET methods of one assembly in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Siblings {
    /// The assembly's simple name; `None` for the image's own.
    pub assembly: Option<Arc<str>>,
    /// Their names.
    pub methods: Vec<RawName>,
}

/// A place in the IL of a .NET method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IlPlace {
    /// The metadata token of the method: `0x06......`.
    pub token: u32,
    /// Bytes from the start of its IL.
    pub offset: u32,
}

/// Knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unnamed;

impl Names for Unnamed {
    fn functions(&self, _: ModuleId, _: u64) -> Vec<&Function> {
        Vec::new()
    }
}

/// What symbols are needed for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// All samples: what shares are of.
    pub samples: u64,
    /// The modules that samples hit.
    pub hits: Vec<Hit>,
    /// Places in the IL of .NET methods whose lines are wanted, in order.
    pub lines: BTreeMap<ManagedModuleId, Vec<IlPlace>>,
}

/// A module that samples hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The module.
    pub module: ModuleId,
    /// Samples with a frame in it.
    pub samples: u64,
    /// The addresses to name, as RVAs, in order.
    pub rvas: Vec<u64>,
}
