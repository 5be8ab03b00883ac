//! How stacks change on their way into a call tree: what stands above them, what of them is folded, and which part of
//! them is looked at.
//!
//! The steps come in the order of [`Shape`]'s fields. Folding a frame gives what it has to its caller. A step that
//! leaves a stack out counts its samples in the balance: no shape changes the sum of samples.

mod focus;
mod glue;
mod own_code;
mod recursion;

use std::sync::Arc;

use crate::event::NO_ID;
use crate::interned::Interned;
use crate::prefix_tree::NodeId;
use crate::trace::{Process, ProcessId, Runner};

use rustc_hash::FxHashMap;

use super::arrange::{Detail, functions};
use super::frame::{Entry, Group, GroupId};
use super::patterns::{Engine, FrameText, List, Recipe, Shaped};
use super::{Category, Profile};

pub use focus::{Focus, Part};

use own_code::OwnCode;

/// What stands above the code in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grouping {
    /// Nothing.
    #[default]
    None,
    /// A node for each process.
    Process,
    /// A node for each process, and below it one for each of its threads.
    Thread,
    /// A node for each module: that of the leaf.
    Module,
    /// A node for each kind of code: that of the leaf.
    Category,
}

/// How the stacks of a profile become a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// What stands above the code.
    pub grouping: Grouping,
    /// How much of its facts a frame shows.
    pub detail: Detail,
    /// Group, fold and choose by PerfView's patterns. What they see of a stack begins with its process and its thread,
    /// whatever the grouping shows of them.
    pub patterns: Option<Patterns>,
    /// Fold what only leads from one kind of code to another, where it is no leaf: stubs that the .NET runtime generates,
    /// thunks, and what runs 32-bit code on a 64-bit system.
    pub fold_glue: bool,
    /// Fold the kernel into the code that called it.
    pub fold_kernel: bool,
    /// Fold code from outside the program's own folder into one node for each way in.
    pub own_code: bool,
    /// Show a function, or a round of up to 16 functions, that calls itself again and again once.
    pub fold_recursion: bool,
    /// Look at one function.
    pub focus: Option<Focus>,
    /// The leaf first, its callers below; in a focus on [`Part::Callers`] also what stands above the code.
    pub inverted: bool,
    /// Keep where each sample ends in the tree ([`Arranged::ends`](super::Arranged::ends)), and not only how many do.
    pub keep_ends: bool,
}

/// PerfView's patterns, and what they see.
#[derive(Clone, Debug, PartialEq)]
pub struct Patterns {
    /// What they say.
    pub recipe: Recipe,
    /// How each entry reads. One that is not among them reads as nothing.
    pub names: FxHashMap<Entry, FrameText<'static>>,
}

/// A pattern that took too long on some frames, where it counted as no match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaveUp {
    /// The list that it is in.
    pub list: List,
    /// The pattern.
    pub item: String,
    /// On how many frames.
    pub frames: usize,
}

/// Gives the text of an entry to the engine of patterns.
type TextOf<'p> = Box<dyn FnMut(Entry) -> FrameText<'p> + 'p>;

/// Shapes the stacks of a profile.
pub(super) struct Shaper<'p> {
    profile: &'p Profile,
    shape: &'p Shape,
    /// By frame.
    glue: Vec<bool>,
    /// By frame, what stands for it wherever in its function it is; where that matters.
    functions: Vec<Option<Entry>>,
    /// Where it matters.
    own_code: Option<OwnCode<'p>>,
    patterns: Option<Engine<'p, Entry, TextOf<'p>>>,
    groups: Interned<Group>,
    /// Of the processes that are shown alike, the first.
    processes: FxHashMap<(u32, &'p str), ProcessId>,
}

/// Code without a name, whatever its address; all else as it is.
fn unnamed(profile: &Profile, entry: Entry) -> Entry {
    match entry {
        Entry::Frame(id) if profile.stacks.frame(id).is_some_and(|frame| frame.function.is_none()) => {
            Entry::Unnamed(id)
        }
        entry => entry,
    }
}

fn engine(patterns: &Patterns) -> Engine<'_, Entry, TextOf<'_>> {
    let text = |entry: Entry| match patterns.names.get(&entry) {
        Some(FrameText { verbose, short }) => {
            FrameText { verbose: (&**verbose).into(), short: (&**short).into() }
        }
        None => FrameText::of(""),
    };
    Engine::new(&patterns.recipe, Box::new(text))
}

/// Why a stack is not in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    ByPatterns,
    ByFocus,
}

/// What a path depends on: equal keys have equal paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// 0 where it does not matter, and so the thread's.
    process: ProcessId,
    tid: u32,
    stack: NodeId,
}

