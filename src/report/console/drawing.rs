//! The lines that show who calls whom.
//!
//! `├` and `└` lead to callees beside each other. `↓` leads to the only callee of the line above, and `⋮` stands for
//! frames between: both stay in the column of their caller, and need no more room however long the chain is.

use console::{measure_text_width, truncate_str};

use crate::profile::Category;
use crate::report::label::Label;
use crate::report::narrow::narrow;
use crate::report::text::one_line;

use super::colours::{DIM, style};

/// What leads to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Mark {
    /// Nothing: it is the top of the tree.
    Top,
    /// One of several callees; perhaps the last.
    Beside {
        /// Nothing more follows beside it.
        last: bool,
    },
    /// The only callee of the line above.
    Next,
    /// It stands for several lines, and says so itself.
    Instead,
}

impl Mark {
    fn text(self) -> &'static str {
        match self {
            Mark::Top | Mark::Instead => "",
            Mark::Beside { last: false } => "├ ",
            Mark::Beside { last: true } => "└ ",
            Mark::Next => "↓ ",
        }
    }
}

/// Which levels of the tree go on below the present line; the outermost first.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Bars(Vec<bool>);

/// Columns of a level.
const LEVEL: usize = 2;
/// A name keeps this many columns, or half of a line that has less than twice as many, however deep it is.
const LEAST_NAME: usize = 24;
/// Deeper levels are not drawn, however wide the lines may be: a recording may have a hundred thousand.
const DEEPEST: usize = 200;

impl Bars {
    /// How many levels there are.
    pub(in crate::report) fn level(&self) -> usize {
        self.0.len()
    }

    /// Goes back to a level.
    pub(in crate::report) fn back_to(&mut self, level: usize) {
        self.0.truncate(level);
    }

    /// Goes below a line with this mark.
    pub(in crate::report) fn below(&mut self, mark: Mark) {
        if let Mark::Beside { last } = mark {
            self.0.push(!last);
        }
    }

    /// What stands in front of a name in a line of so many columns. Where the name would have too few, `…` stands for the
    /// outer levels.
    fn drawn(&self, mark: Mark, columns: Option<usize>) -> String {
        let most =
            columns.map_or(DEEPEST, |columns| columns.saturating_sub(LEAST_NAME).max(columns / 2) / LEVEL);
        let bar = |goes_on: &bool| if *goes_on { "│ " } else { "  " };
        let missing = self.level().saturating_sub(most);
        let outer = if missing > 0 { "… " } else { "" };
        let inner = self.0.iter().skip(missing + usize::from(missing > 0)).map(bar);
        std::iter::once(outer).chain(inner).chain([mark.text()]).collect()
    }

    /// The line of a node in so many columns.
    pub(in crate::report) fn node(&self, mark: Mark, label: &Label<'_>, columns: Option<usize>) -> String {
        let drawn = self.drawn(mark, columns);
        let room = columns.map(|columns| columns.saturating_sub(measure_text_width(&drawn)));
        format!("{DIM}{drawn}{DIM:#}{}", name(label, room))
    }

    /// A line that is about other lines.
    pub(in crate::report) fn remark(&self, mark: Mark, text: &str, columns: Option<usize>) -> String {
        format!("{DIM}{}{text}{DIM:#}", self.drawn(mark, columns))
    }
}

/// The name of a node in its colour, in so many columns.
pub(in crate::report) fn name(label: &Label<'_>, columns: Option<usize>) -> String {
    const INLINED: &str = " (inlined)";
    let remark = if label.inlined { INLINED } else { "" };
    let style = style(label.category);
    let text = match columns.map(|columns| columns.saturating_sub(remark.len())) {
        None => one_line(&label.text),
        // The end of a process's name is its id.
        Some(columns) if label.category == Category::Heading => {
            let text = one_line(&label.text);
            if measure_text_width(&text) <= columns { text } else { middle(&text, columns).into() }
        }
        Some(columns) => narrow(&label.text, columns),
    };
    format!("{style}{text}{style:#}{DIM}{remark}{DIM:#}")
}

/// Both ends of `text`, in so many columns.
pub(in crate::report) fn middle(text: &str, columns: usize) -> String {
    if measure_text_width(text) <= columns {
        return text.to_owned();
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += measure_text_width(c.encode_utf8(&mut [0; 4])).max(1);
        width <= columns / 2
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    let end: String = end.into_iter().rev().collect();
    let start = truncate_str(text, columns.saturating_sub(measure_text_width(&end)), "…");
    format!("{start}{end}")
}
