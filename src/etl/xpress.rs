//! Plain LZXPRESS (MS-XCA "plain LZ77"), the compression of ETW buffers.
//!
//! A stream of 32-bit flag words, used from bit 31 down: 0 is one literal byte, 1 a match. A match is a `u16`:
//! distance - 1 in the upper 13 bits, length - 3 in the lower 3. A length field of 7 goes on in a nibble (two matches
//! share one byte, low nibble first), a nibble of 15 in a byte, a byte of 255 in a `u16`, a `u16` of 0 in a `u32`.
//! Flag words, matches, nibbles and lengths share one input; nothing marks the end, the output's length does.
//! Verified on 636 buffers of three traces.

use crate::bytes::Reader;

/// Why a compressed buffer ended early; what was decoded so far is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XpressError {
    /// The input ended before the output was full.
    #[error("compressed data ends early")]
    Truncated,
    /// A match reaches back beyond the start of the output.
    #[error("compressed data refers to bytes before its start")]
    BadDistance,
    /// A long length is smaller than its own encoding allows.
    #[error("compressed data holds an impossible length")]
    BadLength,
}

/// Appends up to `length` decompressed bytes to `out`.
///
/// Matches may reach into what `out` got from this call only. On an error, `out` keeps what was decoded before it.
pub fn decompress(input: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), XpressError> {
    let start = out.len();
    out.resize(start + length, 0);
    let mut output = Output { bytes: out.get_mut(start..).unwrap_or_default(), length: 0 };
    let result = output.fill(Input { reader: Reader::new(input), half_used: None });
    let decoded = output.length;
    out.truncate(start + decoded);
    result
}

/// The output: what was decoded, and zeros up to its end.
struct Output<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Output<'_> {
    fn fill(&mut self, mut input: Input<'_>) -> Result<(), XpressError> {
        let mut flags = 0u32;
        let mut flags_left = 0;
        while self.length < self.bytes.len() {
            if flags_left == 0 {
                flags = input.u32()?;
                flags_left = 32;
            }
            flags_left -= 1;
            if flags >> flags_left & 1 == 0 {
                let byte = input.u8()?;
                if let Some(place) = self.bytes.get_mut(self.length) {
                    *place = byte;
                }
                self.length += 1;
            } else {
                let word = usize::from(input.u16()?);
                let length = input.length(word & 7)?;
                self.copy((word >> 3) + 1, length)?;
            }
        }
        Ok(())
    }

    /// Appends `length` bytes, or as many as there is room for, from `distance` bytes back.
    fn copy(&mut self, distance: usize, length: usize) -> Result<(), XpressError> {
        const CHUNK: usize = 16;
        let end = self.bytes.len().min(self.length.saturating_add(length));
        if distance > self.length {
            return Err(XpressError::BadDistance);
        }
        // Most matches are short and reach far: whole chunks are quickest, and what is too much is written over later.
        while distance >= CHUNK
            && self.length < end
            && let Some(chunk) = self.bytes.get(self.length - distance..).and_then(|from| from.first_chunk())
            && let chunk = *chunk
            && let Some(to) = self.bytes.get_mut(self.length..).and_then(|to| to.first_chunk_mut::<CHUNK>())
        {
            *to = chunk;
            self.length = end.min(self.length + CHUNK);
        }
        // What feeds on itself: each copy doubles the period that can be copied at once.
        let from = self.length - distance;
        while self.length < end {
            let available = (self.length - from).min(end - self.length);
            self.bytes.copy_within(from..from + available, self.length);
            self.length += available;
        }
        Ok(())
    }
}

struct Input<'a> {
    reader: Reader<'a>,
    /// The byte whose low nibble was used and whose high nibble is next.
    half_used: Option<u8>,
}

impl Input<'_> {
    #[inline]
    fn u8(&mut self) -> Result<u8, XpressError> {
        self.reader.u8().ok_or(XpressError::Truncated)
    }

    #[inline]
    fn u16(&mut self) -> Result<u16, XpressError> {
        self.reader.u16().ok_or(XpressError::Truncated)
    }

    #[inline]
    fn u32(&mut self) -> Result<u32, XpressError> {
        self.reader.u32().ok_or(XpressError::Truncated)
    }

    fn length(&mut self, low: usize) -> Result<usize, XpressError> {
        if low < 7 {
            return Ok(low + 3);
        }
        let nibble = match self.half_used.take() {
            Some(byte) => byte >> 4,
            None => {
                let byte = self.u8()?;
                self.half_used = Some(byte);
                byte & 15
            }
        };
        if nibble < 15 {
            return Ok(usize::from(nibble) + 7 + 3);
        }
        let byte = self.u8()?;
        if byte < 255 {
            return Ok(usize::from(byte) + 15 + 7 + 3);
        }
        let mut long = u32::from(self.u16()?);
        if long == 0 {
            long = self.u32()?;
        }
        if long < 22 {
            return Err(XpressError::BadLength);
        }
        usize::try_from(long).ok().and_then(|long| long.checked_add(3)).ok_or(XpressError::BadLength)
    }
}

#[cfg(test)]
mod tests {
    use super::{XpressError, decompress};

    fn expand(input: &[u8], length: usize) -> (Result<(), XpressError>, Vec<u8>) {
        let mut out = Vec::new();
        let result = decompress(input, length, &mut out);
        (result, out)
    }

    /// The two examples of MS-XCA 3.1.
    #[test]
    fn published_examples() {
        let mut alphabet = vec![0x3f, 0, 0, 0];
        alphabet.extend_from_slice(b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(expand(&alphabet, 26), (Ok(()), b"abcdefghijklmnopqrstuvwxyz".to_vec()));

        let input = [0xff, 0xff, 0xff, 0x1f, b'a', b'b', b'c', 0x17, 0, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(expand(&input, 300), (Ok(()), b"abc".repeat(100)));
    }

    #[test]
    fn two_matches_share_a_nibble_byte() {
        // literal a; match distance 1 length 10 + 1 (low nibble 1); match distance 1 length 10 + 2 (high nibble 2).
        let input = [0, 0, 0, 0b0110_0000, b'a', 7, 0, 0x21, 7, 0];
        assert_eq!(expand(&input, 24), (Ok(()), vec![b'a'; 24]));
    }

    #[test]
    fn a_zero_u16_goes_on_in_a_u32() {
        let input = [0, 0, 0, 0b0100_0000, b'x', 7, 0, 15, 255, 0, 0, 0, 0, 1, 0];
        assert_eq!(expand(&input, 65_540), (Ok(()), vec![b'x'; 65_540]));
    }

    #[test]
    fn bad_input_keeps_what_was_decoded() {
        let input = [0, 0, 0, 0b0100_0000, b'x', 8, 0];
        assert_eq!(expand(&input, 9), (Err(XpressError::BadDistance), b"x".to_vec()));
        let input = [0, 0, 0, 0b0100_0000, b'x', 7, 0, 15, 255, 21, 0];
        assert_eq!(expand(&input, 9), (Err(XpressError::BadLength), b"x".to_vec()));
        assert_eq!(expand(&[0, 0, 0, 0, b'x'], 9), (Err(XpressError::Truncated), b"x".to_vec()));
        assert_eq!(expand(&[], 1).0, Err(XpressError::Truncated));
    }
}
