//! How a recording goes.

use super::tally::SampleCounts;

/// How a recording goes.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Events that came.
    pub events: u64,
    /// CPU samples among them, by whose they are.
    pub samples: SampleCounts,
    /// What was lost up to now.
    pub losses: Losses,
    /// The kernel session's buffers.
    pub buffers: u32,
    /// Of these: those with events in them.
    pub buffers_used: u32,
    /// Batches of events that wait for the builder, and how many may.
    pub waiting: (usize, usize),
    /// Private memory of this process, in bytes; 0 if the system does not say.
    pub memory: u64,
    /// Memory that this process could still have, in bytes; `u64::MAX` if the system does not say.
    pub memory_left: u64,
}

/// What did not come through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the sessions had no room for.
    pub events: u64,
    /// Buffers that the sessions lost.
    pub buffers: u64,
    /// Events that were dropped here because the builder was too slow.
    pub dropped: u64,
    /// Events that came so late that they are out of order.
    pub late: u64,
}
