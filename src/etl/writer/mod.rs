//! Writes .etl files, on every system and as a stream: records go to the buffers of their processors, and full buffers
//! to the file.
//!
//! The layout is that of the files that Windows writes, as the reader's modules describe it. A buffer's records are
//! in the order in which they were given; the buffers of one processor follow each other in time if the records did.

mod compress;
mod copy;
mod file_header;
mod live;
mod records;
mod ring;

use std::fs::File;
use std::io::{self, Cursor, Seek, SeekFrom, Write};

use rustc_hash::FxHashMap;

pub use compress::Compressor;
pub use copy::{Copied, Keep, KeepAll, MOST_KINDS, copy};
pub use file_header::FileHeader;
pub use live::{IsFact, LiveFile, Newest, Tee, Written, record_of};
pub use records::{Classic, Hooked, ImageIdentity, Manifest, Merged, Message};

use crate::clock::{Clock, Ticks};

use super::buffer::{HEADER, Marks};
use file_header::Patch;
use ring::Slots;

/// Bytes of records in all open buffers together, at most.
const MOST_OPEN: usize = 64 << 20;

const FLUSHED: u16 = 0x01;
const WIDE_PROCESSOR: u16 = 0x20;
const COMPRESSED: u16 = 0x40;
const HEADER_BUFFER: u16 = 4;

/// Where a file goes: it is written from the start to the end, and then its header once more.
pub trait Output: Write + Seek {
    /// Throws away what was written.
    fn clear(&mut self) -> io::Result<()>;
}

impl<W: Output + ?Sized> Output for &mut W {
    fn clear(&mut self) -> io::Result<()> {
        (**self).clear()
    }
}

impl Output for File {
    fn clear(&mut self) -> io::Result<()> {
        self.set_len(0)?;
        self.rewind()
    }
}

impl Output for Cursor<Vec<u8>> {
    fn clear(&mut self) -> io::Result<()> {
        self.get_mut().clear();
        self.set_position(0);
        Ok(())
    }
}

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The session's buffer size in bytes. A record that is longer gets a buffer of its own.
    pub buffer_size: u32,
    /// Compress the buffers (all but the first).
    pub compress: bool,
    /// The session's number.
    pub logger: u16,
    /// The clock of the records: buffers carry the date of their last record.
    pub clock: Clock,
}

/// What the header says in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// When the log was closed; FILETIME, 0 if it never was.
    pub end: i64,
    /// Events that the session could not write.
    pub events_lost: u32,
    /// Buffers that the session could not write.
    pub buffers_lost: u32,
}

/// Writes one file.
#[derive(Debug)]
pub struct Writer<W: Output> {
    out: W,
    layout: Layout,
    /// The header record's place and bytes.
    header: (u64, Vec<u8>),
    open: FxHashMap<u16, Open>,
    /// Bytes in `open`.
    held: usize,
    spare: Vec<Vec<u8>>,
    packed: Vec<u8>,
    compressor: Compressor,
    position: u64,
    /// Where the header of the last buffer is, and its flags.
    last: (u64, u16),
    sequence: i64,
    buffers: u32,
    /// In a file of a bounded size: which places there are for buffers.
    ring: Option<Slots>,
}

/// A buffer that is not full: its header's place, and its records.
#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    last: Ticks,
}

impl<W: Output> Writer<W> {
    /// Begins a file with its header buffer: the header record, which [`FileHeader::record`] makes or another file has, and
    /// whatever records shall stand in the same buffer.
    pub fn new(mut out: W, layout: Layout, header: &[u8], others: &[&[u8]]) -> io::Result<Self> {
        out.clear()?;
        let mut writer = Writer {
            out,
            layout,
            header: (HEADER as u64, header.to_vec()),
            open: FxHashMap::default(),
            held: 0,
            spare: Vec::new(),
            packed: Vec::new(),
            compressor: Compressor::default(),
            position: 0,
            last: (0, 0),
            sequence: 0,
            buffers: 0,
            ring: None,
        };
        let mut bytes = vec![0; HEADER];
        for record in std::iter::once(&header).chain(others) {
            put(&mut bytes, record);
        }
        let saved = bytes.len();
        // Header buffers of merged files are as small as they can be.
        let size = if layout.compress { saved.next_multiple_of(512) } else { writer.stored(saved) };
        let fields = BufferFields { size, saved, processor: 0, flags: FLUSHED, kind: HEADER_BUFFER, date: 0 };
        writer.append(&mut bytes, &fields)?;
        Ok(writer)
    }

