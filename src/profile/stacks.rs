//! Stacks with names, shared by all profiles of one recording.

use std::hash::Hash;
use std::sync::Arc;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::RawName;
use crate::trace::Place;

use super::frame::{Entry, Frame, FrameId, Function, FunctionId, Remark};
use super::stack::{Site, SiteId};

/// Every distinct stack of a recording's kept samples, with the frames of each place in it.
///
/// A stack is stored as the places that it hits. A place has one frame, or several where functions are inlined.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Each site, with its chain of frames; a remark has none.
    pub(super) sites: Vec<(Site, Option<NodeId>)>,
    pub(super) stacks: PrefixTree<SiteId>,
    pub(super) chains: PrefixTree<FrameId>,
    pub(super) frames: Vec<Frame>,
    pub(super) functions: Vec<Function>,
    /// By module, .NET methods of its precompiled image that a short name must differ from.
    pub(super) siblings: Vec<(Arc<str>, Vec<RawName>)>,
    /// What is above each stack and in it, by its node.
    pub(super) tops: Vec<Top>,
}

/// What a stack has, without a walk along it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Top {
    /// Its frames.
    depth: u32,
    /// The innermost of its remarks.
    remark: Option<NodeId>,
}

impl Stacks {
    /// Counts what each stack has.
    pub(super) fn measured(mut self) -> Stacks {
        self.measure();
        self
    }

    /// The same again, of stacks that were added too.
    pub(super) fn measure(&mut self) {
        let lengths = self.chains.depths();
        let length = |chain: NodeId| lengths.get(chain.0 as usize).copied().unwrap_or(0);
        let mut tops: Vec<Top> = Vec::with_capacity(self.stacks.len());
        for node in self.stacks.nodes() {
            let above = self.stacks.parent(node).and_then(|parent| tops.get(parent.0 as usize).copied());
            let mut top = above.unwrap_or_default();
            match self.stacks.value(node).and_then(|site| self.chain(site)) {
                Some(chain) => top.depth = top.depth.saturating_add(length(chain)),
                None => top.remark = Some(node),
            }
            tops.push(top);
        }
        self.tops = tops;
    }

    /// Every distinct frame; [`FrameId`]s are indices.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Every distinct function; [`FunctionId`]s are indices.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// .NET methods in precompiled images that are of the types of named ones, by the name of their module.
    pub(crate) fn siblings(&self) -> &[(Arc<str>, Vec<RawName>)] {
        &self.siblings
    }

