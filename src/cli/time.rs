//! Times on the command line: one grammar for every option that takes one.
//!
//! `10` is ten seconds; `1.5s`, `200ms` and `2h` have a unit; `1m30s` adds up, largest unit first. A moment may also be a
//! time of day: `9:00`, `09:00:14.5`, or `09:00:14Z` of UTC.

use std::time::Duration;

use etwprof::profile::Moment;

/// Units with their length in nanoseconds, largest first.
const UNITS: [(&str, u128); 5] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", SECOND), ("ms", 1_000_000), ("us", 1_000)];
const SECOND: u128 = 1_000_000_000;

/// The longest time that can be given. Far longer ones would overflow the system's clocks.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Digits after the point that count; a femtosecond of an hour.
const FRACTION_DIGITS: usize = 18;

/// Reads a time.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let nanos = parts(text).ok_or("expected a time such as 10, 1.5s, 200ms, 1m30s or 2h")?;
    let time = u64::try_from(nanos / SECOND).map(|seconds| Duration::new(seconds, (nanos % SECOND) as u32));
    time.ok().filter(|time| *time <= LONGEST).ok_or_else(|| "longer than a year".to_owned())
}

/// Reads a moment of a recording: a time since its start, or a time of day.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    if !text.contains(':') {
        let since = parse(text)
            .map_err(|why| if why.starts_with("expected") { format!("{why}, or 09:00:14") } else { why });
        return since.map(|time| Moment::Seconds(time.as_secs_f64()));
    }
    let (time, moment): (_, fn(u64) -> Moment) = match text.strip_suffix(['Z', 'z']) {
        Some(time) => (time, Moment::UtcTimeOfDay),
        None => (text, Moment::TimeOfDay),
    };
    time_of_day(time)
        .map(moment)
        .ok_or_else(|| "expected a time of day such as 9:00 or 09:00:14.5".to_owned())
}

/// 100 ns since midnight.
fn time_of_day(text: &str) -> Option<u64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "00"));
    let (whole, _) = seconds.split_once('.').unwrap_or((seconds, ""));
    let is_number = |text: &str, widths: std::ops::RangeInclusive<usize>| {
        widths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !(is_number(hours, 1..=2) && is_number(minutes, 2..=2) && is_number(whole, 2..=2)) {
        return None;
    }
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let Some((second, "")) = number(seconds) else { return None };
    let seconds = u64::try_from(second(SECOND / 100)?).ok()?;
    let of_minute = (hours < 24 && minutes < 60 && seconds < 60 * TICKS).then_some(seconds)?;
    Some((hours * 60 + minutes) * 60 * TICKS + of_minute)
}

/// 100 ns in a second.
const TICKS: u64 = 10_000_000;

/// The sum of the parts of `text`, in nanoseconds.
fn parts(text: &str) -> Option<u128> {
    if let Some((number, "")) = number(text) {
        return number(SECOND);
    }
    let (mut rest, mut units, mut sum) = (text, UNITS.as_slice(), 0_u128);
    loop {
        let (value, behind) = number(rest)?;
        let length = behind.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(length);
        let place = units.iter().position(|(name, _)| *name == unit)?;
        let (_, nanos) = units.get(place)?;
        sum = sum.checked_add(value(*nanos)?)?;
        if next.is_empty() {
            return Some(sum);
        }
        (rest, units) = (next, units.get(place + 1..)?);
    }
}

/// The number that `text` begins with, as a function from a unit to the product, and what follows it.
fn number(text: &str) -> Option<(impl Fn(u128) -> Option<u128>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let fraction = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let whole: u64 = whole.parse().ok()?;
    let (part, of) = (fraction.parse::<u64>().ok()?, 10_u128.pow(fraction.len() as u32));
    let product =
        move |unit: u128| u128::from(whole).checked_mul(unit)?.checked_add(u128::from(part) * unit / of);
    Some((product, rest))
}

