//! The call tree of a page.
//!
//! The tree of a [`Picture`] has a node for every line of a function; the page draws a function once. So a *node* of the
//! page is a name below its callers, and each of its lines, a node of the picture, is a *part* of it. Nodes are in
//! depth-first order, those with more samples before their siblings; parts are in the order of their nodes.

use rustc_hash::FxHashMap;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{Arranged, CallTree, Line};
use crate::report::format::Picture;
use crate::report::named::{NameId, NamesOf};

use super::column::Column;

/// The tree, as columns of numbers.
#[derive(Debug, Default)]
pub(super) struct Tree<'p> {
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// For each node, how many steps up from the node before it its caller is: 0 for the first callee of that node.
    pub(super) up: Column,
    /// For each node its name.
    pub(super) name: Column,
    /// How many parts there are.
    pub(super) parts: usize,
    /// For each part, how many nodes behind that of the part before it its node is: 0 or 1.
    pub(super) step: Column,
    /// For each part the part above it, counted from the first part of the node above.
    pub(super) above: Column,
    /// For each part its line: an index into `lines`, from 1; 0 where none is known.
    pub(super) line: Column,
    /// Every line.
    pub(super) lines: Vec<&'p Line>,
    /// The part of each node of the picture's tree.
    part_of: Vec<u32>,
}

impl<'p> Tree<'p> {
    pub(super) fn new(picture: &Picture<'p>, arranged: &Arranged, names: &NamesOf) -> Tree<'p> {
        // Nodes that read alike below their callers are one.
        let mut merged: PrefixTree<Option<NameId>> = PrefixTree::default();
        let mut node_of: Vec<NodeId> = Vec::new();
        for (_, node) in arranged.counts.nodes() {
            let above = node.parent.and_then(|parent| node_of.get(parent.0 as usize).copied());
            node_of.push(merged.child(above, names.of(node.entry)));
        }
        let samples = arranged.counts.nodes().map(|(_, node)| node.exclusive());
        let counted = CallTree::count(&merged, node_of.iter().copied().zip(samples));
        let mut tree = Tree { nodes: merged.len(), ..Tree::default() };
        let ranks = tree.add_nodes(&counted);
        tree.add_parts(picture, arranged, &node_of, &ranks);
        tree
    }

    /// The part that samples end in whose stack ends in a node of the picture's tree.
    pub(super) fn part(&self, node: NodeId) -> u32 {
        self.part_of.get(node.0 as usize).copied().unwrap_or(0)
    }

    /// Adds the nodes in depth-first order. Returns the place of each in it.
    fn add_nodes(&mut self, counted: &CallTree<Option<NameId>>) -> Vec<u32> {
        let mut ranks = vec![0; self.nodes];
        // A trace may be deeper than the program's stack, so the walk has one of its own.
        let mut next: Vec<(NodeId, u64)> = counted.roots().iter().rev().map(|root| (*root, 0)).collect();
        let (mut rank, mut before) = (0, 0);
        while let Some((id, depth)) = next.pop() {
            let Some(node) = counted.node(id) else { continue };
            next.extend(counted.children(node).iter().rev().map(|child| (*child, depth + 1)));
            if let Some(place) = ranks.get_mut(id.0 as usize) {
                *place = rank;
            }
            self.up.push(before - depth);
            self.name.push(node.entry.map_or(0, |name| name.0.into()));
            (rank, before) = (rank + 1, depth + 1);
        }
        ranks
    }

    fn add_parts(&mut self, picture: &Picture<'p>, arranged: &Arranged, node_of: &[NodeId], ranks: &[u32]) {
        let rank = |id: usize| node_of.get(id).and_then(|node| ranks.get(node.0 as usize)).copied();
        let mut order: Vec<(u32, u32)> =
            (0..).zip(node_of).map(|(id, _)| (rank(id as usize).unwrap_or(0), id)).collect();
        order.sort_unstable();
        self.parts = order.len();
        self.part_of = vec![0; order.len()];
        let mut first = vec![0; ranks.len()];
        let mut before = None;
        for (part, (rank, id)) in (0u32..).zip(&order) {
            if let Some(place) = self.part_of.get_mut(*id as usize) {
                *place = part;
            }
            if before != Some(*rank)
                && let Some(place) = first.get_mut(*rank as usize)
            {
                *place = part;
            }
            before = Some(*rank);
        }
        let mut numbers: FxHashMap<&Line, u64> = FxHashMap::default();
        let mut before = 0;
        for (node, id) in order {
            self.step.push((node - before).into());
            before = node;
            let Some(entry) = arranged.counts.node(NodeId(id)) else { continue };
            let above = entry.parent.map_or(0, |parent| {
                let first = rank(parent.0 as usize).and_then(|rank| first.get(rank as usize)).copied();
                self.part(parent).saturating_sub(first.unwrap_or(0))
            });
            self.above.push(above.into());
            let line = picture.place(entry.entry).and_then(|frame| frame.line.as_ref());
            let line = line.map_or(0, |line| {
                *numbers.entry(line).or_insert_with(|| {
                    self.lines.push(line);
                    self.lines.len() as u64
                })
            });
            self.line.push(line);
        }
    }
}
