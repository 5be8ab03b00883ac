//! etwprof: where did the CPU time go, for native, kernel and .NET code, from ETW traces.

pub mod bytes;
pub mod etl;
pub mod event;
pub mod events;
pub mod guid;
pub mod mmap;
