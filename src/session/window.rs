//! Events of several sessions and processors, put in order of time.
//!
//! A live session hands out a processor's buffer when it is full or when the flush timer of one second rings, so what
//! two processors or two sessions wrote at one moment comes up to a second apart. Events are held back for a span of
//! *their* time that is longer than that, and handed on in order. An event that comes later still is handed on at
//! once, out of order, and counted.
//!
//! How far the recording has come is the time of its newest event, but one wrong time must not push it into the future:
//! everything after it would be late. So a step far ahead is believed when many events in a row have made it, as after a
//! machine has slept; until then these wait.

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
    /// The times of the last events in a row that are far ahead of the newest.
    ahead: Vec<Ticks>,
    /// So many make a step believable.
    believable: usize,
    /// No more bytes than this are held back.
    limit: usize,
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
/// A step of so many spans needs to be believable.
const FAR: i64 = 15;
/// Events that samplers and runtimes write in a moment, and more than anybody writes with a wrong time.
const BELIEVABLE: usize = 256;

impl Window {
    /// A window of `span` ticks.
    pub fn new(span: i64) -> Window {
        Window::believing(span, BELIEVABLE)
    }

    fn believing(span: i64, believable: usize) -> Window {
        Window {
            span: span.max(1),
            batches: Vec::new(),
            free: Vec::new(),
            waiting: Vec::new(),
            oldest: Ticks(i64::MAX),
            newest: Ticks(i64::MIN),
            ahead: Vec::new(),
            believable,
            limit: LIMIT,
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
            self.oldest = self.oldest.min(time);
            self.notice(time);
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
        if self.bytes > self.limit {
            self.advance(self.newest.0.saturating_sub(behind.min(self.span) / 2), emit, empty);
            // Nearly all of it is far ahead: the older half, whatever its times.
            if self.bytes > self.limit
                && let Some(middle) = self.waiting.get(self.waiting.len() / 2)
            {
                self.advance(middle.time.0, emit, empty);
            }
        } else if behind > self.span.saturating_add(self.span / 4) {
            self.advance(self.newest.0.saturating_sub(self.span), emit, empty);
        }
    }

    /// Hands on everything that is left.
    pub fn finish(&mut self, emit: &mut impl FnMut(&Event<'_>)) {
        self.advance(i64::MAX, emit, &mut drop);
    }

    /// Moves the newest time on, if this one is to be believed.
    fn notice(&mut self, time: Ticks) {
        let far = self.span.saturating_mul(FAR);
        if time.0 <= self.newest.0.saturating_add(far) {
            self.newest = self.newest.max(time);
            self.ahead.clear();
            return;
        }
        self.ahead.push(time);
        if self.ahead.len() >= self.believable {
            self.ahead.sort_unstable();
            // There may be wrong ones among these, too.
            let near =
                self.ahead.iter().copied().reduce(|newest, time| {
                    if time.0 <= newest.0.saturating_add(far) { time } else { newest }
                });
            self.newest = near.unwrap_or(time);
            self.ahead.clear();
        }
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
        play_to(Window::believing(span, 1), batches)
    }

    fn play_to(mut window: Window, batches: &[&[i64]]) -> (Vec<i64>, u64, usize) {
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
        let mut window = Window::believing(100, 1);
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

    /// Four processors hand out their buffers in turn: each is in order, and behind the one before.
    fn processors(from: i64, buffers: i64) -> Vec<Vec<i64>> {
        (0..buffers).map(|buffer| (0..50).map(|event| from + buffer * 25 + event * 2).collect()).collect()
    }

    fn play_all(span: i64, batches: &[Vec<i64>]) -> (Vec<i64>, u64, usize) {
        let slices: Vec<&[i64]> = batches.iter().map(Vec::as_slice).collect();
        play_to(Window::new(span), &slices)
    }

    #[test]
    fn after_a_long_pause_events_are_still_put_in_order_and_handed_on() {
        let sleep = 1_000_000_000;
        let mut batches = processors(1_000, 400);
        batches.extend(processors(sleep, 400));
        let (out, late, returned) = play_all(200, &batches);
        assert!(out.is_sorted());
        assert_eq!((out.len(), late), (40_000, 0));
        assert!(returned > 700, "{returned} of 800 batches were handed on before the end");
    }

    #[test]
    fn the_memory_limit_holds_for_times_far_ahead_too() {
        let mut window = Window { limit: 100_000, ..Window::new(100) };
        let mut handed_on = 0;
        // Never believable: something normal comes in between.
        for round in 0..100 {
            let times: Vec<i64> =
                (0..100).map(|event| if event == 0 { 3 } else { 1 << 40 | round << 13 | event }).collect();
            window.push(batch(&times), &mut |_| handed_on += 1, &mut drop);
        }
        assert!(window.bytes <= 200_000, "{} bytes", window.bytes);
        assert!(handed_on > 5_000, "{handed_on} of 10,000 events");
    }

    proptest::proptest! {
        // A FILETIME in a session of raw clock values, or a time of nothing at all, anywhere; the first event of all, too.
        #[test]
        fn a_wrong_time_makes_no_other_event_late(
            places: Vec<(u16, bool)>,
            start in 1..1_000_000_000i64,
        ) {
            let mut batches = processors(start, 400);
            let mut wrong = Vec::new();
            for (place, is_alone) in places.iter().take(20) {
                let time = 133_700_000_000_000_000 + i64::from(*place);
                wrong.push(time);
                let place = usize::from(*place) % batches.len();
                if *is_alone {
                    batches.insert(place, vec![time]);
                } else if let Some(batch) = batches.get_mut(place) {
                    batch.push(time);
                }
            }
            let (out, late, returned) = play_all(200, &batches);
            proptest::prop_assert_eq!(late, 0);
            proptest::prop_assert_eq!(out.len(), 20_000 + wrong.len());
            proptest::prop_assert!(out.is_sorted());
            proptest::prop_assert!(returned > 350, "{} batches were handed on before the end", returned);
        }

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
