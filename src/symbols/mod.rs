//! Names for addresses: from an image, its symbol file, or the image's own tables.
//!
//! [`pe`] reads images, [`debug_id`] says which symbol file belongs to which image, [`native`] names the
//! addresses of native code.

pub mod beside;
pub mod debug_id;
pub mod native;
pub mod pe;
