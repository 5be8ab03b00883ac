//! Performance counters: numbers of the system, its drivers and programs, as seconds pass.
//!
//! Windows hands out its counters as one *block* (`HKEY_PERFORMANCE_DATA`): objects ("Processor"), their instances
//! ("_Total"), and raw values with a type ([`Block`]). The type says how two raw values become the number that people
//! know ([`CounterType`], [`calculate`]); names are stored apart from the block ([`Names`]). A [`CounterPath`] chooses
//! counters as perfmon spells them, [`readings`] gives their values, and a [`Dump`] keeps blocks with their names in a
//! file that any system reads.
//!
//! .NET programs have counters of their own, which their runtimes send to whoever asks ([`runtime`]), as a stream of events
//! ([`nettrace`]). Those of .NET Framework share theirs with the system ([`framework`]).
//!
//! Where counters are missing or wrong, the registry says most of it: [`perflib`] looks for what is wrong there, and [`trial`]
//! tries the DLLs that count.
//!
//! Blocks come from DLLs of many vendors: a process of its own asks for them ([`apart`]), and every length is checked before
//! it is used.

pub mod apart;
mod block;
mod dump;
pub mod framework;
mod kind;
mod names;
pub mod nettrace;
mod path;
pub mod perflib;
mod reading;
mod registry;
pub mod runtime;
pub mod trial;
#[cfg(all(windows, feature = "live"))]
pub mod windows;

pub use block::{Block, BlockError, Clocks, Definition, Instance, Object};
pub use dump::{Dump, DumpError};
pub use kind::{CounterType, NoValue, Point, calculate};
pub use names::Names;
pub use path::{CounterPath, PathError};
pub use reading::{MOST_READINGS, Reading, TooMany, process_instance, readings};
pub use registry::{Key, RegFileError, Registry, Value};
