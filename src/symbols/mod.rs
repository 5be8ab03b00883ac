//! Names for addresses: from an image, its symbol file, or the image's own tables.
//!
//! [`pe`] reads images, [`debug_id`] says which symbol file belongs to which image, [`managed`] names precompiled .NET
//! code and makes .NET names readable.

pub mod debug_id;
pub mod managed;
pub mod pe;
