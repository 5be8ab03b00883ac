//! A recording: the files that belong together, read as one trace.

use std::cell::RefCell;
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::path::Path;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::clock::Clock;
use crate::event::Event;
use crate::mmap::Mapped;
use crate::origin::{Losses, Machine, Origin};

use super::archive;
use super::digest::{BufferAt, Digester, InOrder, Order, Record, RecordAt};
use super::error::{Damage, EtlError};
use super::file::{Bytes, LogFile};
use super::header::LogHeader;
use super::merge::{Disorder, merge};

/// One recording in one or more files (kernel, user and rundown parts).
#[derive(Debug)]
pub struct Recording {
    files: Vec<LogFile>,
    clock: Clock,
}

/// What reading a recording gave.
#[derive(Debug)]
pub struct Reading<T> {
    /// What the caller made of its events.
    pub value: T,
    /// What could not be read, in the order of files and offsets.
    pub damage: Vec<Damage>,
}

/// How far system clocks may be set during a recording and its parts still be one.
const CLOCK_TOLERANCE_SECONDS: f64 = 300.0;

impl Recording {
    /// Opens .etl files, or zip archives that hold some, as parts of one recording.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Recording, EtlError> {
        let mut files = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let map = Mapped::open(path).map_err(|cause| EtlError::Open { path: path.to_owned(), cause })?;
            if archive::is_zip(&map) {
                files.extend(archive::open(path, &map)?);
            } else {
                files.push(LogFile::new(path.to_owned(), Bytes::Mapped(map))?);
            }
        }
        Recording::of(files)
    }

    /// Reads an .etl file that is in memory.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Recording, EtlError> {
        Recording::of(vec![LogFile::new(name.into(), Bytes::Owned(bytes))?])
    }

    fn of(files: Vec<LogFile>) -> Result<Recording, EtlError> {
        let [first, others @ ..] = files.as_slice() else { return Err(EtlError::Nothing) };
        if let Some((first, second)) = twice(&files) {
            let (first, second) = (first.path().to_owned(), second.path().to_owned());
            return Err(EtlError::Twice { first, second });
        }
        let mut clock = first.header().clock;
        for file in others {
            if let Some(reason) = differs(first.header(), file.header()) {
                let (first, second) = (first.path().to_owned(), file.path().to_owned());
                return Err(EtlError::NotOneRecording { first, second, reason });
            }
            if file.header().clock.base < clock.base {
                clock = file.header().clock;
            }
        }
        Ok(Recording { files, clock })
    }

    /// The same without its events: the files are no longer held, so that they can be replaced or deleted on Windows too.
    pub fn closed(mut self) -> Recording {
        self.files.iter_mut().for_each(LogFile::close);
        self
    }

    /// Its files; for an archive its members.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// The clock that all files share, based at the earliest of their first records.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The header of the first file.
    pub fn header(&self) -> &LogHeader {
        // `of` refuses a recording without files.
        #[expect(clippy::indexing_slicing)]
        self.files[0].header()
    }

    /// What its headers say of where it comes from.
    ///
    /// Where the kernel begins on a 32-bit system only a record at the end says:
    /// [`analysis::origin`](crate::analysis::origin) looks for it.
    pub fn origin(&self) -> Origin {
        let header = self.header();
        let machine = Machine {
            processors: header.processors,
            os_build: header.os_build,
            os_name: String::new(),
            pointer: header.pointer,
            architecture: None,
            name: String::new(),
        };
        let mut losses = Losses::default();
        for file in &self.files {
            losses.events += u64::from(file.header().events_lost);
            losses.buffers += u64::from(file.header().buffers_lost);
            losses.sequence_gaps = losses.sequence_gaps.saturating_add(file.sequence_gaps());
        }
        let missing = self.files.iter().flat_map(|file| file.missing().iter().copied()).collect();
        Origin { platform: header.platform, losses, missing, ..Origin::new(self.clock, machine) }
    }

    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.files.iter().map(LogFile::size).sum()
    }

    /// Folds all events in order of time into a value.
    ///
    /// `start` makes the empty value and `step` takes one event into it. Where the records of a buffer turn out to be
    /// out of order, reading starts again with a value made anew. `progress` gets the number of bytes that have been read.
    /// So many `threads` walk and decompress buffers; `step` is called on this one.
    pub fn fold<T>(
        &self,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64),
        start: impl Fn() -> T,
        step: impl FnMut(&mut T, &Event<'_>),
    ) -> Reading<T> {
        let step = RefCell::new(step);
        let start = || Every { value: start(), step: &step };
        let Reading { value: (every, _), damage } = self.digest(&EveryRecord, threads, progress, start);
        Reading { value: every.value, damage }
    }

    /// Digests every buffer, and gives what is left in order of time to a value that `start` makes; it is made anew
    /// where reading has to start again, as in [`Recording::fold`]. Also returns what each of the `threads` kept.
    ///
    /// The value is the same for any number of threads, apart from where threads keep what it points to.
    pub fn digest<D: Digester, T: InOrder<D>>(
        &self,
        digester: &D,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64),
        start: impl Fn() -> T,
    ) -> Reading<(T, Vec<D::Worker>)> {
        let mut attempt = |order| {
            let mut value = start();
            let (workers, damage) = merge(&self.files, digester, order, threads, progress, &mut value)?;
            Ok::<_, Disorder>(((value, workers), damage))
        };
        let (value, met) = match attempt(Order::Trusted).or_else(|Disorder| attempt(Order::Checked)) {
            Ok(read) => read,
            Err(Disorder) => {
                debug_assert!(false, "checked order cannot break");
                // Should it ever, nothing is given rather than something wrong, and the damage says so.
                ((start(), Vec::new()), self.files.iter().map(LogFile::disordered).collect())
            }
        };
        let mut damage: Vec<Damage> =
            self.files.iter().flat_map(|file| file.damage.iter().cloned()).chain(met).collect();
        damage.extend(self.files.iter().filter_map(LogFile::shrunk));
        damage.sort_by(|a, b| (&a.path, a.offset).cmp(&(&b.path, b.offset)));
        Reading { value, damage }
    }
}

