//! The samples of a page: of each thread, how much ends where and when.
//!
//! Time is cut into equal cells, and samples of one cell, thread and part of the tree are one *record*. A cell is so short
//! that a record is mostly one sample; only where there are millions of them are cells as wide as what a screen shows.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::profile::{Arranged, Entry, Profile, Sample, Timeline};
use crate::report::label::Labels;
use crate::report::spelling::Spelling;
use crate::trace::ProcessId;

use super::column::Column;
use super::tree::Tree;

/// Samples up to which cells are as short as can be.
const MANY: usize = 2_000_000;
/// Cells of a recording with no more samples, at most.
const FINE: i64 = 1 << 16;
/// Cells of a recording with more samples, at most.
const COARSE: i64 = 1 << 12;

/// The samples.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The names of the processes, the most CPU time first.
    pub(super) processes: Vec<String>,
    /// Their threads, in the order of the processes, the most CPU time first.
    pub(super) threads: Vec<Thread>,
    /// The process and the system's id of each thread. Processes that read alike are the first of them.
    pub(super) ids: Vec<(ProcessId, u32)>,
    /// When the first cell begins, in 100 ns since the recording's first record.
    pub(super) start: i64,
    /// How long the range of all cells is, in 100 ns.
    pub(super) length: i64,
    /// How long a cell is, in 100 ns. The last one may reach beyond the range.
    pub(super) cell: i64,
    /// What every sample stands for, if all stand for the same.
    pub(super) each: Option<i64>,
}

/// The samples of one thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// An index into [`Threads::processes`].
    pub(super) process: usize,
    pub(super) name: String,
    /// How many records there are.
    pub(super) records: usize,
    /// For each record, how many cells behind that of the record before it its cell is.
    pub(super) cell: Column,
    /// For each record, how far from the part of the record before it its part is; may be negative.
    pub(super) part: Column,
    /// For each record, how many samples it is.
    pub(super) samples: Column,
    /// For each record what they stand for; empty where all samples stand for the same. May be negative.
    pub(super) value: Column,
    total: i64,
    /// The cell of the last record that was written, and its part.
    last: (u32, u32),
    /// The cell that is being filled, and the parts and values of its samples, and how many they are.
    open: (u32, Vec<(u32, i64, u64)>),
}

impl Threads {
    pub(super) fn new(
        profile: &Profile,
        arranged: &Arranged,
        labels: &Spelling<'_>,
        timeline: &Timeline,
        tree: &Tree<'_>,
    ) -> Threads {
        let samples = || {
            let sample = |place: u32| profile.samples.get(place as usize);
            arranged.ends.iter().filter_map(move |end| Some((sample(end.sample)?, end.node)))
        };
        let first = samples().next().map(|(sample, _)| sample.value / i64::from(sample.count).max(1));
        let each = first
            .filter(|first| samples().all(|(sample, _)| sample.value == first * i64::from(sample.count)));
        let most = if arranged.ends.len() > MANY { COARSE } else { FINE };
        let cell = round_up(timeline.length / most + 1);
        let mut all =
            Threads { start: timeline.start, length: timeline.length, cell, each, ..Threads::default() };
        let mut places = Places::new(profile);
        for (sample, node) in samples() {
            let place = places.of(sample);
            if place == all.threads.len() {
                all.threads.push(Thread::default());
            }
            let cell = all.cell_of(profile, sample);
            if let Some(thread) = all.threads.get_mut(place) {
                thread.add(cell, (tree.part(node), sample.value, sample.count()), each.is_none());
            }
        }
        all.close(&places.who, labels);
        all
    }

    /// How many cells there are.
    pub(super) fn cells(&self) -> i64 {
        (self.length.saturating_add(self.cell - 1) / self.cell).max(1)
    }

