//! What symbols say of a code address.

use std::cell::RefCell;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::managed::RawName;
use super::managed::source::SourceLine;
use crate::trace::ModuleId;
use crate::trace::code::ManagedModuleId;

/// A function at a code address: the one whose code it is, or one that the compiler put into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: FunctionName,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line in it.
    pub line: Option<u32>,
    /// True for a function that was inlined into the one before it.
    pub inlined: bool,
    /// True for the nearest name before the address, without proof that the code is its.
    pub approximate: bool,
}

/// A function's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FunctionName {
    /// As it is shown.
    Text(Arc<str>),
    /// Of a .NET method. Which readable form is enough depends on the other methods that are shown.
    Method(Arc<Precompiled>),
}

/// A .NET method in a precompiled image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Precompiled {
    /// Its name, as the runtime writes it.
    pub name: RawName,
    /// Compiled by ReadyToRun; else by NGEN.
    pub ready_to_run: bool,
    /// Other methods have the same code, and this is the first of them.
    pub shared: bool,
}

/// Names code addresses of modules.
pub trait Names {
    /// The functions at `rva` of `module`, from the function whose code it is to the innermost one inlined there;
    /// empty if nothing is known.
    ///
    /// `rva` is the address to look up: of a return address, the byte before it.
    fn functions(&self, module: ModuleId, rva: u64) -> Vec<&Function>;

    /// The source line of a place in the IL of a module; `None` if nothing is known.
    fn source(&self, _module: ManagedModuleId, _place: IlPlace) -> Option<&SourceLine> {
        None
    }
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

/// Knows no names, and remembers what was asked: what symbols are needed for.
#[derive(Debug, Default)]
pub struct Wanted {
    addresses: RefCell<Asked<ModuleId, u64>>,
    places: RefCell<Asked<ManagedModuleId, IlPlace>>,
}

type Asked<Module, Place> = FxHashMap<Module, FxHashSet<Place>>;

impl Names for Wanted {
    fn functions(&self, module: ModuleId, rva: u64) -> Vec<&Function> {
        self.addresses.borrow_mut().entry(module).or_default().insert(rva);
        Vec::new()
    }

    fn source(&self, module: ManagedModuleId, place: IlPlace) -> Option<&SourceLine> {
        self.places.borrow_mut().entry(module).or_default().insert(place);
        None
    }
}

impl Wanted {
    /// The addresses by image, in order.
    pub fn addresses(&self) -> FxHashMap<ModuleId, Vec<u64>> {
        sorted(&self.addresses.borrow())
    }

    /// The places in IL by module, in order.
    pub fn places(&self) -> FxHashMap<ManagedModuleId, Vec<IlPlace>> {
        sorted(&self.places.borrow())
    }
}

fn sorted<M: Copy + Eq + Hash, P: Copy + Ord>(asked: &Asked<M, P>) -> FxHashMap<M, Vec<P>> {
    let sorted = |places: &FxHashSet<P>| {
        let mut places: Vec<P> = places.iter().copied().collect();
        places.sort_unstable();
        places
    };
    asked.iter().map(|(module, places)| (*module, sorted(places))).collect()
}
