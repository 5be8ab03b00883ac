//! The compressor: its streams by hand, and back through a decompressor of its own.

use super::{assert_bytes, hex};
use crate::synth::xpress::compress;

#[test]
fn literals_and_a_short_match() {
    assert_bytes(
        &compress(b"abcabcd"),
        "ff ff ff 17   ; 0001 0 and ones: three literals, a match, a literal
         61 62 63      ; abc
         10 00         ; distance 3, length 3
         64            ; d",
    );
}

#[test]
fn an_overlapping_match_with_a_nibble() {
    assert_bytes(
        &compress(&[b'a'; 12]),
        "ff ff ff 7f   ; 01 and ones
         61
         07 00         ; distance 1, length in a nibble
         01            ; 3 + 7 + 1 = 11",
    );
}

#[test]
fn two_matches_share_a_byte_of_nibbles() {
    let plain = [[b'a'; 12], [b'b'; 12]].concat();
    assert_bytes(
        &compress(&plain),
        "ff ff ff 5f   ; 0101 and ones
         61 07 00
         11            ; both lengths
         62 07 00",
    );
}

#[test]
fn lengths_in_a_byte_a_word_and_a_long() {
    let run = |length: usize| compress(&vec![0; length + 1])[5..].to_vec();
    assert_eq!(run(24), hex("07 00 0e"), "the last nibble");
    assert_eq!(run(25), hex("07 00 0f 00"), "the first byte: 3 + 7 + 15 + 0");
    assert_eq!(run(279), hex("07 00 0f fe"), "the last byte");
    assert_eq!(run(280), hex("07 00 0f ff 15 01"), "the first word: 3 + 277");
    assert_eq!(run(65_538), hex("07 00 0f ff ff ff"), "the last word");
    assert_eq!(run(65_539), hex("07 00 0f ff 00 00 00 00 01 00"), "the first long: 3 + 65536");
}

#[test]
fn a_full_word_of_flags_is_followed_by_another() {
    let plain: Vec<u8> = (0..33).collect();
    let packed = compress(&plain);
    assert_eq!(packed[..4], [0, 0, 0, 0], "32 literals");
    assert_eq!(packed[36..], hex("ff ff ff 7f 20"), "one literal, and ones");
}

#[test]
fn everything_comes_back() {
    let mut state = 1u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for round in 0..60 {
        let mut plain: Vec<u8> = Vec::new();
        while plain.len() < 40_000 {
            match random(4) {
                0 => plain.extend((0..random(20)).map(|_| random(256) as u8)),
                1 => plain.extend(std::iter::repeat_n(random(3) as u8, random(400) as usize)),
                _ if plain.is_empty() => {}
                _ => {
                    let from = random(plain.len() as u32) as usize;
                    let length = random(90) as usize;
                    let piece = plain[from..].iter().copied().take(length).collect::<Vec<_>>();
                    plain.extend(piece);
                }
            }
        }
        plain.truncate(random(40_000) as usize);
        let packed = compress(&plain);
        assert_eq!(decompress(&packed, plain.len()), plain, "round {round}");
    }
}

/// Panics on a stream that is cut or points before its begin.
fn decompress(packed: &[u8], length: usize) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::new();
    let mut input = packed.iter().copied();
    let mut flags = Vec::new();
    let mut high_nibble = None;
    while plain.len() < length {
        let Some(flag) = flags.pop() else {
            let word = u32::from_le_bytes([(); 4].map(|()| input.next().unwrap()));
            flags = (0..32).map(|bit| word >> bit & 1).collect();
            continue;
        };
        let mut next = || usize::from(input.next().unwrap());
        if flag == 0 {
            plain.push(next() as u8);
            continue;
        }
        let token = next() | next() << 8;
        let copied = 3 + match token & 7 {
            7 => {
                let nibble = high_nibble.take().unwrap_or_else(|| {
                    let byte = next();
                    high_nibble = Some(byte >> 4);
                    byte & 15
                });
                match nibble {
                    15 => match next() {
                        255 => match next() | next() << 8 {
                            0 => next() | next() << 8 | next() << 16 | next() << 24,
                            word => word,
                        },
                        byte => 22 + byte,
                    },
                    nibble => 7 + nibble,
                }
            }
            short => short,
        };
        for _ in 0..copied {
            plain.push(plain[plain.len() - (token >> 3) - 1]);
        }
    }
    plain
}
