//! Which samples are kept by what the trace says of them, and the account of those that are not.

use std::ops::{Range, RangeInclusive};

use serde::Serialize;

use crate::event::Ticks;
use crate::trace::{self, Context, InterruptSpan, Parts, Process, Runner, RunnerId, Trace};

use super::during::{During, Moments};
use super::frame::Remark;
use super::measure::Dot;
use super::metric::Metric;
use super::shape::LeftOut;
use super::stacks::Stacks;
use super::{Matcher, Moment, Sample};

/// Keeps samples by the facts of the trace, before anything has a name. Empty fields keep all. Several values add up, and
/// so do the ids and names of processes, and those of threads; different kinds (processes, threads, processors, time)
/// narrow down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Processes by id.
    pub pids: Vec<u32>,
    /// Processes by the executable's name ([`Matcher::matches_executable`]).
    pub names: Vec<Matcher>,
    /// Also the processes that these started, and those started in turn ([`Trace::families`]).
    pub children: bool,
    /// Threads by id.
    pub tids: Vec<u32>,
    /// Threads by name.
    pub threads: Vec<Matcher>,
    /// Processors by number.
    pub cpus: Vec<RangeInclusive<u16>>,
    /// Also idle samples, like any others; others are kept in any case. Only a trace whose builder was asked for them
    /// ([`Builder::keep_idle`](crate::trace::Builder::keep_idle)) has them.
    pub include_idle: bool,
    /// The first moment.
    pub from: Option<Moment>,
    /// The moment before which all are kept.
    pub to: Option<Moment>,
    /// Also what a trimmed recording has beside the time that it was trimmed to: the ends of waits that reach across.
    pub beside: bool,
    /// What the .NET runtime does meanwhile.
    pub during: Option<During>,
}

/// Where every sample went: `total = kept + idle + filtered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Samples in the recording.
    pub total: u64,
    /// Samples of the idle thread outside DPCs and interrupts, where they are not treated like any others
    /// ([`Filter::include_idle`]).
    pub idle: u64,
    /// Samples that filters left out.
    pub filtered: u64,
    /// Of these, by what.
    pub filtered_by: FilteredBy,
    /// Samples in the profile.
    pub kept: u64,
    /// Of the kept: in deferred procedure calls.
    pub dpc: u64,
    /// Of the kept: in interrupt service routines.
    pub isr: u64,
    /// Of the kept: by the parts of their stacks.
    pub stacks: StackBalance,
}

/// Samples that were left out, by the first of these that left them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilteredBy {
    /// The process.
    pub process: u64,
    /// The thread.
    pub thread: u64,
    /// The processor.
    pub cpu: u64,
    /// The time.
    pub time: u64,
    /// What the .NET runtime does meanwhile.
    pub during: u64,
    /// No frame is in a wanted module.
    pub module: u64,
    /// No frame is a wanted function.
    pub function: u64,
    /// A frame is not wanted.
    pub exclude: u64,
    /// The category of the leaf.
    pub category: u64,
    /// Patterns that leave stacks out.
    pub patterns: u64,
    /// No frame is the function that is looked at.
    pub focus: u64,
}

impl FilteredBy {
    /// The number of all.
    pub fn sum(&self) -> u64 {
        let FilteredBy {
            process,
            thread,
            cpu,
            time,
            during,
            module,
            function,
            exclude,
            category,
            patterns,
            focus,
        } = *self;
        process + thread + cpu + time + during + module + function + exclude + category + patterns + focus
    }
}

/// Kept samples by the parts of their stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackBalance {
    /// User frames only.
    pub user_only: u64,
    /// Kernel and user frames.
    pub kernel_and_user: u64,
    /// Kernel frames only.
    pub kernel_only: u64,
    /// No stack.
    pub none: u64,
    /// Of all these: stacks that do not reach the start of their thread ([`Remark::Broken`]).
    pub broken: u64,
    /// Stacks that did not, and were repaired ([`Remark::Repaired`]).
    pub repaired: u64,
}

