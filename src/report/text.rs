//! Numbers and names as text.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::clock::Clock;
use crate::event::Ticks;
use crate::profile::{Cut, Metric, Unit};
use crate::trace::Merged;

/// A count with commas between thousands.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 sample`, `2,000 samples`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// The same of a number that may be negative.
pub fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", count(value.unsigned_abs()))
}

/// `1 wait`, `1,234 waits`: so many samples of a metric.
pub(super) fn samples(number: u64, metric: Metric) -> String {
    let plural = metric.samples;
    let noun = if number == 1 { plural.strip_suffix('s').unwrap_or(plural) } else { plural };
    format!("{} {noun}", count(number))
}

/// Seconds with the unit that fits: `1.25 s`, `12.5 ms`, `340 us`.
pub fn duration(seconds: f64) -> String {
    let size = seconds.abs();
    // As rounded as they are shown: 999.6 us are a millisecond.
    if (size * 1e4).round() >= 1e4 || size == 0.0 {
        format!("{seconds:.2} s")
    } else if (size * 1e6).round() >= 1e3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}

/// What the wall clocks of the recording's machine showed at a moment, those of UTC where its time zone is not known:
/// `09:00:14.250`.
pub fn time_of_day(clock: &Clock, time: Ticks) -> String {
    let local = clock.filetime(time).saturating_add(i64::from(clock.utc_offset.unwrap_or(0)) * 600_000_000);
    let ms = local.div_euclid(10_000).rem_euclid(24 * 3_600_000);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", ms % 1000)
}

/// The zone of [`time_of_day`]: `UTC-08:00`, or `UTC`.
pub fn time_zone(clock: &Clock) -> String {
    match clock.utc_offset {
        None | Some(0) => "UTC".to_owned(),
        Some(offset) => {
            let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
            format!("UTC{sign}{:02}:{:02}", size / 60, size % 60)
        }
    }
}

/// A size with a binary unit: `4.7 MiB`.
pub fn bytes(size: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| size >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", size as f64 / *unit as f64),
        None => format!("{size} B"),
    }
}

/// Which samples became one.
pub(super) fn merged_samples(merged: &Merged) -> String {
    let within = merged.within_seconds.map_or("the whole recording".to_owned(), duration);
    let of = if merged.stacks_only { "stack and process" } else { "stack, thread and processor" };
    format!("those of one {of} within {within}")
}

/// What a limit left out of the stacks, and how to see it.
pub fn cut_stacks(cut: &Cut) -> String {
    let (frames, samples) = (count(cut.frames), count(cut.samples));
    format!(
        "{frames} frames of {samples} samples are hidden: they need far more memory than a recording of this size \
         should; if you trust it, --no-limit shows them"
    )
}

/// A text with a capital letter in front.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Text from a file, made safe to show on one line: what would move a terminal's cursor, end the line, reorder what
/// is read, or break an SVG becomes `?`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) { Cow::Owned(text.replace(is_unsafe, "?")) } else { Cow::Borrowed(text) }
}

/// Control characters (C0, DEL, C1), other ends of lines, marks that change the direction of text, and what XML does
/// not allow.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Writes `value` as JSON for programs, which a terminal can show as well: JSON escapes only some of what
/// [`one_line`] replaces, here it escapes all.
pub fn json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", escaped(serde_json::to_string_pretty(value)?))
}

/// The same on one line, without its end: an element of an array that is written piece by piece.
pub(super) fn json_element(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    write!(out, "{}", json_text(value)?)
}

/// The text of such an element.
pub(super) fn json_text(value: &impl Serialize) -> io::Result<String> {
    Ok(escaped(serde_json::to_string(value)?))
}

fn escaped(json: String) -> String {
    // Most of it is plain.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Between values; in a string it is escaped.
            '\n' => text.push(c),
            // All are in the range of four digits.
            _ if is_unsafe(c) => text += &format!("\\u{:04x}", u32::from(c)),
            _ => text.push(c),
        }
    }
    text
}

