//! What an expert would notice first in a profile: findings, each with its evidence and what to do about it, and how far the
//! recording can be trusted.
//!
//! Nothing is said without evidence, and nothing that the recording cannot show. Rules that frames show are data
//! ([`rules`]); the others count what the trace knows. Shares are of CPU time, unless their evidence says of what.

mod evidence;
mod machine;
mod programs;
mod quality;
pub mod rules;
mod runtime;
mod signature;
mod symbols;
mod threads;
mod waits;

use rustc_hash::FxHashMap;

use crate::profile::{Filter, FrameId, Profile, Sample};
use crate::symbols::resolver::Symbols;
use crate::trace::Context;

pub use evidence::{Evidence, Part, Parts, Sort, Waited};
pub use programs::Program;
pub use quality::{Doubt, Quality, Reason};
pub use rules::Kind;
pub use signature::Signature;

use programs::{ProgramId, Programs};
use rules::{RULES, Whole};
use signature::Marked;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Findings {
    /// How far the recording can be trusted.
    pub quality: Quality,
    /// Why it cannot be trusted more: the gravest first.
    pub doubts: Vec<Doubt>,
    /// The findings, those of the largest share first.
    pub findings: Vec<Finding>,
}

/// Something worth knowing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is called.
    pub kind: &'static Kind,
    /// The program that it is about; `None` for the machine, or the recording.
    pub program: Option<Program>,
    /// How much of all CPU time it is about, from 0 to 1; of time or of events where its evidence says so.
    pub share: f64,
    /// What shows it; never empty.
    pub evidence: Vec<Evidence>,
}

/// All that may be found, by what it is called.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    let others = runtime::KINDS.iter().chain(&machine::KINDS).chain(&symbols::KINDS).chain(&waits::KINDS);
    RULES.iter().map(|rule| &rule.kind).chain(others.copied()).chain([&threads::ONE_THREAD])
}

/// Fewer samples prove nothing.
const LEAST_SAMPLES: u64 = 50;

/// What is less of all CPU time is not worth knowing.
const LEAST_SHARE: f64 = 0.01;

impl Findings {
    /// Looks at a profile, and at what became of its symbols.
    pub fn new(profile: &Profile, symbols: &Symbols) -> Findings {
        // What idle processors do says nothing of programs, even where it is shown.
        let busy;
        let is_idle = |sample: &Sample| sample.context == Context::Thread && profile.runner(sample).tid == 0;
        let profile = match profile.samples.iter().any(is_idle) {
            true => {
                busy = profile.filtered(&Filter::default());
                &busy
            }
            false => profile,
        };
        let marked = Marked::new(profile, rules::frames());
        let programs = Programs::new(profile);
        let costs = Costs::new(profile, &programs, &marked);
        let search =
            Search { profile, programs: &programs, marked: &marked, costs: &costs, total: profile.total() };
        let mut findings: Vec<Finding> = search.by_frames().collect();
        findings.extend(search.runtimes());
        findings.extend(search.threads());
        findings.extend(search.waits());
        findings.extend(search.machine());
        findings.extend(search.symbols(symbols));
        findings.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.kind.id.cmp(b.kind.id)));
        let (quality, doubts) = quality::judge(profile);
        Findings { quality, doubts, findings }
    }
}

/// Samples and their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    samples: u64,
    value: i64,
}

impl Cost {
    fn add(&mut self, sample: &Sample) {
        self.samples += sample.count();
        self.value = self.value.saturating_add(sample.value);
    }
}

/// What frames cost each program, by the number of the frames.
struct Costs(FxHashMap<(usize, Option<ProgramId>), Cost>);

impl Costs {
    fn new(profile: &Profile, programs: &Programs, marked: &Marked<'_>) -> Costs {
        let mut costs: FxHashMap<_, Cost> = FxHashMap::default();
        for sample in &profile.samples {
            for number in marked.rules(sample.stack) {
                costs.entry((number, programs.of(sample))).or_default().add(sample);
            }
        }
        Costs(costs)
    }

    fn of(&self, number: usize, program: ProgramId) -> Cost {
        self.0.get(&(number, Some(program))).copied().unwrap_or_default()
    }

