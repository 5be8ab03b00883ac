//! The two containers of the "native format": a sparse array and a hash table (dotnet/runtime,
//! readytorun-format.md, "Native Format").

use super::super::cursor::Cursor;

/// Elements of a sparse array are grouped by this many.
const BLOCK: u32 = 16;

/// A sparse array: from an index to a place in the section, where there is one.
///
/// A header gives the count and the width of the block offsets; each block is a binary trie over the index's low four
/// bits, its nodes written as integers: bit 0 a left child follows, bit 1 a right child at the distance in the rest.
pub(super) struct NativeArray<'d> {
    section: &'d [u8],
    /// Where the block offsets begin; they count from here.
    base: usize,
    count: u32,
    offset_size: u32,
}

impl<'d> NativeArray<'d> {
    pub(super) fn parse(section: &'d [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(section, 0);
        let header = cursor.native_unsigned()?;
        let (count, offset_size) = (header >> 2, header & 3);
        // The block offsets must be there: this bounds the count by the file.
        let index_len = (count.div_ceil(BLOCK) as usize) << offset_size;
        (offset_size < 3 && index_len <= cursor.remaining()).then_some(NativeArray {
            section,
            base: cursor.pos(),
            count,
            offset_size,
        })
    }

    /// How many elements may be there.
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// The elements that are there, with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Cursor<'d>)> {
        (0..self.count).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Where an element is, if it is there.
    pub(super) fn get(&self, index: u32) -> Option<Cursor<'d>> {
        if index >= self.count {
            return None;
        }
        let slot = self.base + (((index / BLOCK) as usize) << self.offset_size);
        let block = Cursor::new(self.section, slot).offset(self.offset_size)?;
        let mut place = self.base.checked_add(block as usize)?;
        let mut bit = BLOCK / 2;
        while bit > 0 {
            let mut cursor = Cursor::new(self.section, place);
            let node = cursor.native_unsigned()?;
            let right = index & bit != 0;
            bit /= 2;
            if right && node & 2 != 0 {
                place = place.checked_add((node >> 2) as usize)?;
            } else if !right && node & 1 != 0 {
                place = cursor.pos();
            } else if node & 3 == 0 && node >> 2 == index % BLOCK {
                // A block with one element names it instead of growing branches.
                return Some(cursor);
            } else {
                return None;
            }
        }
        Some(Cursor::new(self.section, place))
    }
}

/// A hash table: buckets of (one byte of the hash, distance to the value).
pub(super) struct NativeHashtable<'d> {
    section: &'d [u8],
    buckets: u32,
    offset_size: u32,
}

impl<'d> NativeHashtable<'d> {
    /// Where the bucket offsets begin; they count from here.
    const BASE: usize = 1;

    pub(super) fn parse(section: &'d [u8]) -> Option<Self> {
        let header = u32::from(*section.first()?);
        let (shift, offset_size) = (header >> 2, header & 3);
        let buckets = 1u32.checked_shl(shift)?;
        // One offset more than buckets: the end of the last.
        let index_len = (buckets as usize + 1) << offset_size;
        (offset_size < 3 && index_len < section.len()).then_some(NativeHashtable {
            section,
            buckets,
            offset_size,
        })
    }

    /// The offsets of all values, in no order. Real buckets do not overlap, so the table cannot hold more entries
    /// than pairs of bytes; a table that claims more is read up to there.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.buckets).flat_map(|bucket| self.bucket(bucket)).take(self.section.len() / 2)
    }

    fn bucket(&self, bucket: u32) -> impl Iterator<Item = u32> + use<'d> {
        let slot = Self::BASE + ((bucket as usize) << self.offset_size);
        let mut offsets = Cursor::new(self.section, slot);
        let start = offsets.offset(self.offset_size).unwrap_or_default();
        let end = offsets.offset(self.offset_size).unwrap_or_default();
        let mut cursor = Cursor::new(self.section, Self::BASE.saturating_add(start as usize));
        let end = Self::BASE.saturating_add(end as usize);
        std::iter::from_fn(move || {
            if cursor.pos() >= end {
                return None;
            }
            cursor.u8()?; // low byte of the hash
            let from = u32::try_from(cursor.pos()).ok()?;
            from.checked_add_signed(cursor.native_signed()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NativeArray, NativeHashtable};

    #[test]
    fn array_of_one_element() {
        // Count 5, one-byte offsets: header 5 << 2 = 20, encoded 40. One block at offset 1: leaf for index 3, value.
        let section = [40, 1, (3 << 2) << 1, 0x54];
        let array = NativeArray::parse(&section).unwrap();
        let found: Vec<_> =
            array.iter().map(|(index, mut cursor)| (index, cursor.native_unsigned())).collect();
        assert_eq!(found, [(3, Some(42))]);
    }

    #[test]
    fn array_with_branches() {
        // Elements 0 and 8: the root has both children; each goes left three times more (leaf nodes name the index).
        let section = [(9 << 2) << 1, 1, (3 | 2 << 2) << 1, 0, 10, (8 << 2) << 1, 12];
        // Right child at distance 2 from the root would be the value 10; at 3 it is the node for 8.
        let mut section = section;
        section[2] = (3 | 3 << 2) << 1;
        let array = NativeArray::parse(&section).unwrap();
        let found: Vec<_> =
            array.iter().map(|(index, mut cursor)| (index, cursor.native_unsigned())).collect();
        assert_eq!(found, [(0, Some(5)), (8, Some(6))]);
    }

    #[test]
    fn counts_beyond_the_section_are_refused() {
        assert!(NativeArray::parse(&[0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0]).is_none());
        assert!(NativeHashtable::parse(&[0x7C, 0, 0]).is_none());
        assert!(NativeHashtable::parse(&[]).is_none());
    }

    #[test]
    fn hashtable_of_one_bucket() {
        // One bucket, offsets of one byte: entries from base + 2 to base + 4; distance 1 from its own place.
        let section = [0, 2, 4, 0xAA, 1 << 1, 0x99];
        let found: Vec<_> = NativeHashtable::parse(&section).unwrap().iter().collect();
        assert_eq!(found, [5]);
    }
}
