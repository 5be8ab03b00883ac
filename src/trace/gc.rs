//! Garbage collections, when runtimes stood still, what was allocated, compilations, exceptions, locks and thread pools:
//! what runtimes report beside their code.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::bytes::Utf16;
use crate::clock::Ticks;
use crate::event::Event;
use crate::events::clr::{Clr, GcKind, GcReason, HeapStats};

use super::jit::{self, Compilation};
use super::processes::{ProcessId, Processes};
use super::texts::Texts;
use super::threading::{self, Contended, PoolChange};

/// What runtimes report beside their code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Managed {
    /// Collections, in the order in which they began.
    pub collections: Vec<Collection>,
    /// When runtimes stood still, in the order in which that began.
    pub pauses: Vec<Pause>,
    /// What was allocated, by runtime and type, in the order in which each came first.
    pub allocated: Vec<Allocated>,
    /// The full names of the types of what was allocated.
    pub allocated_types: Vec<String>,
    /// Compilations of methods, in the order in which they began.
    pub compilations: Vec<Compilation>,
    /// Names of types and methods that were compiled.
    pub method_names: Vec<String>,
    /// Exceptions that were thrown, in order of time.
    pub exceptions: Vec<Thrown>,
    /// The full names of the types of exceptions.
    pub exception_types: Vec<String>,
    /// Waits for locks that others held, in the order in which they began.
    pub contentions: Vec<Contended>,
    /// What thread pools did, in order of time.
    pub pool: Vec<PoolChange>,
}

/// A garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The process.
    pub process: ProcessId,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// Which collection of its runtime.
    pub number: u32,
    /// The oldest generation that it collects, where that is known.
    pub generation: Option<u32>,
    /// Why it began.
    pub reason: GcReason,
    /// Whether it runs beside the program, where that is known.
    pub kind: Option<GcKind>,
    /// When it began.
    pub start: Ticks,
    /// When it was over; `None` where the recording does not say.
    pub end: Option<Ticks>,
    /// What the heaps held after it, where the recording says so.
    pub heap: Option<HeapStats>,
}

/// What a runtime allocated of a type. It reports one allocation in about 100 KB, and this type stands for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocated {
    /// The process.
    pub process: ProcessId,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// The type: an index into [`Managed::allocated_types`]; `None` where the events do not say.
    pub type_name: Option<u32>,
    /// Bytes that were allocated.
    pub bytes: u64,
    /// Events that say so.
    pub ticks: u64,
}

/// A time in which the threads of a runtime stood still, or were being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// The process.
    pub process: ProcessId,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// True if it was for a collection; else the process ended, a debugger came, or the like.
    pub is_for_gc: bool,
    /// When the runtime began to stop its threads.
    pub start: Ticks,
    /// When they all stood still; `None` where the recording does not say.
    pub stopped: Option<Ticks>,
    /// When they all could run again; `None` where the recording does not say.
    pub end: Option<Ticks>,
}

impl Pause {
    /// How long it took, where that is known.
    pub fn ticks(&self) -> Option<i64> {
        Some(self.end?.0.saturating_sub(self.start.0))
    }

    /// How long of that it took to stop the threads, where that is known.
    pub fn suspend_ticks(&self) -> Option<i64> {
        Some(self.stopped?.0.saturating_sub(self.start.0))
    }
}

/// An exception that was thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thrown {
    /// The process.
    pub process: ProcessId,
    /// The system's id of the thread.
    pub tid: u32,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// When.
    pub time: Ticks,
    /// Its type: an index into [`Managed::exception_types`].
    pub type_name: u32,
}

/// A runtime: the id of its process, how many had that before, and its number there.
type Runtime = (u32, u32, Option<u16>);

/// Collects them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// How many processes with each id have begun.
    lives: FxHashMap<u32, u32>,
    collections: Vec<(u32, Collection)>,
    /// The last collection of each number that has begun, by its place.
    begun: FxHashMap<(Runtime, u32), usize>,
    pauses: Vec<(u32, Pause)>,
    /// The pause of each runtime that goes on, by its place.
    stopped: FxHashMap<Runtime, usize>,
    /// The collection of each runtime that began or ended last, by its place.
    last: FxHashMap<Runtime, usize>,
    /// With their runtime, whether they are of objects that were chosen by chance, and the time of the first event.
    allocated: Vec<(Runtime, bool, Ticks, Allocated)>,
    /// By their places.
    allocations: FxHashMap<(Runtime, bool, Option<u32>), usize>,
    allocated_types: Texts,
    /// Runtimes whose allocations are known by chosen objects.
    sampled: FxHashSet<Runtime>,
    jit: jit::Collector,
    exceptions: Vec<(u32, Thrown)>,
    types: Texts,
    threading: threading::Collector,
}

/// Nobody's, until all processes are known.
pub(super) const NOBODY: ProcessId = ProcessId(u32::MAX);

