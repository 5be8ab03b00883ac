//! The samples of a function by source line, with the source beside them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::profile::{self, Arranged, Line, Matcher, Unit};

use super::calls::{Asked, NotFound};
use super::grid::{Csv, Grid};
use super::named::NamesOf;
use super::spelling::Spelling;
use super::table::grid_rest;
use super::text::{cell, json, milliseconds, nanoseconds, one_line, share};

/// Functions by source line. The sum of `exclusive` over all rows is that of the functions, as long as none is left out.
#[derive(Clone, Debug, Serialize)]
pub struct Lines {
    /// The functions: what was asked for.
    #[serde(flatten)]
    pub of: Asked,
    /// The lines, those with the most exclusive samples first, then those with the most inclusive ones; then file and line
    /// decide.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
    /// The source files that were found, by their paths in the symbols.
    #[serde(skip)]
    texts: FxHashMap<String, String>,
}

/// A source line of the functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The path of its file, as the symbols have it; `None` for the samples of code whose line is not known.
    pub file: Option<String>,
    /// Its number, from 1.
    pub line: Option<u32>,
    /// Its text, where the file was found.
    pub text: Option<String>,
    /// Where the file lies on the web, by SourceLink.
    pub url: Option<String>,
    /// The samples that end on it.
    pub exclusive: i64,
    /// The samples that end on it or in what was called from it; each once.
    pub inclusive: i64,
    /// The time of `exclusive`, in ns.
    pub exclusive_ns: i64,
    /// The time of `inclusive`, in ns.
    pub inclusive_ns: i64,
}

/// What was found of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its text.
    pub text: Option<String>,
    /// Where it lies on the web.
    pub url: Option<String>,
}

impl Lines {
    /// The lines of the functions that `matcher` means. `arranged` has nodes for lines, and `with_lines` spells them;
    /// `spelling` is the same without lines: functions are asked for without.
    ///
    /// # Errors
    /// [`NotFound`] where there are no such functions.
    pub fn new(
        arranged: &Arranged,
        spelling: &Spelling<'_>,
        with_lines: &Spelling<'_>,
        matcher: &Matcher,
    ) -> Result<Lines, Box<NotFound>> {
        let names = NamesOf::new(arranged, spelling);
        let (of, found) = Asked::find(arranged, &names, matcher)?;
        let rows = arranged.table(|entry| {
            let is_one = names.of(entry).is_some_and(|name| found.contains(&name));
            is_one.then(|| with_lines.line(entry))
        });
        let mut rows: Vec<Row> = rows.iter().map(Row::new).collect();
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        Ok(Lines { of, rows, left_out: 0, texts: FxHashMap::default() })
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Lines {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }

    /// Adds what `find` knows of the source files, each of which it is asked for once.
    #[must_use]
    pub fn with_sources(mut self, mut find: impl FnMut(&str) -> Source) -> Lines {
        let mut of_file: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (number, row) in self.rows.iter().enumerate() {
            if let Some(file) = &row.file {
                of_file.entry(file.clone()).or_default().push(number);
            }
        }
        for (file, rows) in of_file {
            let source = find(&file);
            let lines: Vec<&str> = source.text.as_deref().unwrap_or_default().lines().collect();
            for number in rows {
                if let Some(row) = self.rows.get_mut(number) {
                    row.url.clone_from(&source.url);
                    row.text = row.line.and_then(|line| text_of(&lines, line)).map(str::to_owned);
                }
            }
            self.texts.extend(source.text.map(|text| (file, text)));
        }
        self
    }

    /// The source files that were not found, the hottest first.
    pub fn files_without_text(&self) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        let files = self.rows.iter().filter_map(|row| row.file.as_deref());
        files.filter(|file| !self.texts.contains_key(*file) && seen.insert(*file)).collect()
    }
}

impl Row {
    fn new(counted: &profile::Row<Option<&Line>>) -> Row {
        Row {
            file: counted.key.map(|line| line.file.to_string()),
            line: counted.key.map(|line| line.line),
            text: None,
            url: None,
            exclusive: counted.exclusive,
            inclusive: counted.inclusive,
            exclusive_ns: nanoseconds(counted.exclusive_value),
            inclusive_ns: nanoseconds(counted.inclusive_value),
        }
    }