    /// Begins a file that has room for so many buffers behind the first: when all are used, the buffer that was filled
    /// longest ago gives way to the next. Nothing is compressed.
    pub fn ring(out: W, layout: Layout, header: &[u8], others: &[&[u8]], buffers: u32) -> io::Result<Self> {
        let layout = Layout { compress: false, ..layout };
        let mut writer = Writer::new(out, layout, header, others)?;
        writer.ring = Some(Slots::new(writer.position, layout.buffer_size, buffers));
        Ok(writer)
    }

    /// Adds a record of a processor, header and all. Its time stands in the header, too; `time` dates the buffer.
    #[inline]
    pub fn record(&mut self, processor: u16, time: Ticks, record: &[u8]) -> io::Result<()> {
        let needed = record.len().next_multiple_of(8);
        if let Some(open) = self.open.get_mut(&processor) {
            if open.bytes.len() + needed <= self.layout.buffer_size as usize {
                put(&mut open.bytes, record);
                open.last = time;
                self.held += needed;
                return Ok(());
            }
            self.flush(processor)?;
        }
        if self.held + needed > MOST_OPEN {
            self.flush_all()?;
        }
        if self.ring.is_some() {
            if HEADER + needed > self.layout.buffer_size as usize {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is longer than a buffer"));
            }
            self.reserve(processor)?;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(HEADER, 0);
        put(&mut bytes, record);
        self.held += bytes.len();
        self.open.insert(processor, Open { bytes, last: time });
        Ok(())
    }

    /// Writes the open buffer of a processor, if it has one.
    pub fn flush(&mut self, processor: u16) -> io::Result<()> {
        let Some(Open { last, .. }) = self.open.get(&processor) else { return Ok(()) };
        let flushed = self.layout.clock.filetime(*last);
        self.flush_as(processor, Marks { flushed, ..Marks::default() })
    }

    /// The same, with the marks of the buffer that its records came from.
    fn flush_as(&mut self, processor: u16, marks: Marks) -> io::Result<()> {
        let Some(Open { mut bytes, .. }) = self.open.remove(&processor) else { return Ok(()) };
        self.held = self.held.saturating_sub(bytes.len());
        let saved = bytes.len();
        let Marks { flushed: date, lost, kind } = marks;
        let flags = WIDE_PROCESSOR | lost;
        if self.layout.compress {
            let mut packed = std::mem::take(&mut self.packed);
            packed.clear();
            packed.resize(HEADER, 0);
            self.compressor.compress(bytes.get(HEADER..).unwrap_or_default(), &mut packed);
            let (size, flags) = (packed.len(), flags | COMPRESSED);
            self.append(&mut packed, &BufferFields { size, saved, processor, flags, kind, date })?;
            self.packed = packed;
        } else {
            let fields = BufferFields { size: self.stored(saved), saved, processor, flags, kind, date };
            match self.ring.as_mut().and_then(|ring| ring.close(processor)) {
                Some(place) => {
                    self.write_at(place, &mut bytes, &fields, self.sequence)?;
                    self.sequence = self.sequence.saturating_add(1);
                }
                None => self.append(&mut bytes, &fields)?,
            }
        }
        self.spare.push(bytes);
        Ok(())
    }

    /// Finds a place for the buffer of a processor that is to be begun.
    fn reserve(&mut self, processor: u16) -> io::Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let (place, is_new) = ring.open(processor);
        if is_new {
            // No hole stays in the file, whatever becomes of this buffer.
            let size = self.layout.buffer_size as usize;
            let fields =
                BufferFields { size, saved: HEADER, processor, flags: WIDE_PROCESSOR, kind: 0, date: 0 };
            self.write_at(place, &mut vec![0; HEADER], &fields, self.sequence)?;
            self.position = place + size as u64;
            self.buffers = self.buffers.saturating_add(1);
        }
        Ok(())
    }

    /// Writes the buffers of a ring that are not full as far as they are, and leaves them open.
    fn write_open(&mut self) -> io::Result<()> {
        let mut open: Vec<u16> = self.open.keys().copied().collect();
        open.sort_unstable();
        for (sequence, processor) in (self.sequence..).zip(open) {
            let place = self.ring.as_ref().and_then(|ring| ring.place(processor));
            let Some((place, Open { bytes, last })) = place.zip(self.open.get(&processor)) else { continue };
            let (saved, date) = (bytes.len(), self.layout.clock.filetime(*last));
            let flags = WIDE_PROCESSOR;
            let fields = BufferFields { size: self.stored(saved), saved, processor, flags, kind: 0, date };
            let mut bytes = bytes.clone();
            self.write_at(place, &mut bytes, &fields, sequence)?;
        }
        Ok(())
    }