impl Collector {
    pub(super) fn take(&mut self, clr: &Clr<'_>, event: &Event<'_>) {
        let (pid, time) = (event.pid, event.time);
        let life = self.life(pid);
        match clr {
            Clr::GcStart(gc) => {
                let key = ((pid, life, gc.instance), gc.number);
                // Told once by each version of the event.
                let known = self.begun.get(&key).and_then(|place| self.collections.get(*place));
                if known.is_some_and(|(_, known)| known.end.is_none()) {
                    return;
                }
                self.begun.insert(key, self.collections.len());
                self.last.insert((pid, life, gc.instance), self.collections.len());
                let collection = Collection {
                    process: NOBODY,
                    instance: gc.instance,
                    number: gc.number,
                    generation: gc.generation,
                    reason: gc.reason,
                    kind: gc.kind,
                    start: time,
                    end: None,
                    heap: None,
                };
                self.collections.push((pid, collection));
            }
            Clr::GcEnd(gc) => {
                let known = self.begun.get(&((pid, life, gc.instance), gc.number)).copied();
                if let Some(place) = known
                    && let Some((_, known)) = self.collections.get_mut(place)
                {
                    known.end.get_or_insert(time);
                    self.last.insert((pid, life, gc.instance), place);
                }
            }
            Clr::HeapStats(stats) => {
                let last = self.last.get(&(pid, life, stats.instance));
                if let Some((_, last)) = last.and_then(|place| self.collections.get_mut(*place)) {
                    last.heap = Some(*stats);
                }
            }
            Clr::AllocationTick(tick) => {
                self.allocation(false, tick.instance, (tick.type_name, tick.bytes), pid, time);
            }
            Clr::AllocationSampled(sampled) => {
                let what = (Some(sampled.type_name), sampled.bytes());
                self.allocation(true, sampled.instance, what, pid, time);
            }
            Clr::Suspension(suspension) => {
                self.stopped.insert((pid, life, suspension.instance), self.pauses.len());
                let (instance, is_for_gc) = (suspension.instance, suspension.is_for_gc());
                let (process, stopped, end) = (NOBODY, None, None);
                let pause = Pause { process, instance, is_for_gc, start: time, stopped, end };
                self.pauses.push((pid, pause));
            }
            Clr::SuspensionEnd { instance } => {
                let stopped = self.stopped.get(&(pid, life, *instance));
                if let Some((_, pause)) = stopped.and_then(|place| self.pauses.get_mut(*place)) {
                    pause.stopped.get_or_insert(time);
                }
            }
            Clr::Resumption { instance } => {
                let stopped = self.stopped.remove(&(pid, life, *instance));
                if let Some((_, pause)) = stopped.and_then(|place| self.pauses.get_mut(place)) {
                    pause.end = Some(time);
                }
            }
            Clr::Exception(exception) => {
                let type_name = self.types.intern(exception.type_name).index() as u32;
                let (tid, instance) = (event.tid, exception.instance);
                let thrown = Thrown { process: NOBODY, tid, instance, time, type_name };
                self.exceptions.push((pid, thrown));
            }
            Clr::JittingStarted(_) | Clr::Method(_) => self.jit.take(clr, event, life),
            Clr::Contention(_) | Clr::ContentionEnd(_) | Clr::PoolThreads(_) => {
                self.threading.take(clr, event, life);
            }
            _ => {}
        }
    }

    /// Counts an allocation of a type, so many bytes. Where a runtime has both kinds of events, those of chosen objects
    /// count alone.
    fn allocation(
        &mut self,
        is_sampled: bool,
        instance: Option<u16>,
        (type_name, bytes): (Option<Utf16<'_>>, u64),
        pid: u32,
        time: Ticks,
    ) {
        let type_name = type_name.map(|name| self.allocated_types.intern(name).index() as u32);
        let runtime = (pid, self.life(pid), instance);
        if is_sampled {
            self.sampled.insert(runtime);
        }
        let key = (runtime, is_sampled, type_name);
        let place = *self.allocations.entry(key).or_insert(self.allocated.len());
        if place == self.allocated.len() {
            let new = Allocated { process: NOBODY, instance, type_name, bytes: 0, ticks: 0 };
            self.allocated.push((runtime, is_sampled, time, new));
        }
        if let Some((.., known)) = self.allocated.get_mut(place) {
            known.bytes = known.bytes.saturating_add(bytes);
            known.ticks += 1;
        }
    }

    /// A process began: what is known of its id is another's.
    pub(super) fn process_began(&mut self, pid: u32) {
        *self.lives.entry(pid).or_default() += 1;
    }

    /// How many processes with an id have begun.
    fn life(&self, pid: u32) -> u32 {
        self.lives.get(&pid).copied().unwrap_or(0)
    }

    pub(super) fn finish(self, processes: &mut Processes) -> Managed {
        let mut at = |pid: u32, time: Ticks| processes.at(pid, time);
        let collections = self.collections.into_iter();
        let pauses = self.pauses.into_iter();
        let exceptions = self.exceptions.into_iter();
        let sampled = self.sampled;
        let allocated = self.allocated.into_iter();
        let allocated =
            allocated.filter(|(runtime, is_sampled, ..)| *is_sampled == sampled.contains(runtime));
        let (compilations, method_names) = self.jit.finish(&mut at);
        let (contentions, pool) = self.threading.finish(&mut at);
        Managed {
            collections: collections
                .map(|(pid, gc)| Collection { process: at(pid, gc.start), ..gc })
                .collect(),
            pauses: pauses.map(|(pid, pause)| Pause { process: at(pid, pause.start), ..pause }).collect(),
            allocated: allocated
                .map(|((pid, ..), _, time, one)| Allocated { process: at(pid, time), ..one })
                .collect(),
            allocated_types: self.allocated_types.iter().map(str::to_owned).collect(),
            compilations,
            method_names,
            exceptions: exceptions.map(|(pid, one)| Thrown { process: at(pid, one.time), ..one }).collect(),
            exception_types: self.types.iter().map(str::to_owned).collect(),
            contentions,
            pool,
        }
    }
}
