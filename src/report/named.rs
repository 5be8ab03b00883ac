//! The names in a tree: nodes whose text is the same are one thing in a table, as they look the same in the tree.

use rustc_hash::FxHashMap;

use crate::profile::{Arranged, Category, Entry};

use super::label::Labels;
use super::spelling::Spelling;

/// The names of the entries of a tree, each once.
#[derive(Debug, Default)]
pub(super) struct NamesOf {
    numbers: FxHashMap<Entry, NameId>,
    names: Vec<Name>,
}

/// An index into [`NamesOf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NameId(pub(super) u32);

/// A name, and what is known of the first entry that has it.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// As the tree shows it.
    pub(super) text: String,
    /// The module that it begins with; empty for one without.
    pub(super) module: String,
    pub(super) category: Category,
    /// One of the entries.
    pub(super) entry: Entry,
}

impl NamesOf {
    pub(super) fn new(arranged: &Arranged, spelling: &Spelling<'_>) -> NamesOf {
        let mut all = NamesOf::default();
        let mut by_text: FxHashMap<String, NameId> = FxHashMap::default();
        for (_, node) in arranged.counts.nodes() {
            let entry = node.entry;
            all.numbers.entry(entry).or_insert_with(|| {
                let label = spelling.label(entry);
                let (text, category) = (label.text.into_owned(), label.category);
                *by_text.entry(text.clone()).or_insert_with(|| {
                    all.names.push(Name { text, module: spelling.module(entry), category, entry });
                    NameId(all.names.len() as u32 - 1)
                })
            });
        }
        all
    }

    /// The name of an entry of the tree.
    pub(super) fn of(&self, entry: Entry) -> Option<NameId> {
        self.numbers.get(&entry).copied()
    }

    /// A name by its id.
    pub(super) fn get(&self, id: NameId) -> Option<&Name> {
        self.names.get(id.0 as usize)
    }

    /// All of them, in the order of the tree.
    pub(super) fn all(&self) -> impl Iterator<Item = (NameId, &Name)> + Clone {
        (0..).map(NameId).zip(&self.names)
    }
}
