//! Reads recordings, through the library and through the program's JSON.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use etwprof::analysis;
use etwprof::etl::{Reading, Recording};
use etwprof::event::Event;
use etwprof::prefix_tree::NodeId;
use etwprof::trace::{Builder, CodeAddress, Place, Trace};
use serde_json::Value;

use super::command;
use crate::synth::Etl;

/// Every event of `recording` in order of time. Damage fails the test.
#[track_caller]
pub fn events(recording: &Recording, mut step: impl FnMut(&Event<'_>)) {
    let reading = recording.fold(NonZeroUsize::MIN, &mut |_| (), || (), |(), event| step(event));
    assert_eq!(reading.damage, [], "a whole file was read with damage");
}

/// The trace of a file.
#[track_caller]
pub fn file(path: &Path) -> Arc<Trace> {
    trace(&Recording::open(&[path]).unwrap())
}

/// The trace of a recording. Damage fails the test.
#[track_caller]
pub fn trace(recording: &Recording) -> Arc<Trace> {
    let reading = every_way(recording, |_| ());
    assert_eq!(reading.damage, [], "a whole file was read with damage");
    Arc::new(reading.value)
}

/// Reads a recording as the program does, after it has been read in other ways to the same trace: event by event, as a
/// live session gives them, and with other numbers of threads.
#[track_caller]
pub fn every_way(recording: &Recording, prepare: impl Fn(&mut Builder)) -> Reading<Trace> {
    let start = || {
        let mut builder = Builder::new(&analysis::origin(recording));
        prepare(&mut builder);
        builder
    };
    let expected = recording.fold(NonZeroUsize::MIN, &mut |_| (), start, Builder::event);
    let read = |threads| analysis::trace_with(recording, NonZeroUsize::new(threads), &mut |_| (), &prepare);
    let facts_of = facts(&expected.value.finish());
    let [one, three] = [1, 3].map(read);
    for (reading, threads) in [(&one, 1), (&three, 3)] {
        assert_eq!(reading.damage, expected.damage, "with {threads} threads");
        for (is, should) in facts(&reading.value).iter().zip(&facts_of) {
            assert_eq!(is, should, "with {threads} threads");
        }
        assert_eq!(facts(&reading.value).len(), facts_of.len(), "with {threads} threads");
    }
    // Four readings more, of code that is the same everywhere; the tests of Windows run under Wine, where each takes long.
    if !cfg!(windows) {
        held(recording, &prepare, &one.value);
    }
    one
}

/// Reads a recording in as little memory as may be: what it counts is what `whole` counts, for any number of threads.
#[track_caller]
fn held(recording: &Recording, prepare: &impl Fn(&mut Builder), whole: &Trace) {
    let read = |threads, memory| {
        let prepare = |builder: &mut Builder| {
            prepare(builder);
            builder.hold(memory);
        };
        analysis::trace_with(recording, NonZeroUsize::new(threads), &mut |_| (), prepare).value
    };
    let samples = whole.samples.len() as u64;
    for memory in [0, 128 * samples / 3] {
        let [one, three] = [1, 3].map(|threads| read(threads, memory));
        assert!(facts(&one) == facts(&three), "samples in {memory} bytes depend on threads");
        assert_eq!(one.lost, whole.lost, "in {memory} bytes");
        assert_eq!((one.unwanted, &one.idle), (whole.unwanted, &whole.idle), "in {memory} bytes");
        assert_eq!(one.sample_count(), whole.sample_count(), "in {memory} bytes");
        assert!(one.merged.is_some() || one.samples == whole.samples, "in {memory} bytes");
        let stacks_only = one.merged.is_some_and(|merged| merged.stacks_only);
        let same = counts(&one, stacks_only) == counts(whole, stacks_only);
        assert!(same, "samples in {memory} bytes count otherwise");
    }
}

/// How many samples there are of each thread, processor and stack of places, and what they stand for; with `stacks_only`, of
/// each process and stack of places.
fn counts(trace: &Trace, stacks_only: bool) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for sample in &trace.samples {
        let (runner, stack) = (trace.runner(sample.runner), trace.stack(sample.stack));
        let parts = [stack.kernel, stack.user].into_iter().flatten();
        let addresses = parts.flat_map(|part| trace.addresses.path(part)).chain([sample.address]);
        let places: Vec<Place> = addresses
            .map(|address| {
                trace.locate(runner.process, CodeAddress { address, is_return: false }, sample.time).place
            })
            .collect();
        let each = sample.weight / u32::from(sample.count);
        let who = match stacks_only {
            true => format!("{:?} {}", runner.process, runner.tid == 0),
            false => format!("{runner:?} {}", sample.processor),
        };
        let key = format!("{who} {:?} {each} {places:x?}", sample.context);
        let (samples, weight) = counts.entry(key).or_default();
        *samples += sample.count();
        *weight += u64::from(sample.weight);
    }
    counts
}

