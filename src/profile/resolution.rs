//! How many frames have names, and why the others have none.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::prefix_tree::NodeId;
use crate::trace::ProcessId;

use super::category::Category;
use super::stack::SiteId;
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
    pub unresolved: BTreeMap<Unresolved, u64>,
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
            Some(cause) => *self.unresolved.entry(cause).or_default() += samples,
            None => {
                self.resolved += samples;
                self.managed += if frame.category.is_managed() { samples } else { 0 };
            }
        }
    }

    /// The share of frames that have a name, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.resolved as f64 / self.total().max(1) as f64
    }

    /// The sum of several.
    pub fn sum<'r>(several: impl IntoIterator<Item = &'r Resolution>) -> Resolution {
        let mut all = Resolution::default();
        several.into_iter().for_each(|one| all.merge(one));
        all
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
    pub fn resolution(&self) -> BTreeMap<ProcessId, Resolution> {
        let mut stacks: FxHashMap<_, u64> = FxHashMap::default();
        for sample in &self.samples {
            *stacks.entry((self.runner(sample).process, sample.stack)).or_default() += sample.count();
        }
        let mut stacks: Vec<((ProcessId, NodeId), u64)> = stacks.into_iter().collect();
        stacks.sort_unstable();
        let mut processes: BTreeMap<ProcessId, Resolution> = BTreeMap::new();
        // A place may hold many inlined functions: they are looked at once, however many samples have it. The list of
        // all places serves one process after the other.
        let mut samples_at: Vec<u64> = vec![0; self.stacks.site_count()];
        let mut touched: Vec<SiteId> = Vec::new();
        for of_process in stacks.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            for ((_, stack), samples) in of_process {
                for site in self.stacks.site_ids(*stack) {
                    let Some(all) = samples_at.get_mut(site.0 as usize) else { continue };
                    if *all == 0 {
                        touched.push(site);
                    }
                    *all += samples;
                }
            }
            let Some(((process, _), _)) = of_process.first() else { continue };
            let resolution = processes.entry(*process).or_default();
            for site in touched.drain(..) {
                let samples = samples_at.get_mut(site.0 as usize).map_or(0, std::mem::take);
                for frame in self.stacks.frames_at(site).filter_map(|frame| self.stacks.frame(frame)) {
                    resolution.add(frame, samples);
                }
            }
        }
        processes
    }

    /// The frames of all processes together.
    pub fn resolution_of_all(&self) -> Resolution {
        Resolution::sum(self.resolution().values())
    }

    /// How many kept samples have a leaf with a name: a function in an image, or code that a runtime named.
    pub fn named_leaves(&self) -> u64 {
        let is_named =
            |sample: &&Sample| self.stacks.leaf(sample.stack).is_some_and(|leaf| leaf.unresolved.is_none());
        self.samples.iter().filter(is_named).map(Sample::count).sum()
    }

    /// The kept samples by the category of their leaf; every kind of code is there.
    pub fn categories(&self) -> BTreeMap<Category, u64> {
        let mut categories: BTreeMap<_, _> =
            Category::CODE.into_iter().zip([0; Category::CODE.len()]).collect();
        for sample in &self.samples {
            let leaf = self.stacks.leaf(sample.stack);
            let category = leaf.map_or(Category::Unresolved, |leaf| leaf.category);
            *categories.entry(category).or_default() += sample.count();
        }
        categories
    }

    /// The values of the samples that have code of each kind in their stacks, each sample once for a kind; of functions
    /// that were inlined only if they count as code of their own.
    pub(crate) fn values_with_code(&self, inlined: bool) -> BTreeMap<Category, i64> {
        let bit =
            |category| Category::CODE.iter().position(|kind| *kind == category).map_or(0, |at| 1_u32 << at);
        let counts = |frame: &&Frame| inlined || frame.inlined == 0;
        let of_frame = |frame| self.stacks.frame(frame).filter(counts).map_or(0, |frame| bit(frame.category));
        let kinds = self.stacks.accumulated(of_frame, |above, here| above | here);
        let mut values: BTreeMap<Category, i64> = BTreeMap::new();
        let mut of_kinds: FxHashMap<u32, i64> = FxHashMap::default();
        for sample in &self.samples {
            let kinds = kinds.get(sample.stack.0 as usize).copied().unwrap_or(0);
            let value = of_kinds.entry(kinds).or_default();
            *value = value.saturating_add(sample.value);
        }
        for (kinds, value) in of_kinds {
            for category in Category::CODE.into_iter().filter(|category| kinds & bit(*category) != 0) {
                let all = values.entry(category).or_default();
                *all = all.saturating_add(value);
            }
        }
        values
    }
}
