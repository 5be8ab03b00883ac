//! Names, stored once.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::bytes::{ROOM, Text, Utf16};

/// A text in [`Texts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

impl TextId {
    /// Its place in [`Texts::iter`].
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// True for the text of no characters.
    pub(super) fn is_empty(self) -> bool {
        self == TextId::default()
    }
}

/// Interned texts, one behind the other. The methods of a type share its name, those of a trace their signatures; the
/// processes of a rundown share the paths of their images.
#[derive(Debug)]
pub(super) struct Texts {
    all: String,
    /// Where each text ends in `all`.
    ends: Vec<usize>,
    /// With their hashes, so that growing reads no text again.
    index: HashTable<(u64, TextId)>,
}

impl Default for Texts {
    /// With the empty text as the first.
    fn default() -> Self {
        Texts { all: String::new(), ends: vec![0], index: HashTable::new() }
    }
}

impl Texts {
    /// The id of a text.
    pub(super) fn intern(&mut self, text: impl Text) -> TextId {
        let mut room = [0; ROOM];
        if let Some(bytes) = text.utf8(&mut room)
            && let Some(known) = self.find(hash(bytes), bytes)
        {
            return known;
        }
        // Written behind the others, and taken away again if it is known after all.
        let from = self.all.len();
        let _infallible = text.write_to(&mut self.all);
        let new = self.all.as_bytes().get(from..).unwrap_or_default();
        let hash = hash(new);
        if let Some(known) = self.find(hash, new) {
            self.all.truncate(from);
            return known;
        }
        let id = TextId(self.ends.len() as u32);
        self.ends.push(self.all.len());
        self.index.insert_unique(hash, (hash, id), |(hash, _)| *hash);
        id
    }

    fn find(&self, hash: u64, text: &[u8]) -> Option<TextId> {
        if text.is_empty() {
            return Some(TextId::default());
        }
        let is_it = |(other, id): &(u64, TextId)| *other == hash && self.get(*id).as_bytes() == text;
        self.index.find(hash, is_it).map(|(_, known)| *known)
    }

    /// The id of a text that is probably this one.
    pub(super) fn intern_probable(&mut self, text: Utf16<'_>, probable: TextId) -> TextId {
        match text.reads(self.get(probable)) {
            true => probable,
            false => self.intern(text),
        }
    }

    pub(super) fn get(&self, id: TextId) -> &str {
        let end = |id: u32| self.ends.get(id as usize).copied();
        let from = id.0.checked_sub(1).and_then(end).unwrap_or(0);
        end(id.0).and_then(|to| self.all.get(from..to)).unwrap_or_default()
    }

    /// All of them, by their ids from 0 on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|id| self.get(TextId(id)))
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{TextId, Texts};
    use crate::bytes::{Ansi, Reader};

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
            let number = number.to_string();
            assert_eq!(texts.intern(number.as_str()), texts.intern(number.as_str()));
        }
        assert_eq!(texts.get(ids[2]), "System.String");
    }

    #[test]
    fn how_a_file_writes_a_text_does_not_matter() {
        let mut texts = Texts::default();
        for text in ["short", "é", &"long ".repeat(40), &"é".repeat(200)] {
            let id = texts.intern(text);
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let utf16 = Reader::new(&wide).utf16();
            assert_eq!([texts.intern(utf16), texts.intern_probable(utf16, TextId::default())], [id; 2]);
            assert_eq!(texts.intern(Ansi(text.as_bytes())), id);
        }
        // Latin-1, for it is no UTF-8.
        assert_eq!(texts.intern(Ansi(b"\xe9")), texts.intern("é"));
        let unpaired = Reader::new(&[0x00, 0xD8]).utf16();
        assert_eq!(texts.intern(unpaired), texts.intern("\u{fffd}"));
    }
}
