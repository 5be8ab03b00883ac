//! Events that are kept beside the CPU samples, with their stacks; and that the samples are the same whatever is kept.

use std::collections::BTreeMap;

use etwprof::etl::Recording;
use etwprof::event::NO_ID;
use etwprof::events::kernel::FaultKind;
use etwprof::trace::{Keep, Stacked, Trace};
use proptest::prelude::*;

use crate::support::data;
use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::kernel::{page_fault, perfinfo};
use crate::synth::{Etl, START, Sample, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;
const T: i64 = START + 1_000;

fn read(recording: &Recording, keep: Keep) -> Trace {
    every_way(recording, |builder| builder.keep(keep)).value
}

fn synthetic(etl: &Etl, keep: Keep) -> Trace {
    read(&Recording::from_bytes("kept.etl", etl.clone().finish()).unwrap(), keep)
}

/// `41 of a.exe: root ... leaf`.
fn whose<F>(trace: &Trace, one: &Stacked<F>) -> String {
    let runner = trace.runner(one.runner);
    let process = trace.process(runner.process).map_or("?", |process| process.label());
    format!("{} of {process}:{}", runner.tid as i32, frames(trace, one.stack))
}

fn frames(trace: &Trace, stack: etwprof::trace::StackId) -> String {
    let stack = trace.stack(stack);
    let of = |part: Option<_>| {
        let mut frames: Vec<String> = part
            .into_iter()
            .flat_map(|part| trace.addresses.path(part))
            .map(|frame| format!(" {frame:x}"))
            .collect();
        frames.reverse();
        frames.concat()
    };
    of(stack.user) + &of(stack.kernel)
}

/// Every sample with all that it says, whatever numbers its thread and stack have.
fn samples(trace: &Trace) -> Vec<String> {
    let text = |sample: &etwprof::trace::Sample| {
        let runner = trace.runner(sample.runner);
        let process = trace.process(runner.process).map_or("?", |process| process.label());
        let etwprof::trace::Sample { time, address, weight, processor, context, .. } = sample;
        let stack = frames(trace, sample.stack);
        format!(
            "{} {address:x} {} of {process}, {weight} on {processor} {context:?}:{stack}",
            time.0, runner.tid
        )
    };
    trace.samples.iter().map(text).collect()
}

/// One event of each kind by a thread of a.exe in the kernel, which leaves it at the end; and a CPU sample.
fn one_of_each() -> Etl {
    let stack =
        |etl: Etl, time: i64, frames: &[u64]| etl.event(0, time + 2, stack_walk::full(time, 40, 41, frames));
    let etl = machine().event(0, T, CSwitch::new(52, 41).reason(6, 5));
    let etl = stack(etl, T, &[K + 1]).event(0, T + 10, ready(51, false));
    let etl = stack(etl, T + 10, &[K + 2]).event(0, T + 20, perfinfo::counter_sample(K + 3, 41, 7));
    let etl = stack(etl, T + 20, &[K + 3]).event(0, T + 30, page_fault::fault(14, 0x7000, 0xa));
    let etl = stack(etl, T + 30, &[K + 4]).event(0, T + 40, page_fault::hard_fault(T + 30, 0x7000, 41, 4096));
    let etl = stack(etl, T + 40, &[K + 5]).event(0, T + 50, Sample::new(K + 6, 41));
    stack(stack(etl, T + 50, &[K + 6]), T + 50, &[0xa, 0xb])
}

#[test]
fn each_kind_gets_both_parts_of_its_stack() {
    let trace = synthetic(&one_of_each(), Keep::ALL);
    let kept = &trace.kept;
    let [switch] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!(whose(&trace, &switch), "41 of a.exe: b a ffff800000000001");
    assert_eq!((switch.fact.old_tid, switch.fact.old_wait_reason, switch.fact.old_state), (52, 6, 5));
    // Its record names no thread but the one that was made ready: the stack names who did it.
    let [readied] = kept.readied[..] else { panic!("{:?}", kept.readied) };
    assert_eq!(
        (whose(&trace, &readied).as_str(), readied.fact.tid),
        ("41 of a.exe: b a ffff800000000002", 51)
    );
    let [counted] = kept.counted[..] else { panic!("{:?}", kept.counted) };
    assert_eq!(
        (whose(&trace, &counted).as_str(), counted.fact.source),
        ("41 of a.exe: b a ffff800000000003", 7)
    );
    let [fault, done] = kept.faults[..] else { panic!("{:?}", kept.faults) };
    assert_eq!(whose(&trace, &fault), "41 of a.exe: b a ffff800000000004");
    assert_eq!((fault.fact.kind, fault.fact.address, fault.fact.instruction), (FaultKind::Hard, 0x7000, 0xa));
    assert_eq!(whose(&trace, &done), "41 of a.exe: b a ffff800000000005");
    assert_eq!((done.fact.kind, done.fact.bytes, done.fact.tid), (FaultKind::Read, 4096, Some(41)));
    assert_eq!((trace.lost.orphan_stacks, trace.samples.len()), (0, 1));
}

#[test]
fn what_nobody_asks_for_is_not_kept_and_its_stacks_have_an_owner_all_the_same() {
    let (etl, all) = (one_of_each(), synthetic(&one_of_each(), Keep::ALL));
    let none = synthetic(&etl, Keep::default());
    assert_eq!(none.kept, Default::default());
    assert_eq!((none.lost.clone(), none.counter_samples), (all.lost.clone(), 1));
    assert_eq!((none.stacks.len(), none.runners.len()), (1, 1), "nothing of them is stored");
    assert_eq!(samples(&none), samples(&all));
    let faults = synthetic(&etl, Keep { faults: true, ..Keep::default() });
    assert_eq!((faults.kept.faults.len(), faults.kept.switches.len()), (2, 0));
}

#[test]
fn counters_are_no_cpu_samples_and_have_their_names() {
    let etl = machine()
        .event(0, T, perfinfo::collection_start(10_000))
        .event(0, T, perfinfo::source_interval(7, 65_536, "CacheMisses"))
        .event(0, T + 10, Sample::new(0xa, 41))
        .event(0, T + 20, perfinfo::counter_sample(0xb, 41, 7))
        .event(0, T + 30, perfinfo::counter_sample(0xc, 0, 7));
    for keep in [Keep::default(), Keep::ALL] {
        let trace = synthetic(&etl, keep);
        assert_eq!((trace.sample_count(), trace.counter_samples), (1, 2));
        assert_eq!(trace.samples[0].weight, 10_000, "the interval of a counter is not the timer's");
        let sources: Vec<_> = trace.counter_sources.iter().collect();
        assert_eq!(sources.len(), 1);
        assert_eq!(
            (*sources[0].0, sources[0].1.name.as_str(), sources[0].1.interval),
            (7, "CacheMisses", 65_536)
        );
    }
}

#[test]
fn an_event_without_a_stack_and_a_thread_is_of_nobody() {
    let trace = synthetic(&machine().event(2, T, ready(41, true)), Keep::ALL);
    assert_eq!(trace.runner(trace.kept.readied[0].runner).tid, NO_ID);
    assert_eq!(trace.stack(trace.kept.readied[0].stack), Default::default());
}

/// What a thread does at a moment.
#[derive(Clone, Copy, Debug)]
enum Step {
    KernelSample,
    UserSample,
    Switch,
    Ready,
    Counter,
    Fault,
    /// It leaves the kernel, and a record names the last event.
    Leave,
}

fn step() -> impl Strategy<Value = (Step, bool, i64)> {
    let steps = [
        Step::KernelSample,
        Step::UserSample,
        Step::Switch,
        Step::Ready,
        Step::Counter,
        Step::Fault,
        Step::Leave,
    ];
    // On which of two threads, and how long after the step before; 0 is a coarse clock.
    (proptest::sample::select(steps.to_vec()), any::<bool>(), prop_oneof![Just(0i64), 1..40i64])
}

proptest! {
    #[test]
    fn samples_are_the_same_whatever_is_kept(steps in prop::collection::vec(step(), 1..60)) {
        let mut etl = machine();
        let (mut time, mut last) = (T, [T; 2]);
        for (number, (step, second, later)) in (1..).zip(steps) {
            time += later;
            let (cpu, tid) = (u16::from(second), if second { 42 } else { 41 });
            let stack = |etl: Etl, frame: u64| etl.event(cpu, time, stack_walk::full(time, 40, tid, &[frame]));
            let of = &mut last[usize::from(cpu)];
            etl = match step {
                Step::Leave => etl.event(cpu, time, stack_walk::full(*of, 40, tid, &[0x1000 + number])),
                Step::UserSample => etl.event(cpu, time, Sample::new(0x1000 + number, tid)),
                Step::KernelSample => stack(etl.event(cpu, time, Sample::new(K + number, tid)), K + number),
                Step::Switch => stack(etl.event(cpu, time, CSwitch::new(52, tid)), K + number),
                Step::Ready => stack(etl.event(cpu, time, ready(51, false)), K + number),
                Step::Counter => stack(etl.event(cpu, time, perfinfo::counter_sample(K + number, tid, 7)), K + number),
                Step::Fault => stack(etl.event(cpu, time, page_fault::fault(11, 0x7000, 0xa)), K + number),
            };
            *of = time;
        }
        let (none, all) = (synthetic(&etl, Keep::default()), synthetic(&etl, Keep::ALL));
        prop_assert_eq!(samples(&none), samples(&all));
        prop_assert_eq!(none.lost, all.lost);
    }
}

/// The one real recording with switches. Its session asked for stacks of samples only.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn switches_of_a_real_recording_lead_from_thread_to_thread() {
    let recording = Recording::open(&[data::packed("etl/xperf/slow-ppt.zip")]).unwrap();
    let trace = read(&recording, Keep::ALL);
    assert_eq!((trace.kept.switches.len(), trace.lost.orphan_stacks), (29_533, 0));
    // The thread that stops is the one that ran on this processor.
    let mut running: BTreeMap<u16, u32> = BTreeMap::new();
    for switch in &trace.kept.switches {
        let before = running.insert(switch.processor, switch.fact.new_tid);
        assert!(before.is_none_or(|before| before == switch.fact.old_tid), "{switch:?}");
        assert_eq!(trace.runner(switch.runner).tid, switch.fact.new_tid);
        assert_eq!(trace.stack(switch.stack), Default::default());
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_of_real_recordings_are_the_same_whatever_is_kept() {
    let mut compared = 0;
    for path in data::traces() {
        let Ok(recording) = Recording::open(&[&path]) else { continue };
        compared += 1;
        let (none, all) = (read(&recording, Keep::default()), read(&recording, Keep::ALL));
        assert!(samples(&none) == samples(&all), "{}", path.display());
        assert_eq!(none.lost, all.lost, "{}", path.display());
    }
    assert!(compared > 20, "{compared}");
}
