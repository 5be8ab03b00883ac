//! From a module and an address in it to the functions there.

mod names;

pub use names::{Function, Names, Unnamed};
