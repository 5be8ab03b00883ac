//! CPU samples.

use crate::event::Ticks;
use crate::prefix_tree::NodeId;

use super::processes::{ProcessId, ThreadId};

/// Where a processor was at a moment, in 32 bytes: a busy machine has a million of them in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time: Ticks,
    /// The interrupted instruction.
    pub address: u64,
    /// The thread that ran: see [`Trace::runner`](super::Trace::runner).
    pub runner: RunnerId,
    /// Its stack: see [`Trace::stack`](super::Trace::stack).
    pub stack: StackId,
    /// What it stands for: the sampling interval in force times its count, in 100 ns; at most 429 seconds.
    pub weight: u32,
    /// The processor; [`ANY_PROCESSOR`] where it was given up ([`Merged::stacks_only`](super::Merged::stacks_only)).
    pub processor: u16,
    /// What the processor was doing.
    pub context: Context,
    /// How many samples it is: one, unless several became one ([`Trace::merged`](super::Trace::merged)). Their weights are
    /// added up.
    pub count: u8,
}

impl Sample {
    /// How many samples it is.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }

    /// What the same is in samples that may become one: all but the time.
    pub(super) fn alike(&self) -> (RunnerId, StackId, u64, u16, Context, u32) {
        let each = self.weight / u32::from(self.count).max(1);
        (self.runner, self.stack, self.address, self.processor, self.context, each)
    }

    /// Adds a later one that is alike. False if one sample cannot be so many.
    pub(super) fn add(&mut self, later: &Sample) -> bool {
        let sums = self.count.checked_add(later.count).zip(self.weight.checked_add(later.weight));
        sums.map(|sums| (self.count, self.weight) = sums).is_some()
    }
}

const _: () = assert!(size_of::<Sample>() == 32);

/// The processor of samples of any.
pub const ANY_PROCESSOR: u16 = u16::MAX;

/// A thread in its process, as samples name it: an index into [`Trace::runners`](super::Trace::runners).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunnerId(pub u32);

/// Whose code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Runner {
    /// The process: the one that the stack names, else that of the thread.
    pub process: ProcessId,
    /// The system's id of the thread; 0 for the idle thread, [`NO_ID`](crate::event::NO_ID) for any
    /// ([`Merged::stacks_only`](super::Merged::stacks_only)).
    pub tid: u32,
    /// The thread, where the trace knows it.
    pub thread: Option<ThreadId>,
}

/// A distinct stack of raw addresses: an index into [`Trace::stacks`](super::Trace::stacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// The two parts of a stack, as sequences of [`Trace::addresses`](super::Trace::addresses).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The part in the kernel.
    pub kernel: Option<NodeId>,
    /// The part in user mode.
    pub user: Option<NodeId>,
}

impl Stack {
    /// Which parts it has.
    pub fn parts(self) -> Parts {
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
