//! Numbers and names as text.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::profile::Cut;

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

/// Seconds with the unit that fits: `1.25 s`, `12.5 ms`, `340 us`.
pub fn duration(seconds: f64) -> String {
    let size = seconds.abs();
    if size >= 1.0 || size == 0.0 {
        format!("{seconds:.2} s")
    } else if size >= 0.001 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
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

/// What a limit left out of the stacks, and how to see it.
pub fn cut_stacks(cut: &Cut) -> String {
    let (frames, samples) = (count(cut.frames), count(cut.samples));
    format!(
        "{frames} frames of {samples} samples are left out: they are far more than a recording of this size should \
         need; --no-limit shows them, if you trust it"
    )
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
    let mut text = String::new();
    for c in serde_json::to_string_pretty(value)?.chars() {
        match c {
            // Between values; in a string it is escaped.
            '\n' => text.push(c),
            // All are in the range of four digits.
            _ if is_unsafe(c) => text += &format!("\\u{:04x}", u32::from(c)),
            _ => text.push(c),
        }
    }
    writeln!(out, "{text}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, duration, json, one_line};

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"].map(str::to_owned),
            [0, 999, 1000, 1_234_567].map(count)
        );
        assert_eq!(duration(1.256), "1.26 s");
        assert_eq!(duration(0.0125), "12.5 ms");
        assert_eq!(duration(0.00034), "340 us");
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
    fn json_is_text_for_a_terminal_and_says_the_same() {
        let names = ["a\u{1b}\n\u{7f}\u{9b}31m", "\u{202e}\u{2066}Ü", "plain"];
        let mut out = Vec::new();
        json(&mut out, &names).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| one_line(line) == line), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), names);
    }
}
