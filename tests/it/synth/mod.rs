//! Traces made by hand: an `.etl` file written byte by byte, for tests that must know exactly what they read.
//!
//! The layouts are typed here a second time and share nothing with the library, not even a constant: a wrong
//! edit in a decoder cannot hide behind the same edit in its test. From the bottom:
//!
//! - [`Bytes`]: little-endian values, one method for each width;
//! - [`Event`]: what happened, in one of ETW's record headers (SYSTEM, COMPACT, PERFINFO, FULL, INSTANCE,
//!   EVENT_HEADER, WPP message), for 32- and 64-bit writers;
//! - [`kernel`], [`image_id`], [`clr`]: the payloads;
//! - [`Buffer`]: records in a 72-byte-headed buffer, plain or compressed, with every header field to override;
//! - [`Etl`]: the file. Events go to per-processor buffers in time order; exact buffers can follow.
//!   [`Stream`] writes one that is too large for memory;
//! - [`believable`]: whole recordings of any size, shaped as real ones are.
//!
//! All times are raw clock values as they stand in the file. The clock of [`Etl::new`] is a 10 MHz QPC that
//! showed [`START`] at the header record.
//!
//! ```ignore
//! let trace = Etl::new()
//!     .event(0, START + 10, Process::dc_start(42, "a.exe"))
//!     .event(0, START + 10, Thread::dc_start(42, 43))
//!     .event(0, START + 10, Image::dc_start(42, 0x7ff6_0000_0000, 0x1000, r"\Device\HarddiskVolume3\a.exe"))
//!     .event(0, START + 20, Sample::new(0x7ff6_0000_0010, 43))
//!     .event(0, START + 21, stack_walk::full(START + 20, 42, 43, &[0x7ff6_0000_0010]))
//!     .finish();
//! ```
#![allow(dead_code, unused_imports)] // a kit: not every tool is in use at every time

pub mod believable;
mod buffer;
mod bytes;
pub mod clr;
pub mod counters;
pub mod dwarf;
mod etl;
mod event;
mod extended;
pub mod framework;
mod guid;
pub mod image_id;
pub mod kernel;
mod logfile_header;
pub mod nettrace;
pub mod pdb;
mod stream;
pub mod xpress;

#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use bytes::Bytes;
pub use etl::{Etl, START};
pub use event::{Event, IntoEvent, NO_ID, Origin};
pub use extended::Item;
pub use guid::{Guid, guid};
pub use kernel::image::Image;
pub use kernel::perfinfo::Sample;
pub use kernel::process::Process;
pub use kernel::stack_walk;
pub use kernel::thread::Thread;
pub use logfile_header::Clock;
pub use stream::Stream;
