//! What symbols say of a code address.

use crate::trace::ModuleId;

/// A function at a code address: the one whose code it is, or one that the compiler put into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, readable.
    pub name: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// True for a function that was inlined into the one before it.
    pub inlined: bool,
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
