//! GUIDs as Windows stores and prints them.

use std::fmt;

/// A 16-byte GUID: `u32, u16, u16` little-endian, then 8 bytes.
///
/// Kept as one `u128` in printed order, so that providers compare in one step and constants read as they print.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(u128);

impl Guid {
    /// The GUID of sixteen zero bytes.
    pub const ZERO: Guid = Guid(0);

    /// A GUID from its printed digits: `2cb15d1d-5fc1-…` is `0x2cb15d1d_5fc1_…`.
    pub const fn from_u128(printed: u128) -> Guid {
        Guid(printed)
    }

    /// A GUID from the 16 bytes of a file.
    pub const fn from_bytes(bytes: &[u8; 16]) -> Guid {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        // As its fields, not byte by byte: every event of a manifest has one.
        let (first, second, third) =
            (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
        let head = (first as u64) << 32 | (second as u64) << 16 | third as u64;
        Guid((head as u128) << 64 | u64::from_be_bytes(rest) as u128)
    }

    /// The 16 bytes as Windows lays them in a file.
    pub const fn to_bytes(self) -> [u8; 16] {
        let [d, c, b, a, f, e, h, g, rest @ ..] = self.0.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = rest;
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// The 32 hexadecimal digits without dashes, upper-case: the form of symbol-server keys.
    pub fn digits(self) -> String {
        format!("{:032X}", self.0)
    }
}

/// The usual printed form, lower-case.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (v >> 96) as u32,
            (v >> 80) as u16,
            (v >> 64) as u16,
            (v >> 48) as u16,
            v & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Guid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Guid;

    #[test]
    fn bytes_and_print_agree() {
        let bytes =
            [0x1d, 0x5d, 0xb1, 0x2c, 0xc1, 0x5f, 0xd2, 0x11, 0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18];
        let guid = Guid::from_bytes(&bytes);
        assert_eq!(guid, Guid::from_u128(0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518));
        assert_eq!(guid.to_string(), "2cb15d1d-5fc1-11d2-abe1-00a0c911f518");
        assert_eq!(guid.digits(), "2CB15D1D5FC111D2ABE100A0C911F518");
        assert_eq!(guid.to_bytes(), bytes);
    }
}
