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

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Event, NO_ID, Pointer, Ticks};
use crate::events::kernel::{self, Frames, KernelSpace, StackWalk};
use crate::prefix_tree::{NodeId, PrefixTree};

use super::idle::IdleCounter;
use super::pieces::Pieces;

/// A sample while its stack is being put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSample {
    pub(super) time: Ticks,
    pub(super) sample: kernel::Sample,
    pub(super) processor: u16,
    /// The process that its stack names, or [`NO_ID`].
    pub(super) pid: u32,
    pub(super) kernel: Part,
    pub(super) user: Part,
}

impl RawSample {
    /// Interrupts have no user part: their thread is a bystander.
    fn is_interrupt(&self) -> bool {
        self.sample.in_dpc || self.sample.in_isr
    }
}

/// One fragment of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Missing,
    Known(NodeId),
    /// To be told by the reference to a key with this number.
    Referred(u32),
}

/// Which parts a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Kernel,
    User,
    /// Both parts in one record.
    Both,
}

impl Mode {
    /// True if `sample` still lacks such a part.
    fn is_missing_in(self, sample: &RawSample) -> bool {
        match self {
            Mode::Kernel => sample.kernel == Part::Missing,
            Mode::User => sample.user == Part::Missing && !sample.is_interrupt(),
            Mode::Both => sample.kernel == Part::Missing && sample.user == Part::Missing,
        }
    }
}

/// What there is for a fragment.
enum Found {
    /// A sample, by its index.
    Sample(u32),
    /// Samples that all have their part.
    Complete,
    Nothing,
}

/// The sample that the record of a stack names.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// The time of its event.
    time: Ticks,
    /// The thread's process.
    pid: u32,
    tid: u32,
    /// Where and when the record was written.
    processor: u16,
    written: Ticks,
}

/// Collects samples and stacks in order of time.
#[derive(Debug, Default)]
pub(super) struct Join {
    /// What addresses are the kernel's.
    kernel: KernelSpace,
    /// The only processes whose samples are kept, if not all are.
    wanted: Option<FxHashSet<u32>>,
    /// Samples that were dropped because their process is not wanted.
    pub(super) unwanted: u64,
    /// How many samples there may be before those that nobody wants are dropped.
    sweep_at: usize,
    pub(super) samples: Pieces<RawSample>,
    pub(super) idle: IdleCounter,
    pub(super) stacks: PrefixTree<u64>,
    threads: FxHashMap<u32, InKernel>,
    /// What each reference to a key turned out to be.
    references: Vec<Part>,
    /// References of keys that have not been defined since.
    open_keys: FxHashMap<(u64, bool), Vec<u32>>,
    /// Definitions told when a key was made, for keys that are never defined again.
    created: FxHashMap<(u64, bool), NodeId>,
    recent: VecDeque<(Ticks, u32)>,
    /// Stacks whose event is not in the trace.
    pub(super) orphans: u64,
    /// Stack records of any kind but definitions.
    pub(super) records: u64,
}

/// A thread's stay in the kernel.
#[derive(Debug)]
struct InKernel {
    /// Samples whose user part has not come.
    waiting: Vec<u32>,
    /// The time of the last user fragment.
    left: Ticks,
    /// The event that it named.
    named: Ticks,
    /// The time of the last sample in user mode while others waited.
    in_user_mode: Ticks,
}

/// Below so many samples, dropping some is not worth it.
const FEW: usize = 1 << 16;

/// Events that are remembered to tell an orphan. A stack later than that is taken to have an owner.
const RECENT: usize = 1 << 16;

/// Samples and events of one moment that are looked through for the owner of a stack. A processor gives one sample at
/// a moment, and no machine has more processors; a crafted trace can put millions into one moment.
const AT_ONE_MOMENT: usize = 1 << 12;

impl Join {
    pub(super) fn new(kernel: KernelSpace) -> Self {
        Join { kernel, ..Join::default() }
    }

    /// Keeps the samples of these processes only. The process of a sample is known when its stack names it.
    pub(super) fn keep_only(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.wanted = Some(pids.into_iter().collect());
        self.sweep_at = FEW;
    }

