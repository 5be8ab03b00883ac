//! What a buffer comes to by itself: counts, idle samples, notes of events that may own a stack, and stacks interned
//! where their sample is in the same buffer. What is left is samples, stack fragments, and records that say what
//! happened to processes, threads, images and code.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::clock::Ticks;
use crate::etl::digest::{Digester, Hook, Record};
use crate::event::{Event, Kind, NO_ID, Pointer};
use crate::events::kernel::{Frames, Sample, StackWalk};
use crate::guid::Guid;
use crate::guids::{
    CLR, CLR_RUNDOWN, DISK_IO, ETWPROF, FILE_IO, IMAGE, IMAGE_ID, JSCRIPT, KERNEL_EVENT_TRACING, LOST_EVENT,
    META_DATA, PAGE_FAULT, PERF_INFO, PROCESS, STACK_WALK, SYS_CONFIG, SYSTEM_CONFIG, THREAD, WIN_SAT,
    hook_task,
};
use crate::origin::KernelSpace;
use crate::prefix_tree::{NodeId, PrefixTree};

use super::awaiting::{Keep, Mode, partition_back};
use super::chosen::EventSet;
use super::recent::Noted;

/// Digests buffers for a [`Builder`](super::Builder).
#[derive(Debug)]
pub struct Buffers {
    /// By opcode and group.
    classes: Vec<Class>,
    /// Events that are kept.
    chosen: Arc<EventSet>,
    kernel: KernelSpace,
    keep_idle: bool,
    wanted: Option<FxHashSet<u32>>,
    /// Threads intern stacks.
    interns: bool,
}

/// What a thread keeps: the stacks of its buffers.
#[derive(Debug)]
pub struct Worker {
    tree: u16,
    pub(super) stacks: PrefixTree<u64>,
    /// The nodes of whole fragments, by their hashes; one that comes later takes the place.
    memo: Vec<(u64, NodeId)>,
}

/// What a buffer comes to.
#[derive(Debug, Default)]
pub struct Digest {
    pub(super) events: u64,
    pub(super) bytes: u64,
    /// Idle samples: their processors, and in the upper half what they count.
    pub(super) idle: Vec<Noted>,
    /// Other events that may own a stack, and their threads.
    pub(super) notes: Vec<Noted>,
    /// The times of the samples that are left.
    samples: Vec<Ticks>,
    /// The time of the last record that is left and may own a stack: a sample of the idle thread, or one that is no sample.
    left: Ticks,
    /// The time of the first record.
    first: Ticks,
}

impl Digest {
    /// Makes it ready for another buffer, apart from the lists that are taken out of it.
    pub(super) fn clear(&mut self) {
        self.idle.clear();
        self.notes.clear();
        self.samples.clear();
        (self.events, self.bytes) = (0, 0);
    }

    #[inline(always)]
    fn note(&mut self, record: &Record<'_>, tid: u32) {
        self.notes.push(Noted { time: record.time(), of: tid, offset: record.offset() });
    }

    fn has_sample_at(&self, time: Ticks) -> bool {
        let samples = &self.samples;
        let from = partition_back(samples.len(), |index| samples.get(index).is_some_and(|at| *at < time));
        samples.get(from) == Some(&time)
    }

    /// Whether an event at `time` has been noted for which `is_it` holds.
    fn has_noted(&self, time: Ticks, is_it: impl Fn(u32) -> bool) -> bool {
        let notes = &self.notes;
        let from = partition_back(notes.len(), |index| notes.get(index).is_some_and(|note| note.time < time));
        let mut of_moment = notes.iter().skip(from).take(AT_ONE_MOMENT).take_while(|note| note.time == time);
        of_moment.any(|note| is_it(note.of))
    }
}

/// Notes of one moment that are looked through; another search, in the order of all, looks through more.
const AT_ONE_MOMENT: usize = 64;

/// What is left of a record.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// A sample, and the width of its address.
    Sample(Sample, Pointer),
    /// A fragment of a stack.
    Fragment(Fragment),
    /// Everything else, to be decoded again.
    Record,
}

/// A fragment of a stack that is all in the kernel or all in user mode.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    pub(super) event_time: Ticks,
    /// Its leaf.
    pub(super) first: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Where it is interned, if it is.
    pub(super) node: Option<NodeId>,
    pub(super) tree: u16,
    pub(super) is_kernel: bool,
    pub(super) pointer: Pointer,
    /// The event it names has been noted.
    pub(super) noted: bool,
}

/// What to do with a kernel record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// It is left.
    Left,
    Sample,
    Stack,
    /// A context switch: its stack is the new thread's.
    Switch,
    /// It may own a stack of the thread in its head; its payload is whole if it has so many bytes and so many pointers.
    Note {
        bytes: u8,
        pointers: u8,
    },
    /// It is of no use.
    Nothing,
}

