//! A small compressor for plain LZXPRESS, the compression of ETW's buffers.
//!
//! One flag bit tells literal (0) from match (1); 32 of them stand in a word before the items they tell. A match
//! is a u16: distance - 1 in the upper 13 bits, length - 3 in the lower 3; 7 there means that a nibble follows
//! (two matches share a byte), 15 there a byte, 255 there a u16, 0 there a u32.

use std::collections::HashMap;

const WINDOW: usize = 8192;
const MIN_MATCH: usize = 3;
/// Candidates that are tried for each place.
const CHAIN: usize = 64;

/// What makes a buffer's records smaller.
pub type Compressor = fn(&[u8]) -> Vec<u8>;

/// The bytes, compressed greedily: real matches, overlapping ones too, in all forms of length.
pub fn compress(plain: &[u8]) -> Vec<u8> {
    let mut out = Output::new();
    let mut places: HashMap<[u8; MIN_MATCH], Vec<usize>> = HashMap::new();
    let mut at = 0;
    while at < plain.len() {
        let step = match longest_match(plain, at, &places) {
            Some((distance, length)) => {
                out.copy(distance, length);
                length
            }
            None => {
                out.literal(plain[at]);
                1
            }
        };
        for place in at..at + step {
            if let Some(key) = key_at(plain, place) {
                places.entry(key).or_default().push(place);
            }
        }
        at += step;
    }
    out.finish()
}

/// The bytes, compressed with one candidate for each place: ten times as fast, and a little larger.
pub fn compress_quickly(plain: &[u8]) -> Vec<u8> {
    const BITS: u32 = 12;
    let mut out = Output::new();
    out.bytes.reserve(plain.len() / 2);
    let mut places = [u32::MAX; 1 << BITS];
    let mut at = 0;
    while at < plain.len() {
        let Some(word) =
            plain.get(at..at + 4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        else {
            out.literal(plain[at]);
            at += 1;
            continue;
        };
        let slot = (word.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize;
        let candidate = std::mem::replace(&mut places[slot], at as u32) as usize;
        let length =
            if candidate < at && at - candidate <= WINDOW { common(plain, candidate, at) } else { 0 };
        if length > MIN_MATCH {
            out.copy(at - candidate, length);
            at += length;
        } else {
            out.literal(plain[at]);
            at += 1;
        }
    }
    out.finish()
}

/// How many bytes from `before` on are those from `at` on.
fn common(plain: &[u8], before: usize, at: usize) -> usize {
    let (before, here) = (&plain[before..], &plain[at..]);
    let words = before.chunks_exact(8).zip(here.chunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    words + before[words..].iter().zip(&here[words..]).take_while(|(a, b)| a == b).count()
}

fn key_at(plain: &[u8], at: usize) -> Option<[u8; MIN_MATCH]> {
    plain.get(at..at + MIN_MATCH)?.try_into().ok()
}

fn longest_match(
    plain: &[u8],
    at: usize,
    places: &HashMap<[u8; MIN_MATCH], Vec<usize>>,
) -> Option<(usize, usize)> {
    let candidates = places.get(&key_at(plain, at)?)?;
    let near = candidates.iter().rev().take_while(|&&place| at - place <= WINDOW).take(CHAIN);
    near.map(|&place| {
        let length = plain[at..].iter().zip(&plain[place..]).take_while(|(a, b)| a == b).count();
        (at - place, length)
    })
    .max_by_key(|&(distance, length)| (length, usize::MAX - distance))
}

/// The compressed stream, with its two kinds of places to be filled in later: flag words and shared nibbles.
struct Output {
    bytes: Vec<u8>,
    flags: u32,
    flag_count: u32,
    flags_at: usize,
    half_used: Option<usize>,
}

impl Output {
    fn new() -> Self {
        Output { bytes: vec![0; 4], flags: 0, flag_count: 0, flags_at: 0, half_used: None }
    }

    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.flag(0);
    }

    fn copy(&mut self, distance: usize, length: usize) {
        let distance = u16::try_from(distance - 1).expect("a distance in the window");
        let rest = length - MIN_MATCH;
        let short = u16::try_from(rest.min(7)).expect("three bits");
        self.bytes.extend((distance << 3 | short).to_le_bytes());
        if rest >= 7 {
            self.long_length(rest);
        }
        self.flag(1);
    }

    /// `rest` is the length less 3, here 7 or more.
    fn long_length(&mut self, rest: usize) {
        let nibble = (rest - 7).min(15) as u8;
        match self.half_used.take() {
            Some(place) => self.bytes[place] |= nibble << 4,
            None => {
                self.half_used = Some(self.bytes.len());
                self.bytes.push(nibble);
            }
        }
        if nibble < 15 {
            return;
        }
        match u8::try_from(rest - 22) {
            Ok(byte) if byte < 255 => self.bytes.push(byte),
            _ => {
                self.bytes.push(255);
                match u16::try_from(rest) {
                    Ok(word) => self.bytes.extend(word.to_le_bytes()),
                    Err(_) => {
                        self.bytes.extend(0u16.to_le_bytes());
                        self.bytes.extend(u32::try_from(rest).expect("less than 4 GiB").to_le_bytes());
                    }
                }
            }
        }
    }

    /// The flag comes after its item: a full word is written back and the next word's place kept.
    fn flag(&mut self, flag: u32) {
        self.flags = self.flags << 1 | flag;
        self.flag_count += 1;
        if self.flag_count == 32 {
            self.write_flags(self.flags);
            (self.flags, self.flag_count, self.flags_at) = (0, 0, self.bytes.len());
            self.bytes.extend([0; 4]);
        }
    }

    fn write_flags(&mut self, flags: u32) {
        self.bytes[self.flags_at..self.flags_at + 4].copy_from_slice(&flags.to_le_bytes());
    }

    /// The unused flags of the last word are ones, as Windows leaves them.
    fn finish(mut self) -> Vec<u8> {
        let unused = 32 - self.flag_count;
        let flags = (u64::from(self.flags) << unused) | ((1 << unused) - 1);
        self.write_flags(flags as u32);
        self.bytes
    }
}