impl StackBalance {
    fn of(&mut self, parts: Parts) -> &mut u64 {
        match parts {
            Parts::User => &mut self.user_only,
            Parts::KernelAndUser => &mut self.kernel_and_user,
            Parts::Kernel => &mut self.kernel_only,
            Parts::None => &mut self.none,
        }
    }
}

impl Filter {
    /// True if it keeps every sample.
    pub fn keeps_all(&self) -> bool {
        let Filter { include_idle, beside, .. } = *self;
        *self == Filter { include_idle, beside, ..Filter::default() }
    }

    /// Gives the samples of `trace` to keep to `keep`, in order of time. Returns the account of all.
    pub(super) fn apply(&self, trace: &Trace, mut keep: impl FnMut(&trace::Sample)) -> Balance {
        let mut balance = Balance {
            total: trace.sample_count(),
            idle: trace.idle.samples,
            filtered_by: FilteredBy { process: trace.unwanted, ..FilteredBy::default() },
            ..Balance::default()
        };
        let rule = Rule::new(self, trace, Metric::CPU);
        for sample in &trace.samples {
            let parts = trace.stack(sample.stack).parts();
            let fate = rule.of(sample.runner, sample.context, sample.processor, sample.time);
            if balance.count(sample.count(), fate, sample.context, parts) {
                keep(sample);
            }
        }
        balance.sum();
        balance
    }

    /// The same of samples of another metric.
    pub(super) fn sift(
        &self,
        trace: &Trace,
        metric: Metric,
        dots: Vec<Dot>,
        mut keep: impl FnMut(Dot),
    ) -> Balance {
        let total = dots.iter().map(|dot| u64::from(dot.count)).sum();
        let mut balance = Balance { total, ..Balance::default() };
        let rule = Rule::new(self, trace, metric);
        for dot in dots {
            let parts = trace.stack(dot.stack).parts();
            let fate = rule.of(dot.runner, dot.context, dot.processor, dot.time);
            // What is outside of the time has no length left.
            let fate = if fate == Fate::Kept && dot.value == 0 { Fate::OtherTime } else { fate };
            if balance.count(u64::from(dot.count), fate, dot.context, parts) {
                keep(dot);
            }
        }
        balance.sum();
        balance
    }

    /// Those of `samples` of a metric to keep, and their account: `before` is what it was before.
    pub(super) fn choose(
        &self,
        trace: &Trace,
        metric: Metric,
        samples: &[Sample],
        before: Balance,
    ) -> (Vec<Sample>, Balance) {
        let rule = Rule::new(self, trace, metric);
        before.recounted(samples, |sample| {
            rule.of(sample.runner, sample.context, sample.processor, sample.time)
        })
    }

    /// True if it names this process, or none at all.
    pub fn names_process(&self, process: &Process) -> bool {
        let all = self.pids.is_empty() && self.names.is_empty();
        all || self.pids.contains(&process.pid)
            || self.names.iter().any(|name| name.matches_executable(process.label()))
    }

    /// Whether it keeps the samples of each process of `trace`, as far as the process decides.
    pub fn processes(&self, trace: &Trace) -> Vec<bool> {
        let named = trace.processes.iter().map(|process| self.names_process(process)).collect();
        if self.children { trace.families(named) } else { named }
    }

    /// Whether it keeps each of the runners of `trace`, as far as process and thread decide.
    pub fn runners(&self, trace: &Trace, runners: &[Runner]) -> Vec<bool> {
        let processes = self.processes(trace);
        let keeps = |runner: &Runner| {
            processes.get(runner.process.0 as usize).is_none_or(|kept| *kept)
                && self.names_thread(trace, runner)
        };
        runners.iter().map(keeps).collect()
    }

