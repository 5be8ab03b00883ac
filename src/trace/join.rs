//! Samples joined to their stacks.
//!
//! A sample and its stack are separate records. The stack comes in up to two fragments that name the sample by its
//! time and thread: a kernel fragment written at once, and a user fragment written when the thread leaves the kernel,
//! up to 0.4 s later and perhaps on another processor. Everything that a thread raises during one stay in the kernel
//! has the same user-mode callers, so one user fragment completes *every* kernel fragment that waits on its thread,
//! whichever event it names (on net.4.5.2.x64.etl 51 of 68 samples get their user part only this way).
//!
//! A fragment may be told by a key instead. Keys are used again: a reference belongs to the first definition of its
//! key that comes after it, and kernel and user keys are apart. The reference completes waiting samples when it
//! comes; its frames follow, at the latest when the session ends.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::event::{Event, NO_ID, Pointer, Ticks};
use crate::events::kernel::{self, Frames, StackWalk};
use crate::prefix_tree::{NodeId, PrefixTree};

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

/// Collects samples and stacks in order of time.
#[derive(Debug, Default)]
pub(super) struct Join {
    pub(super) samples: Vec<RawSample>,
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
}

/// Events that are remembered to tell an orphan. A stack later than that is taken to have an owner.
const RECENT: usize = 1 << 16;

/// Samples and events of one moment that are looked through for the owner of a stack. A processor gives one sample at
/// a moment, and no machine has more processors; a crafted trace can put millions into one moment.
const AT_ONE_MOMENT: usize = 1 << 12;

impl Join {
    pub(super) fn sample(&mut self, sample: kernel::Sample, event: &Event<'_>) {
        self.samples.push(RawSample {
            time: event.time,
            sample,
            processor: event.processor,
            pid: NO_ID,
            kernel: Part::Missing,
            user: Part::Missing,
        });
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
        match *walk {
            StackWalk::Stack { event_time, pid, tid, frames } => {
                self.records += 1;
                let owner = self.owner(event_time, tid, event.processor);
                self.fragment(owner, event_time, event.time, pid, tid, frames);
            }
            StackWalk::Key { event_time, pid, tid, key, kernel } => {
                self.records += 1;
                let owner = self.owner(event_time, tid, event.processor);
                let reference = self.references.len() as u32;
                let known = self.created.get(&(key, kernel)).copied();
                self.references.push(known.map_or(Part::Missing, Part::Known));
                self.open_keys.entry((key, kernel)).or_default().push(reference);
                let part = Part::Referred(reference);
                if kernel {
                    self.kernel_part(owner, pid, tid, part);
                } else {
                    self.user_part(owner, event_time, event.time, pid, tid, part);
                }
            }
            StackWalk::Definition { key, frames, created } => self.define(key, frames, created),
        }
    }

    /// The stack that an event carries itself completes what waits on its thread, if it is the kernel's own event for
    /// that purpose (Kernel-EventTracing 18).
    pub(super) fn late_user_stack(&mut self, event: &Event<'_>, frames: Frames<'_>) {
        if let Some(stack) = self.stacks.extend(None, frames.addresses().rev()) {
            self.user_part(None, event.time, event.time, event.pid, event.tid, Part::Known(stack));
        }
    }

    fn fragment(
        &mut self,
        owner: Option<u32>,
        event_time: Ticks,
        now: Ticks,
        pid: u32,
        tid: u32,
        frames: Frames<'_>,
    ) {
        let (Some(first), Some(last)) = (frames.addresses().next(), frames.addresses().next_back()) else {
            return;
        };
        if frames.is_kernel(last) {
            if let Some(stack) = self.stacks.extend(None, frames.addresses().rev()) {
                self.kernel_part(owner, pid, tid, Part::Known(stack));
            }
        } else if !frames.is_kernel(first) {
            if let Some(stack) = self.stacks.extend(None, frames.addresses().rev()) {
                self.user_part(owner, event_time, now, pid, tid, Part::Known(stack));
            }
        } else {
            // Both parts in one record (ARM64): for its own event only.
            let border = frames.addresses().take_while(|address| frames.is_kernel(*address)).count();
            let user = self
                .stacks
                .extend(None, frames.addresses().skip(border).collect::<Vec<_>>().into_iter().rev());
            let kernel = self
                .stacks
                .extend(None, frames.addresses().take(border).collect::<Vec<_>>().into_iter().rev());
            if let Some(sample) = self.sample_mut(owner) {
                sample.pid = pid;
                sample.kernel = kernel.map_or(Part::Missing, Part::Known);
                if !sample.is_interrupt() {
                    sample.user = user.map_or(Part::Missing, Part::Known);
                }
            }
        }
    }

