//! The builder against bytes written by hand.

mod files;
mod payloads;
mod records;
mod xpress;

/// `"0a 0b"` and comments behind `;` as bytes.
fn hex(text: &str) -> Vec<u8> {
    let digits = text.lines().flat_map(|line| line.split(';').next().unwrap_or("").split_whitespace());
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal")).collect()
}

/// Bytes as rows of sixteen, so that a difference is easy to see.
fn rows(bytes: &[u8]) -> Vec<String> {
    bytes.chunks(16).map(|row| row.iter().map(|byte| format!("{byte:02x} ")).collect()).collect()
}

#[track_caller]
fn assert_bytes(made: &[u8], by_hand: &str) {
    assert_eq!(rows(made), rows(&hex(by_hand)));
}
