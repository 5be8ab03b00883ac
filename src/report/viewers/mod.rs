//! Files for the viewers of others.

mod code;
pub mod firefox;
pub mod otlp;
pub mod perfview;
pub mod pprof;
mod remarks;
pub mod speedscope;
mod threads;
mod values;
