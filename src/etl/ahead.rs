//! Threads that digest buffers ahead of the reading in order.
//!
//! Buffers are taken in the order in which they will be wanted, at most a window ahead. The reading thread digests too
//! whenever the next buffer is not ready, so that no processor waits.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use super::digest::{Digested, Digester, Order, Spare, digest};
use super::file::LogFile;
use super::merge::Job;

/// Buffers that may be digested before they are wanted: for the caller, and for each thread beside it.
const WINDOW: usize = 4;

/// Threads that work at once; more than any machine can use for one file.
const MOST_THREADS: usize = 256;

/// Bytes of records that may be ahead.
const WINDOW_BYTES: usize = 64 << 20;

/// The buffers of a recording in the order in which they are wanted, and who digests them.
pub(super) struct Ahead<'a, 'd, D: Digester> {
    digester: &'d D,
    files: &'a [LogFile],
    jobs: &'d [Job],
    order: Order,
    window: usize,
    state: Mutex<State<'a, D>>,
    changed: Condvar,
}

struct State<'a, D: Digester> {
    /// The first buffer that nobody has begun with.
    next: usize,
    /// How many have been given out.
    given: usize,
    /// What is ready of those after, or will be.
    ready: VecDeque<Option<Digested<'a, D>>>,
    /// Bytes of records that somebody has begun with and that have not been given out.
    bytes: usize,
    spare: Vec<Spare<D>>,
    /// Nobody wants more.
    over: bool,
}

impl<'a, 'd, D: Digester> Ahead<'a, 'd, D> {
    fn new(digester: &'d D, files: &'a [LogFile], jobs: &'d [Job], order: Order, threads: usize) -> Self {
        let state =
            State { next: 0, given: 0, ready: VecDeque::new(), bytes: 0, spare: Vec::new(), over: false };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ahead { digester, files, jobs, order, window: WINDOW * threads, state, changed }
    }

    /// Runs `read` with digests from as many threads as asked for, the caller's one of them. Also
    /// returns what each thread kept.
    pub(super) fn run<T>(
        digester: &'d D,
        files: &'a [LogFile],
        jobs: &'d [Job],
        order: Order,
        threads: NonZeroUsize,
        read: impl FnOnce(&mut Reader<'_, 'a, 'd, D>) -> T,
    ) -> (T, Vec<D::Worker>) {
        let threads = threads.get().min(jobs.len()).clamp(1, MOST_THREADS);
        let ahead = Ahead::new(digester, files, jobs, order, threads);
        std::thread::scope(|scope| {
            let work = |thread| {
                let ahead = &ahead;
                // A container may allow no more threads.
                Builder::new().spawn_scoped(scope, move || ahead.work(thread)).ok()
            };
            let others: Vec<ScopedJoinHandle<'_, D::Worker>> = (1..threads).map_while(work).collect();
            let mut reader = Reader { ahead: &ahead, worker: digester.worker(0) };
            let value = {
                let _over = Over { ahead: &ahead, only_in_panic: false };
                read(&mut reader)
            };
            let mut workers = vec![reader.worker];
            for other in others {
                workers.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            (value, workers)
        })
    }

    /// Digests what comes next until nobody wants more.
    fn work(&self, thread: usize) -> D::Worker {
        let _over = Over { ahead: self, only_in_panic: true };
        let mut worker = self.digester.worker(thread);
        let mut state = self.lock();
        while !state.over && state.next < self.jobs.len() {
            state = match self.begin(&mut state) {
                Some((index, spare)) => {
                    drop(state);
                    self.finish(index, spare, &mut worker)
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        worker
    }

    /// Begins with the next buffer, if it is not too far ahead.
    fn begin(&self, state: &mut State<'a, D>) -> Option<(usize, Spare<D>)> {
        let index = state.next;
        let size = self.jobs.get(index)?.size;
        let ahead = index - state.given;
        if ahead > 0 && (ahead >= self.window || state.bytes + size > WINDOW_BYTES) {
            return None;
        }
        state.next += 1;
        state.bytes += size;
        state.ready.push_back(None);
        Some((index, state.spare.pop().unwrap_or_default()))
    }

    /// Digests a buffer that was begun with.
    fn finish(&self, index: usize, spare: Spare<D>, worker: &mut D::Worker) -> MutexGuard<'_, State<'a, D>> {
        let digested = self.jobs.get(index).and_then(|job| {
            let (file, entry) = job.of(self.files)?;
            Some(digest(self.digester, worker, file, entry, self.order, spare))
        });
        let mut state = self.lock();
        let place = index - state.given;
        if let Some(ready) = state.ready.get_mut(place) {
            *ready = digested;
        }
        self.changed.notify_all();
        state
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work of all threads when it is dropped: the caller wants no more, or a thread panics and nobody else will do
/// what it had begun with.
struct Over<'s, 'a, 'd, D: Digester> {
    ahead: &'s Ahead<'a, 'd, D>,
    only_in_panic: bool,
}

impl<D: Digester> Drop for Over<'_, '_, '_, D> {
    fn drop(&mut self) {
        if !self.only_in_panic || std::thread::panicking() {
            self.ahead.lock().over = true;
            self.ahead.changed.notify_all();
        }
    }
}

/// Gives the digests of all buffers in order.
pub(super) struct Reader<'s, 'a, 'd, D: Digester> {
    ahead: &'s Ahead<'a, 'd, D>,
    worker: D::Worker,
}

impl<'a, D: Digester> Reader<'_, 'a, '_, D> {
    /// The next one; `None` behind the last.
    pub(super) fn next(&mut self) -> Option<Digested<'a, D>> {
        let ahead = self.ahead;
        let mut state = ahead.lock();
        loop {
            if let Some(digested) = state.ready.front_mut().and_then(Option::take) {
                state.ready.pop_front();
                state.bytes -= ahead.jobs.get(state.given).map_or(0, |job| job.size);
                state.given += 1;
                drop(state);
                ahead.changed.notify_all();
                return Some(digested);
            }
            if state.over || state.given == ahead.jobs.len() {
                return None;
            }
            state = match ahead.begin(&mut state) {
                Some((index, spare)) => {
                    drop(state);
                    ahead.finish(index, spare, &mut self.worker)
                }
                None => ahead.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Takes memory back.
    pub(super) fn recycle(&self, spare: Spare<D>) {
        self.ahead.lock().spare.push(spare);
    }
}
