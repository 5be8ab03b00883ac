//! What threads of a runtime compete for: locks, and work of the thread pool.

use crate::bytes::Reader;
use crate::event::Pointer;

/// A thread begins to wait for a lock that another holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contention {
    /// True for a lock of the runtime itself, false for one of the program.
    pub is_native: bool,
    /// The system's id of the thread that holds the lock, where the event has it.
    pub owner: Option<u64>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// The thread has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentionEnd {
    /// Which runtime of the process.
    pub instance: Option<u16>,
    /// How long it waited, in ns, where the event has it.
    pub nanoseconds: Option<u64>,
}

/// How many threads of the pool may work changed, or is what it was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolThreads {
    /// So many.
    pub threads: u32,
    /// Why the pool wants so many from now on; `None` where a thread came or went.
    pub reason: Option<PoolReason>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Why a pool changes how many threads it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PoolReason {
    /// Work waits, and no thread takes it.
    Starvation,
    /// Threads that ran for nothing.
    TimedOut,
    /// Threads that wait for tasks, which the pool makes up for.
    CooperativeBlocking,
    /// It tries what makes it faster.
    Climbing,
    /// A number that is not known here.
    Other(u32),
}

impl PoolReason {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            PoolReason::Starvation => "starvation",
            PoolReason::TimedOut => "idle threads timed out",
            PoolReason::CooperativeBlocking => "threads block on tasks",
            PoolReason::Climbing => "hill climbing",
            PoolReason::Other(_) => "other",
        }
    }
}

impl From<u32> for PoolReason {
    fn from(reason: u32) -> PoolReason {
        match reason {
            0..=5 => PoolReason::Climbing,
            6 => PoolReason::Starvation,
            7 => PoolReason::TimedOut,
            8 => PoolReason::CooperativeBlocking,
            other => PoolReason::Other(other),
        }
    }
}

/// Flags u8 (0 managed, 1 native) and instance u16 since version 1; since version 2 the lock and its object, pointers, and
/// the system's id of the owner, u64. Version 0 is empty. By the manifest only.
pub(super) fn decode_contention(r: &mut Reader<'_>, version: u8, pointer: Pointer) -> Contention {
    let (flags, instance) = if version >= 1 { (r.u8(), r.u16()) } else { (None, None) };
    let owner = if version >= 2 {
        let objects = pointer.read(r).zip(pointer.read(r));
        objects.and_then(|_| r.u64()).filter(|owner| *owner != 0)
    } else {
        None
    };
    Contention { is_native: flags == Some(1), owner, instance }
}

/// Flags u8 and instance u16; since version 1 the duration in ns, f64. By the manifest only.
pub(super) fn decode_contention_end(r: &mut Reader<'_>, version: u8) -> ContentionEnd {
    let (_flags, instance) = (r.u8(), r.u16());
    let nanoseconds = r.u64().filter(|_| version >= 1).map(|bits| f64::from_bits(bits) as u64);
    ContentionEnd { instance, nanoseconds }
}

/// Active and retired threads u32, instance u16. Verified on net.4.5.2.x64.etl.
pub(super) fn decode_pool_threads(r: &mut Reader<'_>) -> Option<PoolThreads> {
    let (threads, _retired) = (r.u32()?, r.u32()?);
    Some(PoolThreads { threads, reason: None, instance: r.u16() })
}

/// Average throughput f64, new number of threads and reason u32, instance u16. By the manifest only.
pub(super) fn decode_pool_adjustment(r: &mut Reader<'_>) -> Option<PoolThreads> {
    let _throughput = r.u64()?;
    let (threads, reason) = (r.u32()?, PoolReason::from(r.u32()?));
    Some(PoolThreads { threads, reason: Some(reason), instance: r.u16() })
}
