//! Keys that stand for parts of stacks: a cache as the kernel's, in which a part that comes drives out another.

use super::stacks::Node;

/// A process and a part of its stacks; the kernel's are System's.
pub(super) type Defined = (usize, Node);

const KEYS: usize = 1024;

/// The keys of kernel parts, or of user parts.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    first: u64,
    parts: Vec<Option<Defined>>,
}

impl Keys {
    pub(super) fn new(first: u64) -> Self {
        Keys { first, parts: vec![None; KEYS] }
    }

    /// The key of a part, and the part that it stood for before: that must be defined now.
    pub(super) fn key(&mut self, part: Defined) -> (u64, Option<Defined>) {
        let mixed = (part.0 as u64) << 32 | u64::from(part.1);
        let slot = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % KEYS;
        let before = self.parts[slot].replace(part).filter(|before| *before != part);
        (self.value(slot), before)
    }

    fn value(&self, slot: usize) -> u64 {
        self.first + 0x40 * slot as u64
    }

    /// Every key that stands for something.
    pub(super) fn rundown(&self) -> Vec<(u64, Defined)> {
        let defined = self.parts.iter().enumerate();
        defined.filter_map(|(slot, part)| Some((self.value(slot), (*part)?))).collect()
    }
}
