//! What threads waited for while they did not run, where the recording has context switches.

use rustc_hash::FxHashSet;

use crate::clock::Ticks;
use crate::trace::waits::{Causes, State, ThreadTimes, Waits};

use super::programs::Program;
use super::rules::Kind;
use super::{Evidence, Finding, LEAST_SAMPLES, LEAST_SHARE, Search, Waited};

static NO_PROCESSOR: Kind = Kind {
    id: "processor-waits",
    title: "Threads could run, and no processor was free",
    advice: "Look at what else used the processors: other programs, more busy threads than processors, or threads that are \
             bound to one processor.",
};

static DISKS: Kind = Kind {
    id: "disk-waits",
    title: "Threads wait for disks",
    advice: "Look at which files they wait for. Read ahead or in larger parts, cache, and keep synchronous I/O out of threads \
             that others wait for.",
};

pub(super) static KINDS: [&Kind; 2] = [&NO_PROCESSOR, &DISKS];

/// Ready time, of all time in which the threads of a program could run; and so much of it, in 100 ns.
const READY: (f64, i64) = (0.20, 1_000_000);
/// Waits for disks, and their time, of the time that passed.
const DISK: (u64, f64) = (20, 0.20);

/// Waits of a program that have something in common.
#[derive(Default)]
struct Sum {
    count: u64,
    threads: FxHashSet<(u32, u32)>,
    total: i64,
    longest: i64,
}

impl Sum {
    fn add(&mut self, thread: &ThreadTimes, time: i64) {
        self.count += 1;
        self.threads.insert((thread.process.0, thread.tid));
        self.total = self.total.saturating_add(time);
        self.longest = self.longest.max(time);
    }

    fn evidence(&self, what: Waited, of: i64) -> Evidence {
        let threads = self.threads.len() as u64;
        Evidence::Waits { what, count: self.count, threads, total: self.total, longest: self.longest, of }
    }
}

impl Search<'_> {
    pub(super) fn waits(&self) -> Vec<Finding> {
        let Some(waits) = Waits::new(&self.profile.trace) else { return Vec::new() };
        let causes = Causes::new(&self.profile.trace);
        let programs = self.programs.all.iter();
        let matters = programs
            .filter(|program| program.samples >= LEAST_SAMPLES && self.share(program.value) >= LEAST_SHARE);
        matters.flat_map(|program| self.waits_of(program, &waits, &causes)).flatten().collect()
    }

    fn waits_of(&self, program: &Program, waits: &Waits, causes: &Causes<'_>) -> [Option<Finding>; 2] {
        let (from, to) = program.span;
        let length = |start: Ticks, end: Ticks| self.between(start.max(from), end.min(to)).max(0);
        let (mut ready, mut disks, mut running) = (Sum::default(), Sum::default(), 0_i64);
        let is_of = |thread: &&ThreadTimes| program.processes.binary_search(&thread.process).is_ok();
        for thread in waits.threads.iter().filter(is_of) {
            for span in &thread.spans {
                match span.state {
                    State::Running => running = running.saturating_add(length(span.start, span.end)),
                    State::Ready if length(span.start, span.end) > 0 => {
                        ready.add(thread, length(span.start, span.end));
                    }
                    _ => {}
                }
            }
            for wait in thread.waits() {
                let time = length(wait.blocked.start, wait.blocked.end);
                if time > 0 && causes.of(thread, &wait).is_some() {
                    disks.add(thread, time);
                }
            }
        }
        let finding = |kind, share: f64, evidence| Finding {
            kind,
            program: Some(program.clone()),
            share: share.min(1.0) * self.share(program.value),
            evidence: vec![evidence],
        };
        let could_run = running.saturating_add(ready.total);
        let share = ready.total as f64 / could_run.max(1) as f64;
        let no_processor = (share >= READY.0 && ready.total >= READY.1)
            .then(|| finding(&NO_PROCESSOR, share, ready.evidence(Waited::Processor, could_run)));
        let share = disks.total as f64 / program.time.max(1) as f64;
        let disks = (disks.count >= DISK.0 && share >= DISK.1)
            .then(|| finding(&DISKS, share, disks.evidence(Waited::Disk, program.time)));
        [no_processor, disks]
    }
}
