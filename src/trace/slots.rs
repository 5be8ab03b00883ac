//! What threads and runtimes did in equal steps of time.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::clock::Ticks;

use super::processes::{ProcessId, ThreadId};
use super::sample::Runner;
use super::waits::{State, Waits};
use super::{Spans, Trace};

/// What is counted, in the order of the rows of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// CPU time by samples: each counts where it was taken, with all the time that it stands for.
    Cpu,
    /// Time on a processor by context switches.
    Running,
    /// Time in which a thread could run and had no processor.
    Ready,
    /// Time in which a thread waited for something.
    Blocked,
    /// Time in which the threads of a runtime stood still for a garbage collection.
    Gc,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotOwner {
    /// The process.
    pub process: ProcessId,
    /// The system's id of a thread, and the thread where the trace knows it; `None` for the whole process.
    pub thread: Option<(u32, Option<ThreadId>)>,
}

/// A kind of time of one thread or process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRow {
    /// Whose it is.
    pub owner: SlotOwner,
    /// What it is.
    pub kind: SlotKind,
    /// How much of it is in each slot, in ns.
    pub values: Vec<i64>,
}

/// Times by slot. All times are in ns since the first record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slots {
    /// Where the first slot begins.
    pub start: i64,
    /// Where the range ends: in the last slot.
    pub end: i64,
    /// How long a slot is; at least 1.
    pub slot: i64,
    /// Those that are not empty: the owner with the most CPU time first, and of each its kinds in their order. What is
    /// known of a process only stands before its busiest thread.
    pub rows: Vec<SlotRow>,
}

/// Whose times are counted. What a list does not reach is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotChoice<'a> {
    /// The runners of the trace.
    pub runners: &'a [bool],
    /// The threads of the waits.
    pub threads: &'a [bool],
    /// The processes of the trace.
    pub processes: &'a [bool],
    /// Threads are rows of their own.
    pub by_thread: bool,
    /// Samples count that were taken before this moment; `None` for all, up to the end of the range.
    pub before: Option<Ticks>,
}

impl Slots {
    /// How many numbers all rows may have.
    const MOST: usize = 1 << 24;

    /// The times between two moments in slots of so many ns. `None` if that were too many slots for what there is.
    pub fn new(
        trace: &Trace,
        waits: Option<&Waits>,
        (from, to): (Ticks, Ticks),
        slot: i64,
        chosen: SlotChoice<'_>,
    ) -> Option<Slots> {
        let (start, end) = (trace.clock.nanoseconds(from), trace.clock.nanoseconds(to));
        let mut table = Table::new(start, end, slot)?;
        let owner =
            |process, tid, thread| SlotOwner { process, thread: chosen.by_thread.then_some((tid, thread)) };
        for sample in &trace.samples {
            let index = sample.runner.0 as usize;
            let within = from <= sample.time && sample.time <= to;
            let within = within && chosen.before.is_none_or(|before| sample.time < before);
            if !within || !keeps(chosen.runners, index) {
                continue;
            }
            let Runner { process, tid, thread } = trace.runner(sample.runner);
            let value = i64::from(sample.weight).saturating_mul(100);
            let row = table.row(owner(process, tid, thread), SlotKind::Cpu)?;
            table.add(row, trace.clock.nanoseconds(sample.time), value);
        }
        for (index, thread) in waits.iter().flat_map(|waits| waits.threads.iter().enumerate()) {
            if !keeps(chosen.threads, index) {
                continue;
            }
            for span in &thread.spans {
                let kind = match span.state {
                    State::Running => SlotKind::Running,
                    State::Ready => SlotKind::Ready,
                    State::Blocked => SlotKind::Blocked,
                    State::Unknown => continue,
                };
                let within = (trace.clock.nanoseconds(span.start), trace.clock.nanoseconds(span.end));
                if within.0 < end && within.1 > start {
                    let row = table.row(owner(thread.process, thread.tid, thread.thread), kind)?;
                    table.spread(row, within);
                }
            }
        }
        for (process, pauses) in trace.managed.gc_pauses() {
            if keeps(chosen.processes, process.0 as usize) {
                let of_process = SlotOwner { process, thread: None };
                for (from, to) in pauses.iter() {
                    let within = (trace.clock.nanoseconds(from), trace.clock.nanoseconds(to));
                    if within.0 < end && within.1 > start {
                        let row = table.row(of_process, SlotKind::Gc)?;
                        table.spread(row, within);
                    }
                }
            }
        }
        Some(Slots { start, end, slot: table.slot, rows: table.sorted() })
    }

    /// The time that rows can be counted in: that of samples, of context switches, and of pauses. `None` where there are
    /// none of them.
    pub fn range(trace: &Trace, waits: Option<&Waits>) -> Option<(Ticks, Ticks)> {
        let pauses = trace.managed.gc_pauses();
        let pauses = pauses.values().filter_map(Spans::range);
        let all = trace.sampled().into_iter().chain(trace.idle.span).chain(waits.map(|waits| waits.window));
        all.chain(pauses).reduce(|(from, to), (also_from, also_to)| (from.min(also_from), to.max(also_to)))
    }

