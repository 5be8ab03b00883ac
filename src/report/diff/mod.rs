//! What changed between two profiles: a table of the changes, as text, JSON, CSV or Markdown, what came of conditions, and a
//! differential flame graph.

mod checked;
#[cfg(feature = "flamegraph")]
mod graph;
mod markdown;
mod tree;

use std::io::{self, Write};

use serde::Serialize;

use crate::compare::{Change, Comparison, Measure, Name, NameId, Names, Run, Step};
use crate::profile::{Arranged, Category, Metric};

pub use checked::{Checked, Grown};
#[cfg(feature = "flamegraph")]
pub use graph::write_graph;
pub use markdown::write_markdown;
pub use tree::{Branch, Tree};

use super::grid::{Csv, Grid};
use super::label::Labels;
use super::spelling::Spelling;
use super::text::{cell, count, json, milliseconds, nanoseconds};
use super::tree_data::Made;

/// The call tree of a recording, to be compared.
pub fn run(arranged: &Arranged, spelling: &Spelling<'_>, made: Made, names: &mut Names) -> Run {
    let mut known = rustc_hash::FxHashMap::default();
    let steps: Vec<Step> = arranged
        .counts
        .nodes()
        .map(|(id, node)| {
            let name = *known.entry(node.entry).or_insert_with(|| {
                let (label, key) = (spelling.label(node.entry), spelling.key(node.entry));
                let is_one_of_many =
                    label.category == Category::Heading || spelling.unnamed(node.entry).is_some();
                names.number(Name {
                    label: if is_one_of_many { key.clone() } else { label.text.into_owned() },
                    key,
                    category: label.category,
                    module: spelling.module(node.entry),
                })
            });
            let ns = arranged.values.node(id).map_or(0, |value| nanoseconds(value.exclusive()));
            Step { parent: node.parent.map(|parent| parent.0 as usize), name, samples: node.exclusive(), ns }
        })
        .collect();
    let Made { seconds, dispersion, shaped, .. } = made;
    Run { shaped: Some(shaped), dispersion, ..Run::new(steps, Some(seconds)) }
}

/// What a row of the table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A function. Processes, threads and remarks have a row only if samples end in them.
    Function,
    /// A module.
    Module,
    /// A kind of code.
    Category,
}

impl By {
    fn text(self) -> &'static str {
        match self {
            By::Function => "function",
            By::Module => "module",
            By::Category => "category",
        }
    }

    /// What a name belongs to; `None` for what has no row.
    fn key(self, names: &Names, id: NameId) -> Option<String> {
        let name = names.get(id)?;
        match self {
            // By its key: the kind of code of a method may differ.
            By::Function => Some(name.key.clone()),
            _ if name.category == Category::Heading => None,
            By::Module if name.module.is_empty() => Some("[no module]".to_owned()),
            By::Module => Some(name.module.clone()),
            By::Category => Some(name.category.text().to_owned()),
        }
    }
}

/// A table of changes. All counts are of samples.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// What is compared: `CPU time`, `blocked time`, ... For all but CPU time, counts of samples are microseconds.
    pub metric: &'static str,
    /// The samples of the first side.
    pub before: i64,
    /// The samples of the second side.
    pub after: i64,
    /// The time of `before` in ns.
    pub before_ns: i64,
    /// The time of `after` in ns.
    pub after_ns: i64,
    /// The runs of the first side.
    pub before_runs: usize,
    /// The runs of the second side.
    pub after_runs: usize,
    /// What samples of the first side are multiplied by to be comparable.
    pub scale: f64,
    /// The same for time: differs from `scale` if the sides were sampled at different intervals.
    pub scale_ns: f64,
    /// What a row is.
    pub by: By,
    /// By which samples rows are judged: `exclusive`, `inclusive` or `overweight`.
    pub sort: &'static str,
    /// True if all samples together changed by more than chance explains.
    pub significant: bool,
    /// The rows: what is no chance first, then the largest changes.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
    /// How many more changed by no more than chance explains, and were left out for that.
    pub noise: usize,
}

/// What became of a function.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is. It may come from a file, and hold anything.
    pub name: String,
    /// The module that the name begins with; empty for what is no code.
    pub module: String,
    /// The samples of the first side, by the table's `sort`; not scaled.
    pub before: i64,
    /// The samples of the second side.
    pub after: i64,
    /// `after` less the scaled `before`.
    pub delta: f64,
    /// The time of `before` in ns.
    pub before_ns: i64,
    /// The time of `after` in ns.
    pub after_ns: i64,
    /// `after_ns` less the scaled `before_ns`.
    pub delta_ns: f64,
    /// The growth in percent; `null` for what is new.
    pub percent: Option<f64>,
    /// The same at least and at most, with 99 % confidence; `null` where nothing bounds it.
    pub percent_low: Option<f64>,
    /// See `percent_low`.
    pub percent_high: Option<f64>,
    /// PerfView's overweight in percent; `null` for what is on one side only, and if all samples did not grow.
    pub overweight: Option<f64>,
    /// PerfView's responsibility in percent; `null` if all samples did not grow.
    pub responsibility: Option<f64>,
    /// PerfView's interest, 0 to 6.
    pub interest: u32,
    /// Chance does not explain it.
    pub significant: bool,
}

