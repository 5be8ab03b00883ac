//! Buffers: the headers that chain a file, and the records inside one buffer.
//!
//! A file is a plain sequence of buffers; the next one starts at this one's offset plus its `BufferSize`. There is no
//! index and no checksum. The 72-byte header (offsets verified on 13 files):
//!
//! | at | | field |
//! |---|---|---|
//! | 0x00 | u32 | BufferSize: bytes in the file; compressed buffers take any odd number |
//! | 0x04 | u32 | SavedOffset: valid bytes with the header; for compressed buffers after decompression |
//! | 0x10 | i64 | TimeStamp: when it was flushed, FILETIME |
//! | 0x18 | i64 | SequenceNumber: counts the buffers of all processors; a gap is a lost buffer |
//! | 0x28 | u16 | processor: 11 bits with flag 0x20, else the low byte only |
//! | 0x2A | u16 | LoggerId |
//! | 0x30 | u32 | Offset: equals SavedOffset, and stands in for it where that is 0 (header buffers up to Windows 7) |
//! | 0x34 | u16 | BufferFlag: 0x02 events lost, 0x04 buffer lost, 0x20 wide processor, 0x40 compressed |
//! | 0x36 | u16 | BufferType: 4 header |

use crate::bytes::Reader;
use crate::event::{Event, Ticks};

use super::digest::Hook;
use super::record::{self, Head};

/// The bytes of a buffer header.
pub(super) const HEADER: usize = 72;

/// Windows 8 and later allow 16 MiB; nothing larger is a buffer.
pub(super) const LARGEST: u32 = 16 << 20;

const FLAG_WIDE_PROCESSOR: u16 = 0x20;
const FLAG_COMPRESSED: u16 = 0x40;

const FLAGS_LOST: u16 = 0x02 | 0x04;

/// What a buffer's header says beside where its records are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// When it was flushed, FILETIME.
    pub(super) flushed: i64,
    /// Flags of lost events and buffers.
    pub(super) lost: u16,
    /// BufferType.
    pub(super) kind: u16,
}

/// A buffer header's fields that a reader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferHeader {
    /// Bytes in the file, header included.
    pub(super) size: u32,
    /// Valid bytes after decompression, header included.
    pub(super) saved: u32,
    pub(super) flushed: i64,
    pub(super) sequence: i64,
    pub(super) processor: u16,
    pub(super) logger: u16,
    pub(super) flags: u16,
    pub(super) kind: u16,
}

impl BufferHeader {
    /// Reads the header at the start of `bytes`.
    pub(super) fn read(bytes: &[u8]) -> Option<BufferHeader> {
        let mut reader = Reader::new(bytes.get(..HEADER)?);
        let (size, saved) = (reader.u32()?, reader.u32()?);
        reader.skip(8)?;
        let flushed = reader.i64()?;
        let sequence = reader.i64()?;
        reader.skip(8)?;
        let processor = reader.u16()?;
        let logger = reader.u16()?;
        reader.skip(4)?;
        let offset = reader.u32()?;
        let (flags, kind) = (reader.u16()?, reader.u16()?);
        let saved = if saved == 0 { offset } else { saved };
        // Without the flag the second byte is an alignment value (header buffers of merged files).
        let processor = processor & if flags & FLAG_WIDE_PROCESSOR != 0 { 0x07ff } else { 0x00ff };
        Some(BufferHeader { size, saved, flushed, sequence, processor, logger, flags, kind })
    }

    /// What is to be kept of it when its records are written to another file.
    pub(super) fn marks(&self) -> Marks {
        Marks { flushed: self.flushed, lost: self.flags & FLAGS_LOST, kind: self.kind }
    }

    pub(super) fn compressed(&self) -> bool {
        self.flags & FLAG_COMPRESSED != 0
    }

    /// True when nothing in it contradicts itself.
    pub(super) fn plausible(&self) -> bool {
        let header = HEADER as u32;
        let sizes =
            self.size >= header && self.size <= LARGEST && self.saved >= header && self.saved <= LARGEST;
        sizes && self.flags & !0x7f == 0 && self.kind <= 7 && (self.compressed() || self.saved <= self.size)
    }
}

/// A place among the records of one buffer.
///
/// Offsets count from the first record, which stands at byte 72 of the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    offset: usize,
    size: usize,
    time: Ticks,
    /// Its first eight bytes, which say what it is.
    word: u64,
}

impl Cursor {
    /// The first record of a buffer; `None` when it holds none. Without a time it has that of the first with one.
    pub(super) fn first(records: &[u8]) -> Option<Cursor> {
        let time = || {
            let mut offset = 0;
            loop {
                let head = record::head(records.get(offset..)?)?;
                if head.time.is_some() {
                    return head.time;
                }
                offset += head.size.next_multiple_of(8);
            }
        };
        let Head { size, time: own, word } = record::head(records)?;
        Some(Cursor { offset: 0, size, time: own.or_else(time).unwrap_or_default(), word })
    }

    /// The record at `offset`; `before` stands in for a time that it lacks.
    #[inline(always)]
    pub(super) fn at(records: &[u8], offset: usize, before: Ticks) -> Option<Cursor> {
        let Head { size, time, word } = record::head(records.get(offset..)?)?;
        Some(Cursor { offset, size, time: time.unwrap_or(before), word })
    }

    /// The record behind this one; `None` at the end and where the next bytes are no record.
    #[inline(always)]
    pub(super) fn next(&self, records: &[u8]) -> Option<Cursor> {
        Cursor::at(records, self.end(), self.time)
    }

    /// Where the record behind this one starts.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.offset + ((self.size + 7) & !7)
    }

    /// Where this record starts.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// When this record was written.
    pub(super) fn time(&self) -> Ticks {
        self.time
    }

    /// This record's bytes.
    #[inline(always)]
    pub(super) fn bytes<'a>(&self, records: &'a [u8]) -> &'a [u8] {
        records.get(self.offset..self.offset + self.size).unwrap_or_default()
    }

    /// This record's short head; `None` if it has another.
    #[inline(always)]
    pub(super) fn hook<'a>(&self, records: &'a [u8]) -> Option<Hook<'a>> {
        record::hook(self.bytes(records), self.word)
    }

    /// This record as an event.
    #[inline]
    pub(super) fn event<'a>(&self, records: &'a [u8], processor: u16) -> Event<'a> {
        record::decode(self.bytes(records), self.time, processor)
    }
}

/// True where a buffer's records end without a fault: at the end, or where nothing but fill follows.
pub(super) fn ends_well(records: &[u8], end: usize) -> bool {
    let rest = records.get(end..).unwrap_or_default();
    let fill = |byte| rest.iter().all(|other| *other == byte);
    rest.len() < 8 || fill(0) || fill(0xff)
}
