//! Conditions that a comparison must keep, so that a build can refuse what got slower.

use rustc_hash::FxHashSet;

use crate::profile::{Category, Matcher};

use super::change::{Change, Comparison, Measure};
use super::noise::{Counts, Needed};
use super::scale::{Scale, ScaleError};
use super::side::{NameId, Names, Side};

/// What must not grow, and by how much: `Orders.*: +5%`, `total: +2%`, `app!Parse: +1.5pp`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was typed.
    pub text: String,
    /// The functions, counted together; `None` for all samples.
    pub functions: Option<Matcher>,
    /// From which growth on it fails.
    pub limit: Growth,
}

/// A growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// By this share of the former amount: 0.05 is 5 %.
    Share(f64),
    /// By this share of all samples: 0.01 is one percentage point.
    Points(f64),
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// It has not the form.
    #[error("expected FUNCTION: +N%, such as 'Orders.*: +5%', 'total: +2%' or 'app!Parse: +1pp'")]
    Form,
    /// The function is no pattern.
    #[error("{0}")]
    Pattern(String),
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It grew by less.
    Passed,
    /// It grew by as much or more, and that is no chance.
    Failed,
    /// Nobody can tell: there is too little of this.
    TooLittle(Needed),
    /// No function of either side matches, or the second side has no samples of them.
    NotFound,
}

/// What became of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether it holds.
    pub verdict: Verdict,
    /// The functions together, by inclusive samples; `None` if there are none.
    pub change: Option<Change<()>>,
    /// By how much they grew, in the terms of the limit.
    pub growth: f64,
    /// Those of the functions that grew most.
    pub functions: Vec<Change>,
    /// What calls the functions, and is none of them: those whose calls grew most.
    pub callers: Vec<Change>,
}

/// Functions and callers that are listed.
const LISTED: usize = 3;

impl Condition {
    /// Reads what somebody typed.
    ///
    /// # Errors
    /// [`ConditionError`] where it is no condition.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let (functions, limit) = text.rsplit_once(':').ok_or(ConditionError::Form)?;
        let (functions, limit) = (functions.trim(), limit.trim());
        let number = |text: &str| {
            let number = text.trim_end().strip_prefix('+').and_then(|number| number.parse::<f64>().ok());
            number.filter(|number| number.is_finite() && *number > 0.0).map(|number| number / 100.0)
        };
        let limit = match (limit.strip_suffix('%'), limit.strip_suffix("pp")) {
            (Some(share), _) => number(share).map(Growth::Share),
            (_, Some(points)) => number(points).map(Growth::Points),
            _ => None,
        };
        let functions = match functions {
            "total" => None,
            functions => {
                let matcher = Matcher::parse(functions);
                Some(matcher.map_err(|error| ConditionError::Pattern(error.to_string()))?)
            }
        };
        Ok(Condition { text: text.to_owned(), functions, limit: limit.ok_or(ConditionError::Form)? })
    }

    /// Whether it holds between two sides.
    ///
    /// # Errors
    /// [`ScaleError`] where they cannot be made comparable.
    pub fn check(&self, names: &Names, sides: (&Side, &Side), scale: &Scale) -> Result<Outcome, ScaleError> {
        let compare = |key: &dyn Fn(NameId) -> Option<()>| {
            Comparison::new(names, sides, scale, Measure::Inclusive, key)
        };
        let Some(functions) = &self.functions else {
            let comparison = compare(&|_| None)?;
            let (verdict, growth) = self.judged(&comparison.total, &comparison);
            let change = Some(comparison.total);
            return Ok(Outcome { verdict, change, growth, functions: Vec::new(), callers: Vec::new() });
        };
        let is_code = |id: &NameId| names.get(*id).is_some_and(|name| name.category != Category::Heading);
        let wanted: FxHashSet<NameId> =
            names.matching(functions, sides).into_iter().filter(is_code).collect();
        let mut comparison = compare(&|name| wanted.contains(&name).then_some(()))?;
        let Some(change) = comparison.rows.pop() else {
            let (functions, callers) = (Vec::new(), Vec::new());
            return Ok(Outcome { verdict: Verdict::NotFound, change: None, growth: 0.0, functions, callers });
        };
        let (verdict, growth) = self.judged(&change, &comparison);
        let each = Comparison::new(names, sides, scale, Measure::Inclusive, |name| {
            wanted.contains(&name).then_some(name)
        })?;
        let callers = Comparison::of_calls(names, sides, scale, |caller, callee| {
            (wanted.contains(&callee) && !wanted.contains(&caller)).then_some(caller)
        })?;
        Ok(Outcome {
            verdict,
            change: Some(change),
            growth,
            functions: grown(each.rows),
            callers: grown(callers.rows),
        })
    }

    fn judged<K>(&self, change: &Change<()>, comparison: &Comparison<K>) -> (Verdict, f64) {
        let (before, after) = (change.before.inclusive, change.after.inclusive);
        let counts = Counts::new(before, after, &comparison.factor, change.dispersion);
        let base = comparison.factor.samples * before as f64;
        // In points, a growth by the limit is a larger share of what is a small part of all.
        let all = comparison.factor.samples * comparison.before as f64;
        let of_base = base.max(0.5);
        let (growth, limit) = match self.limit {
            Growth::Share(limit) => (change.delta / of_base, limit),
            Growth::Points(limit) => (change.delta / all.max(0.5), limit * all / of_base),
        };
        let share = change.delta / of_base;
        let bounds = change.bounds;
        // Symbols may be missing, or the program did not run: what is gone proves nothing.
        let verdict = if after <= 0 {
            Verdict::NotFound
        } else if bounds.low >= limit {
            Verdict::Failed
        } else if bounds.high < limit {
            Verdict::Passed
        } else if counts.uncertainty() > limit {
            Verdict::TooLittle(counts.needed(limit))
        } else if share >= limit && bounds.low > 0.0 {
            Verdict::Failed
        } else {
            Verdict::Passed
        };
        (verdict, growth)
    }
}

/// The rows that grew most.
fn grown(mut rows: Vec<Change>) -> Vec<Change> {
    rows.retain(|row| row.delta > 0.0);
    rows.sort_by(|a, b| b.delta.total_cmp(&a.delta).then_with(|| a.key.cmp(&b.key)));
    rows.truncate(LISTED);
    rows
}

#[cfg(test)]
mod tests {
    use super::{Condition, ConditionError, Growth};

    #[test]
    fn conditions_are_read() {
        for (text, functions, limit) in [
            ("Orders.*: +5%", Some("Orders.*"), Growth::Share(0.05)),
            ("total:+2%", None, Growth::Share(0.02)),
            ("app!a::b::c : +0.5 %", Some("app!a::b::c"), Growth::Share(0.005)),
            ("/^app!/: +1pp", Some("/^app!/"), Growth::Points(0.01)),
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(condition.functions.as_ref().map(|matcher| matcher.text()), functions, "{text}");
            assert_eq!(condition.limit, limit, "{text}");
        }
        for text in
            ["", "Orders", "Orders: 5%", "Orders: +5", "Orders: -5%", "Orders: +x%", "a: +0%", "a: +inf%"]
        {
            assert_eq!(Condition::parse(text), Err(ConditionError::Form), "{text}");
        }
        assert!(matches!(Condition::parse(": +5%"), Err(ConditionError::Pattern(_))));
        assert!(matches!(Condition::parse("/(/: +5%"), Err(ConditionError::Pattern(_))));
    }
}
