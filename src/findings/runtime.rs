//! What .NET runtimes do beside the program's code: collections, compilation, exceptions, locks, the thread pool.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::events::clr::PoolReason;
use crate::trace::code::BodyKind;
use crate::trace::{Collection, Contended, Pause, PoolChange};

use super::programs::{Program, ProgramId};
use super::rules::{self, Kind};
use super::{Evidence, Finding, Search, Waited};

static GC: Kind = Kind {
    id: "gc",
    title: "Garbage collection takes much of the time",
    advice: "Allocate less where the program allocates most: pool or reuse buffers, avoid boxing and short-lived arrays. \
             Server or concurrent collection may shorten the pauses.",
};

static INDUCED_GC: Kind = Kind {
    id: "induced-gc",
    title: "The program calls GC.Collect often",
    advice: "Leave it to the runtime when to collect: each call collects all generations, unless it names one, and all \
             threads wait.",
};

static JIT: Kind = Kind {
    id: "jit",
    title: "Compiling methods at run time takes much of the CPU time",
    advice: "Publish with ReadyToRun (or use NGEN on .NET Framework), and leave tiered compilation on. In a long-running \
             program, look for code that is generated again and again: dynamic methods, expressions, serializers.",
};

static EXCEPTIONS: Kind = Kind {
    id: "exceptions",
    title: "Exceptions are thrown often",
    advice: "Test for what is expected (TryParse, TryGetValue), and throw for what is not: each exception walks the stack \
             twice.",
};

static LOCK_CONTENTION: Kind = Kind {
    id: "lock-contention",
    title: "Threads wait for locks that others hold",
    advice: "Hold locks for shorter times: move slow work out of them, use one lock for each part of the data, or collections \
             made for many threads.",
};

static POOL_STARVATION: Kind = Kind {
    id: "thread-pool-starvation",
    title: "Work waits for threads of the pool",
    advice: "Look for tasks that block a thread of the pool: Task.Wait, Result, Sleep, synchronous I/O, locks. The pool adds \
             about one thread a second, or two; await instead.",
};

pub(super) static KINDS: [&Kind; 6] =
    [&GC, &INDUCED_GC, &JIT, &EXCEPTIONS, &LOCK_CONTENTION, &POOL_STARVATION];

/// From these shares of its time on, what a runtime does is worth knowing.
const GC_PAUSES: f64 = 0.05;
const GC_CPU: f64 = 0.10;
const JIT_CPU: f64 = 0.10;
const EXCEPTION_CPU: f64 = 0.05;
/// Collections that the program asked for: so many, and so many a second.
const INDUCED: (u64, f64) = (10, 1.0);
/// The same of exceptions.
const THROWN: (u64, f64) = (200, 100.0);
/// Waits for locks, and the time that all threads together waited for them, of the time that passed.
const CONTENDED: (u64, f64) = (20, 0.20);
/// Threads that a pool added because work waited.
const STARVED: u64 = 3;

/// Types of exceptions that are shown.
const TYPES: usize = 3;

/// What the trace knows of the runtimes of a program, while it had samples.
struct Managed<'s> {
    search: &'s Search<'s>,
    program: &'s Program,
    reported: &'s Reported,
    /// From the first to the last sample, in 100 ns.
    length: i64,
}

/// What the runtimes of a program reported while it had samples.
#[derive(Clone, Debug, Default)]
struct Reported {
    pauses: Vec<Pause>,
    collections: Vec<Collection>,
    /// Exceptions by their type.
    thrown: FxHashMap<u32, u64>,
    /// Waits for locks of the program.
    contentions: Vec<Contended>,
    /// When the thread pool added a thread because work waited.
    starved: Vec<PoolChange>,
    /// Bodies that were compiled.
    compiled: u64,
}

