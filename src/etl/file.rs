//! One .etl file: its bytes, its header record, and the index of its buffers.

use std::fmt;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use crate::event::Ticks;
use crate::guids::EVENT_TRACE;
use crate::mmap::Mapped;
use crate::origin::Missing;

use super::buffer::{self, BufferHeader, Cursor, Marks};
use super::error::{Damage, DamageKind, EtlError};
use super::header::{self, LogHeader};
use super::{record, xpress};

/// Where a file's bytes live.
pub(super) enum Bytes {
    /// On disk.
    Mapped(Mapped),
    /// In memory.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// An opened .etl file. Nothing but its buffer headers has been read.
pub struct LogFile {
    path: PathBuf,
    pub(super) bytes: Bytes,
    size: u64,
    header: LogHeader,
    pub(super) buffers: Vec<Buffer>,
    /// What the index found wrong.
    pub(super) damage: Vec<Damage>,
    sequence_gaps: u64,
    missing: Vec<Missing>,
    /// Where numbers of buffers are missing: the number behind, and how many.
    pub(super) gaps: Vec<(i64, u64)>,
    /// The numbers of buffers without records, in order.
    pub(super) empty: Vec<i64>,
    /// The session's number.
    pub(super) logger: u16,
}

/// A buffer of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    /// Where its header starts in the file.
    pub(super) offset: usize,
    /// Bytes of the file that are its own, header included; less than its header says in a cut file.
    pub(super) stored: usize,
    /// Valid bytes after decompression, header included.
    pub(super) saved: usize,
    pub(super) processor: u16,
    pub(super) compressed: bool,
    /// The time of its first record.
    pub(super) first: Ticks,
    /// Its number among all buffers of the session.
    pub(super) sequence: i64,
    pub(super) marks: Marks,
}

impl LogFile {
    /// Indexes `bytes`; `path` is the name that errors show.
    pub(super) fn new(path: PathBuf, bytes: Bytes) -> Result<LogFile, EtlError> {
        let header = read_header(&path, &bytes)?;
        let mut index = Index::new(&path, &bytes, &header);
        index.run();
        let Index { mut buffers, damage, mut sequences, logger, .. } = index;
        if header.is_circular() {
            // Of records of one time, those of the earlier buffer come first. The header buffer stays where it is.
            buffers.sort_by_key(|buffer| (buffer.offset > 0, buffer.sequence));
        }
        let (gaps, missing) = gaps(&mut sequences);
        let sequence_gaps = gaps.iter().fold(0_u64, |sum, (_, missing)| sum.saturating_add(*missing));
        let empty =
            sequences.iter().filter(|sequence| sequence.first.is_none()).map(|sequence| sequence.number);
        let (empty, logger) = (empty.collect(), logger.unwrap_or_default());
        let size = bytes.len() as u64;
        Ok(LogFile {
            path,
            header,
            buffers,
            damage,
            sequence_gaps,
            missing,
            gaps,
            empty,
            logger,
            bytes,
            size,
        })
    }

    /// The file's path, or for a member of an archive the archive's path and the member's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header record.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The number of buffers in it.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Lets go of the file: nothing is there to be read any more.
    pub(super) fn close(&mut self) {
        self.bytes = Bytes::Owned(Vec::new());
    }

    /// Buffers that are missing between others, by their sequence numbers.
    pub fn sequence_gaps(&self) -> u64 {
        self.sequence_gaps
    }

    /// Where they are missing: at the first buffer of each processor behind them.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// What is gone of it since it was opened.
    pub(super) fn shrunk(&self) -> Option<Damage> {
        let Bytes::Mapped(map) = &self.bytes else { return None };
        let offset = map.shrunk_at()?;
        Some(Damage { path: self.path.clone(), offset, kind: DamageKind::Shrunk })
    }

    /// That nothing was read of it, because its records could not be put in order.
    pub(super) fn disordered(&self) -> Damage {
        Damage { path: self.path.clone(), offset: 0, kind: DamageKind::Disorder }
    }

