//! The styles of a report.

use anstyle::{Ansi256Color, Color, Style};

use crate::profile::Category;
use crate::report::colours::{self, HOT, WARM};

/// What is beside the matter.
pub(in crate::report) const DIM: Style = Style::new().dimmed();
/// The head of a table.
pub(in crate::report) const HEAD: Style = Style::new().bold();

const fn colour(number: u8) -> Style {
    Style::new().fg_color(Some(Color::Ansi256(Ansi256Color(number))))
}

/// The style of a kind of code.
pub(super) fn style(category: Category) -> Style {
    colours::of(category).terminal.map_or(HEAD, colour)
}

/// The style of an exclusive share, in percent.
pub(super) fn heat(share: f64) -> Style {
    match share.abs() {
        10.0.. => colour(HOT).bold(),
        2.0.. => colour(WARM),
        _ => Style::new(),
    }
}
