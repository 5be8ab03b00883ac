//! What was mapped at an address of a process at a moment.
//!
//! Mappings of one process may overlap in both directions: bases are used again over time, and unloads get lost. So
//! the addresses of a process are cut at every border, and a tree over the pieces holds each mapping in the few nodes
//! that make up its range. All mappings of a node cover all of its addresses; what is left there is time, as a list of
//! changes. A look-up goes from the address's piece up to the root and picks the moment in each node: logarithmic,
//! however many mappings overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::event::Ticks;

use super::images::ModuleId;
use super::processes::ProcessId;

/// A module mapped in a process for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The process; the System process for kernel modules, which serve all.
    pub process: ProcessId,
    /// The file.
    pub module: ModuleId,
    /// Where it starts.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was mapped; `None` if before the recording.
    pub start: Option<Ticks>,
    /// When it was unmapped; `None` if not within the recording.
    pub end: Option<Ticks>,
}

impl Mapping {
    /// True if it was there at `time`.
    pub fn covers(&self, time: Ticks) -> bool {
        self.start.is_none_or(|start| start <= time) && self.end.is_none_or(|end| time < end)
    }
}

/// All mappings, by process, address and time.
#[derive(Debug, Default)]
pub struct Mappings {
    /// By process, base and start.
    all: Vec<Mapping>,
    spaces: FxHashMap<ProcessId, Space>,
    system: ProcessId,
}

impl Default for ProcessId {
    /// The first process.
    fn default() -> Self {
        ProcessId(0)
    }
}

impl Mappings {
    pub(super) fn new(mut all: Vec<Mapping>, system: ProcessId) -> Self {
        all.sort_by_key(|mapping| (mapping.process, mapping.base, mapping.start));
        let mut spaces = FxHashMap::default();
        let mut first = 0;
        for of_process in all.chunk_by(|a, b| a.process == b.process) {
            if let Some(mapping) = of_process.first() {
                spaces.insert(mapping.process, Space::new(of_process, first));
            }
            first += of_process.len() as u32;
        }
        Mappings { all, spaces, system }
    }

    /// Every mapping.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.all.iter()
    }

    /// The mapping at `index`.
    pub fn get(&self, index: usize) -> Option<&Mapping> {
        self.all.get(index)
    }

    /// What was mapped at `address` of `process` at `time`. Of several, the latest.
    ///
    /// `kernel` says that the address is in the kernel's half, whose modules all processes share.
    pub fn at(&self, process: ProcessId, address: u64, kernel: bool, time: Ticks) -> Located {
        let process = if kernel { self.system } else { process };
        let mut located = Located { mapping: None, from: Ticks(i64::MIN), until: Ticks(i64::MAX) };
        let mut latest = None;
        let Some(space) = self.spaces.get(&process) else { return located };
        for changes in space.timelines(address) {
            let later = changes.partition_point(|change| change.time <= time);
            if let Some(change) = changes.get(later) {
                located.until = located.until.min(change.time);
            }
            let Some(now) = later.checked_sub(1).and_then(|index| changes.get(index)) else { continue };
            located.from = located.from.max(now.time);
            if now.mapped > latest {
                latest = now.mapped;
            }
        }
        located.mapping = latest.map(|(_, index)| index as usize);
        located
    }
}

/// What is at an address, and for how long that answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The index of the mapping; `None` for an address outside all images.
    pub mapping: Option<usize>,
    /// The answer is the same from here,
    pub from: Ticks,
    /// until just before here.
    pub until: Ticks,
}

impl Located {
    /// True if the answer holds at `time` too.
    pub fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

/// A mapping by its start and its index: the greater one counts.
type Ranked = (Option<Ticks>, u32);

/// From `time` on, this is what is mapped.
#[derive(Clone, Copy, Debug)]
struct Change {
    time: Ticks,
    mapped: Option<Ranked>,
}

/// The addresses of one process.
#[derive(Debug)]
struct Space {
    /// Where mappings begin and end: piece `i` goes from border `i` to the next one.
    borders: Vec<u64>,
    /// A binary tree in an array: node `n` has the children `2n` and `2n + 1`, the pieces are its second half. Of each
    /// node, where its changes begin in `changes`; they end where those of the next node begin.
    nodes: Vec<u32>,
    changes: Vec<Change>,
}

impl Space {
    /// The space of `mappings`, the first of which has the index `first`.
    fn new(mappings: &[Mapping], first: u32) -> Space {
        let end = |mapping: &Mapping| mapping.base.saturating_add(mapping.size);
        let mut borders: Vec<u64> =
            mappings.iter().flat_map(|mapping| [mapping.base, end(mapping)]).collect();
        borders.sort_unstable();
        borders.dedup();
        let pieces = borders.len().saturating_sub(1);
        let piece = |address: u64| borders.partition_point(|border| *border < address);
        // Which node holds which mapping.
        let mut held: Vec<(u32, u32)> = Vec::with_capacity(mappings.len());
        for (index, mapping) in (0..).zip(mappings) {
            let (mut left, mut right) = (pieces + piece(mapping.base), pieces + piece(end(mapping)));
            while left < right {
                if left % 2 == 1 {
                    held.push((left as u32, index));
                    left += 1;
                }
                if right % 2 == 1 {
                    right -= 1;
                    held.push((right as u32, index));
                }
                (left, right) = (left / 2, right / 2);
            }
        }
        held.sort_unstable();
        let mut space = Space { borders, nodes: Vec::with_capacity(2 * pieces + 1), changes: Vec::new() };
        for of_node in held.chunk_by(|a, b| a.0 == b.0) {
            let node = of_node.first().map_or(0, |(node, _)| *node as usize);
            space.nodes.resize(node + 1, space.changes.len() as u32);
            let ranked = |(_, index): &(u32, u32)| {
                let mapping = mappings.get(*index as usize)?;
                Some(((mapping.start, first + index), mapping.end))
            };
            add_changes(of_node.iter().filter_map(ranked).collect(), &mut space.changes);
        }
        space.nodes.resize(2 * pieces + 1, space.changes.len() as u32);
        space
    }

