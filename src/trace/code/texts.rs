//! Names, stored once.

use std::fmt::{Display, Write};
use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A text in [`Texts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

/// Interned texts, one behind the other. The methods of a type share its name, those of a trace their signatures.
#[derive(Debug)]
pub(super) struct Texts {
    all: String,
    /// Where each text ends in `all`.
    ends: Vec<usize>,
    index: HashTable<u32>,
}

impl Default for Texts {
    /// With the empty text as the first.
    fn default() -> Self {
        Texts { all: String::new(), ends: vec![0], index: HashTable::new() }
    }
}

impl Texts {
    /// The id of a text.
    pub(super) fn intern(&mut self, text: impl Display) -> TextId {
        // Written behind the others at first, and taken away again if it is known.
        let from = self.all.len();
        let _infallible = write!(self.all, "{text}");
        let Some(new) = self.all.get(from..).filter(|new| !new.is_empty()) else { return TextId(0) };
        let hash = hash(new);
        let (all, ends) = (&self.all, &self.ends);
        if let Some(known) = self.index.find(hash, |id| slice(all, ends, *id) == new) {
            let known = TextId(*known);
            self.all.truncate(from);
            return known;
        }
        let id = self.ends.len() as u32;
        self.ends.push(self.all.len());
        let (all, ends) = (&self.all, &self.ends);
        self.index.insert_unique(hash, id, |id| self::hash(slice(all, ends, *id)));
        TextId(id)
    }

    pub(super) fn get(&self, id: TextId) -> &str {
        slice(&self.all, &self.ends, id.0)
    }
}

fn slice<'a>(all: &'a str, ends: &[usize], id: u32) -> &'a str {
    let end = |id: u32| ends.get(id as usize).copied();
    let from = id.checked_sub(1).and_then(end).unwrap_or(0);
    end(id).and_then(|to| all.get(from..to)).unwrap_or_default()
}

fn hash(text: &str) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(text)
}

#[cfg(test)]
mod tests {
    use super::{TextId, Texts};

    #[test]
    fn equal_texts_have_one_id() {
        let mut texts = Texts::default();
        let ids: Vec<TextId> =
            ["a", "", "System.String", "a", "b", "System.String"].map(|t| texts.intern(t)).into();
        assert_eq!(ids[0], ids[3]);
        assert_eq!(ids[2], ids[5]);
        assert_eq!(ids[1], TextId::default());
        assert_eq!([ids[0], ids[1], ids[2], ids[4]].map(|id| texts.get(id)), ["a", "", "System.String", "b"]);
        assert_eq!(texts.all, "aSystem.Stringb");
        for number in 0..1000 {
            assert_eq!(texts.intern(number), texts.intern(number));
        }
        assert_eq!(texts.get(ids[2]), "System.String");
    }
}
