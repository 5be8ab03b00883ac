//! Sequences that share their beginnings, stored once.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A node of a [`PrefixTree`]: a sequence, by its last element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A tree of interned sequences.
///
/// A node stands for the sequence of values from a root down to it. Equal sequences are one node, so memory grows
/// with distinct sequences and not with how often they come. Nodes are numbered in the order of their making: a
/// parent's number is smaller than its children's.
#[derive(Clone, Debug)]
pub struct PrefixTree<V> {
    nodes: Vec<Node<V>>,
    index: HashTable<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node<V> {
    /// The parent's number plus one; 0 for a root.
    parent: u32,
    value: V,
}

impl<V> Default for PrefixTree<V> {
    fn default() -> Self {
        PrefixTree { nodes: Vec::new(), index: HashTable::new() }
    }
}

impl<V: Copy + Eq + Hash> PrefixTree<V> {
    /// The node of `parent`'s sequence with `value` behind it.
    pub fn child(&mut self, parent: Option<NodeId>, value: V) -> NodeId {
        let parent = parent.map_or(0, |parent| parent.0 + 1);
        // The nodes of one sequence were mostly made in a row: the first child is the next node, found without a hash.
        if self.nodes.get(parent as usize).is_some_and(|next| next.parent == parent && next.value == value) {
            return NodeId(parent);
        }
        let nodes = &mut self.nodes;
        let entry = self.index.entry(
            hash(parent, value),
            |node| nodes.get(*node as usize).is_some_and(|node| node.parent == parent && node.value == value),
            |node| nodes.get(*node as usize).map_or(0, |node| hash(node.parent, node.value)),
        );
        let node = entry.or_insert_with(|| {
            nodes.push(Node { parent, value });
            (nodes.len() - 1) as u32
        });
        NodeId(*node.get())
    }

    /// The node of a sequence given from its root on, under `parent`; `parent` itself for an empty one.
    pub fn extend(&mut self, parent: Option<NodeId>, values: impl Iterator<Item = V>) -> Option<NodeId> {
        values.fold(parent, |parent, value| Some(self.child(parent, value)))
    }

    /// The sequence without its last value; `None` at a root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes.get(node.0 as usize)?.parent.checked_sub(1).map(NodeId)
    }

    /// The last value of a sequence.
    pub fn value(&self, node: NodeId) -> Option<V> {
        self.nodes.get(node.0 as usize).map(|node| node.value)
    }

    /// The values of a sequence from the last one back to the root's.
    pub fn path(&self, node: NodeId) -> impl Iterator<Item = V> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node)).filter_map(|node| self.value(node))
    }

    /// The lengths of all sequences, by the numbers of their nodes.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = node.parent.checked_sub(1).and_then(|parent| depths.get(parent as usize));
            depths.push(above.map_or(1, |above| above + 1));
        }
        depths
    }

    /// All nodes, parents before their children.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<V> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True without any node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

fn hash<V: Hash>(parent: u32, value: V) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one((parent, value))
}

#[cfg(test)]
mod tests {
    use super::PrefixTree;

    #[test]
    fn shared_beginnings_are_stored_once() {
        let mut tree = PrefixTree::default();
        let a = tree.extend(None, [1, 2, 3].into_iter()).unwrap();
        let b = tree.extend(None, [1, 2, 4].into_iter()).unwrap();
        assert_eq!(tree.extend(None, [1, 2, 3].into_iter()), Some(a));
        assert_eq!(tree.extend(None, [].into_iter()), None);
        assert_eq!(tree.len(), 4);
        assert_eq!(tree.path(a).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(tree.path(b).collect::<Vec<_>>(), [4, 2, 1]);
        assert_eq!(tree.depths(), [1, 2, 3, 3]);
        assert_eq!(tree.parent(b), tree.parent(a));
        assert!(tree.nodes().all(|node| tree.parent(node).is_none_or(|parent| parent < node)));
    }
}
