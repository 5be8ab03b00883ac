//! Profiles as people and other programs read them. Every report takes data and options, and writes to an
//! [`io::Write`](std::io::Write).

mod account;
pub mod calls;
pub mod colours;
pub mod console;
pub mod counters;
#[cfg(feature = "live")]
pub mod diagnosis;
pub mod diff;
pub mod disk;
pub mod events;
pub mod findings;
pub mod flamegraph;
pub mod folded;
pub mod format;
pub mod gc;
mod grid;
pub mod info;
pub mod interrupts;
pub mod jit;
mod label;
pub mod lines;
mod named;
mod narrow;
#[cfg(feature = "viewers")]
pub mod page;
pub mod perflib;
mod runtimes;
mod spelling;
pub mod strip;
pub mod table;
mod text;
pub mod thread_times;
pub mod timeline;
pub mod tree_data;
pub mod trim;
mod verbose;
#[cfg(feature = "viewers")]
pub mod viewers;
pub mod waits;

pub use account::{filtered_out, reasons};
pub use label::{Label, Labels, Plain};
pub use narrow::narrow;
pub use spelling::Spelling;
pub use text::{amount, bytes, count, cut_stacks, duration, json, one_line, signed, time_of_day, time_zone};
pub use verbose::verbose;
