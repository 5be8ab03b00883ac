//! What is measured of a recording, and the samples of it: CPU samples, or the times in which threads waited.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Ticks;
use crate::events::kernel::InterruptKind;
use crate::trace::waits::{self, Span, State, Waits};
use crate::trace::{
    ChosenEvent, Context, InterruptSpan, Keep, ProcessId, RunnerId, Sample, StackId, Stacked, Trace,
};

use super::filter::{Balance, Filter};
use super::frame::Remark;
use super::metric::Metric;

/// What is measured of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// What the samples of the profile are.
    pub what: Measured,
    /// Blocked time stands below why the threads blocked.
    pub by_reason: bool,
    /// What was allocated stands below its type.
    pub by_type: bool,
    /// The stack of whoever made a thread ready stands below that of its wait.
    pub wakers: bool,
}

/// What the samples of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Measured {
    /// CPU samples.
    #[default]
    Cpu,
    /// Times in which a thread waited for something, with the stack with which it went to sleep.
    Blocked,
    /// Times in which a thread could run and had no processor, with the same stack.
    Ready,
    /// Times in which DPCs and interrupts ran, each with its routine alone.
    Interrupts,
    /// CPU, blocked and ready time. What is no CPU time stands below a remark.
    Wall,
    /// The chosen events, with the stacks with which they were written ([`Kept::events`](crate::trace::Kept::events)).
    Events,
    /// The bytes that chosen events say were allocated.
    Allocated,
}

impl Measured {
    /// What values of the samples are.
    pub fn metric(self) -> Metric {
        match self {
            Measured::Cpu => Metric::CPU,
            Measured::Blocked => Metric::BLOCKED,
            Measured::Ready => Metric::READY,
            Measured::Wall => Metric::WALL,
            Measured::Interrupts => Metric::INTERRUPTS,
            Measured::Events => Metric::EVENTS,
            Measured::Allocated => Metric::ALLOCATED,
        }
    }

    fn has(self, state: State) -> bool {
        match state {
            State::Blocked => matches!(self, Measured::Blocked | Measured::Wall),
            State::Ready => matches!(self, Measured::Ready | Measured::Wall),
            State::Running | State::Unknown => false,
        }
    }
}

impl Measure {
    /// The events that must be kept for it.
    pub fn keep(&self) -> Keep {
        let interrupts = self.what == Measured::Interrupts;
        let waits = matches!(self.what, Measured::Blocked | Measured::Ready | Measured::Wall);
        Keep { switches: waits, readied: waits, interrupts, ..Keep::default() }
    }
}

/// A sample of a metric, before its stack is located.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    pub(super) time: Ticks,
    pub(super) value: i64,
    pub(super) runner: RunnerId,
    pub(super) stack: StackId,
    /// The instruction, where the stack may be missing.
    pub(super) address: Option<u64>,
    pub(super) processor: u16,
    pub(super) context: Context,
    pub(super) count: u8,
    /// What has to be said of it before all else.
    pub(super) mark: Option<Remark>,
    /// What made it go on.
    pub(super) waker: Option<Waker>,
}

impl Dot {
    /// A CPU sample.
    #[inline]
    fn of(sample: &Sample) -> Dot {
        Dot {
            time: sample.time,
            value: i64::from(sample.weight),
            runner: sample.runner,
            stack: sample.stack,
            address: Some(sample.address),
            processor: sample.processor,
            context: sample.context,
            count: sample.count,
            mark: None,
            waker: None,
        }
    }
}

/// What made a thread ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waker {
    /// The thread, known or not; `None` for an interrupt.
    pub(super) runner: Option<RunnerId>,
    pub(super) stack: StackId,
}

/// The samples of `measure` that `filter` keeps go to `keep`, in order of time. Returns the account of all.
pub(super) fn samples(
    trace: &Trace,
    measure: &Measure,
    filter: &Filter,
    mut keep: impl FnMut(Dot),
) -> Balance {
    if measure.what == Measured::Cpu {
        return filter.apply(trace, |sample| keep(Dot::of(sample)));
    }
    if measure.what == Measured::Interrupts {
        let dots = of_interrupts(trace, filter);
        let total = dots.len() as u64;
        dots.into_iter().for_each(keep);
        return Balance { total, kept: total, ..Balance::default() };
    }
    if let Measured::Events | Measured::Allocated = measure.what {
        return filter.sift(trace, measure.what.metric(), of_events(trace, measure), keep);
    }
    let mut dots = Vec::new();
    let mut balance = Balance::default();
    if measure.what == Measured::Wall {
        balance = filter.apply(trace, |sample| dots.push(Dot::of(sample)));
    }
    let waits = Waits::new(trace).map(|waits| of_waits(trace, &waits, measure, filter)).unwrap_or_default();
    balance = balance + filter.sift(trace, measure.what.metric(), waits, |dot| dots.push(dot));
    dots.sort_by_key(|dot| dot.time);
    dots.into_iter().for_each(keep);
    balance
}

