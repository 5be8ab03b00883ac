//! What the columns, marks and colours of a report mean.

use std::io::{self, Write};

use console::measure_text_width;

use crate::profile::Category;
use crate::report::colours;

use super::colours::{HEAD, heat, style};

/// Marks with their meanings, each in 40 columns.
const MARKS: [(&str, &str); 9] = [
    ("incl", "a function with all that it calls"),
    ("excl", "the function itself"),
    ("├ └", "callees beside each other"),
    ("↓", "the only callee that matters"),
    ("⋮", "frames that pass on what they get"),
    ("…", "what is not shown"),
    ("█ ▒", "bar: excl, and the rest of incl"),
    ("~name", "the nearest name; not certain"),
    ("name!?", "code of a module without names"),
];

/// Columns of a mark, with the gap behind it.
const MARK: usize = 7;

/// Writes it in lines of this width.
pub(super) fn write(out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
    let width = width.unwrap_or(80);
    writeln!(out, "\n{HEAD}legend{HEAD:#}")?;
    for (mark, meaning) in MARKS {
        writeln!(out, "{mark}{:pad$}{meaning}", "", pad = MARK - measure_text_width(mark))?;
    }
    for (share, name, meaning) in
        [(10.0, "red", "excl of 10 % or more"), (2.0, "amber", "excl of 2 % or more")]
    {
        let style = heat(share);
        writeln!(out, "{style}{name}{style:#}{:pad$}{meaning}", "", pad = MARK - name.len())?;
    }
    let mut line = 0;
    for category in Category::CODE {
        let (style, text) = (style(category), format!("{} {}", colours::of(category).name, category.text()));
        let separator = match line {
            0 => "",
            _ if line + 2 + text.len() > width => "\n",
            _ => ", ",
        };
        line = if separator == ", " { line + 2 + text.len() } else { text.len() };
        write!(out, "{separator}{style}{text}{style:#}")?;
    }
    writeln!(out)
}
