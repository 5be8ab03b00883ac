//! How much of a change chance explains.
//!
//! The number of samples that hit a function is taken for a Poisson variable: a second, equal run has about as many, give
//! or take the square root. Runs of one program differ more than that, and where there are several on a side, what they
//! differ by counts ([`dispersion`]). Many functions are compared at once, so each must differ by more than the least
//! likely of so many would.

/// How sure the bounds of a growth are, and that a change among all of a comparison is none by chance.
pub const CONFIDENCE: f64 = 0.99;

/// The standard deviations of [`CONFIDENCE`], on both sides together.
const DEVIATIONS: f64 = 2.576;

/// Between what a growth lies, as shares of the former amount: 0.1 is 10 % more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most; infinite from nothing.
    pub high: f64,
}

/// By how much counts of runs differ more than chance alone explains: the variance over the mean, at least 1. Each run has
/// a count and a weight, which is its share in all.
pub(super) fn dispersion(sides: &[Vec<(i64, f64)>]) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for runs in sides {
        let all: f64 = runs.iter().map(|(count, _)| *count as f64).sum();
        let weights: f64 = runs.iter().map(|(_, weight)| weight).sum();
        if runs.len() < 2 || all <= 0.0 || weights <= 0.0 {
            continue;
        }
        for (count, weight) in runs {
            let expected = (all * weight / weights).max(f64::MIN_POSITIVE);
            squares += (*count as f64 - expected).powi(2) / expected;
        }
        freedom += (runs.len() - 1) as f64;
    }
    if freedom > 0.0 { (squares / freedom).max(1.0) } else { 1.0 }
}

/// Two counts, of which the first is multiplied by `scale` to be comparable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) before: i64,
    pub(super) after: i64,
    pub(super) scale: f64,
    pub(super) dispersion: f64,
}

impl Counts {
    /// True if they differ by more than chance explains, among so many comparisons.
    ///
    /// If nothing changed, each sample of both sides is of the second one with the same probability, which the scale says.
    /// Chernoff's bound limits how likely a share at least as far from it is, on either side: exp(-n D), with D the divergence
    /// of the two shares.
    pub(super) fn differ(self, comparisons: usize) -> bool {
        let Counts { before, after, scale, dispersion } = self;
        let (before, after) = (before.max(0) as f64, after.max(0) as f64);
        let all = before + after;
        if all <= 0.0 {
            return false;
        }
        let term = |is: f64, expected: f64| if is > 0.0 { is * (is / expected).ln() } else { 0.0 };
        let divergence = term(after / all, scale / (1.0 + scale)) + term(before / all, 1.0 / (1.0 + scale));
        all * divergence / dispersion >= (2.0 * comparisons.max(1) as f64 / (1.0 - CONFIDENCE)).ln()
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

    /// How many samples each side needs for a growth by this share to be seen.
    pub(super) fn needed(self, growth: f64) -> i64 {
        let each = 2.0 * self.dispersion * (DEVIATIONS / growth.ln_1p()).powi(2);
        if each.is_finite() { each.ceil() as i64 } else { i64::MAX }
    }

    /// Counts of nothing are taken for half a sample.
    fn ratio(self) -> f64 {
        let count = |count: i64| (count as f64).max(0.5);
        count(self.after) / (self.scale * count(self.before)).max(f64::MIN_POSITIVE)
    }

    fn deviation(self) -> f64 {
        let count = |count: i64| (count as f64).max(0.5);
        DEVIATIONS * (self.dispersion * (1.0 / count(self.before) + 1.0 / count(self.after))).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, dispersion};

    fn counts(before: i64, after: i64) -> Counts {
        Counts { before, after, scale: 1.0, dispersion: 1.0 }
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
        assert!((dispersion(&[vec![(90, 1.0), (110, 1.0)]]) - 2.0).abs() < 1e-9);
        assert!((dispersion(&[vec![(90, 0.9), (110, 1.1)], vec![(5, 1.0)]]) - 1.0).abs() < 1e-9);
        assert!(!Counts { dispersion: 9.0, ..counts(1_000, 1_300) }.differ(1_000));
    }

    #[test]
    fn bounds_hold_the_growth() {
        let bounds = counts(10_000, 11_000).bounds();
        assert!(
            0.05 < bounds.low && bounds.low < 0.10 && 0.10 < bounds.high && bounds.high < 0.15,
            "{bounds:?}"
        );
        assert!(counts(0, 5).bounds().high.is_infinite());
        let needed = counts(0, 0).needed(0.05);
        assert!((5_000..6_000).contains(&needed), "{needed}");
        assert!(counts(needed, needed).uncertainty() < 0.0501);
    }
}
