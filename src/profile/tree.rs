//! The counted call tree.
//!
//! Every node has two counts: `node` is the sum of what passes through it, `leaf` the sum of what ends in it. Inclusive is
//! their sum, exclusive is `leaf`. The tree's total is the sum of all values, and for every node inclusive is exclusive
//! plus the inclusive counts of its children.

use std::hash::Hash;

use crate::prefix_tree::{NodeId, PrefixTree};

/// A call tree with counts, over entries of any kind.
#[derive(Clone, Debug)]
pub struct CallTree<E> {
    nodes: Vec<Node<E>>,
    /// The roots, and the children of each node: slices of this.
    families: Vec<NodeId>,
    roots: Family,
    total: i64,
}

/// Sums over the nodes of a call tree, by the ids of its nodes: 16 bytes for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    nodes: Vec<Value>,
    total: i64,
}

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// What passes through it to a child.
    pub node: i64,
    /// What ends in it.
    pub leaf: i64,
}

impl Value {
    /// What is in it or below it.
    pub fn inclusive(&self) -> i64 {
        self.node.saturating_add(self.leaf)
    }

    /// What is in it.
    pub fn exclusive(&self) -> i64 {
        self.leaf
    }
}

impl Values {
    /// Adds up values that end in nodes of `tree`.
    pub fn count<E: Copy + Eq + Hash>(
        tree: &PrefixTree<E>,
        leaves: impl IntoIterator<Item = (NodeId, i64)>,
    ) -> Values {
        let mut nodes = vec![Value::default(); tree.len()];
        for (leaf, value) in leaves {
            if let Some(node) = nodes.get_mut(leaf.0 as usize) {
                node.leaf = node.leaf.saturating_add(value);
            }
        }
        let mut total: i64 = 0;
        // Children come after their parents, so backwards every node is whole when it is added to its parent.
        for id in tree.nodes().rev() {
            let inclusive = nodes.get(id.0 as usize).map_or(0, Value::inclusive);
            match tree.parent(id).and_then(|parent| nodes.get_mut(parent.0 as usize)) {
                Some(parent) => parent.node = parent.node.saturating_add(inclusive),
                None => total = total.saturating_add(inclusive),
            }
        }
        Values { nodes, total }
    }

    /// What a node has, by its id.
    pub fn node(&self, id: NodeId) -> Option<&Value> {
        self.nodes.get(id.0 as usize)
    }

    /// The sum of all values.
    pub fn total(&self) -> i64 {
        self.total
    }
}

impl<E> From<&CallTree<E>> for Values {
    /// What the tree itself counts.
    fn from(tree: &CallTree<E>) -> Values {
        let nodes = tree.nodes.iter().map(|node| Value { node: node.node, leaf: node.leaf }).collect();
        Values { nodes, total: tree.total }
    }
}

/// Where the nodes below a node are in `families`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Family {
    start: u32,
    end: u32,
}

/// A node of a [`CallTree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<E> {
    /// What it stands for.
    pub entry: E,
    /// The node above it.
    pub parent: Option<NodeId>,
    /// What passes through it to a child.
    pub node: i64,
    /// What ends in it.
    pub leaf: i64,
    children: Family,
}

impl<E> Node<E> {
    /// What is in it or below it.
    pub fn inclusive(&self) -> i64 {
        self.node.saturating_add(self.leaf)
    }

    /// What is in it.
    pub fn exclusive(&self) -> i64 {
        self.leaf
    }
}

impl<E: Copy + Eq + Hash> CallTree<E> {
    /// Merges stacks, each given from its root on and with its value, into one tree. Values of differences may be
    /// negative. A stack without an entry counts for nothing.
    ///
    /// ```
    /// use etwprof::profile::CallTree;
    ///
    /// let tree = CallTree::new([(vec!["main", "parse"], 3), (vec!["main"], 1), (vec!["main", "parse"], 2)]);
    /// assert_eq!(tree.total(), 6);
    /// let main = tree.node(tree.roots()[0]).unwrap();
    /// assert_eq!((main.entry, main.inclusive(), main.exclusive()), ("main", 6, 1));
    /// ```
    pub fn new<S: IntoIterator<Item = E>>(stacks: impl IntoIterator<Item = (S, i64)>) -> CallTree<E> {
        let mut tree = PrefixTree::default();
        let mut leaves = Vec::new();
        for (stack, value) in stacks {
            leaves.extend(tree.extend(None, stack.into_iter()).map(|leaf| (leaf, value)));
        }
        CallTree::count(&tree, leaves)
    }

