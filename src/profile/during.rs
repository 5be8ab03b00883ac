//! Samples by what the .NET runtime of their process did at that moment.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::trace::{ProcessId, Runner, RunnerId, Spans, Trace};

/// What the .NET runtime of a process does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// The process stands still for a garbage collection.
    Gc,
    /// It does not.
    OutsideGc,
    /// The thread compiles a method.
    Jit,
}

/// The moments of a trace that are meant.
pub(super) struct Moments<'t> {
    runners: &'t [Runner],
    during: During,
    gc: FxHashMap<ProcessId, Spans>,
    jit: FxHashMap<(ProcessId, u32), Spans>,
}

impl<'t> Moments<'t> {
    pub(super) fn new(during: During, trace: &'t Trace) -> Moments<'t> {
        let (mut gc, mut jit) = (FxHashMap::default(), FxHashMap::default());
        match during {
            During::Gc | During::OutsideGc => gc = trace.managed.gc_pauses(),
            During::Jit => jit = trace.managed.jit_times(),
        }
        Moments { runners: &trace.runners, during, gc, jit }
    }

    /// True if a moment of a thread is one of them.
    pub(super) fn has(&self, runner: RunnerId, time: Ticks) -> bool {
        let Some(runner) = self.runners.get(runner.0 as usize) else { return false };
        let in_gc = || self.gc.get(&runner.process).is_some_and(|pauses| pauses.contains(time));
        match self.during {
            During::Gc => in_gc(),
            During::OutsideGc => !in_gc(),
            During::Jit => {
                self.jit.get(&(runner.process, runner.tid)).is_some_and(|times| times.contains(time))
            }
        }
    }
}
