//! Reading the files: what images and symbol files say of an address.
//!
//! [`pe`] reads images, [`pdb`] the linker's symbol files; [`native`] names the addresses of native code by both,
//! [`dotnet`] and [`precompiled`] those of precompiled .NET code. [`spelling`] makes the names readable. Nothing here
//! knows where files come from, nor of a trace.

pub mod assembly;
pub mod dotnet;
pub mod functions;
pub mod limits;
pub mod location;
pub mod native;
pub mod pdb;
pub mod pe;
pub mod precompiled;
pub mod spelling;
