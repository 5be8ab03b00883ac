//! Numbers in columns with a name behind them, as all tables have it.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use console::{measure_text_width, truncate_str};
use serde::Serialize;

use super::narrow::narrow;
use super::text::one_line;

const DIM: Style = Style::new().dimmed();

/// How wide the bar of the greatest row is.
const BAR: usize = 8;

/// What a name needs at least before there is a bar.
const NAME: usize = 32;

/// Rows of `N` numbers and a name. A column without a head is left out.
pub(super) struct Grid<'t, const N: usize> {
    heads: [&'static str; N],
    name: &'static str,
    rows: Vec<([String; N], i64, Cow<'t, str>)>,
    /// What stands behind the numbers is no name: it has no bar, and its end is cut where it is too long.
    is_text: bool,
}

impl<'t, const N: usize> Grid<'t, N> {
    /// A table with these heads.
    pub(super) fn new(heads: [&'static str; N], name: &'static str) -> Grid<'t, N> {
        Grid { heads, name, rows: Vec::new(), is_text: false }
    }

    /// The same with text instead of names.
    pub(super) fn cut_at_the_end(self) -> Self {
        Grid { is_text: true, ..self }
    }

    /// Adds a row, with what its bar shows.
    pub(super) fn row(&mut self, numbers: [String; N], size: i64, name: impl Into<Cow<'t, str>>) {
        self.rows.push((numbers, size, name.into()));
    }

    /// Writes all rows. With the `width` of a terminal, names become shorter to end there, and bars show the sizes.
    pub(super) fn write(&self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        let mut widths = self.heads.map(measure_text_width);
        for (numbers, ..) in &self.rows {
            for (width, number) in widths.iter_mut().zip(numbers) {
                *width = (*width).max(measure_text_width(number));
            }
        }
        let shown = || self.heads.iter().zip(&widths).filter(|(head, _)| !head.is_empty());
        let of_numbers = shown().map(|(_, width)| width + 2).sum::<usize>();
        let left = width.map(|width| width.saturating_sub(of_numbers));
        let bars = !self.is_text && left.is_some_and(|left| left >= NAME + BAR + 2);
        let of_name = left.map(|left| left - if bars { BAR + 2 } else { 0 });
        let greatest = self.rows.iter().map(|(_, size, _)| *size).max().unwrap_or(0);

        let columns = |numbers: [&str; N]| {
            let columns =
                numbers.iter().zip(&self.heads).zip(&widths).filter(|((_, head), _)| !head.is_empty());
            columns.map(|((number, _), width)| format!("{number:>width$}  ")).collect::<String>()
        };
        let gap = if bars { " ".repeat(BAR + 2) } else { String::new() };
        let head = format!("{}{gap}{}", columns(self.heads), self.name);
        writeln!(out, "{DIM}{head}{DIM:#}")?;
        for (numbers, size, name) in &self.rows {
            let numbers = columns(numbers.each_ref().map(String::as_str));
            let bar = if bars { format!("{DIM}{}{DIM:#}  ", bar(*size, greatest)) } else { String::new() };
            let name = match of_name {
                None => one_line(name),
                Some(0) => Cow::Borrowed(""),
                Some(columns) if self.is_text => {
                    truncate_str(&one_line(name), columns, "…").into_owned().into()
                }
                Some(columns) => narrow(name, columns),
            };
            writeln!(out, "{}", format!("{numbers}{bar}{name}").trim_end())?;
        }
        Ok(())
    }
}

/// The share of `size` in `greatest`, [`BAR`] columns wide, in eighths of a column.
fn bar(size: i64, greatest: i64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = size.max(0) as f64 / greatest.max(1) as f64;
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let (whole, rest) = (eighths / 8, EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    format!("{:<BAR$}", format!("{}{rest}", "█".repeat(whole)))
}

/// Rows of CSV behind a head. There may be none.
#[derive(Debug)]
pub(super) struct Csv<W: Write>(csv::Writer<W>);

impl<W: Write> Csv<W> {
    /// Writes the head.
    pub(super) fn new(out: W, head: &[&str]) -> io::Result<Csv<W>> {
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        csv.write_record(head).map_err(cause)?;
        Ok(Csv(csv))
    }

    /// Writes a row: the fields of `row`, in their order.
    pub(super) fn row(&mut self, row: &impl Serialize) -> io::Result<()> {
        self.0.serialize(row).map_err(cause)
    }

    /// Hands on what has been written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The error of the stream under it: whoever ends a pipe must be recognised.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, bar};

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(10, 10), "████████");
        assert_eq!(bar(5, 10), "████    ");
        // Four eighths of a column.
        assert_eq!(bar(5, 80), "▌       ");
        assert_eq!(bar(0, 0), "        ");
        assert_eq!(bar(-3, 10), "        ");
    }

    fn written(width: Option<usize>) -> Vec<String> {
        let mut grid = Grid::new(["%", "ms"], "function");
        grid.row(["50.0%".to_owned(), "1,000.0".to_owned()], 2, "orders!Surface::interpolate");
        grid.row(["5.0%".to_owned(), "100.0".to_owned()], 1, "a\u{1b}b");
        let mut out = Vec::new();
        grid.write(&mut out, width).unwrap();
        let text = console::strip_ansi_codes(std::str::from_utf8(&out).unwrap()).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_fit_their_widest_number_and_the_terminal() {
        let whole = [
            "    %       ms  function",
            "50.0%  1,000.0  orders!Surface::interpolate",
            " 5.0%    100.0  a?b",
        ];
        assert_eq!(written(None), whole);
        assert_eq!(written(Some(36))[1], "50.0%  1,000.0  orders!…interpolate");
        assert_eq!(written(Some(58))[1], "50.0%  1,000.0  ████████  orders!Surface::interpolate");
        assert_eq!(written(Some(58))[2], " 5.0%    100.0  ████      a?b");
        assert_eq!(written(Some(57))[2], " 5.0%    100.0  a?b");
        assert_eq!(written(Some(5))[1], "50.0%  1,000.0");
    }
}
