//! What the machine did beside the programs: interrupts, scanners of malware, filters of files, and whether it took all
//! samples.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::prefix_tree::NodeId;
use crate::profile::FrameId;
use crate::trace::{ANY_PROCESSOR, Context, ModuleId, Trace};

use super::programs::ProgramId;
use super::rules::{self, ANTIVIRUS_PROGRAMS, FILE_SYSTEMS, Kind, NEUTRAL};
use super::{Cost, Evidence, Finding, Part, Search, Sort};

static SAMPLES_MISSING: Kind = Kind {
    id: "samples-missing",
    title: "Processors were sampled less often than asked for",
    advice: "Something held the sampling interrupt back: a hypervisor that ran other machines, firmware, or another session \
             that changed the interval. Figures of these processors are too low.",
};

static INTERRUPTS: Kind = Kind {
    id: "interrupts",
    title: "Deferred procedure calls and interrupts take much of the processors' time",
    advice: "The drivers listed do it. Update them, or look for what makes their devices so busy.",
};

static ANTIVIRUS: Kind = Kind {
    id: "antivirus",
    title: "Antivirus software takes much of the CPU time",
    advice: "Exclude what you measure (build folders, the program, its data) from the scan, or expect this cost on \
             customers' machines too.",
};

static FILTERS: Kind = Kind {
    id: "filter-drivers",
    title: "Filters of the file system take much of the CPU time",
    advice: "The drivers listed see every access to files. Open fewer files, or find out what they belong to (`fltmc`): \
             backup, encryption, containers, or Windows itself.",
};

pub(super) static KINDS: [&Kind; 4] = [&SAMPLES_MISSING, &INTERRUPTS, &ANTIVIRUS, &FILTERS];

/// From these shares on.
const SAMPLED: f64 = 0.90;
const INTERRUPTED: f64 = 0.05;
const INTERRUPTED_ONE: f64 = 0.20;
const SCANNED: f64 = 0.05;
const FILTERED: f64 = 0.05;

/// The manager of filters.
const MANAGER: &str = "fltmgr";

/// What each processor has, of all samples of a trace.
struct Processors {
    /// Samples in all, and those that are not idle.
    samples: BTreeMap<u16, (u64, u64)>,
    interval: u64,
    /// The samples that each should have.
    asked: f64,
}

impl Processors {
    /// `None` where nobody can say: processors or processes were given up, the interval changed, or idle processors are not
    /// sampled.
    fn new(trace: &Trace) -> Option<Processors> {
        if trace.has_some_processes() {
            return None;
        }
        let mut samples: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        let mut interval = None;
        let mut span: Option<(Ticks, Ticks)> = trace.idle.span;
        let is_another = |interval: &mut Option<u64>, one: u64| *interval.get_or_insert(one) != one;
        for sample in &trace.samples {
            let each = u64::from(sample.weight) / sample.count().max(1);
            if sample.processor == ANY_PROCESSOR || is_another(&mut interval, each) {
                return None;
            }
            let of = samples.entry(sample.processor).or_default();
            let is_idle = trace.runner(sample.runner).tid == 0 && sample.context == Context::Thread;
            of.0 += sample.count();
            of.1 += if is_idle { 0 } else { sample.count() };
            let (first, last) = span.unwrap_or((sample.time, sample.time));
            span = Some((first.min(sample.time), last.max(sample.time)));
        }
        for (processor, count) in &trace.idle.by_processor {
            samples.entry(*processor).or_default().0 += count;
        }
        if trace.idle.by_weight.keys().any(|weight| is_another(&mut interval, *weight)) {
            return None;
        }
        let is_idle_sampled = samples.values().any(|(all, busy)| all > busy);
        let (interval, (first, last)) = (interval.filter(|interval| *interval > 0)?, span?);
        let length = trace.clock.filetime(last).saturating_sub(trace.clock.filetime(first));
        let asked = length as f64 / interval as f64;
        let is_known = is_idle_sampled && trace.unwanted == 0 && asked >= 100.0;
        is_known.then_some(Processors { samples, interval, asked })
    }

    /// Those that have too few, and which part of them is there. A processor that mostly slept may have been left alone.
    fn starved(&self) -> Vec<(u16, f64)> {
        let busy = self.samples.iter().filter(|(_, (all, busy))| 2 * busy >= *all);
        let there = busy.map(|(processor, (all, _))| (*processor, *all as f64 / self.asked));
        there.filter(|(_, there)| *there < SAMPLED).collect()
    }
}

/// The processors with too few samples, which part of theirs is there, and the interval.
pub(super) fn starved(trace: &Trace) -> Option<(Vec<(u16, f64)>, u64)> {
    // Where something is lost, that is why.
    if trace.lost.events + trace.lost.buffers + trace.lost.sequence_gaps > 0 {
        return None;
    }
    let processors = Processors::new(trace)?;
    let starved = processors.starved();
    (!starved.is_empty()).then_some((starved, processors.interval))
}

