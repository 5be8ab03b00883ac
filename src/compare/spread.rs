//! How much runs of one program differ beyond chance, learnt from all rows of a comparison.
//!
//! Two or three runs of each side say little about one row, but many rows say much about the program. So a row's own
//! dispersion is drawn towards what rows of its size have, and counts for more runs than there are: the more alike the
//! rows are, the more. This is the moderated t statistic of G. K. Smyth, "Linear models and empirical Bayes methods for
//! assessing differential expression in microarray experiments" (2004).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

/// How much counts differ beyond chance, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// The variance over the mean; at least 1, which is chance alone.
    pub value: f64,
    /// The degrees of freedom; infinite where it is no estimate.
    pub freedom: f64,
}

impl Dispersion {
    /// Chance alone.
    pub const CHANCE: Dispersion = Dispersion { value: 1.0, freedom: f64::INFINITY };

    /// How many standard deviations something is away that chance reaches with this probability, on either side: the
    /// quantile of the t distribution, or of the normal one.
    pub(super) fn deviations(self, probability: f64) -> f64 {
        // More than that is as good as normal, and the quantile of the t distribution loses digits.
        const MANY: f64 = 1e4;
        let t = (self.freedom < MANY).then(|| StudentsT::new(0.0, 1.0, self.freedom).ok()).flatten();
        let tail = (probability / 2.0).clamp(1e-100, 0.5);
        -t.map_or_else(|| Normal::standard().inverse_cdf(tail), |t| t.inverse_cdf(tail))
    }
}

/// How the runs of each side differ in one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Squares {
    /// The squares of what counts differ from their means by, over those.
    sum: f64,
    /// The degrees of freedom.
    freedom: f64,
    /// The samples of a run, on average.
    mean: f64,
}

impl Squares {
    /// Each run has a count and a weight, which is its share in all runs of its side.
    pub(super) fn new(sides: &[Vec<(i64, f64)>]) -> Squares {
        let mut squares = Squares::default();
        let (mut samples, mut number) = (0.0, 0.0);
        for runs in sides {
            let all: f64 = runs.iter().map(|(count, _)| *count as f64).sum();
            let weights: f64 = runs.iter().map(|(_, weight)| weight).sum();
            if runs.len() < 2 || all <= 0.0 || weights <= 0.0 {
                continue;
            }
            for (count, weight) in runs {
                let expected = (all * weight / weights).max(f64::MIN_POSITIVE);
                squares.sum += (*count as f64 - expected).powi(2) / expected;
            }
            squares.freedom += (runs.len() - 1) as f64;
            (samples, number) = (samples + all, number + runs.len() as f64);
        }
        squares.mean = if number > 0.0 { samples / number } else { 0.0 };
        squares
    }
}

/// What all rows say about the dispersion of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    /// By how much runs differ beyond chance, as the square of a share: the dispersion of `mean` samples is
    /// 1 + `share` * `mean`.
    share: f64,
    /// For how many degrees of freedom that counts; 0 if rows are too few to say.
    freedom: f64,
}

/// A row with fewer samples in a run says nothing about what is no chance.
const LEAST_MEAN: f64 = 5.0;
/// Fewer rows say nothing about another one.
const LEAST_ROWS: usize = 20;