    fn kernel_part(&mut self, owner: Option<u32>, pid: u32, tid: u32, part: Part) {
        let Some(index) = owner else { return };
        let Some(sample) = self.sample_mut(owner) else { return };
        if sample.kernel != Part::Missing {
            return;
        }
        sample.pid = pid;
        sample.kernel = part;
        // Idle and System have no user mode.
        if !sample.is_interrupt() && pid != 0 && pid != 4 {
            self.thread(tid).waiting.push(index);
        }
    }

    fn user_part(
        &mut self,
        owner: Option<u32>,
        event_time: Ticks,
        now: Ticks,
        pid: u32,
        tid: u32,
        part: Part,
    ) {
        let thread = self.thread(tid);
        let left = std::mem::replace(&mut thread.left, now);
        let waiting = std::mem::take(&mut thread.waiting);
        for index in &waiting {
            if let Some(sample) = self.samples.get_mut(*index as usize) {
                sample.user = part;
            }
        }
        let thread = self.thread(tid);
        thread.waiting = waiting;
        thread.waiting.clear();
        // An event before the thread last left the kernel has had its user part from another record.
        if let Some(sample) = self.sample_mut(owner)
            && sample.user == Part::Missing
            && !sample.is_interrupt()
            && event_time >= left
        {
            sample.pid = pid;
            sample.user = part;
        }
    }

    fn define(&mut self, key: u64, frames: Frames<'_>, created: bool) {
        let Some(last) = frames.addresses().next_back() else { return };
        let kernel = frames.is_kernel(last);
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

    /// The sample at `time` on `tid`; counts an orphan if no event at all is there.
    ///
    /// Several processors may sample their idle thread at one moment, so for it the processor must agree too.
    fn owner(&mut self, time: Ticks, tid: u32, processor: u16) -> Option<u32> {
        let from = partition_back(self.samples.len(), |index| {
            self.samples.get(index).is_some_and(|sample| sample.time < time)
        });
        let same_time = (from..).zip(self.samples.get(from..).unwrap_or_default());
        let same_thread = same_time
            .take(AT_ONE_MOMENT)
            .take_while(|(_, sample)| sample.time == time)
            .filter(|(_, sample)| sample.sample.tid == tid && (tid != 0 || sample.processor == processor));
        let found = same_thread.min_by_key(|(_, sample)| sample.processor != processor);
        if let Some((index, _)) = found {
            return Some(index as u32);
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

    /// A thread begins: what waits on its id belongs to a former one, and its user part never came.
    pub(super) fn thread_began(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// The kernel part of a sample, now that everything has been read. Where only the user part is there although the
    /// sample was in the kernel (a lost record, a key never told), its address stands for the rest.
    pub(super) fn kernel_stack(&mut self, raw: &RawSample, pointer: Pointer) -> Option<NodeId> {
        let address = raw.sample.address;
        let kernel = self.resolved(raw.kernel);
        if kernel.is_none()
            && self.resolved(raw.user).is_some()
            && kernel::is_kernel_address(address, pointer)
        {
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
        self.threads.entry(tid).or_insert_with(|| InKernel { waiting: Vec::new(), left: Ticks(i64::MIN) })
    }

    fn sample_mut(&mut self, index: Option<u32>) -> Option<&mut RawSample> {
        self.samples.get_mut(index? as usize)
    }
}

/// The first index for which `before` is false, for a sequence whose answer lies near its end: doubles its way back,
/// then halves.
fn partition_back(len: usize, before: impl Fn(usize) -> bool) -> usize {
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
    use super::partition_back;

    proptest::proptest! {
        #[test]
        fn partition_back_is_partition_point(mut values: Vec<u8>, at: u8) {
            values.sort_unstable();
            let expected = values.partition_point(|value| *value < at);
            proptest::prop_assert_eq!(partition_back(values.len(), |i| values[i] < at), expected);
        }
    }
}
