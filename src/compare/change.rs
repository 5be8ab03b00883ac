//! What each name has on both sides.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::prefix_tree::NodeId;
use crate::profile::Row;

use super::noise::{Bounds, Counts};
use super::scale::{Factor, Scale, ScaleError};
use super::side::{NameId, Names, Run, Side};
use super::spread::{Dispersion, Spread, Squares};
use super::together::Together;

/// By what a change is judged, and rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// The samples that end in it.
    #[default]
    Exclusive,
    /// The samples that end in it or below it.
    Inclusive,
    /// PerfView's overweight report: by how interesting a row is, of the inclusive samples.
    Overweight,
}

/// What a name has on one side, in all runs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The samples that end in it.
    pub exclusive: i64,
    /// The samples that end in it or below it.
    pub inclusive: i64,
    /// The time of `exclusive`, in ns.
    pub exclusive_ns: i64,
    /// The time of `inclusive`, in ns.
    pub inclusive_ns: i64,
}

/// What became of a name, or of whatever rows are of.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<K = NameId> {
    /// What it is.
    pub key: K,
    /// What it had.
    pub before: Amount,
    /// What it has.
    pub after: Amount,
    /// The samples that it has more, by the measure; `before` is scaled.
    pub delta: f64,
    /// Their time in ns.
    pub delta_ns: f64,
    /// How many times as much it grew as all samples did, in percent, of inclusive time; `None` if all samples did not grow,
    /// or if it is on one side only.
    pub overweight: Option<f64>,
    /// Its share in the growth of all samples, in percent, of inclusive time; `None` if these did not grow.
    pub responsibility: Option<f64>,
    /// PerfView's figure for how much it is worth a look, from 0 to 6.
    pub interest: u32,
    /// Chance does not explain it.
    pub significant: bool,
    /// Between what its growth lies.
    pub bounds: Bounds,
    /// How much runs of one side differ beyond chance.
    pub dispersion: Dispersion,
}

/// Two sides beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<K = NameId> {
    /// The samples of the first side.
    pub before: i64,
    /// The samples of the second side.
    pub after: i64,
    /// Their time in ns.
    pub before_ns: i64,
    /// Their time in ns.
    pub after_ns: i64,
    /// What everything of the first side is multiplied by.
    pub factor: Factor,
    /// By what the rows are judged.
    pub measure: Measure,
    /// All samples together.
    pub total: Change<()>,
    /// What changed and what did not: by `measure` what is no chance first, then the largest changes, either way.
    pub rows: Vec<Change<K>>,
}

/// What rows of one key have in each run.
#[derive(Debug, Default)]
struct Both {
    before: Vec<Amount>,
    after: Vec<Amount>,
}

impl<K: Clone + Eq + Hash + Ord> Comparison<K> {
    /// Compares two sides by `key`; what has none belongs to no row.
    ///
    /// # Errors
    /// [`ScaleError`] where they cannot be made comparable.
    pub fn new(
        names: &Names,
        (before, after): (&Side, &Side),
        scale: &Scale,
        measure: Measure,
        key: impl Fn(NameId) -> Option<K>,
    ) -> Result<Comparison<K>, ScaleError> {
        Comparison::of_rows(names, (before, after), scale, measure, |_, run| run.arranged.table(&key))
    }

    /// Compares the calls of two sides by `key`, which gets the caller and the callee of each: by the samples with such a
    /// call in their stack.
    ///
    /// # Errors
    /// [`ScaleError`] where they cannot be made comparable.
    pub fn of_calls(
        names: &Names,
        sides: (&Side, &Side),
        scale: &Scale,
        key: impl Fn(NameId, NameId) -> Option<K>,
    ) -> Result<Comparison<K>, ScaleError> {
        Comparison::of_rows(names, sides, scale, Measure::Inclusive, |_, run| run.arranged.calls(&key))
    }