impl Search<'_> {
    pub(super) fn machine(&self) -> Vec<Finding> {
        [self.samples_missing(), self.interrupts(), self.antivirus(), self.filters()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn samples_missing(&self) -> Option<Finding> {
        let (processors, interval) = starved(&self.profile.trace)?;
        let missing = processors.iter().map(|(_, there)| 1.0 - there).sum::<f64>() / processors.len() as f64;
        let evidence = vec![Evidence::Sampled { processors, interval }];
        Some(Finding { kind: &SAMPLES_MISSING, program: None, share: missing, evidence })
    }

    /// Of all time of the processors, and not only of that in which they were busy.
    fn interrupts(&self) -> Option<Finding> {
        let trace = &self.profile.trace;
        // Filters keep some of the interrupts, and all of the processors' time.
        if self.profile.balance.filtered > 0 {
            return None;
        }
        let processors = Processors::new(trace)?;
        let (mut dpc, mut isr) = (0, 0);
        let mut by_processor: BTreeMap<u16, u64> = BTreeMap::new();
        let mut modules: FxHashMap<ModuleId, Cost> = FxHashMap::default();
        for sample in self.profile.samples.iter().filter(|sample| sample.context != Context::Thread) {
            *(if sample.context == Context::Dpc { &mut dpc } else { &mut isr }) += sample.count();
            *by_processor.entry(sample.processor).or_default() += sample.count();
            if let Some(module) = self.profile.stacks.leaf(sample.stack).and_then(|leaf| leaf.module) {
                modules.entry(module).or_default().add(sample);
            }
        }
        let all: u64 = processors.samples.values().map(|(all, _)| all).sum();
        let share = (dpc + isr) as f64 / all.max(1) as f64;
        let of_one = by_processor.into_iter().filter_map(|(processor, count)| {
            let (all, _) = processors.samples.get(&processor)?;
            Some((processor, count as f64 / (*all).max(1) as f64))
        });
        let busiest = of_one.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let fires = share >= INTERRUPTED || busiest.is_some_and(|(_, share)| share >= INTERRUPTED_ONE);
        if !fires || dpc + isr < super::LEAST_SAMPLES {
            return None;
        }
        let modules = modules.into_iter().map(|(id, cost)| (Part::Module(id, None), cost));
        let mut evidence = vec![Evidence::Interrupts { dpc, isr, busiest }];
        evidence.extend(Evidence::parts(Sort::Modules, modules));
        Some(Finding { kind: &INTERRUPTS, program: None, share, evidence })
    }

    fn antivirus(&self) -> Option<Finding> {
        let is_scanner = |id: &ProgramId| {
            let program = self.programs.get(*id);
            program.is_some_and(|program| ANTIVIRUS_PROGRAMS.contains(&&*program.name.to_lowercase()))
        };
        let mut all = Cost::default();
        let mut programs: FxHashMap<ProgramId, Cost> = FxHashMap::default();
        for sample in &self.profile.samples {
            let program = self.programs.of(sample);
            let is_marked = || self.marked.rules(sample.stack).any(|rule| rule == rules::ANTIVIRUS);
            if program.as_ref().is_some_and(is_scanner) || is_marked() {
                all.add(sample);
                if let Some(program) = program {
                    programs.entry(program).or_default().add(sample);
                }
            }
        }
        if !self.matters(all) || self.share(all.value) < SCANNED {
            return None;
        }
        let name = |id| self.programs.get(id).map(|program| program.name.clone()).unwrap_or_default();
        let programs = programs.into_iter().map(|(id, cost)| (Part::Program(name(id)), cost));
        let mut evidence = vec![Evidence::Cpu { samples: all.samples, value: all.value, of: self.total }];
        evidence.extend(Evidence::parts(Sort::Programs, programs));
        Some(Finding { kind: &ANTIVIRUS, program: None, share: self.share(all.value), evidence })
    }

    /// Drivers that the manager of filters calls, and that are no file system.
    fn filters(&self) -> Option<Finding> {
        let mut known: FxHashMap<NodeId, Option<ModuleId>> = FxHashMap::default();
        let mut all = Cost::default();
        let mut modules: FxHashMap<ModuleId, Cost> = FxHashMap::default();
        for sample in &self.profile.samples {
            // What scans for malware has a finding of its own.
            if self.marked.rules(sample.stack).any(|rule| rule == rules::ANTIVIRUS) {
                continue;
            }
            let filter = *known.entry(sample.stack).or_insert_with(|| self.filter_in(sample.stack));
            if let Some(module) = filter {
                all.add(sample);
                modules.entry(module).or_default().add(sample);
            }
        }
        if !self.matters(all) || self.share(all.value) < FILTERED {
            return None;
        }
        let modules = modules.into_iter().map(|(id, cost)| (Part::Module(id, None), cost));
        let mut evidence = vec![Evidence::Cpu { samples: all.samples, value: all.value, of: self.total }];
        evidence.extend(Evidence::parts(Sort::Modules, modules));
        Some(Finding { kind: &FILTERS, program: None, share: self.share(all.value), evidence })
    }

    /// The filter that a stack is in: the innermost one that does not call the manager again.
    fn filter_in(&self, stack: NodeId) -> Option<ModuleId> {
        let mut inner: Option<ModuleId> = None;
        for frame in self.profile.stacks.frames_of(stack) {
            let Some(module) = self.kernel_module(frame) else { continue };
            let name = self.profile.trace.module(module)?.name().to_ascii_lowercase();
            if name == MANAGER {
                return inner;
            }
            // What the filter calls of the kernel is done for it.
            if !FILE_SYSTEMS.contains(&&*name) {
                inner = Some(module);
            } else if !NEUTRAL.contains(&&*name) {
                inner = None;
            }
        }
        None
    }

    fn kernel_module(&self, frame: FrameId) -> Option<ModuleId> {
        let module = self.profile.stacks.frame(frame)?.module?;
        self.profile.trace.module(module)?.kernel.then_some(module)
    }
}
