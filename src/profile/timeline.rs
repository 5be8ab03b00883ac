//! CPU time over time: how busy the samples of a profile kept the processors, in equal steps of the recording.

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::trace::{ProcessId, Trace};

use super::{Moment, Profile};

/// CPU time over a range of a recording.
///
/// All times are integers in 100 ns; moments count from the recording's first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Where the range begins.
    pub start: i64,
    /// How long it is; at least 1.
    pub length: i64,
    /// How long a bin is. The last one may reach beyond the range.
    pub bin: i64,
    /// All processes together.
    pub all: Load,
    /// Those with samples, the most CPU time first. One whose id was used again by the same program is one.
    pub processes: Vec<(ProcessId, Load)>,
}

/// CPU time over the range of a [`Timeline`]. A sample counts where it was taken, with all the time that it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many samples.
    pub samples: u64,
    /// All of it.
    pub total: i64,
    /// That of each bin.
    pub bins: Vec<i64>,
    /// From when to when most of it was used: all but the first and the last hundredth. `None` without any.
    pub most: Option<(i64, i64)>,
}

/// A sample, as a timeline sees it.
#[derive(Clone, Copy, Debug)]
struct Dot {
    time: i64,
    value: i64,
    samples: u64,
    /// Which load it adds to.
    row: usize,
}

impl Timeline {
    /// Counts the samples of `profile` over the time in which processors were sampled, or between two moments of it; in at
    /// most so many bins. A recording may begin long before the first
    /// sample, and end long after the last.
    ///
    /// A bin is a round number, and so wide that ten samples fit in it: fewer show nothing but chance.
    ///
    /// `left_out` are the places of samples that do not count, in ascending order
    /// ([`Arranged::left_out`](super::Arranged::left_out)).
    pub fn new(
        profile: &Profile,
        left_out: &[u32],
        (from, to): (Option<Moment>, Option<Moment>),
        most_bins: usize,
    ) -> Timeline {
        let clock = profile.trace.clock;
        let since = |time| clock.filetime(time).saturating_sub(clock.base_utc);
        // What stands alike in the tree is one here.
        let mut alike: FxHashMap<(u32, &str), usize> = FxHashMap::default();
        let mut ids: Vec<ProcessId> = Vec::new();
        let mut row = |process: ProcessId| {
            let add = || {
                ids.push(process);
                ids.len() - 1
            };
            match profile.trace.process(process) {
                Some(known) => *alike.entry((known.pid, known.label())).or_insert_with(add),
                None => *alike.entry((u32::MAX, "")).or_insert_with(add),
            }
        };
        let rows: Vec<usize> = profile.trace.runners.iter().map(|runner| row(runner.process)).collect();
        let counts = |(number, _): &(u32, _)| left_out.binary_search(number).is_err();
        let dots = (0..).zip(&profile.samples).filter(counts).map(|(_, sample)| Dot {
            time: since(sample.time),
            value: sample.value,
            samples: sample.count(),
            row: rows.get(sample.runner.0 as usize).copied().unwrap_or(usize::MAX),
        });
        Timeline::count(dots, &ids, range(&profile.trace, (from, to)), most_bins)
    }

    fn count(
        dots: impl Iterator<Item = Dot> + Clone,
        ids: &[ProcessId],
        range: std::ops::Range<i64>,
        most_bins: usize,
    ) -> Timeline {
        let mut all = Load::default();
        let mut loads = vec![Load::default(); ids.len()];
        for dot in dots.clone() {
            for load in [Some(&mut all), loads.get_mut(dot.row)].into_iter().flatten() {
                load.samples += dot.samples;
                load.total = load.total.saturating_add(dot.value);
            }
        }
        let length = range.end.saturating_sub(range.start).max(1);
        let bins = i64::try_from(most_bins).unwrap_or(i64::MAX).max(1);
        let mean = all.total / i64::try_from(all.samples).unwrap_or(i64::MAX).max(1);
        let bin = round_up(ceil_div(length, bins).max(mean.saturating_mul(10)));
        let count = usize::try_from(ceil_div(length, bin)).unwrap_or(most_bins).clamp(1, most_bins.max(1));
        for load in loads.iter_mut().chain([&mut all]) {
            load.bins = vec![0; count];
        }
        let mut sums = vec![0; ids.len()];
        let mut sum = 0;
        for dot in dots {
            let index = dot.time.saturating_sub(range.start) / bin;
            let index = usize::try_from(index).unwrap_or(0).min(count - 1);
            all.add(index, dot, &mut sum);
            if let Some((load, sum)) = loads.get_mut(dot.row).zip(sums.get_mut(dot.row)) {
                load.add(index, dot, sum);
            }
        }
        let mut processes: Vec<(ProcessId, Load)> =
            ids.iter().copied().zip(loads).filter(|(_, load)| load.samples > 0).collect();
        processes.sort_by_key(|(id, load)| (std::cmp::Reverse((load.total, load.samples)), *id));
        Timeline { start: range.start, length, bin, all, processes }
    }

