//! The extents of functions, from an image's exception table (`.pdata`).
//!
//! On x64 and ARM64 every function that touches the stack has an entry there, whether anyone named it or not. That
//! bounds the names which come without a size: an address in another function than the symbol's start is not the
//! symbol's. x86 images have no such table.
//!
//! References: "x64 exception handling" (`RUNTIME_FUNCTION`, chained unwind info) and "ARM64 exception handling"
//! (packed unwind data, `.xdata` function length), learn.microsoft.com/cpp/build.

use crate::symbols::pe::{EXCEPTION_DIRECTORY, Image, Machine};

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

/// What the table says of a symbol and an address behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both are in one function.
    Inside,
    /// The symbol's code ends before the address.
    Outside,
    /// Neither is covered: a leaf function, or no table.
    Unknown,
}

/// The exception table, read in place.
#[derive(Clone, Debug)]
pub struct FunctionTable<'a> {
    image: Image<'a>,
    entries: &'a [u8],
    entry_size: usize,
}

impl<'a> FunctionTable<'a> {
    /// The table of an x64 or ARM64 image; `None` without one.
    pub fn new(image: &Image<'a>) -> Option<Self> {
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

    /// The function, or the part of one, that holds `rva`.
    pub fn at(&self, rva: u32) -> Option<Extent> {
        let extent = self.extent(self.last_before(rva)?)?;
        (rva < extent.end).then_some(extent)
    }

    /// Whether a symbol at `start` without a size may name `rva`, which is at or behind it.
    pub fn verdict(&self, start: u32, rva: u32) -> Verdict {
        match self.at(rva) {
            Some(extent) if (extent.start..=rva).contains(&start) || start == extent.function => {
                Verdict::Inside
            }
            Some(_) => Verdict::Outside,
            None => match self.last_before(rva).and_then(|index| self.extent(index)) {
                Some(before) if start < before.end => Verdict::Outside,
                _ => Verdict::Unknown,
            },
        }
    }
}
