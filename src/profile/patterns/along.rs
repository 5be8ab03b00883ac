//! What a recipe makes of a stack: the frames from the root to the leaf, each with what became of its caller.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::interned::Interned;
use crate::profile::GroupId;

use super::frame::{Decision, FrameText, Untried, decide, entry_name};
use super::recipe::{Arrow, List, Recipe};

/// What a node of a shaped stack stands for. Equal ones read alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shaped<E> {
    /// A frame; of several that show the same, the first.
    Frame(E),
    /// Frames that are shown as one: an index into [`Engine::groups`].
    Group(GroupId),
}

/// Frames that are shown as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternGroup<E> {
    /// Its name, without the entry.
    pub name: Arc<str>,
    /// The frame by which it was entered, where that is shown.
    pub entry: Option<E>,
}

/// A stack that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept<E> {
    /// From the root to the leaf. A stack of one frame or more never becomes empty.
    pub stack: Vec<Shaped<E>>,
    /// How many frames FoldPats folded into the leaf. PerfView's column Fold counts stacks with any.
    pub folded: u32,
}

/// Why a stack is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// One of its frames matches ExcPats.
    Excluded,
    /// Some item of IncPats matches none of its frames.
    NotIncluded,
}

/// Applies a recipe to stacks of frames `E`, which it reads by `text`, each distinct one once.
pub struct Engine<'r, E, N> {
    recipe: &'r Recipe,
    text: N,
    numbers: FxHashMap<E, usize>,
    frames: Vec<Known>,
    /// Names of groups; a group is the number of its name.
    names: Interned<Arc<str>>,
    /// Frames by group, each once.
    members: Vec<Vec<E>>,
    /// The names of `MoveNext` methods.
    move_nexts: Interned<Arc<str>>,
    shown: FxHashMap<Identity<E>, Shaped<E>>,
    /// What reads so, first.
    by_name: FxHashMap<Arc<str>, Shaped<E>>,
    groups: Vec<PatternGroup<E>>,
    /// How each of `groups` reads, and which group it is.
    shown_groups: Vec<(Arc<str>, u32)>,
    untried: Untried,
}

/// What is known of a frame.
struct Known {
    short: Arc<str>,
    role: Role,
    inc: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Role {
    Exclude,
    Fold,
    /// In a group, or a `MoveNext` method of the name of this number.
    Stand {
        group: Option<(u32, Arrow)>,
        move_next: Option<u32>,
    },
}

/// Levels of a stack with one identity are one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Identity<E> {
    Frame(E),
    Group(u32),
    Entry(u32, E),
}

/// What became of the caller.
#[derive(Clone, Copy)]
struct Caller<E> {
    identity: Identity<E>,
    group: Option<u32>,
    move_next: Option<u32>,
    folded: u32,
}

impl<'r, 't, E: Copy + Eq + Hash, N: FnMut(E) -> FrameText<'t>> Engine<'r, E, N> {
    /// Applies `recipe` to frames that read as `text` says. Frames are the same if their ids are: those that read alike
    /// and have two ids are one node below a caller, but one that calls the other is no recursion.
    pub fn new(recipe: &'r Recipe, text: N) -> Self {
        Engine {
            recipe,
            text,
            numbers: FxHashMap::default(),
            frames: Vec::new(),
            names: Interned::default(),
            members: Vec::new(),
            move_nexts: Interned::default(),
            shown: FxHashMap::default(),
            by_name: FxHashMap::default(),
            groups: Vec::new(),
            shown_groups: Vec::new(),
            untried: Untried::default(),
        }
    }

    /// Shapes a stack, given from its root to its leaf.
    ///
    /// # Errors
    ///
    /// [`Dropped`] where the recipe does not keep it.
    pub fn apply(&mut self, stack: impl IntoIterator<Item = E>) -> Result<Kept<E>, Dropped> {
        let mut kept = Kept { stack: Vec::new(), folded: 0 };
        let mut included = vec![false; self.recipe.list(List::Inc).len()];
        let mut caller: Option<Caller<E>> = None;
        for frame in stack {
            let number = self.number(frame);
            let Some(known) = self.frames.get(number) else { continue };
            let (group, move_next) = match (known.role, &mut caller) {
                (Role::Exclude, _) => return Err(Dropped::Excluded),
                (Role::Fold, Some(caller)) => {
                    caller.folded += 1;
                    continue;
                }
                // There is nothing to fold into: it stands, and in no group.
                (Role::Fold, None) => (None, None),
                (Role::Stand { group, move_next }, _) => (group, move_next),
            };
            let identity = match (group, &caller) {
                (None, _) => Identity::Frame(frame),
                (Some((group, Arrow::Plain)), _) => Identity::Group(group),
                (Some((group, Arrow::Entry)), Some(caller)) if caller.group == Some(group) => caller.identity,
                (Some((group, Arrow::Entry)), _) => Identity::Entry(group, frame),
            };
            let is_recursion = |caller: Caller<E>| {
                caller.identity == identity || move_next.is_some() && caller.move_next == move_next
            };
            if caller.is_some_and(is_recursion) {
                continue;
            }
            for item in &known.inc {
                if let Some(included) = included.get_mut(*item) {
                    *included = true;
                }
            }
            let group = group.map(|(group, _)| group);
            caller = Some(Caller { identity, group, move_next, folded: 0 });
            let shown = self.show(identity);
            kept.stack.push(shown);
        }
        if !included.into_iter().all(|is| is) {
            return Err(Dropped::NotIncluded);
        }
        kept.folded = caller.map_or(0, |caller| caller.folded);
        Ok(kept)
    }

