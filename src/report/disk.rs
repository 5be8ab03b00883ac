//! Disk I/O and hard faults as a table: by file, process, thread, disk or kind.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::event::NO_ID;
use crate::events::kernel::DiskIoKind;
use crate::profile::Filter;
use crate::trace::{DiskOperation, HardFault, ProcessId, Trace};

use super::grid::{Csv, Grid};
use super::runtimes::{fine_ms, process};
use super::table::grid_rest;
use super::text::{bytes, cell, count, duration, json, share};
use super::thread_times::thread_text;

/// What a row is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A file.
    #[default]
    File,
    /// A process.
    Process,
    /// A thread.
    Thread,
    /// A disk.
    Disk,
    /// Reads, writes, flushes, hard faults.
    Kind,
}

/// What the rows are sorted by, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The time that the operations took, waiting for the disk included.
    #[default]
    Io,
    /// The time that the disk worked on them.
    Disk,
    /// Bytes that were read and written.
    Bytes,
    /// How many there were.
    Count,
    /// The longest.
    Longest,
    /// The time that hard faults took.
    Faults,
}

/// Disk I/O and hard faults, added up.
#[derive(Clone, Debug, Serialize)]
pub struct Disk {
    /// What a row is of.
    pub by: By,
    /// The time that is looked at, in ns since the first record.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// All of it.
    pub total: Sums,
    /// Each disk with the time that it worked, in order of their numbers.
    pub disks: Vec<Busy>,
    /// The rows, in the order of what they are sorted by.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
}

/// How long a disk worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Its number.
    pub disk: u32,
    /// The sum of [`DiskOperation::service`], in ns.
    pub busy_ns: i64,
}

/// Disk I/O and hard faults of a file, a process, ....
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The path of the file, the name of the process, `disk 0`, `read`. It comes from the recording, and may hold anything.
    pub name: String,
    /// The process, of rows by process and by thread.
    pub pid: Option<u32>,
    /// The thread, of rows by thread.
    pub tid: Option<u32>,
    /// What it comes to.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Disk I/O and hard faults together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// How often a disk read.
    pub reads: u64,
    /// How much.
    pub read_bytes: u64,
    /// How often a disk wrote.
    pub writes: u64,
    /// How much.
    pub written_bytes: u64,
    /// How often a disk flushed its cache.
    pub flushes: u64,
    /// How long disks worked on these.
    pub service_ns: i64,
    /// How long these took, each from when it was asked for. They may overlap.
    pub io_ns: i64,
    /// The longest of them.
    pub longest_ns: Option<i64>,
    /// When that began, in ns since the first record.
    pub longest_start_ns: Option<i64>,
    /// Pages that were read from files because a thread touched them. The reads of a disk are among those above.
    pub hard_faults: u64,
    /// How much that was.
    pub hard_fault_bytes: u64,
    /// How long their threads had to wait for that.
    pub hard_fault_ns: i64,
    /// The longest of them.
    pub longest_hard_fault_ns: Option<i64>,
}

/// Of operations without a file, and of files without a name.
const NO_FILE: &str = "(no file)";
const NO_NAME: &str = "(file without a name)";

/// Of hard faults, whose events do not say where the file is.
const ANY_DISK: &str = "(any disk)";

impl Disk {
    /// What ended in the time of `filter`, of its processes and of the threads that it has by id.
    pub fn new(trace: &Trace, filter: &Filter, by: By, sort: Sort) -> Disk {
        let period = filter.period(trace);
        let wanted = filter.processes(trace);
        let is_wanted = |process: ProcessId, tid: u32| {
            let is_of_thread = filter.tids.is_empty() || filter.tids.contains(&tid);
            is_of_thread && wanted.get(process.0 as usize).is_none_or(|wanted| *wanted)
        };
        let disk = &trace.disk;
        let mut total = Sums::default();
        let mut busy: BTreeMap<u32, i64> = BTreeMap::new();
        let mut rows = Rows { trace, by, rows: FxHashMap::default() };
        let operations = disk.operations.iter();
        for one in operations.filter(|one| period.contains(&one.end) && is_wanted(one.process, one.tid)) {
            let service = trace.clock.nanoseconds_in(one.service);
            let of_disk = busy.entry(one.disk).or_default();
            *of_disk = of_disk.saturating_add(service);
            total.operation(trace, one);
            let name = rows.name(one);
            rows.of(one.process, one.tid, name).sums.operation(trace, one);
        }
        let faults = disk.hard_faults.iter();
        for one in faults.filter(|one| period.contains(&one.end) && is_wanted(one.process, one.tid)) {
            total.fault(trace, one);
            let name = match by {
                By::File => disk.path(one.file).unwrap_or(NO_NAME).to_owned(),
                By::Disk => ANY_DISK.to_owned(),
                By::Kind => "hard fault".to_owned(),
                By::Process | By::Thread => String::new(),
            };
            rows.of(one.process, one.tid, name).sums.fault(trace, one);
        }
        let mut rows: Vec<Row> = rows.rows.into_values().collect();
        rows.sort_by(|a, b| b.size(sort).cmp(&a.size(sort)).then_with(|| a.place().cmp(&b.place())));
        let (first, last) = trace.span.unwrap_or((trace.clock.base, trace.clock.base));
        let ns = |time| trace.clock.nanoseconds(time);
        Disk {
            by,
            start_ns: ns(first.max(period.start)),
            end_ns: ns(last.min(period.end)),
            total,
            disks: busy.into_iter().map(|(disk, busy_ns)| Busy { disk, busy_ns }).collect(),
            rows,
            left_out: 0,
        }
    }

