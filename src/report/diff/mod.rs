//! What changed between two profiles: a table of the changes, as text, JSON, CSV or Markdown, what came of conditions, and a
//! differential flame graph.

#[cfg(feature = "flamegraph")]
mod graph;

use std::io::{self, Write};

use serde::Serialize;

use crate::compare::{
    Change, Comparison, Condition, Growth, Measure, Name, NameId, Names, Outcome, Run, Step, Verdict,
};
use crate::profile::{Arranged, Category};

#[cfg(feature = "flamegraph")]
pub use graph::write_graph;

use super::grid::{Csv, Grid};
use super::label::Labels;
use super::spelling::Spelling;
use super::table::grid_rest;
use super::text::{cell, count, json, milliseconds, nanoseconds, one_line};

/// The call tree of a recording of so many `seconds`, to be compared.
pub fn run(arranged: &Arranged, spelling: &Spelling<'_>, seconds: f64, names: &mut Names) -> Run {
    let mut known = rustc_hash::FxHashMap::default();
    let steps: Vec<Step> = arranged
        .counts
        .nodes()
        .map(|(id, node)| {
            let name = *known.entry(node.entry).or_insert_with(|| {
                let label = spelling.label(node.entry);
                names.number(Name {
                    key: spelling.key(node.entry),
                    category: label.category,
                    module: spelling.module(node.entry),
                    label: label.text.into_owned(),
                })
            });
            let ns = arranged.values.node(id).map_or(0, |value| nanoseconds(value.exclusive()));
            Step { parent: node.parent.map(|parent| parent.0 as usize), name, samples: node.exclusive(), ns }
        })
        .collect();
    Run::new(steps, Some(seconds))
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
    /// What everything of the first side is multiplied by to be comparable.
    pub scale: f64,
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

    /// What it had, scaled, in ns.
    fn scaled_ns(&self) -> i64 {
        self.after_ns.saturating_sub(self.delta_ns as i64)
    }
}

/// Rows of PerfView's overweight report have at least this responsibility, in percent.
const RESPONSIBLE: f64 = 2.0;

impl Diff {
    /// A table of `comparison`, which was made with the key of `by`.
    pub fn new(
        names: &Names,
        comparison: &Comparison<String>,
        by: By,
        (before_runs, after_runs): (usize, usize),
    ) -> Diff {
        let measure = comparison.measure;
        let by_key: rustc_hash::FxHashMap<&str, &Name> =
            names.all().map(|(_, name)| (name.key.as_str(), name)).collect();
        let mut rows = Vec::with_capacity(comparison.rows.len());
        for change in &comparison.rows {
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
            before: comparison.before,
            after: comparison.after,
            before_ns: comparison.before_ns,
            after_ns: comparison.after_ns,
            before_runs,
            after_runs,
            scale: comparison.scale,
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

    /// `25,123 samples (25.1 s) before, 26,200 (26.2 s) after: +4.3%`.
    fn head(&self) -> String {
        let side = |samples: i64, ns: i64, runs: usize| {
            let runs = if runs == 1 { String::new() } else { format!(" in {runs} runs") };
            format!("{} samples, {} ms{runs}", count(samples.unsigned_abs()), milliseconds(ns / 100))
        };
        let (before, after) = (
            side(self.before, self.before_ns, self.before_runs),
            side(self.after, self.after_ns, self.after_runs),
        );
        let growth = 100.0 * (self.after as f64 / (self.scale * self.before as f64) - 1.0);
        let chance = if self.significant || growth == 0.0 { "" } else { ", within noise" };
        let scale = match self.scale {
            1.0 => String::new(),
            scale => format!("; the first side counts {scale:.3} times"),
        };
        format!("before: {before}\nafter:  {after}\ntotal:  {growth:+.1}%{chance}{scale}")
    }
}

fn change_ms(ns: f64) -> String {
    let text = milliseconds(ns.abs() as i64 / 100);
    match ns {
        ns if ns > 0.0 => format!("+{text}"),
        ns if ns < 0.0 => format!("-{text}"),
        _ => text,
    }
}

/// Writes a table. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, diff: &Diff, width: Option<usize>) -> io::Result<()> {
    writeln!(out, "{}\n", diff.head())?;
    if diff.rows.is_empty() {
        let more = if diff.noise > 0 { " by more than chance explains" } else { "" };
        writeln!(out, "no {} changed{more}", diff.by.text())?;
    } else if diff.sort == "overweight" {
        let heads = ["interest", "overweight", "resp %", "change ms", "before ms", "after ms"];
        let mut grid = Grid::new(heads, diff.by.text());
        for row in &diff.rows {
            let percent =
                |number: Option<f64>| number.map_or(String::new(), |number| format!("{number:.0}%"));
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
                row.growth(),
                milliseconds(row.scaled_ns() / 100),
                milliseconds(row.after_ns / 100),
            ];
            grid.row(cells, row.delta_ns.abs() as i64, &row.name);
        }
        grid.write(out, width)?;
    }
    grid_rest(out, diff.left_out)?;
    let (count, rows) = (count(diff.noise as u64), if diff.noise == 1 { "row" } else { "rows" });
    match (diff.noise, diff.sort) {
        (0, _) => Ok(()),
        (_, "overweight") => {
            writeln!(out, "… {count} more {rows} with less than {RESPONSIBLE}% responsibility")
        }
        _ => writeln!(out, "… {count} more {rows} changed within noise (--noise shows them)"),
    }
}

