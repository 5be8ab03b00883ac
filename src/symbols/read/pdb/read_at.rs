//! Little-endian fields at an offset of untrusted bytes.

use crate::bytes::Reader;

/// Fields that are `None` when the bytes end before them.
pub(super) trait ReadAt {
    fn array_at<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;
    /// The bytes from `offset` up to the next zero, or to the end where there is none.
    fn cstr_at(&self, offset: usize) -> Option<&[u8]>;

    fn u16_at(&self, offset: usize) -> Option<u16> {
        self.array_at(offset).map(u16::from_le_bytes)
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.array_at(offset).map(u32::from_le_bytes)
    }
}

impl ReadAt for [u8] {
    fn array_at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        Reader::at(self, offset).array()
    }

    fn cstr_at(&self, offset: usize) -> Option<&[u8]> {
        (offset <= self.len()).then(|| Reader::at(self, offset).ansi().0)
    }
}
