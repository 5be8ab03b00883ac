//! Plain LZXPRESS (MS-XCA "plain LZ77"), the compression of ETW buffers.
//!
//! A stream of 32-bit flag words, used from bit 31 down: 0 is one literal byte, 1 a match. A match is a `u16`:
//! distance - 1 in the upper 13 bits, length - 3 in the lower 3. A length field of 7 goes on in a nibble (two matches
//! share one byte, low nibble first), a nibble of 15 in a byte, a byte of 255 in a `u16`, a `u16` of 0 in a `u32`.
//! Flag words, matches, nibbles and lengths share one input; nothing marks the end, the output's length does.
//! Verified on 636 buffers of three traces.

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
    let end = start + length;
    let mut input = Input { rest: input, half_used: None };
    let mut flags = 0u32;
    let mut flags_left = 0;
    while out.len() < end {
        if flags_left == 0 {
            flags = input.u32()?;
            flags_left = 32;
            // Runs of 32 literals are common in text, and cheap to copy at once.
            if flags == 0
                && end - out.len() >= 32
                && let Some((literals, rest)) = input.rest.split_first_chunk::<32>()
            {
                out.extend_from_slice(literals);
                input.rest = rest;
                flags_left = 0;
                continue;
            }
        }
        flags_left -= 1;
        if flags >> flags_left & 1 == 0 {
            out.push(input.u8()?);
            continue;
        }
        let word = usize::from(input.u16()?);
        let distance = (word >> 3) + 1;
        let length = input.length(word & 7)?.min(end - out.len());
        let from = out.len().checked_sub(distance).filter(|from| *from >= start);
        let from = from.ok_or(XpressError::BadDistance)?;
        if distance >= length {
            out.extend_from_within(from..from + length);
        } else {
            repeat(out, from, length);
        }
    }
    Ok(())
}

/// Copies `length` bytes from `from`, where the copy feeds on itself.
fn repeat(out: &mut Vec<u8>, from: usize, length: usize) {
    let mut left = length;
    while left > 0 {
        // What has been copied doubles the period that can be copied at once.
        let available = (out.len() - from).min(left);
        out.extend_from_within(from..from + available);
        left -= available;
    }
}

struct Input<'a> {
    rest: &'a [u8],
    /// The byte whose low nibble was used and whose high nibble is next.
    half_used: Option<u8>,
}

impl Input<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], XpressError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(XpressError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, XpressError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, XpressError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, XpressError> {
        self.array().map(u32::from_le_bytes)
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
