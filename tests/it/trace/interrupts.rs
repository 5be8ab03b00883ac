//! When DPCs and interrupts ran: by hand, and against an independent count of a real recording.

use std::collections::BTreeMap;

use etwprof::etl::Recording;
use etwprof::events::kernel::InterruptKind;
use etwprof::trace::{InterruptSpan, Keep, Trace};

use crate::support::data;
use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo::{dpc, isr, msi_isr, threaded_dpc, timer_dpc};
use crate::synth::{Etl, Event, IntoEvent, START};

const T: i64 = START + 1_000_000;
const R: u64 = 0xffff_f800_0000_1000;

fn read(recording: &Recording, keep: bool) -> Trace {
    let keep = Keep { interrupts: keep, ..Keep::default() };
    every_way(recording, |builder| builder.keep(keep)).value
}

fn synthetic(etl: Etl) -> Trace {
    read(&Recording::from_bytes("interrupts.etl", etl.finish()).unwrap(), true)
}

/// Start, length, nested time, processor.
fn text(span: &InterruptSpan) -> (i64, i64, i64, u16) {
    (span.start.0 - T, span.ticks(), span.nested, span.processor)
}

#[test]
fn every_kind_in_both_widths() {
    for (width, routine) in [(4, 0x8000_1000), (8, R)] {
        let etl = machine()
            .pointer_size(width)
            .event(0, T + 10, dpc(T, routine))
            .event(1, T + 20, timer_dpc(T + 15, routine))
            .event(2, T + 30, threaded_dpc(T + 22, routine))
            .event(3, T + 40, isr(T + 39, routine, 0x1b2))
            .event(0, T + 50, msi_isr(T + 44, routine, 0x91, 7));
        let trace = synthetic(etl);
        let kinds: Vec<_> = trace.interrupts.iter().map(|span| span.kind).collect();
        use InterruptKind::{Dpc, Isr, MessageIsr, ThreadedDpc, TimerDpc};
        assert_eq!(
            kinds,
            [Dpc, TimerDpc, ThreadedDpc, Isr { vector: 0x1b2 }, MessageIsr { vector: 0x91 }],
            "{width}"
        );
        let spans: Vec<_> = trace.interrupts.iter().map(text).collect();
        assert_eq!(spans, [(0, 10, 0, 0), (15, 5, 0, 1), (22, 8, 0, 2), (39, 1, 0, 3), (44, 6, 0, 0)]);
        assert!(trace.interrupts.iter().all(|span| span.routine == routine));
    }
}

#[test]
fn what_interrupts_another_on_its_processor_is_nested_in_it() {
    let etl = machine()
        .event(0, T + 20, isr(T + 10, R, 1))
        // On another processor.
        .event(1, T + 25, isr(T + 15, R, 1))
        // An interrupt in an interrupt, which is in a DPC: the DPC has the outer one once.
        .event(0, T + 40, isr(T + 35, R, 2))
        .event(0, T + 50, isr(T + 30, R, 3))
        .event(0, T + 100, dpc(T, R))
        // Before it, and over.
        .event(0, T + 120, dpc(T + 101, R));
    let trace = synthetic(etl);
    let nested: Vec<_> = trace.interrupts.iter().map(|span| (span.nested, span.own_ticks())).collect();
    assert_eq!(nested, [(0, 10), (0, 10), (0, 5), (5, 15), (30, 70), (0, 19)]);
}

#[test]
fn cut_and_hostile_ones() {
    for width in [4, 8] {
        let whole: [fn() -> Event; 3] = [|| dpc(T, 1), || isr(T, 1, 2), || msi_isr(T, 1, 2, 3)];
        for whole in whole {
            for keep in [false, true] {
                let record = whole().record(T, width).len();
                for (length, malformed) in [(record, 0), (16 + 8, 1), (16 + 8 + width - 1, 1)] {
                    let etl = machine().pointer_size(width).event(0, T + 5, whole().record_length(length));
                    let recording = Recording::from_bytes("cut.etl", etl.finish()).unwrap();
                    let trace = read(&recording, keep);
                    let kept = u64::from(keep) * (1 - malformed);
                    assert_eq!(trace.lost.malformed_events, malformed, "{length}");
                    assert_eq!(trace.interrupts.len() as u64, kept, "{length}");
                }
            }
        }
    }
    let etl = machine()
        .event(0, T, dpc(i64::MAX, R))
        .event(0, T + 1, dpc(i64::MIN, R))
        .event(0, T + 2, dpc(i64::MIN, u64::MAX))
        .event(0, T + 3, isr(T + 3, 0, u16::MAX));
    let ticks: Vec<_> =
        synthetic(etl).interrupts.iter().map(|span| (span.ticks(), span.nested, span.own_ticks())).collect();
    assert_eq!(ticks, [(0, 0, 0), (i64::MAX, 0, i64::MAX), (i64::MAX, i64::MAX, 0), (0, 0, 0)]);
}

/// Counts, sums and longest times by a script that reads the records of the file by itself. Times in ticks.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_recording_has_the_sums_of_another_reader() {
    let recording = Recording::open(&[data::file("etl/xperf/slow-ppt.etl")]).unwrap();
    let trace = read(&recording, true);
    let mut sums: BTreeMap<&str, (u64, i64, i64)> = BTreeMap::new();
    let mut own: BTreeMap<u16, i64> = BTreeMap::new();
    for span in &trace.interrupts {
        let kind = match span.kind {
            InterruptKind::Isr { .. } => "isr",
            InterruptKind::MessageIsr { .. } => "message",
            InterruptKind::Dpc => "dpc",
            InterruptKind::TimerDpc => "timer",
            _ => "threaded",
        };
        let (count, sum, longest) = sums.entry(kind).or_default();
        (*count, *sum, *longest) = (*count + 1, *sum + span.ticks(), span.ticks().max(*longest));
        *own.entry(span.processor).or_default() += span.own_ticks();
    }
    let expected = BTreeMap::from([
        ("message", (1_118, 37_702, 288)),
        ("threaded", (8, 5, 1)),
        ("isr", (138_599, 5_526_110, 209)),
        ("dpc", (13_487, 170_664, 1_053)),
        ("timer", (1_772, 39_172, 405)),
    ]);
    assert_eq!(sums, expected);
    // The time in which any ran on a processor.
    assert_eq!(
        own.into_values().collect::<Vec<_>>(),
        [1_006_145, 756_055, 771_741, 773_787, 409_924, 539_700, 751_401, 751_296]
    );
}
