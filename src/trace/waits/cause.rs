//! Which disk I/O or hard fault a thread waited for, as far as the events of these show it.

use rustc_hash::FxHashMap;

use super::{ThreadTimes, Wait};
use crate::clock::Ticks;
use crate::events::kernel::WaitReason;
use crate::trace::{Disk, DiskOperation, HardFault, Trace};

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A disk I/O that the thread had asked for before it blocked, and whose end ended the wait: an index into
    /// [`Disk::operations`].
    DiskIo(u32),
    /// A page that the thread had touched before it blocked, and that was there only when it ran again.
    HardFault {
        /// The fault: an index into [`Disk::hard_faults`].
        fault: u32,
        /// The disk I/O whose end ended the wait, if the thread itself asked for it.
        operation: Option<u32>,
    },
}

/// The disk I/O and the hard faults of each thread. To be made of a trace that keeps them
/// ([`Keep::disk`](crate::trace::Keep::disk)).
#[derive(Debug)]
pub struct Causes<'t> {
    trace: &'t Trace,
    /// By the ids of threads, in the order of their ends.
    operations: FxHashMap<u32, Vec<u32>>,
    faults: FxHashMap<u32, Vec<u32>>,
}

/// The longest time from the end of a disk I/O to the end of the wait for it. On slow-ppt.etl nearly all threads that
/// wait for one run again within 60 us.
const LATE_SECONDS: f64 = 0.005;

/// That time is no larger share of the wait, unless it is less than [`AT_ONCE_SECONDS`].
const LATE_SHARE: i64 = 5;

/// Within this time a thread always may take notice.
const AT_ONCE_SECONDS: f64 = 0.0001;

/// DelayExecution, Suspended, WrDelayExecution, WrSuspended.
const ASLEEP: [u8; 4] = [4, 5, 11, 12];

/// Operations of a thread that are looked through for one wait; a crafted trace may have any number in one moment.
const MOST: usize = 64;

impl<'t> Causes<'t> {
    /// Those of a trace.
    pub fn new(trace: &'t Trace) -> Causes<'t> {
        let Disk { operations, hard_faults, .. } = &trace.disk;
        Causes {
            trace,
            operations: by_thread(operations.iter().map(|one| (one.tid, one.end))),
            faults: by_thread(hard_faults.iter().map(|one| (one.tid, one.end))),
        }
    }

    /// What a wait was for; `None` where no event shows it.
    pub fn of(&self, thread: &ThreadTimes, wait: &Wait) -> Option<Cause> {
        // A thread that sleeps, or is held, waits for neither, whatever else it has asked for.
        if wait.blocked.reason(&self.trace.kept).is_some_and(|WaitReason(reason)| ASLEEP.contains(&reason)) {
            return None;
        }
        let operation = self.operation(thread.tid, wait);
        match self.fault(thread.tid, wait) {
            Some(fault) => Some(Cause::HardFault { fault, operation }),
            None => operation.map(Cause::DiskIo),
        }
    }

    /// The fault in whose time the whole wait lies.
    fn fault(&self, tid: u32, wait: &Wait) -> Option<u32> {
        let ended = wait.end();
        let all = self.faults.get(&tid)?;
        let fault = |index: u32| self.trace.disk.hard_faults.get(index as usize);
        let from = all.partition_point(|index| fault(*index).is_some_and(|one| one.end < ended));
        let has_begun = |one: &HardFault| one.start <= wait.blocked.start;
        // A thread has one at a time, so it is the next that ends.
        all.get(from).copied().filter(|index| fault(*index).is_some_and(has_begun))
    }

    /// The last operation that ended in the wait, if that ended the wait.
    fn operation(&self, tid: u32, wait: &Wait) -> Option<u32> {
        let (start, end) = (wait.blocked.start, wait.blocked.end);
        let clock = &self.trace.clock;
        let late = (wait.blocked.ticks() / LATE_SHARE).min(clock.ticks(LATE_SECONDS));
        let late = late.max(clock.ticks(AT_ONCE_SECONDS));
        let all = self.operations.get(&tid)?;
        let operation = |index: u32| self.trace.disk.operations.get(index as usize);
        let until = all.partition_point(|index| operation(*index).is_some_and(|one| one.end <= end));
        let ended = all.get(..until)?.iter().rev().take(MOST).copied();
        let ended = ended.map_while(|index| Some((index, operation(index)?)));
        let is_in_time = |one: &DiskOperation| one.end > start && end.0.saturating_sub(one.end.0) <= late;
        let mut ended = ended.take_while(|(_, one)| is_in_time(one));
        ended.find(|(_, one)| one.start <= start).map(|(index, _)| index)
    }
}

/// Indices by the ids of threads, in the order of the ends.
fn by_thread(all: impl Iterator<Item = (u32, Ticks)>) -> FxHashMap<u32, Vec<u32>> {
    let mut of_thread: FxHashMap<u32, Vec<(Ticks, u32)>> = FxHashMap::default();
    for (index, (tid, end)) in (0..).zip(all) {
        of_thread.entry(tid).or_default().push((end, index));
    }
    let in_order = |(tid, mut all): (u32, Vec<(Ticks, u32)>)| {
        all.sort_unstable();
        (tid, all.into_iter().map(|(_, index)| index).collect())
    };
    of_thread.into_iter().map(in_order).collect()
}