/// Stacks, and what a merge adds, never own a stack.
pub(super) fn may_own_stack(provider: Guid) -> bool {
    !matches!(provider, STACK_WALK | IMAGE_ID | SYS_CONFIG | META_DATA | WIN_SAT)
}

/// What to do with a classic event. Those that are many are here, with what [`events::kernel`](crate::events::kernel)
/// reads of them; all others that it knows are left.
fn class(provider: Guid, opcode: u8, keep: Keep) -> Class {
    let unless_kept = |kept: bool, class| if kept { Class::Left } else { class };
    match (provider, opcode) {
        (PERF_INFO, 46) => Class::Sample,
        (PERF_INFO, 66 | 68 | 69) => unless_kept(keep.interrupts, Class::Note { bytes: 8, pointers: 1 }),
        (PERF_INFO, 50 | 67) => unless_kept(keep.interrupts, Class::Note { bytes: 8 + 3, pointers: 1 }),
        (PERF_INFO, 47 | 72..=74) => Class::Left,
        (STACK_WALK, 32) => Class::Stack,
        (STACK_WALK, 34..=38) => Class::Left,
        (THREAD, 36) => unless_kept(keep.switches, Class::Switch),
        (THREAD, 50) => unless_kept(keep.readied, Class::Note { bytes: 7, pointers: 0 }),
        (THREAD, 1..=4 | 72) => Class::Left,
        (PAGE_FAULT, 10..=15) => unless_kept(keep.faults, Class::Note { bytes: 0, pointers: 2 }),
        (PAGE_FAULT, 32) => unless_kept(keep.faults || keep.disk, Class::Note { bytes: 24, pointers: 2 }),
        (DISK_IO, 10 | 11) => unless_kept(keep.disk, Class::Note { bytes: 32, pointers: 2 }),
        (DISK_IO, 14) => unless_kept(keep.disk, Class::Note { bytes: 16, pointers: 1 }),
        (DISK_IO, 12 | 13 | 15) => unless_kept(keep.disk, Class::Note { bytes: 0, pointers: 1 }),
        (FILE_IO, 0 | 32 | 35 | 36) => unless_kept(keep.disk, Class::Note { bytes: 0, pointers: 1 }),
        (PROCESS | IMAGE | IMAGE_ID | SYSTEM_CONFIG | SYS_CONFIG | LOST_EVENT, _) => Class::Left,
        _ if may_own_stack(provider) => Class::Note { bytes: 0, pointers: 0 },
        _ => Class::Nothing,
    }
}

impl Buffers {
    pub(super) fn new(
        kernel: KernelSpace,
        keep: Keep,
        chosen: Arc<EventSet>,
        keep_idle: bool,
        wanted: Option<FxHashSet<u32>>,
        interns: bool,
    ) -> Self {
        let hooks = (0..=u16::MAX).map(u16::to_le_bytes);
        let class_of = |[opcode, group]: [u8; 2]| {
            let task = hook_task(group, opcode);
            match class(task, opcode, keep) {
                Class::Note { .. } | Class::Switch if chosen.has_classic(task, opcode) => Class::Left,
                class => class,
            }
        };
        let classes = hooks.map(class_of).collect();
        Buffers { classes, chosen, kernel, keep_idle, wanted, interns }
    }

    #[inline(always)]
    fn hook(
        &self,
        worker: &mut Worker,
        digest: &mut Digest,
        record: &Record<'_>,
        hook: &Hook<'_>,
    ) -> Option<Item> {
        let place = usize::from(u16::from_le_bytes([hook.opcode, hook.group]));
        match self.classes.get(place).copied().unwrap_or(Class::Left) {
            Class::Note { bytes, pointers } => {
                // One that is cut short is left to be counted.
                if hook.payload.len() < usize::from(bytes) + usize::from(pointers) * hook.pointer.bytes() {
                    return left(digest, record);
                }
                digest.note(record, hook.tid);
                None
            }
            Class::Sample => self.sample(digest, record, hook),
            Class::Stack => self.stack(worker, digest, hook),
            Class::Switch => {
                match hook.payload.first_chunk::<20>() {
                    Some([a, b, c, d, ..]) => digest.note(record, u32::from_le_bytes([*a, *b, *c, *d])),
                    None => return left(digest, record),
                }
                None
            }
            Class::Left => left(digest, record),
            Class::Nothing => None,
        }
    }

    #[inline]
    fn sample(&self, digest: &mut Digest, record: &Record<'_>, hook: &Hook<'_>) -> Option<Item> {
        let Some(sample) = Sample::read(hook.payload, hook.pointer) else { return left(digest, record) };
        let time = record.time();
        if sample.is_idle() && !self.keep_idle {
            let of = u32::from(record.processor()) | u32::from(sample.count) << 16;
            digest.idle.push(Noted { time, of, offset: record.offset() });
            return None;
        }
        if sample.tid == 0 {
            digest.left = time;
        }
        digest.samples.push(time);
        Some(Item::Sample(sample, hook.pointer))
    }

