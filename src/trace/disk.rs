//! What disks did, for whom and of which file, and the pages that threads waited for: disk I/O, hard faults, and the names
//! of files.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::event::{Event, NO_ID};
use crate::events::kernel::{DiskIo, DiskIoInit, DiskIoKind, FaultRead, FileName, Naming, PageFault};
use crate::interned::Interned;

use super::kept::Stacked;
use super::paths::Paths;
use super::processes::{ProcessId, Processes, Threads};
use super::sample::{Runner, RunnerId};
use super::texts::{TextId, Texts};

/// What disks did, where somebody asked for it ([`Keep::disk`](super::Keep::disk)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disk {
    /// What disks have done, in the order in which it was done.
    pub operations: Vec<DiskOperation>,
    /// Pages that were read from files because a thread touched them, in the order in which that was done.
    pub hard_faults: Vec<HardFault>,
    /// The paths of files, as people know them.
    pub files: Vec<String>,
}

/// A disk read, wrote, or flushed its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskOperation {
    /// Which of them.
    pub kind: DiskIoKind,
    /// The number of the disk.
    pub disk: u32,
    /// The process of the thread that asked.
    pub process: ProcessId,
    /// The thread that asked; [`NO_ID`] where no event says so.
    pub tid: u32,
    /// When it was asked for.
    pub start: Ticks,
    /// When it was done.
    pub end: Ticks,
    /// How long the disk worked on it, in ticks, if it does one thing after the other: since the end of the operation before
    /// it, or since its own start if that is later.
    pub service: i64,
    /// Bytes that were transferred.
    pub bytes: u32,
    /// Where they are on the disk, in bytes.
    pub offset: u64,
    /// The file: an index into [`Disk::files`]. `None` of a flush, and where no event names it.
    pub file: Option<u32>,
    /// The request: an index into [`Kept::disk_requests`](super::Kept::disk_requests). `None` where it was not recorded.
    pub request: Option<u32>,
}

impl DiskOperation {
    /// How long it took, in ticks.
    pub fn ticks(&self) -> i64 {
        self.end.0.saturating_sub(self.start.0)
    }
}

/// A thread touched a page, which had to be read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HardFault {
    /// The process of the thread.
    pub process: ProcessId,
    /// The thread.
    pub tid: u32,
    /// When it touched the page.
    pub start: Ticks,
    /// When the page was there.
    pub end: Ticks,
    /// Bytes that were read.
    pub bytes: u32,
    /// Where they are in the file, in bytes.
    pub offset: u64,
    /// The address that was touched.
    pub address: u64,
    /// The file: an index into [`Disk::files`]. `None` where no event names it.
    pub file: Option<u32>,
}

impl HardFault {
    /// How long it took, in ticks.
    pub fn ticks(&self) -> i64 {
        self.end.0.saturating_sub(self.start.0)
    }
}

impl Disk {
    /// True without any operation and any hard fault.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.hard_faults.is_empty()
    }

    /// The path of a file.
    pub fn path(&self, file: Option<u32>) -> Option<&str> {
        self.files.get(file? as usize).map(String::as_str)
    }
}

/// What is there instead of the path of a file that the kernel does not know either.
const UNKNOWN_FILE: &str = r"\FI_UNKNOWN";

/// Collects them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    operations: Vec<Done<DiskIo>>,
    faults: Vec<Done<(PageFault, FaultRead)>>,
    names: Names,
}

/// What was done, and whose event says so.
#[derive(Clone, Copy, Debug)]
struct Done<T> {
    time: Ticks,
    what: T,
    /// Of the event's header.
    pid: u32,
    tid: u32,
}

/// Knows whose disk I/O and hard faults are.
pub(super) struct Owners<'a> {
    pub(super) threads: &'a Threads,
    pub(super) processes: &'a mut Processes,
    pub(super) runners: &'a Interned<Runner>,
}

impl Owners<'_> {
    /// The process of a thread: the one that has the thread, else the one with this id.
    fn process(&mut self, tid: u32, pid: u32, time: Ticks) -> ProcessId {
        let of_thread = || self.threads.pid(self.threads.at(tid, time)?);
        let pid = if tid == 0 { 0 } else { of_thread().unwrap_or(pid) };
        self.processes.at(pid, time)
    }

    /// Process and thread of an event.
    fn of(&self, runner: RunnerId) -> (ProcessId, u32) {
        let runner = self.runners.get(runner.0);
        runner.map_or((ProcessId(u32::MAX), NO_ID), |runner| (runner.process, runner.tid))
    }
}

impl Collector {
    pub(super) fn operation(&mut self, what: DiskIo, event: &Event<'_>) {
        self.operations.push(Done { time: event.time, what, pid: event.pid, tid: event.tid });
    }

    pub(super) fn fault(&mut self, fault: PageFault, event: &Event<'_>) {
        if let Some(read) = fault.read {
            self.faults.push(Done { time: event.time, what: (fault, read), pid: event.pid, tid: event.tid });
        }
    }

