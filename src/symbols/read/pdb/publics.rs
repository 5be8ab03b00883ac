//! Public symbols: the linker's own names, decorated and without sizes, for whatever has external linkage.
//!
//! Their records lie in no order in the symbol record stream; the stream of publics has an *address map*, the
//! offsets of the records in the order of their addresses. A binary search through it reads a dozen records.
//! (microsoft-pdb, PDB/dbi/gsi.h: `PSGSIHDR`.)

use std::borrow::Cow;

use super::Place;
use super::read_at::ReadAt;
use super::stream::Stream;

const S_PUB32: u16 = 0x110e;
const S_PUB32_ST: u16 = 0x1009;

const HEADER_SIZE: usize = 28;

/// The public symbols of a PDB, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Publics<'a> {
    records: Stream<'a>,
    order: Order<'a>,
}

/// Offsets of records, ascending by address.
#[derive(Debug)]
enum Order<'a> {
    /// As the PDB has it.
    AddressMap { stream: Stream<'a>, start: usize, count: usize },
    /// For PDBs without an address map.
    Sorted(Vec<u32>),
}

impl Default for Order<'_> {
    fn default() -> Self {
        Order::Sorted(Vec::new())
    }
}

/// A public symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Public<'a> {
    pub(super) start: Place,
    /// Decorated.
    pub(super) name: Cow<'a, str>,
}

impl<'a> Publics<'a> {
    pub(super) fn new(records: Stream<'a>, publics: Option<Stream<'a>>) -> Self {
        let order = publics.and_then(address_map).unwrap_or_else(|| scan(&records));
        Publics { records, order }
    }

    fn count(&self) -> usize {
        match &self.order {
            Order::AddressMap { count, .. } => *count,
            Order::Sorted(offsets) => offsets.len(),
        }
    }

    fn record_offset(&self, index: usize) -> Option<usize> {
        match &self.order {
            Order::AddressMap { stream, start, .. } => stream.u32(start + 4 * index),
            Order::Sorted(offsets) => offsets.get(index).copied(),
        }
        .map(|offset| offset as usize)
    }

    fn place(&self, index: usize) -> Option<Place> {
        let offset = self.record_offset(index)?;
        Some(Place { section: self.records.u16(offset + 12)?, offset: self.records.u32(offset + 8)? })
    }

    /// Index of the first symbol behind `place`.
    fn index_behind(&self, place: Place) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            // A record that cannot be read sorts last.
            if self.place(middle).is_some_and(|start| start <= place) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }

    /// The last symbol at or before `place` in its section, and the first place behind it that has a symbol.
    pub(super) fn at(&self, place: Place) -> Option<(Public<'a>, Option<Place>)> {
        let behind = self.index_behind(place);
        let start = self.place(behind.checked_sub(1)?)?;
        if start.section != place.section {
            return None;
        }
        // Of several names for one address, the first by the linker's order.
        let first = start.before().map_or(0, |before| self.index_behind(before));
        let offset = self.record_offset(first.min(behind - 1))?;
        Some((Public { start, name: self.name(offset)? }, self.place(behind)))
    }

    /// The names of all of them.
    pub(super) fn names(&self) -> impl Iterator<Item = Cow<'a, str>> {
        (0..self.count()).filter_map(|index| self.name(self.record_offset(index)?))
    }

    fn name(&self, offset: usize) -> Option<Cow<'a, str>> {
        let (kind, body, _) = self.records.record(offset)?;
        let name = match kind {
            S_PUB32 => body.cstr_at(10)?,
            S_PUB32_ST => {
                body.get(10..)?.split_first().and_then(|(len, rest)| rest.get(..usize::from(*len)))?
            }
            _ => return None,
        };
        Some(String::from_utf8_lossy(name).into_owned().into())
    }
}

fn address_map(stream: Stream<'_>) -> Option<Order<'_>> {
    let (hash_size, map_size) = (stream.u32(0)? as usize, stream.u32(4)? as usize);
    let start = HEADER_SIZE.checked_add(hash_size)?;
    if map_size == 0 || start.checked_add(map_size)? > stream.len() {
        return None;
    }
    Some(Order::AddressMap { stream, start, count: map_size / 4 })
}

fn scan<'a>(records: &Stream<'_>) -> Order<'a> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some((kind, body, next)) = records.record(offset) {
        if let (S_PUB32 | S_PUB32_ST, Some(section), Some(start)) = (kind, body.u16_at(8), body.u32_at(4)) {
            found.push((Place { section, offset: start }, offset as u32));
        }
        offset = next;
    }
    found.sort();
    Order::Sorted(found.into_iter().map(|(_, offset)| offset).collect())
}
