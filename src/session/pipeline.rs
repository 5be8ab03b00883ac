//! From the callbacks to the builder: a bounded channel of batches, and the thread at its end.
//!
//! A callback never waits. Where the channel is full because the builder is slower than the machine writes, the batch
//! is dropped and its records are counted; the result says so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::event::{Event, Kind, Ticks};
use crate::guids::{CLR, CLR_RUNDOWN, EVENT_TRACE, LOST_EVENT};
use crate::sink::Sink;

use super::batch::Batch;
use super::diagnosis::Observer;
use super::priority;
use super::tally::{SampleCounts, Tally};
use super::window::Window;

/// What has passed by, counted while it does.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events that the sessions handed out.
    pub events: AtomicU64,
    /// Events that were dropped because the builder was too slow.
    pub dropped: AtomicU64,
    samples: Mutex<SampleCounts>,
    /// The programs with a CLR that can list its code, by process id.
    rundowns: Mutex<BTreeMap<u32, Rundown>>,
    /// Those that listed it when they were asked at the start.
    start_lists: Mutex<BTreeMap<u32, Rundown>>,
}

/// Lists of its code that a program gave when it was asked. One with two runtimes gives two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rundown {
    pub(super) begun: u32,
    pub(super) done: u32,
}

impl Counters {
    /// CPU samples among the events. Those of the newest batch are counted when it is full or its buffer is through.
    pub fn samples(&self) -> SampleCounts {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// By process id.
    pub(super) fn rundowns(&self) -> MutexGuard<'_, BTreeMap<u32, Rundown>> {
        self.rundowns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lists at the start, by process id.
    pub(super) fn start_lists(&self) -> MutexGuard<'_, BTreeMap<u32, Rundown>> {
        self.start_lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the events, few, by which a runtime tells of itself and of its lists.
    fn rundown(&self, event: &Event<'_>) {
        let Kind::Manifest(id) = event.kind else { return };
        let from_rundown = event.provider == CLR_RUNDOWN;
        match (id, from_rundown) {
            (DC_START_INIT, true) => self.start_lists().entry(event.pid).or_default().begun += 1,
            (DC_START_COMPLETE, true) => self.start_lists().entry(event.pid).or_default().done += 1,
            _ => {}
        }
        match (id, from_rundown) {
            (DC_START_COMPLETE | DC_START_INIT, true) | (RUNTIME, _) => {
                self.rundowns().entry(event.pid).or_default();
            }
            (DC_END_INIT, true) => self.rundowns().entry(event.pid).or_default().begun += 1,
            (DC_END_COMPLETE, true) => self.rundowns().entry(event.pid).or_default().done += 1,
            _ => {}
        }
    }
}

/// Batches on their way, of up to 4,096 records or 512 KiB: two seconds of a million events a second, for a builder that
/// does not get to run or makes its tables larger.
const IN_FLIGHT: usize = 512;
const HEADER: u8 = 0;
// Ids of the rundown provider, and one of both providers. Runtimes before .NET Framework 4 have none of them.
const DC_START_COMPLETE: u16 = 145;
const DC_END_COMPLETE: u16 = 146;
const DC_START_INIT: u16 = 147;
const DC_END_INIT: u16 = 148;
const RUNTIME: u16 = 187;

/// The end of the pipeline that a session's callback writes to; one per session.
#[derive(Debug)]
pub struct Feed {
    batch: Batch,
    /// The time of the last event.
    last: Ticks,
    full: Sender<Option<Batch>>,
    empty: Receiver<Batch>,
    counters: Arc<Counters>,
    tally: Tally,
    observer: Option<Observer>,
}

impl Feed {
    /// The same, and `observer` sees every event as it comes.
    pub fn observed(mut self, observer: Option<Observer>) -> Feed {
        self.observer = observer;
        self
    }

    /// Takes (thread, process) of threads that run already, so that their samples can be counted.
    pub fn know(mut self, threads: impl IntoIterator<Item = (u32, u32)>) -> Feed {
        self.tally.know(threads);
        self
    }

    /// Copies one event.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
        // ProcessTrace itself writes these two: the session's header, which nobody needs here, and what was lost. Their
        // times need not be of the session's clock.
        let made_up = match event.provider {
            EVENT_TRACE if event.opcode == HEADER => return,
            LOST_EVENT => Some(Event { time: self.last, ..*event }),
            _ => None,
        };
        let event = made_up.as_ref().unwrap_or(event);
        self.last = event.time;
        match event.kind {
            Kind::Classic => self.tally.event(event),
            _ if event.provider == CLR_RUNDOWN || event.provider == CLR => self.counters.rundown(event),
            _ => {}
        }
        self.batch.push(event);
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// One of the session's buffers is through. A builder that waits gets what has been copied; one that has enough to
    /// do gets it in batches as large as they may be.
    pub fn buffer_ends(&mut self) {
        if self.full.is_empty() {
            self.flush();
        }
    }

