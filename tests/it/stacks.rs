//! Traces by hand, and the stacks of their samples as text.

use etwprof::profile::{Filter, Naming, Profile};
use etwprof::symbols::Unnamed;
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

pub fn stacks_of(trace: &Trace) -> Vec<String> {
    let profile = Profile::new(trace, &Filter::default(), &Unnamed, Naming::default());
    let text = |sample: &etwprof::profile::Sample| {
        let mut frames: Vec<&str> = profile
            .stacks
            .path(sample.stack)
            .map(|frame| profile.frame(frame).unwrap().text.as_str())
            .collect();
        frames.push(":");
        frames.push(trace.process(sample.process).unwrap().label());
        frames.reverse();
        frames.join(" ").replace(" :", ":")
    };
    profile.samples.iter().map(text).collect()
}
