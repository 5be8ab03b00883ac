//! What makes two sides comparable.

use rustc_hash::FxHashSet;

use crate::profile::Matcher;

use super::side::{Name, NameId, Names, Run, Side};

/// What makes both sides comparable.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Each run did the same work.
    #[default]
    Runs,
    /// Shares of all samples.
    Samples,
    /// Samples per second of the recording.
    Time,
    /// Samples for each sample of these functions.
    Function(Matcher),
}

/// Why both sides cannot be made comparable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// How long something was recorded is not known: it is a call tree that was saved without.
    #[error("a saved call tree does not say how long was recorded")]
    NoDuration,
    /// A side has no samples of the functions.
    #[error("no function matches {0} on both sides")]
    NoFunction(String),
    /// A side has no samples at all.
    #[error("one side has no samples")]
    NoSamples,
}

/// What the first side is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// For its CPU time.
    pub time: f64,
    /// For its samples: differs from `time` if the sides were sampled at different intervals.
    pub samples: f64,
    /// How sure it is: the variance of its logarithm. It rests on counts if a function sets the scale.
    pub variance: f64,
    /// How many samples each run of each side should have, in any unit.
    pub weights: [Vec<f64>; 2],
}

impl Scale {
    /// What the first side must be multiplied by.
    ///
    /// # Errors
    /// [`ScaleError`] where a side has nothing to go by.
    pub fn factor(&self, names: &Names, (before, after): (&Side, &Side)) -> Result<Factor, ScaleError> {
        let functions = match self {
            Scale::Function(wanted) => names.matching(wanted, (before, after)),
            _ => FxHashSet::default(),
        };
        let interval = before.runs.iter().chain(&after.runs).find_map(Run::interval).unwrap_or(1.0);
        let weigh = |side: &Side| -> Result<Vec<Weight>, ScaleError> {
            side.runs.iter().map(|run| self.weight(run, &functions, interval)).collect()
        };
        let (before, after) = (weigh(before)?, weigh(after)?);
        let sum = |weights: &[Weight], of: fn(&Weight) -> f64| weights.iter().map(of).sum::<f64>();
        let ratio = |of: fn(&Weight) -> f64| {
            let (before, after) = (sum(&before, of), sum(&after, of));
            if before > 0.0 && after > 0.0 { Ok(after / before) } else { Err(self.missing()) }
        };
        let variance = match self {
            Scale::Function(_) => [&before, &after].map(|side| 1.0 / sum(side, |weight| weight.counted)),
            // What they rest on is no chance, or less than that of any part of it.
            Scale::Runs | Scale::Samples | Scale::Time => [0.0; 2],
        };
        Ok(Factor {
            time: ratio(|weight| weight.time)?,
            samples: ratio(|weight| weight.samples)?,
            variance: variance.iter().sum(),
            weights: [before, after].map(|side| side.iter().map(|weight| weight.samples).collect()),
        })
    }

    fn missing(&self) -> ScaleError {
        match self {
            Scale::Runs | Scale::Samples | Scale::Time => ScaleError::NoSamples,
            Scale::Function(wanted) => ScaleError::NoFunction(wanted.text().to_owned()),
        }
    }

    /// What a run counts for; its samples are those that it would have at this `interval`.
    fn weight(&self, run: &Run, functions: &FxHashSet<NameId>, interval: f64) -> Result<Weight, ScaleError> {
        let at_interval = |time: f64| {
            let ratio = interval / run.interval().unwrap_or(interval);
            // Clocks that differ a little have the same interval.
            Weight {
                time,
                samples: if (ratio - 1.0).abs() < 1e-3 { time } else { time * ratio },
                counted: 0.0,
            }
        };
        Ok(match self {
            Scale::Runs => at_interval(1.0),
            Scale::Time => at_interval(run.seconds.ok_or(ScaleError::NoDuration)?),
            Scale::Samples => {
                let samples = run.samples() as f64;
                Weight { time: run.ns() as f64, samples, counted: samples }
            }
            Scale::Function(_) => {
                let rows = run.arranged.table(|name| functions.contains(&name).then_some(()));
                let row = rows.first().map(|row| (row.inclusive as f64, row.inclusive_value as f64));
                let (samples, time) = row.unwrap_or_default();
                Weight { time, samples, counted: samples }
            }
        })
    }
}

/// What a run counts for.
struct Weight {
    time: f64,
    samples: f64,
    /// The samples that this rests on.
    counted: f64,
}

impl Names {
    /// Those that `wanted` means: as everywhere, the exact label, else what matches. But an exact label that only one side
    /// has may be an overload that came or went, so that all that match count.
    pub fn matching(&self, wanted: &Matcher, (before, after): (&Side, &Side)) -> FxHashSet<NameId> {
        let is_exact = |name: &Name| name.label == wanted.text();
        let exact: Vec<NameId> = self.all().filter(|(_, name)| is_exact(name)).map(|(id, _)| id).collect();
        let has = |side: &Side| {
            let mut nodes = side.runs.iter().flat_map(|run| run.arranged.counts.nodes());
            nodes.any(|(_, node)| exact.contains(&node.entry))
        };
        let is_on_one_side = !(exact.is_empty() || has(before) && has(after));
        let labels = self.all().map(|(_, name)| name.label.as_str());
        let matcher = if is_on_one_side { wanted.clone() } else { wanted.among(labels) };
        let is_meant = |name: &Name| matcher.matches_label(&name.label) || is_on_one_side && is_exact(name);
        self.all().filter(|(_, name)| is_meant(name)).map(|(id, _)| id).collect()
    }
}
