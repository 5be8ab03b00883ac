//! Times in slots: each worked out by hand, and sums that must be those of the whole.

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::event::Ticks;
use etwprof::trace::waits::{State, Waits};
use etwprof::trace::{Keep, SlotChoice, SlotKind, Slots, Trace, spread};
use proptest::prelude::*;

use crate::support::data;
use crate::support::stacks::machine;
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::{START, Sample};

const MS: i64 = 1_000_000;

fn at(ms: i64) -> i64 {
    START + ms * 10_000
}

fn read(recording: &Recording) -> (Trace, Waits) {
    let keep = Keep { switches: true, readied: true, ..Keep::default() };
    let trace = analysis::trace_with(recording, None, &mut |_| (), |builder| builder.keep(keep)).value;
    let waits = Waits::new(&trace).expect("switches");
    (trace, waits)
}

fn values(slots: &Slots, tid: u32, kind: SlotKind) -> Vec<i64> {
    let is = |row: &&etwprof::trace::SlotRow| {
        row.kind == kind && row.owner.thread.is_some_and(|(id, _)| id == tid)
    };
    slots.rows.iter().find(is).map(|row| row.values.clone()).unwrap_or_default()
}

#[test]
fn a_time_counts_in_each_slot_that_it_lies_in() {
    // 41 runs from 1 to 11 ms, blocks to 31 ms, is ready to 36 ms, and runs to the end at 41 ms.
    let etl = machine()
        .event(0, at(1), CSwitch::new(0, 41))
        .event(0, at(5), Sample::new(0x1100, 41))
        .event(0, at(11), CSwitch::new(41, 0).reason(15, 5))
        .event(0, at(31), ready(41, false))
        .event(0, at(36), CSwitch::new(0, 41))
        .event(0, at(41), CSwitch::new(41, 0).reason(15, 5));
    let recording = Recording::from_bytes("slots.etl", etl.finish()).unwrap();
    let (trace, waits) = read(&recording);
    let range = (Ticks(at(1)), Ticks(at(41)));
    assert_eq!(Slots::range(&trace, Some(&waits)), Some(range));
    let chosen = SlotChoice { by_thread: true, ..SlotChoice::default() };
    let slots = Slots::new(&trace, Some(&waits), range, 10 * MS, chosen).unwrap();
    assert_eq!((slots.count(), slots.end - slots.start), (4, 40 * MS));
    let of = |kind| values(&slots, 41, kind).iter().map(|value| value / MS).collect::<Vec<_>>();
    assert_eq!(of(SlotKind::Running), [10, 0, 0, 5]);
    assert_eq!(of(SlotKind::Blocked), [0, 10, 10, 0]);
    assert_eq!(of(SlotKind::Ready), [0, 0, 0, 5]);
    assert_eq!(of(SlotKind::Cpu), [1, 0, 0, 0]);
    // A range begins and ends inside of times, and the last slot reaches beyond it.
    let range = (Ticks(at(6)), Ticks(at(21)));
    let slots = Slots::new(&trace, Some(&waits), range, 10 * MS, chosen).unwrap();
    assert_eq!(values(&slots, 41, SlotKind::Running), [5 * MS, 0]);
    assert_eq!(values(&slots, 41, SlotKind::Blocked), [5 * MS, 5 * MS]);
    assert_eq!(values(&slots, 41, SlotKind::Cpu), [0_i64; 0], "an empty row is none");
    let nobody = vec![false; waits.threads.len()];
    let none = SlotChoice { threads: &nobody, runners: &vec![false; trace.runners.len()], ..chosen };
    assert_eq!(Slots::new(&trace, Some(&waits), range, MS, none).unwrap().rows, []);
    assert_eq!(
        Slots::new(&trace, Some(&waits), range, 0, chosen),
        Slots::new(&trace, Some(&waits), range, 1, chosen)
    );
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn slots_of_a_real_recording_add_up_to_what_the_threads_did() {
    let recording = Recording::open(&[data::file("etl/xperf/slow-ppt.etl")]).unwrap();
    let (trace, waits) = read(&recording);
    let range = Slots::range(&trace, Some(&waits)).unwrap();
    for by_thread in [false, true] {
        let chosen = SlotChoice { by_thread, ..SlotChoice::default() };
        let slots = Slots::new(&trace, Some(&waits), range, 70 * MS, chosen).unwrap();
        let sum = |kind| {
            let rows = slots.rows.iter().filter(|row| row.kind == kind);
            rows.flat_map(|row| &row.values).sum::<i64>()
        };
        let spans = |state| {
            let spans = waits.threads.iter().flat_map(|thread| &thread.spans);
            let length = |span: &etwprof::trace::waits::Span| {
                trace.clock.nanoseconds(span.end) - trace.clock.nanoseconds(span.start)
            };
            spans.filter(|span| span.state == state).map(length).sum::<i64>()
        };
        assert_eq!(sum(SlotKind::Running), spans(State::Running));
        assert_eq!(sum(SlotKind::Ready), spans(State::Ready));
        assert_eq!(sum(SlotKind::Blocked), spans(State::Blocked));
        // A millisecond each.
        assert_eq!(sum(SlotKind::Cpu), trace.samples.len() as i64 * MS);
        assert_eq!(Slots::new(&trace, Some(&waits), range, 1_000, chosen), None, "17 million slots each");
    }
}

proptest! {
    #[test]
    fn spreading_loses_nothing(
        times in prop::collection::vec((-50_i64..1_000, 0_i64..400), 0..20),
        start in -20_i64..500, length in 0_i64..900, parts in 1_usize..40,
    ) {
        let end = start + length;
        let times: Vec<(i64, i64)> = times.into_iter().map(|(from, length)| (from, from + length)).collect();
        let inside: i64 = times.iter().map(|(from, to)| ((*to).min(end) - (*from).max(start)).max(0)).sum();
        let values = spread(times.iter().copied(), (start, end), parts);
        prop_assert_eq!(values.len(), parts);
        prop_assert_eq!(values.iter().sum::<i64>(), inside);
    }
}
