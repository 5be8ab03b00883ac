//! Finds the body at an address at a moment.
//!
//! Bodies are rectangles in the plane of address and time. [`Timeline`](super::timeline) lets none overlap, so at most
//! one covers a point. They lie in a segment tree over the addresses at which bodies begin and end: a body is in the
//! few nodes that together make up its range, and the nodes above an address hold all that ever covered it. Within a
//! node they follow each other in time. So a look-up takes a binary search in each of log n nodes, however often code
//! memory is used again and however large bodies claim to be.

use crate::event::Ticks;

use super::{Body, BodyId, CodeAt};

/// The bodies of one process.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The addresses at which bodies begin and end, sorted. Between two neighbours lies a segment.
    borders: Vec<u64>,
    /// For each node of the tree the first of its entries, and at last the number of all.
    nodes: Vec<u32>,
    /// By node and time.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    from: Ticks,
    until: Ticks,
    body: BodyId,
}

impl Index {
    pub(super) fn new<'b>(bodies: impl Iterator<Item = (BodyId, &'b Body)>) -> Index {
        let life =
            |body: &Body| (body.from.unwrap_or(Ticks(i64::MIN)), body.until.unwrap_or(Ticks(i64::MAX)));
        let exists = |body: &Body| {
            let (from, until) = life(body);
            body.size > 0 && from < until
        };
        let bodies: Vec<(BodyId, &Body)> = bodies.filter(|(_, body)| exists(body)).collect();
        let mut borders: Vec<u64> = bodies.iter().flat_map(|(_, body)| [body.start, body.end()]).collect();
        borders.sort_unstable();
        borders.dedup();
        // Node 1 is the root, the children of n are 2n and 2n + 1, and segment s is the leaf segments + s.
        let segments = borders.len().saturating_sub(1);
        let segment = |address: u64| borders.partition_point(|border| *border < address);
        let mut placed: Vec<(u32, Entry)> = Vec::with_capacity(2 * bodies.len());
        for (id, body) in bodies {
            let (from, until) = life(body);
            let entry = Entry { from, until, body: id };
            let (mut low, mut high) = (segments + segment(body.start), segments + segment(body.end()));
            while low < high {
                if low % 2 == 1 {
                    placed.push((low as u32, entry));
                    low += 1;
                }
                if high % 2 == 1 {
                    high -= 1;
                    placed.push((high as u32, entry));
                }
                (low, high) = (low / 2, high / 2);
            }
        }
        placed.sort_unstable_by_key(|(node, entry)| (*node, entry.from));
        let mut nodes = vec![0u32; 2 * segments + 1];
        for (node, _) in &placed {
            if let Some(next) = nodes.get_mut(*node as usize + 1) {
                *next += 1;
            }
        }
        let mut sum = 0;
        for first in &mut nodes {
            sum += *first;
            *first = sum;
        }
        Index { borders, nodes, entries: placed.into_iter().map(|(_, entry)| entry).collect() }
    }

    /// The body at `address` at `time`.
    pub(super) fn at(&self, address: u64, time: Ticks) -> CodeAt {
        let mut found = CodeAt { body: None, from: Ticks(i64::MIN), until: Ticks(i64::MAX) };
        let segments = self.borders.len().saturating_sub(1);
        let behind = self.borders.partition_point(|border| *border <= address);
        if behind == 0 || behind > segments {
            return found;
        }
        let mut node = segments + behind - 1;
        while node > 0 {
            let entries = self.entries_of(node);
            let later = entries.partition_point(|entry| entry.from <= time);
            if let Some(entry) = later.checked_sub(1).and_then(|last| entries.get(last)) {
                if time < entry.until {
                    found.body = Some(entry.body);
                    found.from = found.from.max(entry.from);
                    found.until = found.until.min(entry.until);
                } else {
                    found.from = found.from.max(entry.until);
                }
            }
            if let Some(entry) = entries.get(later) {
                found.until = found.until.min(entry.from);
            }
            node /= 2;
        }
        found
    }

    fn entries_of(&self, node: usize) -> &[Entry] {
        let first = |node: usize| self.nodes.get(node).map(|first| *first as usize);
        match (first(node), first(node + 1)) {
            (Some(from), Some(to)) => self.entries.get(from..to).unwrap_or_default(),
            _ => &[],
        }
    }
}