    pub(super) fn name(&mut self, name: &FileName<'_>, time: Ticks) {
        if !name.path.is_empty() && !name.path.reads(UNKNOWN_FILE) {
            let path = self.names.texts.intern(name.path);
            self.names.of_key.entry(name.key).or_default().push((time, name.naming, path));
        }
    }

    pub(super) fn finish(
        self,
        requests: &[Stacked<DiskIoInit>],
        paths: &Paths,
        owners: &mut Owners<'_>,
    ) -> Disk {
        let mut disk = Disk::default();
        let mut files = Interned::default();
        let names = self.names;
        let mut pending = Pending { requests, next: 0, open: FxHashMap::default() };
        let mut last: FxHashMap<u32, Ticks> = FxHashMap::default();
        for Done { time: end, what: io, pid, tid } in self.operations {
            let start = Ticks(end.0.saturating_sub(i64::try_from(io.elapsed).unwrap_or(i64::MAX)));
            let before = last.insert(io.disk, end).unwrap_or(start);
            let request = pending.take(&io, end);
            // The payload knows best; the header of an older event has the thread that asked, too.
            let (process, tid) =
                match ([io.tid, Some(tid)].into_iter().flatten().find(|tid| *tid != NO_ID), request) {
                    (Some(by), _) => {
                        let of_header = if by == tid { pid } else { NO_ID };
                        (owners.process(by, of_header, start), by)
                    }
                    (None, Some((_, asked))) => owners.of(asked.runner),
                    (None, None) => (owners.process(NO_ID, pid, start), NO_ID),
                };
            disk.operations.push(DiskOperation {
                kind: io.kind,
                disk: io.disk,
                process,
                tid,
                start,
                end,
                service: end.0.saturating_sub(start.max(before).0).max(0),
                bytes: io.bytes,
                offset: io.offset,
                file: io.file.and_then(|key| names.at(key, start, end)).map(|path| files.number(path)),
                request: request.map(|(index, _)| index),
            });
        }
        for Done { time: end, what: (fault, read), pid, tid } in self.faults {
            let start = read.start.min(end);
            let tid = fault.tid.unwrap_or(tid);
            disk.hard_faults.push(HardFault {
                process: owners.process(tid, pid, start),
                tid,
                start,
                end,
                bytes: fault.bytes,
                offset: read.offset,
                address: fault.address,
                file: names.at(read.file, start, end).map(|path| files.number(path)),
            });
        }
        disk.files =
            files.into_things().into_iter().map(|path| paths.to_dos(names.texts.get(path))).collect();
        disk
    }
}

/// Requests that have not been done yet.
struct Pending<'a> {
    requests: &'a [Stacked<DiskIoInit>],
    /// The first that has not been looked at.
    next: usize,
    /// The last of each address, by its index.
    open: FxHashMap<u64, u32>,
}

impl<'a> Pending<'a> {
    /// The request of an operation that is done now.
    fn take(&mut self, io: &DiskIo, now: Ticks) -> Option<(u32, &'a Stacked<DiskIoInit>)> {
        self.look(|time| time < now);
        self.open_of(io).or_else(|| {
            // Done in the tick in which it was asked for. Before, it may have been that of the next operation.
            self.look(|time| time <= now);
            self.open_of(io)
        })
    }

    fn look(&mut self, is_early: impl Fn(Ticks) -> bool) {
        while let Some(request) = self.requests.get(self.next).filter(|request| is_early(request.time)) {
            self.open.insert(request.fact.irp, self.next as u32);
            self.next += 1;
        }
    }

    fn open_of(&mut self, io: &DiskIo) -> Option<(u32, &'a Stacked<DiskIoInit>)> {
        let index = *self.open.get(&io.irp)?;
        let request = self.requests.get(index as usize).filter(|request| request.fact.kind == io.kind)?;
        self.open.remove(&io.irp);
        Some((index, request))
    }
}

/// The names of files.
#[derive(Debug, Default)]
struct Names {
    texts: Texts,
    /// What each key meant, in order of time.
    of_key: FxHashMap<u64, Vec<(Ticks, Naming, TextId)>>,
}

impl Names {
    /// The path of the file that a key meant during an operation.
    fn at(&self, key: u64, start: Ticks, end: Ticks) -> Option<TextId> {
        let known = self.of_key.get(&key)?;
        let at = |time: Ticks| {
            let behind = known.partition_point(|(since, _, _)| *since <= time);
            match behind.checked_sub(1).and_then(|last| known.get(last)) {
                Some((_, Naming::Begins | Naming::Listed, path)) => Some(*path),
                _ => match known.get(behind)? {
                    (_, Naming::Ends | Naming::Listed, path) => Some(*path),
                    (_, Naming::Begins, _) => None,
                },
            }
        };
        at(start).or_else(|| at(end))
    }
}
