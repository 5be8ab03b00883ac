//! Numbers as bytes: LEB128, seven bits in each byte and the lowest first.

/// Numbers of one kind, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Column(Vec<u8>);

impl Column {
    /// Adds a number.
    pub(super) fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Adds a number that may be negative: zigzag, 0, -1, 1, -2 as 0, 1, 2, 3.
    pub(super) fn push_signed(&mut self, number: i64) {
        self.push((number.wrapping_shl(1) ^ (number >> 63)) as u64);
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
