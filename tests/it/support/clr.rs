//! A process with a .NET runtime, made by hand, and what is shown of it.

use std::sync::Arc;

use etwprof::profile::{Category, Detail, Filter, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::Trace;

use super::reading;
use super::stacks::texts;
use crate::synth::{Etl, Process, START, Thread};

pub const PID: u32 = 42;
pub const TID: u32 = 43;
pub const CODE: u64 = 0x7ffa_1000_0000;
/// 10 ms at 10 MHz: how long before its load event a method may run.
pub const EARLY: i64 = 100_000;
/// Far enough from each other for that.
const STEP: i64 = 1_000_000;

/// A moment of the test.
pub const fn at(step: i64) -> i64 {
    START + step * STEP
}

pub fn base() -> Etl {
    Etl::new().event(0, START + 10, Process::dc_start(PID, "a.exe")).event(
        0,
        START + 10,
        Thread::dc_start(PID, TID),
    )
}

pub fn method(name: &str) -> [&str; 3] {
    ["N.T", name, "void  (int32)"]
}

pub fn trace(etl: &Etl) -> Arc<Trace> {
    let trace = reading::synthetic(etl.clone());
    assert_eq!(trace.lost.malformed_events, 0);
    trace
}

/// The leaf of each sample, with its category.
pub fn leaves(trace: &Arc<Trace>, detail: Detail) -> Vec<(String, Category)> {
    let profile = Profile::new(trace, &Filter::default(), &Unnamed);
    let leaf = |sample: &etwprof::profile::Sample| {
        let text = texts(&profile, sample.stack, detail).swap_remove(0);
        (text, profile.stacks.leaf(sample.stack).unwrap().category)
    };
    profile.samples.iter().map(leaf).collect()
}
