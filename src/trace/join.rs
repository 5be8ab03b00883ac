//! Samples joined to their stacks.
//!
//! A sample and its stack are separate records. The stack comes in up to two fragments that name the sample by its
//! time and thread: a kernel fragment written at once, and a user fragment written when the thread leaves the kernel,
//! up to 0.4 s later and perhaps on another processor. Everything that a thread raises during one stay in the kernel
//! has the same user-mode callers, so one user fragment completes *every* kernel fragment that waits on its thread,
//! whichever event it names (on net.4.5.2.x64.etl 51 of 68 samples get their user part only this way). A sample in user
//! mode ends the stay: what waited before it has lost its user part, and a later stay's is another.
//!
//! A fragment may be told by a key instead. Keys are used again: a reference belongs to the first definition of its
//! key that comes after it, and kernel and user keys are apart. The reference completes waiting samples when it
//! comes; its frames follow, at the latest when the session ends.

mod room;
mod stays;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::etl::digest::{BufferAt, Place};
use crate::event::{Event, NO_ID, Pointer, Ticks};
use crate::events::kernel::{self, Frames, StackWalk};
use crate::origin::KernelSpace;
use crate::prefix_tree::{NodeId, PrefixTree};

use super::awaiting::{Awaiting, Fact, Found, Keep, Mode, Named, Other, Owner, Part, find, kernel_test};
use super::chosen::{ChosenEvent, EventSet};
use super::digest::{Buffers, Digest, Fragment, Worker};
use super::idle::IdleCounter;
use super::merging::Merging;
use super::pieces::Pieces;
use super::recent::{Memory, Recent};
use room::FEW;
use stays::{InKernel, Waiting};

/// Collects samples and stacks in order of time.
#[derive(Debug)]
pub(super) struct Join {
    /// What addresses are the kernel's.
    kernel: KernelSpace,
    /// The only processes whose samples are kept, if not all are.
    wanted: Option<FxHashSet<u32>>,
    /// Samples that were dropped because their process is not wanted.
    pub(super) unwanted: u64,
    /// How many samples and other events there may be before those that nobody wants are dropped.
    sweep_at: usize,
    /// How many samples there may be before those that may become one do.
    merge_at: usize,
    pub(super) merging: Option<Merging>,
    /// The time of the last sample that became part of another.
    pub(super) last_merged: Option<Ticks>,
    pub(super) samples: Pieces<Awaiting<kernel::Sample>>,
    /// Which events are kept beside them, and these.
    keep: Keep,
    /// Events that are kept beside these.
    chosen: Arc<EventSet>,
    /// The last event of the CLR on each thread, and whether it is a chosen one: a stack that the CLR walked is its.
    clr: FxHashMap<u32, (Ticks, bool)>,
    /// Idle samples are kept like others.
    keep_idle: bool,
    pub(super) others: Pieces<Awaiting<Other>>,
    pub(super) idle: IdleCounter,
    pub(super) stacks: PrefixTree<u64>,
    threads: FxHashMap<u32, InKernel>,
    /// What each reference to a key turned out to be.
    references: Vec<Part>,
    /// References of keys that have not been defined since.
    open_keys: FxHashMap<(u64, bool), Vec<u32>>,
    /// Definitions told when a key was made, for keys that are never defined again.
    created: FxHashMap<(u64, bool), NodeId>,
    /// Trees of threads that digested buffers: each node as one of `stacks`.
    grafted: Vec<Vec<NodeId>>,
    recent: Recent,
    /// The place of the record that is being taken, where records have places.
    now: Place,
    /// Stacks whose event is not in the trace.
    pub(super) orphans: u64,
}

/// What a fragment belongs to, by its index.
#[derive(Clone, Copy, Debug)]
enum Of {
    Sample(u32),
    Other(u32),
}

/// Behind everything that has come.
const LATEST: Place = Place { time: Ticks(i64::MAX), buffer: (u32::MAX, u32::MAX), offset: u32::MAX };

impl Join {
    pub(super) fn new(kernel: KernelSpace) -> Self {
        Join {
            kernel,
            wanted: None,
            unwanted: 0,
            sweep_at: usize::MAX,
            merge_at: usize::MAX,
            merging: None,
            last_merged: None,
            samples: Pieces::default(),
            keep: Keep::default(),
            chosen: Arc::default(),
            clr: FxHashMap::default(),
            keep_idle: false,
            others: Pieces::default(),
            idle: IdleCounter::default(),
            stacks: PrefixTree::default(),
            threads: FxHashMap::default(),
            references: Vec::new(),
            open_keys: FxHashMap::default(),
            created: FxHashMap::default(),
            grafted: Vec::new(),
            recent: Recent::default(),
            now: LATEST,
            orphans: 0,
        }
    }

