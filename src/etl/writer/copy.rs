//! A recording, or what is kept of it, as one file. Records go through unchanged.
//!
//! The whole of one file keeps its buffers: each becomes one of the new file, in the same order and with the same number,
//! so that records of one moment stay in their order too. Otherwise records go by time into new buffers of their
//! processors; those of one moment keep their order on each processor.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;

use rustc_hash::FxHashSet;

use super::super::buffer::LARGEST;
use super::super::digest::{
    BufferAt, Digester, InOrder, Order, Record, RecordAt, Records, cursors, end_damage, unpack,
};
use super::super::error::Damage;
use super::super::file::LogFile;
use super::super::merge::jobs;
use super::super::record;
use super::super::recording::{Reading, Recording};
use super::{Ending, Layout, Output, Writer};
use crate::event::Event;

/// How many reasons there may be to leave a record out.
pub const MOST_KINDS: usize = 16;

/// Says which records of a recording are kept.
pub trait Keep: Sync {
    /// Why a record is left out, as a number below [`MOST_KINDS`]; `None` if it is kept. Called from several threads.
    fn left_out(&self, record: &Record<'_>) -> Option<usize>;

    /// True if no record is ever left out.
    fn is_all(&self) -> bool {
        false
    }

    /// A record that stands behind the header, which is given.
    fn opening(&self, _header: &Event<'_>) -> Option<Vec<u8>> {
        None
    }

    /// True if records may be [rewritten](Keep::rewritten).
    fn rewrites(&self) -> bool {
        false
    }

    /// What is to be written in the place of a kept record: records of the same time. `None` for it as it is. Called in order
    /// of time, the header first, which stays one record.
    fn rewritten(&self, _event: &Event<'_>, _record: &[u8]) -> Option<Vec<Vec<u8>>> {
        None
    }
}

/// Keeps every record.
#[derive(Clone, Copy, Debug)]
pub struct KeepAll;

impl Keep for KeepAll {
    fn left_out(&self, _record: &Record<'_>) -> Option<usize> {
        None
    }

