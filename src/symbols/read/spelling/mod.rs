//! Names as a person wants to read them.

pub mod demangle;
pub mod method;
pub mod native;
