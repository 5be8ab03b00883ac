//! Repairs broken stacks by what the whole stacks before and after them share.
//!
//! What is made so is no measurement, so it is only done on request, and every such stack says so
//! ([`Remark::Repaired`]). A broken stack is repaired if
//!
//! - the nearest whole stacks of its thread, before and after it, are each at most [`MOST_APART`] away, and
//! - they share calls, from the start of the thread on: the same return addresses in the same order, in user mode.
//!
//! Its outer frames become
//!
//! 1. *by overlap*: the shared ones above the function in which the broken stack begins, if that function is among the
//!    shared calls, or what both call next, and is so once only; or else,
//! 2. *by place*: all shared ones, if there are at least [`LEAST_SHARED`]. Frames between them and the broken stack may be
//!    missing.
//!
//! Where the function is there several times, by recursion, nobody knows which one it is, and the stack stays broken.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::prefix_tree::NodeId;
use crate::trace::{Context, ModuleId, Parts, Place, RunnerId, Trace};

use super::frame::{FunctionId, Remark};
use super::limit::Budget;
use super::stack::{Site, SiteId};
use super::stacks::Stacks;
use super::{Profile, Sample};

/// The most seconds between a broken stack and each of the two that it is repaired by.
const MOST_APART: f64 = 0.01;

/// The least calls that these share, where they are all that is known: more than the start of a thread.
const LEAST_SHARED: usize = 4;

impl Profile {
    /// Repairs broken stacks where that is possible, within the limit of the profile. The balance counts those that it
    /// repaired and those that it did not.
    ///
    /// Samples that became one ([`Trace::merged`](crate::trace::Trace::merged)) stay as they are.
    pub fn repair(&mut self) {
        if self.trace.merged.is_some_and(|merged| merged.stacks_only) {
            return;
        }
        let mut repair = Repair {
            trace: &self.trace,
            stacks: Arc::make_mut(&mut self.stacks),
            budget: self.limit.budget(),
            remark: None,
            known: FxHashMap::default(),
        };
        let mut threads: FxHashMap<RunnerId, Thread> = FxHashMap::default();
        let mut repaired: Vec<(usize, NodeId)> = Vec::new();
        let clock = self.trace.clock;
        for (index, sample) in self.samples.iter().enumerate() {
            let state = State::of(repair.stacks, sample);
            if matches!(state, State::Other) {
                continue;
            }
            let thread = threads.entry(sample.runner).or_default();
            let this = Seen { index, time: sample.time, stack: sample.stack };
            if matches!(state, State::Broken) {
                thread.broken.push(this);
                continue;
            }
            let broken = std::mem::take(&mut thread.broken);
            let Some(before) = thread.whole.replace(this) else { continue };
            let is_near = |one: Seen, other: Seen| clock.seconds_between(one.time, other.time) <= MOST_APART;
            for broken in
                broken.into_iter().filter(|broken| is_near(before, *broken) && is_near(*broken, this))
            {
                let neighbours = Neighbours { before: before.stack, after: this.stack };
                let stack = repair.repaired(neighbours, broken.stack);
                repaired.extend(stack.map(|stack| (broken.index, stack)));
            }
        }
        repair.stacks.measure();
        for (index, stack) in repaired {
            if let Some(sample) = self.samples.get_mut(index) {
                sample.stack = stack;
            }
        }
        self.count_remarks();
    }
}

/// What the latest samples of a thread were.
#[derive(Default)]
struct Thread {
    /// The last whole one.
    whole: Option<Seen>,
    /// The broken ones since.
    broken: Vec<Seen>,
}

/// A sample by its index.
#[derive(Clone, Copy)]
struct Seen {
    index: usize,
    time: Ticks,
    stack: NodeId,
}

enum State {
    Whole,
    Broken,
    /// Something interrupted the thread, or there is no stack to go by.
    Other,
}

impl State {
    fn of(stacks: &Stacks, sample: &Sample) -> State {
        // One that stands for several has no neighbours in time.
        if sample.count > 1 {
            return State::Other;
        }
        match (stacks.remarks(sample.stack).next(), sample.parts) {
            (Some(Remark::Broken), _) => State::Broken,
            (None, Parts::User | Parts::KernelAndUser) if sample.context == Context::Thread => State::Whole,
            _ => State::Other,
        }
    }
}

/// The whole stacks around a broken one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Neighbours {
    before: NodeId,
    after: NodeId,
}

