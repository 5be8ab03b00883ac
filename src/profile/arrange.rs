//! From a profile to a call tree: what stands above the code, and which frames are one node.

use rustc_hash::FxHashMap;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::{Certainty, FunctionName};
use crate::trace::{ModuleId, Trace};
use crate::winpath::file_name;

use super::filter::Balance;
use super::frame::{Entry, Frame, FrameId, FunctionId, Group, Instruction, Remark};
use super::limit::{Budget, Cut, Frames, text_cost};
use super::shape::{GaveUp, Grouping, Key, LeftOut, Shape, Shaper};
use super::stacks::Stacks;
use super::tier::Tier;
use super::tree::{CallTree, Values};
use super::{Category, Profile};

/// How much of its facts a frame shows. Frames that differ in nothing of it are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Inlined functions are frames of their own.
    pub inlined: bool,
    /// Functions are followed by their source file and line.
    pub lines: bool,
    /// .NET methods are preceded by their tier: `module![Tier1]Type.Method`.
    pub tiers: bool,
    /// Functions are named as their symbols or their runtime have it: with all template arguments, with signatures.
    pub raw: bool,
    /// .NET methods have their parameters always, not only where two would read alike.
    pub parameters: bool,
    /// How code without a name is told apart.
    pub nameless: Nameless,
    /// Functions are told apart by the instructions that ran, where frames keep them
    /// ([`Located::addresses`](super::Located::addresses)). No text shows them.
    pub addresses: bool,
}

/// How code without a name is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nameless {
    /// By its address.
    ByAddress,
    /// By where its function begins, as far as the image shows it; else by its address.
    #[default]
    ByFunction,
    /// By where its function begins; all the rest of an image is one node, `module!?`, below each caller, however many
    /// calls it makes inside.
    ByModule,
}

impl Default for Detail {
    fn default() -> Self {
        let nameless = Nameless::default();
        Detail {
            inlined: true,
            lines: false,
            tiers: false,
            raw: false,
            parameters: false,
            nameless,
            addresses: false,
        }
    }
}

/// The stacks of a profile as a call tree, counted twice.
#[derive(Clone, Debug)]
pub struct Arranged<E = Entry> {
    /// Counts samples, or what else the metric counts ([`Metric::counted`](super::Metric::counted)).
    pub counts: CallTree<E>,
    /// The sums of the samples' [values](super::Sample::value), by the nodes of `counts`: of CPU time in 100 ns.
    pub values: Values,
    /// What [`Entry::Group`] stands for.
    pub groups: Vec<Group>,
    /// The account of all samples of the trace; what the shape left out is counted as filtered out.
    pub balance: Balance,
    /// The samples that the shape left out, by their places in [`Profile::samples`], in ascending order.
    pub left_out: Vec<u32>,
    /// Where each other sample ends, in the order of [`Profile::samples`]; empty without [`Shape::keep_ends`].
    pub ends: Vec<End>,
    /// What the limit left out.
    pub cut: Cut,
    /// Patterns that took too long on some frames, where they counted as no match.
    pub gave_up: Vec<GaveUp>,
}

/// Where a sample is in a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The sample, by its place in [`Profile::samples`].
    pub sample: u32,
    /// The node that its stack ends in.
    pub node: NodeId,
}

impl Profile {
    /// Merges the stacks of all samples into one tree that counts samples, within the limit of the profile: a stack under
    /// each of many threads counts as often. What the limit left out comes with it.
    pub fn tree(&self, grouping: Grouping, detail: Detail) -> (CallTree<Entry>, Cut) {
        let arranged = self.arrange(&Shape { grouping, detail, ..Shape::default() });
        (arranged.counts, arranged.cut)
    }