    #[inline]
    fn stack(&self, worker: &mut Worker, digest: &Digest, hook: &Hook<'_>) -> Option<Item> {
        let Some(StackWalk::Stack { event_time, pid, tid, frames }) =
            StackWalk::read_stack(hook.payload, hook.pointer)
        else {
            return Some(Item::Record);
        };
        let mut addresses = frames.addresses();
        let Some(first) = addresses.next() else { return Some(Item::Record) };
        let last = addresses.next_back().unwrap_or(first);
        let is_kernel = |address| self.kernel.contains(address, hook.pointer);
        let mode = Mode::of(is_kernel(first), is_kernel(last));
        if mode == Mode::Both {
            return Some(Item::Record);
        }
        let is_sample = digest.has_sample_at(event_time);
        if mode == Mode::Kernel && !is_sample && digest.left < event_time {
            // Nobody waits for the kernel part of an idle sample, nor of an event that is not kept. A buffer that begins at
            // this very moment does not know what the one before it left; and where a clock is so coarse that a thread is on
            // two processors at one tick, each buffer knows of its own.
            let is_idle = || digest.idle.last().is_some_and(|idle| idle.time == event_time);
            if digest.first != event_time
                && (pid == 0 && tid == 0 && is_idle() || digest.has_noted(event_time, |of| of == tid))
            {
                return None;
            }
        }
        let noted = !is_sample && digest.has_noted(event_time, |of| of == tid || of == NO_ID);
        let is_wanted = self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&pid));
        let node = (self.interns && is_sample && is_wanted).then(|| worker.intern(frames)).flatten();
        Some(Item::Fragment(Fragment {
            event_time,
            first,
            pid,
            tid,
            node,
            tree: worker.tree,
            is_kernel: mode == Mode::Kernel,
            pointer: hook.pointer,
            noted,
        }))
    }

    /// Takes an event whose provider is a GUID.
    fn event(&self, digest: &mut Digest, record: &Record<'_>, event: &Event<'_>) -> Option<Item> {
        let is_left = match event.kind {
            Kind::Classic => !matches!(
                class(event.provider, event.opcode, Keep::ALL),
                Class::Note { bytes: 0, pointers: 0 } | Class::Nothing
            ),
            Kind::Manifest(_) => {
                matches!(event.provider, CLR | CLR_RUNDOWN | JSCRIPT | KERNEL_EVENT_TRACING | ETWPROF)
            }
            Kind::Message(_) | Kind::Unknown(_) => false,
        };
        if is_left || self.chosen.has(event) {
            return left(digest, record);
        }
        if may_own_stack(event.provider) {
            digest.note(record, event.tid);
        }
        None
    }
}

/// A record that is left may be kept, and own a stack.
#[inline]
fn left(digest: &mut Digest, record: &Record<'_>) -> Option<Item> {
    digest.left = record.time();
    Some(Item::Record)
}

impl Digester for Buffers {
    type Worker = Worker;
    type Digest = Digest;
    type Item = Item;

    fn worker(&self, thread: usize) -> Worker {
        // The builder's own tree is number 0.
        let tree = u16::try_from(thread + 1).unwrap_or(u16::MAX);
        Worker { tree, stacks: PrefixTree::default(), memo: vec![(0, NodeId(u32::MAX)); 1 << MEMO_BITS] }
    }

    #[inline(always)]
    fn record(&self, worker: &mut Worker, digest: &mut Digest, record: &Record<'_>) -> Option<Item> {
        if digest.events == 0 {
            (digest.first, digest.left) = (record.time(), Ticks(i64::MIN));
        }
        digest.events += 1;
        match record.hook() {
            Some(hook) => {
                digest.bytes += hook.payload.len() as u64;
                self.hook(worker, digest, record, &hook)
            }
            None => {
                let event = record.event();
                digest.bytes += event.payload.len() as u64;
                self.event(digest, record, &event)
            }
        }
    }
}

const MEMO_BITS: u32 = 16;

impl Worker {
    /// The stack of a fragment. One that has come before is mostly found by its hash.
    fn intern(&mut self, frames: Frames<'_>) -> Option<NodeId> {
        let mut hash = 0u64;
        for address in frames.addresses() {
            hash = (hash.rotate_left(5) ^ address).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        let place = (hash >> (u64::BITS - MEMO_BITS)) as usize;
        if let Some((of, node)) = self.memo.get(place)
            && *of == hash
            && self.stacks.path(*node).eq(frames.addresses())
        {
            return Some(*node);
        }
        let node = self.stacks.extend(None, frames.addresses().rev())?;
        if let Some(memo) = self.memo.get_mut(place) {
            *memo = (hash, node);
        }
        Some(node)
    }
}
