//! Traces by hand, and the stacks of their samples as text.

use std::sync::Arc;

use etwprof::prefix_tree::NodeId;
use etwprof::profile::{Detail, Filter, Profile};
use etwprof::report::Spelling;
use etwprof::symbols::{Certainty, Evidence, Function, FunctionName, Unnamed};
use etwprof::trace::Trace;

use crate::support::reading;
use crate::synth::{Etl, Process, START, Thread};

/// Two processes with two threads each, and System with one, all there from the beginning.
pub fn machine() -> Etl {
    Etl::new()
        .cpus(4)
        .event(0, START + 1, Process::dc_start(4, "System"))
        .event(0, START + 1, Thread::dc_start(4, 5))
        .event(0, START + 1, Process::dc_start(40, "a.exe"))
        .event(0, START + 1, Thread::dc_start(40, 41))
        .event(0, START + 1, Thread::dc_start(40, 42))
        .event(0, START + 1, Process::dc_start(50, "b.exe"))
        .event(0, START + 1, Thread::dc_start(50, 51))
        .event(0, START + 1, Thread::dc_start(50, 52))
}

/// `a.exe: root caller leaf` of every kept sample, in order of time.
#[track_caller]
pub fn stacks(etl: Etl) -> Vec<String> {
    stacks_of(&reading::synthetic(etl))
}

pub fn stacks_of(trace: &Arc<Trace>) -> Vec<String> {
    let profile = Profile::new(trace, &Filter::default(), &Unnamed);
    let text = |sample: &etwprof::profile::Sample| {
        let mut frames = texts(&profile, sample.stack, Detail::default());
        frames.push(":".to_owned());
        frames.push(trace.process(profile.runner(sample).process).unwrap().label().to_owned());
        frames.reverse();
        frames.join(" ").replace(" :", ":")
    };
    profile.samples.iter().map(text).collect()
}

/// The frames and remarks of a stack, the leaf first.
pub fn texts(profile: &Profile, stack: NodeId, detail: Detail) -> Vec<String> {
    let spelling = Spelling::new(profile, detail);
    profile.stacks.entries(stack).map(|entry| spelling.text(entry)).collect()
}

/// What symbols say of an address that lies in this function and in nothing inlined.
pub fn exact(name: FunctionName, evidence: Evidence) -> Function {
    let certainty = Certainty::Exact;
    Function {
        name,
        evidence,
        certainty,
        assembly: None,
        file: None,
        line: None,
        start: None,
        inlined: false,
    }
}
