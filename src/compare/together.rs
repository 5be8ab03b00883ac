//! The call trees of both sides as one.

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{CallTree, Values};

use super::side::{NameId, Run, Side};

/// The nodes of two sides, each with what it has on either.
#[derive(Clone, Debug)]
pub struct Together {
    /// The nodes, with the samples of both sides.
    pub tree: CallTree<NameId>,
    /// The time of the first side in ns, by the nodes of `tree`; of all runs, and not scaled.
    pub before: Values,
    /// The time of the second side in ns.
    pub after: Values,
}

impl Together {
    /// Puts both sides into one tree.
    pub fn new(before: &Side, after: &Side) -> Together {
        let mut tree: PrefixTree<NameId> = PrefixTree::default();
        let mut samples: Vec<(NodeId, i64)> = Vec::new();
        let [before, after] = [before, after].map(|side| {
            let mut ends: Vec<(NodeId, i64)> = Vec::new();
            for Run { arranged, .. } in &side.runs {
                let mut nodes: Vec<NodeId> = Vec::new();
                for (id, node) in arranged.counts.nodes() {
                    let parent = node.parent.and_then(|parent| nodes.get(parent.0 as usize).copied());
                    let here = tree.child(parent, node.entry);
                    nodes.push(here);
                    samples.push((here, node.exclusive()));
                    ends.push((here, arranged.values.node(id).map_or(0, |value| value.exclusive())));
                }
            }
            ends
        });
        Together {
            before: Values::count(&tree, before),
            after: Values::count(&tree, after),
            tree: CallTree::count(&tree, samples),
        }
    }
}
