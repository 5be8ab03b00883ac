//! The boxes of a flame graph: callees beside each other that read alike are one box.
//!
//! Boxes are made where they are drawn. Below one that is too narrow for it they are only counted, and one by one only
//! where some of them read alike.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::prefix_tree::NodeId;
use crate::profile::{Arranged, CallTree, Category};
use crate::report::label::{Label, Labels};

/// A label, by its place in [`Boxes`].
type LabelId = u32;

/// A call tree as boxes.
pub(super) struct Boxes<'a, 'l, E> {
    tree: &'a CallTree<E>,
    /// That of the box for all, then those of the entries.
    labels: Vec<Label<'l>>,
    /// The label of each node.
    of_node: Vec<LabelId>,
    sums: Vec<Sum>,
}

/// What a node is with all below it. What is negative has no width.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: i64,
    /// The values of these samples.
    value: i64,
    /// How many nodes with samples there are.
    nodes: u32,
    /// Somewhere in it callees beside each other read alike, so that boxes are fewer than nodes.
    has_alike: bool,
}

/// A box with its place, all of it in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    label: LabelId,
    /// Rows from the root.
    pub(super) depth: usize,
    /// What is left of it.
    pub(super) start: i64,
    /// How wide it is.
    pub(super) samples: i64,
    /// What ends in it.
    pub(super) own: i64,
    /// The values of its samples.
    pub(super) value: i64,
}

/// What is drawn of a call tree.
pub(super) struct Drawing {
    /// A box before those above it, the widest first, so that what is left out is at the right.
    pub(super) boxes: Vec<Drawn>,
    /// How many boxes are not among these.
    pub(super) hidden: usize,
}

/// A box, and what is called from it.
struct Open {
    /// `None` for one that is only counted.
    drawn: Option<Drawn>,
    callees: Vec<NodeId>,
}

impl<'a, 'l, E: Copy + Eq + Hash> Boxes<'a, 'l, E> {
    /// The boxes of a tree, below one for all.
    pub(super) fn new(arranged: &'a Arranged<E>, labels: &'l impl Labels<E>) -> Boxes<'a, 'l, E> {
        let tree = &arranged.counts;
        let root = Label { text: labels.all().into(), category: Category::Heading, inlined: false };
        let mut all = vec![root];
        // Of how many entries each label is.
        let mut entries = vec![0_u32];
        let mut by_text: FxHashMap<String, LabelId> = FxHashMap::default();
        let mut of_entry: FxHashMap<E, LabelId> = FxHashMap::default();
        let mut label_of = |entry| {
            *of_entry.entry(entry).or_insert_with(|| {
                let label = labels.label(entry);
                let id = *by_text.entry(label.text.to_string()).or_insert_with(|| {
                    all.push(label);
                    entries.push(0);
                    all.len() as LabelId - 1
                });
                if let Some(entries) = entries.get_mut(id as usize) {
                    *entries += 1;
                }
                id
            })
        };
        let of_node: Vec<LabelId> = tree.nodes().map(|(_, node)| label_of(node.entry)).collect();
        let is_shared = |label: LabelId| entries.get(label as usize).is_some_and(|entries| *entries > 1);
        let mut boxes = Boxes { tree, labels: all, of_node, sums: Vec::new() };
        boxes.sums = boxes.sums(arranged, is_shared);
        boxes
    }

    /// The sum of each node. `is_shared` says whether several entries have a label.
    fn sums(&self, arranged: &Arranged<E>, is_shared: impl Fn(LabelId) -> bool) -> Vec<Sum> {
        let of_node = |(id, node): (NodeId, &crate::profile::Node<E>)| {
            let value = arranged.values.node(id).map_or(0, |value| value.exclusive());
            match node.exclusive() {
                samples @ 1.. => Sum { samples, value, ..Sum::default() },
                _ => Sum::default(),
            }
        };
        let mut sums: Vec<Sum> = self.tree.nodes().map(of_node).collect();
        // Callees of one node differ in their entries.
        let shared = self.tree.nodes().zip(&self.of_node).filter(|(_, label)| is_shared(**label));
        let mut alike: Vec<(Option<NodeId>, LabelId)> =
            shared.map(|((_, node), label)| (node.parent, *label)).collect();
        alike.sort_unstable();
        for pair in alike.windows(2) {
            if let [one, other] = pair
                && one == other
                && let Some(sum) = one.0.and_then(|parent| sums.get_mut(parent.0 as usize))
            {
                sum.has_alike = true;
            }
        }
        // Callees come after their callers, so backwards every sum is whole when it is added to its caller's.
        for place in (0..sums.len()).rev() {
            let Some(sum) = sums.get_mut(place) else { continue };
            sum.nodes += u32::from(sum.samples > 0);
            let Sum { samples, value, nodes, has_alike } = *sum;
            let parent = self.tree.node(NodeId(place as u32)).and_then(|node| node.parent);
            if let Some(above) = parent.and_then(|parent| sums.get_mut(parent.0 as usize)) {
                above.samples = above.samples.saturating_add(samples);
                above.value = above.value.saturating_add(value);
                above.nodes += nodes;
                above.has_alike |= has_alike;
            }
        }
        sums
    }

