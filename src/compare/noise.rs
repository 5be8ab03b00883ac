//! How much of a change chance explains.
//!
//! The number of samples that hit a function is taken for a Poisson variable: a second, equal run has about as many, give
//! or take the square root. Runs of one program differ more than that, and where there are several on a side, what they
//! differ by counts ([`Dispersion`]). Many functions are compared at once, so each must differ by more than the least
//! likely of so many would.

/// How sure the bounds of a growth are, and that a change among all of a comparison is none by chance.
pub const CONFIDENCE: f64 = 0.99;

use super::scale::Factor;
use super::spread::Dispersion;

/// Between what a growth lies, as shares of the former amount: 0.1 is 10 % more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most; infinite from nothing.
    pub high: f64,
}

/// Two counts, of which the first is multiplied by `scale` to be comparable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    before: i64,
    after: i64,
    scale: f64,
    scale_variance: f64,
    dispersion: Dispersion,
}

/// What there is too little of to be sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Samples: each side needs about so many.
    Samples(i64),
    /// Runs: those of one side differ among themselves, and more samples of the same runs would not help.
    Runs,
    /// Samples of the function that sets the scale.
    Scale,
}

impl Counts {
    pub(super) fn new(before: i64, after: i64, factor: &Factor, dispersion: Dispersion) -> Counts {
        Counts { before, after, scale: factor.samples, scale_variance: factor.variance, dispersion }
    }

    /// True if they differ by more than chance explains, among so many comparisons.
    ///
    /// If nothing changed, each sample of both sides is of the second one with the same probability, which the scale says.
    /// Chernoff's bound limits how likely a share at least as far from it is, on either side: exp(-n D), with D the divergence
    /// of the two shares.
    pub(super) fn differ(self, comparisons: usize) -> bool {
        let Counts { before, after, scale, .. } = self;
        let (before, after) = (before.max(0) as f64, after.max(0) as f64);
        let all = before + after;
        if all <= 0.0 {
            return false;
        }
        let term = |is: f64, expected: f64| if is > 0.0 { is * (is / expected).ln() } else { 0.0 };
        let divergence = term(after / all, scale / (1.0 + scale)) + term(before / all, 1.0 / (1.0 + scale));
        let each = (1.0 - CONFIDENCE) / comparisons.max(1) as f64;
        // Half the square of as many standard deviations.
        let needed = (2.0 / each).ln().max(self.dispersion.deviations(each).powi(2) / 2.0);
        let chance = self.chance();
        all * divergence * chance / (self.dispersion.value * chance + self.scale_variance) >= needed
    }

    /// Between what the growth lies.
    pub(super) fn bounds(self) -> Bounds {
        let deviation = self.deviation();
        let ratio = self.ratio().ln();
        let high = if self.before > 0 { (ratio + deviation).exp() - 1.0 } else { f64::INFINITY };
        Bounds { low: (ratio - deviation).exp() - 1.0, high }
    }

    /// By what factor it can grow without anybody being sure, as a share.
    pub(super) fn uncertainty(self) -> f64 {
        self.deviation().exp() - 1.0
    }

    /// What is needed for a growth by this share to be seen.
    pub(super) fn needed(self, growth: f64) -> Needed {
        let by_chance = Counts { dispersion: Dispersion::CHANCE, ..self };
        let is_estimated = self.dispersion != Dispersion::CHANCE;
        if is_estimated
            && (by_chance.uncertainty() <= growth || self.deviation() > 2.0 * by_chance.deviation())
        {
            return Needed::Runs;
        }
        let deviations = by_chance.dispersion.deviations(1.0 - CONFIDENCE);
        let left = (growth.ln_1p() / deviations).powi(2) - self.scale_variance;
        let each = 2.0 / left;
        match each {
            ..=0.0 => Needed::Scale,
            each if each.is_finite() => Needed::Samples(each.ceil() as i64),
            _ => Needed::Scale,
        }
    }

    /// Counts of nothing are taken for half a sample.
    fn ratio(self) -> f64 {
        let count = |count: i64| (count as f64).max(0.5);
        count(self.after) / (self.scale * count(self.before)).max(f64::MIN_POSITIVE)
    }

    fn deviation(self) -> f64 {
        let variance = self.dispersion.value * self.chance() + self.scale_variance;
        self.dispersion.deviations(1.0 - CONFIDENCE) * variance.sqrt()
    }

    /// The variance of the logarithm of their ratio, by chance alone.
    fn chance(self) -> f64 {
        let count = |count: i64| (count as f64).max(0.5);
        1.0 / count(self.before) + 1.0 / count(self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Needed};
    use crate::compare::spread::Dispersion;

    fn counts(before: i64, after: i64) -> Counts {
        Counts { before, after, scale: 1.0, scale_variance: 0.0, dispersion: Dispersion::CHANCE }
    }

    #[test]
    fn a_change_must_be_larger_the_more_are_compared() {
        // Half of delta² / (sum of both) is 8.7.
        assert!(counts(1_000, 1_196).differ(1));
        assert!(!counts(1_000, 1_196).differ(100));
        assert!(counts(1_000, 1_300).differ(1_000));
        assert!(!counts(3, 9).differ(1));
        assert!(!counts(0, 0).differ(1));
        assert!(counts(0, 30).differ(100));
    }

    #[test]
    fn runs_that_differ_among_themselves_prove_less() {
        let of_runs =
            |value, freedom| Counts { dispersion: Dispersion { value, freedom }, ..counts(1_000, 1_300) };
        assert!(of_runs(1.0, 1e6).differ(1_000));
        assert!(!of_runs(9.0, 1e6).differ(1_000));
        assert!(!of_runs(1.0, 2.0).differ(1_000));
        assert_eq!(of_runs(9.0, 4.0).needed(0.2), Needed::Runs);
        assert_eq!(of_runs(9.0, 4.0).needed(0.01), Needed::Runs);
        assert!(matches!(of_runs(1.0, 20.0).needed(0.01), Needed::Samples(100_000..)));
    }

    #[test]
    fn what_sets_the_scale_has_noise_too() {
        // By a function with 20 samples on each side.
        let unsure = Counts { scale_variance: 0.1, ..counts(1_000, 1_300) };
        assert!(counts(1_000, 1_300).differ(1) && !unsure.differ(1));
        assert!(unsure.bounds().low < 0.0 && unsure.uncertainty() > 1.0);
        assert_eq!(unsure.needed(0.1), Needed::Scale);
    }

    #[test]
    fn bounds_hold_the_growth() {
        let bounds = counts(10_000, 11_000).bounds();
        assert!(
            0.05 < bounds.low && bounds.low < 0.10 && 0.10 < bounds.high && bounds.high < 0.15,
            "{bounds:?}"
        );
        assert!(counts(0, 5).bounds().high.is_infinite());
        let Needed::Samples(needed) = counts(0, 0).needed(0.05) else { panic!("no number") };
        assert!((5_000..6_000).contains(&needed), "{needed}");
        assert!(counts(needed, needed).uncertainty() < 0.0501);
    }
}
