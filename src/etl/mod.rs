//! The .etl container: files, buffers, records, and their merge into one stream of events in order of time.
//!
//! [`Recording::open`] takes .etl files (or archives of them) and reads only their buffer headers;
//! [`Recording::fold`] then gives every event once, borrowed from its buffer.
//!
//! The format has no public description. What this module knows is said where it is used, with the files on which it
//! was verified.

mod ahead;
mod archive;
mod buffer;
pub mod digest;
mod error;
mod file;
mod header;
mod merge;
mod record;
mod recording;
pub mod writer;
pub mod xpress;

pub use archive::is_archive;
pub use error::{Damage, DamageKind, EtlError};
pub use file::LogFile;
pub use header::LogHeader;
pub use recording::{Reading, Recording};