    /// Its header record, as it stands in the file.
    pub(super) fn header_record(&self) -> &[u8] {
        let records = self.bytes.get(buffer::HEADER..).unwrap_or_default();
        Cursor::first(records).map_or(&[], |cursor| cursor.bytes(records))
    }

    /// The bytes of an uncompressed buffer's records, or the compressed bytes of a compressed one.
    pub(super) fn stored_records(&self, buffer: &Buffer) -> &[u8] {
        let end = if buffer.compressed { buffer.stored } else { buffer.stored.min(buffer.saved) };
        self.bytes.get(buffer.offset + buffer::HEADER..buffer.offset + end).unwrap_or_default()
    }
}

impl fmt::Debug for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFile").field("path", &self.path).field("buffers", &self.buffers.len()).finish()
    }
}

/// Reads the header record; anything that lacks one is not an .etl file.
fn read_header(path: &Path, bytes: &[u8]) -> Result<LogHeader, EtlError> {
    let not_etl = |offset, reason| EtlError::NotEtl { path: path.to_owned(), offset, reason };
    if bytes.is_empty() {
        return Err(not_etl(0, "the file is empty"));
    }
    let first = BufferHeader::read(bytes).ok_or(not_etl(0, "it is shorter than a buffer header"))?;
    let stored = usize::try_from(first.size).unwrap_or(usize::MAX).min(bytes.len());
    let saved = usize::try_from(first.saved).unwrap_or(usize::MAX);
    // A damaged size in the header buffer must not cost the whole file: the record has a size of its own.
    let end = if first.plausible() && !first.compressed() { stored.min(saved) } else { bytes.len() };
    let records = bytes.get(buffer::HEADER..end).unwrap_or_default();
    let at = buffer::HEADER as u64;
    let cursor = Cursor::first(records).ok_or(not_etl(at, "no event record where the header should be"))?;
    let event = cursor.event(records, first.processor);
    if event.provider != EVENT_TRACE || event.opcode != 0 {
        return Err(not_etl(at, "its first record is not a trace header"));
    }
    header::read(&event).ok_or(not_etl(at, "its trace header is cut short"))
}

/// The walk over buffer headers.
///
/// Every byte is looked at a bounded number of times, whatever the file holds.
struct Index<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    session_size: usize,
    /// The log says that it holds compressed buffers, or one was met.
    compressed: bool,
    buffers: Vec<Buffer>,
    sequences: Vec<Sequence>,
    damage: Vec<Damage>,
    logger: Option<u16>,
    scratch: Vec<u8>,
}

impl<'a> Index<'a> {
    fn new(path: &'a Path, bytes: &'a [u8], header: &LogHeader) -> Self {
        Index {
            path,
            bytes,
            session_size: header.buffer_size as usize,
            compressed: header.is_compressed(),
            buffers: Vec::new(),
            sequences: Vec::new(),
            damage: Vec::new(),
            logger: None,
            scratch: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut offset = 0;
        while offset < self.bytes.len() {
            let Some(header) = self.header_at(offset) else {
                // Space that a session reserved and never used is zero to the end of the file.
                if self.bytes.get(offset..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0)) {
                    return;
                }
                offset = self.resynchronise(offset);
                continue;
            };
            let size = self.trusted_size(offset, &header);
            self.add(offset, size, &header);
            offset += size;
        }
    }

    /// The header at `offset` if it makes sense where it stands.
    ///
    /// The logger's number is that of the buffer before. In merged files the first buffer has one of its own, so
    /// another number is believed where the next buffer has it too.
    fn header_at(&self, offset: usize) -> Option<BufferHeader> {
        let header = self.plausible_at(offset)?;
        let known = self.logger.is_none_or(|logger| logger == header.logger);
        let next_has_it = || {
            let next = offset + header.size as usize;
            next == self.bytes.len()
                || self.plausible_at(next).is_some_and(|next| next.logger == header.logger)
        };
        (known || next_has_it()).then_some(header)
    }

