//! Whether one thread limits a program.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::event::NO_ID;
use crate::trace::{ProcessId, RunnerId};

use super::rules::Kind;
use super::{Cost, Evidence, Finding, Search};

pub(super) static ONE_THREAD: Kind = Kind {
    id: "one-thread",
    title: "One thread limits the program",
    advice: "The program cannot be faster than this thread: make what it does cheaper, or divide it among others.",
};

/// The thread has at least this part of the CPU time of its process, and runs for this part of the time.
const OF_PROCESS: f64 = 0.90;
const BUSY: f64 = 0.85;
/// The process has at least this part of all CPU time, and this much of it in 100 ns.
const OF_ALL: f64 = 0.20;
const LEAST: i64 = 10_000_000;

impl Search<'_> {
    pub(super) fn threads(&self) -> Vec<Finding> {
        let trace = &self.profile.trace;
        if trace.machine.processors < 2 {
            return Vec::new();
        }
        let mut threads: FxHashMap<RunnerId, (Cost, (Ticks, Ticks))> = FxHashMap::default();
        let mut processes: FxHashMap<ProcessId, i64> = FxHashMap::default();
        for sample in &self.profile.samples {
            let (cost, span) =
                threads.entry(sample.runner).or_insert((Cost::default(), (sample.time, sample.time)));
            cost.add(sample);
            span.1 = sample.time;
            *processes.entry(self.profile.runner(sample).process).or_default() += sample.value;
        }
        let finding = |(id, (cost, span)): (RunnerId, (Cost, (Ticks, Ticks)))| {
            let runner = trace.runner(id);
            let process = trace.process(runner.process).filter(|process| process.pid != 0)?;
            let of_process = cost.value as f64 / *processes.get(&runner.process)? as f64;
            let busy = (cost.value as f64 / self.between(span.0, span.1).max(1) as f64).min(1.0);
            let is_it = runner.tid != NO_ID
                && of_process >= OF_PROCESS
                && busy >= BUSY
                && cost.value >= LEAST
                && self.share(cost.value) >= OF_ALL;
            let name =
                runner.thread.and_then(|thread| trace.thread(thread)).map(|thread| thread.name.clone());
            is_it.then(|| Finding {
                kind: &ONE_THREAD,
                program: self
                    .programs
                    .of_process(runner.process)
                    .and_then(|id| self.programs.get(id))
                    .cloned(),
                share: self.share(cost.value),
                evidence: vec![Evidence::Thread {
                    pid: process.pid,
                    tid: runner.tid,
                    name: name.unwrap_or_default(),
                    of_process,
                    busy,
                    span,
                }],
            })
        };
        threads.into_iter().filter_map(finding).collect()
    }
}
