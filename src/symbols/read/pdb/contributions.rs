//! Section contributions: which piece of a section the linker took from which compiland.
//!
//! A large program has one for each function, of 28 bytes each: they are read where they lie. Linkers list them by
//! place, which a look-up depends on; where one does not, their order is kept beside them.

use super::Place;
use super::read_at::ReadAt;
use super::stream::Stream;

/// The list begins with its version (`DBISCImpvV60`, `DBISCImpv2` in microsoft-pdb, PDB/dbi/dbicommon.h); the later one
/// has one field more in each item.
const VERSION_SIZE: usize = 4;
const VERSION_2: u32 = 0xeffe_0000 + 20_140_516;
const SIZE: usize = 28;
const SIZE_2: usize = 32;

/// Lld lists pieces without code among the others: so many in a row are passed over.
const MAX_EMPTY: usize = 64;

/// A piece of a section that the linker took from one compiland.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) start: Place,
    size: u32,
    pub(super) compiland: usize,
}

impl Contribution {
    pub(super) fn contains(&self, place: Place) -> bool {
        self.start.section == place.section && place < self.start.forward(self.size)
    }
}

/// The contributions of a PDB, in the order of their places.
#[derive(Debug)]
pub(super) struct Contributions<'a> {
    items: Stream<'a>,
    item_size: usize,
    order: Order,
}

#[derive(Debug)]
enum Order {
    /// As the PDB has them.
    AsListed,
    /// Numbers of those that have code, ascending by place.
    Sorted(Vec<u32>),
}

impl<'a> Contributions<'a> {
    pub(super) fn new(list: Stream<'a>) -> Self {
        let item_size = if list.u32(0) == Some(VERSION_2) { SIZE_2 } else { SIZE };
        let items = list.part(VERSION_SIZE, list.len().saturating_sub(VERSION_SIZE)).unwrap_or_default();
        items.will_be_read();
        let listed = Contributions { items, item_size, order: Order::AsListed };
        if listed.is_in_order() { listed } else { listed.sorted() }
    }

    fn is_in_order(&self) -> bool {
        let (mut last, mut empty) = (None, 0);
        let mut items = (0..self.count()).filter_map(|number| self.item(number));
        items.all(|item| {
            empty = if item.size == 0 { empty + 1 } else { 0 };
            let before = last.replace(item.start);
            before <= last && empty <= MAX_EMPTY
        })
    }

    fn sorted(self) -> Self {
        let item = |number: u32| self.item(number as usize);
        let has_code = |number: &u32| item(*number).is_some_and(|one| one.size != 0);
        let mut numbers: Vec<u32> = (0..self.count() as u32).filter(has_code).collect();
        numbers.sort_by_key(|&number| item(number).map(|one| one.start));
        Contributions { order: Order::Sorted(numbers), ..self }
    }

    /// Whether the PDB lists none at all.
    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn count(&self) -> usize {
        match &self.order {
            Order::AsListed => self.items.len() / self.item_size,
            Order::Sorted(numbers) => numbers.len(),
        }
    }

    fn item(&self, number: usize) -> Option<Contribution> {
        let item = self.items.bytes(number.checked_mul(self.item_size)?, self.item_size)?;
        let start = Place { section: item.u16_at(0)?, offset: item.u32_at(4)? };
        Some(Contribution { start, size: item.u32_at(8)?, compiland: item.u16_at(16)?.into() })
    }

    fn get(&self, index: usize) -> Option<Contribution> {
        match &self.order {
            Order::AsListed => self.item(index),
            Order::Sorted(numbers) => self.item(*numbers.get(index)? as usize),
        }
    }

    /// The one that holds `place`.
    pub(super) fn at(&self, place: Place) -> Option<Contribution> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)?.start <= place { low = middle + 1 } else { high = middle }
        }
        let before = (0..low).rev().take(MAX_EMPTY + 1).filter_map(|index| self.get(index));
        before.into_iter().find(|piece| piece.size != 0).filter(|piece| piece.contains(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: u32 = 0xeffe_0000 + 19_970_605;

    /// A list of (section, offset, size, compiland).
    fn list(version: u32, items: &[(u16, u32, u32, u16)]) -> Vec<u8> {
        let mut list = version.to_le_bytes().to_vec();
        for (section, offset, size, compiland) in items {
            let words = [u32::from(*section), *offset, *size, 0x20, u32::from(*compiland), 0, 0];
            list.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            list.extend([0; 4].iter().take(if version == VERSION_2 { 4 } else { 0 }));
        }
        list
    }

    fn compilands(list: &[u8], places: &[(u16, u32)]) -> Vec<Option<usize>> {
        let contributions = Contributions::new(Stream::from_pieces([list]));
        let place = |(section, offset): &(u16, u32)| Place { section: *section, offset: *offset };
        places.iter().map(|at| Some(contributions.at(place(at))?.compiland)).collect()
    }

    #[test]
    fn a_place_belongs_to_the_piece_that_holds_it_in_whatever_order_they_are() {
        let places = [(1, 0), (1, 9), (1, 10), (1, 16), (1, 24), (2, 4), (2, 16), (3, 0)];
        let wanted = [Some(7), Some(7), None, Some(8), None, Some(9), None, None];
        let in_order = [(1, 0, 10, 7), (1, 16, 8, 8), (2, 0, 16, 9)];
        let empty = (1, 16, 0, 5);
        for version in [VERSION, VERSION_2] {
            for items in [
                &in_order[..],
                &[in_order[2], in_order[0], in_order[1]],
                &[in_order[0], empty, in_order[1], in_order[2]],
                &[in_order[0], in_order[1], empty, in_order[2]],
                &[&[in_order[0]], &[empty; MAX_EMPTY + 2][..], &in_order[1..]].concat(),
            ] {
                assert_eq!(compilands(&list(version, items), &places), wanted, "{version:x} {items:?}");
            }
        }
        assert_eq!(compilands(&list(VERSION, &[]), &places), [None; 8]);
        assert_eq!(compilands(&[], &places), [None; 8]);
    }

    #[test]
    fn a_list_in_order_costs_no_memory() {
        let order = |items: &[(u16, u32, u32, u16)]| {
            let list = list(VERSION, items);
            matches!(Contributions::new(Stream::from_pieces([&*list])).order, Order::AsListed)
        };
        assert!(order(&[(1, 0, 10, 7), (1, 16, 8, 8), (2, 0, 16, 9)]));
        assert!(order(&[(1, 0, 0, 7), (1, 0, 10, 8), (1, 16, 0, 8), (1, 16, 0, 8)]));
        assert!(!order(&[(1, 16, 8, 8), (1, 0, 10, 7)]));
        assert!(!order(&[(1, 0, 0, 7); MAX_EMPTY + 1]));
    }
}
