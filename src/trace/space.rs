//! Finds what is at an address at a moment: mapped images, bodies of compiled code.
//!
//! Each is a rectangle in the plane of address and time, and those of one process may overlap in both directions. So
//! the addresses of a process are cut at every border, and a tree over the pieces holds each thing in the few nodes
//! that make up its range. All things of a node cover all of its addresses; what is left there is time, as a list of
//! changes. A look-up goes from the address's piece up to the root and picks the moment in each node: logarithmic,
//! however many overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::Ticks;

/// Where something is, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The first address.
    pub(super) start: u64,
    /// The size in bytes.
    pub(super) size: u64,
    /// When it came; `None` for before everything.
    pub(super) from: Option<Ticks>,
    /// When it went; `None` for never.
    pub(super) until: Option<Ticks>,
}

/// What is at an address, and for how long that answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingAt {
    /// The index of the mapping; `None` for an address outside all images.
    pub mapping: Option<usize>,
    /// The answer is the same from here,
    pub from: Ticks,
    /// until just before here.
    pub until: Ticks,
}

impl MappingAt {
    /// Nothing is there, at no time.
    pub const NOTHING: MappingAt = MappingAt { mapping: None, from: Ticks(i64::MIN), until: Ticks(i64::MAX) };

    /// True if the answer holds at `time` too.
    pub fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

/// A thing by its beginning and its index: the greater one counts.
type Ranked = (Option<Ticks>, u32);

/// From `time` on, this is what is there.
#[derive(Clone, Copy, Debug)]
struct Change {
    time: Ticks,
    there: Option<Ranked>,
}

/// The addresses of one process.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Where things begin and end: piece `i` goes from border `i` to the next one.
    borders: Vec<u64>,
    /// A binary tree in an array: node `n` has the children `2n` and `2n + 1`, the pieces are its second half. Of each
    /// node, where its changes begin in `changes`; they end where those of the next node begin.
    nodes: Vec<u32>,
    changes: Vec<Change>,
}

impl Space {
    /// The space of `things`, the first of which has the index `first`.
    pub(super) fn new(things: &[Extent], first: u32) -> Space {
        let end = |thing: &Extent| thing.start.saturating_add(thing.size);
        let mut borders: Vec<u64> = things.iter().flat_map(|thing| [thing.start, end(thing)]).collect();
        borders.sort_unstable();
        borders.dedup();
        let pieces = borders.len().saturating_sub(1);
        let piece = |address: u64| borders.partition_point(|border| *border < address);
        // Which node holds which of them.
        let mut held: Vec<(u32, u32)> = Vec::with_capacity(things.len());
        for (index, thing) in (0..).zip(things) {
            let (mut left, mut right) = (pieces + piece(thing.start), pieces + piece(end(thing)));
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
                let thing = things.get(*index as usize)?;
                Some(((thing.from, first + index), thing.until))
            };
            add_changes(of_node.iter().filter_map(ranked).collect(), &mut space.changes);
        }
        space.nodes.resize(2 * pieces + 1, space.changes.len() as u32);
        space
    }

    /// What is at `address` at `time`: of several things, the one that came last.
    pub(super) fn at(&self, address: u64, time: Ticks) -> MappingAt {
        let mut located = MappingAt::NOTHING;
        let mut latest = None;
        for changes in self.timelines(address) {
            let later = changes.partition_point(|change| change.time <= time);
            if let Some(change) = changes.get(later) {
                located.until = located.until.min(change.time);
            }
            let Some(now) = later.checked_sub(1).and_then(|index| changes.get(index)) else { continue };
            located.from = located.from.max(now.time);
            if now.there > latest {
                latest = now.there;
            }
        }
        located.mapping = latest.map(|(_, index)| index as usize);
        located
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

/// Appends the changes over time of things that share their addresses; each comes with its end.
fn add_changes(mut things: Vec<(Ranked, Option<Ticks>)>, changes: &mut Vec<Change>) {
    let begin = |((start, _), _): &(Ranked, Option<Ticks>)| start.unwrap_or(Ticks(i64::MIN));
    let mut times: Vec<Ticks> = things.iter().map(begin).collect();
    times.extend(things.iter().filter_map(|(_, end)| *end));
    times.sort_unstable();
    times.dedup();
    // The next to begin is the last.
    things.sort_unstable_by_key(|thing| Reverse(begin(thing)));
    let mut begun: BinaryHeap<(Ranked, Option<Ticks>)> = BinaryHeap::new();
    let mut before = None;
    for time in times {
        while let Some(thing) = things.pop_if(|thing| begin(thing) <= time) {
            begun.push(thing);
        }
        while begun.peek().is_some_and(|(_, end)| end.is_some_and(|end| end <= time)) {
            begun.pop();
        }
        let there = begun.peek().map(|(ranked, _)| *ranked);
        if there != before {
            changes.push(Change { time, there });
            before = there;
        }
    }
}
