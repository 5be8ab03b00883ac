//! The worst waits: where each thread went to sleep, who made it ready, and what the waking thread had been waiting for.

use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::events::kernel::{DiskIoKind, ReadyThread};
use crate::prefix_tree::NodeId;
use crate::profile::{Entry, FrameId, Profile};
use crate::trace::waits::{self, Cause, Causes, Chain, ChainEnd, Link, State, ThreadTimes, Wait, Waits};
use crate::trace::{Stacked, Trace};

use super::grid::Csv;
use super::narrow::narrow;
use super::spelling::Spelling;
use super::table::grid_rest;
use super::text::{bytes, cell, count, duration, json, one_line};
use super::thread_times::thread_text;

/// Waits, the longest first.
#[derive(Clone, Debug, Serialize)]
pub struct WorstWaits {
    /// They.
    pub waits: Vec<Row>,
    /// How many were left out.
    pub left_out: usize,
}

/// A wait that ended.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The thread.
    #[serde(flatten)]
    pub thread: Who,
    /// When it blocked, in ns since the first record.
    pub start_ns: i64,
    /// From then until it ran again.
    pub duration_ns: i64,
    /// Why it left its processor, as the kernel calls it; `None` for a number that has no name.
    pub reason: Option<&'static str>,
    /// Where it had gone to sleep, the innermost function first; empty where the recording does not say.
    pub stack: Vec<String>,
    /// The disk I/O or hard fault that it was for, as far as their events show it.
    pub cause: Option<CauseRow>,
    /// How long of all it was ready and had no processor.
    pub ready_ns: i64,
    /// Who made it ready; `None` where the recording does not say.
    pub readied_by: Option<Waker>,
    /// What filled its blocked time, the last first.
    pub chain: Vec<Step>,
    /// How the chain ends: `filled`, `interrupt`, `no_event`, `unknown`, `cycle`, `too_long`.
    pub chain_end: &'static str,
}

/// What a wait was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseRow {
    /// `disk_read`, `disk_write`, `disk_flush` or `hard_fault`.
    pub kind: &'static str,
    /// The file; `None` where no event names it.
    pub file: Option<String>,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// The number of the disk; `None` of a hard fault whose read another thread had asked for.
    pub disk: Option<u32>,
    /// When the thread had asked for it, or touched the page, in ns since the first record.
    pub start_ns: i64,
    /// How long it took from then on.
    pub duration_ns: i64,
    /// How long the disk worked on it.
    pub service_ns: Option<i64>,
}

impl CauseRow {
    fn new(trace: &Trace, cause: Cause) -> Option<CauseRow> {
        let disk = &trace.disk;
        let clock = &trace.clock;
        let operation = match cause {
            Cause::DiskIo(operation) => Some(operation),
            Cause::HardFault { operation, .. } => operation,
        };
        let operation = operation.and_then(|operation| disk.operations.get(operation as usize));
        let of = |kind, file, bytes: u32, start, ticks| CauseRow {
            kind,
            file: disk.path(file).map(str::to_owned),
            bytes: u64::from(bytes),
            disk: operation.map(|one| one.disk),
            start_ns: clock.nanoseconds(start),
            duration_ns: clock.nanoseconds_in(ticks),
            service_ns: operation.map(|one| clock.nanoseconds_in(one.service)),
        };
        match cause {
            Cause::HardFault { fault, .. } => {
                let one = disk.hard_faults.get(fault as usize)?;
                Some(of("hard_fault", one.file, one.bytes, one.start, one.ticks()))
            }
            Cause::DiskIo(_) => {
                let one = operation?;
                let kind = match one.kind {
                    DiskIoKind::Read => "disk_read",
                    DiskIoKind::Write => "disk_write",
                    DiskIoKind::Flush => "disk_flush",
                };
                Some(of(kind, one.file, one.bytes, one.start, one.ticks()))
            }
        }
    }

    /// `a disk read of 64.0 KiB, C:\orders.db: 6.992 ms`.
    fn text(&self, time: &impl Fn(i64) -> String) -> String {
        let what = match self.kind {
            "disk_read" => format!("a disk read of {}", bytes(self.bytes)),
            "disk_write" => format!("a disk write of {}", bytes(self.bytes)),
            "disk_flush" => "a flush of a disk".to_owned(),
            _ => format!("a hard fault, {} from disk", bytes(self.bytes)),
        };
        let file = self.file.as_ref().map(|file| format!(", {file}")).unwrap_or_default();
        let service = match self.service_ns {
            Some(service) if service < self.duration_ns => {
                format!(", of which the disk worked on it for {}", time(service))
            }
            _ => String::new(),
        };
        format!("for {what}{file}: {}{service}", time(self.duration_ns))
    }
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Who {
    /// The id of its process.
    pub pid: u32,
    /// The name of its process.
    pub process: String,
    /// The system's id.
    pub tid: u32,
    /// Its name; mostly empty.
    pub name: String,
}

/// What made a thread ready.
#[derive(Clone, Debug, Serialize)]
pub struct Waker {
    /// The thread; `None` for an interrupt, and for a thread that is not known.
    pub thread: Option<Who>,
    /// It was an interrupt: a device, a timer.
    pub interrupt: bool,
    /// What it did then, the innermost function first.
    pub stack: Vec<String>,
}

/// What a thread did while another one waited for it.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The thread.
    #[serde(flatten)]
    pub thread: Who,
    /// `running`, `ready` or `unknown`.
    pub state: &'static str,
    /// From when on, in ns since the first record.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
}

