//! Samples of idle processors. A quiet machine has ten times as many of them as of all others, and nobody looks at
//! their stacks: they are counted and not kept.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::event::Ticks;

use super::join::partition_back;

/// The samples of the idle thread outside DPCs and interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// How many there are.
    pub samples: u64,
    /// How many each processor has.
    pub by_processor: BTreeMap<u16, u64>,
    /// How many stand for how much time, in 100 ns.
    pub by_weight: BTreeMap<u64, u64>,
    /// The times of the first and the last.
    pub span: Option<(Ticks, Ticks)>,
}

/// Counts them as they come.
#[derive(Debug, Default)]
pub(super) struct IdleCounter {
    samples: u64,
    by_processor: Vec<u64>,
    /// By the number of records of sampling intervals that came before, and the intervals that a sample stands for.
    by_interval: FxHashMap<(usize, u16), u64>,
    span: Option<(Ticks, Ticks)>,
    /// The last ones, so that a stack of theirs is known to have an owner.
    recent: VecDeque<(Ticks, u16)>,
}

/// How many are remembered: their stacks come right behind them.
const RECENT: usize = 1 << 16;

impl IdleCounter {
    /// Counts one of `count` intervals, which comes after so many records of sampling intervals.
    pub(super) fn add(&mut self, time: Ticks, processor: u16, count: u16, intervals: usize) {
        self.samples += 1;
        let place = usize::from(processor);
        if self.by_processor.len() <= place {
            self.by_processor.resize(place + 1, 0);
        }
        if let Some(samples) = self.by_processor.get_mut(place) {
            *samples += 1;
        }
        *self.by_interval.entry((intervals, count)).or_default() += 1;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((time, processor));
    }

    /// True if `processor` was sampled idle at `time`, as far as is remembered; what is forgotten may have been.
    pub(super) fn was_idle(&self, time: Ticks, processor: u16) -> bool {
        let recent = &self.recent;
        let from = partition_back(recent.len(), |index| recent.get(index).is_some_and(|(at, _)| *at < time));
        let forgotten = from == 0 && recent.len() == RECENT;
        let at_that_time = recent.range(from..).take_while(|(at, _)| *at == time);
        forgotten || at_that_time.into_iter().any(|(_, of)| *of == processor)
    }

    /// The counts, now that every interval is known: `interval` gives that in force, in 100 ns, by the number of
    /// records before.
    pub(super) fn finish(self, interval: impl Fn(usize) -> u32) -> Idle {
        let mut by_weight = BTreeMap::default();
        for ((intervals, count), samples) in self.by_interval {
            *by_weight.entry(u64::from(interval(intervals)) * u64::from(count)).or_default() += samples;
        }
        let by_processor = (0..).zip(self.by_processor).filter(|(_, samples)| *samples > 0).collect();
        Idle { samples: self.samples, by_processor, by_weight, span: self.span }
    }
}
