//! Names for addresses: from an image's own tables, from symbol files and from the runtime's events.

pub mod managed;
