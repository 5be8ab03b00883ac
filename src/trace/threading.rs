//! What threads of runtimes compete for: locks that others hold, and the threads of pools.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::event::Event;
use crate::events::clr::{Clr, PoolReason};

use super::gc::NOBODY;
use super::processes::ProcessId;

/// A thread waited for a lock that another held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contended {
    /// The process.
    pub process: ProcessId,
    /// The system's id of the thread that waited.
    pub tid: u32,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// True for a lock of the runtime itself, false for one of the program.
    pub is_native: bool,
    /// The system's id of the thread that held the lock, where the recording has it.
    pub owner: Option<u64>,
    /// When it began to wait.
    pub start: Ticks,
    /// When it had the lock; `None` where the recording does not say.
    pub end: Option<Ticks>,
}

impl Contended {
    /// How long it waited, where that is known.
    pub fn ticks(&self) -> Option<i64> {
        Some(self.end?.0.saturating_sub(self.start.0))
    }
}

/// How many threads of a runtime's pool worked, or were wanted, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolChange {
    /// The process.
    pub process: ProcessId,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// When.
    pub time: Ticks,
    /// So many.
    pub threads: u32,
    /// Why the pool wants so many; `None` where a thread came or went.
    pub reason: Option<PoolReason>,
}

/// The id of a process, how many had it before, and a thread.
type Key = (u32, u32, u32);

/// Collects them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// With the id of the process.
    contentions: Vec<(u32, Contended)>,
    /// The waits that go on, by their places.
    open: FxHashMap<Key, usize>,
    /// With the id of the process.
    pool: Vec<(u32, PoolChange)>,
}

impl Collector {
    /// Takes an event of a process whose id so many had before.
    pub(super) fn take(&mut self, clr: &Clr<'_>, event: &Event<'_>, life: u32) {
        let (pid, tid, time) = (event.pid, event.tid, event.time);
        match clr {
            Clr::Contention(contention) => {
                let one = Contended {
                    process: NOBODY,
                    tid,
                    instance: contention.instance,
                    is_native: contention.is_native,
                    owner: contention.owner,
                    start: time,
                    end: None,
                };
                self.open.insert((pid, life, tid), self.contentions.len());
                self.contentions.push((pid, one));
            }
            Clr::ContentionEnd(_) => {
                let begun = self.open.remove(&(pid, life, tid));
                if let Some((_, begun)) = begun.and_then(|place| self.contentions.get_mut(place)) {
                    begun.end = Some(time);
                }
            }
            Clr::PoolThreads(pool) => {
                let (instance, threads, reason) = (pool.instance, pool.threads, pool.reason);
                self.pool.push((pid, PoolChange { process: NOBODY, instance, time, threads, reason }));
            }
            _ => {}
        }
    }

    /// All of them; `at` knows whose an id is at a moment.
    pub(super) fn finish(
        self,
        mut at: impl FnMut(u32, Ticks) -> ProcessId,
    ) -> (Vec<Contended>, Vec<PoolChange>) {
        let contentions = self.contentions.into_iter();
        let contentions =
            contentions.map(|(pid, one)| Contended { process: at(pid, one.start), ..one }).collect();
        let pool = self.pool.into_iter();
        (contentions, pool.map(|(pid, one)| PoolChange { process: at(pid, one.time), ..one }).collect())
    }
}