    /// What digests buffers for it.
    pub(super) fn buffers(&self) -> Buffers {
        // Which samples may become one must not depend on who has interned their stacks.
        let interns = self.merging.is_none();
        let chosen = Arc::clone(&self.chosen);
        Buffers::new(self.kernel, self.keep, chosen, self.keep_idle, self.wanted.clone(), interns)
    }

    /// A buffer begins, after so many records of sampling intervals.
    pub(super) fn begin(&mut self, buffer: &BufferAt, digest: &mut Digest, intervals: usize) {
        self.idle.begin(buffer, &mut digest.idle, intervals);
        self.recent.begin(buffer, &mut digest.notes, |_| ());
        digest.clear();
    }

    /// The record at this place is next.
    #[inline]
    pub(super) fn at(&mut self, place: Place) {
        self.now = place;
    }

    /// Another sampling interval is in force; so many were recorded before.
    pub(super) fn interval_changes(&mut self, intervals: usize) {
        self.idle.interval_changes(Some(self.now), intervals);
    }

    /// Takes over the stacks of the threads that digested buffers.
    pub(super) fn graft(&mut self, workers: Vec<Worker>) {
        for Worker { stacks, .. } in workers {
            let mut nodes: Vec<NodeId> = Vec::with_capacity(stacks.len());
            for node in stacks.nodes() {
                let parent = stacks.parent(node).and_then(|parent| nodes.get(parent.0 as usize).copied());
                nodes.extend(stacks.value(node).map(|value| self.stacks.child(parent, value)));
            }
            self.grafted.push(nodes);
        }
    }

    /// Keeps the samples of these processes only. The process of a sample is known when its stack names it.
    pub(super) fn keep_only(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.wanted = Some(pids.into_iter().collect());
        self.sweep_at = FEW;
    }

    /// Keeps idle samples like others.
    pub(super) fn keep_idle(&mut self) {
        self.keep_idle = true;
    }

    /// Keeps chosen events, too.
    pub(super) fn keep_events(&mut self, chosen: Arc<EventSet>) {
        self.chosen = chosen;
    }

    /// Keeps these events, too.
    pub(super) fn keep(&mut self, keep: Keep) {
        self.keep = keep;
    }

