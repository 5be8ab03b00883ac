//! The call trees of both sides as one.

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{CallTree, Node, Row, Values};

use super::side::{NameId, Names, Run, Side};

/// The nodes of two sides, each with what it has on either.
#[derive(Clone, Debug)]
pub struct Together {
    /// The nodes, with the samples of both sides.
    pub tree: CallTree<NameId>,
    /// The time of the first side in ns, by the nodes of `tree`; of all runs, and not scaled.
    pub before: Values,
    /// The time of the second side in ns.
    pub after: Values,
    /// For each run, those of the first side first, where its nodes are in `tree`.
    places: Vec<Vec<NodeId>>,
}

impl Together {
    /// Puts both sides into one tree, by the keys of names.
    pub fn new(names: &Names, before: &Side, after: &Side) -> Together {
        let mut tree: PrefixTree<NameId> = PrefixTree::default();
        let mut samples: Vec<(NodeId, i64)> = Vec::new();
        let mut places: Vec<Vec<NodeId>> = Vec::new();
        let [before, after] = [before, after].map(|side| {
            let mut ends: Vec<(NodeId, i64)> = Vec::new();
            for Run { arranged, .. } in &side.runs {
                let mut nodes: Vec<NodeId> = Vec::new();
                for (id, node) in arranged.counts.nodes() {
                    let parent = node.parent.and_then(|parent| nodes.get(parent.0 as usize).copied());
                    let here = tree.child(parent, names.same(node.entry));
                    nodes.push(here);
                    samples.push((here, node.exclusive()));
                    ends.push((here, arranged.values.node(id).map_or(0, |value| value.exclusive())));
                }
                places.push(nodes);
            }
            ends
        });
        Together {
            before: Values::count(&tree, before),
            after: Values::count(&tree, after),
            tree: CallTree::count(&tree, samples),
            places,
        }
    }

    /// What the nodes have in one run, by its number among all runs.
    pub(super) fn rows(&self, number: usize, run: &Run) -> Vec<Row<NodeId>> {
        let places = self.places.get(number).map_or(&[][..], Vec::as_slice);
        let nodes = run.arranged.counts.nodes().zip(places);
        let row = |((id, node), place): ((NodeId, &Node<NameId>), &NodeId)| {
            let value = run.arranged.values.node(id).copied().unwrap_or_default();
            Row {
                key: *place,
                exclusive: node.exclusive(),
                inclusive: node.inclusive(),
                exclusive_value: value.exclusive(),
                inclusive_value: value.inclusive(),
            }
        };
        let mut rows: Vec<Row<NodeId>> = nodes.map(row).collect();
        // Nodes of one run that differ in the kind of code only are one.
        rows.sort_unstable_by_key(|row| row.key);
        rows.dedup_by(|next, first| {
            let same = next.key == first.key;
            if same {
                first.exclusive += next.exclusive;
                first.inclusive += next.inclusive;
                first.exclusive_value += next.exclusive_value;
                first.inclusive_value += next.inclusive_value;
            }
            same
        });
        rows
    }
}
