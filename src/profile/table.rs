//! The nodes of a call tree by what they have in common (functions, modules, processes), and who called whom.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::prefix_tree::NodeId;

use super::arrange::Arranged;
use super::tree::Node;

/// All nodes with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<K> {
    /// What they have in common.
    pub key: K,
    /// The samples that end in them.
    pub exclusive: i64,
    /// The samples that end in them or below; each once, however often the key stands in its stack.
    pub inclusive: i64,
    /// The values of the samples in `exclusive`.
    pub exclusive_value: i64,
    /// The values of the samples in `inclusive`.
    pub inclusive_value: i64,
}

impl<E: Copy> Arranged<E> {
    /// Adds up the nodes by `key`, the first seen first; those without a key belong to no row.
    pub fn table<K: Clone + Eq + Hash>(&self, key: impl Fn(E) -> Option<K>) -> Vec<Row<K>> {
        self.add_up(|node| key(node.entry))
    }

    /// Adds up the calls by `key`, which gets the caller and the callee of each: a sample counts once in a row, however
    /// many of its calls have that key.
    ///
    /// What a node stands below is its caller, code or not: a process calls the first frame of a stack.
    pub fn calls<K: Clone + Eq + Hash>(&self, key: impl Fn(E, E) -> Option<K>) -> Vec<Row<K>> {
        self.add_up(|node| key(self.counts.node(node.parent?)?.entry, node.entry))
    }

    /// Adds up the samples by the nearest node with a `key` at or above the one that they end in, the first seen first.
    /// Each sample is in one row at most, so inclusive and exclusive are the same.
    pub fn shares<K: Clone + Eq + Hash>(&self, key: impl Fn(E) -> Option<K>) -> Vec<Row<K>> {
        let mut rows = Rows::default();
        let mut nearest: Vec<Option<usize>> = Vec::new();
        // Parents come before their children.
        for (id, counts) in self.counts.nodes() {
            let above = || nearest.get(counts.parent?.0 as usize).copied().flatten();
            let row = key(counts.entry).map(|key| rows.number(key)).or_else(above);
            nearest.push(row);
            let row = row.and_then(|row| rows.rows.get_mut(row));
            if let Some((row, values)) = row.zip(self.values.node(id)) {
                row.exclusive += counts.exclusive();
                row.exclusive_value += values.exclusive();
                (row.inclusive, row.inclusive_value) = (row.exclusive, row.exclusive_value);
            }
        }
        rows.rows
    }

    fn add_up<K: Clone + Eq + Hash>(&self, key: impl Fn(&Node<E>) -> Option<K>) -> Vec<Row<K>> {
        let mut rows = Rows::default();
        let of_node: Vec<Option<usize>> =
            self.counts.nodes().map(|(_, node)| Some(rows.number(key(node)?))).collect();
        let mut rows = rows.rows;
        // How many nodes of the path to the present one are of each row.
        let mut on_path = vec![0u32; rows.len()];
        // A walk with a stack of its own: a trace may be deeper than the program's.
        let mut steps: Vec<Step> = self.counts.roots().iter().rev().copied().map(Step::Into).collect();
        while let Some(step) = steps.pop() {
            let (Step::Into(id) | Step::OutOf(id)) = step;
            let Some((counts, values)) = self.counts.node(id).zip(self.values.node(id)) else { continue };
            let row = of_node.get(id.0 as usize).copied().flatten();
            let depth = row.and_then(|row| on_path.get_mut(row));
            if let Step::OutOf(_) = step {
                if let Some(depth) = depth {
                    *depth -= 1;
                }
                continue;
            }
            if let Some((depth, row)) = depth.zip(row.and_then(|row| rows.get_mut(row))) {
                row.exclusive += counts.exclusive();
                row.exclusive_value += values.exclusive();
                if *depth == 0 {
                    row.inclusive += counts.inclusive();
                    row.inclusive_value += values.inclusive();
                }
                *depth += 1;
            }
            steps.push(Step::OutOf(id));
            steps.extend(self.counts.children(counts).iter().rev().copied().map(Step::Into));
        }
        rows
    }
}

/// The rows of a table that is being made.
struct Rows<K> {
    rows: Vec<Row<K>>,
    numbers: FxHashMap<K, usize>,
}

impl<K> Default for Rows<K> {
    fn default() -> Self {
        Rows { rows: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<K: Clone + Eq + Hash> Rows<K> {
    fn number(&mut self, key: K) -> usize {
        *self.numbers.entry(key).or_insert_with_key(|key| {
            let key = key.clone();
            self.rows.push(Row { key, exclusive: 0, inclusive: 0, exclusive_value: 0, inclusive_value: 0 });
            self.rows.len() - 1
        })
    }
}

/// A step of a walk through a tree.
#[derive(Clone, Copy)]
enum Step {
    Into(NodeId),
    OutOf(NodeId),
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