    fn plausible_at(&self, offset: usize) -> Option<BufferHeader> {
        BufferHeader::read(self.bytes.get(offset..)?).filter(BufferHeader::plausible)
    }

    /// The header's size, which is believed where it leads to a buffer or to the end of the file: buffers may be larger
    /// than the session's size, too. Else a better one: the session's where that leads to a row of buffers, else up to
    /// the next buffer inside.
    fn trusted_size(&mut self, offset: usize, header: &BufferHeader) -> usize {
        let size = header.size as usize;
        let usual = Some(self.session_size).filter(|usual| !header.compressed() && *usual >= buffer::HEADER);
        if usual == Some(size) {
            return size;
        }
        let usual = usual.filter(|usual| header.saved as usize <= *usual);
        let next = offset + size;
        let leads = next == self.bytes.len() || self.header_at(next).is_some();
        let better = match usual {
            usual if leads => usual.filter(|usual| self.is_filled(offset + usual..next)),
            Some(usual) if self.is_row(offset + usual) => Some(usual),
            _ => self.find_buffer(offset + buffer::HEADER..next).map(|next| next - offset),
        };
        if better.is_some() {
            self.report(offset, DamageKind::BufferSize { size: header.size });
        }
        better.unwrap_or(size)
    }

    /// True where buffers of the session's size fill these places without a gap.
    fn is_filled(&self, places: Range<usize>) -> bool {
        let is_usual = |place| self.header_at(place).is_some_and(|header| self.is_usual(&header));
        let usual = self.session_size;
        let mut starts = places.clone().step_by(usual);
        !places.is_empty() && places.len().is_multiple_of(usual) && starts.all(is_usual)
    }

    fn is_usual(&self, header: &BufferHeader) -> bool {
        header.size as usize == self.session_size
    }

    /// True where several buffers follow each other, or as many as come before the file ends. A single header may be an
    /// accident: in files of the logger 0, up to 2.7 % of all places look like one, but only one of 104,000 places led on
    /// to two more.
    fn is_row(&self, start: usize) -> bool {
        const SEVERAL: usize = 3;
        let mut place = start;
        for _ in 0..SEVERAL {
            if place == self.bytes.len() {
                return true;
            }
            let Some(header) = self.header_at(place) else { return false };
            place += header.size as usize;
            // A file that was cut ends inside a buffer.
            if place > self.bytes.len() {
                return self.is_usual(&header);
            }
        }
        true
    }

    fn add(&mut self, offset: usize, size: usize, header: &BufferHeader) {
        let stored = size.min(self.bytes.len() - offset);
        let wanted = if header.compressed() { size } else { header.saved as usize };
        if stored < wanted {
            self.report(offset, DamageKind::Truncated { present: stored, expected: wanted });
        }
        let mut entry = Buffer {
            offset,
            stored,
            saved: header.saved as usize,
            processor: header.processor,
            compressed: header.compressed(),
            first: Ticks(0),
            sequence: header.sequence,
            marks: header.marks(),
        };
        self.logger = Some(header.logger);
        self.compressed |= header.compressed();
        let first = self.first_time(&entry);
        self.sequences.push(Sequence { number: header.sequence, processor: header.processor, first });
        match first {
            Some(first) => {
                entry.first = first;
                self.buffers.push(entry);
            }
            // An empty buffer is normal; one that says it holds records and starts with none is not.
            None if entry.saved > buffer::HEADER && stored > buffer::HEADER && !self.is_fill(&entry) => {
                self.report(offset, DamageKind::NoRecord);
            }
            None => {}
        }
    }

