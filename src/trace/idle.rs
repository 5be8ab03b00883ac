//! Samples of idle processors. A quiet machine has ten times as many of them as of all others, and nobody looks at
//! their stacks: they are counted and not kept, unless somebody asks for them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::etl::digest::{BufferAt, Place};
use crate::event::Ticks;

use super::recent::{Memory, Noted, Recent};

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
    counts: Counts,
    /// The last ones, so that a stack of theirs is known to have an owner; by processor, and in the upper half what they
    /// count.
    recent: Recent,
}

#[derive(Debug, Default)]
struct Counts {
    samples: u64,
    by_processor: Vec<u64>,
    /// By the number of records of sampling intervals that came before, and the intervals that a sample stands for.
    by_interval: FxHashMap<(usize, u16), u64>,
    span: Option<(Ticks, Ticks)>,
}

impl Counts {
    /// Counts `samples` in a row of `count` intervals each.
    fn add(&mut self, samples: u64, span: (Ticks, Ticks), processor: u16, count: u16, intervals: usize) {
        self.samples += samples;
        let place = usize::from(processor);
        if self.by_processor.len() <= place {
            self.by_processor.resize(place + 1, 0);
        }
        if let Some(of_processor) = self.by_processor.get_mut(place) {
            *of_processor += samples;
        }
        *self.by_interval.entry((intervals, count)).or_default() += samples;
        let (first, last) = self.span.unwrap_or(span);
        self.span = Some((first.min(span.0), last.max(span.1)));
    }

    fn add_list(&mut self, list: &[Noted], intervals: usize) {
        for alike in list.chunk_by(|a, b| a.of == b.of) {
            let (Some(first), Some(last)) = (alike.first(), alike.last()) else { continue };
            let (processor, count) = (first.of as u16, (first.of >> 16) as u16);
            self.add(alike.len() as u64, (first.time, last.time), processor, count, intervals);
        }
    }
}

impl IdleCounter {
    /// Counts one of `count` intervals, which comes after so many records of sampling intervals.
    pub(super) fn add(&mut self, time: Ticks, processor: u16, count: u16, intervals: usize) {
        self.counts.add(1, (time, time), processor, count, intervals);
        self.recent.push(time, u32::from(processor) | u32::from(count) << 16);
    }

    /// Takes those of a buffer that begins.
    pub(super) fn begin(&mut self, buffer: &BufferAt, idle: &mut Vec<Noted>, intervals: usize) {
        self.recent.begin(buffer, idle, |list| self.counts.add_list(list, intervals));
    }

    /// Another sampling interval is in force from `now` on; so many were recorded before.
    pub(super) fn interval_changes(&mut self, now: Option<Place>, intervals: usize) {
        self.recent.visit(now, |list| self.counts.add_list(list, intervals));
    }

    /// True if `processor` was sampled idle at `time`, as far as is remembered; what is forgotten may have been.
    pub(super) fn was_idle(&self, time: Ticks, processor: u16, now: Place) -> bool {
        self.recent.at(time, now, |of| of as u16 == processor) != Memory::Nothing
    }

    /// The counts, now that every interval is known: `interval` gives that in force, in 100 ns, by the number of
    /// records before; there are `intervals` of them.
    pub(super) fn finish(mut self, intervals: usize, interval: impl Fn(usize) -> u32) -> Idle {
        self.interval_changes(None, intervals);
        let counts = self.counts;
        let mut by_weight = BTreeMap::default();
        for ((intervals, count), samples) in counts.by_interval {
            *by_weight.entry(u64::from(interval(intervals)) * u64::from(count)).or_default() += samples;
        }
        let by_processor = (0..).zip(counts.by_processor).filter(|(_, samples)| *samples > 0).collect();
        Idle { samples: counts.samples, by_processor, by_weight, span: counts.span }
    }
}
