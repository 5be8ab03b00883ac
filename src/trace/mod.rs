//! What happened: processes, threads, images and JIT-compiled code in time, and samples with their stacks.
//!
//! [`Builder`] takes events in order of time, from a file or from a live session; [`Builder::finish`] gives the
//! [`Trace`]. Nothing is resolved while events come in, because what a sample needs may come after it: the rundown of
//! processes and images at the session's end, the user part of its stack, the frames of a stack key.

mod accounting;
mod awaiting;
mod builder;
mod chosen;
pub mod code;
mod counters;
pub mod digest;
mod disk;
mod families;
mod gc;
mod idle;
mod images;
mod interrupts;
mod inventory;
mod jit;
mod join;
mod kept;
mod lifetimes;
mod locate;
pub mod lookout;
mod mappings;
mod merging;
mod paths;
mod pieces;
mod processes;
mod recent;
mod resolver;
mod sample;
mod slots;
mod space;
mod spans;
mod texts;
mod threading;
pub mod waits;

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::clock::{Clock, Ticks};
use crate::event::NO_ID;
use crate::events::trimmed::Trimmed;
use crate::origin::{KernelSpace, Machine, Missing};
use crate::prefix_tree::PrefixTree;
pub use accounting::Lost;
pub use awaiting::Keep;
pub use builder::Builder;
pub use chosen::{AllocatedType, ChosenEvent, EventKey, EventSet};
pub use code::Code;
pub use counters::CounterTrack;
pub use disk::{Disk, DiskOperation, HardFault};
pub use gc::{Allocated, Collection, Managed, Pause, Thrown};
pub use idle::Idle;
pub use images::{Module, ModuleId, PdbId};
pub use interrupts::InterruptSpan;
pub use inventory::Before;
pub use jit::Compilation;
pub use kept::{CounterSource, Kept, Stacked};
pub use lifetimes::Life;
pub use locate::{CodeAddress, InBody, Place, PlaceAt};
pub use mappings::{Mapping, Mappings};
pub use merging::Merged;
pub use paths::Paths;
pub use processes::{Process, ProcessId, Thread, ThreadId};
pub use sample::{ANY_PROCESSOR, Context, Parts, Runner, RunnerId, Sample, Stack, StackId};
pub use slots::{SlotChoice, SlotKind, SlotOwner, SlotRow, Slots, spread};
pub use space::MappingAt;
pub use spans::Spans;
pub use threading::{Contended, PoolChange};

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
    /// What .NET runtimes report beside their code.
    pub managed: Managed,
    /// What counters said over time, where that was recorded.
    pub counters: Vec<CounterTrack>,
    /// The addresses of stacks, the root first. The numbers of its nodes, and what it has beside the stacks of `stacks`, may
    /// differ from one reading to the next.
    pub addresses: PrefixTree<u64>,
    /// Every distinct stack.
    pub stacks: Vec<Stack>,
    /// Every thread in its process that has a sample or a kept event.
    pub runners: Vec<Runner>,
    /// Every CPU sample, in order of time; idle ones only if they were asked for ([`Builder::keep_idle`]).
    pub samples: Vec<Sample>,
    /// Events of other kinds that were asked for ([`Builder::keep`]), with their stacks.
    pub kept: Kept,
    /// What disks did and which pages were read, where that was asked for ([`Keep::disk`]).
    pub disk: Disk,
    /// When DPCs and interrupts ran, in the order of their ends, where that was asked for ([`Keep::interrupts`]).
    pub interrupts: Vec<InterruptSpan>,
    /// Samples of performance counters, kept or not. They are no CPU samples, and no other count has them.
    pub counter_samples: u64,
    /// What was counted, by the number of the source.
    pub counter_sources: BTreeMap<u32, CounterSource>,
    /// What of the samples was given up to take less memory.
    pub merged: Option<Merged>,
    /// The idle ones, where they are not among the samples.
    pub idle: Idle,
    /// Samples that were dropped because their process is not wanted ([`Builder::keep_only`]); no other count has them.
    pub unwanted: u64,
    /// All events of the recording, of any kind.
    pub events: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// What was lost.
    pub lost: Lost,
    /// Where buffers are missing, and where a live session reported a loss.
    pub missing: Vec<Missing>,
    /// From where it is known what ran before.
    pub before: Before,
    /// What the recording was trimmed to, if it was.
    pub trimmed: Option<Trimmed>,
    /// The times of the first and the last event.
    pub span: Option<(Ticks, Ticks)>,
    /// The time of the last sample that became part of another.
    last_merged: Option<Ticks>,
    kernel: KernelSpace,
    kernel_only: FxHashSet<ProcessId>,
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

    /// The thread in its process of a sample.
    pub fn runner(&self, id: RunnerId) -> Runner {
        let nobody = Runner { process: ProcessId(u32::MAX), tid: NO_ID, thread: None };
        self.runners.get(id.0 as usize).copied().unwrap_or(nobody)
    }

    /// The stack of a sample.
    pub fn stack(&self, id: StackId) -> Stack {
        self.stacks.get(id.0 as usize).copied().unwrap_or_default()
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

    /// True for a process that the recording was trimmed to, and for any if it was not. Of others it has what that one needs.
    pub fn is_whole(&self, process: ProcessId) -> bool {
        let Some(trimmed) = self.trimmed.as_ref().filter(|trimmed| trimmed.pids.is_some()) else {
            return true;
        };
        self.process(process).is_some_and(|process| trimmed.has(process.pid))
    }

    /// The time that the recording was trimmed to; all, if it was not.
    pub fn period(&self) -> Range<Ticks> {
        let (from, to) = self.trimmed.as_ref().map_or((None, None), |trimmed| (trimmed.from, trimmed.to));
        from.unwrap_or(Ticks(i64::MIN))..to.unwrap_or(Ticks(i64::MAX))
    }

    /// True where only some processes were kept: what processors did meanwhile is not known.
    pub fn has_some_processes(&self) -> bool {
        self.trimmed.as_ref().is_some_and(|trimmed| trimmed.pids.is_some())
    }

    /// The times of the first and the last of the samples, also of those that became part of others.
    pub fn sampled(&self) -> Option<(Ticks, Ticks)> {
        let (first, last) = self.samples.first().zip(self.samples.last())?;
        Some((first.time, last.time.max(self.last_merged.unwrap_or(last.time))))
    }

    /// All samples of the recording, idle and unwanted ones too.
    pub fn sample_count(&self) -> u64 {
        self.samples.iter().map(Sample::count).sum::<u64>() + self.idle.samples + self.unwanted
    }
}
