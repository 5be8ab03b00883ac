//! Events that somebody chose by what they are, to be kept with their stacks.

use rustc_hash::FxHashSet;

use crate::event::{Event, Kind};
use crate::guid::Guid;
use crate::guids::CLR;

/// What an event is: its provider, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKey {
    /// A classic event, by its opcode.
    Classic(Guid, u8),
    /// An event of a manifest or of TraceLogging, by its id.
    Manifest(Guid, u16),
}

impl EventKey {
    /// That of an event; `None` for WPP messages and headers of a kind that is not known.
    pub fn of(event: &Event<'_>) -> Option<EventKey> {
        match event.kind {
            Kind::Classic => Some(EventKey::Classic(event.provider, event.opcode)),
            Kind::Manifest(id) => Some(EventKey::Manifest(event.provider, id)),
            Kind::Message(_) | Kind::Unknown(_) => None,
        }
    }
}

/// Which events are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSet {
    keys: FxHashSet<EventKey>,
    /// Events of TraceLogging share ids: these by the names that they carry, too.
    named: FxHashSet<(EventKey, String)>,
}

impl EventSet {
    /// What runtimes report of allocations: AllocationTick and AllocationSampled, one in about 100 KB.
    pub fn allocations() -> EventSet {
        let keys =
            [ALLOCATION_TICK, ALLOCATION_SAMPLED].map(|id| EventKey::Manifest(CLR, id)).into_iter().collect();
        EventSet { keys, named: FxHashSet::default() }
    }

    /// Adds the events of a kind; those of TraceLogging only if they carry this name.
    pub fn insert(&mut self, key: EventKey, name: Option<&str>) {
        match name {
            Some(name) => {
                self.named.insert((key, name.to_owned()));
            }
            None => {
                self.keys.insert(key);
            }
        }
    }

    /// True if none is kept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.named.is_empty()
    }

    /// Whether it has an event.
    #[inline]
    pub fn has(&self, event: &Event<'_>) -> bool {
        if self.is_empty() {
            return false;
        }
        let Some(key) = EventKey::of(event) else { return false };
        self.keys.contains(&key)
            || !self.named.is_empty()
                && event.tracelogging_name().is_some_and(|name| self.named.contains(&(key, name)))
    }

    /// Whether it has a classic event.
    pub(super) fn has_classic(&self, task: Guid, opcode: u8) -> bool {
        self.keys.contains(&EventKey::Classic(task, opcode))
    }
}

const ALLOCATION_TICK: u16 = 10;
const ALLOCATION_SAMPLED: u16 = 303;

/// What is kept of a chosen event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChosenEvent {
    /// Bytes that were allocated, of an event that reports that; else 0.
    pub bytes: u64,
    /// The type of what was allocated; `None` where the event does not say.
    pub of: Option<AllocatedType>,
}

/// The type of what was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedType {
    /// An index into [`Kept::types`](super::Kept::types).
    pub name: u32,
    /// True if the object was chosen by chance, which says more than every 100,000th byte.
    pub is_sampled: bool,
}
