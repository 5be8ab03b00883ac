//! Where did the CPU time go? Reads ETW recordings on any system and shows the answer for native, kernel and .NET code.
//!
//! The program `etwprof` is a thin layer over this library. Data flows one way through its modules, and no module
//! knows a later one:
//!
//! | module | takes | gives |
//! |---|---|---|
//! | [`etl`] | .etl files | [events](event::Event) in order of time, borrowed from their buffers |
//! | [`events`] | an event's payload | what it says, typed |
//! | [`trace`] | events | processes, threads and images in time; samples joined to their stacks |
//! | [`symbols`] | a module and an address in it | the functions there |
//! | [`profile`] | a trace and names | named stacks, the counted call tree |
//! | [`report`] | a call tree | text, folded stacks, SVG |
//!
//! ```
//! use etwprof::etl::Recording;
//! use etwprof::profile::{CallTree, Filter, Grouping, Naming, Profile};
//! use etwprof::report::folded;
//! use etwprof::symbols::Unnamed;
//! use etwprof::trace::Builder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = Recording::open(&["examples/demo.etl"])?;
//! let builder = recording.fold(&mut |_bytes| (), || Builder::for_recording(&recording), Builder::event).value;
//! let trace = builder.finish();
//!
//! let filter = Filter { names: vec!["orders".into()], ..Filter::default() };
//! let profile = Profile::new(&trace, &filter, &Unnamed, Naming::default());
//! let tree = CallTree::new(&profile, &trace, Grouping { by_process: true, by_thread: false });
//! assert_eq!(tree.total(), profile.balance.kept);
//!
//! let mut lines = Vec::new();
//! folded::write(&mut lines, &tree)?;
//! assert!(lines.starts_with(b"orders.exe (7312);"));
//! # Ok(())
//! # }
//! ```
//!
//! # What an ETW recording is
//!
//! Providers write *events* into buffers, one set of buffers for each processor; a *session* writes full buffers to a
//! file, one after another. There is no index: a reader walks the buffers, then merges the events of all processors
//! by time ([`etl`]). Events of one moment keep the order of the file.
//!
//! The kernel's events are *classic*: a task GUID, a type and a version tell the layout of the payload, and nothing
//! in the file describes it. Events of other providers carry a manifest's id ([`event::Kind`]).
//!
//! A CPU sample says only which instruction a processor was at and for which thread. What makes a profile of it lies
//! all around it in the file ([`trace`]):
//!
//! - its *stack*, in up to two later records that name the sample by time and thread;
//! - the *process* of its thread, told by thread events, or by rundown at either end of the recording;
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

pub mod bytes;
pub mod etl;
pub mod event;
pub mod events;
pub mod guid;
pub mod mmap;
pub mod prefix_tree;
pub mod profile;
pub mod report;
pub mod session;
pub mod symbols;
pub mod trace;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
