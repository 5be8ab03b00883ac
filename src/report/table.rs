//! Where the time went, added up: by functions, modules, processes, threads, kinds of code or source lines, the greatest
//! first.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde::Serialize;

use crate::profile::{self, Arranged, Category, Entry, Remark, Unit};

use super::grid::{Csv, Grid};
use super::named::{Name, NamesOf};
use super::spelling::Spelling;
use super::text::{cell, json, nanoseconds, share, unit_cell};

/// What a row of the table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A function: all nodes of the tree with the same text. Processes, threads and remarks have a row only if samples end
    /// in them. Why threads waited and the types of what was allocated, where the tree has them, always have rows: the first.
    Function,
    /// A module: all functions whose text begins with it.
    Module,
    /// A process. The tree must have a node for each.
    Process,
    /// A thread. The tree must have a node for each.
    Thread,
    /// A kind of code.
    Category,
    /// A source line of a function. The tree must have [lines](crate::profile::Detail::lines).
    Line,
}

impl By {
    /// What a row is called.
    fn text(self) -> &'static str {
        match self {
            By::Function => "function",
            By::Module => "module",
            By::Process => "process",
            By::Thread => "thread",
            By::Category => "category",
            By::Line => "function (file:line)",
        }
    }

    /// What the row of all samples is called that end in what belongs to no other row.
    fn nothing(self) -> &'static str {
        match self {
            By::Function => "[no function]",
            By::Module => "[no module]",
            By::Process => "[no process]",
            By::Thread => "[no thread]",
            By::Category => "[no code]",
            By::Line => "[no line]",
        }
    }
}

/// Which count the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// The samples that end in a row.
    Exclusive,
    /// The samples that end in a row or in what was called from it.
    Inclusive,
}

/// A table of a profile. The sum of `exclusive` over all rows is `kept`, as long as none is left out.
#[derive(Clone, Debug, Serialize)]
pub struct Top {
    /// The samples that the table is of.
    pub kept: i64,
    /// What a row is of.
    pub by: By,
    /// What the rows are sorted by; of rows with the same count, the name decides.
    pub sort: Sort,
    /// The rows, the greatest first.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
    #[serde(skip)]
    unit: Unit,
}

/// A row of a [`Top`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it is of. It may come from a file, and hold anything.
    pub name: String,
    /// The module that the name begins with; empty for what is no code.
    pub module: String,
    /// The kind of code; `None` for modules, processes and threads, which may have several.
    pub category: Option<Category>,
    /// Of a source line, the path of its file as the symbols have it.
    pub file: Option<String>,
    /// Of a source line, its number.
    pub line: Option<u32>,
    /// Samples.
    pub exclusive: i64,
    /// Samples.
    pub inclusive: i64,
    /// The time of the samples in `exclusive`, in ns.
    pub exclusive_ns: i64,
    /// The time of the samples in `inclusive`, in ns.
    pub inclusive_ns: i64,
    /// It is what all samples below it are: it stands above code, whatever its own samples.
    #[serde(skip)]
    is_kind: bool,
}

impl Row {
    fn new<K>(name: impl Into<String>, counted: &profile::Row<K>) -> Row {
        Row {
            name: name.into(),
            exclusive: counted.exclusive,
            inclusive: counted.inclusive,
            exclusive_ns: nanoseconds(counted.exclusive_value),
            inclusive_ns: nanoseconds(counted.inclusive_value),
            ..Row::default()
        }
    }
}

impl Top {
    /// Adds up the nodes of `arranged`, whose text `spelling` makes.
    pub fn new(arranged: &Arranged, spelling: &Spelling<'_>, by: By, sort: Sort) -> Top {
        let rows = match by {
            By::Function => functions(arranged, spelling),
            By::Module => modules(arranged, spelling),
            By::Process | By::Thread => runners(arranged, spelling, by),
            By::Category => categories(arranged, spelling),
            By::Line => lines(arranged, spelling),
        };
        let mut top = Top { kept: arranged.counts.total(), by, sort, rows, left_out: 0, unit: Unit::Time };
        top.add_rest(arranged.values.total());
        top.rows.sort_by(|a, b| top.sort.key(a).cmp(&top.sort.key(b)));
        top
    }

    /// The same of values that are no time: rows have none then.
    #[must_use]
    pub fn in_unit(mut self, unit: Unit) -> Top {
        self.unit = unit;
        if unit != Unit::Time {
            self.rows.iter_mut().for_each(|row| (row.exclusive_ns, row.inclusive_ns) = (0, 0));
        }
        self
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Top {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }

    /// The samples that end in no row get one.
    fn add_rest(&mut self, total: i64) {
        let rest = self.kept - self.rows.iter().map(|row| row.exclusive).sum::<i64>();
        let rest_ns = nanoseconds(total) - self.rows.iter().map(|row| row.exclusive_ns).sum::<i64>();
        if rest == 0 && rest_ns == 0 {
            return;
        }
        let name = self.by.nothing();
        let there = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.rows.push(Row { name: name.to_owned(), ..Row::default() });
            self.rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(there) {
            row.exclusive += rest;
            row.exclusive_ns += rest_ns;
            // What ends in no row may have passed through this one.
            row.inclusive = (row.inclusive + rest).min(self.kept).max(row.exclusive);
            row.inclusive_ns = (row.inclusive_ns + rest_ns).min(nanoseconds(total)).max(row.exclusive_ns);
        }
    }
}

impl Sort {
    fn key(self, row: &Row) -> impl Ord + use<'_> {
        let (first, second) = match self {
            Sort::Exclusive => (row.exclusive, row.inclusive),
            Sort::Inclusive => (row.inclusive, row.exclusive),
        };
        (!row.is_kind, Reverse(first), Reverse(second), &row.name, row.file.as_deref(), row.line)
    }
}

