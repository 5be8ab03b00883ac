//! The counted call tree.
//!
//! Every node has two counts: `node` samples pass through it and `leaf` samples end in it. Inclusive is their sum,
//! exclusive is `leaf`. The tree's root is the sum of all samples, and for every node inclusive is exclusive plus the
//! inclusive counts of its children.

use rustc_hash::FxHashMap;

use crate::event::NO_ID;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::trace::{ProcessId, Trace};

use super::Profile;
use super::category::Category;
use super::frame::{Frame, FrameId};
use super::limit::{self, Cut, Stack};

/// What stands above the code in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// A node for each process.
    pub by_process: bool,
    /// A node for each thread.
    pub by_thread: bool,
}

/// A call tree with counts.
#[derive(Debug)]
pub struct CallTree<'p> {
    /// The frames of the profile, and behind them the headings.
    code: &'p [Frame],
    headings: Vec<Frame>,
    nodes: Vec<Node>,
    /// The roots, and the children of each node: slices of this.
    families: Vec<NodeId>,
    roots: Family,
    total: u64,
    cut: Cut,
}

/// Where the nodes below a node are in `families`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Family {
    start: u32,
    end: u32,
}

/// A node of a [`CallTree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it shows; see [`CallTree::frame`].
    pub frame: FrameId,
    /// The node above it.
    pub parent: Option<NodeId>,
    /// Samples that pass through it to a child.
    pub node: u64,
    /// Samples that end in it.
    pub leaf: u64,
    children: Family,
}

impl Node {
    /// Samples in it or below it.
    pub fn inclusive(&self) -> u64 {
        self.node + self.leaf
    }

    /// Samples in it.
    pub fn exclusive(&self) -> u64 {
        self.leaf
    }
}

impl<'p> CallTree<'p> {
    /// Merges the stacks of `profile` into one tree, within the limit of the profile: a stack under each of many
    /// threads counts as often.
    pub fn new(profile: &'p Profile, trace: &Trace, grouping: Grouping) -> CallTree<'p> {
        let mut headings = Headings::new(trace, grouping, &profile.frames);
        let shown = one_for_each_method(&profile.frames);
        let mut tree: PrefixTree<FrameId> = PrefixTree::default();
        let mut places: FxHashMap<(Option<NodeId>, NodeId), (NodeId, u32)> = FxHashMap::default();
        let mut leaves: Vec<u64> = Vec::new();
        let mut budget = profile.limit.budget();
        let mut cut = Cut::default();
        for sample in &profile.samples {
            let heading = headings.of(sample.process, sample.tid, &mut tree);
            let (place, missing) = *places.entry((heading, sample.stack)).or_insert_with(|| {
                let mut stack = Stack::default();
                let mut remarks = Vec::new();
                for id in profile.stacks.path(sample.stack) {
                    let id = shown.get(id.0 as usize).copied().unwrap_or(id);
                    match profile.frame(id) {
                        // Part of no stack, and never paid for.
                        Some(frame) if frame.category == Category::Heading => remarks.push(id),
                        Some(frame) => stack.push(id, frame, &mut budget),
                        None => {}
                    }
                }
                if stack.missing > 0 && sample.missing == 0 {
                    remarks.insert(0, headings.add(limit::CUT.to_owned()));
                }
                let heading = tree.extend(heading, remarks.into_iter().rev());
                // A profile's stacks have a frame each.
                (stack.extend(&mut tree, heading, &mut budget).unwrap_or(NodeId(0)), stack.missing)
            });
            leaves.resize(tree.len(), 0);
            if let Some(leaf) = leaves.get_mut(place.0 as usize) {
                *leaf += 1;
            }
            cut.add(sample.missing.saturating_add(missing));
        }
        CallTree { code: &profile.frames, headings: headings.frames, cut, ..CallTree::count(&tree, &leaves) }
    }

    /// Sums leaves up to their roots.
    fn count(tree: &PrefixTree<FrameId>, leaves: &[u64]) -> CallTree<'p> {
        let mut nodes: Vec<Node> = tree
            .nodes()
            .zip(leaves)
            .map(|(id, leaf)| Node {
                frame: tree.value(id).unwrap_or(FrameId(0)),
                parent: tree.parent(id),
                node: 0,
                leaf: *leaf,
                children: Family::default(),
            })
            .collect();
        // Children come after their parents, so backwards every node is whole when it is added to its parent.
        for id in tree.nodes().rev() {
            let Some(node) = nodes.get(id.0 as usize) else { continue };
            let (inclusive, parent) = (node.inclusive(), node.parent);
            if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent.0 as usize)) {
                parent.node += inclusive;
            }
        }
        let mut families: Vec<NodeId> = tree.nodes().collect();
        families.sort_unstable_by_key(|id| {
            let inclusive = nodes.get(id.0 as usize).map_or(0, Node::inclusive);
            (tree.parent(*id), std::cmp::Reverse(inclusive), *id)
        });
        let mut roots = Family::default();
        let mut end = 0;
        for family in families.chunk_by(|a, b| tree.parent(*a) == tree.parent(*b)) {
            let start = end;
            end += family.len() as u32;
            let parent = family.first().and_then(|first| tree.parent(*first));
            match parent.and_then(|parent| nodes.get_mut(parent.0 as usize)) {
                Some(parent) => parent.children = Family { start, end },
                None => roots = Family { start, end },
            }
        }
        let mut counted = CallTree {
            code: &[],
            headings: Vec::new(),
            nodes,
            families,
            roots,
            total: 0,
            cut: Cut::default(),
        };
        counted.total =
            counted.roots().iter().filter_map(|root| counted.node(*root)).map(Node::inclusive).sum();
        counted
    }

    /// All samples.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What the limit left out, of the profile's stacks or when they were merged.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// The nodes at the top, most samples first.
    pub fn roots(&self) -> &[NodeId] {
        self.family(self.roots)
    }

    /// The nodes below a node, most samples first.
    pub fn children(&self, node: &Node) -> &[NodeId] {
        self.family(node.children)
    }

    fn family(&self, family: Family) -> &[NodeId] {
        self.families.get(family.start as usize..family.end as usize).unwrap_or_default()
    }

    /// A node by its id.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// All nodes with their ids, parents before their children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// What a node shows.
    pub fn frame(&self, node: &Node) -> Option<&Frame> {
        let index = node.frame.0 as usize;
        self.code.get(index).or_else(|| self.headings.get(index.checked_sub(self.code.len())?))
    }

    /// The frames from a node up to its root.
    pub fn path(&self, id: NodeId) -> impl Iterator<Item = &Frame> {
        let up = |id: &NodeId| self.node(*id).and_then(|node| node.parent);
        std::iter::successors(Some(id), up).filter_map(|id| self.frame(self.node(id)?))
    }
}

