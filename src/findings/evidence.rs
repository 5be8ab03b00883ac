//! What shows a finding.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::events::clr::GcReason;
use crate::profile::{Break, FrameId, FunctionId, Profile};
use crate::trace::{Lost, ModuleId};

use super::Cost;

/// A fact that shows a finding.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// CPU time.
    Cpu {
        /// Its samples.
        samples: u64,
        /// Their time in 100 ns.
        value: i64,
        /// The time in 100 ns of which it is a part: of the program, or of everything.
        of: i64,
    },
    /// What the CPU time consists of.
    Parts(Parts),
    /// The times in which a runtime stood still for collections, between the first and the last sample of the program.
    Pauses {
        /// How many.
        count: u64,
        /// All together, in 100 ns.
        total: i64,
        /// The longest, in 100 ns.
        longest: i64,
        /// From the first to the last sample, in 100 ns.
        of: i64,
    },
    /// Collections in that time.
    Collections {
        /// How many.
        count: u64,
        /// By generation.
        generations: BTreeMap<u32, u64>,
        /// By what began them.
        reasons: BTreeMap<GcReason, u64>,
    },
    /// Exceptions in that time.
    Exceptions {
        /// How many.
        count: u64,
        /// How many in a second.
        per_second: f64,
        /// The most frequent types, at most three.
        types: Vec<(String, u64)>,
    },
    /// Waits in that time.
    Waits {
        /// For what.
        what: Waited,
        /// How many.
        count: u64,
        /// How many threads waited.
        threads: u64,
        /// All threads together, in 100 ns.
        total: i64,
        /// The longest wait, in 100 ns.
        longest: i64,
        /// From the first to the last sample; of waits for a processor the time in which the threads could run. In 100 ns.
        of: i64,
    },
    /// Threads that the thread pool added because work waited and no thread took it.
    Starved {
        /// How often.
        count: u64,
        /// The most threads that it wanted.
        most: u32,
        /// From the first time to the last, in 100 ns.
        span: i64,
    },
    /// Methods that were compiled in that time.
    Compiled {
        /// How many bodies.
        methods: u64,
    },
    /// How busy a thread was.
    Thread {
        /// The system's id of its process.
        pid: u32,
        /// The system's id.
        tid: u32,
        /// Its name, or nothing.
        name: String,
        /// Its part of the CPU time of its process, from 0 to 1.
        of_process: f64,
        /// The part of the time from its first to its last sample in which it ran, from 0 to 1.
        busy: f64,
        /// Its first and its last sample.
        span: (Ticks, Ticks),
    },
    /// Processors that were sampled less often than asked for: the share of the samples that are there.
    Sampled {
        /// By processor.
        processors: Vec<(u16, f64)>,
        /// The sampling interval in 100 ns.
        interval: u64,
    },
    /// Time in deferred procedure calls and interrupts.
    Interrupts {
        /// Samples in deferred procedure calls.
        dpc: u64,
        /// Samples in interrupt service routines.
        isr: u64,
        /// The processor with most of them, and its part of that processor's time.
        busiest: Option<(u16, f64)>,
    },
    /// What is missing from the recording.
    Lost {
        /// What, and how much.
        lost: Lost,
        /// The events that are there.
        events: u64,
    },
    /// Why stacks are broken: samples by the cause.
    Breaks(BTreeMap<Break, u64>),
    /// Samples without a stack, or without its part in user mode.
    Stackless {
        /// Without any.
        none: u64,
        /// Without the part in user mode.
        without_user: u64,
        /// All samples.
        of: u64,
    },
}

/// What threads waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waited {
    /// Locks of .NET that other threads held.
    Lock,
    /// Disks: I/O, and pages that were read.
    Disk,
    /// A processor.
    Processor,
}

/// The largest parts of something.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parts {
    /// What they are.
    pub sort: Sort,
    /// Each with its samples and their time in 100 ns, the largest first.
    pub rows: Vec<(Part, u64, i64)>,
    /// How many more there are.
    pub left_out: usize,
}

/// What parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sort {
    /// Functions that are called.
    Functions,
    /// What calls them.
    Callers,
    /// Modules that a sample ends in.
    Modules,
    /// Programs.
    Programs,
}

/// A part of something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A function, by one of its frames.
    Frame(FrameId),
    /// An image; of one without names, why it has none in one word, where that is known.
    Module(ModuleId, Option<&'static str>),
    /// A program.
    Program(String),
}

/// More parts than these are not shown.
const MOST_PARTS: usize = 5;

impl Evidence {
    /// The largest of these parts; nothing without any.
    pub(super) fn parts(sort: Sort, parts: impl IntoIterator<Item = (Part, Cost)>) -> Option<Evidence> {
        let mut rows: Vec<(Part, u64, i64)> =
            parts.into_iter().map(|(part, cost)| (part, cost.samples, cost.value)).collect();
        rows.sort_by(|(a, _, of_a), (b, _, of_b)| Reverse(of_a).cmp(&Reverse(of_b)).then_with(|| a.order(b)));
        let left_out = rows.len().saturating_sub(MOST_PARTS);
        rows.truncate(MOST_PARTS);
        (!rows.is_empty()).then_some(Evidence::Parts(Parts { sort, rows, left_out }))
    }
}

impl Part {
    fn order(&self, other: &Part) -> std::cmp::Ordering {
        match (self, other) {
            (Part::Frame(a), Part::Frame(b)) => a.cmp(b),
            (Part::Module(a, _), Part::Module(b, _)) => a.cmp(b),
            (Part::Program(a), Part::Program(b)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        }
    }
}

/// Of the frames of a function, or of the nameless ones of an image, the first that was seen.
pub(super) struct FirstOfFunction<'p> {
    profile: &'p Profile,
    first: FxHashMap<(Option<FunctionId>, Option<ModuleId>), FrameId>,
}

impl<'p> FirstOfFunction<'p> {
    pub(super) fn new(profile: &'p Profile) -> FirstOfFunction<'p> {
        FirstOfFunction { profile, first: FxHashMap::default() }
    }

    pub(super) fn of(&mut self, id: FrameId) -> FrameId {
        let Some(frame) = self.profile.stacks.frame(id) else { return id };
        let module = frame.module.filter(|_| frame.function.is_none());
        match (frame.function, module) {
            (None, None) => id,
            key => *self.first.entry(key).or_insert(id),
        }
    }
}
