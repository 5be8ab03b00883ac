//! Whoever takes events, and what a live source gives beside them.
//!
//! The kernel reports what ran before a session when its events are switched on, and again at the end. No documentation
//! promises either for the way in which a live session switches them on. So the system is asked as well, and whoever
//! takes the events fills with its answer what no event reports.

use crate::event::{Event, Ticks};

/// Takes the events of a live session in order of time.
pub trait Sink: Send + 'static {
    /// Takes one event.
    fn event(&mut self, event: &Event<'_>);

    /// Takes what ran when the recording began, once, after all events.
    fn inventory(&mut self, _inventory: Inventory) {}
}

/// What ran at a moment. Events of the same things are to be believed before it.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// When it was begun.
    pub from: Ticks,
    /// When it was complete. Whatever is in it was there at some time between the two.
    pub until: Ticks,
    /// The processes.
    pub processes: Vec<Running>,
    /// Threads, and the processes that they belong to: (thread id, process id).
    pub threads: Vec<(u32, u32)>,
    /// Files mapped into processes and into the kernel.
    pub modules: Vec<Loaded>,
    /// Processes that the system does not let us look into: protected ones, and those of other users.
    pub closed: u32,
    /// True if the system does not say where kernel modules are. Windows 11 24H2 keeps it from whoever has not the
    /// privilege to debug.
    pub kernel_is_hidden: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its id.
    pub pid: u32,
    /// The id of the process that started it, which may be gone and its id used again.
    pub parent: u32,
    /// The file name of its executable.
    pub name: String,
    /// When it was created, as a FILETIME; `None` if the system does not say.
    pub created: Option<i64>,
    /// A 32-bit process on a 64-bit system.
    pub wow64: bool,
}

/// A file that is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The process; 0 for kernel modules.
    pub pid: u32,
    /// Where it is mapped.
    pub base: u64,
    /// The size of its mapping in bytes.
    pub size: u64,
    /// Its path, in any of the forms that Windows names paths by.
    pub path: String,
}