    /// Counts values that end in nodes of `tree`.
    pub fn count(tree: &PrefixTree<E>, leaves: impl IntoIterator<Item = (NodeId, i64)>) -> CallTree<E> {
        let node = |id: NodeId| {
            let (entry, parent) = (tree.value(id)?, tree.parent(id));
            Some(Node { entry, parent, node: 0, leaf: 0, children: Family::default() })
        };
        let mut nodes: Vec<Node<E>> = tree.nodes().filter_map(node).collect();
        for (leaf, value) in leaves {
            if let Some(node) = nodes.get_mut(leaf.0 as usize) {
                node.leaf = node.leaf.saturating_add(value);
            }
        }
        // Children come after their parents, so backwards every node is whole when it is added to its parent.
        for id in tree.nodes().rev() {
            let Some(node) = nodes.get(id.0 as usize) else { continue };
            let (inclusive, parent) = (node.inclusive(), node.parent);
            if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent.0 as usize)) {
                parent.node = parent.node.saturating_add(inclusive);
            }
        }
        let (families, roots) = families(&mut nodes);
        let mut counted = CallTree { nodes, families, roots, total: 0 };
        let roots = counted.roots().iter().filter_map(|root| counted.node(*root)).map(Node::inclusive);
        counted.total = roots.fold(0, i64::saturating_add);
        counted
    }
}

/// Gives every node its family. A family has its place by how many come before it, so that only those who are beside
/// each other are sorted.
fn families<E>(nodes: &mut [Node<E>]) -> (Vec<NodeId>, Family) {
    let mut families = vec![NodeId(0); nodes.len()];
    let mut roots = Family::default();
    // First how many each family has, then where it begins.
    for id in 0..nodes.len() {
        family_above(nodes, &mut roots, id).end += 1;
    }
    let mut start = 0;
    for family in std::iter::once(&mut roots).chain(nodes.iter_mut().map(|node| &mut node.children)) {
        let members = family.end;
        *family = Family { start, end: start };
        start += members;
    }
    for id in 0..nodes.len() {
        let family = family_above(nodes, &mut roots, id);
        if let Some(place) = families.get_mut(family.end as usize) {
            *place = NodeId(id as u32);
        }
        family.end += 1;
    }
    for family in std::iter::once(roots).chain(nodes.iter().map(|node| node.children)) {
        if let Some(family @ [_, _, ..]) = families.get_mut(family.start as usize..family.end as usize) {
            family.sort_unstable_by_key(|id| {
                let inclusive = nodes.get(id.0 as usize).map_or(0, |node| node.inclusive().unsigned_abs());
                (std::cmp::Reverse(inclusive), *id)
            });
        }
    }
    (families, roots)
}

/// The family that a node is in.
fn family_above<'n, E>(nodes: &'n mut [Node<E>], roots: &'n mut Family, id: usize) -> &'n mut Family {
    let parent = nodes.get(id).and_then(|node| node.parent);
    match parent.and_then(|parent| nodes.get_mut(parent.0 as usize)) {
        Some(parent) => &mut parent.children,
        None => roots,
    }
}

impl<E> CallTree<E> {
    /// The sum of all values.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// The nodes at the top, the greatest first, whatever their sign.
    pub fn roots(&self) -> &[NodeId] {
        self.family(self.roots)
    }

    /// The nodes below a node, the greatest first, whatever their sign.
    pub fn children(&self, node: &Node<E>) -> &[NodeId] {
        self.family(node.children)
    }

    fn family(&self, family: Family) -> &[NodeId] {
        self.families.get(family.start as usize..family.end as usize).unwrap_or_default()
    }

    /// A node by its id.
    pub fn node(&self, id: NodeId) -> Option<&Node<E>> {
        self.nodes.get(id.0 as usize)
    }

    /// All nodes with their ids, parents before their children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node<E>)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// A node and those above it, up to its root.
    pub fn path(&self, id: NodeId) -> impl Iterator<Item = &Node<E>> {
        std::iter::successors(self.node(id), |node| self.node(node.parent?))
    }
}
