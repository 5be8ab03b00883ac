//! Debug information of precompiled methods: which native code came from which IL.
//!
//! The section is a sparse array by the method's first runtime function. An element is a number: zero, and the method's
//! blob follows; else the blob lies so many bytes before the element, because methods of like code share one.
//!
//! A blob begins with the lengths of its parts in bytes; the first part holds the *bounds*: native offset, IL offset,
//! and what is special about the place (a call, an empty stack), which takes no part here. IL offsets are written
//! with 3 added, so that the three that are no offsets (no mapping, prolog, epilog) come out small. Until format 15
//! all of it is *nibbles*, numbers of three bits for each half byte, the highest first, with the fourth bit set while
//! more follows:
//!
//! - count of bounds; for each: native offset less the one before, IL offset + 3, flags.
//!
//! From format 16 on the bounds are packed in bits, the lowest first:
//!
//! - in nibbles: count, width of the native differences - 1, width of the IL offsets - 1; then from the next whole byte
//!   on for each: flags (2 bits, from format 17 on 3), native difference, IL offset + 3.
//!
//! From format 17 on a first length of zero says that six lengths follow instead of two.
//!
//! (dotnet/runtime: vm/debuginfostore.cpp; tools/aot, DebugInfoTableNode.cs; docs/design/datacontracts/DebugInfo.md.
//! Formats up to 5 are verified on real images, those from 16 on only read about.)

use super::super::lines::MAPPING_OFFSET_BIAS;
use super::native_format::NativeArray;
use super::{Method, header, header::SectionKind};

/// The first format with packed bounds, and the first with six lengths and three flags.
const PACKED: u16 = 16;
const SIX_LENGTHS: u16 = 17;
/// The newest format that is known to keep to this.
const NEWEST: u16 = 24;

impl Method<'_, '_> {
    /// The IL-to-native map: pairs of native offset (bytes from the entry point, counted as
    /// [`R2rImage::lookup`](super::R2rImage::lookup) does) and IL offset, sorted by native offset, for
    /// [`il_offset`](super::super::lines::il_offset). Empty where the image has none, where it is damaged, and in
    /// a format newer than the known ones.
    pub fn il_map(&self) -> Vec<(u32, i32)> {
        self.read_il_map().unwrap_or_default()
    }

    fn read_il_map(&self) -> Option<Vec<(u32, i32)>> {
        let image = self.image;
        let (major, _) = image.header.version;
        let section = header::bytes(&image.pe, image.header.section(SectionKind::DebugInfo)?)?;
        let element = NativeArray::parse(section)?.get(self.entry()?.function)?;
        let mut cursor = element;
        let blob = match cursor.native_unsigned()? {
            0 => cursor.pos(),
            before => element.pos().checked_sub(before as usize)?,
        };
        bounds(section.get(blob..)?, major)
    }
}

/// The bounds in a blob.
fn bounds(blob: &[u8], format: u16) -> Option<Vec<(u32, i32)>> {
    if format > NEWEST {
        return None;
    }
    let mut lengths = Nibbles::new(blob);
    let mut len = lengths.number()?;
    let mut others = 1;
    if len == 0 && format >= SIX_LENGTHS {
        len = lengths.number()?;
        others = 5;
    }
    for _ in 0..others {
        lengths.number()?;
    }
    let bounds = lengths.rest()?.get(..len as usize)?;
    match format {
        _ if bounds.is_empty() => Some(Vec::new()),
        ..PACKED => in_nibbles(bounds),
        PACKED => packed(bounds, 2),
        _ => packed(bounds, 3),
    }
}

fn in_nibbles(bounds: &[u8]) -> Option<Vec<(u32, i32)>> {
    let mut nibbles = Nibbles::new(bounds);
    let mut pairs = Pairs::default();
    for _ in 0..nibbles.number()? {
        pairs.push(nibbles.number()?, nibbles.number()?)?;
        nibbles.number()?; // flags
    }
    Some(pairs.done)
}

fn packed(bounds: &[u8], flag_bits: u32) -> Option<Vec<(u32, i32)>> {
    let mut nibbles = Nibbles::new(bounds);
    let count = nibbles.number()?;
    let native_bits = nibbles.number()?.checked_add(1).filter(|&bits| bits <= 32)?;
    let il_bits = nibbles.number()?.checked_add(1).filter(|&bits| bits <= 32)?;
    let mut bits = Bits { bytes: nibbles.rest()?, pos: 0 };
    let mut pairs = Pairs::default();
    for _ in 0..count {
        bits.number(flag_bits)?;
        pairs.push(bits.number(native_bits)?, bits.number(il_bits)?)?;
    }
    Some(pairs.done)
}

/// The pairs so far. A count beyond the data ends with the data, so it need not be believed.
#[derive(Default)]
struct Pairs {
    done: Vec<(u32, i32)>,
    native: u32,
}

