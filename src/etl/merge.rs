//! All events of all buffers in one order of time.
//!
//! One processor's buffers follow each other in time, and so do the records inside a buffer; buffers of different
//! processors overlap. So a heap holds one cursor for each buffer that overlaps the present moment, and a buffer is
//! opened (and decompressed) only when the present reaches its first record: as many buffers are alive as there are
//! processors. Because buffers are taken by the time of their first record and not by their place, files whose oldest
//! buffer is anywhere (circular) and sessions without buffers per processor need nothing more.
//!
//! Equal times come in the order of files, buffers and records: that keeps image ids ahead of their image, and a
//! kernel fragment of a stack ahead of its user fragment.
//!
//! Where records *inside* a buffer are out of order, the first attempt notices and gives up; a second one looks
//! through every buffer for its earliest record, and sorts those that need it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::event::{Event, Ticks};

use super::buffer::{self, Cursor};
use super::error::{Damage, DamageKind};
use super::file::{Buffer, LogFile};
use super::xpress;

/// An event turned up that is older than one already given out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disorder;

/// How far order inside buffers is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A buffer's first record is its earliest.
    Trusted,
    /// It may not be.
    Checked,
}

/// Where an event stands: the order of events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time: Ticks,
    file: u32,
    buffer: u32,
    offset: u32,
    /// The slot of its open buffer; no part of the order, as places differ before it.
    slot: u32,
}

/// Decompressed bytes that files of `size` bytes together may hold: five times the best ratio seen in a real file
/// (6.5), and one buffer of the largest size for the smallest of them.
fn budget(size: usize) -> usize {
    buffer::LARGEST as usize + size.saturating_mul(32)
}

/// Compressed bytes that a record takes at least: its time differs from the one before. The fewest seen on average in
/// a real buffer are 6.2.
const LEAST_BYTES_OF_RECORD: usize = 2;

pub(super) struct Merge<'a, 'p> {
    files: &'a [LogFile],
    order: Order,
    /// Buffers not yet open, by the time of their earliest record; the last one is next.
    waiting: Vec<Place>,
    open: Vec<Open<'a>>,
    free_slots: Vec<u32>,
    /// Emptied buffers of closed slots, to be filled again.
    spare: Vec<Vec<u8>>,
    /// Decompressed bytes that are alive, and how many may be.
    unpacked: usize,
    unpacked_limit: usize,
    /// Decompressed bytes that may still come.
    budget: usize,
    damage: Vec<Damage>,
    read: u64,
    progress: &'p mut dyn FnMut(u64),
}

/// A buffer being read.
struct Open<'a> {
    records: Records<'a>,
    processor: u16,
    cursor: Cursor,
    /// The times and places of its later records, where their own order is another.
    sorted: Option<std::vec::IntoIter<(Ticks, u32)>>,
}

enum Records<'a> {
    Borrowed(&'a [u8]),
    Unpacked(Vec<u8>),
}

impl Records<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Records::Borrowed(bytes) => bytes,
            Records::Unpacked(bytes) => bytes,
        }
    }
}

impl<'a, 'p> Merge<'a, 'p> {
    pub(super) fn new(files: &'a [LogFile], order: Order, progress: &'p mut dyn FnMut(u64)) -> Self {
        let size: usize = files.iter().map(|file| file.bytes.len()).sum();
        let mut merge = Merge {
            files,
            order,
            waiting: Vec::new(),
            open: Vec::new(),
            free_slots: Vec::new(),
            spare: Vec::new(),
            unpacked: 0,
            // Honest traces keep a buffer for each processor alive. A crafted one could make every buffer overlap.
            unpacked_limit: (64 << 20) + 8 * size,
            budget: 0,
            damage: Vec::new(),
            read: 0,
            progress,
        };
        merge.budget = budget(size);
        merge.waiting = merge.places();
        // Looking for the earliest records was a reading of its own; this one tells its damage again.
        merge.budget = budget(size);
        merge.damage.clear();
        merge.waiting.sort_unstable_by_key(|place| Reverse(*place));
        merge
    }

    fn places(&mut self) -> Vec<Place> {
        let files = self.files;
        let mut places = Vec::with_capacity(files.iter().map(|file| file.buffers.len()).sum());
        for (file_index, file) in files.iter().enumerate() {
            for (index, entry) in file.buffers.iter().enumerate() {
                let time = match self.order {
                    Order::Trusted => entry.first,
                    Order::Checked => self.earliest(file, entry),
                };
                places.push(Place {
                    time,
                    file: file_index as u32,
                    buffer: index as u32,
                    offset: 0,
                    slot: 0,
                });
            }
        }
        places
    }

    fn earliest(&mut self, file: &'a LogFile, entry: &Buffer) -> Ticks {
        let Some(records) = self.unpack(file, entry) else { return entry.first };
        let times = cursors(records.bytes()).map(|cursor| cursor.time());
        let earliest = times.min().unwrap_or(entry.first);
        self.recycle(records);
        earliest
    }

