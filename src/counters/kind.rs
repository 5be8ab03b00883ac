//! The types of counters, and how each becomes a number.
//!
//! Types and formulas are those of Microsoft's "Calculating Counter Values"; the names of the types are those of
//! `winperf.h` without `PERF_`.

use thiserror::Error;

use super::Clocks;

/// A counter's type: bits for size, kind, subtype, time base and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterType(pub u32);

/// A raw value, and what its formula needs beside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// The value.
    pub value: u64,
    /// Its bytes, 4 or 8: where it wraps.
    pub size: u32,
    /// The value of the base, and its bytes.
    pub base: Option<(u64, u32)>,
    /// The number behind the value ([`Block::behind`](super::Block::behind)).
    pub behind: Option<u32>,
    /// When.
    pub clocks: Clocks,
}

/// Why a counter has no value at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoValue {
    /// It is a rate, and there is only one sample.
    #[error("needs two samples")]
    One,
    /// The instance was not there before.
    #[error("new since the last sample")]
    New,
    /// Another thing has the name now.
    #[error("another instance has this name now")]
    Replaced,
    /// The value fell: its provider counts from zero again.
    #[error("restarted")]
    Restarted,
    /// No time passed between the samples, or it is not known how fast the clock ticks.
    #[error("no time passed")]
    Time,
    /// The base did not change or is zero: there was nothing to take a share or an average of.
    #[error("nothing counted")]
    Nothing,
    /// The definition of its base is missing.
    #[error("base missing")]
    Base,
    /// The value lies outside the values of its instance, or has neither 4 nor 8 bytes.
    #[error("damaged")]
    Damaged,
    /// The type is unknown, or has no number.
    #[error("type not supported")]
    Type,
    /// .NET Framework has not collected garbage in this process, and its numbers are as of the last collection.
    #[error("no collection yet")]
    NoCollection,
    /// .NET Framework has not collected garbage between the samples.
    #[error("no collection since the last sample")]
    NoCollectionSince,
    /// So much time passed between the samples that the value may have wrapped more than once.
    #[error("too long since the last sample")]
    TooLong,
    /// The source gave something that is no number.
    #[error("not a number")]
    NotANumber,
}

/// How a type becomes a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Formula {
    Raw,
    Delta,
    /// Per second.
    Rate,
    /// A share of time.
    Timer,
    /// A share of time of several things together.
    Multi,
    /// Per tick of the clock.
    Queue,
    /// A share of the base.
    RawFraction,
    /// A share of what the base grew by.
    Fraction,
    /// Seconds for each of what the base counts.
    AverageTimer,
    /// Something for each of what the base counts.
    Average,
    Elapsed,
}

/// Each type that has a value.
const FORMULAS: &[(u32, Formula)] = &[
    (0x1041_0400, Formula::Rate),         // COUNTER_COUNTER
    (0x1041_0500, Formula::Rate),         // COUNTER_BULK_COUNT
    (0x0041_0400, Formula::Rate),         // SAMPLE_COUNTER
    (0x0001_0000, Formula::Raw),          // COUNTER_RAWCOUNT
    (0x0001_0100, Formula::Raw),          // COUNTER_LARGE_RAWCOUNT
    (0x0000_0000, Formula::Raw),          // COUNTER_RAWCOUNT_HEX
    (0x0000_0100, Formula::Raw),          // COUNTER_LARGE_RAWCOUNT_HEX
    (0x0040_0400, Formula::Delta),        // COUNTER_DELTA
    (0x0040_0500, Formula::Delta),        // COUNTER_LARGE_DELTA
    (0x2002_0400, Formula::RawFraction),  // RAW_FRACTION
    (0x2002_0500, Formula::RawFraction),  // LARGE_RAW_FRACTION
    (0x20C2_0400, Formula::Fraction),     // SAMPLE_FRACTION
    (0x2041_0500, Formula::Timer),        // COUNTER_TIMER
    (0x2141_0500, Formula::Timer),        // COUNTER_TIMER_INV
    (0x2051_0500, Formula::Timer),        // 100NSEC_TIMER
    (0x2151_0500, Formula::Timer),        // 100NSEC_TIMER_INV
    (0x2061_0500, Formula::Timer),        // OBJ_TIME_TIMER
    (0x2241_0500, Formula::Multi),        // COUNTER_MULTI_TIMER
    (0x2341_0500, Formula::Multi),        // COUNTER_MULTI_TIMER_INV
    (0x2251_0500, Formula::Multi),        // 100NSEC_MULTI_TIMER
    (0x2351_0500, Formula::Multi),        // 100NSEC_MULTI_TIMER_INV
    (0x2047_0500, Formula::Fraction),     // PRECISION_SYSTEM_TIMER
    (0x2057_0500, Formula::Fraction),     // PRECISION_100NS_TIMER
    (0x2067_0500, Formula::Fraction),     // PRECISION_OBJECT_TIMER
    (0x0045_0400, Formula::Queue),        // COUNTER_QUEUELEN_TYPE
    (0x0045_0500, Formula::Queue),        // COUNTER_LARGE_QUEUELEN_TYPE
    (0x0055_0500, Formula::Queue),        // COUNTER_100NS_QUEUELEN_TYPE
    (0x0065_0500, Formula::Queue),        // COUNTER_OBJ_TIME_QUEUELEN_TYPE
    (0x3002_0400, Formula::AverageTimer), // AVERAGE_TIMER
    (0x4002_0500, Formula::Average),      // AVERAGE_BULK
    (0x3024_0500, Formula::Elapsed),      // ELAPSED_TIME
];

