//! The code of a tree as tables: functions, images, and locations with what is inlined in them. pprof and OpenTelemetry
//! share this model.

use rustc_hash::FxHashMap;

use crate::interned::Interned;
use crate::prefix_tree::NodeId;
use crate::profile::{Category, Entry};
use crate::report::format::Picture;
use crate::report::label::Labels;
use crate::report::text::one_line;
use crate::trace::{Module, ModuleId};

/// The functions in a location, at most. More would be a file's invention; they become callers.
const MOST_LINES: u8 = 200;

/// Texts by number; number 0 is the empty one.
#[derive(Debug)]
pub(super) struct Strings(Interned<String>);

impl Strings {
    pub(super) fn new() -> Strings {
        let mut all = Interned::default();
        all.number(String::new());
        Strings(all)
    }

    /// The number of a text, made safe to show.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        self.0.number(one_line(text).into_owned())
    }

    /// All of them, by their numbers.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.0.into_things()
    }
}

/// A function: its name and its source file, by their [`Strings`]; 0 for no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) name: u32,
    pub(super) file: u32,
}

/// A function at a source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    /// An index into [`Code::functions`].
    pub(super) function: u32,
    /// 0 where it is not known.
    pub(super) line: u32,
}

/// Code that is one place for the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    /// Its image: an index into [`Code::modules`].
    pub(super) module: Option<u32>,
    /// Of the instruction, relative to the image or, without one, absolute; 0 where it is not known, and for several.
    pub(super) address: u64,
    /// What kind of code it is.
    pub(super) category: Category,
    /// The innermost inlined function first, the one that has the code last.
    pub(super) lines: Vec<Line>,
}

/// The code of a tree.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) functions: Vec<Function>,
    pub(super) modules: Vec<ModuleId>,
    pub(super) locations: Vec<Location>,
    /// Stacks by number: the location, an index into [`Code::locations`], and the stack that it was called from.
    stacks: Vec<(u32, Option<StackId>)>,
    /// The stacks of nodes that samples end in or that call others.
    of_nodes: Vec<Option<StackId>>,
}

/// A stack. Nodes that differ in nothing that locations have are one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StackId(u32);

/// A node as a step of a stack.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The node that its location was called from.
    caller: Option<NodeId>,
    /// How many nodes above it are of the same location.
    depth: u8,
}

/// What is known of an entry.
#[derive(Clone, Copy, Debug)]
struct Part {
    line: Line,
    module: Option<ModuleId>,
    address: u64,
    category: Category,
    /// In the code of what is above it.
    inlined: bool,
}

impl Code {
    /// The code of all nodes.
    pub(super) fn new(picture: &Picture<'_>, strings: &mut Strings) -> Code {
        let tree = &picture.arranged.counts;
        let mut functions = Interned::default();
        let mut parts: FxHashMap<Entry, Part> = FxHashMap::default();
        for (_, node) in tree.nodes() {
            let part = || part(picture, node.entry, strings, &mut functions);
            parts.entry(node.entry).or_insert_with(part);
        }
        let part_of = |id: NodeId| tree.node(id).and_then(|node| parts.get(&node.entry));

        // Where locations begin and end; parents come before their children.
        let mut steps: Vec<Step> = Vec::new();
        let mut ends = vec![false; tree.nodes().count()];
        for (id, node) in tree.nodes() {
            let above = node.parent.and_then(|parent| steps.get(parent.0 as usize)).copied();
            let inside = above.filter(|above| {
                let (part, outer) = (part_of(id), node.parent.and_then(part_of));
                let of_one = |(part, outer): (&Part, &Part)| {
                    part.inlined && (part.module, part.address) == (outer.module, outer.address)
                };
                // Of a tree of callers the outer function is below.
                !picture.shape.inverted && above.depth < MOST_LINES && part.zip(outer).is_some_and(of_one)
            });
            let (caller, depth) = match inside {
                Some(above) => (above.caller, above.depth + 1),
                None => (node.parent, 0),
            };
            if inside.is_none() {
                mark(&mut ends, node.parent);
            }
            if node.leaf != 0 {
                mark(&mut ends, Some(id));
            }
            steps.push(Step { caller, depth });
        }

        let (mut modules, mut locations) = (Interned::default(), Interned::default());
        let mut stacks: Interned<(u32, Option<StackId>)> = Interned::default();
        let mut of_nodes: Vec<Option<StackId>> = Vec::new();
        for ((id, _), (step, ends)) in tree.nodes().zip(steps.iter().zip(ends)) {
            let entries = tree.path(id).take(usize::from(step.depth) + 1);
            let inside = || entries.filter_map(|node| parts.get(&node.entry)).collect();
            let inside: Vec<&Part> = if ends { inside() } else { Vec::new() };
            of_nodes.push(inside.last().map(|outer| {
                let location = locations.number(Location {
                    module: outer.module.map(|module| modules.number(module)),
                    address: outer.address,
                    category: outer.category,
                    lines: inside.iter().map(|part| part.line).collect(),
                });
                let caller =
                    step.caller.and_then(|caller| of_nodes.get(caller.0 as usize).copied().flatten());
                StackId(stacks.number((location, caller)))
            }));
        }
        Code {
            functions: functions.into_things(),
            modules: modules.into_things(),
            locations: locations.into_things(),
            stacks: stacks.into_things(),
            of_nodes,
        }
    }

