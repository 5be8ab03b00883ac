//! Records copied out of ETW's buffers, many at a time.
//!
//! The callback that hands out a record must be quick: while it runs, the session's buffers fill. So it copies header
//! and bytes to the end of a [`Batch`] and returns; a full batch goes to the builder's thread as a whole and comes
//! back empty to be used again.

use crate::event::{Event, Kind, Pointer, Ticks};
use crate::guid::Guid;

/// Records in the order in which they came, with the bytes of all of them in one place.
#[derive(Debug, Default)]
pub struct Batch {
    records: Vec<Record>,
    bytes: Vec<u8>,
}

/// A record's header, and where its bytes are.
#[derive(Clone, Copy, Debug)]
struct Record {
    time: Ticks,
    provider: Guid,
    kind: Kind,
    opcode: u8,
    version: u8,
    pointer: Pointer,
    processor: u16,
    pid: u32,
    tid: u32,
    start: u32,
    items: u32,
    payload: u32,
}

/// A batch is handed on when it holds this many records ...
const RECORDS: usize = 4096;
/// ... or this many bytes.
const BYTES: usize = 512 << 10;

impl Batch {
    /// Copies one event to the end.
    #[inline]
    pub fn push(&mut self, event: &Event<'_>) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(event.items);
        self.bytes.extend_from_slice(event.payload);
        self.records.push(Record {
            time: event.time,
            provider: event.provider,
            kind: event.kind,
            opcode: event.opcode,
            version: event.version,
            pointer: event.pointer,
            processor: event.processor,
            pid: event.pid,
            tid: event.tid,
            start,
            items: event.items.len() as u32,
            payload: event.payload.len() as u32,
        });
    }

    /// True when it is time to hand it on.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.records.len() >= RECORDS || self.bytes.len() >= BYTES
    }

    /// Records in it.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True for a batch without records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The memory that its records take, in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<Record>()
    }

    /// Empties it; the memory stays.
    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }

    /// Records that it can take without asking for memory.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.records.capacity()
    }

    /// The times of its records.
    pub(super) fn times(&self) -> impl Iterator<Item = Ticks> + '_ {
        self.records.iter().map(|record| record.time)
    }

    /// The record at `index`.
    #[inline]
    pub fn event(&self, index: usize) -> Option<Event<'_>> {
        let record = self.records.get(index)?;
        let body = self.bytes.get(record.start as usize..)?;
        let (items, rest) = body.split_at_checked(record.items as usize)?;
        Some(Event {
            time: record.time,
            provider: record.provider,
            kind: record.kind,
            opcode: record.opcode,
            version: record.version,
            pointer: record.pointer,
            processor: record.processor,
            pid: record.pid,
            tid: record.tid,
            items,
            payload: rest.get(..record.payload as usize)?,
        })
    }
}
