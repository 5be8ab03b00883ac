//! What threads and runtimes did in equal steps of time, as strips and as data.

use std::io::{self, Write};

use console::measure_text_width;
use serde::Serialize;

use crate::trace::Trace;
use crate::trace::{SlotKind, SlotRow, Slots};

use super::console::{DIM, HEAD, middle};
use super::grid::Csv;
use super::strip;
use super::table::grid_rest;
use super::text::{duration, json, milliseconds, one_line};
use super::thread_times::thread_text;

/// Columns of a name at most.
const NAME: usize = 36;
/// Columns of the total.
const TOTAL: usize = 12;
/// Columns of a strip where lines may have any width, and at most.
const ANY: usize = 60;
const WIDEST: usize = 120;

/// The times of a recording in slots.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Where the first slot begins, in ns since the first record.
    pub start_ns: i64,
    /// Where the range ends.
    pub end_ns: i64,
    /// How long a slot is. The last one may reach beyond the range.
    pub slot_ns: i64,
    /// How many slots there are.
    pub slots: usize,
    /// The rows: the thread or process with the most CPU time first.
    pub rows: Vec<Row>,
    /// How many threads or processes were left out.
    pub left_out: usize,
}

/// A kind of time of a thread or process.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The id of the process.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// The id of the thread; `None` for the whole process.
    pub tid: Option<u32>,
    /// The name of the thread; mostly empty.
    pub name: String,
    /// `cpu` (by samples), `running` (by context switches), `ready`, `blocked`, `gc`.
    pub kind: &'static str,
    /// All of it, in ns.
    pub total_ns: i64,
    /// How much of it is in each slot, in ns.
    pub values: Vec<i64>,
}

impl Timeline {
    /// The rows of the first `most` threads and processes of `slots`.
    pub fn new(trace: &Trace, slots: &Slots, most: usize) -> Timeline {
        let mut groups = slots.rows.chunk_by(|one, next| one.owner == next.owner);
        let rows = groups.by_ref().take(most).flatten().map(|row| Row::new(trace, row)).collect();
        let left_out = groups.count();
        Timeline {
            start_ns: slots.start,
            end_ns: slots.end,
            slot_ns: slots.slot,
            slots: slots.count(),
            rows,
            left_out,
        }
    }
}

impl Row {
    fn new(trace: &Trace, row: &SlotRow) -> Row {
        let process = trace.process(row.owner.process);
        let thread = row.owner.thread.and_then(|(_, thread)| trace.thread(thread?));
        Row {
            pid: process.map_or(u32::MAX, |process| process.pid),
            process: process.map_or("unknown process", |process| process.label()).to_owned(),
            tid: row.owner.thread.map(|(tid, _)| tid),
            name: thread.map_or(String::new(), |thread| thread.name.clone()),
            kind: word(row.kind),
            total_ns: row.values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value)),
            values: row.values.clone(),
        }
    }

    fn text(&self) -> String {
        match self.tid {
            Some(tid) => thread_text(&self.process, self.pid, tid, &self.name),
            None => format!("{} ({})", self.process, self.pid),
        }
    }
}

fn word(kind: SlotKind) -> &'static str {
    match kind {
        SlotKind::Cpu => "cpu",
        SlotKind::Running => "running",
        SlotKind::Ready => "ready",
        SlotKind::Blocked => "blocked",
        SlotKind::Gc => "gc",
    }
}

/// How many slots a strip has at most in lines of this width.
pub fn slots(width: Option<usize>) -> usize {
    let rest = NAME + "running".len() + TOTAL + "│││".chars().count() + 5;
    width.map_or(ANY, |width| width.saturating_sub(rest).clamp(8, WIDEST))
}

/// Writes the strips. With the `width` of a terminal the lines end there.
///
/// A full block is a whole slot on one processor, or the busiest slot of a process that used several.
pub fn write(out: &mut impl Write, timeline: &Timeline, width: Option<usize>) -> io::Result<()> {
    let time = |nanoseconds: i64| duration(nanoseconds as f64 / 1e9);
    let length = timeline.end_ns.saturating_sub(timeline.start_ns);
    writeln!(
        out,
        "{HEAD}{} from {:.3} s on, in slots of {}{HEAD:#}",
        time(length),
        timeline.start_ns as f64 / 1e9,
        time(timeline.slot_ns)
    )?;
    writeln!(out)?;
    let room = match width {
        Some(width) => NAME.min(width.saturating_sub(timeline.slots + TOTAL + 14).max(8)),
        None => NAME,
    };
    let names: Vec<String> = timeline.rows.iter().map(|row| middle(&one_line(&row.text()), room)).collect();
    let widest = names.iter().map(|name| measure_text_width(name)).max().unwrap_or(0).max("thread".len());
    let head = if timeline.rows.iter().any(|row| row.tid.is_some()) { "thread" } else { "process" };
    writeln!(out, "{DIM}{head:widest$}  what     {:>TOTAL$}{DIM:#}", "total ms")?;
    let mut last: Option<(u32, Option<u32>, &str)> = None;
    for (row, name) in timeline.rows.iter().zip(&names) {
        let this = (row.pid, row.tid, name.as_str());
        let shown = if last == Some(this) { "" } else { name.as_str() };
        last = Some(this);
        let pad = widest.saturating_sub(measure_text_width(shown));
        let most = row.values.iter().copied().max().unwrap_or(0);
        writeln!(
            out,
            "{shown}{:pad$}  {:7}  {:>TOTAL$}  {DIM}│{DIM:#}{}{DIM}│{DIM:#}",
            "",
            row.kind,
            milliseconds(row.total_ns / 100),
            strip::blocks(&row.values, most.max(timeline.slot_ns)),
        )?;
    }
    grid_rest(out, timeline.left_out)
}

/// Writes JSON.
pub fn write_json(out: &mut impl Write, timeline: &Timeline) -> io::Result<()> {
    json(out, timeline)
}

/// Writes CSV: a line for each row, with a column for each slot that says in its head where it begins, in seconds.
pub fn write_csv(out: &mut impl Write, timeline: &Timeline) -> io::Result<()> {
    let begins = (0..timeline.slots as i64).map(|slot| {
        format!(
            "{:.6}",
            (timeline.start_ns.saturating_add(slot.saturating_mul(timeline.slot_ns))) as f64 / 1e9
        )
    });
    let fixed = ["pid", "process", "tid", "name", "kind", "total_ns"];
    let heads: Vec<String> = fixed.into_iter().map(str::to_owned).chain(begins).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut csv = Csv::new(out, &heads)?;
    for row in &timeline.rows {
        csv.row(row)?;
    }
    csv.finish()
}
