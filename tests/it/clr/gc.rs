//! Collections, pauses and exceptions: those of real recordings, against what an independent reader counted, and built ones.

use std::collections::BTreeMap;

use etwprof::Trace;
use etwprof::clock::Ticks;
use etwprof::events::clr::{GcKind, GcReason};
use etwprof::trace::ProcessId;

use crate::support::clr::{PID, at, base, trace};
use crate::support::{data, reading};
use crate::synth::{Process, clr};

fn pid(trace: &Trace, process: ProcessId) -> u32 {
    trace.process(process).unwrap().pid
}

/// The pauses of a process: how many, all together, and the longest, in 100 µs.
fn pauses(trace: &Trace, of: u32) -> (usize, i64, i64) {
    let pauses = trace.managed.pauses.iter().filter(|pause| pid(trace, pause.process) == of);
    let pauses: Vec<i64> = pauses.map(|pause| pause.ticks().unwrap()).collect();
    let tenths = |ticks: i64| (trace.clock.seconds_between(Ticks(0), Ticks(ticks)) * 1e4).round() as i64;
    (pauses.len(), tenths(pauses.iter().sum()), tenths(pauses.iter().copied().max().unwrap()))
}

/// The collections of a process by generation and reason.
fn collections(trace: &Trace, of: u32) -> BTreeMap<(u32, GcReason), usize> {
    let mut counts = BTreeMap::new();
    for gc in trace.managed.collections.iter().filter(|gc| pid(trace, gc.process) == of) {
        assert!(gc.end.unwrap() > gc.start && gc.instance.is_some());
        *counts.entry((gc.generation.unwrap(), gc.reason)).or_default() += 1;
    }
    counts
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn those_of_2016() {
    let trace = reading::file(&data::file("etl/perfview/PerfViewData.etl"));
    assert_eq!(pauses(&trace, 1980), (1_051, 1_308, 87));
    let expected = [((0, GcReason::AllocSmall), 950), ((2, GcReason::Induced), 100)];
    assert_eq!(collections(&trace, 1980), BTreeMap::from(expected));
    assert!(trace.managed.exceptions.is_empty());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn those_of_net_4_5_2() {
    let trace = reading::file(&data::file("etl/perfview/net.4.5.2.x64.etl"));
    assert_eq!(pauses(&trace, 3676), (264, 290, 14));
    assert_eq!(pauses(&trace, 3988), (1, 109, 109));
    // Each is there in two versions.
    assert_eq!(collections(&trace, 3676), BTreeMap::from([((0, GcReason::AllocSmall), 263)]));
    assert_eq!(collections(&trace, 3988).values().sum::<usize>(), 1);
    let [thrown] = trace.managed.exceptions[..] else { panic!() };
    assert!(trace.managed.exception_types[thrown.type_name as usize].starts_with("System."));
}

#[test]
fn each_has_its_begin_and_its_end() {
    const OTHER: u32 = 44;
    let trace = trace(
        &base()
            .event(0, at(0), Process::dc_start(OTHER, "b.exe"))
            // A background collection, and a short one in its midst.
            .event(0, at(1), clr::suspend(PID, 6))
            .event(0, at(2), clr::gc_start(PID, 7, 2, 4, 1))
            .event(0, at(3), clr::resume(PID))
            .event(0, at(4), clr::suspend(PID, 1))
            .event(0, at(5), clr::gc_start(PID, 8, 0, 0, 2))
            .event(0, at(6), clr::gc_end(PID, 8, 0))
            .event(0, at(7), clr::resume(PID))
            .event(0, at(8), clr::gc_end(PID, 7, 2))
            // A suspension for something else, one of another process, and one whose end is lost.
            .event(0, at(9), clr::suspend(PID, 5))
            .event(0, at(10), clr::suspend(OTHER, 1))
            .event(0, at(11), clr::resume(PID))
            .event(0, at(12), clr::gc_start(OTHER, 7, 1, 7, 0))
            .event(0, at(13), clr::resume(OTHER))
            .event(0, at(14), clr::suspend(OTHER, 1))
            .event(0, at(15), clr::exception(PID, "System.FormatException", "no number"))
            .event(0, at(16), clr::exception(PID, "N.Failed", ""))
            .event(0, at(17), clr::exception(OTHER, "System.FormatException", "no date")),
    );
    let step = |time: Ticks| (time.0 - at(0)) / (at(1) - at(0));
    let managed = &trace.managed;
    let pauses: Vec<_> = managed
        .pauses
        .iter()
        .map(|pause| (pid(&trace, pause.process), pause.is_for_gc, step(pause.start), pause.end.map(step)))
        .collect();
    assert_eq!(
        pauses,
        [
            (PID, true, 1, Some(3)),
            (PID, true, 4, Some(7)),
            (PID, false, 9, Some(11)),
            (OTHER, true, 10, Some(13)),
            (OTHER, true, 14, None)
        ]
    );
    let collections: Vec<_> = managed
        .collections
        .iter()
        .map(|gc| (pid(&trace, gc.process), gc.number, gc.reason, gc.kind, step(gc.start), gc.end.map(step)))
        .collect();
    assert_eq!(
        collections,
        [
            (PID, 7, GcReason::AllocLarge, Some(GcKind::Background), 2, Some(8)),
            (PID, 8, GcReason::AllocSmall, Some(GcKind::Foreground), 5, Some(6)),
            (OTHER, 7, GcReason::InducedNotForced, Some(GcKind::Blocking), 12, None),
        ]
    );
    let thrown: Vec<_> = managed
        .exceptions
        .iter()
        .map(|one| (pid(&trace, one.process), managed.exception_types[one.type_name as usize].as_str()))
        .collect();
    let format = "System.FormatException";
    assert_eq!(thrown, [(PID, format), (PID, "N.Failed"), (OTHER, format)]);
}