    /// True for the samples of this process.
    pub(super) fn is_unwanted(&self, pid: u32) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&pid))
    }

    /// Notes that the sample of a stack is of a process that nobody wants.
    fn dismiss(&mut self, named: Named) {
        match self.find(named, Mode::Both, None, Pointer::Bits64) {
            Ok(Of::Sample(index)) => dismiss(self.samples.get_mut(index as usize), named),
            Ok(Of::Other(index)) => dismiss(self.others.get_mut(index as usize), named),
            Err(_) => {}
        }
    }

    /// Takes a sample, which comes after so many records of sampling intervals.
    #[inline]
    pub(super) fn sample(
        &mut self,
        sample: kernel::Sample,
        pointer: Pointer,
        (time, processor): (Ticks, u16),
        intervals: usize,
    ) {
        if sample.is_idle() && !self.keep_idle {
            self.idle.add(time, processor, sample.count, intervals);
            return;
        }
        if !sample.is_interrupt()
            && !self.kernel.contains(sample.address, pointer)
            && let Some(thread) = self.threads.get_mut(&sample.tid)
        {
            thread.samples.left_at(time);
            thread.others.left_at(time);
        }
        self.samples.push(Awaiting::new(sample, time, processor));
    }

    /// Takes an event of another kind, which is kept if it was asked for.
    #[inline]
    pub(super) fn other(&mut self, fact: Fact, event: &Event<'_>) {
        // A stack of a switch is the new thread's; of all others any thread's where the header knows none.
        let tid = if let Fact::Switch(switch) = fact { switch.new_tid } else { event.tid };
        self.note(event.time, tid);
        if self.keep.wants(&fact) {
            self.others.push(Awaiting::new(Other::new(fact, event), event.time, event.processor));
        }
    }

    /// Takes a chosen event, whose stack is that of `tid`. It may carry it itself.
    pub(super) fn chosen(&mut self, fact: ChosenEvent, tid: u32, event: &Event<'_>) {
        let mut one = Awaiting::new(Other::chosen(fact, tid), event.time, event.processor);
        one.pid = if tid == event.tid { event.pid } else { NO_ID };
        self.others.push(one);
        if let Some(frames) = kernel::own_stack(event) {
            let Event { time, pid, tid, processor, .. } = *event;
            let named = Named { time, pid, tid, processor, written: time };
            let last = self.others.len().checked_sub(1);
            both(
                last.and_then(|last| self.others.get_mut(last)),
                named,
                frames,
                self.kernel,
                &mut self.stacks,
            );
        }
    }

    /// Takes note of an event of the CLR: the stack that it may walk next on this thread is its.
    pub(super) fn clr_event(&mut self, event: &Event<'_>, is_chosen: bool) {
        if event.tid != NO_ID {
            self.clr.insert(event.tid, (event.time, is_chosen));
        }
    }

    /// Takes a stack that the CLR walked for the last event on its thread.
    pub(super) fn clr_stack(&mut self, event: &Event<'_>, frames: Frames<'_>) {
        let Event { pid, tid, processor, time: written, .. } = *event;
        let Some((time, true)) = self.clr.remove(&tid) else { return };
        let named = Named { time, pid, tid, processor, written };
        let is_kernel = kernel_test(self.kernel, frames.pointer());
        if let Found::One(index) = find(&self.others, named, Mode::Both, None, is_kernel) {
            both(self.others.get_mut(index as usize), named, frames, self.kernel, &mut self.stacks);
        }
    }

    /// Remembers an event that may own a stack. `tid` is the thread whose stack it would be.
    #[inline]
    pub(super) fn note(&mut self, time: Ticks, tid: u32) {
        self.recent.push(time, tid);
    }

    pub(super) fn stack_walk(&mut self, walk: &StackWalk<'_>, event: &Event<'_>) {
        let named =
            |time, pid, tid| Named { time, pid, tid, processor: event.processor, written: event.time };
        match *walk {
            StackWalk::Stack { event_time, pid, tid, .. } | StackWalk::Key { event_time, pid, tid, .. }
                if self.is_unwanted(pid) =>
            {
                self.dismiss(named(event_time, pid, tid));
            }
            StackWalk::Stack { event_time, pid, tid, frames } => {
                self.fragment(named(event_time, pid, tid), frames);
            }
            StackWalk::Key { event_time, pid, tid, key, kernel } => {
                let named = named(event_time, pid, tid);
                let mode = if kernel { Mode::Kernel } else { Mode::User };
                let owner = self.owner(named, mode, None, event.pointer, false);
                let reference = self.references.len() as u32;
                let known = self.created.get(&(key, kernel)).copied();
                self.references.push(known.map_or(Part::Missing, Part::own));
                self.open_keys.entry((key, kernel)).or_default().push(reference);
                let part = Part::Referred(reference);
                if kernel {
                    self.kernel_part(owner, named, |_| Some(part));
                } else {
                    self.user_part(owner, named, |_| Some(part));
                }
            }
            StackWalk::Definition { key, frames, created } => self.define(key, frames, created),
        }
    }

    /// The stack that an event carries itself completes what waits on its thread, if it is the kernel's own event for
    /// that purpose (Kernel-EventTracing 18).
    pub(super) fn late_user_stack(&mut self, event: &Event<'_>, frames: Frames<'_>) {
        let Event { time, pid, tid, processor, .. } = *event;
        if frames.addresses().next().is_some() {
            let named = Named { time, pid, tid, processor, written: time };
            self.user_part(None, named, |stacks| whole(stacks, frames));
        }
    }

    fn fragment(&mut self, named: Named, frames: Frames<'_>) {
        let is_kernel = |address: u64| self.kernel.contains(address, frames.pointer());
        let (first, last) = (frames.addresses().next(), frames.addresses().next_back());
        let mode = Mode::of(first.is_some_and(is_kernel), last.is_some_and(is_kernel));
        let owner = self.owner(named, mode, first, frames.pointer(), false);
        if first.is_none() {
            return;
        }
        match mode {
            Mode::Kernel => self.kernel_part(owner, named, |stacks| whole(stacks, frames)),
            Mode::User => self.user_part(owner, named, |stacks| whole(stacks, frames)),
            // As ARM64 has it: for its own event only.
            Mode::Both => self.both_parts(owner, named, frames),
        }
    }

    /// Takes a fragment that a digest has looked at; `frames` reads it, should it not be interned.
    pub(super) fn digested<'a>(
        &mut self,
        fragment: &Fragment,
        (written, processor): (Ticks, u16),
        frames: impl FnOnce() -> Option<Frames<'a>>,
    ) {
        let Fragment { event_time: time, first, pid, tid, node, tree, is_kernel, pointer, noted } = *fragment;
        let named = Named { time, pid, tid, processor, written };
        if self.is_unwanted(pid) {
            return self.dismiss(named);
        }
        let mode = if is_kernel { Mode::Kernel } else { Mode::User };
        let owner = self.owner(named, mode, Some(first), pointer, noted);
        let part = |stacks: &mut PrefixTree<u64>| match node {
            Some(node) => Some(Part::Known { tree, node }),
            None => whole(stacks, frames()?),
        };
        match mode {
            Mode::Kernel => self.kernel_part(owner, named, part),
            Mode::User | Mode::Both => self.user_part(owner, named, part),
        }
    }

    fn both_parts(&mut self, owner: Option<Of>, named: Named, frames: Frames<'_>) {
        let (kernel, stacks) = (self.kernel, &mut self.stacks);
        match owner {
            Some(Of::Sample(index)) => {
                both(self.samples.get_mut(index as usize), named, frames, kernel, stacks)
            }
            Some(Of::Other(index)) => {
                both(self.others.get_mut(index as usize), named, frames, kernel, stacks)
            }
            None => {}
        }
    }

    fn kernel_part(
        &mut self,
        owner: Option<Of>,
        named: Named,
        part: impl FnOnce(&mut PrefixTree<u64>) -> Option<Part>,
    ) {
        let Some(owner) = owner else { return };
        let Some(part) = part(&mut self.stacks) else { return };
        let waits = match owner {
            Of::Sample(index) => in_kernel(self.samples.get_mut(index as usize), named, part),
            Of::Other(index) => in_kernel(self.others.get_mut(index as usize), named, part),
        };
        // Idle and System have no user mode.
        if waits && named.pid != 0 && named.pid != 4 {
            let thread = self.thread(named.tid);
            match owner {
                Of::Sample(index) => thread.samples.list.push(index),
                Of::Other(index) => thread.others.list.push(index),
            }
        }
    }

    fn user_part(
        &mut self,
        owner: Option<Of>,
        named: Named,
        part: impl FnOnce(&mut PrefixTree<u64>) -> Option<Part>,
    ) {
        let thread = self.thread(named.tid);
        let left = std::mem::replace(&mut thread.left, named.written);
        let again = std::mem::replace(&mut thread.named, named.time) == named.time;
        // An event before the thread last left the kernel has had its user part from another record, unless that one
        // named an event of the same moment.
        let owner = owner.filter(|_| named.time >= left || again);
        let (mut samples, mut others) = (thread.samples.take(named), thread.others.take(named));
        samples.stay(&self.samples);
        others.stay(&self.others);
        match owner {
            Some(Of::Sample(index)) => samples.claim(&mut self.samples, index, named),
            Some(Of::Other(index)) => others.claim(&mut self.others, index, named),
            None => {}
        }
        if !(samples.list.is_empty() && others.list.is_empty())
            && let Some(part) = part(&mut self.stacks)
        {
            samples.give(&mut self.samples, part);
            others.give(&mut self.others, part);
        }
        let thread = self.thread(named.tid);
        (thread.samples.list, thread.others.list) = (samples.emptied(), others.emptied());
    }

    fn define(&mut self, key: u64, frames: Frames<'_>, created: bool) {
        let Some(last) = frames.addresses().next_back() else { return };
        let kernel = self.kernel.contains(last, frames.pointer());
        let Some(stack) = self.stacks.extend(None, frames.addresses().rev()) else { return };
        if created {
            self.created.insert((key, kernel), stack);
            return;
        }
        self.created.remove(&(key, kernel));
        for reference in self.open_keys.remove(&(key, kernel)).unwrap_or_default() {
            if let Some(part) = self.references.get_mut(reference as usize) {
                *part = Part::own(stack);
            }
        }
    }

    /// What a fragment belongs to. Counts an orphan if no event at all is there, unless it is known that one is.
    fn owner(
        &mut self,
        named: Named,
        mode: Mode,
        first: Option<u64>,
        pointer: Pointer,
        noted: bool,
    ) -> Option<Of> {
        let Named { time, tid, processor, .. } = named;
        match self.find(named, mode, first, pointer) {
            Ok(owner) => return Some(owner),
            Err(Missed::Complete) => return None,
            Err(Missed::Nothing) => {}
        }
        let was_idle = || tid == 0 && self.idle.was_idle(time, processor, self.now);
        let was_noted = || self.recent.at(time, self.now, |of| of == tid || of == NO_ID) != Memory::Nothing;
        if !(noted || was_idle() || was_noted()) {
            self.orphans += 1;
        }
        None
    }

    /// What lacks such a part; a sample before anything else, so that it has the same stack whatever is kept beside it.
    fn find(&self, named: Named, mode: Mode, first: Option<u64>, pointer: Pointer) -> Result<Of, Missed> {
        let is_kernel = kernel_test(self.kernel, pointer);
        let missed = match find(&self.samples, named, mode, first, &is_kernel) {
            Found::One(index) => return Ok(Of::Sample(index)),
            Found::Complete => Missed::Complete,
            Found::Nothing => Missed::Nothing,
        };
        if self.others.len() == 0 {
            return Err(missed);
        }
        match find(&self.others, named, mode, first, &is_kernel) {
            Found::One(index) => Ok(Of::Other(index)),
            Found::Complete => Err(Missed::Complete),
            Found::Nothing => Err(missed),
        }
    }

    /// A thread begins: what waits on its id belongs to a former one, and its user part never came.
    pub(super) fn thread_began(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// The kernel part of a sample, now that everything has been read. Where only the user part is there although the
    /// sample was in the kernel (a lost record, a key never told), its address stands for the rest.
    pub(super) fn kernel_stack<F: Owner>(&mut self, raw: &Awaiting<F>, pointer: Pointer) -> Option<NodeId> {
        let kernel = self.resolved(raw.kernel);
        if kernel.is_none()
            && self.resolved(raw.user).is_some()
            && let Some(address) =
                raw.fact.address().filter(|address| self.kernel.contains(*address, pointer))
        {
            return self.stacks.extend(None, [address].into_iter());
        }
        kernel
    }

    /// What a part is, now that everything has been read.
    pub(super) fn resolved(&self, part: Part) -> Option<NodeId> {
        match part {
            Part::Missing => None,
            Part::Known { tree: 0, node } => Some(node),
            Part::Known { tree, node } => {
                self.grafted.get(usize::from(tree) - 1)?.get(node.0 as usize).copied()
            }
            Part::Referred(reference) => match self.references.get(reference as usize)? {
                Part::Referred(_) => None,
                part => self.resolved(*part),
            },
        }
    }

    /// References whose key was never defined.
    pub(super) fn undefined_keys(&self) -> u64 {
        self.references.iter().filter(|part| **part == Part::Missing).count() as u64
    }

    fn thread(&mut self, tid: u32) -> &mut InKernel {
        let never = Ticks(i64::MIN);
        let nothing = || Waiting { list: Vec::new(), in_user_mode: never };
        let new = || InKernel { samples: nothing(), others: nothing(), left: never, named: never };
        self.threads.entry(tid).or_insert_with(new)
    }
}

