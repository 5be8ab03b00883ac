//! Samples by process, counted as they come.
//!
//! A sample names its thread only. Which process has it is told by the kernel's events of threads and, of those that
//! ran before, by the system's own list. Samples of a thread that nobody has named yet wait for its event.

use rustc_hash::FxHashMap;

use crate::event::Event;
use crate::guids::{PERF_INFO, THREAD};

/// Samples, by whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// All of the machine.
    pub all: u64,
    /// Of these: processors that had nothing to do.
    pub idle: u64,
    /// The rest by process id, as far as their threads are known.
    pub by_process: FxHashMap<u32, u64>,
}

impl SampleCounts {
    /// The samples of these processes, each counted once.
    pub fn of(&self, pids: impl IntoIterator<Item = u32>) -> u64 {
        pids.into_iter().map(|pid| self.by_process.get(&pid).copied().unwrap_or(0)).sum()
    }

    /// Samples of processors that worked.
    pub fn busy(&self) -> u64 {
        self.all.saturating_sub(self.idle)
    }
}

/// Counts for one session, and hands on what it has counted from time to time.
#[derive(Debug, Default)]
pub(super) struct Tally {
    owners: FxHashMap<u32, u32>,
    /// Samples of threads without an owner.
    waiting: FxHashMap<u32, u64>,
    counted: SampleCounts,
}

const SAMPLED_PROFILE: u8 = 46;
const IDLE_THREAD: u32 = 0;

impl Tally {
    /// Takes (thread, process) of threads that run already.
    pub(super) fn know(&mut self, threads: impl IntoIterator<Item = (u32, u32)>) {
        self.owners.extend(threads);
    }

    /// Takes a classic event.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let is_sample = event.provider == PERF_INFO && event.opcode == SAMPLED_PROFILE;
        if !is_sample && event.provider != THREAD {
            return;
        }
        if is_sample {
            match sampled_thread(event) {
                Some(tid) => self.sample(tid),
                // A sample that cannot be read is one all the same.
                None => self.counted.all += 1,
            }
        } else if let Some((tid, pid)) = named_thread(event) {
            self.thread(tid, pid);
        }
    }

    fn sample(&mut self, tid: u32) {
        self.counted.all += 1;
        if tid == IDLE_THREAD {
            self.counted.idle += 1;
        } else if let Some(pid) = self.owners.get(&tid) {
            *self.counted.by_process.entry(*pid).or_default() += 1;
        } else {
            *self.waiting.entry(tid).or_default() += 1;
        }
    }

    fn thread(&mut self, tid: u32, pid: u32) {
        self.owners.insert(tid, pid);
        if let Some(samples) = self.waiting.remove(&tid) {
            *self.counted.by_process.entry(pid).or_default() += samples;
        }
    }

    /// Moves what has been counted to `all`.
    pub(super) fn hand_on(&mut self, all: &mut SampleCounts) {
        all.all += std::mem::take(&mut self.counted.all);
        all.idle += std::mem::take(&mut self.counted.idle);
        for (pid, samples) in self.counted.by_process.drain() {
            *all.by_process.entry(pid).or_default() += samples;
        }
    }
}

/// The thread of a sample, which stands behind the address.
fn sampled_thread(event: &Event<'_>) -> Option<u32> {
    let mut reader = event.reader();
    event.pointer.read(&mut reader)?;
    reader.u32()
}

/// The thread and its process that an event of its life names. Only these two are of use here, and a callback reads no
/// more than it needs.
fn named_thread(event: &Event<'_>) -> Option<(u32, u32)> {
    if !matches!(event.opcode, 1..=4) {
        return None;
    }
    let mut reader = event.reader();
    let (first, second) = (reader.u32()?, reader.u32()?);
    Some(if event.version == 0 { (first, second) } else { (second, first) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(tally: &mut Tally) -> SampleCounts {
        let mut all = SampleCounts::default();
        tally.hand_on(&mut all);
        all
    }

    #[test]
    fn samples_go_to_the_process_of_their_thread() {
        let mut tally = Tally::default();
        tally.know([(11, 100), (12, 200)]);
        [11, 11, 12, 0, 0, 0].into_iter().for_each(|tid| tally.sample(tid));
        let all = counted(&mut tally);
        assert_eq!((all.all, all.idle, all.busy()), (6, 3, 3));
        assert_eq!((all.of([100]), all.of([200]), all.of([100, 200]), all.of([300])), (2, 1, 3, 0));
    }

    #[test]
    fn a_thread_that_is_named_later_brings_its_samples_and_an_id_used_again_goes_to_the_new_owner() {
        let mut tally = Tally::default();
        tally.sample(11);
        tally.sample(11);
        assert_eq!(counted(&mut tally).of([100]), 0, "nobody knows yet");
        tally.thread(11, 100);
        tally.sample(11);
        assert_eq!(counted(&mut tally).of([100]), 3);
        tally.thread(11, 200);
        tally.sample(11);
        let all = counted(&mut tally);
        assert_eq!((all.of([100]), all.of([200])), (0, 1));
    }
}
