//! Numbers that look random and are the same on every machine for the same seed.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// From 0 to below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// From 0 to below `limit`, the low ones more often.
    pub(super) fn low(&mut self, limit: u64) -> u64 {
        let below = 1 + self.below(limit);
        self.below(below)
    }

    /// From 0 to below `limit`, for the times of a trace.
    pub(super) fn ticks(&mut self, limit: i64) -> i64 {
        self.below(limit.max(1) as u64) as i64
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// `rate` on average, of which the part behind the point comes by chance.
    pub(super) fn about(&mut self, rate: f64) -> usize {
        rate as usize + usize::from(self.chance(rate.fract()))
    }

    /// One of a distribution that is known by its values at 0, 10, ... 100 %.
    pub(super) fn by_deciles(&mut self, deciles: &[u32; 11]) -> f64 {
        let place = self.unit() * 10.0;
        let (below, part) = (place as usize, place.fract());
        let (from, to) = (f64::from(deciles[below]), f64::from(deciles[below + 1]));
        from + (to - from) * part
    }
}
