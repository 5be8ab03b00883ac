//! Where a recording's time went: samples of a metric with named stacks, and the call trees that are made of them.
//!
//! 1. *Locate*: [`Located`] has the places that the stacks of kept samples hit, and so what symbols are wanted for.
//! 2. *Name*: [`Located::named`] gives every place its frames. A [`Frame`] has facts and no text: function, evidence,
//!    line, category, or why there is no name. The same code has the same facts with every filter.
//! 3. *Arrange*: [`Profile::arrange`] counts the stacks into [`CallTree`]s, as often and in as many [`Shape`]s as wanted;
//!    [`Profile::filtered`] keeps some of the samples.
//! 4. *Spell*: only what is shown becomes text, in [`report`](crate::report).

mod arrange;
mod broken;
mod category;
mod during;
mod filter;
mod frame;
mod limit;
mod matcher;
mod measure;
mod metric;
mod moment;
mod naming;
pub mod patterns;
mod repair;
mod resolution;
mod shape;
mod stack;
mod stack_filter;
mod stacks;
mod table;
mod tier;
mod timeline;
mod tree;
mod unresolved;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use arrange::{Arranged, Detail, End, Nameless};
pub use broken::Break;
pub use category::Category;
pub use during::During;
pub use filter::{Balance, Filter, FilteredBy, StackBalance};
pub use frame::{Entry, Frame, FrameId, Function, FunctionId, Group, GroupId, Instruction, Line, Remark};
pub use limit::{Cut, Limit};
pub use matcher::{Matcher, MatcherError};
pub use measure::{Measure, Measured};
pub use metric::{Counted, Metric, Unit};
pub use moment::Moment;
pub use naming::cut_module_name;
pub use resolution::{FrameCount, Resolution};
pub use shape::{Focus, GaveUp, Grouping, Part, Patterns, Shape};
pub use stack::{Located, Site, SiteId};
pub use stack_filter::{FrameSet, StackFilter};
pub use stacks::Stacks;
pub use table::Row;
pub use tier::Tier;
pub use timeline::{Load, Timeline, round_up};
pub use tree::{CallTree, Node, Value, Values};
pub use unresolved::Unresolved;

use crate::event::Ticks;
use crate::prefix_tree::NodeId;
use crate::symbols::Names;
use crate::trace::{Context, ModuleId, Parts, Runner, RunnerId, Trace};

/// Samples of one metric with named stacks.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What its values are.
    pub metric: Metric,
    /// The recording.
    pub trace: Arc<Trace>,
    /// The stacks of its samples, and perhaps of others.
    pub stacks: Arc<Stacks>,
    /// The kept samples, in order of time.
    pub samples: Vec<Sample>,
    /// The account of all samples of the trace.
    pub balance: Balance,
    /// How much may be made of the trace.
    pub limit: Limit,
}

/// A sample of a metric, in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time: Ticks,
    /// Of the metric; of CPU time the time that it stands for, in 100 ns.
    pub value: i64,
    /// The thread that ran: see [`Trace::runner`].
    pub runner: RunnerId,
    /// Its stack, one of [`Profile::stacks`]; never without an entry.
    pub stack: NodeId,
    /// Its processor.
    pub processor: u16,
    /// What the processor was doing.
    pub context: Context,
    /// The parts of its stack.
    pub parts: Parts,
    /// How many samples it is: see [`trace::Sample::count`](crate::trace::Sample::count).
    pub count: u8,
}

impl Sample {
    /// How many samples it is.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }
}

const _: () = assert!(size_of::<Sample>() == 32);

impl Located {
    /// Names every place, each once.
    pub fn named(mut self, trace: Arc<Trace>, names: &dyn Names) -> Profile {
        let samples = std::mem::take(&mut self.samples);
        let (metric, balance, limit) = (self.metric, self.balance, self.limit);
        let stacks = Arc::new(naming::name(&trace, self, names));
        Profile { metric, trace, stacks, samples, balance, limit }
    }
}

impl Profile {
    /// The CPU samples of `trace` that `filter` keeps, within [`Limit::of`] the trace, named by what `names` knows.
    pub fn new(trace: &Arc<Trace>, filter: &Filter, names: &dyn Names) -> Profile {
        Located::new(trace, filter, Limit::of(trace)).named(Arc::clone(trace), names)
    }

    /// By how much chance changes what a call tree of it counts: the variance of a count, over its mean. Samples of which each
    /// counts one come like raindrops, and it is 1. Where a sample is a wait, a second of waiting is many waits or one.
    pub fn dispersion(&self) -> f64 {
        let counts = self.samples.iter().map(|sample| self.metric.weight(1, sample.value) as f64);
        match self.metric.counted {
            Counted::Samples => 1.0,
            _ => {
                let (sum, squares) =
                    counts.fold((0.0, 0.0), |(sum, squares), count| (sum + count, squares + count * count));
                if sum > 0.0 { f64::max(squares / sum, 1.0) } else { 1.0 }
            }
        }
    }

    /// Those of its samples that `filter` keeps. The balance counts the others as filtered out.
    pub fn filtered(&self, filter: &Filter) -> Profile {
        self.with(filter.choose(&self.trace, self.metric, &self.samples, self.balance))
    }

    /// Those of its samples whose stacks `filter` keeps. The balance counts the others as filtered out.
    pub fn with_stacks(&self, filter: &StackFilter) -> Profile {
        self.with(filter.choose(&self.stacks, &self.samples, self.balance))
    }

    fn with(&self, (samples, balance): (Vec<Sample>, Balance)) -> Profile {
        let mut profile = Profile {
            metric: self.metric,
            trace: self.trace.clone(),
            stacks: self.stacks.clone(),
            samples,
            balance,
            ..*self
        };
        profile.count_remarks();
        profile
    }

    /// Counts the kept samples with broken and with repaired stacks.
    fn count_remarks(&mut self) {
        let with = |remark| {
            let has = |sample: &&Sample| self.stacks.has(sample.stack, remark);
            self.samples.iter().filter(has).map(Sample::count).sum()
        };
        let (broken, repaired) = (with(Remark::Broken), with(Remark::Repaired));
        self.balance.stacks = StackBalance { broken, repaired, ..self.balance.stacks };
    }

    /// The thread in its process of a sample.
    pub fn runner(&self, sample: &Sample) -> Runner {
        self.trace.runner(sample.runner)
    }

    /// The sum of all values: the CPU time of all kept samples, in 100 ns.
    pub fn total(&self) -> i64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.value))
    }

    /// How many of its samples have a frame in each module.
    pub fn samples_by_module(&self) -> FxHashMap<ModuleId, u64> {
        stack::samples_by_module(&self.samples, |stack| self.stacks.sites(stack))
    }

    /// What the limit left out.
    pub fn cut(&self) -> Cut {
        let mut cut = Cut::default();
        for sample in &self.samples {
            let missing = self.stacks.remarks(sample.stack).filter_map(|remark| match remark {
                Remark::Cut(missing) => Some(missing),
                _ => None,
            });
            cut.add(missing.sum(), sample.count());
        }
        cut
    }
}