impl Row {
    fn new<K>(name: String, module: String, change: &Change<K>, measure: Measure) -> Row {
        let percent = |share: f64| Some(100.0 * share).filter(|percent| percent.is_finite());
        let base = change.after.samples(measure) as f64 - change.delta;
        Row {
            name,
            module,
            before: change.before.samples(measure),
            after: change.after.samples(measure),
            delta: change.delta,
            before_ns: change.before.ns(measure),
            after_ns: change.after.ns(measure),
            delta_ns: change.delta_ns,
            percent: percent(change.delta / base),
            percent_low: percent(change.bounds.low),
            percent_high: percent(change.bounds.high),
            overweight: change.overweight,
            responsibility: change.responsibility,
            interest: change.interest,
            significant: change.significant,
        }
    }

    /// `+12.3%`, `new` or `gone`.
    fn growth(&self) -> String {
        match (self.before, self.after, self.percent) {
            (0, 0, _) => String::new(),
            (0, ..) => "new".to_owned(),
            (_, 0, _) => "gone".to_owned(),
            (_, _, Some(percent)) => format!("{percent:+.1}%"),
            (_, _, None) => String::new(),
        }
    }

    /// The same, with a `~` in front where chance explains it.
    fn marked_growth(&self) -> String {
        let growth = self.growth();
        if self.significant || growth.is_empty() || self.delta == 0.0 { growth } else { format!("~{growth}") }
    }

    /// What it had, scaled, in ns.
    fn scaled_ns(&self) -> i64 {
        self.after_ns.saturating_sub(self.delta_ns as i64)
    }
}

/// Rows of PerfView's overweight report have at least this responsibility, in percent.
const RESPONSIBLE: f64 = 2.0;

impl Diff {
    /// A table of `comparison`, which is of `metric` and was made with the key of `by`.
    pub fn new(
        names: &Names,
        comparison: &Comparison<String>,
        metric: Metric,
        by: By,
        (before_runs, after_runs): (usize, usize),
    ) -> Diff {
        let measure = comparison.measure;
        let by_key: rustc_hash::FxHashMap<&str, &Name> =
            names.all().map(|(_, name)| (name.key.as_str(), name)).collect();
        let mut rows = Vec::with_capacity(comparison.rows.len());
        // What only calls others has nothing of its own that could change.
        let has_any = |change: &&Change<String>| {
            [change.before, change.after].iter().any(|amount| amount.samples(measure) != 0)
        };
        for change in comparison.rows.iter().filter(has_any) {
            let (name, module) = match (by, by_key.get(change.key.as_str())) {
                (By::Function, Some(name)) => {
                    let is_heading = name.category == Category::Heading;
                    if is_heading && change.before.exclusive == 0 && change.after.exclusive == 0 {
                        continue;
                    }
                    (name.label.clone(), name.module.clone())
                }
                (By::Module, _) => (change.key.clone(), change.key.clone()),
                _ => (change.key.clone(), String::new()),
            };
            rows.push(Row::new(name, module, change, measure));
        }
        let mut diff = Diff {
            metric: metric.name,
            before: comparison.before,
            after: comparison.after,
            before_ns: comparison.before_ns,
            after_ns: comparison.after_ns,
            before_runs,
            after_runs,
            scale: comparison.factor.samples,
            scale_ns: comparison.factor.time,
            by,
            sort: match measure {
                Measure::Exclusive => "exclusive",
                Measure::Inclusive => "inclusive",
                Measure::Overweight => "overweight",
            },
            significant: comparison.total.significant,
            rows,
            left_out: 0,
            noise: 0,
        };
        if measure == Measure::Overweight {
            diff.leave_out(|row| row.responsibility.is_none_or(|share| share.abs() < RESPONSIBLE));
        }
        diff
    }

    /// Leaves out what chance explains.
    #[must_use]
    pub fn without_noise(mut self) -> Diff {
        self.leave_out(|row| !row.significant);
        self
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Diff {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }

    fn leave_out(&mut self, is_out: impl Fn(&Row) -> bool) {
        self.noise += self.rows.iter().filter(|row| is_out(row) && row.delta != 0.0).count();
        self.rows.retain(|row| !is_out(row));
    }

    /// What to say where no row is left.
    fn nothing(&self) -> String {
        let more =
            if self.noise > 0 && self.sort != "overweight" { " by more than chance explains" } else { "" };
        format!("no {} changed{more}", self.by.text())
    }

    /// What is to be said below the rows: what a mark means, and what is not there.
    fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.sort != "overweight" && self.rows.iter().any(|row| row.marked_growth().starts_with('~')) {
            lines.push("~ within noise".to_owned());
        }
        let rows = |number: usize| {
            format!("… {} more {}", count(number as u64), if number == 1 { "row" } else { "rows" })
        };
        if self.left_out > 0 {
            lines.push(format!("{} (-n 0 shows all)", rows(self.left_out)));
        }
        match (self.noise, self.sort) {
            (0, _) => {}
            (noise, "overweight") => {
                lines.push(format!("{} with less than {RESPONSIBLE}% responsibility", rows(noise)));
            }
            (noise, _) => lines.push(format!("{} changed within noise (--noise shows them)", rows(noise))),
        }
        lines
    }

