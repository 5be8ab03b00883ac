//! Plain LZXPRESS, the other way: the same bytes for the same input on every machine.
//!
//! Greedy, with chains of earlier places that begin with the same three bytes. A row of flags that is not full ends in
//! ones, and a full row is followed by an empty one, as MS-XCA 2.3 has it: a decompressor that does not know the length
//! finds the end by them.

/// A match reaches back so far.
const WINDOW: usize = 8192;
/// The shortest match that has a code.
const SHORTEST: usize = 3;
/// Earlier places that are tried.
const DEPTH: usize = 6;
/// A match of this length is good enough.
const ENOUGH: usize = 48;
const HASH_BITS: u32 = 13;

/// Compresses one buffer after another, in memory that is used again.
#[derive(Debug)]
pub struct Compressor {
    /// The latest place of each hash, counted from the first byte that this compressor ever saw.
    heads: Vec<u32>,
    /// The place before, for each of the window's.
    before: Vec<u32>,
    /// What places of the present input count from.
    base: u32,
}

impl Default for Compressor {
    fn default() -> Self {
        Compressor { heads: vec![0; 1 << HASH_BITS], before: vec![0; WINDOW], base: WINDOW as u32 }
    }
}

impl Compressor {
    /// Appends `input` to `out` in compressed form: at most a quarter longer than it was.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let length = input.len() as u32;
        if self.base.checked_add(length).is_none_or(|end| end > u32::MAX - 2 * WINDOW as u32) {
            self.heads.fill(0);
            self.base = WINDOW as u32;
        }
        let mut writer = Flagged::new(out);
        let mut at = 0;
        while at < input.len() {
            let (distance, length) = self.longest(input, at);
            if length < SHORTEST {
                writer.literal(input.get(at).copied().unwrap_or_default());
                at += 1;
            } else {
                writer.matched(distance, length);
                // Inside of what repeats itself, few places are worth their time.
                let step = if length > ENOUGH { 8 } else { 1 };
                (at + 1..at + length).step_by(step).for_each(|place| {
                    self.remember(input, place);
                });
                at += length;
            }
        }
        writer.finish();
        // No place of this input is within reach of the next one's.
        self.base += length + WINDOW as u32 + 1;
    }

    /// Notes a place and returns the one before it with the same hash.
    #[inline]
    fn remember(&mut self, input: &[u8], at: usize) -> u32 {
        let Some(hash) = hash(input, at) else { return 0 };
        let place = self.base + at as u32;
        let Some(head) = self.heads.get_mut(hash) else { return 0 };
        let known = std::mem::replace(head, place);
        if let Some(before) = self.before.get_mut(place as usize % WINDOW) {
            *before = known;
        }
        known
    }

    /// The longest match at a place: its distance and its length.
    #[inline]
    fn longest(&mut self, input: &[u8], at: usize) -> (usize, usize) {
        let mut candidate = self.remember(input, at);
        let here = self.base + at as u32;
        let (mut distance, mut length) = (0, 0);
        for _ in 0..DEPTH {
            let back = here.saturating_sub(candidate) as usize;
            if candidate < self.base || back == 0 || back > WINDOW {
                break;
            }
            let other = at - back;
            // A longer match must agree where the best one ends.
            if length == 0 || input.get(other + length) == input.get(at + length) {
                let found = agreeing(input, other, at);
                if found > length {
                    (distance, length) = (back, found);
                    if length >= ENOUGH {
                        break;
                    }
                }
            }
            candidate = self.before.get(candidate as usize % WINDOW).copied().unwrap_or_default();
        }
        (distance, length)
    }
}