    /// True for the samples of this process.
    pub(super) fn is_unwanted(&self, pid: u32) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&pid))
    }

    /// True when it is time to [`sweep`](Join::sweep).
    pub(super) fn is_sweep_due(&self) -> bool {
        self.wanted.is_some() && self.samples.len() >= self.sweep_at
    }

    /// Drops the samples that are known to be unwanted. Gives for each of the former samples how many of those before it
    /// are still there.
    pub(super) fn sweep(&mut self) -> Vec<u32> {
        let mut before = Vec::with_capacity(self.samples.len());
        let mut kept = Pieces::default();
        for sample in std::mem::take(&mut self.samples).into_elements() {
            before.push(kept.len() as u32);
            if sample.pid != NO_ID && self.is_unwanted(sample.pid) {
                self.unwanted += 1;
            } else {
                kept.push(sample);
            }
        }
        for index in self.threads.values_mut().flat_map(|thread| &mut thread.waiting) {
            *index = before.get(*index as usize).copied().unwrap_or(u32::MAX);
        }
        self.sweep_at = FEW.max(2 * kept.len());
        self.samples = kept;
        before
    }

    /// Notes that the sample of a stack is of a process that nobody wants.
    fn dismiss(&mut self, named: Named) {
        let Found::Sample(index) = self.find(named, Mode::Both, None, Pointer::Bits64) else { return };
        if let Some(sample) = self.samples.get_mut(index as usize).filter(|sample| sample.pid == NO_ID) {
            sample.pid = named.pid;
        }
    }

    /// Takes a sample, which comes after so many records of sampling intervals.
    pub(super) fn sample(&mut self, sample: kernel::Sample, event: &Event<'_>, intervals: usize) {
        let (time, processor) = (event.time, event.processor);
        if sample.is_idle() {
            self.idle.add(time, processor, sample.count, intervals);
            return;
        }
        let (kernel, user) = (Part::Missing, Part::Missing);
        let raw = RawSample { time, sample, processor, pid: NO_ID, kernel, user };
        if !raw.is_interrupt()
            && !self.kernel.contains(sample.address, event.pointer)
            && let Some(thread) =
                self.threads.get_mut(&sample.tid).filter(|thread| !thread.waiting.is_empty())
        {
            thread.in_user_mode = time;
        }
        self.samples.push(raw);
    }

    /// Remembers an event that may own a stack. `tid` is the thread whose stack it would be.
    #[inline]
    pub(super) fn note(&mut self, time: Ticks, tid: u32) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((time, tid));
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
                self.records += 1;
                self.fragment(named(event_time, pid, tid), frames);
            }
            StackWalk::Key { event_time, pid, tid, key, kernel } => {
                self.records += 1;
                let named = named(event_time, pid, tid);
                let mode = if kernel { Mode::Kernel } else { Mode::User };
                let owner = self.owner(named, mode, None, event.pointer);
                let reference = self.references.len() as u32;
                let known = self.created.get(&(key, kernel)).copied();
                self.references.push(known.map_or(Part::Missing, Part::Known));
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
        let is_kernel = |address: &u64| self.kernel.contains(*address, frames.pointer());
        let (first, last) = (frames.addresses().next(), frames.addresses().next_back());
        let mode = match (first.filter(is_kernel), last.filter(is_kernel)) {
            (_, Some(_)) => Mode::Kernel,
            (None, None) => Mode::User,
            (Some(_), None) => Mode::Both,
        };
        let owner = self.owner(named, mode, first, frames.pointer());
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

    fn both_parts(&mut self, owner: Option<u32>, named: Named, frames: Frames<'_>) {
        let Join { kernel, samples, stacks, .. } = self;
        let Some(sample) = owner.and_then(|owner| samples.get_mut(owner as usize)) else { return };
        let is_kernel = |address: &u64| kernel.contains(*address, frames.pointer());
        let border = frames.addresses().take_while(is_kernel).count();
        let mut part = |addresses: Vec<u64>| {
            let stack = stacks.extend(None, addresses.into_iter().rev());
            stack.map_or(Part::Missing, Part::Known)
        };
        sample.pid = named.pid;
        if !sample.is_interrupt() {
            sample.user = part(frames.addresses().skip(border).collect());
        }
        sample.kernel = part(frames.addresses().take(border).collect());
    }

    fn kernel_part(
        &mut self,
        owner: Option<u32>,
        named: Named,
        part: impl FnOnce(&mut PrefixTree<u64>) -> Option<Part>,
    ) {
        let Some(index) = owner else { return };
        let Some(sample) = self.samples.get_mut(index as usize) else { return };
        let Some(part) = part(&mut self.stacks) else { return };
        sample.pid = named.pid;
        sample.kernel = part;
        // Idle and System have no user mode.
        if !sample.is_interrupt() && named.pid != 0 && named.pid != 4 {
            self.thread(named.tid).waiting.push(index);
        }
    }

    fn user_part(
        &mut self,
        owner: Option<u32>,
        named: Named,
        part: impl FnOnce(&mut PrefixTree<u64>) -> Option<Part>,
    ) {
        let thread = self.thread(named.tid);
        let left = std::mem::replace(&mut thread.left, named.written);
        let again = std::mem::replace(&mut thread.named, named.time) == named.time;
        let in_user_mode = thread.in_user_mode;
        let mut takers = std::mem::take(&mut thread.waiting);
        // What waited before the thread was seen in user mode is of a former stay in the kernel. At one tick of a coarse
        // clock nobody knows which came first.
        if in_user_mode < named.written || in_user_mode <= named.time {
            let samples = &self.samples;
            let time = |index: u32| samples.get(index as usize).map(|sample| sample.time);
            takers.retain(|index| time(*index).is_some_and(|time| time >= in_user_mode));
        }
        // An event before the thread last left the kernel has had its user part from another record, unless that one
        // named an event of the same moment.
        if let Some(index) = owner
            && (named.time >= left || again)
            && let Some(sample) = self.samples.get_mut(index as usize)
        {
            sample.pid = named.pid;
            takers.push(index);
        }
        if !takers.is_empty()
            && let Some(part) = part(&mut self.stacks)
        {
            for index in &takers {
                if let Some(sample) = self.samples.get_mut(*index as usize) {
                    sample.user = part;
                }
            }
        }
        takers.clear();
        self.thread(named.tid).waiting = takers;
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
                *part = Part::Known(stack);
            }
        }
    }

    /// The sample that a fragment belongs to. Counts an orphan if no event at all is there.
    fn owner(&mut self, named: Named, mode: Mode, first: Option<u64>, pointer: Pointer) -> Option<u32> {
        let Named { time, tid, processor, .. } = named;
        match self.find(named, mode, first, pointer) {
            Found::Sample(index) => return Some(index),
            Found::Complete => return None,
            Found::Nothing if tid == 0 && self.idle.was_idle(time, processor) => return None,
            Found::Nothing => {}
        }
        let recent = &self.recent;
        let from = partition_back(recent.len(), |index| recent.get(index).is_some_and(|(at, _)| *at < time));
        let forgotten = from == 0 && recent.len() == RECENT;
        let same_time = recent.range(from..).take(AT_ONE_MOMENT).take_while(|(at, _)| *at == time);
        if !forgotten && !same_time.into_iter().any(|(_, of)| *of == tid || *of == NO_ID) {
            self.orphans += 1;
        }
        None
    }

    /// The sample at a time on a thread that lacks such a part.
    ///
    /// A coarse clock puts several samples of a thread into one moment. Each gets one stack: that which begins at its
    /// address (`first`), where that is known, else one of its mode, in order. Several processors may sample their idle
    /// thread at one moment, so for it the processor must agree too.
    fn find(&self, named: Named, mode: Mode, first: Option<u64>, pointer: Pointer) -> Found {
        let Named { time, tid, processor, .. } = named;
        let samples = &self.samples;
        let from = partition_back(samples.len(), |index| {
            samples.get(index).is_some_and(|sample| sample.time < time)
        });
        let same_time = (from..).map_while(|index| Some((index, samples.get(index)?)));
        let same_thread = same_time
            .take(AT_ONE_MOMENT)
            .take_while(|(_, sample)| sample.time == time)
            .filter(|(_, sample)| sample.sample.tid == tid && (tid != 0 || sample.processor == processor));
        let mut any = false;
        let lacking = same_thread.inspect(|_| any = true).filter(|(_, sample)| mode.is_missing_in(sample));
        let found = lacking.min_by_key(|(_, sample)| {
            let address = sample.sample.address;
            let in_kernel = self.kernel.contains(address, pointer);
            (
                first.is_some_and(|first| first != address),
                in_kernel == (mode == Mode::User),
                sample.processor != processor,
            )
        });
        match found {
            Some((index, _)) => Found::Sample(index as u32),
            None if any => Found::Complete,
            None => Found::Nothing,
        }
    }

    /// A thread begins: what waits on its id belongs to a former one, and its user part never came.
    pub(super) fn thread_began(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// The kernel part of a sample, now that everything has been read. Where only the user part is there although the
    /// sample was in the kernel (a lost record, a key never told), its address stands for the rest.
    pub(super) fn kernel_stack(&mut self, raw: &RawSample, pointer: Pointer) -> Option<NodeId> {
        let address = raw.sample.address;
        let kernel = self.resolved(raw.kernel);
        if kernel.is_none() && self.resolved(raw.user).is_some() && self.kernel.contains(address, pointer) {
            return self.stacks.extend(None, [address].into_iter());
        }
        kernel
    }

    /// What a part is, now that everything has been read.
    pub(super) fn resolved(&self, part: Part) -> Option<NodeId> {
        match part {
            Part::Missing => None,
            Part::Known(stack) => Some(stack),
            Part::Referred(reference) => match self.references.get(reference as usize)? {
                Part::Known(stack) => Some(*stack),
                Part::Missing | Part::Referred(_) => None,
            },
        }
    }

    /// References whose key was never defined.
    pub(super) fn undefined_keys(&self) -> u64 {
        self.references.iter().filter(|part| **part == Part::Missing).count() as u64
    }

    fn thread(&mut self, tid: u32) -> &mut InKernel {
        let never = Ticks(i64::MIN);
        let new = || InKernel { waiting: Vec::new(), left: never, named: never, in_user_mode: never };
        self.threads.entry(tid).or_insert_with(new)
    }
}

