//! How much may be made of what was read.
//!
//! A stack that is defined once may belong to samples of a thousand processes, or stand below a thousand others, and
//! each of its addresses may hold dozens of inlined functions. A few bytes can so ask for a profile of any size. So
//! every distinct stack of every process pays for its frames: much for those that make a node of their own, which takes
//! memory, and little for those that are there already, which take time. When all is spent, only the innermost frame
//! of a stack is kept. No sample is lost by it.

use std::hash::Hash;

use serde::Serialize;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::trace::Trace;

/// The most that may be made of a trace. A unit is 64 characters of a frame that a stack shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u64);

/// What even the smallest recording may ask for: 43,000 nodes.
const LEAST: u64 = 3 << 17;

/// What no recording may ask for: 120 million nodes, 12 GiB.
const MOST: u64 = 1 << 30;

/// What a node costs more than a frame that is there already: about 100 bytes.
const NODE: u64 = 8;

/// What a place costs that was not there yet: about 150 bytes.
pub(super) const SITE: u64 = 12;

/// What a frame costs more than writing its number once more: a few bytes that are not kept.
const WRITTEN: u64 = 8;

/// Characters of a frame's text that cost as much as the frame.
const TEXT: usize = 64;

impl Limit {
    /// For a trusted recording.
    pub const NONE: Limit = Limit(u64::MAX);

    /// In proportion to what was read: a unit and a half for a byte of payload. The real recordings in the tests spend
    /// less than a hundredth of it. A sample with a stack of 24 addresses has some 220 bytes, so 330 units; where every
    /// one of them made a node of its own, they would cost 216.
    pub fn of(trace: &Trace) -> Limit {
        Limit((LEAST + trace.bytes + trace.bytes / 2).min(MOST))
    }

    /// How many frames may be written where a stack is written again for each of its threads, or for each of its samples.
    pub(crate) fn written(self) -> u64 {
        self.0.saturating_mul(WRITTEN)
    }

    /// Nothing is spent yet.
    pub(super) fn budget(self) -> Budget {
        Budget { left: self.0 }
    }
}

/// What is left of a [`Limit`].
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// True if so many units were left, which are spent then.
    pub(super) fn spend(&mut self, units: u64) -> bool {
        let left = self.left.checked_sub(units);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// True if so many new nodes could be paid for.
    pub(super) fn spend_nodes(&mut self, nodes: usize) -> bool {
        self.spend((NODE + 1).saturating_mul(nodes as u64))
    }

    /// Gives back what was paid for so many nodes that are there already.
    pub(super) fn refund(&mut self, nodes: usize) {
        self.left = self.left.saturating_add(NODE * nodes as u64);
    }
}

/// What a [`Limit`] left out of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Kept samples whose stacks are not whole.
    pub samples: u64,
    /// Frames that these stacks lack, each counted for every sample; an address that was not looked at is one,
    /// whatever is inlined there.
    pub frames: u64,
}

impl Cut {
    /// Counts a sample that lacks so many frames.
    pub(super) fn add(&mut self, missing: u32, samples: u64) {
        self.samples += u64::from(missing > 0) * samples;
        self.frames += u64::from(missing) * samples;
    }
}

/// What showing so many characters costs.
pub(super) fn text_cost(characters: usize) -> u64 {
    (characters / TEXT) as u64
}

/// A stack's innermost frames, as many as were paid for.
#[derive(Debug)]
pub(super) struct Frames<T> {
    /// The leaf first.
    frames: Vec<T>,
    /// Frames that were not paid for.
    pub(super) missing: u32,
}

impl<T: Copy + Eq + Hash> Frames<T> {
    /// Room for so many frames.
    pub(super) fn with_room(frames: usize) -> Frames<T> {
        Frames { frames: Vec::with_capacity(frames), missing: 0 }
    }

    /// Puts `frame` above the others, if it can be paid for; the leaf is there in any case. `text` is what showing
    /// its text costs.
    pub(super) fn push(&mut self, frame: T, text: u64, budget: &mut Budget) {
        let cost = NODE + 1 + text;
        let left = if self.missing == 0 { budget.left.checked_sub(cost) } else { None };
        if left.is_some() || self.frames.is_empty() {
            budget.left = left.unwrap_or(0);
            self.frames.push(frame);
        } else {
            self.missing += 1;
        }
    }

    /// What was paid for, the leaf first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.frames.iter()
    }

    /// The one that was put there last.
    pub(super) fn outermost(&self) -> Option<&T> {
        self.frames.last()
    }

    /// All of them, the outermost first.
    pub(super) fn outermost_first(self) -> impl Iterator<Item = T> {
        self.frames.into_iter().rev()
    }

    /// Adds the stack to `tree` below `above`, and gives back what was paid for nodes that are there already.
    pub(super) fn extend(
        &self,
        tree: &mut PrefixTree<T>,
        above: Option<NodeId>,
        budget: &mut Budget,
    ) -> Option<NodeId> {
        let before = tree.len();
        let node = tree.extend(above, self.frames.iter().rev().copied());
        budget.refund(self.frames.len().saturating_sub(tree.len() - before));
        node
    }
}
