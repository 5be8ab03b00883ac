//! From the callbacks to the builder: a bounded channel of batches, and the thread at its end.
//!
//! A callback never waits. Where the channel is full because the builder is slower than the machine writes, the batch
//! is dropped and its records are counted; the result says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::event::{Event, Kind};
use crate::events::providers::{CLR_RUNDOWN, PERF_INFO};

use super::batch::Batch;
use super::window::Window;

/// Takes the events of a live session in order of time.
pub trait Sink: Send + 'static {
    /// Takes one event.
    fn event(&mut self, event: &Event<'_>);
}

impl Sink for crate::trace::Builder {
    fn event(&mut self, event: &Event<'_>) {
        crate::trace::Builder::event(self, event);
    }
}

/// What has passed by, counted while it does.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events that the sessions handed out.
    pub events: AtomicU64,
    /// CPU samples among them.
    pub samples: AtomicU64,
    /// Events that were dropped because the builder was too slow.
    pub dropped: AtomicU64,
    /// Lists of a CLR's code at the session's end: begun.
    pub(super) rundowns_begun: AtomicU64,
    /// The same: complete.
    pub(super) rundowns_done: AtomicU64,
}

/// Batches on their way. At 4,096 records each: a quarter of a million samples with their stacks.
const IN_FLIGHT: usize = 128;
const SAMPLED_PROFILE: u8 = 46;
const DC_END_COMPLETE: Kind = Kind::Manifest(146);
const DC_END_INIT: Kind = Kind::Manifest(148);

/// The end of the pipeline that a session's callback writes to; one per session.
#[derive(Debug)]
pub struct Feed {
    batch: Batch,
    full: Sender<Batch>,
    empty: Receiver<Batch>,
    counters: Arc<Counters>,
}

impl Feed {
    /// Copies one event.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) {
        if event.provider == PERF_INFO && event.opcode == SAMPLED_PROFILE && event.kind == Kind::Classic {
            self.counters.samples.fetch_add(1, Relaxed);
        } else if event.provider == CLR_RUNDOWN {
            match event.kind {
                DC_END_INIT => drop(self.counters.rundowns_begun.fetch_add(1, Relaxed)),
                DC_END_COMPLETE => drop(self.counters.rundowns_done.fetch_add(1, Relaxed)),
                _ => {}
            }
        }
        self.batch.push(event);
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// Hands on what has been copied.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let records = self.batch.len() as u64;
        self.counters.events.fetch_add(records, Relaxed);
        let next = self.empty.try_recv().unwrap_or_default();
        match self.full.try_send(std::mem::replace(&mut self.batch, next)) {
            Ok(()) => {}
            Err(TrySendError::Full(mut batch) | TrySendError::Disconnected(mut batch)) => {
                self.counters.dropped.fetch_add(records, Relaxed);
                batch.clear();
                self.batch = batch;
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The thread that puts the events in order and gives them to a [`Sink`].
#[derive(Debug)]
pub struct Pipeline<S> {
    feeds: Sender<Batch>,
    empty: Receiver<Batch>,
    counters: Arc<Counters>,
    thread: JoinHandle<Drained<S>>,
}

/// A sink that has everything.
#[derive(Debug)]
pub struct Drained<S> {
    /// The sink.
    pub sink: S,
    /// Events that came too late to be given in order.
    pub late: u64,
}

impl<S: Sink> Pipeline<S> {
    /// Starts the thread. Events are held back for `span` ticks to put them in order.
    pub fn start(mut sink: S, span: i64) -> std::io::Result<Pipeline<S>> {
        let (feeds, full) = bounded::<Batch>(IN_FLIGHT);
        let (returns, empty) = bounded::<Batch>(IN_FLIGHT);
        let thread = std::thread::Builder::new().name("builder".to_owned()).spawn(move || {
            let mut window = Window::new(span);
            for batch in full {
                let mut reuse = |batch| drop(returns.try_send(batch));
                window.push(batch, &mut |event| sink.event(event), &mut reuse);
            }
            window.finish(&mut |event| sink.event(event));
            Drained { sink, late: window.late() }
        })?;
        Ok(Pipeline { feeds, empty, counters: Arc::default(), thread })
    }

    /// An end for a session's callback.
    pub fn feed(&self) -> Feed {
        Feed {
            batch: Batch::default(),
            full: self.feeds.clone(),
            empty: self.empty.clone(),
            counters: self.counters.clone(),
        }
    }

    /// The counts, which go on.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// True if the thread has ended before its time: the sink panicked.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the sink has everything. All feeds must be gone. `None` if the sink panicked.
    pub fn finish(self) -> Option<Drained<S>> {
        drop(self.feeds);
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::event::{NO_ID, Pointer, Ticks};

    fn event(time: i64) -> Event<'static> {
        Event {
            time: Ticks(time),
            provider: PERF_INFO,
            kind: Kind::Classic,
            opcode: SAMPLED_PROFILE,
            version: 2,
            pointer: Pointer::Bits64,
            processor: 0,
            pid: NO_ID,
            tid: NO_ID,
            items: &[],
            payload: &[0; 16],
        }
    }

    struct Slow(u64, mpsc::Receiver<()>);

    impl Sink for Slow {
        fn event(&mut self, _: &Event<'_>) {
            if self.0 == 0 {
                let _ = self.1.recv();
            }
            self.0 += 1;
        }
    }

    #[test]
    fn what_a_slow_builder_cannot_take_is_counted_exactly() {
        let (go, wait) = mpsc::channel();
        let pipeline = Pipeline::start(Slow(0, wait), 10).unwrap();
        let counters = pipeline.counters();
        let mut feed = pipeline.feed();
        let all = 2_000_000;
        (0..all).for_each(|time| feed.event(&event(time)));
        drop(feed);
        go.send(()).unwrap();
        let taken = pipeline.finish().unwrap().sink.0;
        let dropped = counters.dropped.load(Relaxed);
        assert!(dropped > 0, "the channel is bounded");
        assert_eq!(taken + dropped, all as u64);
        assert_eq!(counters.events.load(Relaxed), all as u64);
        assert_eq!(counters.samples.load(Relaxed), all as u64);
    }

    struct Panics;

    impl Sink for Panics {
        fn event(&mut self, _: &Event<'_>) {
            panic!("on purpose");
        }
    }

    #[test]
    fn a_panic_in_the_builder_is_seen_and_stops_nothing_else() {
        let pipeline = Pipeline::start(Panics, 1).unwrap();
        let mut feed = pipeline.feed();
        (0..1_000_000).for_each(|time| feed.event(&event(time)));
        let counters = pipeline.counters();
        drop(feed);
        assert!(pipeline.finish().is_none());
        assert_eq!(counters.events.load(Relaxed), 1_000_000);
    }
}
