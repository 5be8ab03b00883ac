//! Any bytes as a compressed stream: the output stays within its length, and a match within the output.
#![no_main]

use etwprof::etl::xpress::decompress;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, &[u8])| {
    let (length, stream) = input;
    let length = length as usize % (1 << 20);
    let mut out = b"before".to_vec();
    let result = decompress(stream, length, &mut out);
    assert!(out.starts_with(b"before"));
    assert!(out.len() <= 6 + length);
    assert_eq!(result.is_ok(), out.len() == 6 + length);
    // A shorter wish gives the beginning of the same.
    let mut half = Vec::new();
    let _cut = decompress(stream, length / 2, &mut half);
    assert!(out[6..].starts_with(&half));
});
