//! Who calls a function, and whom it calls.

use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::profile::{self, Arranged, Matcher, Unit};

use super::grid::{Csv, Grid};
use super::named::{NameId, NamesOf};
use super::spelling::Spelling;
use super::table::grid_rest;
use super::text::{cell, count, json, milliseconds, nanoseconds, one_line, share, unit_cell, unit_head};

/// Which end of the calls is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What called the functions.
    Callers,
    /// What the functions called.
    Callees,
}

/// The calls of functions, or from them. A sample counts at most once in each row: rows are the callers in its stack, a
/// set. A function that calls itself is its own caller. What a function stands below is its caller, code or not: a
/// process, a thread, a remark.
#[derive(Clone, Debug, Serialize)]
pub struct Calls {
    /// The functions: what was asked for.
    #[serde(flatten)]
    pub of: Asked,
    /// The rows, most samples first; of rows with the same count, the name decides.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
    #[serde(skip)]
    side: Side,
    #[serde(skip)]
    unit: Unit,
}

/// Functions that were asked for, and all of their samples.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// The name that was asked for.
    pub function: String,
    /// The names that it matches: they are counted together.
    pub functions: Vec<String>,
    /// All samples.
    pub kept: i64,
    /// The samples with one of the functions in their stack.
    pub inclusive: i64,
    /// The samples that end in one of them.
    pub exclusive: i64,
    /// The time of `inclusive`, in ns.
    pub inclusive_ns: i64,
    /// The time of `exclusive`, in ns.
    pub exclusive_ns: i64,
}

/// What called the functions, or was called by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// As the tree shows it. It may come from a file, and hold anything.
    pub name: String,
    /// The module that the name begins with; empty for what is no code.
    pub module: String,
    /// The samples with such a call in their stack.
    pub samples: i64,
    /// Their time in ns.
    pub ns: i64,
}

/// No function has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no function matches {name}")]
pub struct NotFound {
    /// The name.
    pub name: String,
    /// Functions whose text contains it, most samples first.
    pub like: Vec<String>,
    /// The functions with the most samples of their own.
    pub hottest: Vec<String>,
}

impl Asked {
    /// Finds the functions of `arranged` that `matcher` means. `names` are theirs.
    ///
    /// # Errors
    /// [`NotFound`] where there are none.
    pub(super) fn find(
        arranged: &Arranged,
        names: &NamesOf,
        matcher: &Matcher,
    ) -> Result<(Asked, FxHashSet<NameId>), Box<NotFound>> {
        let found = matching(names, matcher);
        if found.is_empty() {
            return Err(Box::new(not_found(arranged, names, matcher.text())));
        }
        let is_one = |entry| names.of(entry).filter(|name| found.contains(name)).map(|_| ());
        let none =
            profile::Row { key: (), exclusive: 0, inclusive: 0, exclusive_value: 0, inclusive_value: 0 };
        let all = arranged.table(is_one).pop().unwrap_or(none);
        let mut functions: Vec<String> =
            found.iter().filter_map(|id| Some(names.get(*id)?.text.clone())).collect();
        functions.sort_unstable();
        let asked = Asked {
            function: matcher.text().to_owned(),
            functions,
            kept: arranged.counts.total(),
            inclusive: all.inclusive,
            exclusive: all.exclusive,
            inclusive_ns: nanoseconds(all.inclusive_value),
            exclusive_ns: nanoseconds(all.exclusive_value),
        };
        Ok((asked, found))
    }

    /// Writes which functions were found, and what they have.
    pub(super) fn write(&self, out: &mut impl Write, what: &str, unit: Unit) -> io::Result<()> {
        const SHOWN: usize = 10;
        let name = match self.functions.as_slice() {
            [one] => one_line(one).into_owned(),
            several => format!("{} functions", count(several.len() as u64)),
        };
        let (inclusive, exclusive) = (count_of(self.inclusive), count_of(self.exclusive));
        let of_all = share(self.inclusive, self.kept);
        if unit != Unit::Time {
            let amount = |counted| unit_cell(unit, counted, 0);
            let (inclusive, exclusive, kept) =
                (amount(self.inclusive), amount(self.exclusive), amount(self.kept));
            let unit = if unit == Unit::Bytes { " KiB" } else { "" };
            writeln!(
                out,
                "{what} {name}: {inclusive}{unit} inclusive ({of_all} of {kept}), {exclusive} exclusive"
            )?;
        } else {
            writeln!(
                out,
                "{what} {name}: {inclusive} samples inclusive ({of_all} of {}, {} ms), {exclusive} exclusive",
                count_of(self.kept),
                milliseconds(self.inclusive_ns / 100)
            )?;
        }
        if self.functions.len() > 1 {
            for function in self.functions.iter().take(SHOWN) {
                writeln!(out, "  {}", one_line(function))?;
            }
            if self.functions.len() > SHOWN {
                writeln!(out, "  … {} more", count((self.functions.len() - SHOWN) as u64))?;
            }
        }
        Ok(())
    }
}

