//! What symbols say of a code address.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::managed::RawName;
use crate::trace::ModuleId;

/// A function at a code address: the one whose code it is, or one that the compiler put into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: FunctionName,
    /// The source file.
    pub file: Option<String>,
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
    Text(String),
    /// Of a .NET method. Which readable form is enough depends on the other methods that are shown.
    Method(Box<Precompiled>),
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
    fn functions(&self, module: ModuleId, rva: u64) -> &[Function];
}

/// Knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unnamed;

impl Names for Unnamed {
    fn functions(&self, _: ModuleId, _: u64) -> &[Function] {
        &[]
    }
}

/// Knows no names, and remembers what was asked: the addresses that symbols are needed for.
#[derive(Debug, Default)]
pub struct Wanted(RefCell<FxHashMap<ModuleId, FxHashSet<u64>>>);

impl Names for Wanted {
    fn functions(&self, module: ModuleId, rva: u64) -> &[Function] {
        self.0.borrow_mut().entry(module).or_default().insert(rva);
        &[]
    }
}

impl Wanted {
    /// The addresses by module, in order.
    pub fn into_addresses(self) -> FxHashMap<ModuleId, Vec<u64>> {
        let sorted = |rvas: FxHashSet<u64>| {
            let mut rvas: Vec<u64> = rvas.into_iter().collect();
            rvas.sort_unstable();
            rvas
        };
        self.0.into_inner().into_iter().map(|(module, rvas)| (module, sorted(rvas))).collect()
    }
}