    /// A frame by its id.
    pub fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id.0 as usize)
    }

    /// A function by its id.
    pub fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id.0 as usize)
    }

    /// True for a frame that has a name.
    pub fn is_named(&self, id: FrameId) -> bool {
        self.frame(id).is_some_and(|frame| frame.unresolved.is_none())
    }

    /// The function of a frame, if it has one.
    pub fn function_of(&self, frame: &Frame) -> Option<&Function> {
        self.function(frame.function?)
    }

    /// The number of distinct stacks and beginnings of stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// True without any stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The sites of a stack, from the leaf back to the root.
    pub fn sites(&self, stack: NodeId) -> impl Iterator<Item = &Site> {
        let sites = self.stacks.path(stack);
        sites.filter_map(|site| self.sites.get(site.0 as usize).map(|(site, _)| site))
    }

    /// The frames and remarks of a stack, from the leaf back to the root.
    pub fn entries(&self, stack: NodeId) -> impl Iterator<Item = Entry> {
        let remarks = self.remarks(stack).map(Entry::Remark);
        self.frames_of(stack).map(Entry::Frame).chain(remarks)
    }

    /// The frames of a stack, from the leaf back to the root.
    pub fn frames_of(&self, stack: NodeId) -> impl Iterator<Item = FrameId> {
        let chains = self.stacks.path(stack).filter_map(|site| self.chain(site));
        chains.flat_map(|chain| self.chains.path(chain))
    }

    /// The frames of a stack that is followed by that of whoever made its thread go on: its own, and those. From the leaf
    /// back to the root; without a waker there is nothing of it.
    pub fn frames_and_waker(&self, stack: NodeId) -> (Vec<FrameId>, Option<Vec<FrameId>>) {
        let (mut own, mut waker) = (Vec::new(), None);
        for site in self.stacks.path(stack) {
            if let Some((Site::Waker(_), _)) = self.sites.get(site.0 as usize) {
                waker = Some(std::mem::take(&mut own));
                continue;
            }
            own.extend(self.frames_at(site));
        }
        (own, waker)
    }

    /// What has to be said of a stack.
    pub fn remarks(&self, stack: NodeId) -> impl Iterator<Item = Remark> {
        // They stand above all frames.
        let first = self.tops.get(stack.0 as usize).and_then(|top| top.remark);
        let sites = first.into_iter().flat_map(|first| self.stacks.path(first));
        sites.filter_map(|site| match self.sites.get(site.0 as usize) {
            Some((Site::Remark(remark), _)) => Some(*remark),
            _ => None,
        })
    }

    /// True for a stack of which this has to be said.
    pub fn has(&self, stack: NodeId, remark: Remark) -> bool {
        self.remarks(stack).any(|said| said == remark)
    }

    /// How many frames a stack has.
    pub fn depth(&self, stack: NodeId) -> u32 {
        self.tops.get(stack.0 as usize).map_or(0, |top| top.depth)
    }

    /// What all frames of each stack amount to, by its node: `of` gives that of a frame, and `join` adds that of what is
    /// below to that of what is above. A remark amounts to nothing.
    pub(crate) fn accumulated<T: Copy + Default>(
        &self,
        of: impl Fn(FrameId) -> T,
        join: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        let chains = along(&self.chains, of, &join);
        let of_chain = |chain: NodeId| chains.get(chain.0 as usize).copied();
        along(&self.stacks, |site| self.chain(site).and_then(of_chain).unwrap_or_default(), join)
    }

    /// The places of a stack, from the leaf back to the root, each once for every time that it is there.
    pub(super) fn site_ids(&self, stack: NodeId) -> impl Iterator<Item = SiteId> {
        self.stacks.path(stack)
    }

    /// How many distinct places there are.
    pub(super) fn site_count(&self) -> usize {
        self.sites.len()
    }

    /// The frames at a site, from the innermost on.
    pub(super) fn frames_at(&self, site: SiteId) -> impl Iterator<Item = FrameId> {
        self.chain(site).into_iter().flat_map(|chain| self.chains.path(chain))
    }

    /// Each place with the frame of the function whose code it is.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Place, FrameId)> {
        self.sites.iter().filter_map(|(site, chain)| match site {
            Site::Code(place) => Some((*place, self.chains.path((*chain)?).last()?)),
            Site::Remark(_) | Site::Waker(_) => None,
        })
    }

    fn chain(&self, site: SiteId) -> Option<NodeId> {
        self.sites.get(site.0 as usize).and_then(|(_, chain)| *chain)
    }

    /// The leaf's frame: the innermost function there.
    pub fn leaf(&self, stack: NodeId) -> Option<&Frame> {
        let chain = self.chain(self.stacks.value(stack)?)?;
        self.frame(self.chains.value(chain)?)
    }
}

/// What the values of each sequence of a tree amount to, by its node.
fn along<V: Copy + Eq + Hash, T: Copy + Default>(
    tree: &PrefixTree<V>,
    of: impl Fn(V) -> T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut all: Vec<T> = Vec::with_capacity(tree.len());
    for node in tree.nodes() {
        let above = tree.parent(node).and_then(|parent| all.get(parent.0 as usize).copied());
        let here = tree.value(node).map(&of).unwrap_or_default();
        all.push(above.map_or(here, |above| join(above, here)));
    }
    all
}
