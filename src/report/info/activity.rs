//! What .NET runtimes did beside the code of a process.

use serde::Serialize;

use crate::events::clr::PoolReason;
use crate::report::duration;
use crate::report::text::{count, counted};
use crate::trace::{ProcessId, Trace};

/// What the runtimes of a process did; times are `null` where the recording does not say.
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

impl Activity {
    /// That of every process, by their ids.
    pub(super) fn of_all(trace: &Trace) -> Vec<Activity> {
        let mut all = vec![Activity::default(); trace.processes.len()];
        let mut of = |id: ProcessId, add: &mut dyn FnMut(&mut Activity)| {
            if let Some(activity) = all.get_mut(id.0 as usize) {
                add(activity);
            }
        };
        let ns = |ticks: i64| trace.clock.nanoseconds_in(ticks);
        let managed = &trace.managed;
        for collection in &managed.collections {
            of(collection.process, &mut |activity| activity.collections += 1);
        }
        for (id, spans) in managed.gc_pauses() {
            of(id, &mut |activity| activity.gc_pause_ns = Some(ns(spans.ticks())));
        }
        for ((id, _), spans) in managed.jit_times() {
            of(id, &mut |activity| add(&mut activity.jit_ns, ns(spans.ticks())));
        }
        for thrown in &managed.exceptions {
            of(thrown.process, &mut |activity| activity.exceptions += 1);
        }
        for contended in managed.contentions.iter().filter(|contended| !contended.is_native) {
            of(contended.process, &mut |activity| {
                activity.contentions += 1;
                if let Some(ticks) = contended.ticks() {
                    add(&mut activity.contention_ns, ns(ticks));
                }
            });
        }
        for change in &managed.pool {
            of(change.process, &mut |activity| {
                activity.pool_threads = activity.pool_threads.max(Some(change.threads));
                activity.pool_starvations += u64::from(change.reason == Some(PoolReason::Starvation));
            });
        }
        all
    }

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
