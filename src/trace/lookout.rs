//! What somebody waits for while a recording goes on: long pauses, and processes that end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::event::{Event, Kind, Ticks};
use crate::events::clr::Clr;
use crate::events::kernel::{Kernel, Phase};
use crate::events::{Decoded, decode};
use crate::guids::{CLR, PROCESS};
use crate::sink::{Inventory, Sink};

/// Takes events for a sink, and notes some on the way.
#[derive(Debug)]
pub struct Lookout<S> {
    sink: S,
    sights: Sights,
    /// Since when runtimes stand still for a collection, by process and number.
    stopped: FxHashMap<(u32, Option<u16>), Ticks>,
}

/// What was seen so far, for another thread.
#[derive(Clone, Debug, Default)]
pub struct Sights(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    pauses: FxHashMap<u32, i64>,
    ended: Vec<Ended>,
}

/// A process that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub pid: u32,
    /// The executable's file name.
    pub name: String,
    /// Its exit status.
    pub status: i32,
}

/// Ends that nobody has looked at are kept up to this number.
const MOST_ENDS: usize = 10_000;

// Events of the runtime by their ids.
const RESUMPTION: u16 = 3;
const SUSPENSION: u16 = 9;

impl Sights {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest pause for a collection of each process that was over since the last call, by process id, in ticks.
    pub fn longest_pauses(&self) -> FxHashMap<u32, i64> {
        std::mem::take(&mut self.lock().pauses)
    }

    /// The processes that ended since the last call.
    pub fn ended(&self) -> Vec<Ended> {
        std::mem::take(&mut self.lock().ended)
    }
}

impl<S> Lookout<S> {
    /// Takes events for `sink`.
    pub fn new(sink: S, sights: Sights) -> Self {
        Lookout { sink, sights, stopped: FxHashMap::default() }
    }

    /// The sink.
    pub fn into_inner(self) -> S {
        self.sink
    }

    fn look(&mut self, event: &Event<'_>) {
        let is_pause = event.provider == CLR
            && matches!(event.kind, Kind::Manifest(SUSPENSION | RESUMPTION) | Kind::Classic);
        if !is_pause && event.provider != PROCESS {
            return;
        }
        match decode(event) {
            Ok(Decoded::Clr(Clr::Suspension(suspension))) if suspension.is_for_gc() => {
                self.stopped.insert((event.pid, suspension.instance), event.time);
            }
            Ok(Decoded::Clr(Clr::Resumption { instance })) => {
                if let Some(since) = self.stopped.remove(&(event.pid, instance)) {
                    let ticks = event.time.0.saturating_sub(since.0);
                    let mut seen = self.sights.lock();
                    let longest = seen.pauses.entry(event.pid).or_default();
                    *longest = ticks.max(*longest);
                }
            }
            Ok(Decoded::Kernel(Kernel::Process(process))) if process.phase == Phase::End => {
                let mut seen = self.sights.lock();
                if seen.ended.len() < MOST_ENDS {
                    let name = process.image_file_name.to_string();
                    seen.ended.push(Ended { pid: process.pid, name, status: process.exit_status });
                }
            }
            _ => {}
        }
    }
}

impl<S: Sink> Sink for Lookout<S> {
    fn event(&mut self, event: &Event<'_>) {
        self.look(event);
        self.sink.event(event);
    }

    fn inventory(&mut self, inventory: Inventory) {
        self.sink.inventory(inventory);
    }
}
