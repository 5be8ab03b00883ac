//! From a module and an address in it to the functions there.
//!
//! Where the files come from: a [`path::SymbolPath`] says where to look, a [`key::FileKey`] what for, and a
//! [`store::Store`] finds it there, on this machine or on a symbol server, or says in a [`lookup::Lookup`] why not.
//!
//! What they say: [`pe`] reads images, [`debug_id`] says which symbol file belongs to which image, [`native`] names
//! the addresses of native code, [`managed`] names precompiled .NET code and makes .NET names readable.
//!
//! [`resolver`] brings both together for a trace; a [`verdict::Verdict`] says for each module what came of it.

mod archive;
pub mod beside;
pub mod cabinet;
mod cache;
pub mod debug_id;
mod download;
mod failures;
pub mod identity;
pub mod key;
mod limits;
pub mod lookup;
pub mod managed;
mod named;
mod names;
pub mod native;
mod parallel;
pub mod path;
pub mod pe;
pub mod precompiled;
pub mod resolver;
mod search;
mod server;
pub mod sources;
pub mod store;
mod tree;
pub mod verdict;

pub use limits::Limits;
pub use managed::source::SourceLine;
pub use names::{Function, FunctionName, IlPlace, Names, Precompiled, Unnamed, Wanted};
