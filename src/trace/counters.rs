//! The values of counters over time, where they were recorded.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::events::counter::CounterValue;

use super::processes::{ProcessId, Processes};
use super::texts::{TextId, Texts};

/// A counter, and its values over time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CounterTrack {
    /// The process that it is about; `None` for the whole machine.
    pub process: Option<ProcessId>,
    /// The object, or the provider of an EventCounter. It comes from outside, and may hold anything; so do the others.
    pub object: String,
    /// Of which thing. `None` where there is only one.
    pub instance: Option<String>,
    /// The counter.
    pub counter: String,
    /// What its values are in; empty for plain numbers.
    pub unit: String,
    /// Its values, in order of time.
    pub values: Vec<(Ticks, f64)>,
}

impl CounterTrack {
    /// Its name as perfmon spells it: `Object(Instance)\Counter`.
    pub fn path(&self) -> String {
        let CounterTrack { object, instance, counter, .. } = self;
        match instance {
            Some(instance) => format!(r"{object}({instance})\{counter}"),
            None => format!(r"{object}\{counter}"),
        }
    }
}

impl CounterTrack {
    /// The time of so many ticks in which its mean was highest, and that mean. A value stands for the time since the one before
    /// it; a track that is shorter is all of it.
    pub fn highest(&self, length: i64) -> Option<((Ticks, Ticks), f64)> {
        let (first, only) = *self.values.first()?;
        let (last, _) = *self.values.last()?;
        let length = length.max(1);
        let since = |time: Ticks| time.0.saturating_sub(first.0);
        // The sum of value times ticks from the first moment to each; of numbers from files, no sum is too large.
        let mut sums: Vec<(i64, f64, f64)> = Vec::with_capacity(self.values.len());
        let (mut sum, mut before) = (0.0, 0);
        for (time, value) in &self.values {
            let value = value.clamp(-1e250, 1e250);
            sum += value * (since(*time) - before) as f64;
            before = since(*time);
            sums.push((before, sum, value));
        }
        let sum_until = |time: i64| {
            let after = sums.partition_point(|(at, ..)| *at <= time);
            let (at, sum, _) = after.checked_sub(1).and_then(|at| sums.get(at)).copied().unwrap_or_default();
            sum + sums.get(after).map_or(0.0, |(.., value)| value * (time - at) as f64)
        };
        let all = since(last);
        if all < length {
            let mean = if all == 0 { only } else { sum_until(all) / all as f64 };
            return Some(((Ticks(last.0.saturating_sub(length)), Ticks(last.0.saturating_add(1))), mean));
        }
        // A window whose mean no other exceeds begins or ends at a value.
        let ends = sums.iter().flat_map(|(at, ..)| [*at, at.saturating_add(length)]);
        let within = ends.filter(|end| (length..=all).contains(end));
        let mean = |end: i64| (sum_until(end) - sum_until(end - length)) / length as f64;
        let (mean, end) = within.map(|end| (mean(end), end)).max_by(|a, b| a.0.total_cmp(&b.0))?;
        let at = |since: i64| Ticks(first.0.saturating_add(since));
        Some(((at(end - length), at(end)), mean))
    }
}

/// What a track is known by: the id of its process, object, instance, counter and unit.
type Key = (u32, [TextId; 4]);

/// Collects them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    texts: Texts,
    /// In the order in which they came first.
    tracks: Vec<(Key, Vec<(Ticks, f64)>)>,
    places: FxHashMap<Key, usize>,
}

impl Collector {
    pub(super) fn take(&mut self, value: &CounterValue<'_>, time: Ticks) {
        let number = value.value();
        if !number.is_finite() {
            return;
        }
        let texts = [value.object, value.instance, value.counter, value.unit];
        let key = (value.pid, texts.map(|text| self.texts.intern(text)));
        let place = *self.places.entry(key).or_insert_with(|| {
            self.tracks.push((key, Vec::new()));
            self.tracks.len() - 1
        });
        if let Some((_, values)) = self.tracks.get_mut(place) {
            values.push((time, number));
        }
    }

    pub(super) fn finish(self, processes: &mut Processes) -> Vec<CounterTrack> {
        let text = |id| self.texts.get(id).to_owned();
        let mut all = Vec::new();
        for ((pid, [object, instance, counter, unit]), values) in self.tracks {
            let named = |process, values| CounterTrack {
                process,
                object: text(object),
                instance: (!instance.is_empty()).then(|| text(instance)),
                counter: text(counter),
                unit: text(unit),
                values,
            };
            if pid == 0 {
                all.push(named(None, values));
                continue;
            }
            // An id may be used again while the recording goes on.
            let mut of = values.first().map(|(time, _)| processes.at(pid, *time));
            let mut run = Vec::new();
            for (time, value) in values {
                let process = Some(processes.at(pid, time));
                if process != of {
                    all.push(named(of, std::mem::take(&mut run)));
                    of = process;
                }
                run.push((time, value));
            }
            all.push(named(of, run));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::CounterTrack;
    use crate::clock::Ticks;

    fn highest(values: &[(i64, f64)], length: i64) -> Option<((i64, i64), f64)> {
        let values = values.iter().map(|(time, value)| (Ticks(*time), *value)).collect();
        let name = String::new;
        let track = CounterTrack {
            process: None,
            object: name(),
            instance: None,
            counter: name(),
            unit: name(),
            values,
        };
        track.highest(length).map(|((from, to), mean)| ((from.0, to.0), mean))
    }

    #[test]
    fn the_highest_time_is_that_of_the_greatest_mean() {
        let values = [(0, 0.0), (10, 1.0), (20, 5.0), (30, 4.0), (40, 1.0), (50, 9.0)];
        assert_eq!(highest(&values, 10), Some(((40, 50), 9.0)));
        assert_eq!(highest(&values, 20), Some(((30, 50), 5.0)));
        // From 10 on: 5, 4, 1, and from 20 on: 4, 1, 9.
        assert_eq!(highest(&values, 30), Some(((20, 50), 14.0 / 3.0)));
        // Half of a value's time.
        assert_eq!(highest(&values[..4], 15), Some(((10, 25), (50.0 + 20.0) / 15.0)));
    }

    #[test]
    fn short_tracks_are_all_of_the_time() {
        assert_eq!(highest(&[], 10), None);
        assert_eq!(highest(&[(7, 3.0)], 10), Some(((-3, 8), 3.0)));
        assert_eq!(highest(&[(0, 3.0), (4, 5.0)], 10), Some(((-6, 5), 5.0)));
        let vast = highest(&[(i64::MIN, f64::MAX), (i64::MAX, f64::MIN)], 10);
        assert!(vast.is_some_and(|(_, mean)| mean.is_finite()), "{vast:?}");
    }
}