    /// True without any operation and any hard fault.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Disk {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }
}

impl Sums {
    /// All that a trace has.
    pub fn of(trace: &Trace) -> Sums {
        let mut sums = Sums::default();
        trace.disk.operations.iter().for_each(|one| sums.operation(trace, one));
        trace.disk.hard_faults.iter().for_each(|one| sums.fault(trace, one));
        sums
    }

    /// `23 reads of 5.4 MiB, 330 writes of 21.3 MiB, 8 flushes, 1 hard fault of 4.0 KiB`.
    pub(super) fn text(&self) -> String {
        let Sums { reads, read_bytes, writes, written_bytes, flushes, hard_faults, hard_fault_bytes, .. } =
            *self;
        let parts = [
            (reads, "read", "reads", Some(read_bytes)),
            (writes, "write", "writes", Some(written_bytes)),
            (flushes, "flush", "flushes", None),
            (hard_faults, "hard fault", "hard faults", Some(hard_fault_bytes)),
        ];
        let text = |(number, one, many, size): (u64, &str, &str, Option<u64>)| {
            let size = size.map(|size| format!(" of {}", bytes(size))).unwrap_or_default();
            format!("{} {}{size}", count(number), if number == 1 { one } else { many })
        };
        let parts: Vec<String> = parts.into_iter().filter(|(number, ..)| *number > 0).map(text).collect();
        parts.join(", ")
    }
}

/// The rows while they are added up.
struct Rows<'t> {
    trace: &'t Trace,
    by: By,
    /// By process, thread and name.
    rows: FxHashMap<(ProcessId, u32, String), Row>,
}

impl Rows<'_> {
    fn of(&mut self, of_process: ProcessId, tid: u32, name: String) -> &mut Row {
        let key = match self.by {
            By::Process => (of_process, NO_ID, name),
            By::Thread => (of_process, tid, name),
            By::File | By::Disk | By::Kind => (ProcessId(u32::MAX), NO_ID, name),
        };
        let (trace, by) = (self.trace, self.by);
        self.rows.entry(key).or_insert_with_key(|(.., name)| {
            let (pid, process) = process(trace, of_process);
            match by {
                By::Process => Row { name: process, pid: Some(pid), ..Row::default() },
                By::Thread => Row { name: process, pid: Some(pid), tid: Some(tid), ..Row::default() },
                By::File | By::Disk | By::Kind => Row { name: name.clone(), ..Row::default() },
            }
        })
    }

    /// The name of the row of an operation, where that is no process.
    fn name(&self, one: &DiskOperation) -> String {
        match self.by {
            By::File if one.kind == DiskIoKind::Flush => NO_FILE.to_owned(),
            By::File => self.trace.disk.path(one.file).unwrap_or(NO_NAME).to_owned(),
            By::Disk => format!("disk {}", one.disk),
            By::Kind => kind(one.kind).to_owned(),
            By::Process | By::Thread => String::new(),
        }
    }
}

/// A kind in words.
fn kind(kind: DiskIoKind) -> &'static str {
    match kind {
        DiskIoKind::Read => "read",
        DiskIoKind::Write => "write",
        DiskIoKind::Flush => "flush",
    }
}

impl Sums {
    fn operation(&mut self, trace: &Trace, one: &DiskOperation) {
        let size = u64::from(one.bytes);
        match one.kind {
            DiskIoKind::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + size),
            DiskIoKind::Write => {
                (self.writes, self.written_bytes) = (self.writes + 1, self.written_bytes + size);
            }
            DiskIoKind::Flush => self.flushes += 1,
        }
        let took = trace.clock.nanoseconds_in(one.ticks());
        self.service_ns = self.service_ns.saturating_add(trace.clock.nanoseconds_in(one.service));
        self.io_ns = self.io_ns.saturating_add(took);
        if self.longest_ns.is_none_or(|longest| longest < took) {
            self.longest_ns = Some(took);
            self.longest_start_ns = Some(trace.clock.nanoseconds(one.start));
        }
    }

    fn fault(&mut self, trace: &Trace, one: &HardFault) {
        let took = trace.clock.nanoseconds_in(one.ticks());
        self.hard_faults += 1;
        self.hard_fault_bytes += u64::from(one.bytes);
        self.hard_fault_ns = self.hard_fault_ns.saturating_add(took);
        self.longest_hard_fault_ns = self.longest_hard_fault_ns.max(Some(took));
    }

    fn operations(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }
}

