//! The times of threads as a table: how long each ran, was ready, and was blocked.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde::Serialize;

use crate::clock::Clock;
use crate::trace::Trace;
use crate::trace::spread;
use crate::trace::waits::{Span, State, ThreadTimes, Wait, Waits};

use super::grid::{Csv, Grid};
use super::strip::blocks;
use super::table::grid_rest;
use super::text::{cell, count, duration, json, milliseconds};

/// What the rows are sorted by, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The time on a processor.
    #[default]
    Running,
    /// The time in which a thread could run, and had no processor.
    Ready,
    /// The time in which a thread waited for something.
    Blocked,
    /// The longest wait that ended.
    Longest,
    /// How often a thread was given a processor.
    Switches,
    /// All of the time.
    Wall,
}

/// The times of threads.
#[derive(Clone, Debug, Serialize)]
pub struct Threads {
    /// From when on context switches were recorded, in ns since the first record.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// Switches that did not fit what came before them on their processor.
    pub contradictions: u64,
    /// The threads, in the order of what they are sorted by.
    pub threads: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
}

/// The times of a thread. They add up: `end_ns - start_ns = running_ns + ready_ns + blocked_ns + unknown_ns`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The id of its process.
    pub pid: u32,
    /// The name of its process.
    pub process: String,
    /// The system's id.
    pub tid: u32,
    /// Its name; mostly empty.
    pub name: String,
    /// From when on its states are counted: the begin of all, or its own.
    pub start_ns: i64,
    /// Until when: the end of all, or its own.
    pub end_ns: i64,
    /// All of it: `end_ns - start_ns`.
    pub wall_ns: i64,
    /// On a processor.
    pub running_ns: i64,
    /// Ready, without a processor.
    pub ready_ns: i64,
    /// Waiting for something.
    pub blocked_ns: i64,
    /// Nobody knows, because events are missing.
    pub unknown_ns: i64,
    /// CPU time by samples: what the thread did itself, without the interrupts on its back that `running_ns` has.
    pub sampled_ns: i64,
    /// How often it was given a processor.
    pub switches: u64,
    /// The longest wait that ended, from when it blocked to when it ran again; `None` without any.
    pub longest_wait_ns: Option<i64>,
    /// When that began.
    pub longest_wait_start_ns: Option<i64>,
    /// How long it ran in each of [`SLOTS`] equal parts of the whole time.
    #[serde(skip)]
    when: Vec<i64>,
}

/// Parts of the time that a strip shows.
const SLOTS: usize = 20;

/// From this width on there is room for strips.
const WIDE: usize = 110;

impl Threads {
    /// The times of the threads for which `keeps` is true, by their places in [`Waits::threads`].
    pub fn new(trace: &Trace, waits: &Waits, keeps: impl Fn(usize) -> bool, sort: Sort) -> Threads {
        let sampled = waits.sampled(trace);
        let window = (trace.clock.nanoseconds(waits.window.0), trace.clock.nanoseconds(waits.window.1));
        let all = waits.threads.iter().zip(sampled).enumerate().filter(|(index, _)| keeps(*index));
        let mut threads: Vec<Row> = all
            .map(|(_, (times, sampled))| {
                let ran = times.spans.iter().filter(|span| span.state == State::Running);
                let ran =
                    ran.map(|span| (trace.clock.nanoseconds(span.start), trace.clock.nanoseconds(span.end)));
                Row { when: spread(ran, window, SLOTS), ..Row::new(trace, times, sampled) }
            })
            .collect();
        threads.sort_by_key(|row| {
            let size = match sort {
                Sort::Running => row.running_ns,
                Sort::Ready => row.ready_ns,
                Sort::Blocked => row.blocked_ns,
                Sort::Longest => row.longest_wait_ns.unwrap_or(0),
                Sort::Wall => row.wall_ns,
                Sort::Switches => i64::try_from(row.switches).unwrap_or(i64::MAX),
            };
            (Reverse(size), row.pid, row.tid, row.start_ns)
        });
        Threads {
            start_ns: trace.clock.nanoseconds(waits.window.0),
            end_ns: trace.clock.nanoseconds(waits.window.1),
            contradictions: waits.contradictions,
            threads,
            left_out: 0,
        }
    }

