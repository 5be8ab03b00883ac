//! What keeps the recording from showing more: missing symbols, broken and missing stacks, losses.

use rustc_hash::FxHashMap;

use crate::profile::{Remark, Unresolved};
use crate::symbols::resolver::Symbols;
use crate::trace::ModuleId;

use super::rules::Kind;
use super::{Cost, Evidence, Finding, LEAST_SAMPLES, Part, Search, Sort};

static MISSING_SYMBOLS: Kind = Kind {
    id: "missing-symbols",
    title: "Functions have no names, because their symbols are missing",
    advice: "Give the places of the PDBs: a symbol path (_NT_SYMBOL_PATH), a symbol server, or a folder `symbols` beside the \
             recording. The modules listed would help most.",
};

static BROKEN_STACKS: Kind = Kind {
    id: "broken-stacks",
    title: "Stacks do not reach the start of their threads",
    advice: "Callers of what is broken are missing in the tree. For 32-bit code, build with frame pointers and record on \
             Windows 8 or later; other code needs the unwind data of its images.",
};

static NO_STACKS: Kind = Kind {
    id: "no-stacks",
    title: "Samples have no stack, or lack its part in user mode",
    advice: "Record with stacks of samples, and let the recording run a moment longer: the part of a stack in user mode \
             is written when its thread leaves the kernel.",
};

static LOST: Kind = Kind {
    id: "lost-events",
    title: "The recording lost events",
    advice: "Record with more or larger buffers, to a faster disk, or with fewer providers.",
};

pub(super) static KINDS: [&Kind; 4] = [&MISSING_SYMBOLS, &BROKEN_STACKS, &NO_STACKS, &LOST];

/// From these shares on.
const UNNAMED: f64 = 0.05;
const BROKEN: f64 = 0.05;
const STACKLESS: f64 = 0.05;

impl Search<'_> {
    pub(super) fn symbols(&self, symbols: &Symbols) -> Vec<Finding> {
        let found = [self.missing_symbols(symbols), self.broken(), self.stackless(), self.lost()];
        found.into_iter().flatten().collect()
    }

    fn missing_symbols(&self, symbols: &Symbols) -> Option<Finding> {
        let verdicts: FxHashMap<ModuleId, &'static str> =
            symbols.modules.iter().map(|report| (report.module, report.verdict.word())).collect();
        let mut all = Cost::default();
        let mut modules: FxHashMap<ModuleId, Cost> = FxHashMap::default();
        for sample in &self.profile.samples {
            let Some(leaf) = self.profile.stacks.leaf(sample.stack) else { continue };
            if let (Some(Unresolved::NoSymbols), Some(module)) = (leaf.unresolved, leaf.module) {
                all.add(sample);
                modules.entry(module).or_default().add(sample);
            }
        }
        if !self.matters(all) || self.share(all.value) < UNNAMED {
            return None;
        }
        let part = |id| Part::Module(id, verdicts.get(&id).copied());
        let modules = modules.into_iter().map(|(id, cost)| (part(id), cost));
        let mut evidence = vec![Evidence::Cpu { samples: all.samples, value: all.value, of: self.total }];
        evidence.extend(Evidence::parts(Sort::Modules, modules));
        Some(Finding { kind: &MISSING_SYMBOLS, program: None, share: self.share(all.value), evidence })
    }

    fn broken(&self) -> Option<Finding> {
        let balance = &self.profile.balance;
        let (broken, share) = (balance.stacks.broken, part(balance.stacks.broken, balance.kept));
        (share >= BROKEN && broken >= LEAST_SAMPLES).then(|| Finding {
            kind: &BROKEN_STACKS,
            program: None,
            share,
            evidence: vec![Evidence::Breaks(self.profile.breaks())],
        })
    }

    fn stackless(&self) -> Option<Finding> {
        let of = self.profile.balance.kept;
        let none = self.profile.balance.stacks.none;
        let stacks = &self.profile.stacks;
        let lacks =
            self.profile.samples.iter().filter(|sample| stacks.has(sample.stack, Remark::UserStackMissing));
        let without_user = lacks.map(|sample| sample.count()).sum();
        let share = part(none + without_user, of);
        (share >= STACKLESS && none + without_user >= LEAST_SAMPLES).then(|| Finding {
            kind: &NO_STACKS,
            program: None,
            share,
            evidence: vec![Evidence::Stackless { none, without_user, of }],
        })
    }

    fn lost(&self) -> Option<Finding> {
        let trace = &self.profile.trace;
        let lost = &trace.lost;
        let is_lost = lost.events + lost.buffers + lost.sequence_gaps > 0;
        is_lost.then(|| Finding {
            kind: &LOST,
            program: None,
            share: part(lost.events, lost.events.saturating_add(trace.events)),
            evidence: vec![Evidence::Lost { lost: lost.clone(), events: trace.events }],
        })
    }
}

pub(super) fn part(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}
