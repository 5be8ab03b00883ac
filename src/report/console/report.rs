//! The whole report for a console: how busy the processors were, the tree, its hottest functions.

use std::io::{self, Write};

use crate::profile::{Focus, Grouping, Part, Shape};
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::report::strip;

use super::Options;

/// The format.
pub const FORMAT: Format = Format {
    name: "tree",
    endings: &[".tree.txt", ".tree"],
    about: "Call tree for a console",
    viewers: "",
    content: Content::Styled,
    tops: Tops::AsAsked,
    needs: Needs { ends: false, lines: false, code: false },
    write,
};

fn write(mut out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let Options { width, .. } = picture.console;
    let timeline = picture.timeline(strip::bins(width));
    let processors = picture.profile().trace.machine.processors;
    strip::write(&mut out, &timeline, processors, picture.labels, width)?;
    writeln!(out)?;
    match &picture.shape.focus {
        Some(focus) if focus.part == Part::Through => write_focus(out, picture, focus),
        _ => super::write(&mut out, picture.arranged, picture.labels, &picture.console),
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