impl Search<'_> {
    pub(super) fn runtimes(&self) -> Vec<Finding> {
        let reported = self.reported();
        let programs = self.programs.all.iter().enumerate().zip(&reported);
        programs.flat_map(|((id, program), reported)| self.runtime(id, program, reported)).flatten().collect()
    }

    /// By program.
    fn reported(&self) -> Vec<Reported> {
        let trace = &self.profile.trace;
        let mut all = vec![Reported::default(); self.programs.all.len()];
        let place = |process, time: Ticks| {
            let id = self.programs.of_process(process)?;
            let (from, to) = self.programs.get(id)?.span;
            (from..=to).contains(&time).then_some(id)
        };
        let mut add = |process, time, to: &mut dyn FnMut(&mut Reported)| {
            if let Some(reported) = place(process, time).and_then(|id| all.get_mut(id)) {
                to(reported);
            }
        };
        for pause in trace.managed.pauses.iter().filter(|pause| pause.is_for_gc) {
            add(pause.process, pause.start, &mut |reported| reported.pauses.push(*pause));
        }
        for gc in &trace.managed.collections {
            add(gc.process, gc.start, &mut |reported| reported.collections.push(*gc));
        }
        for thrown in &trace.managed.exceptions {
            add(thrown.process, thrown.time, &mut |reported| {
                *reported.thrown.entry(thrown.type_name).or_default() += 1;
            });
        }
        for contended in trace.managed.contentions.iter().filter(|contended| !contended.is_native) {
            add(contended.process, contended.start, &mut |reported| reported.contentions.push(*contended));
        }
        let starved = |change: &&PoolChange| change.reason == Some(PoolReason::Starvation);
        for change in trace.managed.pool.iter().filter(starved) {
            add(change.process, change.time, &mut |reported| reported.starved.push(*change));
        }
        for body in trace.code.bodies() {
            let is_compiled =
                matches!(body.kind, BodyKind::Jitted | BodyKind::Dynamic) && !body.flags.is_cold();
            if let Some(loaded) = body.loaded.filter(|_| is_compiled) {
                add(body.process, loaded, &mut |reported| reported.compiled += 1);
            }
        }
        all
    }

    fn runtime(&self, id: ProgramId, program: &Program, reported: &Reported) -> [Option<Finding>; 6] {
        let managed = Managed { search: self, program, reported, length: program.time.max(1) };
        [
            managed.gc(id),
            managed.induced(),
            managed.jit(id),
            managed.exceptions(id),
            managed.contention(),
            managed.starvation(),
        ]
    }

    /// In 100 ns.
    pub(super) fn between(&self, from: Ticks, to: Ticks) -> i64 {
        let clock = &self.profile.trace.clock;
        clock.filetime(to).saturating_sub(clock.filetime(from))
    }
}

