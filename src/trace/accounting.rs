//! Exact accounting: where every sample went, and what was lost before it came to us.

use serde::Serialize;

/// Losses and faults of a recording. Every one of them may hide samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Events that the session could not write, by the headers and by events that tell of losses.
    pub events: u64,
    /// Buffers that the session could not write, by the same.
    pub buffers: u64,
    /// Buffers that are missing by their sequence numbers.
    pub sequence_gaps: u64,
    /// Stacks whose event is not in the trace.
    pub orphan_stacks: u64,
    /// Stacks told by a key whose frames never came.
    pub undefined_stack_keys: u64,
    /// Events whose payload is too short for its layout.
    pub malformed_events: u64,
}

impl Lost {
    /// True if anything was lost.
    pub fn any(&self) -> bool {
        *self != Lost::default()
    }
}
