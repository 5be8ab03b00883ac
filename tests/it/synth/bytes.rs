//! Little-endian values in a row.

use super::Guid;

/// A growing row of bytes, and how wide a pointer is in it.
///
/// The widths stand in the methods' names so that none is inferred and no value is cut silently.
#[derive(Clone, Debug)]
pub struct Bytes {
    bytes: Vec<u8>,
    pointer_size: usize,
}

impl Bytes {
    /// No bytes yet; pointers will take `pointer_size` bytes, 4 or 8.
    pub fn new(pointer_size: usize) -> Self {
        assert!(pointer_size == 4 || pointer_size == 8, "a pointer has 4 or 8 bytes, not {pointer_size}");
        Bytes { bytes: Vec::new(), pointer_size }
    }

    /// 4 or 8.
    pub fn pointer_size(&self) -> usize {
        self.pointer_size
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub fn i8(self, value: i8) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn i64(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// A pointer of this row's width. A value that does not fit is a mistake of the test.
    pub fn ptr(self, value: u64) -> Self {
        match self.pointer_size {
            4 => {
                let value = u32::try_from(value).expect("an address of a 32-bit record has 32 bits");
                self.u32(value)
            }
            _ => self.u64(value),
        }
    }

    pub fn ptrs(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, &value| bytes.ptr(value))
    }

    pub fn guid(self, guid: Guid) -> Self {
        self.raw(&guid.0)
    }

    /// UTF-16 and its terminating zero.
    pub fn utf16z(self, text: &str) -> Self {
        text.encode_utf16().fold(self, Bytes::u16).u16(0)
    }

    /// UTF-16 in a field of exactly `units` code units, filled up with zeros.
    pub fn utf16_field(self, text: &str, units: usize) -> Self {
        let mut field: Vec<u16> = text.encode_utf16().collect();
        assert!(field.len() < units, "{text:?} does not fit in {units} units with its zero");
        field.resize(units, 0);
        field.into_iter().fold(self, Bytes::u16)
    }

    /// Single-byte text as it is in the string (UTF-8 there) and its terminating zero.
    pub fn ansiz(self, text: &str) -> Self {
        self.raw(text.as_bytes()).u8(0)
    }

    /// A SID: `S-1-authority-sub-sub...`.
    pub fn sid(self, authority: u8, sub_authorities: &[u32]) -> Self {
        let count = u8::try_from(sub_authorities.len()).expect("few sub-authorities");
        let bytes = self.u8(1).u8(count).raw(&[0, 0, 0, 0, 0, authority]);
        sub_authorities.iter().fold(bytes, |bytes, &sub| bytes.u32(sub))
    }

    pub fn zeros(mut self, count: usize) -> Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// Zeros up to the next multiple of eight.
    pub fn pad_to_8(self) -> Self {
        let missing = self.bytes.len().next_multiple_of(8) - self.bytes.len();
        self.zeros(missing)
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}