    /// The changes of every node whose range holds `address`.
    fn timelines(&self, address: u64) -> impl Iterator<Item = &[Change]> {
        let pieces = self.borders.len().saturating_sub(1);
        let behind = self.borders.partition_point(|border| *border <= address);
        let leaf = behind.checked_sub(1).filter(|piece| *piece < pieces).map(|piece| pieces + piece);
        let up = |node: &usize| Some(node / 2).filter(|node| *node > 0);
        std::iter::successors(leaf, up).filter_map(|node| {
            let (start, end) = (*self.nodes.get(node)?, *self.nodes.get(node + 1)?);
            self.changes.get(start as usize..end as usize)
        })
    }
}

/// Appends the changes over time of mappings that share their addresses; each comes with its end.
fn add_changes(mut mappings: Vec<(Ranked, Option<Ticks>)>, changes: &mut Vec<Change>) {
    let begin = |((start, _), _): &(Ranked, Option<Ticks>)| start.unwrap_or(Ticks(i64::MIN));
    let mut times: Vec<Ticks> = mappings.iter().map(begin).collect();
    times.extend(mappings.iter().filter_map(|(_, end)| *end));
    times.sort_unstable();
    times.dedup();
    // The next to begin is the last.
    mappings.sort_unstable_by_key(|mapping| Reverse(begin(mapping)));
    let mut begun: BinaryHeap<(Ranked, Option<Ticks>)> = BinaryHeap::new();
    let mut before = None;
    for time in times {
        while let Some(mapping) = mappings.pop_if(|mapping| begin(mapping) <= time) {
            begun.push(mapping);
        }
        while begun.peek().is_some_and(|(_, end)| end.is_some_and(|end| end <= time)) {
            begun.pop();
        }
        let mapped = begun.peek().map(|(ranked, _)| *ranked);
        if mapped != before {
            changes.push(Change { time, mapped });
            before = mapped;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{Mapping, Mappings};
    use crate::event::Ticks;
    use crate::trace::{ModuleId, ProcessId};

    fn mapping() -> impl Strategy<Value = Mapping> {
        let time = || prop_oneof![Just(None), (0..8i64).prop_map(|time| Some(Ticks(time)))];
        (0..2u32, 0..12u64, 0..6u64, time(), time()).prop_map(|(process, base, size, start, end)| Mapping {
            process: ProcessId(process),
            module: ModuleId(0),
            base,
            size,
            start,
            end,
        })
    }

    /// What the words say: of those that cover address and time, the one that started last.
    fn plain(all: &Mappings, process: ProcessId, address: u64, time: Ticks) -> Option<usize> {
        let covers = |mapping: &Mapping| {
            let address = address.checked_sub(mapping.base).is_some_and(|offset| offset < mapping.size);
            mapping.process == process && address && mapping.covers(time)
        };
        let found = all.iter().enumerate().filter(|(_, mapping)| covers(mapping));
        found.max_by_key(|(index, mapping)| (mapping.start, *index)).map(|(index, _)| index)
    }

    proptest! {
        #[test]
        fn the_latest_mapping_at_address_and_time(
            all in proptest::collection::vec(mapping(), 0..12),
            process in 0..2u32,
            address in 0..20u64,
            time in -1..9i64,
            later in any::<u8>(),
        ) {
            let mappings = Mappings::new(all, ProcessId(0));
            let process = ProcessId(process);
            let located = mappings.at(process, address, false, Ticks(time));
            proptest::prop_assert_eq!(located.mapping, plain(&mappings, process, address, Ticks(time)));
            proptest::prop_assert!(located.holds_at(Ticks(time)));
            let later = Ticks(time + i64::from(later % 8));
            if located.holds_at(later) {
                proptest::prop_assert_eq!(plain(&mappings, process, address, later), located.mapping);
            }
        }
    }
}