    /// Hands on what has been copied.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        // Where somebody reads them, they go with the next batch.
        if let Ok(mut samples) = self.counters.samples.try_lock() {
            self.tally.hand_on(&mut samples);
        }
        let records = self.batch.len() as u64;
        self.counters.events.fetch_add(records, Relaxed);
        self.batch = match self.full.try_send(Some(std::mem::take(&mut self.batch))) {
            Ok(()) => self.empty.try_recv().unwrap_or_default(),
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                self.counters.dropped.fetch_add(records, Relaxed);
                let mut back = back.unwrap_or_default();
                back.clear();
                back
            }
        };
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The thread that puts the events in order and gives them to a [`Sink`]. A drop gives the sink what is still to come and
/// waits for that: the thread does not work on while the program ends.
#[derive(Debug)]
pub struct Pipeline<S> {
    /// `None` is the end, whatever feeds are still there.
    feeds: Sender<Option<Batch>>,
    empty: Receiver<Batch>,
    counters: Arc<Counters>,
    /// `None` when it has been waited for.
    thread: Option<JoinHandle<Drained<S>>>,
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
        let (feeds, full) = bounded::<Option<Batch>>(IN_FLIGHT);
        let (returns, empty) = bounded::<Batch>(IN_FLIGHT);
        let thread = std::thread::Builder::new().name("builder".to_owned()).spawn(move || {
            priority::above_normal();
            let mut window = Window::new(span);
            for batch in full.iter().map_while(|batch| batch) {
                let mut reuse = |batch| drop(returns.try_send(batch));
                window.push(batch, &mut |event| sink.event(event), &mut reuse);
            }
            window.finish(&mut |event| sink.event(event));
            Drained { sink, late: window.late() }
        })?;
        Ok(Pipeline { feeds, empty, counters: Arc::default(), thread: Some(thread) })
    }

    /// An end for a session's callback.
    pub fn feed(&self) -> Feed {
        Feed {
            batch: Batch::default(),
            last: Ticks::default(),
            full: self.feeds.clone(),
            empty: self.empty.clone(),
            counters: self.counters.clone(),
            tally: Tally::default(),
            observer: None,
        }
    }

    /// The counts, which go on.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Batches that wait for the sink, and how many may.
    pub fn waiting(&self) -> (usize, usize) {
        (self.feeds.len(), IN_FLIGHT)
    }

    /// True if the thread has ended before its time: the sink panicked.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Waits until the sink has everything that feeds have handed on. `None` if the sink panicked.
    pub fn finish(mut self) -> Option<Drained<S>> {
        self.end()
    }
}

impl<S> Pipeline<S> {
    fn end(&mut self) -> Option<Drained<S>> {
        let thread = self.thread.take()?;
        // Where this fails the thread has ended already.
        let _ = self.feeds.send(None);
        thread.join().ok()
    }
}

impl<S> Drop for Pipeline<S> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::event::{NO_ID, Pointer};
    use crate::guids::PERF_INFO;

    fn event(time: i64) -> Event<'static> {
        Event {
            time: Ticks(time),
            provider: PERF_INFO,
            kind: Kind::Classic,
            opcode: 46,
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
        let all = 3_000_000;
        (0..all).for_each(|time| feed.event(&event(time)));
        drop(feed);
        go.send(()).unwrap();
        let taken = pipeline.finish().unwrap().sink.0;
        let dropped = counters.dropped.load(Relaxed);
        assert!(dropped > 0, "the channel is bounded");
        assert_eq!(taken + dropped, all as u64);
        assert_eq!(counters.events.load(Relaxed), all as u64);
        assert_eq!(counters.samples().all, all as u64);
    }

    #[derive(Default)]
    struct Times(Vec<(crate::guid::Guid, i64)>);

    impl Sink for Times {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push((event.provider, event.time.0));
        }
    }

    #[test]
    fn times_of_another_clock_do_not_come_through() {
        let pipeline = Pipeline::start(Times::default(), 10).unwrap();
        let mut feed = pipeline.feed();
        let filetime = 133_700_000_000_000_000;
        feed.event(&Event { provider: EVENT_TRACE, opcode: 0, ..event(filetime) });
        feed.event(&event(1));
        feed.event(&Event { provider: LOST_EVENT, opcode: 32, ..event(filetime) });
        feed.event(&Event { provider: EVENT_TRACE, opcode: 32, ..event(2) });
        drop(feed);
        let times = pipeline.finish().unwrap().sink.0;
        assert_eq!(times, [(PERF_INFO, 1), (LOST_EVENT, 1), (EVENT_TRACE, 2)]);
    }

    #[cfg(windows)]
    #[test]
    fn the_builder_runs_above_normal_priority() {
        use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadPriority};
        struct Priority(i32);
        impl Sink for Priority {
            fn event(&mut self, _: &Event<'_>) {
                // SAFETY: no pointers; the handle stands for this thread.
                self.0 = unsafe { GetThreadPriority(GetCurrentThread()) };
            }
        }
        let pipeline = Pipeline::start(Priority(0), 10).unwrap();
        pipeline.feed().event(&event(1));
        assert_eq!(pipeline.finish().unwrap().sink.0, 1, "THREAD_PRIORITY_ABOVE_NORMAL");
    }

    struct Counts(Arc<AtomicU64>);

    impl Sink for Counts {
        fn event(&mut self, _: &Event<'_>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn batches_are_used_again() {
        const ROUND: u64 = 10_000;
        let taken = Arc::new(AtomicU64::new(0));
        let pipeline = Pipeline::start(Counts(taken.clone()), 1).unwrap();
        let mut feed = pipeline.feed();
        let mut again = 0;
        for round in 0..10 {
            (0..ROUND).for_each(|time| feed.event(&event((round * ROUND + time) as i64)));
            feed.flush();
            // All but the newest of the window.
            while taken.load(Relaxed) + 10 < (round + 1) * ROUND {
                std::thread::yield_now();
            }
            again += u32::from(feed.batch.capacity() > 0);
        }
        assert!(again > 5, "{again} of 10");
    }

    #[test]
    fn a_drop_ends_the_thread() {
        let taken = Arc::new(AtomicU64::new(0));
        let pipeline = Pipeline::start(Counts(taken.clone()), 1).unwrap();
        // This feed is still there.
        let mut feed = pipeline.feed();
        (0..1_000).for_each(|time| feed.event(&event(time)));
        feed.flush();
        drop(pipeline);
        assert_eq!(Arc::strong_count(&taken), 1, "the sink is gone");
        assert_eq!(taken.load(Relaxed), 1_000);
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
