//! What awaits its stack: CPU samples, and events of other kinds where they are asked for.

use crate::clock::Ticks;
use crate::event::{Event, NO_ID, Pointer};
use crate::events::kernel::{self, ContextSwitch, CounterSample, DiskIoInit, PageFault, ReadyThread};
use crate::origin::KernelSpace;
use crate::prefix_tree::NodeId;

use super::chosen::ChosenEvent;
use super::pieces::Pieces;

/// Which events are kept beside the CPU samples, each with its stack. None unless somebody asks: there may be 50 times
/// as many as samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Context switches: [`Kept::switches`](super::Kept::switches).
    pub switches: bool,
    /// Threads that were made ready: [`Kept::readied`](super::Kept::readied).
    pub readied: bool,
    /// Samples of performance counters: [`Kept::counted`](super::Kept::counted).
    pub counted: bool,
    /// Page faults: [`Kept::faults`](super::Kept::faults).
    pub faults: bool,
    /// Disk I/O, hard faults, and the names of files: [`Trace::disk`](super::Trace::disk), with the stacks of requests in
    /// [`Kept::disk_requests`](super::Kept::disk_requests).
    pub disk: bool,
    /// DPCs and interrupts: [`Trace::interrupts`](super::Trace::interrupts).
    pub interrupts: bool,
}

impl Keep {
    /// Everything.
    pub const ALL: Keep =
        Keep { switches: true, readied: true, counted: true, faults: true, disk: true, interrupts: true };

    /// What either asks for.
    #[must_use]
    pub fn or(self, other: Keep) -> Keep {
        Keep {
            switches: self.switches || other.switches,
            readied: self.readied || other.readied,
            counted: self.counted || other.counted,
            faults: self.faults || other.faults,
            disk: self.disk || other.disk,
            interrupts: self.interrupts || other.interrupts,
        }
    }

    pub(super) fn wants(self, fact: &Fact) -> bool {
        match fact {
            Fact::Switch(_) => self.switches,
            Fact::Ready(_) => self.readied,
            Fact::Counter(_) => self.counted,
            Fact::Fault(_) => self.faults,
            Fact::Disk(_) => self.disk,
            // They are chosen one by one.
            Fact::Chosen(_) => true,
        }
    }
}

/// What an event says of which the stack is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Switch(ContextSwitch),
    Ready(ReadyThread),
    Counter(CounterSample),
    Fault(PageFault),
    Disk(DiskIoInit),
    Chosen(ChosenEvent),
}

/// An event other than a CPU sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub(super) fact: Fact,
    /// The thread whose stack it would be, or [`NO_ID`] until a stack names one.
    tid: u32,
}

impl Other {
    pub(super) fn new(fact: Fact, event: &Event<'_>) -> Other {
        let tid = match fact {
            Fact::Switch(switch) => switch.new_tid,
            Fact::Counter(sample) => sample.tid,
            Fact::Fault(fault) => fault.tid.unwrap_or(event.tid),
            // The payload names the thread that was made ready.
            Fact::Ready(_) => event.tid,
            // A driver may ask for a thread that is not the one that runs.
            Fact::Disk(_) | Fact::Chosen(_) => event.tid,
        };
        Other { fact, tid }
    }

    /// A chosen event, whose stack is that of `tid`.
    pub(super) fn chosen(event: ChosenEvent, tid: u32) -> Other {
        Other { fact: Fact::Chosen(event), tid }
    }

    /// The other thread that it names.
    pub(super) fn other(&self) -> Option<u32> {
        match self.fact {
            Fact::Switch(switch) => Some(switch.old_tid),
            Fact::Ready(ready) => Some(ready.tid),
            Fact::Counter(_) | Fact::Fault(_) | Fact::Disk(_) | Fact::Chosen(_) => None,
        }
    }
}

/// What the join must know of an event to find its stack.
pub(super) trait Owner {
    /// The thread whose stack it would be, or [`NO_ID`] if any on its processor may be.
    fn tid(&self) -> u32;
    /// Learns the thread from the stack.
    fn is_of(&mut self, tid: u32);
    /// The instruction that the stack begins at, where it is known.
    fn address(&self) -> Option<u64>;
    /// True in an interrupt, which has no user part: its thread is a bystander.
    fn is_interrupt(&self) -> bool;
}

impl Owner for kernel::Sample {
    #[inline]
    fn tid(&self) -> u32 {
        self.tid
    }

    fn is_of(&mut self, _tid: u32) {}

    #[inline]
    fn address(&self) -> Option<u64> {
        Some(self.address)
    }

    #[inline]
    fn is_interrupt(&self) -> bool {
        self.in_dpc || self.in_isr
    }
}

impl Owner for Other {
    fn tid(&self) -> u32 {
        self.tid
    }

    fn is_of(&mut self, tid: u32) {
        self.tid = tid;
    }

    fn address(&self) -> Option<u64> {
        match self.fact {
            Fact::Counter(sample) => Some(sample.address),
            // The stack begins in the kernel, at the code that writes the event.
            Fact::Switch(_) | Fact::Ready(_) | Fact::Fault(_) | Fact::Disk(_) | Fact::Chosen(_) => None,
        }
    }

    fn is_interrupt(&self) -> bool {
        false
    }
}

/// One fragment of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Missing,
    /// A stack in one of the trees: the builder's own, or that of a thread that digested buffers.
    Known {
        tree: u16,
        node: NodeId,
    },
    /// To be told by the reference to a key with this number.
    Referred(u32),
}

impl Part {
    /// A stack in the builder's own tree.
    pub(super) fn own(node: NodeId) -> Part {
        Part::Known { tree: 0, node }
    }
}