    /// How many slots there are.
    pub fn count(&self) -> usize {
        slots(self.start, self.end, self.slot).unwrap_or(0)
    }
}

/// How much of some times lies in each of so many equal parts of a range, in the unit of all of them.
pub fn spread(
    times: impl IntoIterator<Item = (i64, i64)>,
    (start, end): (i64, i64),
    parts: usize,
) -> Vec<i64> {
    let slot = end.saturating_sub(start).max(1) / parts.max(1) as i64 + 1;
    let mut values = vec![0; parts];
    for time in times {
        spread_one(&mut values, (start, end), slot, time);
    }
    values
}

/// Adds a time to the slots that it lies in, as far as it lies in the range.
fn spread_one(values: &mut [i64], (start, end): (i64, i64), slot: i64, (from, to): (i64, i64)) {
    let (mut at, to) = (from.max(start), to.min(end));
    while at < to {
        let index = (at - start) / slot;
        let next = (index + 1).saturating_mul(slot).saturating_add(start).min(to);
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(values.len().saturating_sub(1));
        if let Some(sum) = values.get_mut(index) {
            *sum = sum.saturating_add(next - at);
        }
        at = next;
    }
}

fn keeps(chosen: &[bool], index: usize) -> bool {
    chosen.get(index).is_none_or(|kept| *kept)
}

fn slots(start: i64, end: i64, slot: i64) -> Option<usize> {
    let length = end.saturating_sub(start).max(1);
    usize::try_from(length / slot + i64::from(length % slot > 0)).ok()
}

/// The rows while they are counted.
struct Table {
    start: i64,
    end: i64,
    slot: i64,
    count: usize,
    rows: Vec<SlotRow>,
    index: FxHashMap<(SlotOwner, SlotKind), usize>,
}

impl Table {
    fn new(start: i64, end: i64, slot: i64) -> Option<Table> {
        let slot = slot.max(1);
        let count = slots(start, end, slot).filter(|count| *count <= Slots::MOST)?;
        Some(Table { start, end, slot, count, rows: Vec::new(), index: FxHashMap::default() })
    }

    /// The row of `owner`; `None` if there is no room for one more.
    fn row(&mut self, owner: SlotOwner, kind: SlotKind) -> Option<usize> {
        if let Some(row) = self.index.get(&(owner, kind)) {
            return Some(*row);
        }
        if (self.rows.len() + 1).saturating_mul(self.count) > Slots::MOST {
            return None;
        }
        self.rows.push(SlotRow { owner, kind, values: vec![0; self.count] });
        self.index.insert((owner, kind), self.rows.len() - 1);
        Some(self.rows.len() - 1)
    }

    /// Adds to the slot of a moment.
    fn add(&mut self, row: usize, time: i64, value: i64) {
        let slot = usize::try_from(time.saturating_sub(self.start) / self.slot).unwrap_or(0);
        let slot = slot.min(self.count.saturating_sub(1));
        if let Some(sum) = self.rows.get_mut(row).and_then(|row| row.values.get_mut(slot)) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds a time to the slots that it lies in, as far as it lies in the range.
    fn spread(&mut self, row: usize, time: (i64, i64)) {
        if let Some(row) = self.rows.get_mut(row) {
            spread_one(&mut row.values, (self.start, self.end), self.slot, time);
        }
    }

    fn sorted(self) -> Vec<SlotRow> {
        let mut busy: FxHashMap<SlotOwner, (i64, i64)> = FxHashMap::default();
        let mut busiest: FxHashMap<ProcessId, i64> = FxHashMap::default();
        for row in &self.rows {
            let sum: i64 = row.values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
            let (cpu, rest) = busy.entry(row.owner).or_default();
            match row.kind {
                // Of both the greater: a recording may have one only.
                SlotKind::Cpu | SlotKind::Running | SlotKind::Gc => *cpu = sum.max(*cpu),
                SlotKind::Ready | SlotKind::Blocked => *rest = rest.saturating_add(sum),
            }
            let most = busiest.entry(row.owner.process).or_default();
            *most = (*most).max(*cpu);
        }
        // What is said of a process stands above its busiest thread.
        for (owner, (cpu, rest)) in &mut busy {
            if owner.thread.is_none() {
                (*cpu, *rest) = (busiest.get(&owner.process).copied().unwrap_or(*cpu), i64::MAX);
            }
        }
        let mut rows = self.rows;
        rows.retain(|row| row.values.iter().any(|value| *value != 0));
        rows.sort_by_key(|row| {
            let (cpu, rest) = busy.get(&row.owner).copied().unwrap_or_default();
            (Reverse(cpu), Reverse(rest), row.owner, row.kind)
        });
        rows
    }
}
