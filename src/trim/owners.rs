//! Whose a process or thread id was at a moment: a chosen process's, or another's.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Ticks;
use crate::event::NO_ID;
use crate::trace::{ProcessId, Trace};

/// An event may come so much before the start of its process or thread.
const EARLY_SECONDS: f64 = 0.010;

/// The owners of ids.
#[derive(Debug)]
pub(super) struct Owners {
    /// Everything is chosen.
    all: bool,
    /// Every id that a chosen process has had.
    ever: FxHashSet<u32>,
    pids: Lives,
    tids: Lives,
    early: i64,
}

/// For each id its owners in order of time: since when, and whether it is chosen.
type Lives = FxHashMap<u32, Vec<(Ticks, bool)>>;

impl Owners {
    /// Every process is chosen.
    pub(super) fn all() -> Owners {
        let (ever, pids, tids) = (FxHashSet::default(), Lives::default(), Lives::default());
        Owners { all: true, ever, pids, tids, early: 0 }
    }

    pub(super) fn new(trace: &Trace, chosen: Option<&[ProcessId]>) -> Owners {
        let mut owners = Owners {
            all: chosen.is_none(),
            ever: FxHashSet::default(),
            pids: Lives::default(),
            tids: Lives::default(),
            early: trace.clock.ticks(EARLY_SECONDS),
        };
        let chosen: FxHashSet<ProcessId> = chosen.unwrap_or_default().iter().copied().collect();
        for (id, process) in (0..).map(ProcessId).zip(&trace.processes) {
            let since = process.life.start.unwrap_or(Ticks(i64::MIN));
            let is_chosen = chosen.contains(&id);
            owners.pids.entry(process.pid).or_default().push((since, is_chosen));
            if is_chosen {
                owners.ever.insert(process.pid);
            }
        }
        owners.pids.values_mut().for_each(|lives| lives.sort_by_key(|(since, _)| *since));
        for thread in &trace.threads {
            let since = thread.life.start.unwrap_or(Ticks(i64::MIN));
            let at = thread.life.start.or(thread.life.end).unwrap_or(Ticks(i64::MAX));
            let is_chosen = owners.is_process(thread.pid, at);
            owners.tids.entry(thread.tid).or_default().push((since, is_chosen));
        }
        owners.tids.values_mut().for_each(|lives| lives.sort_by_key(|(since, _)| *since));
        owners
    }

    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// True for an id that a chosen process has at some time.
    pub(super) fn is_ever(&self, pid: u32) -> bool {
        self.all || self.ever.contains(&pid)
    }

    /// True if it is a chosen process's id at a moment.
    pub(super) fn is_process(&self, pid: u32, time: Ticks) -> bool {
        self.all || self.was(&self.pids, pid, time)
    }

    /// True if it is the id of a chosen process's thread at a moment. The idle threads are those of process 0.
    pub(super) fn is_thread(&self, tid: u32, time: Ticks) -> bool {
        self.all || if tid == 0 { self.ever.contains(&0) } else { self.was(&self.tids, tid, time) }
    }

    /// True if the process or the thread is chosen.
    pub(super) fn has(&self, pid: u32, tid: u32, time: Ticks) -> bool {
        self.all
            || pid != NO_ID && self.is_process(pid, time)
            || pid == NO_ID && tid != NO_ID && self.is_thread(tid, time)
    }

    /// The first owner is taken to have had an id from the beginning, and each has it until the next one.
    fn was(&self, lives: &Lives, id: u32, time: Ticks) -> bool {
        let Some(lives) = lives.get(&id) else { return false };
        let at = |time: Ticks| {
            let after = lives.partition_point(|(since, _)| *since <= time);
            lives.get(after.saturating_sub(1)).is_some_and(|(_, is_chosen)| *is_chosen)
        };
        at(time) || at(Ticks(time.0.saturating_add(self.early)))
    }
}
