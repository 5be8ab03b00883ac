//! Profiles as people and other programs read them. Every report takes data and options, and writes to an
//! [`io::Write`](std::io::Write).

pub mod console;
pub mod diagnosis;
pub mod events;
pub mod flamegraph;
pub mod folded;
pub mod info;
mod text;

pub use text::{bytes, count, cut_stacks, duration, json, one_line};
