//! Reading little-endian fields from bytes that nobody vouches for.
//!
//! Every read is checked; running out of bytes is `None`, never a panic.

use crate::guid::Guid;

/// A cursor over borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

macro_rules! integers {
    ($($name:ident),*) => {$(
        #[doc = concat!("The next little-endian `", stringify!($name), "`.")]
        #[inline]
        pub fn $name(&mut self) -> Option<$name> {
            self.array().map($name::from_le_bytes)
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// A cursor at `offset` in `bytes`; at the end when there is no such place.
    #[inline]
    pub fn at(bytes: &'a [u8], offset: usize) -> Self {
        Reader { rest: bytes.get(offset..).unwrap_or_default() }
    }

    integers!(u8, u16, u32, u64, i8, i32, i64);

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    /// The next `count` bytes, borrowed.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    /// Steps over `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    /// The next GUID.
    #[inline]
    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(|bytes| Guid::from_bytes(&bytes))
    }

    /// UTF-16 text up to its terminator, or up to the end of the bytes where a writer cut it.
    pub fn utf16(&mut self) -> Utf16<'a> {
        let (units, _) = self.rest.as_chunks::<2>();
        let length = units.iter().position(|unit| *unit == [0, 0]).map_or(units.len(), |n| n);
        let (text, rest) = self.rest.split_at_checked(length * 2).unwrap_or((self.rest, &[]));
        self.rest = rest.get(2..).unwrap_or_default();
        Utf16(text)
    }

    /// Single-byte text up to its terminator, or up to the end of the bytes.
    pub fn ansi(&mut self) -> Ansi<'a> {
        let length = self.rest.iter().position(|byte| *byte == 0).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, &[]));
        self.rest = rest.get(1..).unwrap_or_default();
        Ansi(text)
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// UTF-16LE text in a file, without its terminator.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Utf16<'a>(&'a [u8]);

impl Utf16<'_> {
    /// True for a text of no characters.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// True if it begins with `prefix`.
    pub fn starts_with(self, prefix: &str) -> bool {
        let mut units = self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        prefix.encode_utf16().all(|unit| units.next() == Some(unit))
    }
}

/// Unpaired surrogates become U+FFFD.
impl std::fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        let (mut units, _) = self.0.as_chunks::<2>();
        // Nearly all names are ASCII, and a recording has many: those go a run at a time.
        let mut run = [0; 128];
        loop {
            let mut length = 0;
            for (byte, unit) in run.iter_mut().zip(units) {
                let [ascii @ 0..0x80, 0] = *unit else { break };
                *byte = ascii;
                length += 1;
            }
            if length == 0 {
                break;
            }
            f.write_str(run.get(..length).and_then(|run| str::from_utf8(run).ok()).unwrap_or_default())?;
            units = units.get(length..).unwrap_or_default();
        }
        char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit)))
            .try_for_each(|c| f.write_char(c.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl std::fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Single-byte text in a file, without its terminator: UTF-8 where it is valid, else Latin-1.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ansi<'a>(pub &'a [u8]);

impl std::fmt::Display for Ansi<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        match std::str::from_utf8(self.0) {
            Ok(text) => f.write_str(text),
            Err(_) => self.0.iter().try_for_each(|byte| f.write_char(char::from(*byte))),
        }
    }
}

impl std::fmt::Debug for Ansi<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn texts_end_at_terminator_or_at_the_end() {
        let mut reader = Reader::new(b"a\0b\0\0\0c\0d");
        assert_eq!(reader.utf16().to_string(), "ab");
        assert_eq!(reader.utf16().to_string(), "c");
        assert!(reader.utf16().is_empty());
        assert!(Reader::new(b"a\0b\0c\0").utf16().starts_with("ab"));
        assert!(!Reader::new(b"a\0").utf16().starts_with("ab"));
        let mut reader = Reader::new(b"one\0tw\xe9");
        assert_eq!(reader.ansi().to_string(), "one");
        assert_eq!(reader.ansi().to_string(), "tw\u{e9}");
        assert_eq!(reader.rest(), b"");
    }

    #[test]
    fn utf16_of_any_characters() {
        let long = "ascii ".repeat(50);
        for text in ["", "a", "Ünïcode", "日本語 and 😀", &long, &format!("{long}é{long}")] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(Reader::new(&bytes).utf16().to_string(), text);
        }
        assert_eq!(Reader::new(&[b'a', 0, 0, 0xD8, b'b', 0]).utf16().to_string(), "a\u{fffd}b");
    }

    #[test]
    fn running_out_is_none_and_keeps_the_rest() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u16(), Some(0x0201));
        assert_eq!(reader.u32(), None);
        assert_eq!(reader.u8(), Some(3));
        assert_eq!(reader.skip(1), None);
    }
}
