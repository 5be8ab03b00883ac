//! What threads did while they did not run: for each thread its states in time, from context switches and from the events
//! of threads that are made ready ([`Keep`](super::Keep)).
//!
//! What is known, and how:
//!
//! - The states cover the time in which context switches were recorded, and of that the life of the thread. Their lengths
//!   add up to it exactly.
//! - A thread that leaves its processor ready has been pre-empted, or gave way
//!   ([`leaving`](crate::events::kernel::ContextSwitch::leaving)): it waits for a processor from that moment on. One that leaves it waiting is blocked until an event makes it ready.
//! - A thread that comes back without such an event since it was last known, in a recording that has them, was ready all
//!   that time; in a recording that has none, blocked.
//! - A thread that never runs was blocked, unless samples show that it ran all the time.
//! - Where a buffer is missing, nothing is known of its processor from the last switch before the loss to the first after
//!   it, nor of a thread that ran on no other processor then. A switch from a thread that did not run there ends
//!   what was believed of both.
//! - Of a recording that was trimmed to some processes, nothing is known of the threads of others, but that they made a thread
//!   ready, and who ran on a processor from a switch on until the processor had time for more.

mod build;
mod cause;
mod chain;

use crate::clock::Ticks;

use super::processes::{ProcessId, ThreadId};
use super::sample::{Context, RunnerId};
use super::{Kept, Stacked, Trace};
use crate::event::NO_ID;
use crate::events::kernel::{ContextSwitch, ReadyThread, WaitReason};

pub use cause::{Cause, Causes};
pub use chain::{Chain, ChainEnd, Link};

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It ran, or an interrupt ran on its back.
    Running,
    /// It could run, and had no processor.
    Ready,
    /// It waited for something.
    Blocked,
    /// Nothing tells.
    Unknown,
}

/// A time in which a thread was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The state.
    pub state: State,
    /// From when on.
    pub start: Ticks,
    /// Until when.
    pub end: Ticks,
    /// The processor, of a running thread.
    pub processor: Option<u16>,
    /// The switch by which it had left its processor: an index into [`Kept::switches`].
    pub left: Option<u32>,
    /// The switch by which it ran again, whose stack is where it had been: an index into [`Kept::switches`].
    pub came: Option<u32>,
    /// The event that made it ready: an index into [`Kept::readied`].
    pub readied: Option<u32>,
}

impl Span {
    /// Its length.
    pub fn ticks(&self) -> i64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Why the thread had left its processor, where that is known.
    pub fn reason(&self, kept: &Kept) -> Option<WaitReason> {
        self.switch_out(kept).map(|switch| switch.fact.reason())
    }

    /// The switch by which it had left its processor.
    pub fn switch_out<'k>(&self, kept: &'k Kept) -> Option<&'k Stacked<ContextSwitch>> {
        kept.switches.get(self.left? as usize)
    }

    /// The switch by which it ran again.
    pub fn switch_in<'k>(&self, kept: &'k Kept) -> Option<&'k Stacked<ContextSwitch>> {
        kept.switches.get(self.came? as usize)
    }

    /// The event that made it ready.
    pub fn readied_by<'k>(&self, kept: &'k Kept) -> Option<&'k Stacked<ReadyThread>> {
        kept.readied.get(self.readied? as usize)
    }
}

/// The states of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTimes {
    /// Its process.
    pub process: ProcessId,
    /// The system's id.
    pub tid: u32,
    /// The thread, where the trace knows it.
    pub thread: Option<ThreadId>,
    /// From when on its states are looked at.
    pub start: Ticks,
    /// Until when.
    pub end: Ticks,
    /// How often it was given a processor.
    pub switches: u64,
    /// Its states, without a gap from `start` to `end`.
    pub spans: Vec<Span>,
}

impl ThreadTimes {
    /// How long it was in a state.
    pub fn ticks(&self, state: State) -> i64 {
        self.spans.iter().filter(|span| span.state == state).map(Span::ticks).sum()
    }

    /// Its waits, in order of time: each from when it blocked to when it ran again.
    pub fn waits(&self) -> impl Iterator<Item = Wait> {
        let blocked = |at: &usize| self.spans.get(*at).is_some_and(|span| span.state == State::Blocked);
        (0..self.spans.len()).filter(blocked).filter_map(|at| self.wait(at))
    }

    /// What of it is between two moments.
    fn between(&self, (from, to): (Ticks, Ticks)) -> ThreadTimes {
        let ran_since = |span: &&Span| span.state == State::Running && span.start > self.start;
        let came = self.spans.iter().filter(ran_since);
        let first = self.switches.saturating_sub(came.clone().count() as u64);
        let inside = came.filter(|span| from <= span.start && span.start < to).count() as u64;
        let clip = |span: &Span| Span { start: span.start.max(from), end: span.end.min(to), ..*span };
        ThreadTimes {
            start: self.start.max(from),
            end: self.end.min(to),
            switches: inside + if from <= self.start { first } else { 0 },
            spans: self.spans.iter().map(clip).filter(|span| span.start < span.end).collect(),
            ..self.clone()
        }
    }