impl Pairs {
    fn push(&mut self, native_difference: u32, biased_il: u32) -> Option<()> {
        self.native = self.native.checked_add(native_difference)?;
        let il = i64::from(biased_il) - i64::from(MAPPING_OFFSET_BIAS);
        self.done.push((self.native, i32::try_from(il).ok()?));
        Some(())
    }
}

/// Numbers in half bytes, the low half first.
struct Nibbles<'d> {
    bytes: &'d [u8],
    /// In half bytes.
    pos: usize,
}

impl<'d> Nibbles<'d> {
    fn new(bytes: &'d [u8]) -> Self {
        Nibbles { bytes, pos: 0 }
    }

    /// `None` at the end, and for a number of more than 32 bits.
    fn number(&mut self) -> Option<u32> {
        let mut value = 0u32;
        loop {
            let byte = self.bytes.get(self.pos / 2)?;
            let nibble = u32::from(byte >> (4 * (self.pos % 2)) & 0xF);
            self.pos += 1;
            value = value.checked_mul(8)? | nibble & 7;
            if nibble & 8 == 0 {
                return Some(value);
            }
        }
    }

    /// What follows, from the next whole byte on.
    fn rest(&self) -> Option<&'d [u8]> {
        self.bytes.get(self.pos.div_ceil(2)..)
    }
}

/// Numbers in bits, the lowest bit of the first byte first.
struct Bits<'d> {
    bytes: &'d [u8],
    /// In bits.
    pos: usize,
}

impl Bits<'_> {
    /// A number of up to 32 bits.
    fn number(&mut self, width: u32) -> Option<u32> {
        let mut value = 0;
        for bit in 0..width {
            let byte = self.bytes.get(self.pos / 8)?;
            value |= u32::from(byte >> (self.pos % 8) & 1) << bit;
            self.pos += 1;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Nibbles, bounds};

    /// Examples of dotnet/runtime, docs/design/datacontracts/DebugInfo.md. (Its rows for 64 and 65 contradict its rule.)
    #[test]
    fn nibbles_as_in_the_documentation() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x07], 7),
            (&[0x09], 8),
            (&[0x19], 9),
            (&[0x7F], 63),
            (&[0x89, 0x00], 64),
            (&[0xFF, 0x07], 511),
            (&[0x89, 0x08], 512),
            (&[0x89, 0x18], 513),
        ] {
            assert_eq!(Nibbles::new(bytes).number(), Some(value), "{bytes:x?}");
        }
        assert_eq!(Nibbles::new(&[0x88, 0x88]).number(), None);
        assert_eq!(Nibbles::new(&[0xFF; 16]).number(), None);
    }

    /// Three bounds by hand: (0, prolog), (5, IL 0), (70, epilog), with flags 2, 0 and 1.
    const PAIRS: [(u32, i32); 3] = [(0, -2), (5, 0), (70, -3)];

    #[test]
    fn bounds_in_nibbles() {
        // Lengths 6 and 0; count 3; 0, 1, 2; 5, 3, 0; 65 as 9 8 1, 0, 1.
        let blob = [0x06, 0x03, 0x21, 0x35, 0x90, 0x18, 0x10, 0xEE];
        assert_eq!(bounds(&blob, 5).unwrap(), PAIRS);
        for len in 0..7 {
            assert_eq!(bounds(&blob[..len], 5), None);
        }
    }

    fn packed(flag_bits: usize) -> Vec<u8> {
        let mut bits = Vec::new();
        for (flags, native, il) in [(2u32, 0u32, 1u32), (0, 5, 3), (1, 65, 0)] {
            for (value, width) in [(flags, flag_bits), (native, 7), (il, 2)] {
                bits.extend((0..width).map(|bit| (value >> bit & 1) as u8));
            }
        }
        // Count 3, widths 7 and 2.
        let mut bounds = vec![0x63, 0x01];
        bounds.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | bit)));
        bounds
    }

    #[test]
    fn bounds_in_bits() {
        let sixteen = [&[0x07][..], &packed(2)].concat();
        assert_eq!((sixteen.len(), packed(2).len()), (8, 7));
        assert_eq!(bounds(&sixteen, 16).unwrap(), PAIRS);
        let seventeen = packed(3);
        assert_eq!(seventeen.len(), 7);
        assert_eq!(bounds(&[&[0x07][..], &seventeen].concat(), 17).unwrap(), PAIRS);
        // Zero, then six lengths: 7 and five more, in four bytes.
        assert_eq!(bounds(&[&[0x70, 0, 0, 0][..], &seventeen].concat(), 24).unwrap(), PAIRS);
        assert_eq!(bounds(&[&[0x07][..], &seventeen].concat(), 25), None);
        for len in 0..8 {
            assert_eq!(bounds(&sixteen[..len], 16), None);
        }
    }

    #[test]
    fn absurd_counts_end_with_the_data() {
        // Count of 2^31 in the longest form, and nothing behind it.
        let blob = [0x07, 0x9A, 0x88, 0x88, 0x88, 0x88, 0x08, 0x00, 0x00];
        assert_eq!(bounds(&blob, 5), None);
        assert_eq!(bounds(&blob, 16), None);
    }
}
