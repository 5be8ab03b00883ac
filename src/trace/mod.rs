//! What happened: processes, threads, images and JIT-compiled code in time, and samples with their stacks.
//!
//! [`Builder`] takes events in order of time, from a file or from a live session; [`Builder::finish`] gives the
//! [`Trace`]. Nothing is resolved while events come in, because what a sample needs may come after it: the rundown of
//! processes and images at the session's end, the user part of its stack, the frames of a stack key.

mod accounting;
mod builder;
pub mod code;
mod idle;
mod images;
mod inventory;
mod join;
mod lifetimes;
mod mappings;
mod paths;
mod pieces;
mod processes;
mod space;

use rustc_hash::FxHashSet;

use crate::etl::Clock;
use crate::event::{Pointer, Ticks};
use crate::events::kernel::KernelSpace;
use crate::prefix_tree::{NodeId, PrefixTree};
pub use accounting::Lost;
pub use builder::{Builder, Machine};
pub use code::Code;
pub use idle::Idle;
pub use images::{Module, ModuleId, PdbId};
pub use inventory::Before;
pub use lifetimes::Life;
pub use mappings::{Mapping, Mappings};
pub use paths::{Paths, file_name, same_file, without_volume};
pub use processes::{Process, ProcessId, Thread, ThreadId};
pub use space::Located;

/// A recording, understood.
#[derive(Debug)]
pub struct Trace {
    /// Converts its times.
    pub clock: Clock,
    /// The machine that recorded.
    pub machine: Machine,
    /// Every process that was there at any time.
    pub processes: Vec<Process>,
    /// Every thread.
    pub threads: Vec<Thread>,
    /// Every file that was mapped.
    pub modules: Vec<Module>,
    /// Where and when.
    pub mappings: Mappings,
    /// Code outside images.
    pub code: Code,
    /// The raw stacks of the samples: addresses, the root first.
    pub stacks: PrefixTree<u64>,
    /// Every CPU sample but the idle ones, in order of time.
    pub samples: Vec<Sample>,
    /// The idle ones.
    pub idle: Idle,
    /// Samples that were dropped because their process is not wanted ([`Builder::keep_only`]); no other count has them.
    pub unwanted: u64,
    /// All events of the recording, of any kind.
    pub events: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// What was lost.
    pub lost: Lost,
    /// From where it is known what ran before.
    pub before: Before,
    /// The times of the first and the last event.
    pub span: Option<(Ticks, Ticks)>,
    kernel: KernelSpace,
    kernel_only: FxHashSet<ProcessId>,
}

/// Where a processor was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time: Ticks,
    /// The interrupted instruction.
    pub address: u64,
    /// The process: the one that its stack names, else that of its thread.
    pub process: ProcessId,
    /// The system's id of the thread; 0 for the idle thread.
    pub tid: u32,
    /// The thread, where the trace knows it.
    pub thread: Option<ThreadId>,
    /// The processor.
    pub processor: u16,
    /// What it stands for: the sampling interval in force times its count, in 100 ns.
    pub weight: u64,
    /// What the processor was doing.
    pub context: Context,
    /// The kernel part of its stack.
    pub kernel: Option<NodeId>,
    /// The user part of its stack.
    pub user: Option<NodeId>,
}

impl Sample {
    /// Which parts its stack has.
    pub fn parts(&self) -> Parts {
        match (self.kernel, self.user) {
            (None, None) => Parts::None,
            (None, Some(_)) => Parts::User,
            (Some(_), None) => Parts::Kernel,
            (Some(_), Some(_)) => Parts::KernelAndUser,
        }
    }
}

/// What a sampled processor was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// Running its thread.
    Thread,
    /// Running a deferred procedure call on the back of a thread.
    Dpc,
    /// Running an interrupt service routine on the back of a thread.
    Isr,
}

/// Which parts a stack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// No stack at all.
    None,
    /// User frames only: the sample was in user mode.
    User,
    /// Kernel frames only: a system thread, an interrupt, or a user part that was lost.
    Kernel,
    /// Both.
    KernelAndUser,
}

impl Trace {
    /// The process of a sample or mapping.
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.get(id.0 as usize)
    }

    /// A module by its id.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0 as usize)
    }

    /// A thread by its id.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.0 as usize)
    }

    /// A time, as a FILETIME, since when a module's file has surely been what it is: the creation of the first process
    /// that had it before the recording, where that is known; else the begin of the recording.
    pub fn there_since(&self, module: ModuleId) -> i64 {
        let before =
            self.mappings.iter().filter(|mapping| mapping.module == module && mapping.start.is_none());
        let created = before.filter_map(|mapping| self.process(mapping.process)?.created);
        created.fold(self.clock.base_utc, i64::min)
    }

    /// True for an address in the kernel's half of the machine's address space.
    pub fn is_kernel_address(&self, address: u64) -> bool {
        self.kernel.contains(address, self.machine.pointer)
    }

    /// True for a process without user mode: System, and what lives in the kernel under a name of its own, such as
    /// Registry and MemCompression. Such a process maps no image while others do, and no sample of it is in user mode.
    pub fn is_kernel_only(&self, process: ProcessId) -> bool {
        self.kernel_only.contains(&process)
    }

    /// True if it is known where any kernel module is. Without it no kernel frame has a module.
    pub fn has_kernel_modules(&self) -> bool {
        self.modules.iter().any(|module| module.kernel)
    }

    /// All samples of the recording, idle and unwanted ones too.
    pub fn sample_count(&self) -> u64 {
        self.samples.len() as u64 + self.idle.samples + self.unwanted
    }

    /// The machine's pointer width in bytes.
    pub fn pointer_bytes(&self) -> usize {
        match self.machine.pointer {
            Pointer::Bits32 => 4,
            Pointer::Bits64 => 8,
        }
    }
}
