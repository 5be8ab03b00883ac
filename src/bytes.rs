//! Reading little-endian fields from bytes that nobody vouches for.
//!
//! Every read is checked; running out of bytes is `None`, never a panic.

use std::ffi::CStr;
use std::fmt;

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
        let length = terminator(units);
        let (text, rest) = self.rest.split_at_checked(length * 2).unwrap_or((self.rest, &[]));
        self.rest = rest.get(2..).unwrap_or_default();
        Utf16(text)
    }

    /// Single-byte text up to its terminator, or up to the end of the bytes.
    pub fn ansi(&mut self) -> Ansi<'a> {
        let length = CStr::from_bytes_until_nul(self.rest).map_or(self.rest.len(), CStr::count_bytes);
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

/// How many units there are before a zero. Whole groups without one go at once: a processor compares eight units in one
/// step, and a method's signature has hundreds.
fn terminator(units: &[[u8; 2]]) -> usize {
    let is_zero = |unit: &[u8; 2]| *unit == [0, 0];
    let (eights, _) = units.as_chunks::<8>();
    let has_none = |eight: &&[[u8; 2]; 8]| !eight.iter().fold(false, |any, unit| any | is_zero(unit));
    let before = eights.iter().take_while(has_none).count() * 8;
    let last = units.get(before..).unwrap_or_default();
    before + last.iter().position(is_zero).unwrap_or(last.len())
}

/// Text as a file has it, readable as characters.
pub trait Text: Copy {
    /// Its characters in UTF-8 where they are quickly at hand: as the file has them, or in `room` if that can hold them
    /// and they are ASCII. The bytes may not be valid UTF-8; then they are not its characters.
    fn utf8<'a>(&'a self, room: &'a mut [u8; ROOM]) -> Option<&'a [u8]>;

    /// Writes its characters.
    fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result;
}

/// The longest text, in characters, that [`Text::utf8`] converts.
pub const ROOM: usize = 128;

impl Text for &str {
    fn utf8<'a>(&'a self, _room: &'a mut [u8; ROOM]) -> Option<&'a [u8]> {
        Some(self.as_bytes())
    }

    fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str(self)
    }
}

/// UTF-16LE text in a file, without its terminator.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Utf16<'a>(&'a [u8]);

impl<'a> Utf16<'a> {
    /// As it stands in the file.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// True for a text of no characters.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// True if it begins with `prefix`.
    pub fn starts_with(self, prefix: &str) -> bool {
        let mut units = self.units().iter().map(|unit| u16::from_le_bytes(*unit));
        prefix.encode_utf16().all(|unit| units.next() == Some(unit))
    }

    /// True if it reads as `text`.
    pub fn reads(self, text: &str) -> bool {
        let units = self.units();
        if !text.is_ascii() {
            return self.chars().eq(text.chars());
        }
        let (eights, last) = units.as_chunks::<8>();
        let (text_eights, text_last) = text.as_bytes().as_chunks::<8>();
        let same = |(unit, byte): (&[u8; 2], &u8)| *unit == [*byte, 0];
        units.len() == text.len()
            && eights.iter().zip(text_eights).all(|(units, bytes)| {
                units.iter().zip(bytes).fold(true, |all, (unit, byte)| all & same((unit, byte)))
            })
            && last.iter().zip(text_last).all(same)
    }

    fn units(self) -> &'a [[u8; 2]] {
        self.0.as_chunks().0
    }

    /// Unpaired surrogates are U+FFFD.
    fn chars(self) -> impl Iterator<Item = char> {
        let units = self.units().iter().map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Unpaired surrogates become U+FFFD.
impl Text for Utf16<'_> {
    fn utf8<'a>(&'a self, room: &'a mut [u8; ROOM]) -> Option<&'a [u8]> {
        narrowed(self.units(), room)
    }

    fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        let mut rest = self;
        // Nearly all names are ASCII, and a recording has many: those go a run at a time.
        let mut run = [0; ROOM];
        while !rest.is_empty() {
            let (units, behind) = rest.0.split_at_checked(2 * ROOM).unwrap_or((rest.0, &[]));
            let ascii = narrowed(units.as_chunks().0, &mut run);
            let Some(ascii) = ascii.and_then(|ascii| str::from_utf8(ascii).ok()) else { break };
            out.write_str(ascii)?;
            rest = Utf16(behind);
        }
        rest.chars().try_for_each(|c| out.write_char(c))
    }
}

/// The same characters in a byte each, if they are ASCII and no more than `run` can hold. In groups of sixteen, which a
/// processor takes at once; the last group ends in zeros.
fn narrowed<'a>(units: &[[u8; 2]], run: &'a mut [u8; ROOM]) -> Option<&'a [u8]> {
    let narrow = |units: &[[u8; 2]; 16], bytes: &mut [u8; 16]| {
        let mut all = 0;
        for (unit, byte) in units.iter().zip(bytes) {
            let unit = u16::from_le_bytes(*unit);
            all |= unit;
            *byte = unit as u8;
        }
        all
    };
    if units.len() > ROOM {
        return None;
    }
    let (groups, last) = units.as_chunks::<16>();
    let mut places = run.as_chunks_mut::<16>().0.iter_mut();
    let mut all = groups.iter().zip(&mut places).fold(0, |all, (units, bytes)| all | narrow(units, bytes));
    if let Some(bytes) = places.next() {
        let mut padded = [[0; 2]; 16];
        padded.get_mut(..last.len())?.copy_from_slice(last);
        all |= narrow(&padded, bytes);
    }
    run.get(..units.len()).filter(|_| all < 0x80)
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Single-byte text in a file, without its terminator: UTF-8 where it is valid, else Latin-1.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ansi<'a>(pub &'a [u8]);

impl Text for Ansi<'_> {
    fn utf8<'a>(&'a self, _room: &'a mut [u8; ROOM]) -> Option<&'a [u8]> {
        Some(self.0)
    }

    fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        match str::from_utf8(self.0) {
            Ok(text) => out.write_str(text),
            Err(_) => self.0.iter().try_for_each(|byte| out.write_char(char::from(*byte))),
        }
    }
}

impl fmt::Display for Ansi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

impl fmt::Debug for Ansi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    fn utf16_of_any_length() {
        for length in 0..300 {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let mut bytes: Vec<u8> = text.bytes().flat_map(|byte| [byte, 0]).collect();
            let cut = Reader::new(&bytes).utf16();
            assert!(cut.reads(&text) && cut.to_string() == text, "without a terminator: {text}");
            bytes.extend_from_slice(b"\0\0next, which begins at an odd place");
            let mut reader = Reader::new(&bytes);
            assert!(reader.utf16().reads(&text), "{text}");
            assert!(reader.rest().starts_with(b"next"), "{text}");
            let mut ansi = Reader::new(text.as_bytes());
            assert_eq!(ansi.ansi().to_string(), text);
        }
    }

    #[test]
    fn utf16_reads_as_its_text_and_as_no_other() {
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "0123456789abcdef",
            "0123456789abcdeF",
            "é",
            "Ã©",
            "日本語",
            "😀",
            "\u{fffd}",
        ];
        for text in texts {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for other in texts {
                assert_eq!(Reader::new(&bytes).utf16().reads(other), text == other, "{text} {other}");
            }
        }
        assert!(Reader::new(&[0x00, 0xD8]).utf16().reads("\u{fffd}"), "an unpaired surrogate");
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