    fn cell_of(&self, profile: &Profile, sample: &Sample) -> u32 {
        let clock = profile.trace.clock;
        let since = clock.filetime(sample.time).saturating_sub(clock.base_utc).saturating_sub(self.start);
        // Never more than `FINE`.
        (since / self.cell).clamp(0, self.cells() - 1) as u32
    }

    /// Writes the last cells, and sorts: `who` says what each thread is.
    fn close(&mut self, who: &[(ProcessId, u32)], labels: &Spelling<'_>) {
        let mut totals: FxHashMap<ProcessId, i64> = FxHashMap::default();
        let mut threads: Vec<(ProcessId, u32, Thread)> = Vec::new();
        for ((process, tid), mut thread) in who.iter().zip(std::mem::take(&mut self.threads)) {
            thread.flush(self.each.is_none());
            *totals.entry(*process).or_default() += thread.total;
            threads.push((*process, *tid, thread));
        }
        threads.sort_by_key(|(process, tid, thread)| {
            (Reverse(totals.get(process).copied()), *process, Reverse(thread.total), *tid)
        });
        let mut last = None;
        for (process, tid, thread) in threads {
            if last != Some(process) {
                self.processes.push(labels.label(Entry::Process(process)).text.into_owned());
                last = Some(process);
            }
            let name = labels.label(Entry::Thread(process, tid)).text.into_owned();
            self.threads.push(Thread { process: self.processes.len() - 1, name, ..thread });
            self.ids.push((process, tid));
        }
    }
}

impl Thread {
    /// Adds a sample, which is never earlier than the one before it.
    fn add(&mut self, cell: u32, sample: (u32, i64, u64), with_value: bool) {
        if cell != self.open.0 {
            self.flush(with_value);
            self.open.0 = cell;
        }
        self.open.1.push(sample);
        self.total = self.total.saturating_add(sample.1);
    }

    /// Writes the open cell.
    fn flush(&mut self, with_value: bool) {
        let (cell, mut samples) = std::mem::take(&mut self.open);
        samples.sort_unstable();
        for alike in samples.chunk_by(|(one, ..), (other, ..)| one == other) {
            let part = alike.first().map_or(0, |(part, ..)| *part);
            self.cell.push(cell.saturating_sub(self.last.0).into());
            self.part.push_signed(i64::from(part) - i64::from(self.last.1));
            self.samples.push(alike.iter().map(|(.., samples)| samples).sum());
            if with_value {
                self.value.push_signed(alike.iter().map(|(_, value, _)| *value).fold(0, i64::saturating_add));
            }
            self.last = (cell, part);
            self.records += 1;
        }
        // Its memory is used again.
        samples.clear();
        self.open = (cell, samples);
    }
}

/// The threads of samples, numbered as they come. Processes that read alike are one.
struct Places<'p> {
    profile: &'p Profile,
    processes: FxHashMap<(u32, &'p str), ProcessId>,
    numbers: FxHashMap<(ProcessId, u32), usize>,
    /// What each number stands for.
    who: Vec<(ProcessId, u32)>,
}

impl<'p> Places<'p> {
    fn new(profile: &'p Profile) -> Places<'p> {
        let (processes, numbers) = (FxHashMap::default(), FxHashMap::default());
        Places { profile, processes, numbers, who: Vec::new() }
    }

    fn of(&mut self, sample: &Sample) -> usize {
        let runner = self.profile.runner(sample);
        let process = match self.profile.trace.process(runner.process) {
            Some(known) => *self.processes.entry((known.pid, known.label())).or_insert(runner.process),
            None => runner.process,
        };
        let key = (process, runner.tid);
        *self.numbers.entry(key).or_insert_with(|| {
            self.who.push(key);
            self.who.len() - 1
        })
    }
}

/// The next number of 1, 2 or 5 and zeros.
fn round_up(least: i64) -> i64 {
    let mut unit: i64 = 1;
    loop {
        if let Some(round) = [1, 2, 5].iter().filter_map(|by| unit.checked_mul(*by)).find(|by| *by >= least) {
            return round;
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return least,
        }
    }
}