    fn of_rows(
        names: &Names,
        (before, after): (&Side, &Side),
        scale: &Scale,
        measure: Measure,
        rows_of: impl Fn(usize, &Run) -> Vec<Row<K>>,
    ) -> Result<Comparison<K>, ScaleError> {
        let mut factor = scale.factor(names, (before, after))?;
        let runs = before.runs.iter().chain(&after.runs);
        let alone = runs.map(|run| run.dispersion).fold(1.0, f64::max);
        factor.variance *= alone;
        let judge = Judge {
            measure,
            totals: [factor.time * before.ns() as f64, after.ns() as f64],
            factor: factor.clone(),
        };
        let mut rows: FxHashMap<K, Both> = FxHashMap::default();
        let mut all = Both::default();
        let mut runs_seen = 0;
        for (runs, of) in
            [(&before.runs, Both::before as fn(&mut Both) -> &mut Vec<Amount>), (&after.runs, Both::after)]
        {
            for (number, run) in runs.iter().enumerate() {
                for row in rows_of(runs_seen, run) {
                    let amounts = of(rows.entry(row.key.clone()).or_default());
                    amounts.resize(number, Amount::default());
                    amounts.push(Amount::of(&row));
                }
                runs_seen += 1;
                let (exclusive, exclusive_ns) = (run.samples(), run.ns());
                of(&mut all).push(Amount {
                    exclusive,
                    inclusive: exclusive,
                    exclusive_ns,
                    inclusive_ns: exclusive_ns,
                });
            }
        }
        let comparisons = rows.len();
        let rows: Vec<(K, Both, Squares)> = rows
            .into_iter()
            .map(|(key, both)| {
                let squares = judge.squares(&both);
                (key, both, squares)
            })
            .collect();
        let spread = Spread::new(rows.iter().map(|(_, _, squares)| squares));
        let change = |(key, both, squares): (K, Both, Squares)| {
            judge.change(key, &both, spread.dispersion(&squares, alone), comparisons)
        };
        let mut rows: Vec<Change<K>> = rows.into_iter().map(change).collect();
        rows.sort_by(|a, b| measure.order(a, b).then_with(|| a.key.cmp(&b.key)));
        Ok(Comparison {
            before: before.samples(),
            after: after.samples(),
            before_ns: before.ns(),
            after_ns: after.ns(),
            measure,
            total: judge.change((), &all, Spread::default().dispersion(&judge.squares(&all), alone), 1),
            factor,
            rows,
        })
    }
}

impl Comparison<NodeId> {
    /// Compares two sides by the nodes of their call trees: by the samples in a node and below it.
    ///
    /// # Errors
    /// [`ScaleError`] where they cannot be made comparable.
    pub fn of_nodes(
        names: &Names,
        sides: (&Side, &Side),
        scale: &Scale,
        together: &Together,
    ) -> Result<Comparison<NodeId>, ScaleError> {
        Comparison::of_rows(names, sides, scale, Measure::Inclusive, |number, run| together.rows(number, run))
    }
}

impl Both {
    fn before(&mut self) -> &mut Vec<Amount> {
        &mut self.before
    }

    fn after(&mut self) -> &mut Vec<Amount> {
        &mut self.after
    }
}

impl Amount {
    fn of<K>(row: &Row<K>) -> Amount {
        Amount {
            exclusive: row.exclusive,
            inclusive: row.inclusive,
            exclusive_ns: row.exclusive_value,
            inclusive_ns: row.inclusive_value,
        }
    }

    fn sum(amounts: &[Amount]) -> Amount {
        amounts.iter().fold(Amount::default(), |sum, one| Amount {
            exclusive: sum.exclusive.saturating_add(one.exclusive),
            inclusive: sum.inclusive.saturating_add(one.inclusive),
            exclusive_ns: sum.exclusive_ns.saturating_add(one.exclusive_ns),
            inclusive_ns: sum.inclusive_ns.saturating_add(one.inclusive_ns),
        })
    }

    /// The samples that a measure counts.
    pub fn samples(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Exclusive => self.exclusive,
            Measure::Inclusive | Measure::Overweight => self.inclusive,
        }
    }

    /// Their time in ns.
    pub fn ns(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Exclusive => self.exclusive_ns,
            Measure::Inclusive | Measure::Overweight => self.inclusive_ns,
        }
    }
}