    fn is_all(&self) -> bool {
        true
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of the new file.
    pub bytes: u64,
    /// Records that were read.
    pub events_in: u64,
    /// Records that were written.
    pub events_out: u64,
    /// Those that were left out, by the reasons of [`Keep`].
    pub left_out: [u64; MOST_KINDS],
    /// Header records beyond the first: a file has one.
    pub headers: u64,
}

/// Writes a recording to `out`; `compress` says whether its buffers are compressed. The damaged places of the recording
/// are left out and returned. `progress` gets the number of bytes that have been read.
///
/// # Errors
/// What `out` says.
pub fn copy(
    recording: &Recording,
    keep: &impl Keep,
    compress: bool,
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
    out: &mut (impl Output + ?Sized),
) -> io::Result<Reading<Copied>> {
    let files = recording.files();
    let header = Header::of(recording, keep, compress);
    if let ([file], true) = (files, keep.is_all()) {
        return whole(file, &header, progress, out);
    }
    let shared = RefCell::new(out);
    let start = || Sorted::begin(&shared, files, keep, &header);
    let Reading { value: (sorted, _), damage } = recording.digest(&Chosen(keep), threads, progress, start);
    Ok(Reading { value: sorted.finish(header.ending)?, damage })
}

/// The most that buffers hold of a part of a recording. The longest record has room.
const OF_A_PART: u32 = 128 * 1024;

/// What the header of the new file says.
struct Header<'a> {
    layout: Layout,
    ending: Ending,
    record: Cow<'a, [u8]>,
    /// What stands behind it.
    opening: Option<Vec<u8>>,
}

impl<'a> Header<'a> {
    /// That of the part which began first, with the losses of all parts and the last end.
    fn of(recording: &'a Recording, keep: &impl Keep, compress: bool) -> Self {
        let files = recording.files();
        let first = files.iter().min_by_key(|file| file.header().clock.base);
        let sum = |field: fn(&LogFile) -> u32| {
            files.iter().fold(0_u32, |sum, file| sum.saturating_add(field(file)))
        };
        let ending = Ending {
            end: files.iter().map(|file| file.header().end).max().unwrap_or_default(),
            events_lost: sum(|file| file.header().events_lost),
            buffers_lost: sum(|file| file.header().buffers_lost),
        };
        // No larger than buffers are, whatever a damaged header says.
        const USUAL: u32 = 1 << 20;
        let size = |file: &LogFile| {
            let largest = file.buffers.iter().map(|buffer| buffer.stored.max(buffer.saved)).max();
            let largest = u32::try_from(largest.unwrap_or_default()).unwrap_or(LARGEST);
            file.header().buffer_size.min(largest.max(USUAL))
        };
        let largest = files.iter().map(size).max().unwrap_or_default();
        // Of a part of a recording, most processors have less than their buffers hold.
        let most = if keep.is_all() { LARGEST } else { OF_A_PART };
        let buffer_size = largest.clamp(1024, most);
        let layout = Layout {
            buffer_size: buffer_size.next_multiple_of(1024),
            compress,
            logger: first.map_or(0, |file| file.logger),
            clock: recording.clock(),
        };
        let record = first.map_or(&[][..], LogFile::header_record);
        let event = record::decode(record, layout.clock.base, 0);
        let rewritten = keep.rewrites().then(|| keep.rewritten(&event, record)).flatten();
        let rewritten = rewritten.and_then(|records| records.into_iter().next());
        let record = rewritten.map_or(Cow::Borrowed(record), Cow::Owned);
        Header { layout, ending, record, opening: keep.opening(&event) }
    }
}

/// Writes the whole of a file, buffer by buffer.
fn whole(
    file: &LogFile,
    header: &Header<'_>,
    progress: &mut dyn FnMut(u64),
    out: &mut (impl Output + ?Sized),
) -> io::Result<Reading<Copied>> {
    let (jobs, mut damage) = jobs(std::slice::from_ref(file), Order::Trusted);
    let allowed: FxHashSet<u32> = jobs.iter().map(|job| job.buffer).collect();
    let mut copied = Copied { events_in: 1, events_out: 1, ..Copied::default() };
    let mut spare = Vec::new();
    // The header buffer, whose first record is replaced.
    let first = file.buffers.first().filter(|entry| entry.offset == 0 && !entry.compressed);
    let others: Vec<&[u8]> = first.map_or(Vec::new(), |entry| {
        let bytes = file.stored_records(entry);
        cursors(bytes).skip(1).map(|cursor| cursor.bytes(bytes)).collect()
    });
    copied.events_in += others.len() as u64;
    let mut writer = Writer::new(out, header.layout, &header.record, &others)?;
    let mut read = 0;
    for (index, entry) in (0..).zip(&file.buffers).filter(|(index, _)| allowed.contains(index)) {
        let records = unpack(file, entry, std::mem::take(&mut spare), &mut damage);
        let bytes = records.bytes();
        let mut end = 0;
        let all = cursors(bytes).inspect(|cursor| end = cursor.end());
        if index == 0 && first.is_some() {
            all.for_each(drop);
        } else {
            let empty = file.empty.partition_point(|number| *number < entry.sequence) as i64;
            writer.number(entry.sequence.saturating_sub(empty));
            for cursor in all {
                writer.record(entry.processor, cursor.time(), cursor.bytes(bytes))?;
                copied.events_in += 1;
            }
            writer.flush_as(entry.processor, entry.marks)?;
        }
        damage.extend(end_damage(file, entry, bytes, end));
        read += entry.stored as u64;
        progress(read);
        if let Records::Unpacked(bytes) = records {
            spare = bytes;
        }
    }
    copied.bytes = writer.finish(header.ending)?;
    copied.events_out = copied.events_in;
    damage.extend(file.damage.iter().cloned());
    damage.extend(file.shrunk());
    damage.sort_by_key(|damage: &Damage| damage.offset);
    Ok(Reading { value: copied, damage })
}

/// Chooses records, on any thread.
struct Chosen<'k, K>(&'k K);

/// What is counted of a buffer.
#[derive(Default)]
struct Counts {
    records: u64,
    headers: u64,
    left_out: [u64; MOST_KINDS],
}

