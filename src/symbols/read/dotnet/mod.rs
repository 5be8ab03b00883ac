//! .NET code: the names of precompiled methods from the image alone, and the readable form of a method's name.
//!
//! A precompiled assembly (ReadyToRun, since .NET Core 1.0) is a PE file with three layers:
//!
//! - the PE headers, whose data directory 14 points to the *COR header* (ECMA-335 II.25.3.3);
//! - the *metadata* that the COR header points to: tables of types and methods with their names and signatures
//!   ([`metadata`]);
//! - the *managed native header* that the COR header also points to: which native code belongs to which method
//!   ([`r2r`]).
//!
//! So the image names its own code, and no symbol file is needed. What comes out is the runtime's own form of a name
//! ([`RawName`](super::spelling::method::RawName)), the same three strings that the runtime writes into its MethodLoadVerbose events; [`spelling`](super::spelling) turns
//! either into what a C# developer would write.
//!
//! A line in the source needs one file more, the PDB: [`lines`].

mod cursor;
pub mod lines;
pub mod metadata;
pub mod r2r;
