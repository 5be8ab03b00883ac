//! The integers of metadata and of ReadyToRun tables, on top of the plain ones.

use crate::bytes::Reader;

/// Little-endian reads that give `None` past the end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'d> {
    reader: Reader<'d>,
    /// Of the bytes that it began with.
    len: usize,
}

impl<'d> Cursor<'d> {
    pub(crate) fn new(data: &'d [u8], pos: usize) -> Self {
        Cursor { reader: Reader::at(data, pos), len: data.len() }
    }

    pub(crate) fn pos(&self) -> usize {
        self.len - self.remaining()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.reader.rest().len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'d [u8]> {
        self.reader.take(len)
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.reader.rest().first().copied()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.reader.u8()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.reader.u16()
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.reader.u32()
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.reader.u64()
    }

    /// An offset of `1 << size_log2` bytes (0, 1 or 2).
    pub(crate) fn offset(&mut self, size_log2: u32) -> Option<u32> {
        match size_log2 {
            0 => self.u8().map(u32::from),
            1 => self.u16().map(u32::from),
            2 => self.u32(),
            _ => None,
        }
    }

    /// A compressed unsigned integer of 1, 2 or 4 bytes, big-endian behind its prefix (ECMA-335 II.23.2).
    pub(crate) fn compressed(&mut self) -> Option<u32> {
        let first = u32::from(self.u8()?);
        if first & 0x80 == 0 {
            return Some(first);
        }
        let second = u32::from(self.u8()?);
        if first & 0xC0 == 0x80 {
            return Some((first & 0x3F) << 8 | second);
        }
        let low: [u8; 2] = self.reader.array()?;
        Some((first & 0x1F) << 24 | second << 16 | u32::from(u16::from_be_bytes(low)))
    }

    /// The signed form of [`Cursor::compressed`]: the sign is the lowest bit.
    pub(crate) fn compressed_signed(&mut self) -> Option<i32> {
        let before = self.remaining();
        let value = self.compressed()?;
        let low_bits = match before - self.remaining() {
            1 => 6,
            2 => 13,
            _ => 28,
        };
        let magnitude = (value >> 1) as i32;
        Some(if value & 1 == 0 { magnitude } else { magnitude - (1 << low_bits) })
    }

    /// An unsigned integer of the ReadyToRun "native format": the count of low one-bits in the first byte is the
    /// count of bytes that follow.
    pub(crate) fn native_unsigned(&mut self) -> Option<u32> {
        let first = self.peek()?;
        let follow = first.trailing_ones().min(4);
        if follow == 4 {
            // Bit 4 is reserved for longer forms that no image uses.
            return if first & 0x10 == 0 {
                self.u8()?;
                self.u32()
            } else {
                None
            };
        }
        let mut value = 0;
        for byte in 0..=follow {
            value |= u32::from(self.u8()?) << (8 * byte);
        }
        Some(value >> (follow + 1))
    }

    /// The signed form of [`Cursor::native_unsigned`].
    pub(crate) fn native_signed(&mut self) -> Option<i32> {
        let follow = self.peek()?.trailing_ones().min(4);
        let value = self.native_unsigned()?;
        // 7, 14, 21, 28 or 32 bits carry the value.
        let unused = if follow == 4 { 0 } else { 32 - 7 * (follow + 1) };
        Some(((value << unused) as i32) >> unused)
    }

    /// The big-endian base-128 integer of GC information, at most 32 bits of it.
    pub(crate) fn gc_unsigned(&mut self) -> Option<u32> {
        let mut value = 0u32;
        for _ in 0..5 {
            let byte = self.u8()?;
            value = value << 7 | u32::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn compressed_integers_as_in_the_standard() {
        // ECMA-335 II.23.2 gives these.
        for (bytes, value) in [
            (&[0x03][..], 0x03),
            (&[0x7F], 0x7F),
            (&[0x80, 0x80], 0x80),
            (&[0xAE, 0x57], 0x2E57),
            (&[0xBF, 0xFF], 0x3FFF),
            (&[0xC0, 0x00, 0x40, 0x00], 0x4000),
            (&[0xDF, 0xFF, 0xFF, 0xFF], 0x1FFF_FFFF),
        ] {
            let mut cursor = Cursor::new(bytes, 0);
            assert_eq!(cursor.compressed(), Some(value));
            assert_eq!(cursor.remaining(), 0);
        }
        assert_eq!(Cursor::new(&[0xC0, 0, 0], 0).compressed(), None);
    }

    #[test]
    fn signed_compressed_integers_as_in_the_standard() {
        // ECMA-335 II.23.2 gives these.
        for (bytes, value) in [
            (&[0x06][..], 3),
            (&[0x7B], -3),
            (&[0x80, 0x80], 64),
            (&[0x01], -64),
            (&[0xC0, 0x00, 0x40, 0x00], 8192),
            (&[0x80, 0x01], -8192),
            (&[0xDF, 0xFF, 0xFF, 0xFE], 268_435_455),
            (&[0xC0, 0x00, 0x00, 0x01], -268_435_456),
        ] {
            let mut cursor = Cursor::new(bytes, 0);
            assert_eq!(cursor.compressed_signed(), Some(value));
            assert_eq!(cursor.remaining(), 0);
        }
    }

    #[test]
    fn native_integers() {
        for (bytes, value) in [
            (&[0x18][..], 12u32),
            (&[0xA1, 0x0F], 1000),
            (&[0x03, 0x00, 0x10], 0x2_0000),
            (&[0x07, 0x00, 0x00, 0x10], 0x100_0000),
            (&[0x0F, 0x78, 0x56, 0x34, 0x12], 0x1234_5678),
        ] {
            let mut cursor = Cursor::new(bytes, 0);
            assert_eq!(cursor.native_unsigned(), Some(value), "{bytes:x?}");
            assert_eq!(cursor.remaining(), 0);
        }
        assert_eq!(Cursor::new(&[0x1F, 1, 2, 3, 4], 0).native_unsigned(), None);
        assert_eq!(Cursor::new(&[0xFE], 0).native_signed(), Some(-1));
        assert_eq!(Cursor::new(&[0x0E], 0).native_signed(), Some(7));
        assert_eq!(Cursor::new(&[0xFD, 0xFF], 0).native_signed(), Some(-1));
    }
}
