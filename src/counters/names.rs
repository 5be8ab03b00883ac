//! The names of objects and counters, which blocks have only as indices.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bytes::Reader;

/// Names by index: the value `Counter 009` (English) of `Perflib`.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<u32, Arc<str>>);

impl Names {
    /// Reads a `REG_MULTI_SZ` of UTF-16 texts in turn index and name. A pair whose index is no number is left out; of two
    /// names for an index the first counts.
    pub fn parse(value: &[u8]) -> Names {
        let mut reader = Reader::new(value);
        let mut names = BTreeMap::new();
        loop {
            let index = reader.utf16();
            if index.is_empty() || reader.rest().is_empty() {
                return Names(names);
            }
            let name = reader.utf16();
            if let Ok(index) = index.to_string().trim().parse() {
                names.entry(index).or_insert_with(|| name.to_string().into());
            }
        }
    }

    /// The name with this index; the index itself as `#238` if it has none.
    pub fn name(&self, index: u32) -> Arc<str> {
        self.get(index).cloned().unwrap_or_else(|| format!("#{index}").into())
    }

    /// The name with this index.
    pub fn get(&self, index: u32) -> Option<&Arc<str>> {
        self.0.get(&index)
    }

    /// True if a text means this index: its name in any case, or its number.
    pub fn is(&self, index: u32, text: &str) -> bool {
        let by_name = self.get(index).is_some_and(|name| name.to_lowercase() == text.to_lowercase());
        by_name || text.strip_prefix('#').unwrap_or(text).parse() == Ok(index)
    }

    /// The indices that a text means ([`is`](Names::is)), for a query of those objects alone.
    pub fn indices(&self, text: &str) -> Vec<u32> {
        self.0.keys().copied().filter(|index| self.is(*index, text)).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, by index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.0.iter().map(|(index, name)| (*index, &**name))
    }
}
