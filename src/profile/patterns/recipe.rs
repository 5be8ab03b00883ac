//! The lists of a recipe.

use std::fmt;

use super::language::{GaveUp, Pattern};
use super::presets;

/// A recipe as it is written. Each list has items with `;` between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipeText {
    /// What becomes a group: `PATTERN->NAME`, or `PATTERN=>NAME` with a node for each entry into the group. The name of a
    /// [preset](super::presets()) in brackets, alone, stands for the preset.
    pub group: String,
    /// Frames that fold into their callers.
    pub fold: String,
    /// Stacks must match every one of these.
    pub inc: String,
    /// Stacks must match none of these.
    pub exc: String,
    /// The path of the program's executable, for `[Just My App]`.
    pub program: Option<String>,
}

/// A list of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum List {
    /// GroupPats.
    Group,
    /// FoldPats.
    Fold,
    /// IncPats.
    Inc,
    /// ExcPats.
    Exc,
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            List::Group => "GroupPats",
            List::Fold => "FoldPats",
            List::Inc => "IncPats",
            List::Exc => "ExcPats",
        })
    }
}

/// An item that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{item}` in {list}: {cause}")]
pub struct PatternError {
    /// The list that it is in.
    pub list: List,
    /// The item, as it is written.
    pub item: String,
    /// Why it cannot be read.
    pub cause: PatternCause,
}

/// Why an item cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternCause {
    /// A `}` without a `{`.
    #[error("`}}` has no `{{` before it")]
    Unopened,
    /// A `{` without a `}`.
    #[error("`{{` has no `}}` after it")]
    Unclosed,
    /// A set of characters after `@` that .NET reads otherwise.
    #[error("`{0}` in a set of characters is not supported; to mean the characters, put `\\` before each")]
    Set(&'static str),
    /// A group after `@` that takes another's place or takes it back.
    #[error("balancing groups, as in `(?<a-b>...)`, are not supported")]
    Balancing,
    /// No regular expression, or one with something that is not supported.
    #[error("{0}")]
    Regex(String),
    /// A name in brackets, alone, that no preset has.
    #[error("no preset has this name")]
    NoPreset,
}

/// A recipe that can be applied.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    text: RecipeText,
    pub(super) group: Vec<GroupItem>,
    fold: Vec<Item>,
    inc: Vec<Item>,
    exc: Vec<Item>,
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Recipe) -> bool {
        self.text == other.text
    }
}

/// An item of a list.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) text: String,
    pub(super) pattern: Pattern,
}

/// An item of GroupPats.
#[derive(Clone, Debug)]
pub(super) struct GroupItem {
    pub(super) text: String,
    pub(super) arrow: Arrow,
    pub(super) rule: Rule,
}

/// What an item of GroupPats does.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// `{%}!=>module $1`, written exactly so: the module by the characters before the first `!`.
    Module,
    /// A pattern, and the template of the group's name.
    Named(Pattern, String),
}

/// What a group shows of how it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    /// `->`: nothing.
    Plain,
    /// `=>`: a node for each frame by which the group was entered.
    Entry,
}

impl Recipe {
    /// Reads a recipe.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for the first item that cannot be read, in the order of the fields.
    pub fn parse(text: &RecipeText) -> Result<Recipe, PatternError> {
        let RecipeText { group, fold, inc, exc, program } = text;
        let group = presets::expanded(group, program.as_deref())?;
        Ok(Recipe {
            text: text.clone(),
            group: items(&group).map(group_item).collect::<Result<_, _>>()?,
            fold: list(List::Fold, fold)?,
            inc: list(List::Inc, inc)?,
            exc: list(List::Exc, exc)?,
        })
    }

    /// What was read.
    pub fn text(&self) -> &RecipeText {
        &self.text
    }

    /// The items of a list other than GroupPats.
    pub(super) fn list(&self, list: List) -> &[Item] {
        match list {
            List::Group => &[],
            List::Fold => &self.fold,
            List::Inc => &self.inc,
            List::Exc => &self.exc,
        }
    }

    /// An item as it is written.
    pub(super) fn item(&self, list: List, number: usize) -> Option<&str> {
        match list {
            List::Group => self.group.get(number).map(|item| item.text.as_str()),
            list => self.list(list).get(number).map(|item| item.text.as_str()),
        }
    }
}

/// Items without the blanks around them, and no empty ones.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(';').map(str::trim).filter(|item| !item.is_empty())
}

fn list(list: List, text: &str) -> Result<Vec<Item>, PatternError> {
    let item = |item: &str| Ok(Item { text: item.to_owned(), pattern: pattern(list, item, item)? });
    items(text).map(item).collect()
}

fn pattern(list: List, item: &str, pattern: &str) -> Result<Pattern, PatternError> {
    Pattern::new(pattern).map_err(|cause| PatternError { list, item: item.to_owned(), cause })
}

fn group_item(item: &str) -> Result<GroupItem, PatternError> {
    let (arrow, before, name) = match (item.split_once("=>"), item.split_once("->")) {
        (Some((before, name)), _) => (Arrow::Entry, before, name.trim()),
        (None, Some((before, name))) => (Arrow::Plain, before, name.trim()),
        (None, None) => (Arrow::Plain, item, "$&"),
    };
    let rule = match item {
        presets::MODULE_ENTRIES => Rule::Module,
        _ => Rule::Named(pattern(List::Group, item, before)?, name.to_owned()),
    };
    Ok(GroupItem { text: item.to_owned(), arrow, rule })
}

impl GroupItem {
    /// The name that the item gives to a frame that reads `name`; `None` where it does not match.
    pub(super) fn name(&self, name: &str) -> Result<Option<String>, GaveUp> {
        match &self.rule {
            Rule::Module => Ok(super::frame::module(name).map(|module| format!("module {module}"))),
            Rule::Named(pattern, template) => pattern.expand(template, name),
        }
    }
}
