//! The places of buffers in a file of a bounded size.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Places of one size, behind the header buffer.
#[derive(Debug)]
pub(super) struct Slots {
    first: u64,
    size: u32,
    most: u32,
    used: u32,
    /// Those of full buffers, in the order in which they became full.
    full: VecDeque<u32>,
    /// Those of buffers that are being filled, by processor.
    open: FxHashMap<u16, u32>,
}

impl Slots {
    pub(super) fn new(first: u64, size: u32, most: u32) -> Slots {
        Slots { first, size, most, used: 0, full: VecDeque::new(), open: FxHashMap::default() }
    }

    /// A place for the next buffer of a processor, and whether nothing has stood there before. Where more processors
    /// write than there are places, there are more places.
    pub(super) fn open(&mut self, processor: u16) -> (u64, bool) {
        let oldest = if self.used < self.most { None } else { self.full.pop_front() };
        let slot = oldest.unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        self.open.insert(processor, slot);
        (self.at(slot), oldest.is_none())
    }

    /// The place of the buffer that a processor fills.
    pub(super) fn place(&self, processor: u16) -> Option<u64> {
        self.open.get(&processor).map(|slot| self.at(*slot))
    }

    /// The same; the buffer is full.
    pub(super) fn close(&mut self, processor: u16) -> Option<u64> {
        let slot = self.open.remove(&processor)?;
        self.full.push_back(slot);
        Some(self.at(slot))
    }

    fn at(&self, slot: u32) -> u64 {
        self.first + u64::from(slot) * u64::from(self.size)
    }
}