fn of_name(name: &Name, counted: &profile::Row<impl Sized>) -> Row {
    Row {
        module: name.module.clone(),
        category: Some(name.category),
        is_kind: matches!(
            name.entry,
            Entry::Remark(Remark::Blocked(_) | Remark::Ready | Remark::Allocated(_))
        ),
        ..Row::new(name.text.as_str(), counted)
    }
}

fn functions(arranged: &Arranged, spelling: &Spelling<'_>) -> Vec<Row> {
    let names = NamesOf::new(arranged, spelling);
    let rows = arranged.table(|entry| names.of(entry));
    let row = |counted: &profile::Row<_>| Some(of_name(names.get(counted.key)?, counted));
    let is_shown = |row: &Row| row.category != Some(Category::Heading) || row.exclusive != 0 || row.is_kind;
    rows.iter().filter_map(row).filter(is_shown).collect()
}

fn lines(arranged: &Arranged, spelling: &Spelling<'_>) -> Vec<Row> {
    let names = NamesOf::new(arranged, spelling);
    let rows = arranged.table(|entry| names.of(entry).filter(|_| spelling.line(entry).is_some()));
    let row = |counted: &profile::Row<_>| {
        let name = names.get(counted.key)?;
        let line = spelling.line(name.entry)?;
        let (file, line) = (Some(line.file.to_string()), Some(line.line));
        Some(Row { file, line, ..of_name(name, counted) })
    };
    rows.iter().filter_map(row).collect()
}

fn modules(arranged: &Arranged, spelling: &Spelling<'_>) -> Vec<Row> {
    let names = NamesOf::new(arranged, spelling);
    let code = |entry| names.get(names.of(entry)?).filter(|name| name.category != Category::Heading);
    let rows = arranged.table(|entry| code(entry).map(|name| name.module.as_str()));
    let row = |counted: &profile::Row<&str>| match counted.key {
        "" => Row::new(By::Module.nothing(), counted),
        module => Row { module: module.to_owned(), ..Row::new(module, counted) },
    };
    rows.iter().map(row).collect()
}

fn categories(arranged: &Arranged, spelling: &Spelling<'_>) -> Vec<Row> {
    let names = NamesOf::new(arranged, spelling);
    let category = |entry| names.get(names.of(entry)?).map(|name| name.category);
    let rows = arranged.table(|entry| category(entry).filter(|category| *category != Category::Heading));
    let row = |counted: &profile::Row<Category>| Row {
        category: Some(counted.key),
        ..Row::new(counted.key.text(), counted)
    };
    rows.iter().map(row).collect()
}

fn runners(arranged: &Arranged, spelling: &Spelling<'_>, by: By) -> Vec<Row> {
    let is_wanted = |entry: &Entry| match entry {
        Entry::Process(_) => by == By::Process,
        Entry::Thread(..) => by == By::Thread,
        _ => false,
    };
    let rows = arranged.shares(|entry| Some(entry).filter(is_wanted));
    let row = |counted: &profile::Row<Entry>| {
        let own = spelling.text(counted.key);
        let name = match counted.key {
            Entry::Thread(process, _) => format!("{} {own}", spelling.text(Entry::Process(process))),
            _ => own,
        };
        Row::new(name, counted)
    };
    rows.iter().map(row).collect()
}

/// Writes a table. With the `width` of a terminal the lines end there, and bars show the shares.
pub fn write(out: &mut impl Write, top: &Top, width: Option<usize>) -> io::Result<()> {
    let [exclusive, inclusive] = match top.unit {
        Unit::Time => ["excl ms", "incl ms"],
        Unit::Bytes => ["excl KiB", "incl KiB"],
        Unit::Count => ["excl", "incl"],
    };
    let mut grid = Grid::new(["excl %", exclusive, "incl %", inclusive], top.by.text());
    for row in &top.rows {
        grid.row(
            [
                share(row.exclusive, top.kept),
                unit_cell(top.unit, row.exclusive, row.exclusive_ns),
                share(row.inclusive, top.kept),
                unit_cell(top.unit, row.inclusive, row.inclusive_ns),
            ],
            match top.sort {
                Sort::Exclusive => row.exclusive,
                Sort::Inclusive => row.inclusive,
            },
            &row.name,
        );
    }
    grid.write(out, width)?;
    grid_rest(out, top.left_out)
}

/// The line of the rows that were left out, and how to see them.
pub(super) fn grid_rest(out: &mut impl Write, rows: usize) -> io::Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let noun = if rows == 1 { "row" } else { "rows" };
    writeln!(out, "… {} more {noun} (-n 0 shows all)", super::text::count(rows as u64))
}

/// Writes a table as JSON.
pub fn write_json(out: &mut impl Write, top: &Top) -> io::Result<()> {
    json(out, top)
}

/// Writes the rows of a table as CSV, with a head.
pub fn write_csv(out: &mut impl Write, top: &Top) -> io::Result<()> {
    const HEAD: [&str; 9] = [
        "name",
        "module",
        "category",
        "file",
        "line",
        "exclusive",
        "inclusive",
        "exclusive_ns",
        "inclusive_ns",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &top.rows {
        csv.row(&Row {
            name: cell(&row.name).into_owned(),
            module: cell(&row.module).into_owned(),
            file: row.file.as_deref().map(|file| cell(file).into_owned()),
            ..row.clone()
        })?;
    }
    csv.finish()
}