    /// Gives every event to `step` in order, and at the end the damage that was met on the way.
    pub(super) fn run(mut self, mut step: impl FnMut(&Event<'_>)) -> Result<Vec<Damage>, Disorder> {
        let mut heap: BinaryHeap<Reverse<Place>> = BinaryHeap::new();
        let mut now = Ticks(i64::MIN);
        loop {
            while let Some(next) = self.waiting.last().copied()
                && heap.peek().is_none_or(|Reverse(top)| next.time <= top.time)
            {
                self.waiting.pop();
                if let Some(place) = self.activate(next) {
                    heap.push(Reverse(place));
                }
            }
            let Some(mut top) = heap.peek_mut() else {
                if self.waiting.is_empty() {
                    break;
                }
                continue;
            };
            let place = top.0;
            if place.time < now {
                return Err(Disorder);
            }
            now = place.time;
            let Some(open) = self.open.get_mut(place.slot as usize) else { break };
            let records = open.records.bytes();
            step(&open.cursor.event(records, open.processor));
            let next = match &mut open.sorted {
                None => open.cursor.next(records),
                Some(sorted) => sorted.next().and_then(|(time, at)| Cursor::at(records, at as usize, time)),
            };
            match next {
                Some(cursor) => {
                    open.cursor = cursor;
                    top.0.time = cursor.time();
                    top.0.offset = cursor.offset() as u32;
                }
                None => {
                    PeekMut::pop(top);
                    self.close(place);
                }
            }
        }
        Ok(self.damage)
    }

    /// Opens the buffer at `place`; `None` if it gives no event.
    fn activate(&mut self, place: Place) -> Option<Place> {
        let file = self.files.get(place.file as usize)?;
        let entry = file.buffers.get(place.buffer as usize)?;
        self.read += entry.stored as u64;
        (self.progress)(self.read);
        let records = self.unpack(file, entry)?;
        let mut first = Cursor::first(records.bytes());
        let mut sorted = None;
        if self.order == Order::Checked && !cursors(records.bytes()).is_sorted_by_key(|cursor| cursor.time())
        {
            let places = cursors(records.bytes()).map(|cursor| (cursor.time(), cursor.offset() as u32));
            let mut order: Vec<(Ticks, u32)> = places.collect();
            order.sort_by_key(|(time, _)| *time);
            let end = cursors(records.bytes()).last().map(|cursor| cursor.end());
            self.report_end(place, records.bytes(), end);
            let mut order = order.into_iter();
            first = order.next().and_then(|(time, at)| Cursor::at(records.bytes(), at as usize, time));
            sorted = Some(order);
        }
        let Some(cursor) = first else {
            self.report_end(place, records.bytes(), Some(0));
            self.recycle(records);
            return None;
        };
        let open = Open { records, processor: entry.processor, cursor, sorted };
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                if let Some(place) = self.open.get_mut(slot as usize) {
                    *place = open;
                }
                slot
            }
            None => {
                self.open.push(open);
                (self.open.len() - 1) as u32
            }
        };
        Some(Place { time: cursor.time(), offset: cursor.offset() as u32, slot, ..place })
    }

    fn unpack(&mut self, file: &'a LogFile, entry: &Buffer) -> Option<Records<'a>> {
        let stored = file.stored_records(entry);
        if !entry.compressed {
            return Some(Records::Borrowed(stored));
        }
        let length = entry.saved - buffer::HEADER;
        let at = |kind| Damage { path: file.path().to_owned(), offset: entry.offset as u64, kind };
        if self.unpacked + length > self.unpacked_limit || length > self.budget {
            self.damage.push(at(DamageKind::TooLarge));
            return None;
        }
        self.budget -= length;
        let mut out = self.spare.pop().unwrap_or_default();
        let result = xpress::decompress(stored, length, &mut out);
        // Only a crafted buffer makes more records than its bytes can tell apart. No record is shorter than 8 bytes.
        let most = stored.len() / LEAST_BYTES_OF_RECORD + 1;
        if out.len() / 8 > most && cursors(&out).nth(most).is_some() {
            self.damage.push(at(DamageKind::TooLarge));
            out.clear();
            self.spare.push(out);
            return None;
        }
        if let Err(cause) = result {
            // A cut file was reported when it was indexed; those reports are in order.
            let known = file.damage.binary_search_by_key(&(entry.offset as u64), |damage| damage.offset);
            if known.is_err() {
                self.damage.push(at(DamageKind::Compression { cause, decoded: out.len(), expected: length }));
            }
        }
        self.unpacked += out.capacity();
        Some(Records::Unpacked(out))
    }

    fn recycle(&mut self, records: Records<'_>) {
        if let Records::Unpacked(mut bytes) = records {
            self.unpacked = self.unpacked.saturating_sub(bytes.capacity());
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Retires an exhausted buffer.
    fn close(&mut self, place: Place) {
        let Some(open) = self.open.get_mut(place.slot as usize) else { return };
        let end = open.sorted.is_none().then(|| open.cursor.end());
        let records = std::mem::replace(&mut open.records, Records::Borrowed(&[]));
        self.free_slots.push(place.slot);
        self.report_end(place, records.bytes(), end);
        self.recycle(records);
    }

    /// Reports records that end in the middle of a buffer. `end` is where the last one ended.
    fn report_end(&mut self, place: Place, records: &[u8], end: Option<usize>) {
        let Some(end) = end else { return };
        let Some(file) = self.files.get(place.file as usize) else { return };
        let Some(entry) = file.buffers.get(place.buffer as usize) else { return };
        let whole = records.len() + buffer::HEADER == entry.saved;
        if !whole || buffer::ends_well(records, end) {
            return;
        }
        let inside = if entry.compressed { 0 } else { buffer::HEADER + end };
        let kind = DamageKind::Record { skipped: records.len() - end };
        self.damage.push(Damage {
            path: file.path().to_owned(),
            offset: (entry.offset + inside) as u64,
            kind,
        });
    }
}

fn cursors(records: &[u8]) -> impl Iterator<Item = Cursor> + '_ {
    std::iter::successors(Cursor::first(records), |cursor| cursor.next(records))
}
