//! Buffers, each by itself: most of what a reader does with a record needs no other buffer, so that it can be done on
//! any thread, ahead of the reading in order of time.
//!
//! A [`Digester`] looks at every record of a buffer and keeps what it comes to in a digest. What it cannot settle alone
//! it leaves as an item; the items of all buffers are then given to an [`InOrder`] in one order of time. What both make
//! of a recording depends on the recording only, never on the number of threads.

use crate::event::{Event, Pointer, Ticks};

use super::buffer::{self, Cursor};
use super::error::{Damage, DamageKind};
use super::file::{Buffer, LogFile};
use super::xpress;

/// Digests the buffers of a recording.
pub trait Digester: Sync {
    /// What a thread keeps from one buffer to the next.
    type Worker: Send;
    /// What a buffer comes to, beside its items. It is used again for another buffer.
    type Digest: Default + Send;
    /// What is left of a record to be read in order of time.
    type Item: Copy + Send;

    /// What thread number `thread` starts with; 0 is the caller's own.
    fn worker(&self, thread: usize) -> Self::Worker;

    /// Takes the next record of a buffer, in order of time; `Some` if there is more to do with it in the order of all.
    fn record(
        &self,
        worker: &mut Self::Worker,
        digest: &mut Self::Digest,
        record: &Record<'_>,
    ) -> Option<Self::Item>;
}

/// Takes digests and items in order of time.
pub trait InOrder<D: Digester + ?Sized> {
    /// A buffer begins. None of its items has been given. Leave the digest as `Default` makes it: it is used again.
    fn buffer(&mut self, buffer: &BufferAt, digest: &mut D::Digest);

    /// The next item of all buffers.
    fn item(&mut self, item: D::Item, record: &RecordAt<'_>);
}

/// A record, before it is decoded.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    records: &'a [u8],
    cursor: Cursor,
    processor: u16,
}

impl<'a> Record<'a> {
    /// When it was written; where it has no time, that of the record before it.
    #[inline]
    pub fn time(&self) -> Ticks {
        self.cursor.time()
    }

    /// Where it starts in its buffer, which tells apart and orders records of one time.
    #[inline]
    pub fn offset(&self) -> u32 {
        self.cursor.offset() as u32
    }

    /// The processor that wrote it.
    #[inline]
    pub fn processor(&self) -> u16 {
        self.processor
    }

    /// Its short head; `None` for those that have a GUID.
    #[inline(always)]
    pub fn hook(&self) -> Option<Hook<'a>> {
        self.cursor.hook(self.records)
    }

    /// The whole record.
    #[inline]
    pub fn event(&self) -> Event<'a> {
        self.cursor.event(self.records, self.processor)
    }
}

/// A kernel record by the two bytes that name it.
#[derive(Clone, Copy, Debug)]
pub struct Hook<'a> {
    /// The group, which stands for a task: see [`guids::hook_task`](crate::guids::hook_task).
    pub group: u8,
    /// The opcode.
    pub opcode: u8,
    /// The version of the payload's layout.
    pub version: u8,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// The process in the header, or [`NO_ID`](crate::event::NO_ID).
    pub pid: u32,
    /// The thread in the header, or [`NO_ID`](crate::event::NO_ID).
    pub tid: u32,
    /// The payload.
    pub payload: &'a [u8],
}

/// The place of a record in the order of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it was written.
    pub time: Ticks,
    /// The number of its file, and of its buffer there.
    pub buffer: (u32, u32),
    /// Where it starts in its buffer.
    pub offset: u32,
}

/// A buffer that begins.
#[derive(Clone, Copy, Debug)]
pub struct BufferAt {
    /// The number of its file, and its own there.
    pub buffer: (u32, u32),
    /// The processor that wrote it.
    pub processor: u16,
    /// All that follows in the order of time is of this moment or later.
    pub time: Ticks,
    /// The times of its first and its last record.
    pub span: (Ticks, Ticks),
}

/// A record in the order of all.
#[derive(Clone, Copy, Debug)]
pub struct RecordAt<'a> {
    /// Its place.
    pub place: Place,
    /// The processor that wrote it.
    pub processor: u16,
    pub(super) records: &'a [u8],
}

impl<'a> RecordAt<'a> {
    /// Its bytes, header and all.
    pub fn bytes(&self) -> &'a [u8] {
        let Place { time, offset, .. } = self.place;
        Cursor::at(self.records, offset as usize, time).map_or(&[], |cursor| cursor.bytes(self.records))
    }

    /// The whole record.
    pub fn event(&self) -> Event<'a> {
        let Place { time, offset, .. } = self.place;
        match Cursor::at(self.records, offset as usize, time) {
            Some(cursor) => cursor.event(self.records, self.processor),
            // Nobody makes an item where no record starts.
            None => Event::unknown(time, self.processor),
        }
    }
}

/// How far order inside buffers is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A buffer's records are in order, and the first is the earliest.
    Trusted,
    /// They may not be.
    Checked,
}

/// What is left of a record.
#[derive(Clone, Copy)]
pub(super) struct Item<I> {
    pub(super) time: Ticks,
    pub(super) offset: u32,
    pub(super) item: I,
}

/// A buffer's records.
pub(super) enum Records<'a> {
    Borrowed(&'a [u8]),
    Unpacked(Vec<u8>),
}

impl Records<'_> {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Records::Borrowed(bytes) => bytes,
            Records::Unpacked(bytes) => bytes,
        }
    }
}