    /// Its time, on the clock of `trace`, as far as that was trimmed to it.
    pub fn period(&self, trace: &Trace) -> Range<Ticks> {
        let kept = if self.beside { Ticks(i64::MIN)..Ticks(i64::MAX) } else { trace.period() };
        let from = self.from.map_or(kept.start, |from| from.at(trace).max(kept.start));
        from..self.to.map_or(kept.end, |to| to.at(trace).min(kept.end))
    }

    /// The DPCs and interrupts that end in its time, on its processors. Whose threads they interrupt does not matter.
    pub fn interrupts<'t>(&'t self, trace: &'t Trace) -> impl Iterator<Item = &'t InterruptSpan> {
        let period = self.period(trace);
        let on_cpu = |cpu: u16| self.cpus.is_empty() || self.cpus.iter().any(|cpus| cpus.contains(&cpu));
        trace.interrupts.iter().filter(move |span| period.contains(&span.end) && on_cpu(span.processor))
    }

    fn names_thread(&self, trace: &Trace, runner: &trace::Runner) -> bool {
        let thread = runner.thread.and_then(|thread| trace.thread(thread));
        let name = thread.map_or("", |thread| thread.name.as_str());
        let all = self.tids.is_empty() && self.threads.is_empty();
        all || self.tids.contains(&runner.tid)
            || self.threads.iter().any(|wanted| !name.is_empty() && wanted.matches(name))
    }
}

/// What becomes of a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Idle,
    OtherProcess,
    OtherThread,
    OtherCpu,
    OtherTime,
    OtherMoment,
    OtherModule,
    OtherFunction,
    Excluded,
    OtherCategory,
}

/// A filter, as one trace has its processes and times.
struct Rule<'a> {
    /// By the runner; of the idle thread only what it does for others.
    runners: Vec<Fate>,
    /// The samples of the idle thread itself are not kept.
    idle: Vec<bool>,
    cpus: &'a [RangeInclusive<u16>],
    period: Range<Ticks>,
    during: Option<Moments<'a>>,
}

impl<'a> Rule<'a> {
    fn new(filter: &'a Filter, trace: &'a Trace, metric: Metric) -> Rule<'a> {
        // What happens while the idle thread runs is no idle time.
        let has_idle = [Metric::CPU, Metric::WALL].contains(&metric) && !filter.include_idle;
        let processes = filter.processes(trace);
        let fate = |runner: &trace::Runner| {
            if !processes.get(runner.process.0 as usize).is_none_or(|kept| *kept) {
                Fate::OtherProcess
            } else if !filter.names_thread(trace, runner) {
                Fate::OtherThread
            } else {
                Fate::Kept
            }
        };
        Rule {
            runners: trace.runners.iter().map(fate).collect(),
            idle: trace.runners.iter().map(|runner| has_idle && runner.tid == 0).collect(),
            cpus: &filter.cpus,
            period: filter.period(trace),
            during: filter.during.map(|during| Moments::new(during, trace)),
        }
    }

    fn of(&self, runner: RunnerId, context: Context, cpu: u16, time: Ticks) -> Fate {
        let is_idle = || context == Context::Thread && self.idle.get(runner.0 as usize) == Some(&true);
        let on_cpu = || self.cpus.is_empty() || self.cpus.iter().any(|cpus| cpus.contains(&cpu));
        let in_time = || self.period.contains(&time);
        let in_moment = || self.during.as_ref().is_none_or(|moments| moments.has(runner, time));
        match self.runners.get(runner.0 as usize).copied().unwrap_or(Fate::OtherProcess) {
            _ if is_idle() => Fate::Idle,
            Fate::Kept if !on_cpu() => Fate::OtherCpu,
            Fate::Kept if !in_time() => Fate::OtherTime,
            Fate::Kept if !in_moment() => Fate::OtherMoment,
            fate => fate,
        }
    }
}

impl std::ops::Add for Balance {
    type Output = Balance;