impl CounterType {
    fn formula(self) -> Option<Formula> {
        FORMULAS.iter().find(|(kind, _)| *kind == self.0).map(|(_, formula)| *formula)
    }

    /// True for a base, which has no value of its own. Precision timers have bits of bases and are none.
    pub fn is_base(self) -> bool {
        self.0 & 0xC00 == 0x400 && self.0 & 0xF_0000 == 0x3_0000
    }

    /// True if the definition behind it is its base.
    pub fn has_base(self) -> bool {
        use Formula::{Average, AverageTimer, Fraction, RawFraction};
        self.formula()
            .is_some_and(|formula| matches!(formula, RawFraction | Fraction | AverageTimer | Average))
    }

    /// True if its value is a change between two samples.
    pub fn needs_two(self) -> bool {
        use Formula::{Elapsed, Raw, RawFraction};
        !self.formula().is_none_or(|formula| matches!(formula, Raw | RawFraction | Elapsed))
    }

    /// True for a number that is meant to be read in hexadecimal.
    pub fn is_hex(self) -> bool {
        matches!(self.0, 0x0000_0000 | 0x0000_0100)
    }

    /// What its value is in: `/s`, `%`, `s`, or nothing.
    pub fn unit(self) -> &'static str {
        match (self.0 >> 28, self.formula()) {
            (_, Some(Formula::Rate)) => "/s",
            (2, _) => "%",
            (3, _) => "s",
            _ => "",
        }
    }

    fn is_inverse(self) -> bool {
        self.0 & 0x100_0000 != 0
    }

    /// The clock that the type is rated by, and its ticks per second.
    fn clock(self, clocks: &Clocks) -> (i64, i64) {
        match self.0 >> 20 & 3 {
            0 => (clocks.qpc, clocks.qpc_hz),
            1 => (clocks.time_100ns, 10_000_000),
            _ => (clocks.object, clocks.object_hz),
        }
    }
}

/// How much a value grew. One of 4 bytes may have wrapped once; a fall of more than half of its range is no wrap.
pub(super) fn growth((new, size): (u64, u32), (old, _): (u64, u32)) -> Result<f64, NoValue> {
    if new >= old {
        return Ok((new - old) as f64);
    }
    let wrapped = u64::from((new as u32).wrapping_sub(old as u32));
    if size == 4 && wrapped < 1 << 31 { Ok(wrapped as f64) } else { Err(NoValue::Restarted) }
}

fn share(part: f64, whole: f64) -> Result<f64, NoValue> {
    if whole > 0.0 { Ok(part / whole) } else { Err(NoValue::Nothing) }
}

/// The value of a counter from its newest sample and the one before. Shares are in percent, times in seconds.
///
/// # Errors
/// The samples do not give a value. That is never shown as zero.
pub fn calculate(kind: CounterType, old: Option<&Point>, new: &Point) -> Result<f64, NoValue> {
    let formula = kind.formula().ok_or(NoValue::Type)?;
    let (now, frequency) = kind.clock(&new.clocks);
    let frequency = if frequency > 0 { Ok(frequency as f64) } else { Err(NoValue::Time) };
    match formula {
        Formula::Raw => return Ok(new.value as f64),
        Formula::RawFraction => {
            let (base, _) = new.base.ok_or(NoValue::Base)?;
            return share(100.0 * new.value as f64, base as f64);
        }
        Formula::Elapsed => {
            let since = i128::from(now) - i128::from(new.value);
            return if since >= 0 { Ok(since as f64 / frequency?) } else { Err(NoValue::Time) };
        }
        _ => {}
    }
    let old = old.ok_or(NoValue::One)?;
    let grown = growth((new.value, new.size), (old.value, old.size))?;
    let ticks = || {
        let passed = i128::from(now) - i128::from(kind.clock(&old.clocks).0);
        if passed > 0 { Ok(passed as f64) } else { Err(NoValue::Time) }
    };
    let base = || growth(new.base.ok_or(NoValue::Base)?, old.base.ok_or(NoValue::Base)?);
    let value = match formula {
        Formula::Delta => grown,
        Formula::Rate => grown / (ticks()? / frequency?),
        Formula::Queue => grown / ticks()?,
        Formula::Fraction => share(100.0 * grown, base()?)?,
        Formula::AverageTimer => share(grown / frequency?, base()?)?,
        Formula::Average => share(grown, base()?)?,
        // Clocks are read a moment apart from values, so that a busy processor may seem more than busy.
        Formula::Timer if kind.is_inverse() => (100.0 * (1.0 - grown / ticks()?)).max(0.0),
        Formula::Timer => 100.0 * grown / ticks()?,
        Formula::Multi => {
            let things = f64::from(new.behind.ok_or(NoValue::Base)?);
            // Of the four, only the one in ticks of QPC that is no inverse is documented with the frequency.
            let is_qpc = kind.0 >> 20 & 3 == 0;
            if kind.is_inverse() {
                (100.0 * (things - grown / ticks()?)).max(0.0)
            } else {
                let passed = if is_qpc { ticks()? / frequency? } else { ticks()? };
                share(100.0 * (grown / passed), things)?
            }
        }
        Formula::Raw | Formula::RawFraction | Formula::Elapsed => return Err(NoValue::Type),
    };
    Ok(value)
}