    fn key(&self) -> (Reverse<i64>, Reverse<i64>, Option<&str>, Option<u32>) {
        (Reverse(self.exclusive), Reverse(self.inclusive), self.file.as_deref(), self.line)
    }
}

fn text_of<'t>(lines: &[&'t str], number: u32) -> Option<&'t str> {
    lines.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

/// Writes the lines in the order of the source, the file with the hottest one first, and a few others between them. Shares
/// are of the samples with the functions. With the `width` of a terminal the lines of the table end there.
pub fn write(out: &mut impl Write, lines: &Lines, width: Option<usize>) -> io::Result<()> {
    lines.of.write(out, "lines of", Unit::Time)?;
    let mut files: Vec<(Option<&str>, Vec<&Row>)> = Vec::new();
    for row in &lines.rows {
        match files.iter_mut().find(|(file, _)| *file == row.file.as_deref()) {
            Some((_, rows)) => rows.push(row),
            None => files.push((row.file.as_deref(), vec![row])),
        }
    }
    // What has no line stands behind what has.
    files.sort_by_key(|(file, _)| file.is_none());
    for (file, mut rows) in files {
        rows.sort_by_key(|row| row.line);
        writeln!(out)?;
        writeln!(out, "{}", file.map_or(Cow::Borrowed("[no line]"), one_line))?;
        if let Some(url) = rows.iter().find_map(|row| row.url.as_deref()) {
            writeln!(out, "{}", one_line(url))?;
        }
        let text = file.and_then(|file| lines.texts.get(file)).map(String::as_str);
        one_file(out, &lines.of, &rows, text, width)?;
    }
    grid_rest(out, lines.left_out)
}

fn one_file(
    out: &mut impl Write,
    of: &Asked,
    rows: &[&Row],
    text: Option<&str>,
    width: Option<usize>,
) -> io::Result<()> {
    // So many lines between two hot ones are shown.
    const BETWEEN: u32 = 3;
    let source: Vec<&str> = text.unwrap_or_default().lines().collect();
    let mut grid = Grid::new(["excl %", "excl ms", "incl %", "incl ms", "line"], "source").cut_at_the_end();
    let quiet = |number: String| [String::new(), String::new(), String::new(), String::new(), number];
    let mut before: Option<u32> = None;
    for row in rows {
        let number = row.line.unwrap_or(0);
        if let Some(before) = before.filter(|_| text.is_some()) {
            let between = before.saturating_add(1)..number;
            if between.len() <= BETWEEN as usize {
                for number in between {
                    let text = text_of(&source, number).unwrap_or_default();
                    grid.row(quiet(number.to_string()), 0, without_tabs(text));
                }
            } else {
                grid.row(quiet("⋮".to_owned()), 0, "");
            }
        }
        before = row.line;
        let numbers = [
            share(row.exclusive, of.inclusive),
            milliseconds(row.exclusive_ns / 100),
            share(row.inclusive, of.inclusive),
            milliseconds(row.inclusive_ns / 100),
            row.line.map_or_else(|| "?".to_owned(), |line| line.to_string()),
        ];
        grid.row(numbers, 0, without_tabs(row.text.as_deref().unwrap_or_default()));
    }
    grid.write(out, width)
}

fn without_tabs(text: &str) -> Cow<'_, str> {
    if text.contains('\t') { text.replace('\t', "    ").into() } else { text.into() }
}

/// Writes lines as JSON.
pub fn write_json(out: &mut impl Write, lines: &Lines) -> io::Result<()> {
    json(out, lines)
}

/// Writes the rows as CSV, with a head.
pub fn write_csv(out: &mut impl Write, lines: &Lines) -> io::Result<()> {
    const HEAD: [&str; 8] =
        ["file", "line", "text", "url", "exclusive", "inclusive", "exclusive_ns", "inclusive_ns"];
    let mut csv = Csv::new(out, &HEAD)?;
    let text = |text: &Option<String>| text.as_deref().map(|text| cell(text).into_owned());
    for row in &lines.rows {
        let (file, source, url) = (text(&row.file), text(&row.text), text(&row.url));
        csv.row(&Row { file, text: source, url, ..*row })?;
    }
    csv.finish()
}