    /// The account of the samples of both.
    fn add(self, more: Balance) -> Balance {
        let FilteredBy {
            process,
            thread,
            cpu,
            time,
            during,
            module,
            function,
            exclude,
            category,
            patterns,
            focus,
        } = self.filtered_by;
        let by = more.filtered_by;
        let StackBalance { user_only, kernel_and_user, kernel_only, none, broken, repaired } = self.stacks;
        let stacks = more.stacks;
        Balance {
            total: self.total + more.total,
            idle: self.idle + more.idle,
            filtered: self.filtered + more.filtered,
            filtered_by: FilteredBy {
                process: process + by.process,
                thread: thread + by.thread,
                cpu: cpu + by.cpu,
                time: time + by.time,
                during: during + by.during,
                module: module + by.module,
                function: function + by.function,
                exclude: exclude + by.exclude,
                category: category + by.category,
                patterns: patterns + by.patterns,
                focus: focus + by.focus,
            },
            kept: self.kept + more.kept,
            dpc: self.dpc + more.dpc,
            isr: self.isr + more.isr,
            stacks: StackBalance {
                user_only: user_only + stacks.user_only,
                kernel_and_user: kernel_and_user + stacks.kernel_and_user,
                kernel_only: kernel_only + stacks.kernel_only,
                none: none + stacks.none,
                broken: broken + stacks.broken,
                repaired: repaired + stacks.repaired,
            },
        }
    }
}

impl Balance {
    /// Counts a kept sample as filtered out after all.
    pub(super) fn leave_out(&mut self, sample: &Sample, stacks: &Stacks, why: LeftOut) {
        let samples = sample.count();
        self.kept -= samples;
        *match why {
            LeftOut::ByPatterns => &mut self.filtered_by.patterns,
            LeftOut::ByFocus => &mut self.filtered_by.focus,
        } += samples;
        match sample.context {
            Context::Dpc => self.dpc -= samples,
            Context::Isr => self.isr -= samples,
            Context::Thread => {}
        }
        *self.stacks.of(sample.parts) -= samples;
        for remark in stacks.remarks(sample.stack) {
            match remark {
                Remark::Broken => self.stacks.broken -= samples,
                Remark::Repaired => self.stacks.repaired -= samples,
                _ => {}
            }
        }
        self.sum();
    }

    /// Those of the samples that were kept before and still are, and the account of all.
    pub(super) fn recounted(
        self,
        samples: &[Sample],
        fate: impl Fn(&Sample) -> Fate,
    ) -> (Vec<Sample>, Balance) {
        let mut balance = Balance { kept: 0, dpc: 0, isr: 0, stacks: StackBalance::default(), ..self };
        let mut keeps =
            |sample: &&Sample| balance.count(sample.count(), fate(sample), sample.context, sample.parts);
        let kept = samples.iter().filter(&mut keeps).copied().collect();
        balance.sum();
        (kept, balance)
    }

    /// Counts so many samples. True if they are kept.
    fn count(&mut self, samples: u64, fate: Fate, context: Context, parts: Parts) -> bool {
        let by = &mut self.filtered_by;
        match fate {
            Fate::Idle => self.idle += samples,
            Fate::OtherProcess => by.process += samples,
            Fate::OtherThread => by.thread += samples,
            Fate::OtherCpu => by.cpu += samples,
            Fate::OtherTime => by.time += samples,
            Fate::OtherMoment => by.during += samples,
            Fate::OtherModule => by.module += samples,
            Fate::OtherFunction => by.function += samples,
            Fate::Excluded => by.exclude += samples,
            Fate::OtherCategory => by.category += samples,
            Fate::Kept => {
                self.kept += samples;
                match context {
                    Context::Dpc => self.dpc += samples,
                    Context::Isr => self.isr += samples,
                    Context::Thread => {}
                }
                *self.stacks.of(parts) += samples;
            }
        }
        fate == Fate::Kept
    }

    fn sum(&mut self) {
        self.filtered = self.filtered_by.sum();
    }
}