impl WorstWaits {
    /// The longest `most` of the waits for which `keeps` is true; their threads are places in [`Waits::threads`].
    /// `profile` has blocked time with wakers.
    pub fn new(
        profile: &Profile,
        spelling: &Spelling<'_>,
        waits: &Waits,
        keeps: impl Fn(usize, &Wait) -> bool,
        most: usize,
    ) -> WorstWaits {
        let waits_of = |(index, thread): (usize, &ThreadTimes)| {
            let ended = thread.waits().filter(|wait| wait.blocked.came.is_some());
            ended.map(|wait| (index, wait)).collect::<Vec<_>>()
        };
        let mut all: Vec<(usize, Wait)> = waits.threads.iter().enumerate().flat_map(waits_of).collect();
        all.retain(|(index, wait)| keeps(*index, wait));
        all.sort_by_key(|(index, wait)| (Reverse(wait.ticks()), wait.blocked.start, *index));
        let left_out = all.len().saturating_sub(most);
        all.truncate(most);
        let stacks: FxHashMap<_, NodeId> = profile
            .samples
            .iter()
            .filter_map(|sample| Some(((waits.thread_of(sample.runner)?, sample.time), sample.stack)))
            .collect();
        let causes = Causes::new(&profile.trace);
        let row = |(index, wait): (usize, Wait)| {
            let stack = stacks.get(&(index, wait.blocked.start)).copied();
            let cause = waits.threads.get(index).and_then(|thread| causes.of(thread, &wait));
            Row::new(profile, spelling, waits, (index, cause), &wait, stack)
        };
        WorstWaits { waits: all.into_iter().map(row).collect(), left_out }
    }
}

impl Row {
    fn new(
        profile: &Profile,
        spelling: &Spelling<'_>,
        waits: &Waits,
        (index, cause): (usize, Option<Cause>),
        wait: &Wait,
        stack: Option<NodeId>,
    ) -> Row {
        let trace = &*profile.trace;
        let (own, waker) = stack.map(|stack| profile.stacks.frames_and_waker(stack)).unwrap_or_default();
        let texts = |frames: Vec<FrameId>| {
            frames.into_iter().map(|frame| spelling.text(Entry::Frame(frame))).collect::<Vec<_>>()
        };
        let ns = |time| trace.clock.nanoseconds(time);
        let Chain { links, end, .. } = waits.chain(trace, wait);
        let readied = |event: &Stacked<ReadyThread>| {
            let who = waits.waker(trace, event);
            Waker {
                thread: match who {
                    waits::Waker::Thread(thread) => Some(Who::new(profile, waits, thread)),
                    waits::Waker::Interrupt | waits::Waker::Unknown => None,
                },
                interrupt: who == waits::Waker::Interrupt,
                stack: texts(waker.unwrap_or_default()),
            }
        };
        let step = |link: &Link| Step {
            thread: Who::new(profile, waits, link.thread),
            state: match link.state {
                State::Running => "running",
                State::Ready => "ready",
                State::Blocked | State::Unknown => "unknown",
            },
            start_ns: ns(link.start),
            end_ns: ns(link.end),
        };
        Row {
            thread: Who::new(profile, waits, index),
            start_ns: ns(wait.blocked.start),
            duration_ns: ns(wait.end()) - ns(wait.blocked.start),
            reason: wait.blocked.reason(&trace.kept).and_then(|reason| reason.name()),
            cause: cause.and_then(|cause| CauseRow::new(trace, cause)),
            ready_ns: ns(wait.end()) - ns(wait.blocked.end),
            readied_by: wait.blocked.readied_by(&trace.kept).map(readied),
            stack: texts(own),
            chain: links.iter().map(step).collect(),
            chain_end: match end {
                ChainEnd::Filled => "filled",
                ChainEnd::Interrupt => "interrupt",
                ChainEnd::NoEvent => "no_event",
                ChainEnd::Unknown => "unknown",
                ChainEnd::Cycle => "cycle",
                ChainEnd::TooLong => "too_long",
            },
        }
    }
}

impl Who {
    fn new(profile: &Profile, waits: &Waits, thread: usize) -> Who {
        let trace = &*profile.trace;
        let times = waits.threads.get(thread);
        let process = times.and_then(|times| trace.process(times.process));
        let thread = times.and_then(|times| trace.thread(times.thread?));
        Who {
            pid: process.map_or(u32::MAX, |process| process.pid),
            process: process.map_or("unknown process", |process| process.label()).to_owned(),
            tid: times.map_or(u32::MAX, |times| times.tid),
            name: thread.map_or(String::new(), |thread| thread.name.clone()),
        }
    }