impl<K: Keep> Digester for Chosen<'_, K> {
    type Worker = ();
    type Digest = Counts;
    type Item = ();

    fn worker(&self, _thread: usize) {}

    fn record(&self, (): &mut (), counts: &mut Counts, record: &Record<'_>) -> Option<()> {
        counts.records += 1;
        if record.hook().is_some_and(|hook| (hook.group, hook.opcode) == (0, 0)) {
            counts.headers += 1;
            return None;
        }
        let Some(kind) = self.0.left_out(record) else { return Some(()) };
        if let Some(count) = counts.left_out.get_mut(kind) {
            *count += 1;
        }
        None
    }
}

/// The same output for each attempt: reading may start again, and the file with it.
struct Shared<'s, W>(&'s RefCell<W>);

impl<W: Output> Write for Shared<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl<W: Output> Seek for Shared<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

impl<W: Output> Output for Shared<'_, W> {
    fn clear(&mut self) -> io::Result<()> {
        self.0.borrow_mut().clear()
    }
}

/// Writes records in order of time.
struct Sorted<'a, K, W: Output> {
    files: &'a [LogFile],
    keep: &'a K,
    /// What went wrong ends the writing; reading goes on to no effect.
    writer: io::Result<Writer<Shared<'a, W>>>,
    copied: Copied,
    /// For each file, how many of its gaps have been passed.
    passed: Vec<usize>,
}

impl<'a, K: Keep, W: Output> Sorted<'a, K, W> {
    fn begin(out: &'a RefCell<W>, files: &'a [LogFile], keep: &'a K, header: &Header<'_>) -> Self {
        let opening: Vec<&[u8]> = header.opening.as_deref().into_iter().collect();
        let writer = Writer::new(Shared(out), header.layout, &header.record, &opening);
        let copied = Copied { events_out: opening.len() as u64, ..Copied::default() };
        Sorted { files, keep, writer, copied, passed: vec![0; files.len()] }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Writer<Shared<'a, W>>) -> io::Result<()>) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.writer = Err(error);
        }
    }

    fn finish(self, ending: Ending) -> io::Result<Copied> {
        let mut copied = self.copied;
        copied.bytes = self.writer?.finish(ending)?;
        copied.events_out += 1;
        copied.headers = copied.headers.saturating_sub(1);
        Ok(copied)
    }
}

impl<K: Keep, W: Output> InOrder<Chosen<'_, K>> for Sorted<'_, K, W> {
    fn buffer(&mut self, buffer: &BufferAt, counts: &mut Counts) {
        let Counts { records, headers, left_out } = std::mem::take(counts);
        self.copied.events_in += records;
        self.copied.headers += headers;
        self.copied.left_out.iter_mut().zip(left_out).for_each(|(sum, more)| *sum += more);
        let (file, index) = (buffer.buffer.0 as usize, buffer.buffer.1 as usize);
        let (Some(log), Some(passed)) = (self.files.get(file), self.passed.get_mut(file)) else { return };
        let Some(entry) = log.buffers.get(index) else { return };
        // Buffers that are missing before this one.
        let until = log.gaps.partition_point(|(number, _)| *number <= entry.sequence);
        let gaps = log.gaps.get(*passed..until).unwrap_or_default();
        let missing = gaps.iter().fold(0_u64, |sum, (_, missing)| sum.saturating_add(*missing));
        *passed = until.max(*passed);
        if missing > 0 {
            self.attempt(|writer| writer.skip(missing));
        }
    }

    #[inline]
    fn item(&mut self, (): (), record: &RecordAt<'_>) {
        let (processor, time, bytes) = (record.processor, record.place.time, record.bytes());
        let rewritten = self.keep.rewrites().then(|| self.keep.rewritten(&record.event(), bytes)).flatten();
        let Some(records) = rewritten else {
            self.copied.events_out += 1;
            return self.attempt(|writer| writer.record(processor, time, bytes));
        };
        for bytes in records {
            self.copied.events_out += 1;
            self.attempt(|writer| writer.record(processor, time, &bytes));
        }
    }
}