/// Writes a table as JSON, with what came of conditions.
pub fn write_json(out: &mut impl Write, diff: &Diff, conditions: &[Checked]) -> io::Result<()> {
    #[derive(Serialize)]
    struct Whole<'d> {
        #[serde(flatten)]
        diff: &'d Diff,
        conditions: &'d [Checked],
    }
    json(out, &Whole { diff, conditions })
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

/// Writes a summary in Markdown, as build servers show it.
pub fn write_markdown(out: &mut impl Write, diff: &Diff, conditions: &[Checked]) -> io::Result<()> {
    let failed = conditions.iter().filter(|checked| checked.verdict != "passed").count();
    let verdict = match (conditions.len(), failed) {
        (0, _) => "CPU time compared".to_owned(),
        (_, 0) => "CPU time: all conditions hold".to_owned(),
        (all, failed) => format!("CPU time: {failed} of {all} conditions do not hold"),
    };
    writeln!(out, "### {verdict}\n")?;
    for line in diff.head().lines() {
        writeln!(out, "- {line}")?;
    }
    if !conditions.is_empty() {
        writeln!(out, "\n| condition | verdict | |\n|---|---|---|")?;
        for checked in conditions {
            let (condition, reason) = (code(&checked.condition), code(&checked.reason));
            writeln!(out, "| {condition} | {} | {reason} |", checked.verdict)?;
        }
    }
    if diff.rows.is_empty() {
        return writeln!(out, "\nNo {} changed by more than chance explains.", diff.by.text());
    }
    writeln!(
        out,
        "\n| change ms | change | before ms | after ms | {} |\n|--:|--:|--:|--:|---|",
        diff.by.text()
    )?;
    for row in &diff.rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            change_ms(row.delta_ns),
            row.growth(),
            milliseconds(row.scaled_ns() / 100),
            milliseconds(row.after_ns / 100),
            code(&row.name)
        )?;
    }
    match diff.noise {
        0 => Ok(()),
        noise => writeln!(out, "\n{} more changed within noise.", count(noise as u64)),
    }
}

/// A name as code in a cell of Markdown: no text ends the code or the cell.
fn code(text: &str) -> String {
    let text = one_line(text).replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}

/// A condition, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// As it was typed.
    pub condition: String,
    /// `passed`, `failed`, `too_little` or `not_found`.
    pub verdict: &'static str,
    /// Why, in words.
    pub reason: String,
    /// The growth in percent, or in percentage points where the condition is in those.
    pub growth: f64,
    /// The functions that grew most.
    pub functions: Vec<Grown>,
    /// The callers whose calls grew most.
    pub callers: Vec<Grown>,
}

/// What grew.
#[derive(Clone, Debug, Serialize)]
pub struct Grown {
    /// What it is.
    pub name: String,
    /// By how much, in ns.
    pub delta_ns: f64,
}

impl Checked {
    /// Says what came of a condition.
    pub fn new(names: &Names, condition: &Condition, outcome: &Outcome) -> Checked {
        let grown = |rows: &[Change]| {
            let of = |row: &Change| {
                Some(Grown { name: names.get(row.key)?.label.clone(), delta_ns: row.delta_ns })
            };
            rows.iter().filter_map(of).collect::<Vec<_>>()
        };
        let (functions, callers) = (grown(&outcome.functions), grown(&outcome.callers));
        let verdict = match outcome.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::TooLittle { .. } => "too_little",
            Verdict::NotFound => "not_found",
        };
        let reason = reason(condition, outcome, &functions, &callers);
        let (condition, growth) = (condition.text.clone(), 100.0 * outcome.growth);
        Checked { condition, verdict, reason, growth, functions, callers }
    }
}

fn reason(condition: &Condition, outcome: &Outcome, functions: &[Grown], callers: &[Grown]) -> String {
    let Some(change) = &outcome.change else { return "no function matches".to_owned() };
    let row = Row::new(String::new(), String::new(), change, Measure::Inclusive);
    let (unit, limit) = match condition.limit {
        Growth::Share(limit) => ("%", 100.0 * limit),
        Growth::Points(limit) => (" percentage points", 100.0 * limit),
    };
    let (before, after) = (milliseconds(row.scaled_ns() / 100), milliseconds(row.after_ns / 100));
    let mut text = match row.before {
        0 => format!("new: {after} ms"),
        _ => format!("{:+.1}{unit}: {before} ms to {after} ms", 100.0 * outcome.growth),
    };
    if let (Some(low), Some(high)) = (row.percent_low, row.percent_high) {
        text += &format!(" (with 99% confidence {low:+.1}% to {high:+.1}%)");
    }
    match outcome.verdict {
        Verdict::TooLittle { needed } => {
            let fewer = change.before.inclusive.min(change.after.inclusive);
            text += &format!(
                "; too few samples to tell +{limit}{unit}: {} on the smaller side, about {} are needed on each",
                count(fewer.max(0) as u64),
                count(needed.max(0) as u64)
            );
        }
        Verdict::Failed => {
            let list = |rows: &[Grown]| {
                let one = |row: &Grown| format!("{} {} ms", one_line(&row.name), change_ms(row.delta_ns));
                rows.iter().map(one).collect::<Vec<_>>().join(", ")
            };
            if !functions.is_empty() {
                text += &format!("; grew: {}", list(functions));
            }
            if !callers.is_empty() {
                text += &format!("; called by: {}", list(callers));
            }
        }
        Verdict::NotFound => text += "; the second side has none of it: are its symbols missing?",
        Verdict::Passed => {}
    }
    text
}

impl By {
    /// Compares by it: what belongs to no row has no key.
    pub fn key_of(self, names: &Names) -> impl Fn(NameId) -> Option<String> + '_ {
        move |id| self.key(names, id)
    }
}
