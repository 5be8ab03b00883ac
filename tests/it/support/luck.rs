//! Where damage strikes.

/// A small generator of bad luck, the same in every run.
pub struct Luck(pub u64);

impl Luck {
    /// A number below `below`.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}