    /// The first record's time. Of a compressed buffer only the first bytes are decompressed.
    fn first_time(&mut self, buffer: &Buffer) -> Option<Ticks> {
        let (start, end) = (buffer.offset + buffer::HEADER, buffer.offset + buffer.stored);
        if !buffer.compressed {
            let end = end.min(buffer.offset + buffer.saved);
            return Cursor::first(self.bytes.get(start..end)?).map(|cursor| cursor.time());
        }
        self.scratch.clear();
        let length = buffer.saved - buffer::HEADER;
        let enough = length.min(record::LONGEST_HEAD);
        let _cut = xpress::decompress(self.bytes.get(start..end)?, enough, &mut self.scratch);
        if self.scratch.is_empty() {
            return None;
        }
        self.scratch.resize(record::LONGEST_HEAD, 0);
        record::head_within(&self.scratch, length).map(|head| head.time.unwrap_or_default())
    }

    fn is_fill(&self, buffer: &Buffer) -> bool {
        let end = buffer.offset + buffer.stored.min(buffer.saved);
        let records = self.bytes.get(buffer.offset + buffer::HEADER..end).unwrap_or_default();
        !buffer.compressed && buffer::ends_well(records, 0)
    }

    /// Finds the next believable buffer behind `offset`, and reports what lies between.
    fn resynchronise(&mut self, offset: usize) -> usize {
        let next = self.find_buffer(offset + 1..self.bytes.len()).unwrap_or(self.bytes.len());
        self.report(offset, DamageKind::NotABuffer { skipped: next - offset });
        next
    }

    /// The first place in `places` where a buffer can be believed to start.
    fn find_buffer(&self, places: Range<usize>) -> Option<usize> {
        let mut places = places.start..places.end.min(self.bytes.len());
        if self.compressed {
            // Compressed buffers start at any byte; the checks of two headers in a row make a chance hit unlikely.
            return places.find(|next| self.chain_at(*next));
        }
        // Sizes are multiples of the smallest that Windows gives a buffer, and so are the places.
        const SMALLEST: usize = 512;
        let mut aligned = (places.start.next_multiple_of(SMALLEST)..places.end).step_by(SMALLEST);
        aligned.find(|next| {
            self.header_at(*next).is_some_and(|header| self.is_usual(&header) || self.is_row(*next))
        })
    }

    /// True where a compressed buffer starts and another one, or the end of the file, follows it.
    fn chain_at(&self, offset: usize) -> bool {
        let Some(header) = self.header_at(offset).filter(|header| header.compressed()) else { return false };
        let next = offset + header.size as usize;
        header.saved as usize <= self.session_size.max(1 << 16)
            && (next == self.bytes.len() || self.header_at(next).is_some())
    }

    fn report(&mut self, offset: usize, kind: DamageKind) {
        self.damage.push(Damage { path: self.path.to_owned(), offset: offset as u64, kind });
    }
}

/// Which numbers are missing between the smallest and the largest, and behind which buffers. The header buffer's 0
/// does not count: a circular file starts anywhere.
fn gaps(sequences: &mut Vec<Sequence>) -> (Vec<(i64, u64)>, Vec<Missing>) {
    if !sequences.is_empty() {
        sequences.remove(0);
    }
    sequences.sort_by_key(|sequence| sequence.number);
    let (mut gaps, mut missing) = (Vec::new(), Vec::new());
    // After a gap, the processors that have had a buffer since.
    let mut since: Option<FxHashSet<u16>> = None;
    let mut last: Option<i64> = None;
    for sequence in sequences.iter() {
        let step =
            last.replace(sequence.number).map_or(1, |last| i128::from(sequence.number) - i128::from(last));
        if step > 1 {
            gaps.push((sequence.number, u64::try_from(step - 1).unwrap_or(u64::MAX)));
            since = Some(FxHashSet::default());
        }
        if let (Some(since), Some(until)) = (&mut since, sequence.first)
            && since.insert(sequence.processor)
        {
            missing.push(Missing { processor: Some(sequence.processor), until });
        }
    }
    (gaps, missing)
}

/// The place of a buffer among all of its session.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    number: i64,
    processor: u16,
    /// The time of its first record, if it has one.
    first: Option<Ticks>,
}