    /// Merges the stacks of all samples into a tree, as `shape` says.
    pub fn arrange(&self, shape: &Shape) -> Arranged {
        let shown = shown(&self.trace, &self.stacks, shape.detail);
        let mut shaper = Shaper::new(self, shape);
        let mut tree: PrefixTree<Entry> = PrefixTree::default();
        let mut places: FxHashMap<Key, (Result<NodeId, LeftOut>, u32)> = FxHashMap::default();
        // The samples that end in each node, and their values.
        let mut leaves: Vec<(i64, i64)> = Vec::new();
        let mut budget = self.limit.budget();
        let (mut balance, mut cut) = (self.balance, Cut::default());
        let (mut left_out, mut ends) = (Vec::new(), Vec::new());
        for (number, sample) in (0..).zip(&self.samples) {
            let runner = self.runner(sample);
            let key = shaper.key(runner, sample.stack);
            let place = || {
                let (mut path, frames, missing) = self.path(sample.stack, &shown, &mut budget);
                let before = tree.len();
                // No path is empty.
                let shaped = shaper.shape(runner, sample.stack, &mut path);
                let node = shaped.map(|()| tree.extend(None, path.into_iter()).unwrap_or(NodeId(0)));
                budget.refund(frames.saturating_sub(tree.len() - before));
                (node, missing)
            };
            let (node, missing) = *places.entry(key).or_insert_with(place);
            let node = match node {
                Ok(node) => node,
                Err(why) => {
                    balance.leave_out(sample, &self.stacks, why);
                    left_out.push(number);
                    continue;
                }
            };
            if shape.keep_ends {
                ends.push(End { sample: number, node });
            }
            leaves.resize(tree.len(), (0, 0));
            if let Some((samples, value)) = leaves.get_mut(node.0 as usize) {
                *samples += i64::from(sample.count);
                *value = value.saturating_add(sample.value);
            }
            cut.add(missing, sample.count());
        }
        let by_node = || (0..).map(NodeId).zip(&leaves);
        Arranged {
            counts: CallTree::count(
                &tree,
                by_node().map(|(node, (samples, value))| (node, self.metric.weight(*samples, *value))),
            ),
            values: Values::count(&tree, by_node().map(|(node, (_, value))| (node, *value))),
            gave_up: shaper.gave_up(),
            groups: shaper.groups(),
            balance,
            left_out,
            ends,
            cut,
        }
    }

    /// The remarks and frames of a stack from its root on, how many frames were paid for, and how many are left out.
    fn path(&self, stack: NodeId, shown: &[Shown], budget: &mut Budget) -> (Vec<Entry>, usize, u32) {
        let mut frames = Frames::with_room(self.stacks.depth(stack) as usize);
        let (mut looked_at, mut missing) = (0, 0);
        for frame in self.stacks.frames_of(stack) {
            looked_at += 1;
            let Some(Shown { entry: Some(entry), cost }) = shown.get(frame.0 as usize) else { continue };
            let again = matches!(entry, Entry::Unnamed(_)) && frames.outermost() == Some(entry);
            if !again {
                frames.push(*entry, *cost, budget);
            }
            if frames.missing > 0 {
                // What is left may be long, and nothing of it is shown.
                missing = 1 + self.stacks.depth(stack).saturating_sub(looked_at);
                break;
            }
        }
        // With room for remarks, a process and a thread.
        let mut path = Vec::with_capacity(frames.iter().len() + 4);
        for remark in self.stacks.remarks(stack) {
            match remark {
                Remark::Cut(frames) => missing += frames,
                // Part of no stack, and never paid for.
                remark => path.push(Entry::Remark(remark)),
            }
        }
        // Stacks are cut at many depths; where they are is not worth a node each.
        path.extend((missing > 0).then_some(Entry::Remark(Remark::Cut(0))));
        let remarks = path.len();
        path.extend(frames.outermost_first());
        let paid = path.len() - remarks;
        (path, paid, missing)
    }
}

/// What stands for a frame in the tree; nothing for an inlined function that is not shown.
#[derive(Clone, Copy)]
struct Shown {
    entry: Option<Entry>,
    /// What its text costs.
    cost: u64,
}

