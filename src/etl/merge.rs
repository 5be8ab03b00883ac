//! What is left of all buffers, in one order of time.
//!
//! One processor's buffers follow each other in time, and so do the records inside a buffer; buffers of different
//! processors overlap. So a heap holds each buffer that overlaps the present moment, and a buffer is opened only when
//! the present reaches its first record: as many buffers are open as there are processors. Because buffers are taken by
//! the time of their first record and not by their place, files whose oldest buffer is anywhere (circular) and sessions
//! without buffers per processor need nothing more.
//!
//! Equal times come in the order of files, buffers and records: that keeps image ids ahead of their image, and a
//! kernel fragment of a stack ahead of its user fragment.
//!
//! Where records *inside* a buffer are out of order, the first attempt notices and gives up; a second one looks
//! through every buffer for its earliest record, and sorts those that need it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;

use crate::event::Ticks;

use super::ahead::{Ahead, Reader};
use super::buffer;
use super::digest::{
    BufferAt, Digested, Digester, InOrder, Item, Order, Place, RecordAt, Records, Spare, cursors, unpack,
};
use super::error::{Damage, DamageKind};
use super::file::{Buffer, LogFile};

/// An event turned up that is older than one already given out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disorder;

/// A buffer to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    /// The time of its earliest record.
    pub(super) time: Ticks,
    pub(super) file: u32,
    pub(super) buffer: u32,
    /// Bytes of its records, decompressed.
    pub(super) size: usize,
}

impl Job {
    /// Its file, and what that says of it.
    pub(super) fn of<'a>(&self, files: &'a [LogFile]) -> Option<(&'a LogFile, &'a Buffer)> {
        let file = files.get(self.file as usize)?;
        Some((file, file.buffers.get(self.buffer as usize)?))
    }
}

/// Bytes that may still be decompressed: files of `size` bytes together may hold five times the best ratio seen in a
/// real file (6.5), and one buffer of the largest size for the smallest of them.
struct Budget(usize);

impl Budget {
    fn of(size: usize) -> Budget {
        Budget(size.saturating_mul(32).saturating_add(buffer::LARGEST as usize))
    }

    /// True if there is enough for this buffer, too.
    fn allows(&mut self, entry: &Buffer) -> bool {
        let length = if entry.compressed { entry.saved - buffer::HEADER } else { 0 };
        let left = self.0.checked_sub(length);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// The buffers in the order of their earliest records; and, as damage, those that would decompress to too much.
pub(super) fn jobs(files: &[LogFile], order: Order) -> (Vec<Job>, Vec<Damage>) {
    let size: usize = files.iter().map(|file| file.bytes.len()).sum();
    let mut jobs = Vec::with_capacity(files.iter().map(|file| file.buffers.len()).sum());
    for (file_index, file) in (0..).zip(files) {
        for (index, entry) in (0..).zip(&file.buffers) {
            let size = if entry.compressed { entry.saved - buffer::HEADER } else { entry.stored };
            jobs.push(Job { time: entry.first, file: file_index, buffer: index, size });
        }
    }
    jobs.sort_unstable();
    let (mut budget, mut damage, mut spare) = (Budget::of(size), Vec::new(), Vec::new());
    jobs.retain_mut(|job| {
        let Some((file, entry)) = job.of(files) else { return false };
        let allowed = budget.allows(entry);
        if !allowed {
            damage.push(too_large(file, entry));
        } else if order == Order::Checked {
            job.time = earliest(file, entry, &mut spare);
        }
        allowed
    });
    jobs.sort_unstable();
    (jobs, damage)
}

fn earliest(file: &LogFile, entry: &Buffer, spare: &mut Vec<u8>) -> Ticks {
    // Its damage is reported when it is read.
    let records = unpack(file, entry, std::mem::take(spare), &mut Vec::new());
    let earliest = cursors(records.bytes()).map(|cursor| cursor.time()).min();
    if let Records::Unpacked(bytes) = records {
        *spare = bytes;
    }
    earliest.unwrap_or(entry.first)
}

fn too_large(file: &LogFile, entry: &Buffer) -> Damage {
    Damage { path: file.path().to_owned(), offset: entry.offset as u64, kind: DamageKind::TooLarge }
}

/// A buffer being read.
struct Open<'a, D: Digester> {
    digested: Digested<'a, D>,
    buffer: (u32, u32),
    processor: u16,
    /// The next item.
    at: usize,
    /// The memory that it takes.
    bytes: usize,
}

impl<D: Digester> Open<'_, D> {
    /// The place of its next item.
    #[inline]
    fn place(&self) -> Option<Place> {
        let item = self.digested.items.get(self.at)?;
        Some(Place { time: item.time, buffer: self.buffer, offset: item.offset })
    }

    /// Gives its items that come before the next of another buffer, and before a buffer that waits must be opened.
    /// Returns the place of the one behind them.
    #[inline]
    fn give(
        &mut self,
        other: Option<Place>,
        waiting: Option<Ticks>,
        take: &mut impl InOrder<D>,
    ) -> Option<Place> {
        let records = self.digested.records.bytes();
        for item in self.digested.items.get(self.at..)? {
            let place = Place { time: item.time, buffer: self.buffer, offset: item.offset };
            if other.is_some_and(|other| other < place) || waiting.is_some_and(|time| time <= place.time) {
                return Some(place);
            }
            take.item(item.item, &RecordAt { place, processor: self.processor, records });
            self.at += 1;
        }
        None
    }
}

