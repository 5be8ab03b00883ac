//! From a module and an address in it to the functions there.
//!
//! [`pe`] reads images, [`debug_id`] says which symbol file belongs to which image, [`native`] names the addresses of
//! native code.

pub mod beside;
pub mod debug_id;
mod names;
pub mod native;
pub mod pe;

pub use names::{Function, Names, Unnamed};