impl Row {
    /// What it is sorted by; rows of hard faults alone come last, unless these count.
    fn size(&self, sort: Sort) -> (i64, i64) {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let sums = &self.sums;
        let size = match sort {
            Sort::Io => sums.io_ns,
            Sort::Disk => sums.service_ns,
            Sort::Bytes => number(sums.read_bytes.saturating_add(sums.written_bytes)),
            Sort::Count => number(sums.operations()),
            Sort::Longest => sums.longest_ns.unwrap_or(0),
            Sort::Faults => sums.hard_fault_ns,
        };
        (size, sums.hard_fault_ns)
    }

    fn place(&self) -> (&str, Option<u32>, Option<u32>) {
        (&self.name, self.pid, self.tid)
    }

    fn text(&self) -> String {
        match (self.pid, self.tid) {
            (Some(pid), Some(tid)) => thread_text(&self.name, pid, tid, ""),
            (Some(pid), None) => format!("{} ({pid})", self.name),
            _ => self.name.clone(),
        }
    }
}

/// Disks that the text shows.
const DISKS: usize = 8;

/// Writes the tables: disk I/O, then hard faults, `most` rows of each. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, disk: &Disk, most: usize, width: Option<usize>) -> io::Result<()> {
    let all_ns = disk.end_ns.saturating_sub(disk.start_ns).max(0);
    writeln!(out, "{} in {}", disk.total.text(), duration(all_ns as f64 / 1e9))?;
    for busy in disk.disks.iter().take(DISKS) {
        let (time, share) = (duration(busy.busy_ns as f64 / 1e9), share(busy.busy_ns, all_ns));
        writeln!(out, "disk {} worked for {time} ({share})", busy.disk)?;
    }
    let what = match disk.by {
        By::File => "file",
        By::Process => "process",
        By::Thread => "thread",
        By::Disk => "disk",
        By::Kind => "kind",
    };
    let rows: Vec<&Row> = disk.rows.iter().filter(|row| row.sums.operations() > 0).collect();
    if !rows.is_empty() {
        let heads = ["reads", "read", "writes", "written", "flushes", "disk ms", "I/O ms", "longest ms"];
        let mut grid = Grid::new(heads, what);
        for row in rows.iter().take(most) {
            let sums = &row.sums;
            let numbers = [
                count(sums.reads),
                bytes(sums.read_bytes),
                count(sums.writes),
                bytes(sums.written_bytes),
                count(sums.flushes),
                fine_ms(sums.service_ns),
                fine_ms(sums.io_ns),
                fine_ms(sums.longest_ns.unwrap_or(0)),
            ];
            grid.row(numbers, sums.io_ns, row.text());
        }
        writeln!(out)?;
        grid.write(out, width)?;
        grid_rest(out, rows.len().saturating_sub(most))?;
    }
    let mut rows: Vec<&Row> = disk.rows.iter().filter(|row| row.sums.hard_faults > 0).collect();
    rows.sort_by_key(|row| Reverse(row.sums.hard_fault_ns));
    if !rows.is_empty() {
        let mut grid = Grid::new(["hard faults", "read", "fault ms", "longest ms"], what);
        for row in rows.iter().take(most) {
            let sums = &row.sums;
            let numbers = [
                count(sums.hard_faults),
                bytes(sums.hard_fault_bytes),
                fine_ms(sums.hard_fault_ns),
                fine_ms(sums.longest_hard_fault_ns.unwrap_or(0)),
            ];
            grid.row(numbers, sums.hard_fault_ns, row.text());
        }
        writeln!(out)?;
        grid.write(out, width)?;
        grid_rest(out, rows.len().saturating_sub(most))?;
    }
    Ok(())
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, disk: &Disk) -> io::Result<()> {
    json(out, disk)
}

/// Writes the rows as CSV, with a head.
pub fn write_csv(out: &mut impl Write, disk: &Disk) -> io::Result<()> {
    const HEAD: [&str; 16] = [
        "name",
        "pid",
        "tid",
        "reads",
        "read_bytes",
        "writes",
        "written_bytes",
        "flushes",
        "service_ns",
        "io_ns",
        "longest_ns",
        "longest_start_ns",
        "hard_faults",
        "hard_fault_bytes",
        "hard_fault_ns",
        "longest_hard_fault_ns",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &disk.rows {
        let sums = &row.sums;
        csv.row(&(
            cell(&row.name),
            row.pid,
            row.tid,
            sums.reads,
            sums.read_bytes,
            sums.writes,
            sums.written_bytes,
            sums.flushes,
            sums.service_ns,
            sums.io_ns,
            sums.longest_ns,
            sums.longest_start_ns,
            sums.hard_faults,
            sums.hard_fault_bytes,
            sums.hard_fault_ns,
            sums.longest_hard_fault_ns,
        ))?;
    }
    csv.finish()
}
