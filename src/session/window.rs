//! Events of several sessions and processors, put in order of time.
//!
//! A live session hands out a processor's buffer when it is full or when the flush timer of one second rings, so what
//! two processors or two sessions wrote at one moment comes up to a second apart. Events are held back for a span of
//! *their* time that is longer than that, and handed on in order. An event that comes later still is handed on at
//! once, out of order, and counted.

use crate::event::{Event, Ticks};

use super::batch::Batch;

/// Holds events back until nothing earlier can come.
#[derive(Debug)]
pub struct Window {
    /// In ticks.
    span: i64,
    /// Held batches, by number; a batch that is done leaves its place free.
    batches: Vec<Held>,
    free: Vec<u32>,
    /// Events that wait, in order of time up to `sorted`.
    waiting: Vec<Waiting>,
    /// The earliest time among the waiting.
    oldest: Ticks,
    newest: Ticks,
    /// The time of the last event that was handed on.
    reached: Ticks,
    bytes: usize,
    late: u64,
}

#[derive(Debug)]
struct Held {
    batch: Batch,
    /// Events of it that wait.
    waiting: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: Ticks,
    batch: u32,
    index: u32,
}

/// No more than this is held back, whatever the span: in bytes.
const LIMIT: usize = 512 << 20;

impl Window {
    /// A window of `span` ticks.
    pub fn new(span: i64) -> Window {
        Window {
            span: span.max(1),
            batches: Vec::new(),
            free: Vec::new(),
            waiting: Vec::new(),
            oldest: Ticks(i64::MAX),
            newest: Ticks(i64::MIN),
            reached: Ticks(i64::MIN),
            bytes: 0,
            late: 0,
        }
    }

    /// Events that came too late to be handed on in order.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Takes a batch, and gives to `emit` what nothing earlier can come before. Batches that are done go to `empty`.
    pub fn push(&mut self, batch: Batch, emit: &mut impl FnMut(&Event<'_>), empty: &mut impl FnMut(Batch)) {
        if batch.is_empty() {
            empty(batch);
            return;
        }
        let place = self.free.pop().unwrap_or(self.batches.len() as u32);
        for (index, time) in batch.times().enumerate() {
            self.waiting.push(Waiting { time, batch: place, index: index as u32 });
            (self.oldest, self.newest) = (self.oldest.min(time), self.newest.max(time));
            self.late += u64::from(time < self.reached);
        }
        self.bytes += batch.size();
        let held = Held { waiting: batch.len(), batch };
        match self.batches.get_mut(place as usize) {
            Some(free) => *free = held,
            None => self.batches.push(held),
        }
        // Sorting waits until there is something to hand on: a quarter of the window.
        let behind = self.newest.0.saturating_sub(self.oldest.0);
        if self.bytes > LIMIT {
            self.advance(self.newest.0.saturating_sub(behind.min(self.span) / 2), emit, empty);
        } else if behind > self.span.saturating_add(self.span / 4) {
            self.advance(self.newest.0.saturating_sub(self.span), emit, empty);
        }
    }

    /// Hands on everything that is left.
    pub fn finish(&mut self, emit: &mut impl FnMut(&Event<'_>)) {
        self.advance(i64::MAX, emit, &mut drop);
    }

    fn advance(&mut self, until: i64, emit: &mut impl FnMut(&Event<'_>), empty: &mut impl FnMut(Batch)) {
        // Stable, so that events of one time stay in the order in which they came. What waits is sorted but for the
        // newest batches, and these are sorted runs: the sort only merges.
        self.waiting.sort_by_key(|waiting| waiting.time);
        let ready = self.waiting.partition_point(|waiting| waiting.time.0 <= until);
        for waiting in self.waiting.drain(..ready) {
            let Some(held) = self.batches.get_mut(waiting.batch as usize) else { continue };
            if let Some(event) = held.batch.event(waiting.index as usize) {
                self.reached = self.reached.max(waiting.time);
                emit(&event);
            }
            held.waiting -= 1;
            if held.waiting == 0 {
                let mut batch = std::mem::take(&mut held.batch);
                self.bytes -= batch.size();
                self.free.push(waiting.batch);
                batch.clear();
                empty(batch);
            }
        }
        self.oldest = self.waiting.first().map_or(Ticks(i64::MAX), |first| first.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Kind, NO_ID, Pointer};
    use crate::guid::Guid;

    fn batch(times: &[i64]) -> Batch {
        let mut batch = Batch::default();
        for time in times {
            let payload = time.to_le_bytes();
            batch.push(&Event {
                time: Ticks(*time),
                provider: Guid::ZERO,
                kind: Kind::Classic,
                opcode: 1,
                version: 2,
                pointer: Pointer::Bits64,
                processor: 3,
                pid: NO_ID,
                tid: 4,
                items: &[],
                payload: &payload,
            });
        }
        batch
    }

    fn play(span: i64, batches: &[&[i64]]) -> (Vec<i64>, u64, usize) {
        let mut window = Window::new(span);
        let (mut out, mut returned) = (Vec::new(), 0);
        let mut emit = |event: &Event<'_>| {
            assert_eq!(event.payload, event.time.0.to_le_bytes());
            out.push(event.time.0);
        };
        for times in batches {
            window.push(batch(times), &mut emit, &mut |batch| {
                assert!(batch.is_empty());
                returned += 1;
            });
        }
        window.finish(&mut emit);
        (out, window.late(), returned)
    }

    #[test]
    fn processors_that_come_apart_are_put_in_order() {
        let (out, late, returned) = play(100, &[&[1, 5, 90], &[2, 3, 95], &[300, 301], &[250, 299], &[900]]);
        assert_eq!(out, [1, 2, 3, 5, 90, 95, 250, 299, 300, 301, 900]);
        assert_eq!((late, returned), (0, 4));
    }

    #[test]
    fn the_oldest_decides_whatever_came_first() {
        let mut window = Window::new(100);
        let mut out = Vec::new();
        let mut emit = |event: &Event<'_>| out.push(event.time.0);
        [[190, 195], [1, 2], [150, 200]]
            .iter()
            .for_each(|times| window.push(batch(times), &mut emit, &mut drop));
        assert_eq!(out, [1, 2]);
    }

    #[test]
    fn what_is_later_than_the_window_is_counted_and_not_lost() {
        let (out, late, _) = play(10, &[&[1, 2], &[500], &[3], &[501]]);
        assert_eq!(out.len(), 5);
        assert_eq!(late, 0, "3 came before anything later had been handed on");
        let (out, late, _) = play(10, &[&[1, 400], &[500], &[3], &[501]]);
        assert_eq!((out.len(), late), (5, 1));
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(mut batches: Vec<Vec<i64>>, span in 1..1000i64) {
            batches.iter_mut().for_each(|times| times.sort_unstable());
            let slices: Vec<&[i64]> = batches.iter().map(Vec::as_slice).collect();
            let (mut out, late, _) = play(span, &slices);
            if late == 0 {
                proptest::prop_assert!(out.is_sorted());
            }
            let mut all: Vec<i64> = batches.concat();
            all.sort_unstable();
            out.sort_unstable();
            proptest::prop_assert_eq!(out, all);
        }
    }
}
