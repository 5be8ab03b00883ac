//! Parts of stacks that share their callers as real ones do.

use std::collections::HashSet;

use super::random::Random;

/// The deepest that Windows records.
const DEEPEST: usize = 192;

/// A frame, and through its callers a whole part of a stack.
pub(super) type Node = u32;

#[derive(Clone, Copy, Debug)]
struct Frame {
    address: u64,
    caller: Node,
}

const ROOT: Node = Node::MAX;

/// Parts of stacks, the caller of each frame stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    frames: Vec<Frame>,
}

impl Parts {
    pub(super) fn address(&self, node: Node) -> u64 {
        self.frames[node as usize].address
    }

    /// The frames of a part, leaf first.
    pub(super) fn walk(&self, node: Node) -> impl Iterator<Item = u64> {
        let frame = |node: Node| (node != ROOT).then(|| self.frames[node as usize]);
        std::iter::successors(frame(node), move |at| frame(at.caller)).map(|frame| frame.address)
    }
}

/// Adds parts, each of which takes up its callers from one of those before it.
#[derive(Debug, Default)]
pub(super) struct Growing {
    parts: Parts,
    by_depth: Vec<Vec<Node>>,
    /// A caller has each callee once: two nodes are two different stacks.
    callees: HashSet<(Node, u64)>,
}

impl Growing {
    /// Adds a part of about `depth` frames, of which about `fresh` are new.
    pub(super) fn add(
        &mut self,
        depth: f64,
        fresh: f64,
        random: &mut Random,
        mut address: impl FnMut(&mut Random) -> u64,
    ) -> Node {
        let depth = (depth as usize).clamp(1, DEEPEST);
        let fresh = (fresh as usize).min(depth);
        let shared = (depth - fresh).min(self.by_depth.len());
        let mut node = match shared {
            0 => ROOT,
            _ => self.by_depth[shared - 1][random.index(self.by_depth[shared - 1].len())],
        };
        for at in shared..depth {
            node = self.callee(node, at, random, &mut address);
        }
        node
    }

    /// A new callee of a part that has `depth` frames.
    fn callee(
        &mut self,
        caller: Node,
        depth: usize,
        random: &mut Random,
        address: &mut impl FnMut(&mut Random) -> u64,
    ) -> Node {
        let address = loop {
            let address = address(random);
            if self.callees.insert((caller, address)) {
                break address;
            }
        };
        let node = Node::try_from(self.parts.frames.len()).expect("less than 4 billion frames");
        self.parts.frames.push(Frame { address, caller });
        if self.by_depth.len() == depth {
            self.by_depth.push(Vec::new());
        }
        self.by_depth[depth].push(node);
        node
    }

    pub(super) fn finish(self) -> Parts {
        self.parts
    }
}