/// The stack of a whole fragment.
fn whole(stacks: &mut PrefixTree<u64>, frames: Frames<'_>) -> Option<Part> {
    stacks.extend(None, frames.addresses().rev()).map(Part::own)
}

/// Why there is nothing for a fragment.
enum Missed {
    /// All that it could be of has its part.
    Complete,
    Nothing,
}

/// Notes that an event is of a process that nobody wants.
fn dismiss<F: Owner>(one: Option<&mut Awaiting<F>>, named: Named) {
    if let Some(one) = one.filter(|one| one.pid == NO_ID) {
        one.name(named);
    }
}

/// Gives an event its kernel part. True if it awaits a user part now.
fn in_kernel<F: Owner>(one: Option<&mut Awaiting<F>>, named: Named, part: Part) -> bool {
    let Some(one) = one else { return false };
    one.name(named);
    one.kernel = part;
    !one.fact.is_interrupt()
}

/// Gives an event both parts.
fn both<F: Owner>(
    one: Option<&mut Awaiting<F>>,
    named: Named,
    frames: Frames<'_>,
    kernel: KernelSpace,
    stacks: &mut PrefixTree<u64>,
) {
    let Some(one) = one else { return };
    let is_kernel = |address: &u64| kernel.contains(*address, frames.pointer());
    let border = frames.addresses().take_while(is_kernel).count();
    let mut part = |addresses: Vec<u64>| {
        let stack = stacks.extend(None, addresses.into_iter().rev());
        stack.map_or(Part::Missing, Part::own)
    };
    one.name(named);
    if !one.fact.is_interrupt() {
        one.user = part(frames.addresses().skip(border).collect());
    }
    one.kernel = part(frames.addresses().take(border).collect());
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