/// The chosen events, each for one or for its bytes. Of allocations those that say how much, and of a process with objects
/// that were chosen by chance only these.
fn of_events(trace: &Trace, measure: &Measure) -> Vec<Dot> {
    let process = |event: &Stacked<ChosenEvent>| trace.runner(event.runner).process;
    let is_sampled = |event: &Stacked<ChosenEvent>| event.fact.of.is_some_and(|of| of.is_sampled);
    let events = &trace.kept.events;
    let sampled: FxHashSet<ProcessId> =
        events.iter().filter(|event| is_sampled(event)).map(process).collect();
    let dot = |event: &Stacked<ChosenEvent>| {
        let value = match measure.what {
            Measured::Allocated if sampled.contains(&process(event)) != is_sampled(event) => 0,
            Measured::Allocated => i64::try_from(event.fact.bytes).unwrap_or(i64::MAX),
            _ => 1,
        };
        let mark = event.fact.of.filter(|_| measure.by_type).map(|of| Remark::Allocated(of.name));
        (value > 0).then_some(Dot {
            time: event.time,
            value,
            runner: event.runner,
            stack: event.stack,
            address: None,
            processor: event.processor,
            context: Context::Thread,
            count: 1,
            mark,
            waker: None,
        })
    };
    events.iter().filter_map(dot).collect()
}

/// DPCs and interrupts, by when they ended. Whose threads they interrupted does not matter.
fn of_interrupts(trace: &Trace, filter: &Filter) -> Vec<Dot> {
    let dot = |span: &InterruptSpan| Dot {
        time: span.end,
        // Even the shortest took some time.
        value: (trace.clock.nanoseconds_in(span.own_ticks()) / 100).max(1),
        runner: RunnerId(u32::MAX),
        stack: StackId(u32::MAX),
        address: Some(span.routine),
        processor: span.processor,
        context: match span.kind {
            InterruptKind::Isr { .. } | InterruptKind::MessageIsr { .. } => Context::Isr,
            _ => Context::Dpc,
        },
        count: 1,
        mark: None,
        waker: None,
    };
    filter.interrupts(trace).map(dot).collect()
}

/// The times in which threads waited, as far as they are between the moments of the filter.
fn of_waits(trace: &Trace, waits: &Waits, measure: &Measure, filter: &Filter) -> Vec<Dot> {
    let Range { start: from, end: to } = filter.period(trace);
    let all = waits.threads.iter().flat_map(|thread| &thread.spans);
    let runners = if measure.wakers { runners(trace, waits) } else { FxHashMap::default() };
    let dot = |span: &Span| {
        let (start, end) = (span.start.max(from), span.end.min(to));
        // A thread that never ran has no switch, and so neither a runner nor a stack: it is left out.
        let switch = span.switch_in(&trace.kept);
        let out = span.switch_out(&trace.kept);
        let runner = switch.map(|switch| switch.runner).or(out.and_then(|out| out.other))?;
        let value = trace.clock.filetime(end).saturating_sub(trace.clock.filetime(start)).max(0);
        let ready = span.readied_by(&trace.kept).filter(|_| measure.wakers);
        let waker = ready.map(|ready| {
            let runner = match waits.waker(trace, ready) {
                // The event itself may name nobody.
                waits::Waker::Thread(thread) => Some(runners.get(&thread).copied().unwrap_or(ready.runner)),
                waits::Waker::Unknown => Some(ready.runner),
                waits::Waker::Interrupt => None,
            };
            Waker { runner, stack: ready.stack }
        });
        let mark = match (span.state, measure) {
            (State::Ready, Measure { what: Measured::Wall, .. }) => Some(Remark::Ready),
            (State::Blocked, Measure { by_reason: true, .. }) => {
                Some(Remark::Blocked(span.reason(&trace.kept)))
            }
            (State::Blocked, Measure { what: Measured::Wall, .. }) => Some(Remark::Blocked(None)),
            _ => None,
        };
        Some(Dot {
            time: if start < end { start } else { span.start },
            value,
            runner,
            stack: switch.map_or(StackId(u32::MAX), |switch| switch.stack),
            address: None,
            processor: switch.or(out).map_or(0, |switch| switch.processor),
            context: Context::Thread,
            count: 1,
            mark,
            waker,
        })
    };
    all.filter(|span| measure.what.has(span.state)).filter_map(dot).collect()
}

/// A runner of each thread, by its index in [`Waits::threads`]: in its own process, where there is such a one.
fn runners(trace: &Trace, waits: &Waits) -> FxHashMap<usize, RunnerId> {
    let mut runners = FxHashMap::default();
    for id in (0..).map(RunnerId).take(trace.runners.len()) {
        let Some(thread) = waits.thread_of(id) else { continue };
        let own = waits.threads.get(thread).map(|times| times.process);
        if own == Some(trace.runner(id).process) || !runners.contains_key(&thread) {
            runners.insert(thread, id);
        }
    }
    runners
}