    /// What [`Shaped::Group`] stands for.
    pub fn groups(&self) -> &[PatternGroup<E>] {
        &self.groups
    }

    /// The frames in a group, by whatever entry, in the order in which they were first seen.
    pub fn members(&self, group: GroupId) -> &[E] {
        let members =
            self.shown_groups.get(group.0 as usize).and_then(|(_, name)| self.members.get(*name as usize));
        members.map_or(&[], Vec::as_slice)
    }

    /// How a node reads.
    pub fn name(&self, shaped: Shaped<E>) -> &str {
        match shaped {
            Shaped::Frame(frame) => {
                let number = self.numbers.get(&frame);
                number.and_then(|number| self.frames.get(*number)).map_or("", |known| &known.short)
            }
            Shaped::Group(group) => self.shown_groups.get(group.0 as usize).map_or("", |(name, _)| name),
        }
    }

    /// Items that took too long on some frames, where they counted as no match: list, item, and on how many. Only
    /// regular expressions with lookaround or backreferences can.
    pub fn gave_up(&self) -> impl Iterator<Item = (List, &'r str, usize)> {
        let recipe = self.recipe;
        self.untried
            .iter()
            .filter_map(move |((list, number), frames)| Some((*list, recipe.item(*list, *number)?, *frames)))
    }

    fn number(&mut self, frame: E) -> usize {
        if let Some(number) = self.numbers.get(&frame) {
            return *number;
        }
        let text = (self.text)(frame);
        let (role, inc) = match decide(self.recipe, &text, &mut self.untried) {
            Decision::Exclude => (Role::Exclude, Vec::new()),
            Decision::Fold => (Role::Fold, Vec::new()),
            Decision::Stand { group, inc, is_move_next } => {
                let group = group.map(|(name, arrow)| {
                    let group = self.names.number(name.into());
                    match self.members.get_mut(group as usize) {
                        Some(members) => members.push(frame),
                        None => self.members.push(vec![frame]),
                    }
                    (group, arrow)
                });
                let move_next = is_move_next.then(|| self.move_nexts.number((*text.verbose).into()));
                (Role::Stand { group, move_next }, inc)
            }
        };
        self.frames.push(Known { short: (*text.short).into(), role, inc });
        self.numbers.insert(frame, self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// The node of an identity: the first that reads as it does.
    fn show(&mut self, identity: Identity<E>) -> Shaped<E> {
        if let Some(shown) = self.shown.get(&identity) {
            return *shown;
        }
        let name: Arc<str> = match identity {
            Identity::Frame(frame) => self.short(frame),
            Identity::Group(group) => self.group_name(group),
            Identity::Entry(group, entry) => entry_name(&self.group_name(group), &self.short(entry)).into(),
        };
        let shown = match self.by_name.get(&name) {
            Some(shown) => *shown,
            None => self.node(identity, &name),
        };
        self.by_name.insert(name, shown);
        self.shown.insert(identity, shown);
        shown
    }

    /// A node for an identity that reads `name`. A group that reads like the first frame in it is that frame.
    fn node(&mut self, identity: Identity<E>, name: &Arc<str>) -> Shaped<E> {
        let (group, entry) = match identity {
            Identity::Frame(frame) => return Shaped::Frame(frame),
            Identity::Group(group) => (group, None),
            Identity::Entry(group, entry) => (group, Some(entry)),
        };
        let first = self.members.get(group as usize).and_then(|members| members.first());
        if let Some(first) = first.filter(|first| self.short(**first) == *name) {
            return Shaped::Frame(*first);
        }
        self.groups.push(PatternGroup { name: self.group_name(group), entry });
        self.shown_groups.push((Arc::clone(name), group));
        Shaped::Group(GroupId((self.groups.len() - 1) as u32))
    }

    fn short(&self, frame: E) -> Arc<str> {
        let known = self.numbers.get(&frame).and_then(|number| self.frames.get(*number));
        known.map_or_else(|| "".into(), |known| Arc::clone(&known.short))
    }

    fn group_name(&self, group: u32) -> Arc<str> {
        self.names.get(group).map_or_else(|| "".into(), Arc::clone)
    }
}