/// What a trace says, but for the numbers of nodes, which depend on who interned a stack.
fn facts(trace: &Trace) -> Vec<String> {
    let Trace { events, bytes, span, counter_samples, unwanted, processes, threads, modules, .. } = trace;
    let mut facts = vec![
        format!(
            "{events} events of {bytes} bytes in {span:?}, {counter_samples} of counters, {unwanted} unwanted"
        ),
        format!("{:?}", trace.lost),
        format!("{:?}", trace.idle),
        format!("{:?}", trace.machine),
        format!("{:?}", trace.counter_sources),
        format!("{:?}", trace.before),
        format!("{:?}", trace.runners),
        format!("{:?}", trace.mappings),
        format!("{:?}", trace.clock),
    ];
    facts.extend(processes.iter().map(|process| format!("{process:?}")));
    facts.extend(threads.iter().map(|thread| format!("{thread:?}")));
    facts.extend(modules.iter().map(|module| format!("{module:?}")));
    facts.extend(trace.code.modules().iter().map(|module| format!("{module:?}")));
    facts.extend(trace.code.bodies().iter().map(|body| {
        let host = trace.code.host(body.process);
        format!("{body:?} {:?} {:?} {host:?}", trace.code.name(body), trace.code.il_map(body))
    }));
    facts.extend(trace.samples.iter().map(|sample| format!("{sample:?}")));
    facts.extend(trace.kept.switches.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.kept.readied.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.kept.counted.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.kept.faults.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.kept.disk_requests.iter().map(|one| format!("{one:?}")));
    facts.push(format!("{:?}", trace.disk));
    facts.extend(trace.interrupts.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.counters.iter().map(|one| format!("{one:?}")));
    facts.extend(trace.stacks.iter().map(|stack| {
        let path = |part: Option<NodeId>| part.map(|part| trace.addresses.path(part).collect::<Vec<_>>());
        format!("{:x?} {:x?}", path(stack.kernel), path(stack.user))
    }));
    facts
}

/// The trace of a file made by hand.
#[track_caller]
pub fn synthetic(etl: Etl) -> Arc<Trace> {
    trace(&Recording::from_bytes("synthetic.etl", etl.finish()).unwrap())
}

/// The same with its idle samples among the others.
#[track_caller]
pub fn synthetic_with_idle(etl: Etl) -> Arc<Trace> {
    let recording = Recording::from_bytes("synthetic.etl", etl.finish()).unwrap();
    let reading = every_way(&recording, Builder::keep_idle);
    assert_eq!(reading.damage, [], "a whole file was read with damage");
    Arc::new(reading.value)
}

/// What the program prints as JSON for these arguments.
#[track_caller]
pub fn json<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Value {
    let output = command::etwprof(args).success();
    serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else")
}

/// `etwprof info --json` of one file.
#[track_caller]
pub fn info(path: &Path) -> Value {
    json([OsStr::new("info"), OsStr::new("--json"), path.as_os_str()])
}

/// A number of a JSON document, by its pointer: `number(&info, "/samples/kept")`.
#[track_caller]
pub fn number(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number at {pointer}"))
}
