//! The whole report for a console: how busy the processors were, the tree, its hottest functions.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use crate::profile::{Focus, Grouping, Metric, Part, Shape};
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::report::strip;
use crate::report::text::{amount, count, samples};
use crate::trace::RunnerId;

use super::Options;

/// The format.
pub const FORMAT: Format = Format {
    name: "tree",
    endings: &[".tree.txt", ".tree"],
    about: "Call tree for a console",
    viewers: "",
    content: Content::Styled,
    tops: Tops::AsAsked,
    needs: Needs::NOTHING,
    write,
};

fn write(mut out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let Options { width, .. } = picture.console;
    if picture.profile().metric == Metric::CPU {
        let timeline = picture.timeline(strip::bins(width));
        let processors = picture.profile().trace.machine.processors;
        strip::write(&mut out, &timeline, processors, picture.labels, width)?;
    } else {
        write_head(out, picture)?;
    }
    writeln!(out)?;
    match &picture.shape.focus {
        Some(focus) if focus.part == Part::Through => write_focus(out, picture, focus),
        _ => super::write(&mut out, picture.arranged, picture.labels, &picture.console),
    }
}

/// `8.71 s blocked time: 118 waits of 1 thread`
fn write_head(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let profile = picture.profile();
    let left_out = |number: &u32| picture.arranged.left_out.binary_search(number).is_ok();
    let shown = (0..).zip(&profile.samples).filter(|(number, _)| !left_out(number));
    let threads: FxHashSet<RunnerId> = shown.map(|(_, sample)| sample.runner).collect();
    let samples = samples(picture.arranged.balance.kept, profile.metric);
    let noun = if threads.len() == 1 { "thread" } else { "threads" };
    let threads = count(threads.len() as u64);
    match amount(profile.metric, picture.arranged.values.total()) {
        Some(total) => writeln!(out, "{total} {}: {samples} of {threads} {noun}", profile.metric.name),
        None => writeln!(out, "{samples} of {threads} {noun}"),
    }
}

/// Writes the callers of what the picture is focused on, and then its callees, both from all processes.
fn write_focus(mut out: &mut dyn Write, picture: &Picture<'_>, focus: &Focus) -> io::Result<()> {
    for (part, head, inverted) in [(Part::Callers, "callers", true), (Part::From, "callees", false)] {
        let focus = Some(Focus { functions: focus.functions.clone(), part });
        let grouping = if inverted { picture.shape.grouping } else { Grouping::None };
        let shape = Shape { focus, grouping, inverted, ..picture.shape.clone() };
        let arranged = (picture.arrange)(&shape);
        let labels = picture.labels.clone().with_groups(&arranged.groups);
        let (hottest, legend) = (picture.console.hottest && !inverted, picture.console.legend && !inverted);
        let options = Options { head, inverted, hottest, legend, ..picture.console };
        super::write(&mut out, &arranged, &labels, &options)?;
        if inverted {
            writeln!(out)?;
        }
    }
    Ok(())
}