impl Measure {
    fn order<K>(self, a: &Change<K>, b: &Change<K>) -> std::cmp::Ordering {
        let number = |one: f64, other: f64| one.total_cmp(&other);
        match self {
            Measure::Overweight => {
                let overweight = |row: &Change<K>| row.overweight.unwrap_or(f64::NEG_INFINITY);
                let by_interest = Reverse(a.interest).cmp(&Reverse(b.interest));
                let by_overweight = || number(overweight(b), overweight(a));
                by_interest.then_with(by_overweight).then_with(|| number(a.delta_ns, b.delta_ns))
            }
            Measure::Exclusive | Measure::Inclusive => Reverse(a.significant)
                .cmp(&Reverse(b.significant))
                .then_with(|| number(b.delta.abs(), a.delta.abs()))
                // Of a function and what calls it, the function.
                .then_with(|| a.before.samples(self).cmp(&b.before.samples(self))),
        }
    }
}

/// Says what a change is worth.
struct Judge {
    measure: Measure,
    factor: Factor,
    /// The time of all samples of both sides, that of the first scaled.
    totals: [f64; 2],
}

impl Judge {
    fn change<K>(&self, key: K, both: &Both, dispersion: Dispersion, comparisons: usize) -> Change<K> {
        let (before, after) = (Amount::sum(&both.before), Amount::sum(&both.after));
        let (samples, ns) =
            (|amount: Amount| amount.samples(self.measure), |amount: Amount| amount.ns(self.measure));
        let counts = Counts::new(samples(before), samples(after), &self.factor, dispersion);
        let (overweight, responsibility) = self.weights_of(before, after);
        Change {
            key,
            before,
            after,
            delta: samples(after) as f64 - self.factor.samples * samples(before) as f64,
            delta_ns: ns(after) as f64 - self.factor.time * ns(before) as f64,
            interest: self.interest(overweight, responsibility, after),
            overweight,
            responsibility,
            significant: counts.differ(comparisons),
            bounds: counts.bounds(),
            dispersion,
        }
    }

    /// How the counts of the runs differ; a run that has none of it counts too.
    fn squares(&self, both: &Both) -> Squares {
        let samples = |amounts: &[Amount], weights: &[f64]| -> Vec<(i64, f64)> {
            let counts =
                amounts.iter().map(|amount| amount.samples(self.measure)).chain(std::iter::repeat(0));
            counts.zip(weights.iter().copied()).collect()
        };
        let [before, after] = &self.factor.weights;
        Squares::new(&[samples(&both.before, before), samples(&both.after, after)])
    }

    /// Overweight and responsibility, as PerfView has them: of inclusive time, in percent.
    fn weights_of(&self, before: Amount, after: Amount) -> (Option<f64>, Option<f64>) {
        let [all_before, all_after] = self.totals;
        let growth = all_after - all_before;
        // Scaled by all samples, they are equal but for rounding.
        if growth.abs() <= 1e-9 * all_after.abs().max(all_before.abs()) {
            return (None, None);
        }
        let base = self.factor.time * before.inclusive_ns as f64;
        let delta = after.inclusive_ns as f64 - base;
        let is_on_both = before.inclusive_ns != 0 && after.inclusive_ns != 0 && all_before != 0.0;
        let overweight = is_on_both.then(|| 100.0 * delta / (base * (all_after / all_before - 1.0)));
        (overweight, Some(100.0 * delta / growth))
    }

    fn interest(&self, overweight: Option<f64>, responsibility: Option<f64>, after: Amount) -> u32 {
        let (Some(overweight), Some(responsibility)) = (overweight, responsibility) else { return 0 };
        let share = after.inclusive_ns as f64 / self.totals[1];
        let reasons = [
            overweight.abs() > 110.0,
            responsibility.abs() > 5.0,
            responsibility.abs() > 20.0,
            responsibility.abs() > 100.0,
            share < 0.95,
            share < 0.75,
        ];
        reasons.into_iter().map(u32::from).sum()
    }
}
