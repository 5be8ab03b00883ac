//! What a node of a call tree is called.

use std::borrow::Cow;

use crate::profile::Category;

/// What a node of a call tree is called, and what kind of code it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// The text. It may come from a file, and hold anything.
    pub text: Cow<'a, str>,
    /// The kind of code, for its colour.
    pub category: Category,
    /// True for a function that was inlined into the one above it.
    pub inlined: bool,
}

impl Label<'_> {
    /// The module that the text begins with, if it does.
    pub fn module(&self) -> Option<&str> {
        let (module, _) = self.text.split_once('!')?;
        // `operator !(T)` of a method without a module, and `GROUP <<module!function>>`.
        let is_module = !module.ends_with(' ') && !module.contains(['<', '(']);
        (self.category != Category::Heading && is_module).then_some(module)
    }
}

/// Gives the labels of entries; reports of call trees take one.
pub trait Labels<E> {
    /// The label of an entry.
    fn label(&self, entry: E) -> Label<'_>;

    /// What all of them together are called.
    fn all(&self) -> &'static str {
        "all"
    }
}

/// Entries that are their own labels, as native code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Labels<&str> for Plain {
    fn label(&self, entry: &str) -> Label<'_> {
        Label { text: entry.to_owned().into(), category: Category::Native, inlined: false }
    }
}
