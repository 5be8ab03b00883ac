//! What a recipe makes of one frame, wherever it stands.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use fancy_regex::Regex;

use super::language::GaveUp;
use super::recipe::{Arrow, Item, List, Recipe};

/// How a frame reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameText<'t> {
    /// What patterns match: `C:\app\app!Program.Main(class System.String[])`, `Process64 app (100)`, `Thread (101)`. The
    /// module has its folder and no `.exe` or `.dll`.
    pub verbose: Cow<'t, str>,
    /// What is shown: `app!Program.Main(class System.String[])`. Nodes of one caller that show the same are one node.
    pub short: Cow<'t, str>,
}

impl<'t> FrameText<'t> {
    /// A frame that reads `verbose`, shown without the folder of its module.
    pub fn of(verbose: &'t str) -> FrameText<'t> {
        FrameText { verbose: verbose.into(), short: short_name(verbose).into() }
    }
}

/// A frame's name without the folder of its module: what stands behind the last `\` or `/` before the first `!`.
pub fn short_name(verbose: &str) -> &str {
    let module = verbose.split_once('!').map_or("", |(module, _)| module);
    let folder = module.rfind(['\\', '/']).map_or(0, |slash| slash + 1);
    verbose.get(folder..).unwrap_or(verbose)
}

/// What a recipe makes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Its samples are dropped.
    Exclude,
    /// It folds into its caller.
    Fold,
    /// It stands, for itself or for a group.
    Stand {
        group: Option<(String, Arrow)>,
        /// The items of IncPats that it matches.
        inc: Vec<usize>,
        /// A method of an iterator or of an async method that is in no group.
        is_move_next: bool,
    },
}

/// On how many frames an item could not be tried to its end, by its list and its number there.
pub(super) type Untried = BTreeMap<(List, usize), usize>;

/// Decides on a frame. Items that give up count as no match and go to `untried`.
pub(super) fn decide(recipe: &Recipe, text: &FrameText<'_>, untried: &mut Untried) -> Decision {
    let FrameText { verbose, short } = text;
    // What has no name in a module is one node, however many addresses it has.
    let nameless = || verbose.ends_with("!?").then(|| (short.to_string(), Arrow::Plain));
    let group = group_of(recipe, verbose, untried).or_else(nameless);
    let name = match &group {
        None => Cow::Borrowed(&**verbose),
        Some((group, Arrow::Plain)) => Cow::Borrowed(group.as_str()),
        Some((group, Arrow::Entry)) => Cow::Owned(entry_name(group, short)),
    };
    let mut matching = |list| {
        let is_match = |(number, item): &(usize, &Item)| {
            item.pattern.is_match(&name).unwrap_or_else(|GaveUp| {
                *untried.entry((list, *number)).or_default() += 1;
                false
            })
        };
        recipe.list(list).iter().enumerate().filter(is_match).map(|(number, _)| number).collect::<Vec<_>>()
    };
    if !matching(List::Exc).is_empty() {
        return Decision::Exclude;
    }
    if !matching(List::Fold).is_empty() {
        return Decision::Fold;
    }
    let inc = matching(List::Inc);
    let is_move_next = group.is_none() && verbose.contains(".MoveNext()");
    Decision::Stand { group, inc, is_move_next }
}

/// How a group reads that was entered by a frame.
pub(super) fn entry_name(group: &str, entry: &str) -> String {
    format!("{group} <<{entry}>>")
}

/// Bytes of the name that a chain of items makes. Each could double it.
const LONGEST_NAME: usize = 1 << 16;

/// The group of a frame. A `->` item renames the frame for the items after it, a `=>` item or an empty name ends the
/// search.
fn group_of(recipe: &Recipe, verbose: &str, untried: &mut Untried) -> Option<(String, Arrow)> {
    let mut found: Option<String> = None;
    for (number, item) in recipe.group.iter().enumerate() {
        let name = item.name(found.as_deref().unwrap_or(verbose)).unwrap_or_else(|GaveUp| {
            *untried.entry((List::Group, number)).or_default() += 1;
            None
        });
        let Some(name) = name else { continue };
        if name.is_empty() {
            return None;
        }
        let name = cut(name);
        if item.arrow == Arrow::Entry {
            return Some((name, Arrow::Entry));
        }
        found = Some(name);
    }
    found.map(|name| (name, Arrow::Plain))
}

fn cut(mut name: String) -> String {
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

/// The module that stands before the first `!`: letters, digits, `.` and `_`, perhaps none; `None` where nothing at all
/// does.
pub(super) fn module(name: &str) -> Option<&str> {
    let (before, _) = name.split_once('!')?;
    let start = before.char_indices().rev().take_while(|(_, c)| is_of_module(*c)).last();
    (!before.is_empty()).then(|| start.and_then(|(start, _)| before.get(start..)).unwrap_or_default())
}

/// .NET knows no letters beyond the first 65,536 characters.
fn is_of_module(c: char) -> bool {
    static LETTER_OR_DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A[\p{L}\p{Nd}]\z").ok());
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    }
    let is_letter = |regex: &Regex| regex.is_match(c.encode_utf8(&mut [0; 4])).unwrap_or(false);
    c <= '\u{FFFF}' && LETTER_OR_DIGIT.as_ref().is_some_and(is_letter)
}