/// For each frame the one to show for it: a .NET method is one node, whether it ran precompiled or compiled again.
fn one_for_each_method(frames: &[Frame]) -> Vec<FrameId> {
    let mut methods: FxHashMap<&str, FrameId> = FxHashMap::default();
    let ids = (0..).map(FrameId).zip(frames);
    ids.map(|(id, frame)| match frame.category.is_managed() && frame.unresolved.is_none() {
        true => *methods.entry(&frame.text).or_insert(id),
        false => id,
    })
    .collect()
}

/// The nodes above the code.
struct Headings<'a> {
    trace: &'a Trace,
    grouping: Grouping,
    /// Numbered from here on.
    first: usize,
    frames: Vec<Frame>,
    texts: FxHashMap<String, FrameId>,
    known: FxHashMap<(ProcessId, u32), Option<NodeId>>,
    /// Names of threads by process id and thread id, of those that have one.
    thread_names: FxHashMap<(u32, u32), &'a str>,
}

impl<'a> Headings<'a> {
    fn new(trace: &'a Trace, grouping: Grouping, code: &[Frame]) -> Self {
        let of_heading = |(_, frame): &(FrameId, &Frame)| frame.category == Category::Heading;
        let text_of = |(id, frame): (FrameId, &Frame)| (frame.text.clone(), id);
        // Of several threads that had the ids, the first gives the name.
        let named = trace.threads.iter().rev().filter(|thread| !thread.name.is_empty());
        Headings {
            trace,
            grouping,
            first: code.len(),
            frames: Vec::new(),
            // A remark of the profile and the same one of the tree are one node.
            texts: (0..).map(FrameId).zip(code).filter(of_heading).map(text_of).collect(),
            known: FxHashMap::default(),
            thread_names: named.map(|thread| ((thread.pid, thread.tid), thread.name.as_str())).collect(),
        }
    }

    fn of(&mut self, process: ProcessId, tid: u32, tree: &mut PrefixTree<FrameId>) -> Option<NodeId> {
        let Grouping { by_process, by_thread } = self.grouping;
        let key = (process, if by_thread { tid } else { 0 });
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut node = None;
        if by_process {
            let text = process_text(self.trace, process);
            node = Some(tree.child(node, self.add(text)));
        }
        if by_thread {
            let pid = self.trace.process(process).map_or(NO_ID, |process| process.pid);
            let text = match self.thread_names.get(&(pid, tid)) {
                Some(name) => format!("thread {tid} {name}"),
                None => format!("thread {tid}"),
            };
            node = Some(tree.child(node, self.add(text)));
        }
        self.known.insert(key, node);
        node
    }

    /// Two processes or threads of one text are one node.
    fn add(&mut self, text: String) -> FrameId {
        let (first, frames) = (self.first, &mut self.frames);
        *self.texts.entry(text).or_insert_with_key(|text| {
            frames.push(Frame::heading(text.clone()));
            FrameId((first + frames.len() - 1) as u32)
        })
    }
}

/// `name (pid)`.
fn process_text(trace: &Trace, process: ProcessId) -> String {
    match trace.process(process) {
        Some(process) if process.pid != NO_ID => {
            format!("{} ({})", process.label(), process.pid)
        }
        Some(process) => process.label().to_owned(),
        None => "unknown process".to_owned(),
    }
}
