//! Live sessions: where events come from when they are not read from a file. Windows only, but for the parts between
//! the callback and the builder.
//!
//! Two sessions are started, because they lose nothing of each other's and are filtered apart:
//!
//! - the *kernel* session, in system-logger mode with a name of our own, has processes, threads, images and samples
//!   with their stacks;
//! - the *CLR* session has the runtime's provider, whose events name code as it is compiled, and its rundown provider,
//!   which names what was compiled before and, at the end, what is still there.
//!
//! The order of calls matters (documentation of SystemTraceProvider sessions): the privilege for the interval comes first;
//! the kernel session is started with nothing switched on; the interval is set; stacks are asked for; the consumer is
//! opened; the CLR's providers are switched on; then processes, threads and images; when what runs already is known,
//! samples. At the end the kernel's events are switched off, and the sessions are stopped *before* their consumers are
//! closed: both make the kernel list what is still running, and these lists come through the consumer.
//!
//! Everything that outlives this process if nobody undoes it is in one list, `undo`, until it is undone: sessions, the
//! sampling interval, which is the machine's and not the session's, and a program that was started suspended.
//!
//! ferrisetw starts the sessions. What it does not do is beside it in `etw.rs` and `consumer.rs`, with the reasons in
//! `docs/live.md`: it cannot hand out raw timestamps, and only these pair samples with their stacks exactly.

mod batch;
pub mod diagnosis;
mod pipeline;
pub mod program;
mod scope;
mod status;
mod tally;
mod window;

#[cfg(windows)]
pub mod console;
#[cfg(windows)]
mod consumer;
mod error;
#[cfg(windows)]
mod etw;
#[cfg(windows)]
mod interval;
#[cfg(windows)]
pub mod journal;
#[cfg(windows)]
mod lists;
#[cfg(windows)]
mod machine;
mod missing;
mod priority;
#[cfg(windows)]
pub mod process;
#[cfg(windows)]
mod recorder;
#[cfg(windows)]
pub mod running;
#[cfg(windows)]
mod snapshot;
#[cfg(windows)]
mod system;
#[cfg(windows)]
pub mod undo;

pub use batch::Batch;
pub use error::{Fault, SessionError, Step};
#[cfg(windows)]
pub use machine::now;
pub use missing::Missing;
pub use pipeline::{Counters, Drained, Feed, Pipeline};
#[cfg(windows)]
pub use recorder::{Ending, Options, ProfileFlag, Recorder, Started, Stopped, Whose};
pub use scope::{Scope, ScopeFilter};
pub use status::{Losses, Status};
pub use tally::SampleCounts;
pub use window::Window;