/// What a buffer came to.
pub(super) struct Digested<'a, D: Digester> {
    pub(super) records: Records<'a>,
    pub(super) items: Vec<Item<D::Item>>,
    pub(super) digest: D::Digest,
    /// The times of its first and its last record; `None` without any.
    pub(super) span: Option<(Ticks, Ticks)>,
    /// False where its order was trusted and is broken; all else is worthless then.
    pub(super) ordered: bool,
    pub(super) damage: Vec<Damage>,
}

/// Memory to be used again.
pub(super) struct Spare<D: Digester> {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Vec<Item<D::Item>>,
    pub(super) digest: D::Digest,
}

impl<D: Digester> Default for Spare<D> {
    fn default() -> Self {
        Spare { bytes: Vec::new(), items: Vec::new(), digest: D::Digest::default() }
    }
}

/// Compressed bytes that a record takes at least: its time differs from the one before. The fewest seen on average in
/// a real buffer are 6.2.
const LEAST_BYTES_OF_RECORD: usize = 2;

/// The records of a buffer, and what is wrong with them. `spare` is memory for a compressed one.
pub(super) fn unpack<'a>(
    file: &'a LogFile,
    entry: &Buffer,
    spare: Vec<u8>,
    damage: &mut Vec<Damage>,
) -> Records<'a> {
    let stored = file.stored_records(entry);
    if !entry.compressed {
        return Records::Borrowed(stored);
    }
    let length = entry.saved - buffer::HEADER;
    let at = |kind| Damage { path: file.path().to_owned(), offset: entry.offset as u64, kind };
    let mut out = spare;
    out.clear();
    let result = xpress::decompress(stored, length, &mut out);
    // Only a crafted buffer makes more records than its bytes can tell apart. No record is shorter than 8 bytes.
    let most = stored.len() / LEAST_BYTES_OF_RECORD + 1;
    if out.len() / 8 > most && cursors(&out).nth(most).is_some() {
        damage.push(at(DamageKind::TooLarge));
        out.clear();
        return Records::Borrowed(&[]);
    }
    if let Err(cause) = result {
        // A cut file was reported when it was indexed; those reports are in order.
        let known = file.damage.binary_search_by_key(&(entry.offset as u64), |damage| damage.offset);
        if known.is_err() {
            damage.push(at(DamageKind::Compression { cause, decoded: out.len(), expected: length }));
        }
    }
    Records::Unpacked(out)
}

/// Digests one buffer.
pub(super) fn digest<'a, D: Digester>(
    digester: &D,
    worker: &mut D::Worker,
    file: &'a LogFile,
    entry: &Buffer,
    order: Order,
    spare: Spare<D>,
) -> Digested<'a, D> {
    let Spare { bytes, mut items, mut digest } = spare;
    items.clear();
    let mut damage = Vec::new();
    let records = unpack(file, entry, bytes, &mut damage);
    let too_large = matches!(&records, Records::Borrowed(_)) && entry.compressed;
    let bytes = records.bytes();
    let processor = entry.processor;
    let mut taker = Taker { digester, worker, digest: &mut digest, items: &mut items };
    let (mut span, mut end, mut ordered) = (None, 0, true);
    if order == Order::Checked && !cursors(bytes).is_sorted_by_key(|cursor| cursor.time()) {
        let mut sorted: Vec<(Ticks, u32)> = Vec::new();
        for cursor in cursors(bytes) {
            sorted.push((cursor.time(), cursor.offset() as u32));
            end = cursor.end();
        }
        sorted.sort_by_key(|(time, _)| *time);
        for cursor in sorted.iter().filter_map(|(time, at)| Cursor::at(bytes, *at as usize, *time)) {
            taker.take(Record { records: bytes, cursor, processor });
        }
        span = sorted.first().zip(sorted.last()).map(|(first, last)| (first.0, last.0));
    } else if let Some(first) = Cursor::first(bytes) {
        let mut last = first;
        let mut next = Some(first);
        while let Some(cursor) = next {
            if cursor.time() < last.time() {
                ordered = false;
                break;
            }
            last = cursor;
            taker.take(Record { records: bytes, cursor, processor });
            next = cursor.next(bytes);
        }
        (span, end) = (Some((first.time(), last.time())), last.end());
    }
    if !too_large && ordered {
        damage.extend(end_damage(file, entry, bytes, end));
    }
    Digested { records, items, digest, span, ordered, damage }
}

/// Has a digester look at records.
struct Taker<'t, D: Digester> {
    digester: &'t D,
    worker: &'t mut D::Worker,
    digest: &'t mut D::Digest,
    items: &'t mut Vec<Item<D::Item>>,
}

impl<D: Digester> Taker<'_, D> {
    #[inline(always)]
    fn take(&mut self, record: Record<'_>) {
        if let Some(item) = self.digester.record(self.worker, self.digest, &record) {
            self.items.push(Item { time: record.time(), offset: record.offset(), item });
        }
    }
}

/// What is wrong where records end in the middle of a buffer. `end` is where the last one ended.
pub(super) fn end_damage(file: &LogFile, entry: &Buffer, records: &[u8], end: usize) -> Option<Damage> {
    let whole = records.len() + buffer::HEADER == entry.saved;
    if !whole || buffer::ends_well(records, end) {
        return None;
    }
    let inside = if entry.compressed { 0 } else { buffer::HEADER + end };
    let kind = DamageKind::Record { skipped: records.len() - end };
    Some(Damage { path: file.path().to_owned(), offset: (entry.offset + inside) as u64, kind })
}

/// The records of a buffer in their own order.
pub(super) fn cursors(records: &[u8]) -> impl Iterator<Item = Cursor> + '_ {
    std::iter::successors(Cursor::first(records), |cursor| cursor.next(records))
}
