//! Which samples are kept by what is in their stacks, now that it has names.

use rustc_hash::FxHashSet;

use crate::prefix_tree::NodeId;

use super::filter::{Balance, Fate};
use super::frame::FrameId;
use super::stacks::Stacks;
use super::{Category, Sample};

/// A set of frames, made by whoever knows how they read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameSet(FxHashSet<FrameId>);

impl FromIterator<FrameId> for FrameSet {
    fn from_iter<I: IntoIterator<Item = FrameId>>(frames: I) -> FrameSet {
        FrameSet(frames.into_iter().collect())
    }
}

impl FrameSet {
    /// True for one of them.
    pub fn contains(&self, frame: FrameId) -> bool {
        self.0.contains(&frame)
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Keeps samples by what is in their stacks. `None` keeps all; what is given must hold, each for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFilter {
    /// Stacks with at least one of these frames: those of the wanted modules.
    pub modules: Option<FrameSet>,
    /// Stacks with at least one of these frames: those of the wanted functions.
    pub functions: Option<FrameSet>,
    /// Stacks without any of these frames.
    pub excluded: Option<FrameSet>,
    /// Stacks whose leaf is of one of these categories.
    pub categories: Option<Vec<Category>>,
}

/// What a stack has, as bits.
type Marks = u8;
const MODULE: Marks = 1;
const FUNCTION: Marks = 2;
const EXCLUDED: Marks = 4;

impl StackFilter {
    /// True if it keeps every sample.
    pub fn keeps_all(&self) -> bool {
        *self == StackFilter::default()
    }

    /// Those of `samples` to keep, and their account: `before` is what it was before.
    pub(super) fn choose(
        &self,
        stacks: &Stacks,
        samples: &[Sample],
        before: Balance,
    ) -> (Vec<Sample>, Balance) {
        let marks = self.marks(stacks);
        before.recounted(samples, |sample| {
            let marks = marks.get(sample.stack.0 as usize).copied().unwrap_or_default();
            let has = |mark: Marks| marks & mark != 0;
            if self.modules.is_some() && !has(MODULE) {
                Fate::OtherModule
            } else if self.functions.is_some() && !has(FUNCTION) {
                Fate::OtherFunction
            } else if has(EXCLUDED) {
                Fate::Excluded
            } else if !self.keeps_leaf(stacks, sample.stack) {
                Fate::OtherCategory
            } else {
                Fate::Kept
            }
        })
    }

    fn keeps_leaf(&self, stacks: &Stacks, stack: NodeId) -> bool {
        let Some(categories) = &self.categories else { return true };
        stacks.leaf(stack).is_some_and(|leaf| categories.contains(&leaf.category))
    }

    /// What each stack has, by its node. Every frame, chain of frames and stack is looked at once.
    fn marks(&self, stacks: &Stacks) -> Vec<Marks> {
        let sets = [(&self.modules, MODULE), (&self.functions, FUNCTION), (&self.excluded, EXCLUDED)];
        let of_frame = |frame: FrameId| {
            let has = |set: &Option<FrameSet>| set.as_ref().is_some_and(|set| set.contains(frame));
            sets.iter().filter(|(set, _)| has(set)).fold(0, |marks, (_, mark)| marks | mark)
        };
        stacks.accumulated(of_frame, |above, here| above | here)
    }
}