    /// All samples.
    pub(super) fn total(&self) -> i64 {
        self.sum(self.tree.roots()).samples
    }

    /// What a box is called.
    pub(super) fn label(&self, drawn: &Drawn) -> Option<&Label<'l>> {
        self.labels.get(drawn.label as usize)
    }

    /// The boxes with at least so many samples, of which there must be one. Walks with a stack of its own: a trace may be
    /// deeper than the program's.
    pub(super) fn draw(&self, least: i64) -> Drawing {
        let all = self.sum(self.tree.roots());
        let root = Drawn { label: 0, depth: 0, start: 0, samples: all.samples, own: 0, value: all.value };
        let mut rest = vec![Open { drawn: Some(root), callees: self.tree.roots().to_vec() }];
        let mut drawing = Drawing { boxes: Vec::new(), hidden: 0 };
        while let Some(Open { drawn, callees }) = rest.pop() {
            drawing.boxes.extend(drawn);
            let first = rest.len();
            let mut start = drawn.map_or(0, |drawn| drawn.start);
            for (label, alike) in self.alike(&callees) {
                let Sum { samples, value, nodes, has_alike } = self.sum(&alike);
                let here = drawn.filter(|_| samples >= least).map(|below| {
                    let own = self.exclusive(&alike);
                    Drawn { label, depth: below.depth + 1, start, samples, own, value }
                });
                start = start.saturating_add(samples);
                match (here, alike.len()) {
                    (None, _) if samples == 0 => continue,
                    (None, 1) if !has_alike => {
                        drawing.hidden += nodes as usize;
                        continue;
                    }
                    (None, _) => drawing.hidden += 1,
                    (Some(_), _) => {}
                }
                let nodes = alike.iter().filter_map(|id| self.tree.node(*id));
                let callees = nodes.flat_map(|node| self.tree.children(node)).copied().collect();
                rest.push(Open { drawn: here, callees });
            }
            if let Some(pushed) = rest.get_mut(first..) {
                pushed.reverse();
            }
        }
        drawing
    }

    /// Puts callees together that read alike, the most samples first.
    fn alike(&self, callees: &[NodeId]) -> Vec<(LabelId, Vec<NodeId>)> {
        let label = |id: &NodeId| self.of_node.get(id.0 as usize).copied().unwrap_or(0);
        let mut callees: Vec<(LabelId, NodeId)> = callees.iter().map(|id| (label(id), *id)).collect();
        callees.sort_unstable();
        let alike = callees.chunk_by(|(one, _), (other, _)| one == other);
        let mut alike: Vec<(LabelId, Vec<NodeId>)> = alike
            .filter_map(|alike| Some((alike.first()?.0, alike.iter().map(|(_, id)| *id).collect())))
            .collect();
        alike.sort_by_cached_key(|(_, nodes)| (Reverse(self.sum(nodes).samples), nodes.first().copied()));
        alike
    }

    /// What nodes are together.
    fn sum(&self, nodes: &[NodeId]) -> Sum {
        let sums = nodes.iter().filter_map(|id| self.sums.get(id.0 as usize));
        sums.fold(Sum::default(), |all, sum| Sum {
            samples: all.samples.saturating_add(sum.samples),
            value: all.value.saturating_add(sum.value),
            nodes: all.nodes + sum.nodes,
            has_alike: all.has_alike || sum.has_alike,
        })
    }

    /// The samples that end in nodes.
    fn exclusive(&self, nodes: &[NodeId]) -> i64 {
        let nodes = nodes.iter().filter_map(|id| self.tree.node(*id));
        nodes.map(|node| node.exclusive().max(0)).fold(0, i64::saturating_add)
    }

    /// The kinds of code of these boxes, with the shares of all samples that end in them, in percent. Where the tree is
    /// `inverted`, the first code below the root is where a sample ends.
    pub(super) fn legend(&self, drawn: &[Drawn], inverted: bool) -> Vec<(Category, f64)> {
        let mut own: FxHashMap<Category, i64> = FxHashMap::default();
        for drawn in drawn {
            own.extend(self.label(drawn).map(|label| (label.category, 0)));
        }
        let mut first: Vec<Option<Category>> = Vec::new();
        for ((_, node), label) in self.tree.nodes().zip(&self.of_node) {
            let kind = self.labels.get(*label as usize).map(|label| label.category);
            if inverted {
                let above = node.parent.and_then(|parent| first.get(parent.0 as usize).copied().flatten());
                first.push(above.or(kind.filter(|kind| *kind != Category::Heading)));
            }
            let leaf = if inverted { first.last().copied().flatten() } else { kind };
            if let Some(own) = leaf.and_then(|leaf| own.get_mut(&leaf)) {
                *own = own.saturating_add(node.exclusive().max(0));
            }
        }
        let percent = |own: &i64| 100.0 * *own as f64 / self.total().max(1) as f64;
        let kinds = Category::CODE.into_iter();
        kinds.filter_map(|kind| own.get(&kind).map(|own| (kind, percent(own)))).collect()
    }
}
