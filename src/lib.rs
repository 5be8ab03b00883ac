//! etwprof: where did the CPU time go, for native, kernel and .NET code, from ETW traces.

pub mod symbols;
