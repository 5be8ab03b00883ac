//! Names for addresses: from an image, its symbol file, or the image's own tables.
//!
//! Where the files come from: a [`path::SymbolPath`] says where to look, a [`key::FileKey`] what for, and a
//! [`store::Store`] finds it there, on this machine or on a symbol server, or says in a [`lookup::Lookup`] why not.

pub mod cabinet;
mod cache;
mod download;
mod failures;
pub mod key;
pub mod lookup;
pub mod path;
mod search;
mod server;
pub mod store;
