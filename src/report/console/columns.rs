//! The columns of numbers: which of them a line has room for, what their heads are, and how a number reads in them.

use std::fmt::Write;

use crate::profile::{Counted, Metric, Unit};
use crate::report::text::signed;

use super::colours::heat;

/// What is added up in a node: samples, and their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) samples: i64,
    pub(super) value: i64,
}

/// The numbers of a line. What there is nothing of stays empty, so that the eye finds what there is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) inclusive: Option<Amount>,
    pub(super) exclusive: Option<Amount>,
}

/// Which number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leading {
    /// Of the tree: `incl %  excl %  incl ms  excl ms  incl count`.
    Inclusive,
    /// Of the hottest functions: `excl %  excl ms  incl %  incl ms  excl count`.
    Exclusive,
}

/// The columns of a report. Those of the tree and those of the hottest functions are as wide together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    total: i64,
    scale: Scale,
    /// How many columns of values there are: 0 to 2.
    values: usize,
    value_width: usize,
    samples: bool,
    samples_width: usize,
    /// How many columns a bar has, if there is room for one.
    bar: usize,
}

/// How values read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    /// What a value is divided by.
    unit: f64,
    decimals: usize,
    name: &'static str,
}

const GAP: usize = 2;
/// Columns of a bar: a tenth of all samples each.
const BAR: usize = 10;
const PERCENT: usize = "incl %".len();

impl Columns {
    /// What fits in lines of this width for shares of `total`.
    pub(super) fn new(total: Amount, metric: Metric, width: Option<usize>) -> Columns {
        let (values, samples) = match width {
            Some(..60) => (0, false),
            Some(60..100) => (1, false),
            Some(100..140) => (2, false),
            Some(140..) | None => (2, true),
        };
        let scale = Scale::new(total.value, metric.unit);
        // What is counted is the time itself.
        let samples = samples && metric.counted == Counted::Samples;
        // A value that counts says what the samples say.
        let values = if metric.unit == Unit::Count { 0 } else { values };
        Columns {
            total: total.samples,
            scale,
            values,
            value_width: scale.text(total.value).len().max("incl ".len() + scale.name.len()),
            samples,
            samples_width: signed(total.samples).len().max("incl count".len()),
            // Files and pipes have numbers only.
            bar: if width >= Some(100) { BAR } else { 0 },
        }
    }

    /// How wide all of them are, with the gap behind them.
    pub(super) fn width(&self) -> usize {
        let samples = if self.samples { self.samples_width + GAP } else { 0 };
        let bar = if self.bar > 0 { self.bar + GAP } else { 0 };
        2 * (PERCENT + GAP) + self.values * (self.value_width + GAP) + samples + bar
    }

    /// The share of all samples, in percent.
    pub(super) fn percent(&self, samples: i64) -> f64 {
        100.0 * samples as f64 / self.total.unsigned_abs().max(1) as f64
    }

    /// The heads.
    pub(super) fn heads(&self, leading: Leading) -> String {
        let name = self.scale.name;
        self.line(
            leading,
            ["incl %", "excl %"],
            [&format!("incl {name}"), &format!("excl {name}")],
            match leading {
                Leading::Inclusive => "incl count",
                Leading::Exclusive => "excl count",
            },
            "",
        )
    }

    /// A line of numbers.
    pub(super) fn numbers(&self, leading: Leading, numbers: Numbers) -> String {
        let Numbers { inclusive, exclusive } = numbers;
        let percent = |amount: Option<Amount>| {
            amount.map_or(String::new(), |amount| format!("{:.1}", self.percent(amount.samples)))
        };
        let value =
            |amount: Option<Amount>| amount.map_or(String::new(), |amount| self.scale.text(amount.value));
        let counted = match leading {
            Leading::Inclusive => inclusive,
            Leading::Exclusive => exclusive,
        };
        let heat = heat(exclusive.map_or(0.0, |exclusive| self.percent(exclusive.samples)));
        let hot = format!("{heat}{:>PERCENT$}{heat:#}", percent(exclusive));
        self.line(
            leading,
            [&percent(inclusive), &hot],
            [&value(inclusive), &value(exclusive)],
            &counted.map_or(String::new(), |amount| signed(amount.samples)),
            &self.bar(numbers),
        )
    }

    /// `██▒▒▒`: the exclusive share, and the rest of the inclusive one.
    fn bar(&self, Numbers { inclusive, exclusive }: Numbers) -> String {
        let tenths = |amount: Option<Amount>| {
            let share = amount.map_or(0.0, |amount| self.percent(amount.samples).abs());
            ((share * self.bar as f64 / 100.0).round() as usize).min(self.bar)
        };
        let (own, all) = (tenths(exclusive), tenths(inclusive).max(tenths(exclusive)));
        let bar = format!("{}{}", "█".repeat(own), "▒".repeat(all - own));
        format!("{bar}{:rest$}", "", rest = self.bar - all)
    }

    /// Cells in their order; each pair is inclusive, exclusive.
    fn line(
        &self,
        leading: Leading,
        percents: [&str; 2],
        values: [&str; 2],
        samples: &str,
        bar: &str,
    ) -> String {
        let mut line = String::new();
        let mut cell = |text: &str, width: usize| {
            // Writing to a string does not fail.
            let _ = write!(line, "{text:>width$}{:GAP$}", "");
        };
        let ([inclusive, exclusive], [inclusive_value, exclusive_value]) = (percents, values);
        let cells = match leading {
            Leading::Inclusive => [
                (inclusive, PERCENT, true),
                (exclusive, PERCENT, true),
                (inclusive_value, self.value_width, self.values > 0),
                (exclusive_value, self.value_width, self.values > 1),
            ],
            Leading::Exclusive => [
                (exclusive, PERCENT, true),
                (exclusive_value, self.value_width, self.values > 0),
                (inclusive, PERCENT, true),
                (inclusive_value, self.value_width, self.values > 1),
            ],
        };
        for (text, width, _) in cells.into_iter().filter(|(.., there)| *there) {
            cell(text, width);
        }
        if self.samples {
            cell(samples, self.samples_width);
        }
        if self.bar > 0 {
            cell(bar, self.bar);
        }
        line
    }
}

impl Scale {
    /// One unit for all values up to `greatest`, so that they can be compared.
    fn new(greatest: i64, unit: Unit) -> Scale {
        const MICROSECOND: i64 = 10;
        const MILLISECOND: i64 = 1_000 * MICROSECOND;
        const SECOND: i64 = 1_000 * MILLISECOND;
        const TEN_MILLISECONDS: i64 = 10 * MILLISECOND;
        const TEN_SECONDS: i64 = 10 * SECOND;
        let (unit, decimals, name) = match (unit, greatest.saturating_abs()) {
            (Unit::Time, TEN_MILLISECONDS..TEN_SECONDS) => (MILLISECOND, 0, "ms"),
            (Unit::Time, TEN_SECONDS..) => (SECOND, 2, "s"),
            (Unit::Time, _) => (MICROSECOND, 0, "us"),
            (Unit::Bytes, _) => (1 << 10, 0, "KiB"),
            (Unit::Count, _) => (1, 0, ""),
        };
        Scale { unit: unit as f64, decimals, name }
    }

    fn text(&self, value: i64) -> String {
        let value = value as f64 / self.unit;
        match self.decimals {
            0 => signed(value.round() as i64),
            decimals => format!("{value:.decimals$}"),
        }
    }
}
