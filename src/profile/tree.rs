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
use super::frame::{Frame, FrameId};

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
pub struct CallTree {
    frames: Vec<Frame>,
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
    total: u64,
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
    /// The nodes below it, most samples first.
    pub children: Vec<NodeId>,
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

impl CallTree {
    /// Merges the stacks of `profile` into one tree.
    pub fn new(profile: &Profile, trace: &Trace, grouping: Grouping) -> CallTree {
        let mut headings = Headings::new(trace, grouping, profile.frames.clone());
        let shown = one_for_each_method(&profile.frames);
        let mut tree: PrefixTree<FrameId> = PrefixTree::default();
        let mut places: FxHashMap<(Option<NodeId>, NodeId), NodeId> = FxHashMap::default();
        let mut leaves: Vec<u64> = Vec::new();
        let mut path = Vec::new();
        for sample in &profile.samples {
            let heading = headings.of(sample.process, sample.tid, &mut tree);
            let place = *places.entry((heading, sample.stack)).or_insert_with(|| {
                path.clear();
                let frames = profile.stacks.path(sample.stack);
                path.extend(frames.map(|frame| shown.get(frame.0 as usize).copied().unwrap_or(frame)));
                // A profile's stacks have a frame each.
                tree.extend(heading, path.iter().rev().copied()).unwrap_or(NodeId(0))
            });
            leaves.resize(tree.len(), 0);
            if let Some(leaf) = leaves.get_mut(place.0 as usize) {
                *leaf += 1;
            }
        }
        CallTree::count(headings.frames, &tree, &leaves)
    }

    /// Sums leaves up to their roots.
    fn count(frames: Vec<Frame>, tree: &PrefixTree<FrameId>, leaves: &[u64]) -> CallTree {
        let mut nodes: Vec<Node> = tree
            .nodes()
            .zip(leaves)
            .map(|(id, leaf)| Node {
                frame: tree.value(id).unwrap_or(FrameId(0)),
                parent: tree.parent(id),
                node: 0,
                leaf: *leaf,
                children: Vec::new(),
            })
            .collect();
        let mut roots = Vec::new();
        // Children come after their parents, so backwards every node is whole when it is added to its parent.
        for id in tree.nodes().rev() {
            let Some(node) = nodes.get(id.0 as usize) else { continue };
            let (inclusive, parent) = (node.inclusive(), node.parent);
            match parent.and_then(|parent| nodes.get_mut(parent.0 as usize)) {
                Some(parent) => {
                    parent.node += inclusive;
                    parent.children.push(id);
                }
                None => roots.push(id),
            }
        }
        let inclusive: Vec<u64> = nodes.iter().map(Node::inclusive).collect();
        let of = |id: &NodeId| inclusive.get(id.0 as usize).copied().unwrap_or(0);
        let order = |ids: &mut Vec<NodeId>| ids.sort_by_key(|id| (std::cmp::Reverse(of(id)), *id));
        nodes.iter_mut().for_each(|node| order(&mut node.children));
        order(&mut roots);
        let total = roots.iter().map(of).sum();
        CallTree { frames, nodes, roots, total }
    }

    /// All samples.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The nodes at the top, most samples first.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
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
        self.frames.get(node.frame.0 as usize)
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
    frames: Vec<Frame>,
    texts: FxHashMap<String, FrameId>,
    known: FxHashMap<(ProcessId, u32), Option<NodeId>>,
    /// Names of threads by process id and thread id, of those that have one.
    thread_names: FxHashMap<(u32, u32), &'a str>,
}

impl<'a> Headings<'a> {
    fn new(trace: &'a Trace, grouping: Grouping, frames: Vec<Frame>) -> Self {
        // Of several threads that had the ids, the first gives the name.
        let named = trace.threads.iter().rev().filter(|thread| !thread.name.is_empty());
        Headings {
            trace,
            grouping,
            frames,
            texts: FxHashMap::default(),
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
        let frames = &mut self.frames;
        *self.texts.entry(text).or_insert_with_key(|text| {
            frames.push(Frame::heading(text.clone()));
            FrameId((frames.len() - 1) as u32)
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