    /// Writes all open buffers, in the order of their processors.
    pub fn flush_all(&mut self) -> io::Result<()> {
        let mut processors: Vec<u16> = self.open.keys().copied().collect();
        processors.sort_unstable();
        processors.into_iter().try_for_each(|processor| self.flush(processor))
    }

    /// Gives the next buffer this number, and those behind it the numbers that follow.
    fn number(&mut self, sequence: i64) {
        self.sequence = sequence;
    }

    /// Leaves out so many numbers of buffers, which are lost: a reader finds the gap.
    pub fn skip(&mut self, buffers: u64) -> io::Result<()> {
        self.flush_all()?;
        self.sequence = self.sequence.saturating_add(i64::try_from(buffers).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Writes what is open, and completes the header. Returns the size of the file in bytes.
    pub fn finish(mut self, ending: Ending) -> io::Result<u64> {
        self.complete(ending)?;
        Ok(self.position)
    }

    /// Writes what is open, and a header for what is there: a file that ends here can be read. More may follow.
    pub fn complete(&mut self, ending: Ending) -> io::Result<()> {
        match self.ring {
            Some(_) => self.write_open()?,
            None => self.flush_all()?,
        }
        let (place, header) = &mut self.header;
        Patch {
            buffer_size: self.layout.buffer_size,
            compressed: self.layout.compress,
            buffers: self.buffers,
            ending,
        }
        .apply(header);
        self.out.seek(SeekFrom::Start(*place))?;
        self.out.write_all(header)?;
        // The last buffer of a file is marked as flushed.
        let (last, flags) = self.last;
        self.out.seek(SeekFrom::Start(last + 0x34))?;
        self.out.write_all(&(flags | FLUSHED).to_le_bytes())?;
        self.out.seek(SeekFrom::Start(self.position))?;
        self.out.flush()
    }

    /// The size in the file of an uncompressed buffer with so many valid bytes.
    fn stored(&self, saved: usize) -> usize {
        saved.next_multiple_of(1024).max(self.layout.buffer_size as usize)
    }

    /// Writes a buffer behind the last.
    fn append(&mut self, bytes: &mut Vec<u8>, fields: &BufferFields) -> io::Result<()> {
        fields.put(bytes, self.layout.logger, self.sequence);
        self.out.write_all(bytes)?;
        self.last = (self.position, fields.flags);
        self.position += fields.size as u64;
        self.sequence = self.sequence.saturating_add(1);
        self.buffers = self.buffers.saturating_add(1);
        Ok(())
    }

    /// Writes a buffer to its place.
    fn write_at(
        &mut self,
        place: u64,
        bytes: &mut Vec<u8>,
        fields: &BufferFields,
        sequence: i64,
    ) -> io::Result<()> {
        let end = bytes.len();
        fields.put(bytes, self.layout.logger, sequence);
        self.out.seek(SeekFrom::Start(place))?;
        self.out.write_all(bytes)?;
        bytes.truncate(end);
        self.last = (place, fields.flags);
        Ok(())
    }
}

/// A buffer header's fields that differ from one to the next.
struct BufferFields {
    size: usize,
    saved: usize,
    date: i64,
    processor: u16,
    flags: u16,
    kind: u16,
}

impl BufferFields {
    /// Puts the header before the records of a buffer, and fills it up.
    fn put(&self, bytes: &mut Vec<u8>, logger: u16, sequence: i64) {
        if let Some(head) = bytes.first_chunk_mut::<HEADER>() {
            *head = self.bytes(logger, sequence);
        }
        bytes.resize(self.size, 0xff);
    }

    /// The 72 bytes. CurrentOffset and Offset are where the valid bytes end, as in files of the kernel's own; the state is
    /// 3 (flush). What readers are not to use (counts of references, pointers) is zero.
    fn bytes(&self, logger: u16, sequence: i64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let (size, saved) = (self.size as u32, self.saved as u32);
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(0x00, &size.to_le_bytes());
        put(0x04, &saved.to_le_bytes());
        put(0x08, &saved.to_le_bytes());
        put(0x10, &self.date.to_le_bytes());
        put(0x18, &sequence.to_le_bytes());
        put(0x28, &self.processor.to_le_bytes());
        put(0x2a, &logger.to_le_bytes());
        put(0x2c, &3_u32.to_le_bytes());
        put(0x30, &saved.to_le_bytes());
        put(0x34, &self.flags.to_le_bytes());
        put(0x36, &self.kind.to_le_bytes());
        bytes
    }
}

/// Appends a record and what fills up to the next multiple of eight.
#[inline]
fn put(bytes: &mut Vec<u8>, record: &[u8]) {
    bytes.extend_from_slice(record);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}
