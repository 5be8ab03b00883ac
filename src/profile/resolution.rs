//! How many frames have names, and why the others have none.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::trace::ProcessId;

use super::category::Category;
use super::unresolved::Unresolved;
use super::{Frame, Profile, Sample};

/// Frames of kept samples by what they are, each counted once for every sample that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Functions.
    pub resolved: u64,
    /// Of these, .NET methods.
    pub managed: u64,
    /// Addresses, by why they have no name.
    pub unresolved: FxHashMap<Unresolved, u64>,
}

/// Frames of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCount {
    /// Why they have no name.
    pub cause: Unresolved,
    /// How many.
    pub frames: u64,
}

impl Resolution {
    /// All frames.
    pub fn total(&self) -> u64 {
        self.resolved + self.unresolved.values().sum::<u64>()
    }

    /// Frames without a name that are in no image either.
    pub fn outside_images(&self) -> u64 {
        let outside = self.unresolved.iter().filter(|(cause, _)| **cause != Unresolved::NoSymbols);
        outside.map(|(_, frames)| frames).sum()
    }

    /// The causes, most frames first.
    pub fn causes(&self) -> Vec<FrameCount> {
        let count = |(cause, frames): (&Unresolved, &u64)| FrameCount { cause: *cause, frames: *frames };
        let mut causes: Vec<FrameCount> = self.unresolved.iter().map(count).collect();
        causes.sort_by_key(|count| (std::cmp::Reverse(count.frames), count.cause));
        causes
    }

    fn add(&mut self, frame: &Frame, samples: u64) {
        match frame.unresolved {
            _ if frame.category == Category::Heading => {}
            Some(cause) => *self.unresolved.entry(cause).or_default() += samples,
            None => {
                self.resolved += samples;
                self.managed += if frame.category.is_managed() { samples } else { 0 };
            }
        }
    }

    /// The sum of two.
    pub fn merge(&mut self, other: &Resolution) {
        self.resolved += other.resolved;
        self.managed += other.managed;
        for (cause, frames) in &other.unresolved {
            *self.unresolved.entry(*cause).or_default() += frames;
        }
    }
}

impl Profile {
    /// The frames of each process that has samples.
    pub fn resolution(&self) -> FxHashMap<ProcessId, Resolution> {
        let mut stacks: FxHashMap<_, u64> = FxHashMap::default();
        for sample in &self.samples {
            *stacks.entry((sample.process, sample.stack)).or_default() += 1;
        }
        let mut processes: FxHashMap<ProcessId, Resolution> = FxHashMap::default();
        for ((process, stack), samples) in stacks {
            let resolution = processes.entry(process).or_default();
            for frame in self.stacks.path(stack).filter_map(|frame| self.frame(frame)) {
                resolution.add(frame, samples);
            }
        }
        processes
    }

    /// How many kept samples have a leaf with a name: a function in an image, or code that a runtime named.
    pub fn named_leaves(&self) -> u64 {
        let leaf = |sample: &Sample| self.frame(self.stacks.value(sample.stack)?);
        let is_named = |sample: &&Sample| leaf(sample).is_some_and(|leaf| leaf.unresolved.is_none());
        self.samples.iter().filter(is_named).count() as u64
    }

    /// The kept samples by the category of their leaf; every kind of code is there.
    pub fn categories(&self) -> BTreeMap<Category, u64> {
        let mut categories: BTreeMap<_, _> =
            Category::CODE.into_iter().zip([0; Category::CODE.len()]).collect();
        for sample in &self.samples {
            let leaf = self.stacks.value(sample.stack).and_then(|leaf| self.frame(leaf));
            let category = leaf.map_or(Category::Unresolved, |leaf| leaf.category);
            *categories.entry(category).or_default() += 1;
        }
        categories
    }
}