    fn of_all(&self, number: usize) -> Cost {
        let of_number = self.0.iter().filter(|((of, _), _)| *of == number);
        of_number.fold(Cost::default(), |sum, (_, cost)| Cost {
            samples: sum.samples + cost.samples,
            value: sum.value.saturating_add(cost.value),
        })
    }
}

/// All that findings are looked for in.
struct Search<'p> {
    profile: &'p Profile,
    programs: &'p Programs,
    marked: &'p Marked<'p>,
    costs: &'p Costs,
    /// The CPU time of all samples, in 100 ns.
    total: i64,
}

impl Search<'_> {
    /// A share of all CPU time.
    fn share(&self, value: i64) -> f64 {
        value as f64 / self.total.max(1) as f64
    }

    /// True for what is enough to be sure, and to matter.
    fn matters(&self, cost: Cost) -> bool {
        cost.samples >= LEAST_SAMPLES && self.share(cost.value) >= LEAST_SHARE
    }

    /// What rules find that go by frames.
    fn by_frames(&self) -> impl Iterator<Item = Finding> {
        RULES.iter().enumerate().flat_map(|(number, rule)| match rule.of {
            Whole::Everything => {
                let cost = self.costs.of_all(number);
                let fires = self.matters(cost) && self.share(cost.value) >= rule.least;
                let finding = || Finding {
                    kind: &rule.kind,
                    program: None,
                    share: self.share(cost.value),
                    evidence: self.evidence(number, None, cost, self.total),
                };
                fires.then(finding).into_iter().collect::<Vec<_>>()
            }
            Whole::Program => {
                let programs = self.programs.all.iter().enumerate();
                let finding = |(id, program): (ProgramId, &Program)| {
                    let cost = self.costs.of(number, id);
                    let of_program = cost.value as f64 / program.value.max(1) as f64;
                    (self.matters(cost) && of_program >= rule.least).then(|| Finding {
                        kind: &rule.kind,
                        program: Some(program.clone()),
                        share: self.share(cost.value),
                        evidence: self.evidence(number, Some(id), cost, program.value),
                    })
                };
                programs.filter_map(finding).collect()
            }
        })
    }

    /// The CPU time below the frames of a number, which functions they are, and what calls them.
    fn evidence(&self, number: usize, program: Option<ProgramId>, cost: Cost, of: i64) -> Vec<Evidence> {
        let mut functions: FxHashMap<FrameId, Cost> = FxHashMap::default();
        let mut callers: FxHashMap<FrameId, Cost> = FxHashMap::default();
        let mut processes: FxHashMap<ProgramId, Cost> = FxHashMap::default();
        let mut known = FxHashMap::default();
        let mut first = evidence::FirstOfFunction::new(self.profile);
        let of_program = program.and_then(|id| self.programs.samples.get(id));
        let all = of_program.is_none().then_some(&self.profile.samples).into_iter().flatten();
        let chosen = of_program.into_iter().flatten();
        let chosen = chosen.filter_map(|place| self.profile.samples.get(*place as usize));
        for sample in chosen.chain(all) {
            if !self.marked.rules(sample.stack).any(|rule| rule == number) {
                continue;
            }
            let runs = self.programs.of(sample);
            let found = *known.entry(sample.stack).or_insert_with(|| self.marked.find(sample.stack, number));
            if let Some(found) = found {
                functions.entry(first.of(found.frame)).or_default().add(sample);
                if let Some(caller) = found.caller {
                    callers.entry(first.of(caller)).or_default().add(sample);
                }
            }
            if let Some(runs) = runs.filter(|_| program.is_none()) {
                processes.entry(runs).or_default().add(sample);
            }
        }
        let name =
            |id: ProgramId| self.programs.get(id).map(|program| program.name.clone()).unwrap_or_default();
        let mut evidence = vec![Evidence::Cpu { samples: cost.samples, value: cost.value, of }];
        evidence.extend(
            [
                Evidence::parts(
                    Sort::Programs,
                    processes.into_iter().map(|(id, cost)| (Part::Program(name(id)), cost)),
                ),
                Evidence::parts(
                    Sort::Functions,
                    functions.into_iter().map(|(id, cost)| (Part::Frame(id), cost)),
                ),
                Evidence::parts(Sort::Callers, callers.into_iter().map(|(id, cost)| (Part::Frame(id), cost))),
            ]
            .into_iter()
            .flatten(),
        );
        evidence
    }
}