    fn text(&self) -> String {
        thread_text(&self.process, self.pid, self.tid, &self.name)
    }
}

/// Frames of a stack that the text shows.
const FRAMES: usize = 12;

/// Steps of a chain that the text shows.
const STEPS: usize = 12;

/// Writes the waits. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, worst: &WorstWaits, width: Option<usize>) -> io::Result<()> {
    write_rows(out, worst, width)?;
    grid_rest(out, worst.left_out)
}

/// The same, without a line for the rows that were left out.
pub fn write_rows(out: &mut impl Write, worst: &WorstWaits, width: Option<usize>) -> io::Result<()> {
    let time = |nanoseconds: i64| duration(nanoseconds as f64 / 1e9);
    let line = |text: &str, indent: usize| {
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        format!("{:indent$}{}", "", narrow(text, room))
    };
    for row in &worst.waits {
        let reason = row.reason.map(|reason| format!(", {reason}")).unwrap_or_default();
        let ready =
            if row.ready_ns > 0 { format!(", {} of it ready", time(row.ready_ns)) } else { String::new() };
        writeln!(
            out,
            "{} at {:.3} s{reason}{ready}: {}",
            time(row.duration_ns),
            row.start_ns as f64 / 1e9,
            one_line(&row.thread.text())
        )?;
        if let Some(cause) = &row.cause {
            writeln!(out, "{}", line(&cause.text(&time), 2))?;
        }
        write_stack(out, "waited in", &row.stack, &line)?;
        if let Some(Waker { thread, interrupt, stack }) = &row.readied_by {
            let who = match thread {
                Some(thread) => thread.text(),
                None if *interrupt => "an interrupt".to_owned(),
                None => "a thread that is not known".to_owned(),
            };
            writeln!(out, "{}", line(&format!("readied by {who}"), 2))?;
            write_stack(out, "in", stack, &line)?;
        }
        write_chain(out, row, &time, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

fn write_stack(
    out: &mut impl Write,
    head: &str,
    stack: &[String],
    line: &impl Fn(&str, usize) -> String,
) -> io::Result<()> {
    let Some(leaf) = stack.first() else { return Ok(()) };
    writeln!(out, "{}", line(&format!("{head} {leaf}"), 2))?;
    for frame in stack.iter().take(FRAMES).skip(1) {
        writeln!(out, "{}", line(frame, 4 + head.len() - 1))?;
    }
    if stack.len() > FRAMES {
        writeln!(out, "    … {} more frames", count((stack.len() - FRAMES) as u64))?;
    }
    Ok(())
}

/// What filled the wait, where more than one thread did.
fn write_chain(
    out: &mut impl Write,
    row: &Row,
    time: &impl Fn(i64) -> String,
    line: &impl Fn(&str, usize) -> String,
) -> io::Result<()> {
    if row.chain.is_empty() {
        return Ok(());
    }
    writeln!(out, "  meanwhile, the last first")?;
    for step in row.chain.iter().take(STEPS) {
        let what = match step.state {
            "running" => "ran",
            "ready" => "was ready",
            _ => "did what no event shows",
        };
        let text = format!("{} {what} for {}", step.thread.text(), time(step.end_ns - step.start_ns));
        writeln!(out, "{}", line(&text, 4))?;
    }
    let rest = row.chain.len().saturating_sub(STEPS);
    if rest > 0 {
        writeln!(out, "    … {} more steps", count(rest as u64))?;
    }
    let end = match row.chain_end {
        "interrupt" => "before that, an interrupt made it ready: a device or a timer",
        "no_event" => "before that, no event says who made it ready",
        "cycle" => "the events go round in a ring",
        _ => return Ok(()),
    };
    writeln!(out, "    {end}")
}

/// Writes the waits as JSON.
pub fn write_json(out: &mut impl Write, worst: &WorstWaits) -> io::Result<()> {
    json(out, worst)
}

/// Writes the waits as CSV, with a head: a row for each, with the innermost function of its stack.
pub fn write_csv(out: &mut impl Write, worst: &WorstWaits) -> io::Result<()> {
    const HEAD: [&str; 13] = [
        "pid",
        "process",
        "tid",
        "name",
        "start_ns",
        "duration_ns",
        "ready_ns",
        "reason",
        "readied_by_pid",
        "readied_by_process",
        "readied_by_tid",
        "readied_by_interrupt",
        "function",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &worst.waits {
        let waker = row.readied_by.as_ref();
        let by = waker.and_then(|waker| waker.thread.as_ref());
        csv.row(&(
            row.thread.pid,
            cell(&row.thread.process),
            row.thread.tid,
            cell(&row.thread.name),
            row.start_ns,
            row.duration_ns,
            row.ready_ns,
            row.reason,
            by.map(|by| by.pid),
            by.map(|by| cell(&by.process)),
            by.map(|by| by.tid),
            waker.map(|waker| waker.interrupt),
            row.stack.first().map(|leaf| cell(leaf)),
        ))?;
    }
    csv.finish()
}
