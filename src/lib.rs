//! Where did the CPU time go? Reads ETW recordings on any system and shows the answer for native, kernel and .NET code.
//!
//! The program `etwprof` is a thin layer over this library. Data flows one way through its modules, and no module
//! knows a later one:
//!
//! | module | takes | gives |
//! |---|---|---|
//! | [`etl`] | .etl files | [events](event::Event) in order of time, borrowed from their buffers |
//! | [`session`] | a running Windows | the same events, live |
//! | [`events`] | an event's payload | what it says, typed |
//! | [`trace`] | events | processes, threads and images in time; samples joined to their stacks |
//! | [`trim`] | a recording and what is wanted of it | which of its records are kept |
//! | [`counters`] | blocks of performance data | the values of counters |
//! | [`symbols`] | a module and an address in it | the functions there |
//! | [`profile`] | a trace and names | named stacks, the counted call tree |
//! | [`compare`] | two sides of call trees | what changed, apart from noise |
//! | [`findings`] | a profile | what stands out, with evidence; how far it can be trusted |
//! | [`analysis`] | files and options | all of it: a named profile |
//! | [`report`] | a call tree | text, folded stacks, SVG |
//!
//! ```
//! use etwprof::profile::{Detail, Filter, Grouping};
//! use etwprof::report::{Spelling, folded};
//! use etwprof::{Analysis, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let filter = Filter { names: vec!["orders".parse()?], ..Filter::default() };
//! let options = Options { filter, ..Options::default() };
//! let profile = Analysis::open(&["examples/demo.etl"], &options, &())?.profile;
//!
//! let grouping = Grouping::Process;
//! let (tree, _) = profile.tree(grouping, Detail::default());
//! assert_eq!(tree.total() as u64, profile.balance.kept);
//!
//! let mut lines = Vec::new();
//! folded::write(&mut lines, &tree, &Spelling::new(&profile, Detail::default()))?;
//! assert!(lines.starts_with(b"orders.exe (7312);"));
//! # Ok(())
//! # }
//! ```
//!
//! [`Analysis`] with its [`Profile`] and [`Trace`], [`report`], [`Recording`] with its [`event`]s and [`events`], and the types
//! that these name are what this library is for. The rest of [`symbols`], [`session`] and [`access`], [`bytes`], [`mmap`] and
//! [`prefix_tree`] are public because the program and its tests use them, and may change with any version.
//!
//! # Features
//!
//! All are on by default. Without them the reader, names from files on this machine, and call trees are left.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` | the program, and all below but `mcp` |
//! | `mcp` | the server for assistants in the program |
//! | `http` | symbol servers |
//! | `live` | [`session`] and [`access`], for Windows |
//!
//! # What an ETW recording is
//!
//! Providers write *events* into buffers, one set of buffers for each processor; a *session* writes full buffers to a
//! file, one after another. There is no index: a reader walks the buffers, then merges the events of all processors
//! by time ([`etl`]). Events of one moment keep the order of the file.
//!
//! The kernel's events are *classic*: a task GUID, a type and a version decide the layout of the payload, and nothing
//! in the file describes it. Events of other providers carry a manifest's id ([`event::Kind`]).
//!
//! A CPU sample says only which instruction a processor was at and for which thread. What makes a profile of it lies
//! all around it in the file ([`trace`]):
//!
//! - its *stack*, in up to two later records that name the sample by time and thread;
//! - the *process* of its thread, given by thread events, or by rundown at either end of the recording;
//! - the *images* of that process, with the ids of their PDBs if the recording was merged after it was made.
//!
//! Ids of processes and threads, addresses of images and keys of stacks are all used again within one recording, so
//! everything is kept as an interval in time.
//!
//! # Input
//!
//! Recordings may be cut, damaged or crafted. No input makes this library panic; sizes are checked before they are
//! trusted; a bad buffer or event costs itself, is counted, and is reported with its place
//! ([`etl::Damage`], [`trace::Lost`]).

#[cfg(feature = "live")]
pub mod access;
pub mod analysis;
pub mod bytes;
pub mod clock;
pub mod compare;
pub mod counters;
pub mod debug_id;
pub mod etl;
pub mod event;
pub mod events;
pub mod findings;
pub mod guid;
pub mod guids;
mod interned;
pub mod mmap;
pub mod origin;
pub mod prefix_tree;
pub mod profile;
pub mod report;
#[cfg(feature = "live")]
pub mod session;
pub mod sink;
pub mod symbols;
pub mod trace;
pub mod trim;
pub mod winpath;
mod zip_limit;

pub use analysis::{Analysis, Options, SymbolOptions};
pub use etl::Recording;
pub use profile::{CallTree, Filter, Profile};
pub use trace::Trace;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