    /// How many processors were busy on average over the range.
    pub fn average(&self, load: &Load) -> f64 {
        load.total as f64 / self.length as f64
    }

    /// How many processors were busy on average over the busiest bin.
    pub fn peak(&self, load: &Load) -> f64 {
        load.bins.iter().copied().max().unwrap_or(0) as f64 / self.bin as f64
    }
}

impl Load {
    /// Adds a sample to a bin; `sum` is what came before it.
    fn add(&mut self, bin: usize, dot: Dot, sum: &mut i64) {
        if let Some(bin) = self.bins.get_mut(bin) {
            *bin = bin.saturating_add(dot.value);
        }
        let hundredth = self.total / 100;
        let before = *sum;
        *sum = sum.saturating_add(dot.value);
        if dot.value <= 0 {
            return;
        }
        match &mut self.most {
            None if *sum > hundredth => self.most = Some((dot.time, dot.time)),
            Some((_, end)) if before < self.total - hundredth => *end = dot.time,
            _ => {}
        }
    }
}

impl std::ops::AddAssign<&Load> for Load {
    /// Adds the load of others over the same range. From when to when most of the sum was used cannot be known from it:
    /// the earliest and the latest of both stand for it.
    fn add_assign(&mut self, more: &Load) {
        self.samples += more.samples;
        self.total = self.total.saturating_add(more.total);
        self.bins.resize(self.bins.len().max(more.bins.len()), 0);
        for (bin, more) in self.bins.iter_mut().zip(&more.bins) {
            *bin = bin.saturating_add(*more);
        }
        self.most = match (self.most, more.most) {
            (Some((from, to)), Some((also_from, also_to))) => Some((from.min(also_from), to.max(also_to))),
            (one, other) => one.or(other),
        };
    }
}

impl Profile {
    /// How long processors were sampled, or how much of that is between two moments, in seconds.
    pub fn seconds(&self, moments: (Option<Moment>, Option<Moment>)) -> f64 {
        let range = range(&self.trace, moments);
        (range.end - range.start) as f64 / 1e7
    }
}

/// The time in which processors were sampled, or what of it is between two moments, in 100 ns since the first record.
fn range(trace: &Trace, (from, to): (Option<Moment>, Option<Moment>)) -> std::ops::Range<i64> {
    let since = |time| trace.clock.filetime(time).saturating_sub(trace.clock.base_utc);
    let at = |moment: Moment| since(moment.at(trace));
    let (first, last) = sampled(trace).map_or((0, 0), |(first, last)| (since(first), since(last)));
    let start = from.map_or(first, |from| at(from).clamp(first, last));
    let end = to.map_or(last, |to| at(to).clamp(start, last));
    start..end
}

/// The times of the first and the last sample of a recording, idle ones too.
fn sampled(trace: &Trace) -> Option<(Ticks, Ticks)> {
    match (trace.sampled(), trace.idle.span) {
        (Some((from, to)), Some((idle_from, idle_to))) => Some((from.min(idle_from), to.max(idle_to))),
        (one, other) => one.or(other),
    }
}

fn ceil_div(of: i64, by: i64) -> i64 {
    of / by + i64::from(of % by > 0)
}

/// The next greater round number: two digits that people count in, and zeros.
pub fn round_up(least: i64) -> i64 {
    const ROUND: [i64; 10] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80];
    let mut unit: i64 = 1;
    loop {
        let round = ROUND.iter().filter_map(|round| unit.checked_mul(*round));
        match (round.clone().find(|round| *round >= least), unit.checked_mul(10)) {
            (Some(round), _) => return round,
            (None, Some(next)) => unit = next,
            (None, None) => return least,
        }
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
