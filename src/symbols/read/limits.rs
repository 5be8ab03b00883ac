//! How much of what symbol files say is kept.

use std::ops::Range;

/// Bounds that real code does not reach, so that a file made to harm cannot take all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Inlined calls at one address. Compilers stop at a few dozen.
    pub inlined_calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { inlined_calls: 64 }
    }
}

impl Limits {
    /// Keeps everything.
    pub const NONE: Limits = Limits { inlined_calls: usize::MAX };

    /// Of so many nested calls, those to leave out: the middle. Both ends tell more, who was called and what ran.
    pub(super) fn left_out(&self, calls: usize) -> Range<usize> {
        let too_many = calls.saturating_sub(self.inlined_calls);
        let first = if too_many == 0 { calls } else { self.inlined_calls / 2 };
        first..first + too_many
    }
}

/// Bytes of a name or path. A longer one is none that people write, and one long text in a file could be kept again and
/// again.
pub(super) const MAX_TEXT: usize = 4096;

/// A text no longer than [`MAX_TEXT`] bytes; of a longer one, the middle is left out.
pub(super) fn shortened(text: String) -> String {
    shortened_to(text, MAX_TEXT)
}

/// The same for another length.
pub(super) fn shortened_to(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let (mut head, mut tail) = (max / 2, text.len() - max / 2);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::{Limits, MAX_TEXT, shortened};

    #[test]
    fn the_middle_of_too_many_calls_is_left_out() {
        let limits = Limits { inlined_calls: 5 };
        assert!(limits.left_out(0).is_empty() && limits.left_out(5).is_empty());
        assert_eq!(limits.left_out(6), 2..3);
        assert_eq!(limits.left_out(100), 2..97);
        assert_eq!(Limits { inlined_calls: 0 }.left_out(3), 0..3);
        assert!(Limits::NONE.left_out(1_000_000).is_empty());
    }

    #[test]
    fn long_texts_keep_their_ends() {
        assert_eq!(shortened("a".repeat(MAX_TEXT)), "a".repeat(MAX_TEXT));
        let long = shortened(format!("begin{}end", "ä".repeat(MAX_TEXT)));
        assert!(long.starts_with("beginä") && long.ends_with("äend") && long.len() <= MAX_TEXT + 3, "{long}");
    }
}
