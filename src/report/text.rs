//! Numbers and names as text.

use std::borrow::Cow;

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

/// A name from a trace, made safe to show on one line: control characters become `?`.
///
/// A name could otherwise move a terminal's cursor, end a line of a folded file, or break an SVG.
pub fn one_line(name: &str) -> Cow<'_, str> {
    let odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}');
    if name.contains(odd) { Cow::Owned(name.replace(odd, "?")) } else { Cow::Borrowed(name) }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, duration, one_line};

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
    }
}
