//! A name as it is read: what is left of it.

/// Deeper names are none that people write.
const MAX_DEPTH: usize = 64;

/// What is left of a name.
#[derive(Clone, Debug)]
pub(super) struct Text<'n> {
    pub(super) rest: &'n str,
    depth: usize,
}

impl<'n> Text<'n> {
    pub(super) fn new(rest: &'n str) -> Self {
        Text { rest, depth: 0 }
    }

    /// Takes `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn next_is(&self, token: &str) -> bool {
        self.rest.starts_with(token)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    /// Takes `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Option<&'n str> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes all characters that `wanted` holds for.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'n str {
        let len = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(len).unwrap_or_default()
    }

    /// Takes what stands up to `end` and `end` itself, and gives the former.
    pub(super) fn take_to(&mut self, end: &str) -> Option<&'n str> {
        let (taken, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(taken)
    }

    /// The length of the group that comes next, `(...)` for instance, with groups of its kind in it.
    pub(super) fn group(&self, open: char, close: char) -> Option<usize> {
        let mut depth = 0usize;
        for (at, character) in self.rest.char_indices() {
            if character == open {
                depth += 1;
            } else if character == close {
                depth = depth.checked_sub(1)?;
            }
            if depth == 0 {
                return Some(at + character.len_utf8()).filter(|_| character == close);
            }
        }
        None
    }

    /// What `read` makes of the rest, one level further down.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// What `read` makes of a piece that was taken; it has to read it to the end.
    pub(super) fn within<T>(&self, piece: &'n str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut text = Text { rest: piece, depth: self.depth };
        let read = text.nested(read)?;
        text.rest.is_empty().then_some(read)
    }
}
