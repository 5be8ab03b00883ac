//! Named stacks and the samples that have them: what every report is made of.

mod builder;
mod category;
mod filter;
mod frame;
mod limit;
mod managed;
mod resolution;
mod tree;
mod unresolved;

pub use category::Category;
pub use filter::{Balance, Filter, StackBalance, same_name};
pub use frame::{Frame, FrameId, Naming};
pub use limit::{Cut, Limit};
pub use resolution::{FrameCount, Resolution};
pub use tree::{CallTree, Grouping, Node};
pub use unresolved::Unresolved;

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::Names;
use crate::trace::{Context, ModuleId, ProcessId, ThreadId, Trace};

/// The kept samples of a trace, with named stacks.
#[derive(Debug)]
pub struct Profile {
    /// Every distinct frame.
    pub frames: Vec<Frame>,
    /// Every distinct stack of code frames, the root first.
    pub stacks: PrefixTree<FrameId>,
    /// The kept samples, in order of time.
    pub samples: Vec<Sample>,
    /// The account of all samples of the trace.
    pub balance: Balance,
    /// How much could be made of the trace.
    pub limit: Limit,
}

/// A kept sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub time: Ticks,
    /// The interrupted instruction.
    pub address: u64,
    /// Its process.
    pub process: ProcessId,
    /// The system's id of its thread.
    pub tid: u32,
    /// Its thread, where the trace knows it.
    pub thread: Option<ThreadId>,
    /// Its processor.
    pub processor: u16,
    /// The CPU time that it stands for, in 100 ns.
    pub weight: u64,
    /// What the processor was doing.
    pub context: Context,
    /// Its stack; never without a frame.
    pub stack: NodeId,
    /// Frames that the limit left out of its stack.
    pub missing: u32,
}

impl Profile {
    /// Names the stacks of the samples of `trace` that `filter` keeps, within [`Limit::of`] the trace.
    pub fn new(trace: &Trace, filter: &Filter, names: &dyn Names, naming: Naming) -> Profile {
        Profile::within(Limit::of(trace), trace, filter, names, naming)
    }

    /// The same within a limit of the caller's choice.
    pub fn within(
        limit: Limit,
        trace: &Trace,
        filter: &Filter,
        names: &dyn Names,
        naming: Naming,
    ) -> Profile {
        builder::build(trace, filter, names, naming, limit)
    }

    /// What the limit left out.
    pub fn cut(&self) -> Cut {
        let mut cut = Cut::default();
        self.samples.iter().for_each(|sample| cut.add(sample.missing));
        cut
    }

    /// How many samples have a frame in each module.
    pub fn samples_by_module(&self) -> FxHashMap<ModuleId, u64> {
        let mut of_stack: FxHashMap<NodeId, Vec<ModuleId>> = FxHashMap::default();
        let mut samples = FxHashMap::default();
        for sample in &self.samples {
            let modules = of_stack.entry(sample.stack).or_insert_with(|| {
                let frames = self.stacks.path(sample.stack).filter_map(|frame| self.frame(frame)?.module);
                let mut modules: Vec<ModuleId> = frames.collect();
                modules.sort_unstable();
                modules.dedup();
                modules
            });
            for module in modules {
                *samples.entry(*module).or_default() += 1;
            }
        }
        samples
    }

    /// A frame by its id.
    pub fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id.0 as usize)
    }

    /// The CPU time of all kept samples, in 100 ns.
    pub fn weight(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.weight))
    }
}