/// What of a frame is seen.
#[derive(PartialEq, Eq, Hash)]
enum Seen<'s> {
    Function {
        function: FunctionId,
        certainty: Certainty,
        tier: Option<Tier>,
        line: Option<(&'s str, u32)>,
        /// A .NET method is one node, whether it ran precompiled or compiled again.
        code: Option<(Category, Option<ModuleId>, bool)>,
        instruction: Option<(Option<ModuleId>, Instruction)>,
    },
    Address(Option<ModuleId>, u64, Category),
    Unnamed(Option<ModuleId>, Category),
}

/// For each frame what is shown for it: of those that look alike, the first.
fn shown(trace: &Trace, stacks: &Stacks, detail: Detail) -> Vec<Shown> {
    let mut first: FxHashMap<Seen<'_>, FrameId> = FxHashMap::default();
    let modules: Vec<usize> = trace.modules.iter().map(|module| module.name().len()).collect();
    let mut show = |(id, frame)| {
        let frame: &Frame = frame;
        let cost = text_cost(longest_text(&modules, stacks, frame));
        if frame.inlined > 0 && !detail.inlined {
            return Shown { entry: None, cost };
        }
        let seen = seen(stacks, frame, detail);
        let unnamed = matches!(seen, Seen::Unnamed(..));
        let first = *first.entry(seen).or_insert(id);
        Shown { entry: Some(if unnamed { Entry::Unnamed(first) } else { Entry::Frame(first) }), cost }
    };
    (0..).map(FrameId).zip(stacks.frames()).map(&mut show).collect()
}

/// For each frame what would be shown for it if all frames of a function were one.
pub(super) fn functions(profile: &Profile, detail: Detail) -> Vec<Option<Entry>> {
    let detail = Detail { lines: false, tiers: false, addresses: false, ..detail };
    shown(&profile.trace, &profile.stacks, detail).into_iter().map(|shown| shown.entry).collect()
}

fn seen<'s>(stacks: &Stacks, frame: &'s Frame, detail: Detail) -> Seen<'s> {
    let starts =
        matches!(stacks.function_of(frame).map(|function| &function.name), Some(FunctionName::Start(_)));
    let function = frame.function.filter(|_| !(starts && detail.nameless == Nameless::ByAddress));
    match function {
        None if detail.nameless != Nameless::ByModule || frame.module.is_none() => {
            Seen::Address(frame.module, frame.address, frame.category)
        }
        None => Seen::Unnamed(frame.module, frame.category),
        Some(function) => {
            let line = frame.line.as_ref().filter(|_| detail.lines);
            let code = (frame.category, frame.module, frame.inlined > 0);
            Seen::Function {
                function,
                certainty: frame.certainty,
                tier: frame.tier.filter(|_| detail.tiers),
                line: line.map(|line| (file_name(&line.file), line.line)),
                code: (!(frame.category.is_managed() && is_named(stacks, function))).then_some(code),
                instruction: frame.instruction.filter(|_| detail.addresses).map(|at| (frame.module, at)),
            }
        }
    }
}

/// True for a function that is known by a name, and not by where it is.
fn is_named(stacks: &Stacks, function: FunctionId) -> bool {
    let name = stacks.function(function).map(|function| &function.name);
    !matches!(name, None | Some(FunctionName::Start(_) | FunctionName::Token(_)))
}

/// About how many characters show a frame, at most. `modules` has the lengths of the names of all modules.
fn longest_text(modules: &[usize], stacks: &Stacks, frame: &Frame) -> usize {
    match stacks.function_of(frame) {
        None => frame.module.and_then(|module| modules.get(module.0 as usize)).copied().unwrap_or(0),
        Some(function) => {
            let of_line = frame.line.as_ref().map_or(0, |line| file_name(&line.file).len());
            let name = match &function.name {
                FunctionName::Text(name) | FunctionName::Native(name) => name.len(),
                FunctionName::Method(name) => name.len(),
                _ => 0,
            };
            function.module.len() + name + of_line
        }
    }
}
