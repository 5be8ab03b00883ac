//! What happened beside the CPU use on a page: pauses for collections, and threads that were ready or blocked.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::profile::Profile;
use crate::trace::waits::Waits;
use crate::trace::{SlotChoice, SlotKind, Slots};

use super::threads::Threads;

/// Equal parts of the time of the page, as many as its timeline draws.
const PARTS: i64 = 300;

/// A kind of time of a process or of one of its threads.
#[derive(Serialize)]
pub(super) struct Lane {
    /// An index into the processes of the page.
    process: usize,
    /// An index into its threads; `None` for the whole process.
    thread: Option<usize>,
    /// `gc`, `ready` or `blocked`.
    kind: &'static str,
    /// All of it, in 100 ns.
    total: i64,
    /// How much of each part of the time, in thousandths.
    parts: Vec<i64>,
}

/// Those of the threads that the page has.
pub(super) fn lanes(profile: &Profile, threads: &Threads) -> Vec<Lane> {
    let trace = &profile.trace;
    let clock = &trace.clock;
    let start = clock.base_utc.saturating_add(threads.start);
    let range = (clock.moment(start), clock.moment(start.saturating_add(threads.length)));
    let slot = threads.length.saturating_mul(100) / PARTS + 1;
    let waits = Waits::new(trace);
    let processes: FxHashMap<_, usize> = threads
        .ids
        .iter()
        .map(|(process, _)| *process)
        .zip(threads.threads.iter().map(|t| t.process))
        .collect();
    let of_threads: FxHashMap<_, usize> = threads.ids.iter().copied().zip(0..).collect();
    let is_shown: Vec<bool> = waits
        .iter()
        .flat_map(|waits| &waits.threads)
        .map(|thread| of_threads.contains_key(&(thread.process, thread.tid)))
        .collect();
    // Samples are drawn by the page itself.
    let runners = vec![false; trace.runners.len()];
    let chosen =
        SlotChoice { runners: &runners, threads: &is_shown, processes: &[], by_thread: true, before: None };
    let Some(slots) = Slots::new(trace, waits.as_ref(), range, slot, chosen) else { return Vec::new() };
    let lane = |row: &crate::trace::SlotRow| {
        let kind = match row.kind {
            SlotKind::Gc => "gc",
            SlotKind::Ready => "ready",
            SlotKind::Blocked => "blocked",
            SlotKind::Cpu | SlotKind::Running => return None,
        };
        let process = *processes.get(&row.owner.process)?;
        let thread = match row.owner.thread {
            Some((tid, _)) => Some(*of_threads.get(&(row.owner.process, tid))?),
            None => None,
        };
        let sum = row.values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
        let parts = row.values.iter().map(|value| value.saturating_mul(1_000) / slots.slot).collect();
        Some(Lane { process, thread, kind, total: sum / 100, parts })
    };
    slots.rows.iter().filter_map(lane).collect()
}