/// A time in the form that [`parse`] reads.
#[cfg(any(windows, test))]
pub(super) fn spell(time: Duration) -> String {
    let decimal = |nanos: u128, unit: u128| {
        let (whole, part) = (nanos / unit, nanos % unit);
        let width = unit.ilog10() as usize;
        let part = format!("{part:0width$}");
        match part.trim_end_matches('0') {
            "" => whole.to_string(),
            part => format!("{whole}.{part}"),
        }
    };
    let nanos = time.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000_000 => format!("{}us", decimal(nanos, 1_000)),
        1_000_000..SECOND => format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let (hours, minutes, rest) =
                (nanos / SECOND / 3600, nanos / SECOND / 60 % 60, nanos % (60 * SECOND));
            [(hours.to_string(), "h"), (minutes.to_string(), "m"), (decimal(rest, SECOND), "s")]
                .iter()
                .filter(|(number, _)| number != "0")
                .map(|(number, unit)| format!("{number}{unit}"))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use etwprof::profile::Moment;

    use super::{LONGEST, moment, parse, spell};

    #[test]
    fn the_grammar() {
        for (text, millis) in [
            ("10", 10_000),
            ("1.5", 1_500),
            ("1.5s", 1_500),
            ("200ms", 200),
            ("0.2s", 200),
            ("5000us", 5),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("1h0m0.25s", 3_600_250),
            ("1s500ms", 1_500),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        // A fraction is exact: 0.3 has no exact binary form.
        assert_eq!(parse("0.3"), Ok(Duration::from_millis(300)));
        assert_eq!(parse("0.1us"), Ok(Duration::from_nanos(100)));
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "", "s", ".", ".5", "5.", "-1", "+1", "-1s", "soon", "1x", "1 s", "30s1m", "1s1s", "1m30",
            "1.2.3s", "1e3", "1S", "٣s",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("1m30s"), "{text:?}: {error}");
        }
        for text in ["9000h", "99999999999999999999", "18446744073709551615h"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("8784h"), Ok(LONGEST));
    }

    #[test]
    fn moments_are_times_since_the_start_or_of_the_day() {
        for (text, expected) in [
            ("5", Moment::Seconds(5.0)),
            ("1m0.5s", Moment::Seconds(60.5)),
            ("9:00", Moment::TimeOfDay(9 * 3600 * 10_000_000)),
            ("09:00:14.123", Moment::TimeOfDay((9 * 3600 + 14) * 10_000_000 + 1_230_000)),
            ("23:59:59.9999999", Moment::TimeOfDay(24 * 3600 * 10_000_000 - 1)),
            ("00:00:00Z", Moment::UtcTimeOfDay(0)),
        ] {
            assert_eq!(moment(text), Ok(expected), "{text}");
        }
        for text in [
            "24:00",
            "09:60",
            "9:0",
            "09:00:60",
            "09:00:1",
            ":00",
            "9:",
            "09:00:14.",
            "09:00:14+2",
            "1:2:3:4",
        ] {
            assert!(moment(text).unwrap_err().contains("09:00:14.5"), "{text}");
        }
        let error = moment("soon").unwrap_err();
        assert!(error.contains("1m30s") && error.contains("09:00:14"), "{error}");
    }

    #[test]
    fn the_shortest_spelling() {
        for text in ["0s", "10s", "1.5s", "200ms", "1m30s", "2h", "1h0.5s", "1.5ms", "0.1us"] {
            assert_eq!(spell(parse(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_spelled_is_read_back(nanos in prop_oneof![
            0..1_000_000_u64,
            0..10_000_000_000_u64,
            0..LONGEST.as_nanos() as u64,
        ]) {
            let time = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&spell(time)), Ok(time));
        }

        #[test]
        fn any_text_is_a_time_or_an_error(text in "[0-9.hmsu]{0,24}") {
            if let Ok(time) = parse(&text) {
                prop_assert!(time <= LONGEST);
                prop_assert_eq!(parse(&spell(time)), Ok(time));
            }
        }
    }
}