#[inline]
fn hash(input: &[u8], at: usize) -> Option<usize> {
    let [a, b, c] = *input.get(at..)?.first_chunk::<3>()?;
    let word = u32::from_le_bytes([a, b, c, 0]);
    Some((word.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
}

/// How many bytes at two places agree; `other` comes first.
#[inline]
fn agreeing(input: &[u8], other: usize, at: usize) -> usize {
    let mut length = 0;
    loop {
        let word = |place: usize| {
            input.get(place + length..)?.first_chunk::<8>().map(|word| u64::from_le_bytes(*word))
        };
        let (Some(a), Some(b)) = (word(other), word(at)) else { break };
        let differs = a ^ b;
        if differs != 0 {
            return length + differs.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    while at + length < input.len() && input.get(other + length) == input.get(at + length) {
        length += 1;
    }
    length
}

/// Writes literals and matches, and the flags that tell them apart.
struct Flagged<'o> {
    out: &'o mut Vec<u8>,
    /// Where the present row of flags stands.
    row: usize,
    flags: u32,
    count: u32,
    /// A byte whose high nibble is free.
    half_used: Option<usize>,
}

impl<'o> Flagged<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        let row = out.len();
        out.extend_from_slice(&[0; 4]);
        Flagged { out, row, flags: 0, count: 0, half_used: None }
    }

    #[inline]
    fn literal(&mut self, byte: u8) {
        self.out.push(byte);
        self.flag(0);
    }

    #[inline]
    fn matched(&mut self, distance: usize, length: usize) {
        let word = (distance - 1) << 3;
        let mut left = length - SHORTEST;
        if left < 7 {
            self.out.extend_from_slice(&((word | left) as u16).to_le_bytes());
        } else {
            self.out.extend_from_slice(&((word | 7) as u16).to_le_bytes());
            left -= 7;
            self.nibble(left.min(15) as u8);
            if left >= 15 {
                left -= 15;
                self.out.push(left.min(255) as u8);
                if left >= 255 {
                    // Of the whole length again.
                    let all = length - SHORTEST;
                    match u16::try_from(all) {
                        Ok(all) => self.out.extend_from_slice(&all.to_le_bytes()),
                        Err(_) => {
                            self.out.extend_from_slice(&[0; 2]);
                            self.out.extend_from_slice(&(all as u32).to_le_bytes());
                        }
                    }
                }
            }
        }
        self.flag(1);
    }

    fn nibble(&mut self, nibble: u8) {
        match self.half_used.take() {
            Some(place) => {
                if let Some(byte) = self.out.get_mut(place) {
                    *byte |= nibble << 4;
                }
            }
            None => {
                self.half_used = Some(self.out.len());
                self.out.push(nibble);
            }
        }
    }

    #[inline]
    fn flag(&mut self, flag: u32) {
        self.flags = self.flags << 1 | flag;
        self.count += 1;
        if self.count == 32 {
            self.put();
            self.row = self.out.len();
            self.out.extend_from_slice(&[0; 4]);
            (self.flags, self.count) = (0, 0);
        }
    }

    fn put(&mut self) {
        if let Some(row) = self.out.get_mut(self.row..self.row + 4) {
            row.copy_from_slice(&self.flags.to_le_bytes());
        }
    }

    fn finish(mut self) {
        let free = 32 - self.count;
        self.flags = (u64::from(self.flags) << free | ((1_u64 << free) - 1)) as u32;
        self.put();
    }
}

#[cfg(test)]
mod tests {
    use super::Compressor;
    use crate::etl::xpress::decompress;

    fn compressed(input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Compressor::default().compress(input, &mut out);
        out
    }

    /// The two examples of MS-XCA 3.1.
    #[test]
    fn published_examples() {
        let mut alphabet = vec![0x3f, 0, 0, 0];
        alphabet.extend_from_slice(b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(compressed(b"abcdefghijklmnopqrstuvwxyz"), alphabet);
        let abc = [0xff, 0xff, 0xff, 0x1f, b'a', b'b', b'c', 0x17, 0, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(compressed(&b"abc".repeat(100)), abc);
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let mut compressor = Compressor::default();
        for round in 0..400_u32 {
            let length = if round % 50 == 0 { 200_000 } else { random() % 5_000 };
            let alphabet = 1 << (round % 9);
            let mut input: Vec<u8> = Vec::new();
            while input.len() < length as usize {
                let count = if random() % 7 == 0 { random() % 600 } else { 1 };
                let byte = (random() % alphabet) as u8;
                input.extend(std::iter::repeat_n(byte, count as usize));
            }
            let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
            compressor.compress(&input, &mut packed);
            assert_eq!(decompress(&packed, input.len(), &mut unpacked), Ok(()), "round {round}");
            assert!(unpacked == input, "round {round}");
            assert!(packed.len() <= input.len() + input.len() / 4 + 8, "round {round}");
        }
    }
}
