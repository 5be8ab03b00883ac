//! Events that are kept beside the CPU samples, each with its stack.

use crate::clock::Ticks;
use crate::events::kernel::{ContextSwitch, CounterSample, DiskIoInit, PageFault, ReadyThread};

use super::awaiting::{Awaiting, Fact, Other};
use super::chosen::ChosenEvent;
use super::sample::{RunnerId, StackId};

/// The events that [`Builder::keep`](super::Builder::keep) asked for, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Context switches. The runner is the thread that runs from then on, and the stack is its own: where it had gone to
    /// sleep.
    pub switches: Vec<Stacked<ContextSwitch>>,
    /// Threads that were made ready. Runner and stack are of the thread that did it.
    pub readied: Vec<Stacked<ReadyThread>>,
    /// Samples of performance counters.
    pub counted: Vec<Stacked<CounterSample>>,
    /// Page faults.
    pub faults: Vec<Stacked<PageFault>>,
    /// What disks were asked for. Runner and stack are of the thread that ran then.
    pub disk_requests: Vec<Stacked<DiskIoInit>>,
    /// Those that [`Builder::keep_events`](super::Builder::keep_events) asked for.
    pub events: Vec<Stacked<ChosenEvent>>,
    /// The types of what was allocated.
    pub types: Vec<String>,
}

/// An event of a thread, with its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stacked<F> {
    /// When.
    pub time: Ticks,
    /// The thread: see [`Trace::runner`](super::Trace::runner). Its id is [`NO_ID`](crate::event::NO_ID) where neither the
    /// event nor a stack names it.
    pub runner: RunnerId,
    /// The other thread that the event names: of a context switch the one that ran before, of a ready thread the one that
    /// was made ready. `None` for other events.
    pub other: Option<RunnerId>,
    /// Its stack: see [`Trace::stack`](super::Trace::stack).
    pub stack: StackId,
    /// The processor.
    pub processor: u16,
    /// What the event says.
    pub fact: F,
}

/// A source of samples other than the timer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSource {
    /// Its name; empty where the recording has none.
    pub name: String,
    /// A sample stands for so many of what it counts.
    pub interval: u32,
}

impl Kept {
    pub(super) fn take(
        &mut self,
        raw: &Awaiting<Other>,
        runner: RunnerId,
        other: Option<RunnerId>,
        stack: StackId,
    ) {
        let (time, processor) = (raw.time, raw.processor);
        match raw.fact.fact {
            Fact::Switch(fact) => {
                self.switches.push(Stacked { time, runner, other, stack, processor, fact });
            }
            Fact::Ready(fact) => {
                self.readied.push(Stacked { time, runner, other, stack, processor, fact });
            }
            Fact::Counter(fact) => {
                self.counted.push(Stacked { time, runner, other, stack, processor, fact });
            }
            Fact::Fault(fact) => self.faults.push(Stacked { time, runner, other, stack, processor, fact }),
            Fact::Disk(fact) => {
                self.disk_requests.push(Stacked { time, runner, other, stack, processor, fact });
            }
            Fact::Chosen(fact) => self.events.push(Stacked { time, runner, other, stack, processor, fact }),
        }
    }
}
