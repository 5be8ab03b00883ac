//! What came of conditions, in words.

use serde::Serialize;

use crate::compare::{Change, Condition, Growth, Measure, Names, Needed, Outcome, Verdict};
use crate::report::text::{count, milliseconds, one_line};

use super::{Row, change_ms};

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
            Verdict::TooLittle(_) => "too_little",
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
        Verdict::TooLittle(Needed::Samples(needed)) => {
            let fewer = change.before.inclusive.min(change.after.inclusive);
            text += &format!(
                "; too few samples to tell +{limit}{unit}: {} on the smaller side, about {} are needed on each",
                count(fewer.max(0) as u64),
                count(needed.max(0) as u64)
            );
        }
        // One run a side of what is not samples.
        Verdict::TooLittle(Needed::Runs)
            if outcome.change.as_ref().is_some_and(|c| c.dispersion.freedom.is_infinite()) =>
        {
            text += &format!(
                "; the waits of one run are too few and too uneven to decide on +{limit}{unit}: more runs of each side are needed"
            );
        }
        Verdict::TooLittle(Needed::Runs) => {
            text += &format!(
                "; runs of one side differ too much among themselves to tell +{limit}{unit}: more runs of each side are \
                 needed, and more samples of these would not help"
            );
        }
        Verdict::TooLittle(Needed::Scale) => {
            text += &format!("; the function of --scale has too few samples to tell +{limit}{unit}");
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