/// Leaves every record to be read in order.
struct EveryRecord;

impl Digester for EveryRecord {
    type Worker = ();
    type Digest = ();
    type Item = ();

    fn worker(&self, _thread: usize) {}

    #[inline]
    fn record(&self, (): &mut (), (): &mut (), _record: &Record<'_>) -> Option<()> {
        Some(())
    }
}

/// Takes every event.
struct Every<'s, T, S> {
    value: T,
    step: &'s RefCell<S>,
}

impl<T, S: FnMut(&mut T, &Event<'_>)> InOrder<EveryRecord> for Every<'_, T, S> {
    fn buffer(&mut self, _buffer: &BufferAt, (): &mut ()) {}

    #[inline]
    fn item(&mut self, (): (), record: &RecordAt<'_>) {
        (self.step.borrow_mut())(&mut self.value, &record.event());
    }
}

/// Two files with the same bytes, if there are any. Only files of one size are looked into.
fn twice(files: &[LogFile]) -> Option<(&LogFile, &LogFile)> {
    let mut sizes: FxHashMap<usize, u32> = FxHashMap::default();
    files.iter().for_each(|file| *sizes.entry(file.bytes.len()).or_default() += 1);
    let mut seen: FxHashMap<u64, &LogFile> = FxHashMap::default();
    let alike = files.iter().filter(|file| sizes.get(&file.bytes.len()).is_some_and(|files| *files > 1));
    alike.into_iter().find_map(|file| {
        let bytes: &[u8] = &file.bytes;
        let first = seen.insert(FxBuildHasher.hash_one(bytes), file)?;
        (first.bytes[..] == *bytes).then_some((first, file))
    })
}

/// How two files differ, if they cannot be parts of one recording.
fn differs(a: &LogHeader, b: &LogHeader) -> Option<String> {
    if a.clock.kind != b.clock.kind {
        return Some("they use different clocks".to_owned());
    }
    if a.clock.frequency != b.clock.frequency {
        return Some("their clocks run at different frequencies".to_owned());
    }
    // What a writer does not say it leaves at 0.
    let differ = |a: u32, b: u32| a != b && a != 0 && b != 0;
    if differ(a.processors, b.processors) {
        return Some(format!("their machines have {} and {} processors", a.processors, b.processors));
    }
    if differ(a.os_build, b.os_build) {
        return Some(format!("their machines run Windows builds {} and {}", a.os_build, b.os_build));
    }
    let [from, to] = [a, b].map(|header| i128::from(header.platform.boot));
    let booted = if from != 0 && to != 0 { from - to } else { 0 };
    let skew = i128::from(a.clock.filetime(b.clock.base)) - i128::from(b.clock.base_utc);
    let apart = |filetime: i128| (filetime as f64 / 1e7).abs() > CLOCK_TOLERANCE_SECONDS;
    (apart(booted) || apart(skew)).then(|| "they were recorded after different boots".to_owned())
}
