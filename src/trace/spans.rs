//! Times that belong together, whatever overlaps.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::clock::Ticks;

use super::gc::{Managed, Pause};
use super::jit::Compilation;
use super::processes::ProcessId;

/// Times in order, none of which meets another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<(Ticks, Ticks)>);

impl Spans {
    /// Those between these beginnings and ends, in any order; what overlaps becomes one.
    pub fn new(all: impl IntoIterator<Item = (Ticks, Ticks)>) -> Spans {
        let mut all: Vec<(Ticks, Ticks)> = all.into_iter().filter(|(from, to)| from < to).collect();
        all.sort_unstable();
        let mut spans: Vec<(Ticks, Ticks)> = Vec::with_capacity(all.len());
        for (from, to) in all {
            match spans.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => spans.push((from, to)),
            }
        }
        Spans(spans)
    }

    /// True for a moment in one of them: its end is outside.
    pub fn contains(&self, time: Ticks) -> bool {
        let behind = self.0.partition_point(|(from, _)| *from <= time);
        let last = behind.checked_sub(1).and_then(|place| self.0.get(place));
        last.is_some_and(|(_, to)| time < *to)
    }

    /// They, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ticks, Ticks)> {
        self.0.iter().copied()
    }

    /// From the begin of the first to the end of the last.
    pub fn range(&self) -> Option<(Ticks, Ticks)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    /// How long they are together, in units of the clock.
    pub fn ticks(&self) -> i64 {
        self.0.iter().fold(0, |sum: i64, (from, to)| sum.saturating_add(to.0.saturating_sub(from.0)))
    }
}

impl Managed {
    /// When runtimes stood still for collections, by process. What has no end in the recording is in none.
    pub fn gc_pauses(&self) -> FxHashMap<ProcessId, Spans> {
        self.gc_pauses_by(|pause| pause.process)
    }

    /// When runtimes stood still for collections, by whatever `key` says of a pause.
    pub fn gc_pauses_by<K: Hash + Eq>(&self, key: impl Fn(&Pause) -> K) -> FxHashMap<K, Spans> {
        let pauses = self.pauses.iter().filter(|pause| pause.is_for_gc);
        grouped(pauses.filter_map(|pause| Some((key(pause), (pause.start, pause.end?)))))
    }

    /// When threads compiled methods, by process and id of the thread. What has no begin or no end in the recording is in
    /// none.
    pub fn jit_times(&self) -> FxHashMap<(ProcessId, u32), Spans> {
        self.jit_times_by(|one| (one.process, one.tid))
    }

    /// When threads compiled methods, by whatever `key` says of a compilation.
    pub fn jit_times_by<K: Hash + Eq>(&self, key: impl Fn(&Compilation) -> K) -> FxHashMap<K, Spans> {
        let all = self.compilations.iter();
        grouped(all.filter_map(|one| Some((key(one), (one.start?, one.end?)))))
    }
}

fn grouped<K: Hash + Eq>(all: impl Iterator<Item = (K, (Ticks, Ticks))>) -> FxHashMap<K, Spans> {
    let mut groups: FxHashMap<K, Vec<(Ticks, Ticks)>> = FxHashMap::default();
    for (key, span) in all {
        groups.entry(key).or_default().push(span);
    }
    groups.into_iter().map(|(key, spans)| (key, Spans::new(spans))).collect()
}

#[cfg(test)]
mod tests {
    use super::Spans;
    use crate::clock::Ticks;

    #[test]
    fn what_overlaps_counts_once() {
        let spans =
            Spans::new([(5, 7), (1, 3), (2, 4), (4, 5), (9, 9), (8, 6)].map(|(a, b)| (Ticks(a), Ticks(b))));
        assert_eq!(spans.ticks(), 6);
        let inside: Vec<i64> = (0..10).filter(|time| spans.contains(Ticks(*time))).collect();
        assert_eq!(inside, [1, 2, 3, 4, 5, 6]);
    }
}