/// The stack of a whole fragment.
fn whole(stacks: &mut PrefixTree<u64>, frames: Frames<'_>) -> Option<Part> {
    stacks.extend(None, frames.addresses().rev()).map(Part::Known)
}

/// The first index for which `before` is false, for a sequence whose answer lies near its end: doubles its way back,
/// then halves.
pub(super) fn partition_back(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let mut high = len;
    let mut step = 1;
    let mut low = loop {
        let Some(low) = high.checked_sub(step) else { break 0 };
        if before(low) {
            break low + 1;
        }
        high = low;
        step *= 2;
    };
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::{FEW, Join, Ticks, partition_back};
    use crate::event::{Event, Kind, Pointer};
    use crate::events::kernel::{Frames, Sample, StackWalk};
    use crate::events::providers::PERF_INFO;

    fn event(time: i64) -> Event<'static> {
        Event {
            time: Ticks(time),
            provider: PERF_INFO,
            kind: Kind::Classic,
            opcode: 46,
            version: 2,
            pointer: Pointer::Bits64,
            processor: 0,
            pid: 0,
            tid: 0,
            items: &[],
            payload: &[],
        }
    }

    #[test]
    fn unwanted_samples_and_idle_ones_take_no_memory() {
        let mut join = Join::default();
        join.keep_only([40]);
        let frames = |address: u64| address.to_le_bytes();
        let mut most = 0;
        for number in 1..=4 * FEW as i64 {
            let (time, address) = (10 * number, 0x1000 + number as u64);
            let mut sample = Sample { address, tid: 41, count: 1, in_dpc: false, in_isr: false, priority: 8 };
            // Of ten samples one is wanted, and five are idle.
            let pid = match number % 10 {
                0 => 40,
                1..=4 => 50,
                _ => 0,
            };
            sample.tid = if pid == 0 { 0 } else { pid + 1 };
            join.sample(sample, &event(time), 0);
            let (event_time, tid) = (Ticks(time), sample.tid);
            let bytes = frames(address);
            let frames = Frames::new(&bytes, Pointer::Bits64);
            join.stack_walk(&StackWalk::Stack { event_time, pid, tid, frames }, &event(time + 2));
            if join.is_sweep_due() {
                join.sweep();
            }
            most = most.max(join.samples.len());
        }
        join.sweep();
        let wanted = 4 * FEW / 10;
        assert_eq!(join.samples.len(), wanted);
        assert_eq!(join.stacks.len(), wanted, "no other stack is stored");
        assert!(join.unwanted >= 4 * wanted as u64 && join.orphans == 0);
        assert!(most <= FEW, "{most} at once");
    }

    proptest::proptest! {
        #[test]
        fn partition_back_is_partition_point(mut values: Vec<u8>, at: u8) {
            values.sort_unstable();
            let expected = values.partition_point(|value| *value < at);
            proptest::prop_assert_eq!(partition_back(values.len(), |i| values[i] < at), expected);
        }
    }
}
