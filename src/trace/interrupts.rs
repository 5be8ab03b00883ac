//! When interrupts and deferred procedure calls ran, and which of them ran on top of others.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::events::kernel::{Interrupt, InterruptKind};

/// A time in which a DPC or an interrupt service routine ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterruptSpan {
    /// What it was.
    pub kind: InterruptKind,
    /// When it began.
    pub start: Ticks,
    /// When it ended.
    pub end: Ticks,
    /// How long others ran meanwhile that had interrupted it on its processor, in ticks.
    pub nested: i64,
    /// Its routine.
    pub routine: u64,
    /// The processor.
    pub processor: u16,
}

impl InterruptSpan {
    /// From its begin to its end, in ticks.
    pub fn ticks(&self) -> i64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// How long it ran itself, in ticks.
    pub fn own_ticks(&self) -> i64 {
        self.ticks().saturating_sub(self.nested).max(0)
    }
}

/// Collects them in the order in which they end.
#[derive(Debug, Default)]
pub(super) struct Collector {
    all: Vec<InterruptSpan>,
    /// By processor, those that have ended and may have interrupted the next: when each began, and how long it took.
    ended: FxHashMap<u16, Vec<(Ticks, i64)>>,
}

impl Collector {
    pub(super) fn take(&mut self, interrupt: Interrupt, end: Ticks, processor: u16) {
        let Interrupt { kind, start, routine } = interrupt;
        let start = start.min(end);
        let ended = self.ended.entry(processor).or_default();
        let mut nested: i64 = 0;
        while let Some((_, ticks)) = ended.pop_if(|(began, _)| *began >= start) {
            nested = nested.saturating_add(ticks);
        }
        let span = InterruptSpan { kind, start, end, nested, routine, processor };
        ended.push((start, span.ticks()));
        self.all.push(span);
    }

    pub(super) fn finish(self) -> Vec<InterruptSpan> {
        self.all
    }
}
