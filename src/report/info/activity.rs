//! What .NET runtimes did beside the code of a process.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::events::clr::PoolReason;
use crate::report::duration;
use crate::report::runtimes::Key;
use crate::report::text::{count, counted};
use crate::trace::{ProcessId, Trace};

/// What a runtime did, or all of a process; times are `null` where the recording does not say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Activity {
    /// Garbage collections, those that began in the recording.
    pub collections: u64,
    /// How long its threads stood still for them, in ns.
    pub gc_pause_ns: Option<i64>,
    /// How long its threads compiled methods, in ns.
    pub jit_ns: Option<i64>,
    /// Exceptions that were thrown.
    pub exceptions: u64,
    /// Waits for locks of the program that other threads held.
    pub contentions: u64,
    /// How long its threads waited for these, in ns, the times of all threads together.
    pub contention_ns: Option<i64>,
    /// The most threads that its thread pool had or wanted.
    pub pool_threads: Option<u32>,
    /// How often the pool added a thread because work waited and no thread took it.
    pub pool_starvations: u64,
}

/// That of every process and of every runtime.
#[derive(Debug, Default)]
pub(super) struct Activities {
    pub(super) processes: FxHashMap<ProcessId, Activity>,
    runtimes: FxHashMap<Key, Activity>,
}

impl Activities {
    pub(super) fn new(trace: &Trace) -> Activities {
        let mut all = Activities::default();
        let ns = |ticks: i64| trace.clock.nanoseconds_in(ticks);
        let managed = &trace.managed;
        for collection in &managed.collections {
            all.each((collection.process, collection.instance), |one| one.collections += 1);
        }
        // Runtimes of one process may stand still at the same time, which counts once for the process.
        for (id, spans) in managed.gc_pauses() {
            all.process(id).gc_pause_ns = Some(ns(spans.ticks()));
        }
        for (key, spans) in managed.gc_pauses_by(|pause| (pause.process, pause.instance)) {
            all.runtime(key).gc_pause_ns = Some(ns(spans.ticks()));
        }
        for ((id, _), spans) in managed.jit_times() {
            add(&mut all.process(id).jit_ns, ns(spans.ticks()));
        }
        for ((key, _), spans) in managed.jit_times_by(|one| ((one.process, one.instance), one.tid)) {
            add(&mut all.runtime(key).jit_ns, ns(spans.ticks()));
        }
        for thrown in &managed.exceptions {
            all.each((thrown.process, thrown.instance), |one| one.exceptions += 1);
        }
        for contended in managed.contentions.iter().filter(|contended| !contended.is_native) {
            all.each((contended.process, contended.instance), |one| {
                one.contentions += 1;
                if let Some(ticks) = contended.ticks() {
                    add(&mut one.contention_ns, ns(ticks));
                }
            });
        }
        for change in &managed.pool {
            all.each((change.process, change.instance), |one| {
                one.pool_threads = one.pool_threads.max(Some(change.threads));
                one.pool_starvations += u64::from(change.reason == Some(PoolReason::Starvation));
            });
        }
        all
    }

    fn process(&mut self, id: ProcessId) -> &mut Activity {
        self.processes.entry(id).or_default()
    }

    fn runtime(&mut self, key: Key) -> &mut Activity {
        self.runtimes.entry(key).or_default()
    }

    fn each(&mut self, key: Key, mut change: impl FnMut(&mut Activity)) {
        change(self.process(key.0));
        change(self.runtime(key));
    }

    /// That of a runtime. Events that do not name theirs are those of the only one.
    pub(super) fn take(&mut self, process: ProcessId, instance: u16, is_only: bool) -> Activity {
        let named = self.runtimes.remove(&(process, Some(instance)));
        let unnamed = || if is_only { self.runtimes.remove(&(process, None)) } else { None };
        named.or_else(unnamed).unwrap_or_default()
    }
}

impl Activity {
    /// `263 collections, 29.0 ms paused, 51.3 ms in the JIT compiler`; nothing of a runtime that reports none of it.
    pub(super) fn text(&self) -> Option<String> {
        let time = |nanoseconds: i64| duration(nanoseconds as f64 / 1e9);
        let some = |number: u64, one, many| (number > 0).then(|| counted(number, one, many));
        let waited = |wait: i64| format!(" ({} waited)", time(wait));
        let starved = |number: u64| format!(" ({} added for starvation)", count(number));
        let contentions = some(self.contentions, "contended lock", "contended locks");
        let starvations = Some(self.pool_starvations).filter(|number| *number > 0);
        let threads = |threads: u32| {
            let threads = counted(threads.into(), "thread", "threads");
            format!("{threads} in the pool{}", starvations.map(starved).unwrap_or_default())
        };
        let parts = [
            some(self.collections, "collection", "collections"),
            self.gc_pause_ns.map(|pause| format!("{} paused", time(pause))),
            self.jit_ns.map(|jit| format!("{} in the JIT compiler", time(jit))),
            some(self.exceptions, "exception", "exceptions"),
            contentions.map(|text| text + &self.contention_ns.map(waited).unwrap_or_default()),
            self.pool_threads.map(threads),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn add(sum: &mut Option<i64>, nanoseconds: i64) {
    *sum = Some(sum.unwrap_or(0).saturating_add(nanoseconds));
}
