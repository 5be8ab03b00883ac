//! How far a recording can be trusted, in one word, and why no further.

use serde::Serialize;

use crate::profile::Profile;

use super::machine;
use super::symbols::part;

/// How far a recording can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Its figures hold.
    Good,
    /// Its large figures hold.
    Usable,
    /// It shows too little to go by.
    Poor,
}

/// Why a recording cannot be trusted more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// How far it can be trusted for this.
    pub quality: Quality,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a recording. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// It has few samples, or few were kept.
    FewSamples(u64),
    /// Events were lost: how many, and buffers of them.
    Lost {
        /// By the session's own count.
        events: u64,
        /// Buffers, by its count or by gaps in their numbers.
        buffers: u64,
    },
    /// Processors were sampled less often than asked for: the share of samples of the worst.
    Starved(f64),
    /// Samples end in code without a name: their share.
    Unnamed(f64),
    /// Samples have no stack: their share.
    NoStack(f64),
    /// Stacks do not reach the start of their thread: their share.
    Broken(f64),
}

/// What a value is worth that should be small: above these it is usable, and poor.
fn above(value: f64, usable: f64, poor: f64) -> Quality {
    match value {
        value if value > poor => Quality::Poor,
        value if value > usable => Quality::Usable,
        _ => Quality::Good,
    }
}

/// The word, and the reasons, the gravest first.
pub(super) fn judge(profile: &Profile) -> (Quality, Vec<Doubt>) {
    let (balance, trace) = (&profile.balance, &profile.trace);
    let kept = balance.kept;
    let of_kept = |samples: u64| part(samples, kept);
    let few = match kept {
        0..100 => Quality::Poor,
        100..1_000 => Quality::Usable,
        _ => Quality::Good,
    };
    let lost = &trace.lost;
    let (events, buffers) = (lost.events, lost.buffers + lost.sequence_gaps);
    let loss = match (events, buffers) {
        (0, 0) => Quality::Good,
        _ => above(part(events, events.saturating_add(trace.events)), 0.0, 0.01).max(Quality::Usable),
    };
    let worst = machine::starved(trace)
        .map_or(1.0, |(processors, _)| processors.iter().map(|(_, there)| *there).fold(1.0, f64::min));
    let is_nameless = |stack| profile.stacks.leaf(stack).is_none_or(|leaf| leaf.unresolved.is_some());
    let nameless = profile.samples.iter().filter(|sample| is_nameless(sample.stack));
    let unnamed = of_kept(nameless.map(|sample| sample.count()).sum());
    let (none, broken) = (of_kept(balance.stacks.none), of_kept(balance.stacks.broken));
    let mut doubts = vec![
        Doubt { quality: few, reason: Reason::FewSamples(kept) },
        Doubt { quality: loss, reason: Reason::Lost { events, buffers } },
        Doubt { quality: above(1.0 - worst, 0.10, 0.50), reason: Reason::Starved(worst) },
        Doubt { quality: above(none, 0.05, 0.50), reason: Reason::NoStack(none) },
        Doubt { quality: above(broken, 0.05, 0.30), reason: Reason::Broken(broken) },
        Doubt { quality: above(unnamed, 0.10, 0.50), reason: Reason::Unnamed(unnamed) },
    ];
    if kept == 0 {
        doubts.truncate(2);
    }
    doubts.retain(|doubt| doubt.quality > Quality::Good);
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.quality));
    (doubts.first().map_or(Quality::Good, |doubt| doubt.quality), doubts)
}