/// What is the same at two calls of a function.
#[derive(PartialEq, Eq)]
enum Code {
    Function(FunctionId, Option<ModuleId>),
    Place(SiteId),
}

struct Repair<'a> {
    trace: &'a Trace,
    stacks: &'a mut Stacks,
    budget: Budget,
    /// The site of the remark, once it is needed.
    remark: Option<SiteId>,
    /// Stacks repeat, and so do their neighbours.
    known: FxHashMap<(Neighbours, NodeId), Option<NodeId>>,
}

impl Repair<'_> {
    fn repaired(&mut self, neighbours: Neighbours, broken: NodeId) -> Option<NodeId> {
        if let Some(known) = self.known.get(&(neighbours, broken)) {
            return *known;
        }
        let repaired = self.outer_frames(neighbours, broken).and_then(|outer| self.graft(&outer, broken));
        self.known.insert((neighbours, broken), repaired);
        repaired
    }

    /// The frames that a broken stack lacks, the root first.
    fn outer_frames(&mut self, neighbours: Neighbours, broken: NodeId) -> Option<Vec<SiteId>> {
        let before = self.calls(neighbours.before)?;
        let after = self.calls(neighbours.after)?;
        let root = *self.code(broken)?.first()?;
        if self.is_kernel(root) {
            return None;
        }
        let shared = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let same = |site: &SiteId| self.code_at(*site) == self.code_at(root);
        let mut places: Vec<usize> = before
            .iter()
            .take(shared)
            .enumerate()
            .filter(|(_, site)| same(site))
            .map(|(place, _)| place)
            .collect();
        if before.get(shared).is_some_and(same) && after.get(shared).is_some_and(same) {
            places.push(shared);
        }
        let outer = match places.as_slice() {
            [place] => *place,
            [] if shared >= LEAST_SHARED => shared,
            _ => return None,
        };
        before.get(..outer).filter(|outer| !outer.is_empty()).map(<[SiteId]>::to_vec)
    }

    /// The calls of a stack in user mode, the root first. The last place in user mode is none: the leaf, or where the
    /// kernel was entered.
    fn calls(&mut self, stack: NodeId) -> Option<Vec<SiteId>> {
        let mut code = self.code(stack)?;
        let user = code.iter().take_while(|site| !self.is_kernel(**site)).count();
        code.truncate(user.saturating_sub(1));
        Some(code)
    }

    /// The places of a stack, the root first; nothing where the limit is reached.
    fn code(&mut self, stack: NodeId) -> Option<Vec<SiteId>> {
        if !self.budget.spend(u64::from(self.stacks.depth(stack))) {
            return None;
        }
        let sites = self.stacks.site_ids(stack).filter(|site| self.place(*site).is_some());
        let mut code: Vec<SiteId> = sites.collect();
        code.reverse();
        Some(code)
    }

    fn place(&self, site: SiteId) -> Option<&Place> {
        match self.stacks.sites.get(site.0 as usize) {
            Some((Site::Code(place), _)) => Some(place),
            _ => None,
        }
    }

    fn is_kernel(&self, site: SiteId) -> bool {
        match self.place(site) {
            Some(Place::Image { module, .. }) => {
                self.trace.module(*module).is_some_and(|module| module.kernel)
            }
            Some(Place::Bare { address, .. }) => self.trace.is_kernel_address(*address),
            _ => false,
        }
    }

    /// The function whose own code is at a site, and not one that is inlined there; the place itself if none is known.
    fn code_at(&self, site: SiteId) -> Code {
        let frame = self.stacks.frames_at(site).last().and_then(|frame| self.stacks.frame(frame));
        let function = frame.and_then(|frame| Some(Code::Function(frame.function?, frame.module)));
        function.unwrap_or(Code::Place(site))
    }

    /// The stack with these above it, if the limit allows.
    fn graft(&mut self, outer: &[SiteId], broken: NodeId) -> Option<NodeId> {
        let code = self.code(broken)?;
        if !self.budget.spend_nodes(outer.len() + code.len() + 1) {
            return None;
        }
        let sites = &mut self.stacks.sites;
        let remark = *self.remark.get_or_insert_with(|| {
            sites.push((Site::Remark(Remark::Repaired), None));
            SiteId(sites.len() as u32 - 1)
        });
        let all = [remark].into_iter().chain(outer.iter().copied()).chain(code);
        self.stacks.stacks.extend(None, all)
    }
}
