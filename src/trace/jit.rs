//! Compilations of methods at run time: when each began and ended.
//!
//! A runtime says when it begins to compile a method, and, on the same thread, when the code is there. In between it may
//! compile others: class constructors, and what they call.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::event::Event;
use crate::events::clr::{Clr, Method, MethodFlags, MethodName, Phase};

use super::gc::NOBODY;
use super::processes::ProcessId;
use super::texts::Texts;

/// A compilation of a method at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compilation {
    /// The process.
    pub process: ProcessId,
    /// The system's id of the thread that compiled.
    pub tid: u32,
    /// Which runtime of the process, where that is known.
    pub instance: Option<u16>,
    /// The name of the method's type and its own, by their places in
    /// [`Managed::method_names`](super::Managed::method_names), where the recording has them.
    pub name: Option<(u32, u32)>,
    /// The size of its IL in bytes, where that is known.
    pub il_size: Option<u32>,
    /// The size of its code in bytes; `None` where the recording does not say that it was ready.
    pub native_size: Option<u32>,
    /// How it was compiled, where the code was ready.
    pub flags: Option<MethodFlags>,
    /// When it began, where the recording says so.
    pub start: Option<Ticks>,
    /// When its code was ready; `None` where the recording does not say.
    pub end: Option<Ticks>,
}

impl Compilation {
    /// From its begin to its code, with all that was compiled in between, where both are known.
    pub fn ticks(&self) -> Option<i64> {
        Some(self.end?.0.saturating_sub(self.start?.0))
    }
}

/// The id of a process, how many had it before, a thread, and the runtime's handle of a method.
type Key = (u32, u32, u32, u64);

/// Collects them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// With the id of the process and a moment of it.
    all: Vec<(u32, Ticks, Compilation)>,
    /// Those that go on, by their places.
    open: FxHashMap<Key, usize>,
    names: Texts,
}

impl Collector {
    /// Takes an event of a process whose id so many had before.
    pub(super) fn take(&mut self, clr: &Clr<'_>, event: &Event<'_>, life: u32) {
        let (pid, tid, time) = (event.pid, event.tid, event.time);
        match clr {
            Clr::JittingStarted(method) => {
                let one = Compilation {
                    process: NOBODY,
                    tid,
                    instance: method.instance,
                    name: Some(self.name(&method.name)),
                    il_size: Some(method.il_size),
                    native_size: None,
                    flags: None,
                    start: Some(time),
                    end: None,
                };
                self.open.insert((pid, life, tid, method.method), self.all.len());
                self.all.push((pid, time, one));
            }
            Clr::Method(method) if method.phase == Phase::Load && is_compiled(method) => {
                let begun = self.open.remove(&(pid, life, tid, method.id));
                if let Some((_, _, begun)) = begun.and_then(|place| self.all.get_mut(place)) {
                    begun.native_size = Some(method.size);
                    begun.flags = Some(method.flags);
                    begun.end = Some(time);
                    return;
                }
                let name = method.name.map(|name| self.name(&name));
                let one = Compilation {
                    process: NOBODY,
                    tid,
                    instance: method.instance,
                    name,
                    il_size: None,
                    native_size: Some(method.size),
                    flags: Some(method.flags),
                    start: None,
                    end: Some(time),
                };
                self.all.push((pid, time, one));
            }
            _ => {}
        }
    }

    fn name(&mut self, name: &MethodName<'_>) -> (u32, u32) {
        let mut text = |text| self.names.intern(text).index() as u32;
        (text(name.type_name), text(name.method))
    }

    /// All of them, and the names; `at` knows whose an id is at a moment.
    pub(super) fn finish(
        self,
        mut at: impl FnMut(u32, Ticks) -> ProcessId,
    ) -> (Vec<Compilation>, Vec<String>) {
        let all = self.all.into_iter();
        let all = all.map(|(pid, time, one)| Compilation { process: at(pid, time), ..one }).collect();
        (all, self.names.iter().map(str::to_owned).collect())
    }
}

/// The cold part of a method has an event of its own, beside that of the hot one.
fn is_compiled(method: &Method<'_>) -> bool {
    method.flags.is_jitted() && !method.flags.is_helper() && !method.flags.is_cold()
}