/// Gives every digest and every item of `files` to `take` in order. Returns what each thread kept, and the damage that was
/// met on the way.
pub(super) fn merge<D: Digester>(
    files: &[LogFile],
    digester: &D,
    order: Order,
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
    take: &mut impl InOrder<D>,
) -> Result<(Vec<D::Worker>, Vec<Damage>), Disorder> {
    let (jobs, damage) = jobs(files, order);
    let size: usize = files.iter().map(|file| file.bytes.len()).sum();
    let merge = Merge {
        files,
        waiting: jobs.iter().copied().peekable(),
        open: Vec::new(),
        free: Vec::new(),
        heap: BinaryHeap::new(),
        alive: 0,
        // Honest traces keep a buffer for each processor alive. A crafted one could make every buffer overlap.
        limit: size.saturating_mul(8).saturating_add(64 << 20),
        damage,
        read: 0,
    };
    let (damage, workers) =
        Ahead::run(digester, files, &jobs, order, threads, |reader| merge.run(reader, progress, take));
    Ok((workers, damage?))
}

struct Merge<'a, 'j, D: Digester> {
    files: &'a [LogFile],
    waiting: std::iter::Peekable<std::iter::Copied<std::slice::Iter<'j, Job>>>,
    open: Vec<Open<'a, D>>,
    /// Places in `open` of buffers that have ended.
    free: Vec<usize>,
    /// The open buffers, by the places of their next items.
    heap: BinaryHeap<Reverse<(Place, usize)>>,
    /// Bytes of decompressed records and of items that are alive, and how many may be.
    alive: usize,
    limit: usize,
    damage: Vec<Damage>,
    read: u64,
}

impl<'a, D: Digester> Merge<'a, '_, D> {
    fn run(
        mut self,
        reader: &mut Reader<'_, 'a, '_, D>,
        progress: &mut dyn FnMut(u64),
        take: &mut impl InOrder<D>,
    ) -> Result<Vec<Damage>, Disorder> {
        loop {
            while let Some(job) = self
                .waiting
                .next_if(|job| self.heap.peek().is_none_or(|Reverse((first, _))| job.time <= first.time))
            {
                let Some(digested) = reader.next() else { return Ok(self.damage) };
                self.begin(job, digested, reader, progress, take)?;
            }
            let Some(Reverse((_, mut slot))) = self.heap.pop() else {
                if self.waiting.peek().is_none() {
                    return Ok(self.damage);
                }
                continue;
            };
            let waiting = self.waiting.peek().map(|job| job.time);
            // Until a buffer must be opened, or this one ends.
            let next = loop {
                let Some(open) = self.open.get_mut(slot) else { break None };
                let other = self.heap.peek().map(|Reverse((place, _))| *place);
                let next = open.give(other, waiting, take);
                match next {
                    // Another open buffer is next: it and this one change places.
                    Some(place) if waiting.is_none_or(|time| place.time < time) => {
                        let Some(mut other) = self.heap.peek_mut() else { continue };
                        let Reverse((_, next)) = std::mem::replace(&mut *other, Reverse((place, slot)));
                        slot = next;
                    }
                    next => break next,
                }
            };
            match next {
                Some(place) => self.heap.push(Reverse((place, slot))),
                None => self.close(slot, reader),
            }
        }
    }

    /// Opens a buffer.
    fn begin(
        &mut self,
        job: Job,
        mut digested: Digested<'a, D>,
        reader: &Reader<'_, 'a, '_, D>,
        progress: &mut dyn FnMut(u64),
        take: &mut impl InOrder<D>,
    ) -> Result<(), Disorder> {
        let Some((file, entry)) = job.of(self.files) else { return Ok(()) };
        self.read += entry.stored as u64;
        progress(self.read);
        let items = digested.items.len() * size_of::<Item<D::Item>>();
        let bytes = if entry.compressed { job.size + items } else { items };
        if self.alive + bytes > self.limit {
            self.damage.push(too_large(file, entry));
            return Ok(());
        }
        self.damage.append(&mut digested.damage);
        if !digested.ordered || digested.span.is_some_and(|(first, _)| first < job.time) {
            return Err(Disorder);
        }
        let (buffer, processor) = ((job.file, job.buffer), entry.processor);
        if let Some(span) = digested.span {
            take.buffer(&BufferAt { buffer, processor, time: job.time, span }, &mut digested.digest);
        }
        let open = Open { digested, buffer, processor, at: 0, bytes };
        self.alive += bytes;
        let place = open.place();
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(free) = self.open.get_mut(slot) {
                    *free = open;
                }
                slot
            }
            None => {
                self.open.push(open);
                self.open.len() - 1
            }
        };
        match place {
            Some(place) => self.heap.push(Reverse((place, slot))),
            None => self.close(slot, reader),
        }
        Ok(())
    }

    /// Gives back the memory of a buffer that has ended.
    fn close(&mut self, slot: usize, reader: &Reader<'_, 'a, '_, D>) {
        let Some(open) = self.open.get_mut(slot) else { return };
        self.alive -= std::mem::take(&mut open.bytes);
        let digested = &mut open.digested;
        let bytes = match std::mem::replace(&mut digested.records, Records::Borrowed(&[])) {
            Records::Unpacked(bytes) => bytes,
            Records::Borrowed(_) => Vec::new(),
        };
        let (items, digest) = (std::mem::take(&mut digested.items), std::mem::take(&mut digested.digest));
        self.free.push(slot);
        reader.recycle(Spare { bytes, items, digest });
    }
}