fn count_of(samples: i64) -> String {
    super::text::signed(samples)
}

/// The names that are meant.
fn matching(names: &NamesOf, matcher: &Matcher) -> FxHashSet<NameId> {
    let matcher = matcher.among(names.all().map(|(_, name)| name.text.as_str()));
    names.all().filter(|(_, name)| matcher.matches_label(&name.text)).map(|(id, _)| id).collect()
}

fn not_found(arranged: &Arranged, names: &NamesOf, wanted: &str) -> NotFound {
    const SHOWN: usize = 5;
    let mut rows = arranged.table(|entry| names.of(entry));
    let word = wanted.trim_matches(['*', '/', '?']).to_lowercase();
    let mut first = |key: &dyn Fn(&profile::Row<NameId>) -> i64, is: &dyn Fn(&str) -> bool| -> Vec<String> {
        let text = |row: &profile::Row<NameId>| names.get(row.key).map(|name| name.text.clone());
        rows.sort_by_cached_key(|row| (Reverse(key(row)), text(row)));
        rows.iter().filter_map(text).filter(|text| is(text)).take(SHOWN).collect()
    };
    let like = first(&|row| row.inclusive, &|text| !word.is_empty() && text.to_lowercase().contains(&word));
    let hottest = first(&|row| row.exclusive, &|_| true);
    NotFound { name: wanted.to_owned(), like, hottest }
}

impl Calls {
    /// The callers or callees of the functions of `arranged` that `matcher` means.
    ///
    /// # Errors
    /// [`NotFound`] where there are none.
    pub fn new(
        arranged: &Arranged,
        spelling: &Spelling<'_>,
        matcher: &Matcher,
        side: Side,
    ) -> Result<Calls, Box<NotFound>> {
        let names = NamesOf::new(arranged, spelling);
        let (of, found) = Asked::find(arranged, &names, matcher)?;
        let calls = arranged.calls(|caller, callee| {
            let (caller, callee) = (names.of(caller)?, names.of(callee)?);
            let (asked, other) = match side {
                Side::Callers => (callee, caller),
                Side::Callees => (caller, callee),
            };
            found.contains(&asked).then_some(other)
        });
        let row = |counted: &profile::Row<NameId>| {
            let name = names.get(counted.key)?;
            Some(Row {
                name: name.text.clone(),
                module: name.module.clone(),
                samples: counted.inclusive,
                ns: nanoseconds(counted.inclusive_value),
            })
        };
        let mut rows: Vec<Row> = calls.iter().filter_map(row).collect();
        rows.sort_by(|a, b| (Reverse(a.samples), &a.name).cmp(&(Reverse(b.samples), &b.name)));
        Ok(Calls { of, rows, left_out: 0, side, unit: Unit::Time })
    }

    /// The same of values that are no time: rows have none then.
    #[must_use]
    pub fn in_unit(mut self, unit: Unit) -> Calls {
        self.unit = unit;
        if unit != Unit::Time {
            (self.of.inclusive_ns, self.of.exclusive_ns) = (0, 0);
            self.rows.iter_mut().for_each(|row| row.ns = 0);
        }
        self
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Calls {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }
}

/// Writes calls as a table; shares are of the samples with the functions. With the `width` of a terminal the lines of the
/// table end there, and bars show the shares.
pub fn write(out: &mut impl Write, calls: &Calls, width: Option<usize>) -> io::Result<()> {
    let (what, head) = match calls.side {
        Side::Callers => ("callers of", "caller"),
        Side::Callees => ("callees of", "callee"),
    };
    calls.of.write(out, what, calls.unit)?;
    // Bytes and events are what is counted.
    let heads = match calls.unit {
        Unit::Time => ["%", "samples", "ms"],
        unit => ["%", "", unit_head(unit)],
    };
    let mut grid = Grid::new(heads, head);
    for row in &calls.rows {
        let amount = unit_cell(calls.unit, row.samples, row.ns);
        let numbers = [share(row.samples, calls.of.inclusive), count_of(row.samples), amount];
        grid.row(numbers, row.samples, &row.name);
    }
    grid.write(out, width)?;
    grid_rest(out, calls.left_out)
}

/// Writes calls as JSON.
pub fn write_json(out: &mut impl Write, calls: &Calls) -> io::Result<()> {
    json(out, calls)
}

/// Writes the rows as CSV, with a head.
pub fn write_csv(out: &mut impl Write, calls: &Calls) -> io::Result<()> {
    let mut csv = Csv::new(out, &["name", "module", "samples", "ns"])?;
    for row in &calls.rows {
        let (name, module) = (cell(&row.name).into_owned(), cell(&row.module).into_owned());
        csv.row(&Row { name, module, ..*row })?;
    }
    csv.finish()
}
