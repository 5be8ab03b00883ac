//! Raw stacks, interned as one prefix tree.
//!
//! A stack is a node; its frames are the addresses on the way from there to the root. Stacks that share callers share
//! nodes, so memory grows with distinct stacks and not with their number.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A stack in a [`Stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub(super) u32);

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The caller's node plus one; 0 for none.
    parent: u32,
    address: u64,
}

/// A prefix tree of addresses.
#[derive(Debug, Default)]
pub struct Stacks {
    nodes: Vec<Node>,
    index: HashTable<u32>,
}

impl Stacks {
    /// The node of a stack whose frames are given from the root to the leaf; `None` for a stack without frames.
    pub(super) fn intern(&mut self, root_first: impl Iterator<Item = u64>) -> Option<StackId> {
        let mut parent = 0;
        for address in root_first {
            parent = self.child(parent, address) + 1;
        }
        parent.checked_sub(1).map(StackId)
    }

    fn child(&mut self, parent: u32, address: u64) -> u32 {
        let nodes = &mut self.nodes;
        let found = self.index.entry(
            hash(parent, address),
            |node| nodes.get(*node as usize).is_some_and(|node| node.parent == parent && node.address == address),
            |node| nodes.get(*node as usize).map_or(0, |node| hash(node.parent, node.address)),
        );
        *found
            .or_insert_with(|| {
                nodes.push(Node { parent, address });
                (nodes.len() - 1) as u32
            })
            .get()
    }

    /// The addresses of a stack, leaf first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = u64> + '_ {
        let mut next = stack.0 + 1;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next.checked_sub(1)? as usize)?;
            next = node.parent;
            Some(node.address)
        })
    }

    /// The number of distinct stacks and prefixes of stacks.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True without any stack.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

fn hash(parent: u32, address: u64) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one((parent, address))
}

#[cfg(test)]
mod tests {
    use super::Stacks;

    #[test]
    fn shared_callers_are_stored_once() {
        let mut stacks = Stacks::default();
        let a = stacks.intern([1, 2, 3].into_iter()).unwrap();
        let b = stacks.intern([1, 2, 4].into_iter()).unwrap();
        assert_eq!(stacks.intern([1, 2, 3].into_iter()), Some(a));
        assert_eq!(stacks.intern([].into_iter()), None);
        assert_eq!(stacks.len(), 4);
        assert_eq!(stacks.frames(a).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(stacks.frames(b).collect::<Vec<_>>(), [4, 2, 1]);
    }
}