/// Text from a file as a cell of a table in CSV: on one line, and no formula. Spreadsheets run what begins with `=`, `+`,
/// `-` or `@`, and a module may be called so; a `'` in front makes it text.
pub(super) fn cell(text: &str) -> Cow<'_, str> {
    let text = one_line(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}").into() } else { text }
}

/// So much of a metric: `12.5 ms`, `1.2 GiB`; nothing of what is only counted.
pub fn amount(metric: Metric, value: i64) -> Option<String> {
    match metric.unit {
        Unit::Time => Some(duration(value as f64 / 1e7)),
        Unit::Bytes => Some(bytes(u64::try_from(value).unwrap_or(0))),
        Unit::Count => None,
    }
}

/// What the head of a column of this unit ends with.
pub(super) fn unit_head(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "ms",
        Unit::Bytes => "KiB",
        Unit::Count => "count",
    }
}

/// A cell of such a column: of time in ns, and of what a tree counts.
pub(super) fn unit_cell(unit: Unit, counted: i64, ns: i64) -> String {
    match unit {
        Unit::Time => milliseconds(ns / 100),
        // Tenths, as milliseconds have them.
        Unit::Bytes => milliseconds((counted as f64 * 1e4 / 1024.0).round() as i64),
        Unit::Count => count(counted.unsigned_abs()),
    }
}

/// Time in 100 ns as milliseconds: `1,856.2`.
pub(super) fn milliseconds(value: i64) -> String {
    // Half away from zero, as counts of a difference may be negative.
    let tenths = (value.unsigned_abs() + 500) / 1000;
    let sign = if value < 0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{}.{}", count(tenths / 10), tenths % 10)
}

/// Time in 100 ns as nanoseconds.
pub(super) fn nanoseconds(value: i64) -> i64 {
    value.saturating_mul(100)
}

/// The share of `part` in `whole`: `12.3%`; 0 of nothing.
pub(super) fn share(part: i64, whole: i64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.unsigned_abs().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::{bytes, cell, count, duration, json, milliseconds, one_line};

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"].map(str::to_owned),
            [0, 999, 1000, 1_234_567].map(count)
        );
        assert_eq!(duration(1.256), "1.26 s");
        assert_eq!(duration(0.0125), "12.5 ms");
        assert_eq!(duration(0.00034), "340 us");
        assert_eq!(
            [0.0009994, 0.0009996, 0.99994, 0.99996].map(duration),
            ["999 us", "1.0 ms", "999.9 ms", "1.00 s"]
        );
        assert_eq!(duration(0.0), "0.00 s");
        assert_eq!(bytes(5), "5 B");
        assert_eq!(bytes(4_879_401), "4.7 MiB");
    }

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(one_line("a\x1b[31mb\nc"), "a?[31mb?c");
        assert_eq!(one_line("Ünïcode;<T>"), "Ünïcode;<T>");
        let marks = "\u{1b}\u{7f}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{fffe}";
        assert_eq!(one_line(marks), "?".repeat(marks.chars().count()));
    }

    #[test]
    fn milliseconds_have_one_digit_behind_the_point() {
        for (value, text) in
            [(0, "0.0"), (499, "0.0"), (500, "0.1"), (18_562_499, "1,856.2"), (-10_000, "-1.0")]
        {
            assert_eq!(milliseconds(value), text);
        }
    }

    #[test]
    fn a_cell_is_no_formula() {
        for (text, written) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("@x", "'@x"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("\t=1", "?=1"),
            ("ntdll!f", "ntdll!f"),
        ] {
            assert_eq!(cell(text), written);
        }
    }

    #[test]
    fn json_is_text_for_a_terminal_and_says_the_same() {
        let names = ["a\u{1b}\n\u{7f}\u{9b}31m", "\u{202e}\u{2066}Ü", "plain"];
        let mut out = Vec::new();
        json(&mut out, &names).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| one_line(line) == line), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), names);
    }
}
