//! The extents of functions, from an image's exception table (`.pdata`).
//!
//! On x64 and ARM64 every function that touches the stack has an entry there, whether anyone named it or not. That
//! bounds the names which come without a size: an address in another function than the symbol's start is not the
//! symbol's. x86 images have no such table.
//!
//! References: "x64 exception handling" (`RUNTIME_FUNCTION`, chained unwind info) and "ARM64 exception handling"
//! (packed unwind data, `.xdata` function length), learn.microsoft.com/cpp/build.

use super::code::{self, Flow};
use crate::symbols::read::pe::{EXCEPTION_DIRECTORY, Image, Machine};

/// A stretch of code that is one function, or a part of one that was moved away from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First RVA.
    pub start: u32,
    /// The RVA behind it.
    pub end: u32,
    /// Where the function that it belongs to begins: `start`, unless this is a part moved away.
    pub function: u32,
}

/// Compilers put so many bytes of data between functions, for those that are called through pointers and for exception
/// handlers.
pub(super) const DATA: u32 = 8;

/// The exception table, read in place.
#[derive(Clone, Debug)]
pub(super) struct FunctionTable<'a> {
    image: Image<'a>,
    entries: &'a [u8],
    entry_size: usize,
}

impl<'a> FunctionTable<'a> {
    /// The table of an x64 or ARM64 image; `None` without one.
    pub(super) fn new(image: &Image<'a>) -> Option<Self> {
        let entry_size = match image.machine {
            Machine::X64 => 12,
            Machine::Arm64 => 8,
            Machine::X86 | Machine::Other(_) => return None,
        };
        let entries = image.directory_bytes(EXCEPTION_DIRECTORY)?;
        Some(FunctionTable { image: image.clone(), entries, entry_size })
    }

    fn field(&self, index: usize, field: usize) -> Option<u32> {
        let bytes = self.entries.get(index * self.entry_size + 4 * field..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Index of the last entry that begins at or before `rva`.
    fn last_before(&self, rva: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.entries.len() / self.entry_size);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.field(middle, 0)? <= rva { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    fn extent(&self, index: usize) -> Option<Extent> {
        let start = self.field(index, 0)?;
        match self.image.machine {
            Machine::Arm64 => {
                Some(Extent { start, end: start.checked_add(self.arm64_len(index)?)?, function: start })
            }
            _ => Some(Extent {
                start,
                end: self.field(index, 1)?,
                function: self.chain_start(self.field(index, 2)?).unwrap_or(start),
            }),
        }
    }

    /// The entry's function length: in the packed data, or in the first word of the record it points to.
    fn arm64_len(&self, index: usize) -> Option<u32> {
        let data = self.field(index, 1)?;
        if data & 3 != 0 {
            return Some((data >> 2 & 0x7ff) * 4);
        }
        let word = self.image.bytes_at(data, 4)?.first_chunk()?;
        Some((u32::from_le_bytes(*word) & 0x3_ffff) * 4)
    }

    /// The first RVA at which the function of the entry that begins at `entry` may begin. On ARM64, an entry may leave out
    /// instructions in front that do not touch the stack yet, and a function may have several entries, one behind the
    /// other. What lies in front of an entry and goes on may be such, or data. Further back than a few dozen instructions
    /// nobody looks: the answer is then the furthest that was seen.
    pub(super) fn earliest(&self, entry: u32) -> u32 {
        const MOST_ENTRIES: usize = 64;
        const MOST_INSTRUCTIONS: u32 = 64;
        if self.image.machine != Machine::Arm64 {
            return entry;
        }
        let flow = |at: u32| code::arm64_at(&self.image, at);
        let mut earliest = entry;
        for _ in 0..MOST_ENTRIES {
            let before = earliest.checked_sub(4).and_then(|before| self.extent(self.last_before(before)?));
            let before = before.unwrap_or(Extent { start: 0, end: 0, function: 0 });
            let is_adjacent = before.end >= earliest;
            let limit = match is_adjacent {
                true => earliest.saturating_sub(4 + DATA),
                false => before.end.max(earliest.saturating_sub(4 * MOST_INSTRUCTIONS)),
            };
            let mut back = std::iter::successors(earliest.checked_sub(4), |at| at.checked_sub(4));
            let end = back
                .by_ref()
                .take_while(|at| *at >= limit)
                .find(|at| !matches!(flow(*at), Some(Flow::Next | Flow::Branch(_) | Flow::Call(_))));
            match end {
                Some(end) => return end.saturating_add(4),
                None if !is_adjacent => return limit,
                // A call at the end of an entry may be one that does not come back.
                None if matches!(earliest.checked_sub(4).and_then(flow), Some(Flow::Call(_))) => {
                    return earliest;
                }
                None => earliest = before.start,
            }
        }
        earliest
    }

    /// The start of the entry at the end of a chain of unwind records, `None` when the first is not chained.
    fn chain_start(&self, mut unwind: u32) -> Option<u32> {
        const CHAINED: u8 = 4;
        let mut start = None;
        // Chains are a few links long; damage may close one into a ring.
        for _ in 0..32 {
            let parent = if unwind & 1 != 0 {
                unwind & !1
            } else {
                let [version_flags, _, codes, _] = *self.image.bytes_at(unwind, 4)?.first_chunk()?;
                if version_flags >> 3 & CHAINED == 0 {
                    return start;
                }
                unwind.checked_add(4 + 2 * u32::from(codes).next_multiple_of(2))?
            };
            let [a, b, c, d, _, _, _, _, e, f, g, h] = *self.image.bytes_at(parent, 12)?.first_chunk()?;
            start = Some(u32::from_le_bytes([a, b, c, d]));
            unwind = u32::from_le_bytes([e, f, g, h]);
        }
        start
    }

    /// Where its entries begin, ascending, each once.
    pub(super) fn starts(&self) -> Vec<u32> {
        let count = self.entries.len() / self.entry_size;
        let mut starts: Vec<u32> = (0..count).filter_map(|index| self.field(index, 0)).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The function, or the part of one, that holds `rva`.
    pub(super) fn at(&self, rva: u32) -> Option<Extent> {
        let extent = self.extent(self.last_before(rva)?)?;
        (rva < extent.end).then_some(extent)
    }

    /// The RVA behind the last entry that begins at or before `rva`.
    pub(super) fn end_before(&self, rva: u32) -> Option<u32> {
        Some(self.extent(self.last_before(rva)?)?.end)
    }
}
