//! The identity of a symbol file: the GUID and age that the linker writes into the image and into its PDB.

use std::fmt;

/// A GUID as it lies on disk: three little-endian fields and eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The 32 upper-case hexadecimal digits of symbol-server paths, in the order a GUID is printed.
    pub fn simple(&self) -> String {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.0;
        let (first, second, third) =
            (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
        format!("{first:08X}{second:04X}{third:04X}{:016X}", u64::from_be_bytes(rest))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.simple();
        let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
        write!(f, "{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What must agree between an image and a PDB before the one may name addresses of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DebugId {
    /// Made anew by every full link.
    pub guid: Guid,
    /// Counted up when the PDB is changed in place (incremental link, a tool that rewrites the image).
    /// Always 1 for portable PDBs in practice, and never compared for them.
    pub age: u32,
}

impl fmt::Display for DebugId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} age {}", self.guid, self.age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_prints_its_first_three_fields_as_numbers() {
        let guid = Guid([
            0x84, 0x72, 0xF7, 0x11, 0xDE, 0x4E, 0x67, 0x76, 0xA5, 0x23, 0x4B, 0x0E, 0x7B, 0x07, 0xEE, 0xF1,
        ]);
        assert_eq!(guid.simple(), "11F772844EDE7667A5234B0E7B07EEF1");
        assert_eq!(guid.to_string(), "11F77284-4EDE-7667-A523-4B0E7B07EEF1");
    }
}