    /// `25,123 samples (25.1 s) before, 26,200 (26.2 s) after: +4.3%`.
    fn head(&self) -> String {
        let side = |samples: i64, ns: i64, runs: usize| {
            let runs = if runs == 1 { String::new() } else { format!(" in {runs} runs") };
            if self.metric != Metric::CPU.name {
                return format!("{} ms {}{runs}", milliseconds(ns / 100), self.metric);
            }
            format!("{} samples, {} ms{runs}", count(samples.unsigned_abs()), milliseconds(ns / 100))
        };
        let (before, after) = (
            side(self.before, self.before_ns, self.before_runs),
            side(self.after, self.after_ns, self.after_runs),
        );
        let base = self.scale_ns * self.before_ns as f64;
        let growth = 100.0 * (self.after_ns as f64 / base - 1.0);
        let growth = match (self.before_ns, self.after_ns) {
            (0, 0) => "no samples".to_owned(),
            (0, _) => "no samples before".to_owned(),
            (_, 0) => "no samples after".to_owned(),
            _ if self.significant || growth == 0.0 => format!("{growth:+.1}%"),
            _ => format!("{growth:+.1}%, within noise"),
        };
        let scale = match self.scale_ns {
            1.0 => String::new(),
            scale => format!("; the first side counts {scale:.3} times"),
        };
        format!("before: {before}\nafter:  {after}\ntotal:  {growth}{scale}")
    }
}

fn percent(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| format!("{number:.0}%"))
}

fn change_ms(ns: f64) -> String {
    let text = milliseconds(ns.abs() as i64 / 100);
    match ns {
        ns if ns > 0.0 => format!("+{text}"),
        ns if ns < 0.0 => format!("-{text}"),
        _ => text,
    }
}

/// Writes a table, and the tree below it. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, diff: &Diff, tree: Option<&Tree>, width: Option<usize>) -> io::Result<()> {
    write_table(out, diff, width)?;
    let Some(tree) = tree else { return Ok(()) };
    writeln!(out)?;
    tree.write(out, width)
}

fn write_table(out: &mut impl Write, diff: &Diff, width: Option<usize>) -> io::Result<()> {
    writeln!(out, "{}\n", diff.head())?;
    if diff.rows.is_empty() {
        writeln!(out, "{}", diff.nothing())?;
    } else if diff.sort == "overweight" {
        let heads = ["interest", "overweight", "resp %", "change ms", "before ms", "after ms"];
        let mut grid = Grid::new(heads, diff.by.text());
        for row in &diff.rows {
            let cells = [
                row.interest.to_string(),
                percent(row.overweight),
                percent(row.responsibility),
                change_ms(row.delta_ns),
                milliseconds(row.scaled_ns() / 100),
                milliseconds(row.after_ns / 100),
            ];
            grid.row(cells, row.delta_ns.abs() as i64, &row.name);
        }
        grid.write(out, width)?;
    } else {
        let mut grid = Grid::new(["change ms", "change", "before ms", "after ms"], diff.by.text());
        for row in &diff.rows {
            let cells = [
                change_ms(row.delta_ns),
                row.marked_growth(),
                milliseconds(row.scaled_ns() / 100),
                milliseconds(row.after_ns / 100),
            ];
            grid.row(cells, row.delta_ns.abs() as i64, &row.name);
        }
        grid.write(out, width)?;
    }
    diff.rest().iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes a table as JSON, with what came of conditions and the tree.
pub fn write_json(
    out: &mut impl Write,
    diff: &Diff,
    conditions: &[Checked],
    tree: Option<&Tree>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Whole<'d> {
        #[serde(flatten)]
        diff: &'d Diff,
        conditions: &'d [Checked],
        #[serde(skip_serializing_if = "Option::is_none")]
        tree: Option<&'d Tree>,
    }
    json(out, &Whole { diff, conditions, tree })
}

/// Writes the rows of a table as CSV, with a head.
pub fn write_csv(out: &mut impl Write, diff: &Diff) -> io::Result<()> {
    const HEAD: [&str; 15] = [
        "name",
        "module",
        "before",
        "after",
        "delta",
        "before_ns",
        "after_ns",
        "delta_ns",
        "percent",
        "percent_low",
        "percent_high",
        "overweight",
        "responsibility",
        "interest",
        "significant",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &diff.rows {
        let (name, module) = (cell(&row.name).into_owned(), cell(&row.module).into_owned());
        csv.row(&Row { name, module, ..row.clone() })?;
    }
    csv.finish()
}

impl By {
    /// Compares by it: what belongs to no row has no key.
    pub fn key_of(self, names: &Names) -> impl Fn(NameId) -> Option<String> + '_ {
        move |id| self.key(names, id)
    }
}