impl<'p> Shaper<'p> {
    pub(super) fn new(profile: &'p Profile, shape: &'p Shape) -> Shaper<'p> {
        Shaper {
            profile,
            shape,
            glue: if shape.fold_glue { glue::of(profile) } else { Vec::new() },
            functions: if shape.fold_recursion { functions(profile, shape.detail) } else { Vec::new() },
            own_code: shape.own_code.then(|| OwnCode::new(profile)),
            patterns: shape.patterns.as_ref().map(engine),
            groups: Interned::default(),
            processes: FxHashMap::default(),
        }
    }

    pub(super) fn key(&self, runner: Runner, stack: NodeId) -> Key {
        let by_thread = self.shape.grouping == Grouping::Thread;
        let by_thread = by_thread || self.shape.patterns.is_some();
        let by_process = by_thread || self.shape.grouping == Grouping::Process || self.shape.own_code;
        let process = if by_process { runner.process } else { ProcessId(0) };
        Key { process, tid: if by_thread { runner.tid } else { 0 }, stack }
    }

    /// Changes a path of remarks and frames, from the root on.
    pub(super) fn shape(
        &mut self,
        runner: Runner,
        stack: NodeId,
        path: &mut Vec<Entry>,
    ) -> Result<(), LeftOut> {
        let by_runner = matches!(self.shape.grouping, Grouping::Process | Grouping::Thread);
        // Patterns get to see the process and the thread, and may make something else of them.
        let from_patterns = self.patterns.is_some() && by_runner;
        let mut tops = if from_patterns { Vec::new() } else { self.tops(runner, stack) };
        if self.patterns.is_some() {
            path.splice(0..0, [Entry::Process(runner.process), Entry::Thread(runner.process, runner.tid)]);
            if !self.apply_patterns(path) {
                return Err(LeftOut::ByPatterns);
            }
            // What patterns made a group of them stays where it is.
            path.retain(|entry| match (entry, self.shape.grouping) {
                (Entry::Process(_), Grouping::Process | Grouping::Thread)
                | (Entry::Thread(..), Grouping::Thread) => {
                    tops.push(*entry);
                    false
                }
                (entry, _) => !matches!(entry, Entry::Process(_) | Entry::Thread(..)),
            });
        }
        if self.shape.fold_glue {
            self.fold_glue(path);
        }
        if self.shape.fold_kernel {
            self.fold_kernel(path);
        }
        self.fold_others(runner.process, path);
        if self.shape.fold_recursion {
            recursion::fold(path, |entry| self.same_code(entry));
        }
        if let Some(focus) = &self.shape.focus
            && !focus.cut(path)
        {
            return Err(LeftOut::ByFocus);
        }
        // Whoever looks for callers finds threads and processes behind the last of them.
        let callers_only = self.shape.focus.as_ref().is_some_and(|focus| focus.part == Part::Callers);
        if self.shape.inverted && !callers_only {
            path.reverse();
        }
        path.splice(0..0, tops);
        if self.shape.inverted && callers_only {
            path.reverse();
        }
        if path.is_empty() {
            // Patterns folded all of it into a process that is not shown.
            path.push(self.group("[folded]", Category::Heading, None));
        }
        Ok(())
    }

    /// Applies the patterns to a path. False if they leave it out.
    fn apply_patterns(&mut self, path: &mut Vec<Entry>) -> bool {
        let Some(engine) = &mut self.patterns else { return true };
        let Ok(kept) = engine.apply(path.iter().copied()) else { return false };
        path.clear();
        for shaped in kept.stack {
            path.push(match shaped {
                // Of code without a name the engine knows the module alone.
                Shaped::Frame(entry) => unnamed(self.profile, entry),
                Shaped::Group(id) => {
                    let Some(group) = engine.groups().get(id.0 as usize) else { continue };
                    // What is in it is mostly of one kind.
                    let first = engine.members(id).first().and_then(|entry| entry.frame());
                    let frame = first.and_then(|first| self.profile.stacks.frame(first));
                    let category = frame.map_or(Category::Heading, |frame| frame.category);
                    let entry = group.entry.map(|entry| unnamed(self.profile, entry));
                    let group = Group { name: group.name.clone(), entry, category };
                    Entry::Group(GroupId(self.groups.number(group)))
                }
            });
        }
        true
    }

    /// Patterns that took too long.
    pub(super) fn gave_up(&self) -> Vec<GaveUp> {
        let engine = self.patterns.iter();
        engine
            .flat_map(|engine| engine.gave_up())
            .map(|(list, item, frames)| GaveUp { list, item: item.to_owned(), frames })
            .collect()
    }

    /// What [`Entry::Group`] stands for.
    pub(super) fn groups(self) -> Vec<Group> {
        self.groups.into_things()
    }

    fn group(&mut self, name: &str, category: Category, entry: Option<Entry>) -> Entry {
        Entry::Group(GroupId(self.groups.number(Group { name: Arc::from(name), entry, category })))
    }

    /// What stands above a stack.
    fn tops(&mut self, runner: Runner, stack: NodeId) -> Vec<Entry> {
        let Runner { process, tid, .. } = runner;
        match self.shape.grouping {
            Grouping::None => Vec::new(),
            Grouping::Process => vec![Entry::Process(self.shown(process))],
            Grouping::Thread => {
                let process = self.shown(process);
                vec![Entry::Process(process), Entry::Thread(process, tid)]
            }
            Grouping::Module | Grouping::Category => {
                let profile = self.profile;
                let Some(frame) = profile.stacks.leaf(stack) else { return Vec::new() };
                if self.shape.grouping == Grouping::Category {
                    return vec![self.group(frame.category.text(), frame.category, None)];
                }
                let image = frame.module.and_then(|module| profile.trace.module(module));
                let name = match (profile.stacks.function_of(frame), image) {
                    (Some(function), _) if !function.module.is_empty() => &function.module,
                    (_, Some(module)) => super::cut_module_name(module.name()),
                    _ => "[no module]",
                };
                vec![self.group(name, Category::Heading, None)]
            }
        }
    }

    /// Of an id that was used again by the same program, and of an id and name that only an event mentions, the first.
    fn shown(&mut self, process: ProcessId) -> ProcessId {
        let profile = self.profile;
        let alike = |of: &'p Process| *self.processes.entry((of.pid, of.label())).or_insert(process);
        profile.trace.process(process).map_or(process, alike)
    }

    fn fold_glue(&self, path: &mut Vec<Entry>) {
        let last = path.len().saturating_sub(1);
        let mut place = 0;
        path.retain(|entry| {
            place += 1;
            let is_glue = || {
                entry.frame().is_some_and(|frame| self.glue.get(frame.0 as usize).is_some_and(|glue| *glue))
            };
            place > last || self.is_asked_for(*entry) || !is_glue()
        });
        // What they stood between may be one node.
        path.dedup_by(|below, above| below == above && matches!(above, Entry::Unnamed(_)));
    }

    /// An entry that is the same for all frames of a function.
    fn same_code(&self, entry: Entry) -> Entry {
        let Entry::Frame(id) = entry else { return entry };
        self.functions.get(id.0 as usize).copied().flatten().unwrap_or(entry)
    }

    /// Cuts a path where it enters the kernel; one that is all kernel becomes one node.
    fn fold_kernel(&mut self, path: &mut Vec<Entry>) {
        let Some(border) = path.iter().position(|entry| self.is_kernel(*entry)) else { return };
        if let Some(asked_for) = path.iter().rposition(|entry| self.is_asked_for(*entry))
            && asked_for >= border
        {
            path.truncate(asked_for + 1);
            return;
        }
        let has_caller = path.get(..border).is_some_and(|above| above.iter().any(|entry| entry.is_code()));
        path.truncate(border);
        if !has_caller {
            let kernel = self.group("[kernel]", Category::Kernel, None);
            path.push(kernel);
        }
    }

    /// Whoever asks for a function gets to see it.
    fn is_asked_for(&self, entry: Entry) -> bool {
        self.shape.focus.as_ref().is_some_and(|focus| focus.is_at(entry))
    }

    fn is_kernel(&self, entry: Entry) -> bool {
        let frame = entry.frame().and_then(|id| self.profile.stacks.frame(id));
        frame.is_some_and(|frame| match frame.module {
            Some(_) => frame.category == Category::Kernel,
            None => frame.unresolved.is_some() && self.profile.trace.is_kernel_address(frame.address),
        })
    }

    /// Makes each run of frames that are not the program's own one node, named by the first of them.
    fn fold_others(&mut self, process: ProcessId, path: &mut Vec<Entry>) {
        let Some(mut own_code) = self.own_code.take_if(|own_code| own_code.is_known(process)) else { return };
        let mut folded: Vec<Entry> = Vec::with_capacity(path.len());
        let mut outside = false;
        for entry in path.iter() {
            let Some(id) = entry.frame() else {
                folded.push(*entry);
                outside = false;
                continue;
            };
            let is_other = !self.is_asked_for(*entry) && !own_code.is_own(process, id);
            if is_other && !outside {
                let frame = self.profile.stacks.frame(id);
                let category = frame.map_or(Category::Heading, |frame| frame.category);
                folded.push(self.group("OTHER", category, Some(*entry)));
            } else if !is_other {
                folded.push(*entry);
            }
            outside = is_other;
        }
        *path = folded;
        self.own_code = Some(own_code);
    }
}

impl Profile {
    /// The processes for which [`Shape::own_code`] knows no folder of their own: theirs stays as it is. Those
    /// without samples are none of them.
    pub fn without_own_folder(&self) -> Vec<&Process> {
        let mut own_code = OwnCode::new(self);
        let mut processes: Vec<ProcessId> =
            self.samples.iter().map(|sample| self.runner(sample).process).collect();
        processes.sort_unstable();
        processes.dedup();
        let unknown = processes.into_iter().filter(|process| !own_code.is_known(*process));
        let of = |id| self.trace.process(id).filter(|process| process.pid != NO_ID);
        unknown.filter_map(of).collect()
    }
}
