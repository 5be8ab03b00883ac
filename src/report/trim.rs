//! What became of a recording that was made smaller.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::etl::writer::Copied;
use crate::trim::KINDS;

use super::text::{bytes, count, counted, json};

/// Sizes, events, and what was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trimmed {
    /// Bytes of the recording's files.
    pub bytes_in: u64,
    /// Bytes of the file that was written.
    pub bytes_out: u64,
    /// Events that were read.
    pub events_in: u64,
    /// Events that were written.
    pub events_out: u64,
    /// Events that were left out, by kind, as [`KINDS`] names it, and `headers_of_other_parts`; kinds without any are missing.
    pub dropped: BTreeMap<String, u64>,
    /// Damaged places of the recording, which were left out.
    pub damaged: usize,
}

impl Trimmed {
    /// What a copy of a recording of so many bytes with so many damaged places came to.
    pub fn new(bytes_in: u64, copied: &Copied, damaged: usize) -> Trimmed {
        let kinds = KINDS.iter().zip(copied.left_out).chain([(&"headers_of_other_parts", copied.headers)]);
        let dropped = kinds.filter(|(_, events)| *events > 0);
        let dropped = dropped.map(|(kind, events)| ((*kind).to_owned(), events));
        Trimmed {
            bytes_in,
            bytes_out: copied.bytes,
            events_in: copied.events_in,
            events_out: copied.events_out,
            dropped: dropped.collect(),
            damaged,
        }
    }
}

/// Writes it as a table.
pub fn write(out: &mut impl Write, trimmed: &Trimmed) -> io::Result<()> {
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let row = |out: &mut dyn Write, name: &str, before: String, after: String, percent: f64| {
        writeln!(out, "{name:<10}  {before:>12}  {after:>12}  {percent:>5.1} %")
    };
    writeln!(out, "{:<10}  {:>12}  {:>12}  {:>7}", "", "before", "after", "kept")?;
    let Trimmed { bytes_in, bytes_out, events_in, events_out, .. } = *trimmed;
    row(out, "size", bytes(bytes_in), bytes(bytes_out), share(bytes_out, bytes_in))?;
    row(out, "events", count(events_in), count(events_out), share(events_out, events_in))?;
    if !trimmed.dropped.is_empty() {
        writeln!(out, "\ndropped")?;
        let mut dropped: Vec<_> = trimmed.dropped.iter().collect();
        dropped.sort_by_key(|(_, events)| std::cmp::Reverse(**events));
        for (kind, events) in dropped {
            writeln!(out, "{:>12}  {}", count(*events), text(kind))?;
        }
    }
    if trimmed.damaged > 0 {
        let places = counted(trimmed.damaged as u64, "damaged place", "damaged places");
        writeln!(out, "\n{places} left out")?;
    }
    Ok(())
}

/// What people call a kind.
fn text(kind: &str) -> String {
    match kind {
        "disk_io" => "disk I/O and file names".to_owned(),
        "unknown_layout" => "events of unknown layout".to_owned(),
        _ => kind.replace('_', " "),
    }
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, trimmed: &Trimmed) -> io::Result<()> {
    json(out, trimmed)
}
