//! Finding the files: on this machine, in stores and caches, on symbol servers.
//!
//! A [`path::SymbolPath`] says where to look, a [`key::FileKey`] what for; [`verify`] says of a candidate whether it is
//! the very file, and a [`store::Store`] finds it, or says in a [`lookup::Lookup`] why not. Nothing here knows of
//! a trace.

#[cfg(feature = "http")]
mod address;
mod archive;
pub mod beside;
#[cfg_attr(not(feature = "http"), allow(dead_code))]
mod budget;
pub mod cabinet;
mod cache;
#[cfg(feature = "http")]
mod connection;
pub mod credentials;
#[cfg(feature = "http")]
mod download;
#[cfg(not(feature = "http"))]
#[path = "no_download.rs"]
mod download;
mod element;
mod failures;
#[cfg_attr(not(feature = "http"), allow(dead_code))]
mod health;
pub mod key;
mod listing;
mod login;
pub mod lookup;
pub mod options;
pub mod path;
#[cfg(feature = "http")]
mod proxy;
pub mod request;
mod route;
mod search;
mod server;
pub mod store;
#[cfg(all(windows, feature = "http"))]
mod system_proxy;
mod tree;
pub mod verify;