impl Managed<'_> {
    fn finding(&self, kind: &'static Kind, share: f64, evidence: Vec<Evidence>) -> Finding {
        Finding { kind, program: Some(self.program.clone()), share, evidence }
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.length as f64 / 1e7)
    }

    fn gc(&self, id: ProgramId) -> Option<Finding> {
        let cost = self.search.costs.of(rules::GC, id);
        let (count, total, longest) = self.pauses();
        // Several processes may stand still at once; each has a time of its own.
        let of = self.length;
        let paused = total as f64 / of as f64;
        let of_cpu = cost.value as f64 / self.program.value.max(1) as f64;
        let costs = of_cpu >= GC_CPU && self.search.matters(cost);
        let pauses = paused >= GC_PAUSES && self.is_large();
        if !costs && !pauses {
            return None;
        }
        let mut evidence = Vec::new();
        if cost.samples > 0 {
            evidence.push(Evidence::Cpu { samples: cost.samples, value: cost.value, of: self.program.value });
        }
        if count > 0 {
            evidence.push(Evidence::Pauses { count, total, longest, of });
        }
        evidence.extend(self.collections());
        let of_program = self.search.share(self.program.value);
        Some(self.finding(&GC, of_cpu.max(paused) * of_program, evidence))
    }

    /// True for a program with a part in the profile that matters.
    fn is_large(&self) -> bool {
        self.program.samples >= super::LEAST_SAMPLES && self.search.share(self.program.value) >= 0.05
    }

    /// How many pauses, all together, and the longest, in 100 ns.
    fn pauses(&self) -> (u64, i64, i64) {
        let length = |pause: &Pause| Some(self.search.between(pause.start, pause.end?).max(0));
        self.reported.pauses.iter().filter_map(length).fold(
            (0, 0, 0),
            |(count, total, longest): (u64, i64, i64), pause| {
                (count + 1, total.saturating_add(pause), longest.max(pause))
            },
        )
    }

    fn collections(&self) -> Option<Evidence> {
        let (mut count, mut generations, mut reasons) = (0, BTreeMap::default(), BTreeMap::default());
        for gc in &self.reported.collections {
            count += 1;
            if let Some(generation) = gc.generation {
                *generations.entry(generation).or_default() += 1;
            }
            *reasons.entry(gc.reason).or_default() += 1;
        }
        (count > 0).then_some(Evidence::Collections { count, generations, reasons })
    }

    fn induced(&self) -> Option<Finding> {
        let induced: Vec<&Collection> =
            self.reported.collections.iter().filter(|gc| gc.reason.is_induced()).collect();
        let count = induced.len() as u64;
        if count < INDUCED.0 || self.per_second(count) < INDUCED.1 || !self.is_large() {
            return None;
        }
        let took = induced.iter().filter_map(|gc| Some(self.search.between(gc.start, gc.end?).max(0)));
        let share = took.sum::<i64>() as f64 / self.length as f64 * self.search.share(self.program.value);
        Some(self.finding(&INDUCED_GC, share, self.collections().into_iter().collect()))
    }

    fn jit(&self, id: ProgramId) -> Option<Finding> {
        let cost = self.search.costs.of(rules::JIT, id);
        let of_cpu = cost.value as f64 / self.program.value.max(1) as f64;
        if of_cpu < JIT_CPU || !self.search.matters(cost) {
            return None;
        }
        let mut evidence = self.search.evidence(rules::JIT, Some(id), cost, self.program.value);
        let methods = self.reported.compiled;
        if methods > 0 {
            evidence.insert(1, Evidence::Compiled { methods });
        }
        Some(self.finding(&JIT, self.search.share(cost.value), evidence))
    }

    fn exceptions(&self, id: ProgramId) -> Option<Finding> {
        let managed = &self.search.profile.trace.managed;
        let types = &self.reported.thrown;
        let count: u64 = types.values().sum();
        let cost = self.search.costs.of(rules::EXCEPTIONS, id);
        let of_cpu = cost.value as f64 / self.program.value.max(1) as f64;
        let costs = of_cpu >= EXCEPTION_CPU && self.search.matters(cost);
        let many = count >= THROWN.0 && self.per_second(count) >= THROWN.1 && self.is_large();
        if !costs && !many {
            return None;
        }
        let mut evidence = Vec::new();
        if cost.samples > 0 {
            evidence = self.search.evidence(rules::EXCEPTIONS, Some(id), cost, self.program.value);
        }
        if count > 0 {
            let name = |id: &u32| managed.exception_types.get(*id as usize).cloned().unwrap_or_default();
            let mut types: Vec<(String, u64)> = types.iter().map(|(id, count)| (name(id), *count)).collect();
            types.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
            types.truncate(TYPES);
            evidence.insert(0, Evidence::Exceptions { count, per_second: self.per_second(count), types });
        }
        Some(self.finding(&EXCEPTIONS, self.search.share(cost.value), evidence))
    }

    fn contention(&self) -> Option<Finding> {
        let waits = &self.reported.contentions;
        let length = |wait: &Contended| Some(self.search.between(wait.start, wait.end?).max(0));
        let total = waits.iter().filter_map(length).fold(0, i64::saturating_add);
        let longest = waits.iter().filter_map(length).max().unwrap_or(0);
        let (count, share) = (waits.len() as u64, total as f64 / self.length as f64);
        if count < CONTENDED.0 || share < CONTENDED.1 || !self.is_large() {
            return None;
        }
        let mut threads: Vec<u32> = waits.iter().map(|wait| wait.tid).collect();
        threads.sort_unstable();
        threads.dedup();
        let threads = threads.len() as u64;
        let evidence =
            vec![Evidence::Waits { what: Waited::Lock, count, threads, total, longest, of: self.length }];
        Some(self.finding(&LOCK_CONTENTION, share.min(1.0) * self.search.share(self.program.value), evidence))
    }

    /// A program whose work waits has little CPU time, so it may be small.
    fn starvation(&self) -> Option<Finding> {
        let starved = &self.reported.starved;
        let (first, last) = (starved.first()?, starved.last()?);
        let count = starved.len() as u64;
        if count < STARVED {
            return None;
        }
        let span = self.search.between(first.time, last.time).max(0);
        let most = starved.iter().map(|change| change.threads).max().unwrap_or(0);
        let share = span as f64 / self.length as f64 * self.search.share(self.program.value);
        let evidence = vec![Evidence::Starved { count, most, span }];
        Some(self.finding(&POOL_STARVATION, share.min(1.0), evidence))
    }
}
