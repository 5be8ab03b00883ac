//! How good the data is: what became of every sample, and what is missing.

use std::io::{self, Write};

use super::json::{Json, Milliseconds};
use crate::report::format::Picture;
use crate::report::{count, reasons};

/// A line of a section.
enum Value {
    Count(u64),
    /// In 100 ns.
    Time(i64),
    Text(String),
}

type Line = (&'static str, Value);

/// Writes sections of what can be said of all of a profile.
pub(super) fn write_quality<W: Write>(picture: &Picture<'_>, json: &mut Json<W>) -> io::Result<()> {
    let sections = [("Samples", samples(picture)), ("Names", names(picture)), ("Losses", losses(picture))];
    json.array(|json| {
        for (label, lines) in sections {
            json.object(|json| {
                json.key("label")?.text(label)?;
                json.key("entries")?.array(|json| lines.iter().try_for_each(|line| write_line(line, json)))
            })?;
        }
        Ok(())
    })
}

fn write_line<W: Write>((label, value): &Line, json: &mut Json<W>) -> io::Result<()> {
    json.object(|json| {
        json.key("label")?.text(label)?;
        match value {
            Value::Count(count) => {
                json.key("format")?.text("integer")?;
                json.key("value")?.plain(count)
            }
            Value::Time(time) => {
                json.key("format")?.text("milliseconds")?;
                json.key("value")?.plain(Milliseconds(*time))
            }
            Value::Text(text) => {
                json.key("format")?.text("string")?;
                json.key("value")?.text(text)
            }
        }
    })
}

/// Where every sample went.
fn samples(picture: &Picture<'_>) -> Vec<Line> {
    let balance = &picture.arranged.balance;
    let mut lines = vec![
        ("All", Value::Count(balance.total)),
        ("Kept", Value::Count(balance.kept)),
        ("CPU time of the kept", Value::Time(picture.arranged.values.total())),
        ("Of idle processors, left out", Value::Count(balance.idle)),
        ("Left out by options", Value::Count(balance.filtered)),
    ];
    let by = reasons(&balance.filtered_by);
    if !by.is_empty() {
        let parts: Vec<String> =
            by.into_iter().map(|(samples, option)| format!("{} {option}", count(samples))).collect();
        lines.push(("Options", Value::Text(parts.join(", "))));
    }
    let stacks = &balance.stacks;
    lines.extend([
        ("Kept, in DPCs", Value::Count(balance.dpc)),
        ("Kept, in interrupts", Value::Count(balance.isr)),
        ("Kept, without a stack", Value::Count(stacks.none)),
        ("Kept, with a broken stack", Value::Count(stacks.broken)),
        ("Kept, with a repaired stack", Value::Count(stacks.repaired)),
        ("Kept, with a stack cut by a limit", Value::Count(picture.arranged.cut.samples)),
    ]);
    lines
}

/// How many frames have a name, and why the others have none.
fn names(picture: &Picture<'_>) -> Vec<Line> {
    let frames = picture.profile().resolution_of_all();
    let mut lines = vec![
        ("Frames", Value::Count(frames.total())),
        ("With a name", Value::Text(format!("{:.1}%", frames.percent()))),
    ];
    let causes = frames.causes().into_iter();
    lines.extend(causes.map(|count| (count.cause.text(), Value::Count(count.frames))));
    lines
}

/// What is not in the recording.
fn losses(picture: &Picture<'_>) -> Vec<Line> {
    let lost = &picture.profile().trace.lost;
    vec![
        ("Lost events", Value::Count(lost.events)),
        ("Lost buffers", Value::Count(lost.buffers)),
        ("Missing buffers, by their numbers", Value::Count(lost.sequence_gaps)),
        ("Stacks without their event", Value::Count(lost.orphan_stacks)),
        ("Stacks that were never defined", Value::Count(lost.undefined_stack_keys)),
        ("Malformed events", Value::Count(lost.malformed_events)),
        ("Damaged places of files", Value::Count(picture.analysis.damage.len() as u64)),
    ]
}