    fn slot_ns(&self) -> i64 {
        ((self.end_ns - self.start_ns) / SLOTS as i64 + 1).max(1)
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Threads {
        self.left_out += self.threads.len().saturating_sub(rows);
        self.threads.truncate(rows);
        self
    }
}

impl Row {
    fn new(trace: &Trace, times: &ThreadTimes, sampled: i64) -> Row {
        let clock = trace.clock;
        let process = trace.process(times.process);
        let thread = times.thread.and_then(|thread| trace.thread(thread));
        let of = |state| {
            let spans = times.spans.iter().filter(|span| span.state == state);
            spans.map(|span| nanoseconds(&clock, span)).sum::<i64>()
        };
        let length = |wait: &Wait| clock.nanoseconds(wait.end()) - clock.nanoseconds(wait.blocked.start);
        let ended = times.waits().filter(|wait| wait.blocked.came.is_some());
        let longest = ended.max_by_key(|wait| (length(wait), Reverse(wait.blocked.start)));
        Row {
            pid: process.map_or(u32::MAX, |process| process.pid),
            process: process.map_or("unknown process", |process| process.label()).to_owned(),
            tid: times.tid,
            name: thread.map_or(String::new(), |thread| thread.name.clone()),
            start_ns: clock.nanoseconds(times.start),
            end_ns: clock.nanoseconds(times.end),
            wall_ns: clock.nanoseconds(times.end) - clock.nanoseconds(times.start),
            running_ns: of(State::Running),
            ready_ns: of(State::Ready),
            blocked_ns: of(State::Blocked),
            unknown_ns: of(State::Unknown),
            sampled_ns: sampled.saturating_mul(100),
            switches: times.switches,
            longest_wait_ns: longest.as_ref().map(length),
            when: Vec::new(),
            longest_wait_start_ns: longest.map(|wait| clock.nanoseconds(wait.blocked.start)),
        }
    }

    /// `app.exe (12) thread 34 Worker`
    pub(super) fn text(&self) -> String {
        thread_text(&self.process, self.pid, self.tid, &self.name)
    }
}

/// `app.exe (12) thread 34 Worker`
pub(super) fn thread_text(process: &str, pid: u32, tid: u32, name: &str) -> String {
    let text = format!("{process} ({pid}) thread {tid} {name}");
    text.trim_end().to_owned()
}

/// The length of a span. Lengths of spans that follow each other add up exactly.
fn nanoseconds(clock: &Clock, span: &Span) -> i64 {
    clock.nanoseconds(span.end).saturating_sub(clock.nanoseconds(span.start))
}

/// Writes the table. With the `width` of a terminal the lines end there, and bars show the time on processors.
pub fn write(out: &mut impl Write, threads: &Threads, width: Option<usize>) -> io::Result<()> {
    write_rows(out, threads, width)?;
    grid_rest(out, threads.left_out)
}

/// The same, without a line for the rows that were left out.
pub fn write_rows(out: &mut impl Write, threads: &Threads, width: Option<usize>) -> io::Result<()> {
    let seconds = (threads.end_ns - threads.start_ns) as f64 / 1e9;
    let all = threads.threads.len() + threads.left_out;
    let noun = if all == 1 { "thread" } else { "threads" };
    writeln!(out, "{} {noun} in {} with context switches", count(all as u64), duration(seconds))?;
    writeln!(out)?;
    let has_unknown = threads.threads.iter().any(|row| row.unknown_ns > 0);
    let has_room = width.is_none_or(|width| width >= WIDE);
    let ms = |nanoseconds: i64| milliseconds(nanoseconds / 100);
    let mut grid = Grid::new(
        [
            "running ms",
            "sampled ms",
            "ready ms",
            "blocked ms",
            if has_unknown { "unknown ms" } else { "" },
            "longest wait ms",
            "switches",
            if has_room { "running when       " } else { "" },
        ],
        "thread",
    );
    for row in &threads.threads {
        let numbers = [
            ms(row.running_ns),
            ms(row.sampled_ns),
            ms(row.ready_ns),
            ms(row.blocked_ns),
            ms(row.unknown_ns),
            row.longest_wait_ns.map_or(String::new(), &ms),
            count(row.switches),
            blocks(&row.when, row.when.iter().copied().max().unwrap_or(0).max(threads.slot_ns())),
        ];
        grid.row(numbers, row.running_ns, row.text());
    }
    grid.write(out, width)
}

/// Writes the times as JSON.
pub fn write_json(out: &mut impl Write, threads: &Threads) -> io::Result<()> {
    json(out, threads)
}

/// Writes the rows as CSV, with a head.
pub fn write_csv(out: &mut impl Write, threads: &Threads) -> io::Result<()> {
    const HEAD: [&str; 15] = [
        "pid",
        "process",
        "tid",
        "name",
        "start_ns",
        "end_ns",
        "wall_ns",
        "running_ns",
        "ready_ns",
        "blocked_ns",
        "unknown_ns",
        "sampled_ns",
        "switches",
        "longest_wait_ns",
        "longest_wait_start_ns",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &threads.threads {
        let (process, name) = (cell(&row.process).into_owned(), cell(&row.name).into_owned());
        csv.row(&Row { process, name, ..row.clone() })?;
    }
    csv.finish()
}