    /// The stack that ends in a node.
    pub(super) fn stack(&self, node: NodeId) -> Option<StackId> {
        self.of_nodes.get(node.0 as usize).copied().flatten()
    }

    /// The locations of a stack, from the leaf back to the root.
    pub(super) fn locations_of(&self, stack: StackId) -> impl Iterator<Item = u32> {
        let step = |stack: StackId| self.stacks.get(stack.0 as usize).copied();
        std::iter::successors(step(stack), move |(_, caller)| step((*caller)?)).map(|(location, _)| location)
    }
}

fn mark(ends: &mut [bool], node: Option<NodeId>) {
    if let Some(end) = node.and_then(|node| ends.get_mut(node.0 as usize)) {
        *end = true;
    }
}

fn part(
    picture: &Picture<'_>,
    entry: Entry,
    strings: &mut Strings,
    functions: &mut Interned<Function>,
) -> Part {
    let frame = entry.frame().and_then(|frame| picture.profile().stacks.frame(frame));
    let line = frame.and_then(|frame| frame.line.as_ref());
    // An entry stands for all lines and places that the tree does not tell apart.
    let (detail, place) = (picture.shape.detail, picture.place(entry));
    let number = line.filter(|_| detail.lines && place.is_some()).map_or(0, |line| line.line);
    let address = place.map(|frame| {
        let instruction = frame.instruction.filter(|_| detail.addresses);
        // What is known by its address has it in its name.
        instruction.filter(|_| frame.unresolved.is_none()).map_or(frame.address, |at| at.rva.into())
    });
    let label = picture.labels.label(entry);
    let function = Function {
        name: strings.number(&label.text),
        file: line.map_or(0, |line| strings.number(&line.file)),
    };
    Part {
        line: Line { function: functions.number(function), line: number },
        module: frame.and_then(|frame| frame.module),
        address: address.unwrap_or(0),
        category: label.category,
        inlined: label.inlined,
    }
}

/// The kind of the code that a node's stack ends in; `None` where that is no code.
pub(super) fn category(picture: &Picture<'_>, node: NodeId) -> Option<Category> {
    let mut path = picture.arranged.counts.path(node);
    let innermost = if picture.shape.inverted { path.last() } else { path.next() };
    let category = match innermost?.entry {
        Entry::Group(group) => picture.arranged.groups.get(group.0 as usize)?.category,
        entry => picture.profile().stacks.frame(entry.frame()?)?.category,
    };
    Some(category).filter(|category| *category != Category::Heading)
}

/// What identifies the build of an image: the GUID and age of its PDB, as symbol servers write them.
pub(super) fn build_id(module: &Module) -> Option<String> {
    Some(module.pdb.as_ref()?.id.digits())
}