impl Spread {
    /// Learns from rows.
    pub(super) fn new<'s>(rows: impl Iterator<Item = &'s Squares>) -> Spread {
        let rows: Vec<&Squares> = rows.filter(|row| row.freedom > 0.0 && row.mean >= LEAST_MEAN).collect();
        if rows.len() < LEAST_ROWS {
            return Spread::default();
        }
        let sum = |of: fn(&Squares) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
        let beyond = sum(|row| row.sum - row.freedom) / sum(|row| row.freedom * row.mean);
        let spread = |freedom: f64| Spread { share: beyond.max(0.0), freedom };
        // The likeliest of these: how alike rows are is seen no better than that.
        let likelihood = |spread: &Spread| rows.iter().map(|row| spread.likelihood(row)).sum::<f64>();
        let spreads = [3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 1e3].map(spread);
        let likeliest = spreads.into_iter().max_by(|a, b| likelihood(a).total_cmp(&likelihood(b)));
        likeliest.unwrap_or_default()
    }

    /// The dispersion that a row of so many samples has most often: of the scaled inverse chi-squared distribution whose
    /// mean `share` is about.
    fn usual(&self, mean: f64) -> f64 {
        (1.0 + self.share * mean) * (self.freedom - 2.0) / self.freedom
    }

    /// The logarithm of how likely a row is, but for what does not depend on the spread: its mean square over the usual one
    /// has an F distribution.
    fn likelihood(&self, row: &Squares) -> f64 {
        let (own, prior, usual) = (row.freedom, self.freedom, self.usual(row.mean));
        ln_gamma((own + prior) / 2.0)
            - ln_gamma(prior / 2.0)
            - own / 2.0 * (prior * usual).ln()
            - (own + prior) / 2.0 * (row.sum / (usual * prior)).ln_1p()
    }

    /// The dispersion of a row; `alone` is that of one run, where there are no others to compare it with.
    pub(super) fn dispersion(&self, row: &Squares, alone: f64) -> Dispersion {
        if row.freedom <= 0.0 {
            return Dispersion { value: alone.max(1.0), ..Dispersion::CHANCE };
        }
        let freedom = row.freedom + self.freedom;
        let usual = if self.freedom > 0.0 { self.usual(row.mean) } else { 0.0 };
        Dispersion { value: ((self.freedom * usual + row.sum) / freedom).max(1.0), freedom }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dispersion, Spread, Squares};

    fn own(sides: &[Vec<(i64, f64)>]) -> Dispersion {
        Spread::default().dispersion(&Squares::new(sides), 1.0)
    }

    #[test]
    fn runs_that_differ_among_themselves_prove_less() {
        let two = own(&[vec![(90, 1.0), (110, 1.0)]]);
        assert!((two.value - 2.0).abs() < 1e-9 && two.freedom == 1.0, "{two:?}");
        let weighted = own(&[vec![(90, 0.9), (110, 1.1)], vec![(5, 1.0)]]);
        assert!((weighted.value - 1.0).abs() < 1e-9, "{weighted:?}");
        assert_eq!(own(&[vec![(5, 1.0)], vec![(9, 1.0)]]), Dispersion::CHANCE);
    }

    /// The quantiles are those of printed tables.
    #[test]
    fn few_runs_prove_little() {
        for (freedom, probability, deviations) in [
            (1.0, 0.01, 63.657),
            (2.0, 0.01, 9.925),
            (4.0, 0.01, 4.604),
            (8.0, 0.001, 5.041),
            (30.0, 0.01, 2.750),
            (2.0, 0.001, 31.599),
            (f64::INFINITY, 0.01, 2.576),
        ] {
            let is = Dispersion { value: 1.0, freedom }.deviations(probability);
            assert!((is - deviations).abs() < 0.001, "{freedom} {probability}: {is}");
        }
        let far = Dispersion { value: 1.0, freedom: 4.0 }.deviations(1e-8);
        assert!(far > 100.0 && far.is_finite(), "{far}");
    }

    /// Rows of a program whose runs differ by 10 % and by nothing else: each is known as well as all of them.
    #[test]
    fn rows_learn_from_each_other() {
        let row = |number: i64, apart: i64| {
            let mean = 1_000 + 10 * number;
            Squares::new(&[vec![(mean - apart, 1.0), (mean + apart, 1.0)]])
        };
        let alike: Vec<Squares> = (0..100).map(|number| row(number, 20 + number)).collect();
        let spread = Spread::new(alike.iter());
        assert!(spread.freedom >= 3.0, "{spread:?}");
        // A row whose runs happen to agree is no surer for that.
        let lucky = spread.dispersion(&row(0, 0), 1.0);
        assert!(lucky.value > 1.5 && lucky.freedom > 3.0, "{lucky:?}");
        assert_eq!(Spread::new(alike.iter().take(10)), Spread::default());
    }
}
