//! How much may be made of what was read.
//!
//! A stack that is defined once may belong to samples of a thousand processes, or stand below a thousand others, and
//! each of its addresses may hold hundreds of inlined functions. A few bytes can so ask for a profile of any size. So
//! every distinct stack of every process pays for its frames: much for those that make a node of their own, which takes
//! memory, and little for those that are there already, which take time. When all is spent, only the innermost frame
//! of a stack is kept. No sample is lost by it.

use serde::Serialize;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::trace::Trace;

use super::frame::{Frame, FrameId};

/// The most that may be made of a trace. A unit is 64 characters of a frame that a stack shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u64);

/// What even the smallest recording may ask for: 43,000 nodes.
const LEAST: u64 = 3 << 17;

/// What no recording may ask for: 120 million nodes, 12 GiB.
const MOST: u64 = 1 << 30;

/// What a node costs more than a frame that is there already: about 100 bytes.
const NODE: u64 = 8;

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
    /// How many of so many frames there is room for; one is always kept.
    pub(super) fn room(&self, frames: usize) -> usize {
        usize::try_from(self.left / (NODE + 1)).unwrap_or(usize::MAX).clamp(1, frames.max(1))
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
    pub(super) fn add(&mut self, missing: u32) {
        self.samples += u64::from(missing > 0);
        self.frames += u64::from(missing);
    }
}

/// A stack's innermost frames, as many as were paid for.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// The leaf first.
    frames: Vec<FrameId>,
    /// Frames that were not paid for.
    pub(super) missing: u32,
}

impl Stack {
    /// Puts `frame` above the others, if it can be paid for; the leaf is there in any case.
    pub(super) fn push(&mut self, id: FrameId, frame: &Frame, budget: &mut Budget) {
        let cost = NODE + 1 + (frame.text.len() / TEXT) as u64;
        let left = if self.missing == 0 { budget.left.checked_sub(cost) } else { None };
        if left.is_some() || self.frames.is_empty() {
            budget.left = left.unwrap_or(0);
            self.frames.push(id);
        } else {
            self.missing += 1;
        }
    }

    /// Adds the stack to `tree` below `above`, and gives back what was paid for nodes that are there already.
    pub(super) fn extend(
        &self,
        tree: &mut PrefixTree<FrameId>,
        above: Option<NodeId>,
        budget: &mut Budget,
    ) -> Option<NodeId> {
        let before = tree.len();
        let node = tree.extend(above, self.frames.iter().rev().copied());
        let shared = self.frames.len().saturating_sub(tree.len() - before);
        budget.left = budget.left.saturating_add(NODE * shared as u64);
        node
    }
}

/// Stands at the root of a stack that is not whole.
pub(super) const CUT: &str = "[stack cut]";