    /// The wait that is blocked in this span.
    fn wait(&self, at: usize) -> Option<Wait> {
        let blocked = *self.spans.get(at)?;
        let next = self.spans.get(at + 1).filter(|next| next.state == State::Ready);
        Some(Wait { blocked, ready: next.copied() })
    }
}

/// A thread blocked, and perhaps was ready for a while before it ran again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The time in which it waited for something.
    pub blocked: Span,
    /// The time in which it waited for a processor then.
    pub ready: Option<Span>,
}

impl Wait {
    /// From when it blocked to when it ran again, or to the end of what is known.
    pub fn ticks(&self) -> i64 {
        self.blocked.ticks() + self.ready_ticks()
    }

    /// How long it was ready.
    pub fn ready_ticks(&self) -> i64 {
        self.ready.map_or(0, |ready| ready.ticks())
    }

    /// When it was over.
    pub fn end(&self) -> Ticks {
        self.ready.map_or(self.blocked.end, |ready| ready.end)
    }
}

/// Who made a thread ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waker {
    /// A thread: an index into [`Waits::threads`].
    Thread(usize),
    /// An interrupt: a device, a timer.
    Interrupt,
    /// A thread that is not known.
    Unknown,
}

/// The states of all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// The time in which context switches were recorded.
    pub window: (Ticks, Ticks),
    /// The recording has events of threads that are made ready.
    pub has_ready_events: bool,
    /// Every thread that was there then, but for the idle ones: in the order of the trace, and then those of which only
    /// switches tell.
    pub threads: Vec<ThreadTimes>,
    /// How often a switch did not fit what came before it on its processor.
    pub contradictions: u64,
    /// The thread of each runner of the trace, as an index into `threads`.
    rows: Vec<Option<u32>>,
    /// Samples count that were taken before this moment: the end of the window belongs to what comes next, if that was cut off.
    before: Ticks,
    /// Who ran on each processor from when on. Nobody but an interrupt makes a thread ready while the idle thread runs.
    processors: Vec<Vec<(Ticks, Waker)>>,
}

impl Waits {
    /// The states of the threads of a trace that keeps context switches; `None` without any.
    pub fn new(trace: &Trace) -> Option<Waits> {
        build::waits(trace)
    }

    /// What of them is between two moments. A thread that was not there then has no span; of a wait that was under way at
    /// one of them, a part is left.
    #[must_use]
    pub fn between(&self, (from, to): (Ticks, Ticks)) -> Waits {
        let before = to.min(self.before);
        let (from, to) = (from.max(self.window.0), to.min(self.window.1));
        let threads = self.threads.iter().map(|thread| thread.between((from, to))).collect();
        Waits { window: (from, to.max(from)), threads, before, ..self.clone() }
    }

    /// Who ran on a processor at a moment, or began to.
    fn running(&self, processor: u16, time: Ticks) -> Option<Waker> {
        let ran = self.processors.get(usize::from(processor))?;
        let place = ran.partition_point(|(since, _)| *since <= time).checked_sub(1)?;
        ran.get(place).map(|(_, who)| *who)
    }

    /// Who made a thread ready. Where the event names nobody, it was whoever ran on its processor.
    pub fn waker(&self, trace: &Trace, ready: &Stacked<ReadyThread>) -> Waker {
        if ready.fact.is_from_interrupt() {
            return Waker::Interrupt;
        }
        match trace.runner(ready.runner).tid {
            0 => Waker::Interrupt,
            NO_ID => self.running(ready.processor, ready.time).unwrap_or(Waker::Unknown),
            _ => self.thread_of(ready.runner).map_or(Waker::Unknown, Waker::Thread),
        }
    }

    /// The thread of a runner: an index into `threads`.
    pub fn thread_of(&self, runner: RunnerId) -> Option<usize> {
        self.rows.get(runner.0 as usize).copied().flatten().map(|row| row as usize)
    }

    /// The sampled CPU time of each thread in the window, in the order of `threads`, in 100 ns: what it did itself, without
    /// interrupts on its back.
    pub fn sampled(&self, trace: &Trace) -> Vec<i64> {
        let mut sampled = vec![0_i64; self.threads.len()];
        let (first, last) = self.window;
        let is_inside = |time: Ticks| (first..=last).contains(&time) && time < self.before;
        let inside = trace.samples.iter().filter(|sample| is_inside(sample.time));
        for sample in inside.filter(|sample| sample.context == Context::Thread) {
            let thread = self.thread_of(sample.runner).and_then(|thread| sampled.get_mut(thread));
            if let Some(time) = thread {
                *time = time.saturating_add(i64::from(sample.weight));
            }
        }
        sampled
    }
}