/// Which parts a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Kernel,
    User,
    /// Both parts in one record.
    Both,
}

impl Mode {
    /// By whether its leaf and its root are in the kernel.
    #[inline]
    pub(super) fn of(is_leaf: bool, is_root: bool) -> Mode {
        match (is_leaf, is_root) {
            (_, true) => Mode::Kernel,
            (false, false) => Mode::User,
            (true, false) => Mode::Both,
        }
    }
}

/// An event while its stack is being put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaiting<F> {
    pub(super) time: Ticks,
    pub(super) fact: F,
    pub(super) processor: u16,
    /// How many there were, where several became one.
    pub(super) count: u8,
    /// The process that its stack names, or [`NO_ID`].
    pub(super) pid: u32,
    pub(super) kernel: Part,
    pub(super) user: Part,
}

impl<F: Owner> Awaiting<F> {
    pub(super) fn new(fact: F, time: Ticks, processor: u16) -> Self {
        let (kernel, user) = (Part::Missing, Part::Missing);
        Awaiting { time, processor, count: 1, fact, pid: NO_ID, kernel, user }
    }

    /// True if it still lacks such a part.
    fn lacks(&self, mode: Mode) -> bool {
        match mode {
            Mode::Kernel => self.kernel == Part::Missing,
            Mode::User => self.user == Part::Missing && !self.fact.is_interrupt(),
            Mode::Both => self.kernel == Part::Missing && self.user == Part::Missing,
        }
    }

    /// True if the record of a stack may mean it, as far as threads tell. Several processors may sample their idle thread
    /// at one moment, so for it the processor must agree, too, as for an event that does not know its thread.
    fn may_be(&self, named: Named) -> bool {
        let same_processor = self.processor == named.processor;
        match self.fact.tid() {
            NO_ID => same_processor,
            tid => tid == named.tid && (tid != 0 || same_processor),
        }
    }

    /// Takes note of what its stack says.
    pub(super) fn name(&mut self, named: Named) {
        self.pid = named.pid;
        self.fact.is_of(named.tid);
    }
}

/// The event that the record of a stack names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The time of the event.
    pub(super) time: Ticks,
    /// The thread's process.
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Where and when the record was written.
    pub(super) processor: u16,
    pub(super) written: Ticks,
}

/// What there is for a fragment.
pub(super) enum Found {
    /// An event, by its index.
    One(u32),
    /// Events that all have their part.
    Complete,
    Nothing,
}

/// Events of one moment that are looked through for the owner of a stack. A processor gives one sample at a moment, and
/// no machine has more processors; a crafted trace can put millions into one moment.
pub(super) const AT_ONE_MOMENT: usize = 1 << 12;

/// The event at a time on a thread that lacks such a part.
///
/// A coarse clock puts several events of a thread into one moment. Each gets one stack: that which begins at its address
/// (`first`), where that is known, else one of its mode, in order.
pub(super) fn find<F: Owner>(
    list: &Pieces<Awaiting<F>>,
    named: Named,
    mode: Mode,
    first: Option<u64>,
    is_kernel: impl Fn(u64) -> bool,
) -> Found {
    let from = partition_back(list.len(), |index| list.get(index).is_some_and(|one| one.time < named.time));
    let same_time = (from..).map_while(|index| Some((index, list.get(index)?)));
    let same_thread = same_time
        .take(AT_ONE_MOMENT)
        .take_while(|(_, one)| one.time == named.time)
        .filter(|(_, one)| one.may_be(named));
    let mut any = false;
    let lacking = same_thread.inspect(|_| any = true).filter(|(_, one)| one.lacks(mode));
    let found = lacking.min_by_key(|(_, one)| {
        let address = one.fact.address();
        (
            first.is_some_and(|first| address.is_some_and(|address| first != address)),
            address.is_some_and(&is_kernel) == (mode == Mode::User),
            one.processor != named.processor,
        )
    });
    match found {
        Some((index, _)) => Found::One(index as u32),
        None if any => Found::Complete,
        None => Found::Nothing,
    }
}

/// Keeps those of a list that `keep` does not drop; it may add each to one that it kept before.
pub(super) fn sweep<F>(
    list: &mut Pieces<Awaiting<F>>,
    mut keep: impl FnMut(&mut Pieces<Awaiting<F>>, u32, &mut Awaiting<F>) -> bool,
) -> Swept {
    let mut before = Vec::with_capacity(list.len() + 1);
    let mut kept = Pieces::default();
    for (index, mut one) in (0..).zip(std::mem::take(list).into_elements()) {
        before.push(kept.len() as u32);
        if keep(&mut kept, index, &mut one) {
            kept.push(one);
        }
    }
    before.push(kept.len() as u32);
    *list = kept;
    Swept { before }
}

/// Where the elements of a list are after some were dropped.
#[derive(Debug)]
pub(super) struct Swept {
    /// For each of the former elements, and for the end, how many of those before it are still there.
    before: Vec<u32>,
}

impl Swept {
    /// How many of the elements before this place are still there.
    pub(super) fn before(&self, index: usize) -> Option<usize> {
        self.before.get(index).map(|before| *before as usize)
    }

    /// Where the element is now; `None` if it was dropped.
    pub(super) fn place(&self, index: u32) -> Option<u32> {
        let place = *self.before.get(index as usize)?;
        (self.before.get(index as usize + 1)? > &place).then_some(place)
    }
}

/// Whether an address is the kernel's.
pub(super) fn kernel_test(kernel: KernelSpace, pointer: Pointer) -> impl Fn(u64) -> bool {
    move |address| kernel.contains(address, pointer)
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
