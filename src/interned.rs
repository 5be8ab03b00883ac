//! Things that are stored once and known by a number.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Gives equal things one number, counted from 0 in the order in which they first came.
#[derive(Clone, Debug)]
pub(crate) struct Interned<T> {
    things: Vec<T>,
    numbers: HashTable<u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { things: Vec::new(), numbers: HashTable::new() }
    }
}

impl<T: Eq + Hash> Interned<T> {
    /// The number of a thing.
    pub(crate) fn number(&mut self, thing: T) -> u32 {
        let things = &mut self.things;
        let known = self.numbers.entry(
            FxBuildHasher.hash_one(&thing),
            |number| things.get(*number as usize) == Some(&thing),
            |number| things.get(*number as usize).map_or(0, |thing| FxBuildHasher.hash_one(thing)),
        );
        *known
            .or_insert_with(|| {
                things.push(thing);
                (things.len() - 1) as u32
            })
            .get()
    }

    /// The thing of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.things.get(number as usize)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// All things, by their numbers.
    pub(crate) fn into_things(self) -> Vec<T> {
        self.things
    }
}

#[cfg(test)]
mod tests {
    use super::Interned;

    #[test]
    fn equal_things_have_one_number() {
        let mut interned = Interned::default();
        assert_eq!(["a", "b", "a", "c", "b"].map(|thing| interned.number(thing)), [0, 1, 0, 2, 1]);
        assert_eq!((interned.len(), interned.get(2), interned.get(3)), (3, Some(&"c"), None));
        assert_eq!(interned.into_things(), ["a", "b", "c"]);
    }
}
