//! Counters beside samples: as they are written, and what a trace has of them.

use etwprof::event::{Event, Kind, Pointer, Ticks};
use etwprof::events::counter;
use etwprof::guids::ETWPROF;
use etwprof::trace::CounterTrack;

use crate::support::reading::synthetic;
use crate::support::stacks::machine;
use crate::synth::counters::recorded;
use crate::synth::{Event as Built, IntoEvent, Item, Process, START, guid};

const T: i64 = START + 1_000;

fn values(track: &CounterTrack) -> Vec<(i64, f64)> {
    track.values.iter().map(|(time, value)| (time.0 - T, *value)).collect()
}

#[test]
fn what_is_written_is_what_is_typed_by_hand() {
    let texts = ["Processor", "_Total", "% Processor Time", "%"];
    let record = recorded(7, texts, 12.5).record(T, 8);
    let event = Event {
        time: Ticks(T),
        provider: ETWPROF,
        kind: Kind::Manifest(0),
        opcode: 0,
        version: 0,
        pointer: Pointer::Bits64,
        processor: 0,
        pid: 7,
        tid: 0,
        items: &counter::items(),
        payload: &counter::payload(7, texts, 12.5),
    };
    let mut written = etwprof::etl::writer::record_of(&event).unwrap();
    // The level, which events do not carry.
    assert_eq!((written[40 + 4], record[40 + 4]), (0, 4));
    written[40 + 4] = 4;
    assert_eq!(written, record);
}

#[test]
fn tracks_are_by_process_and_name() {
    let heap = ["System.Runtime", "", "gc-heap-size", "MB"];
    let cpu = ["Processor", "0", "% Processor Time", "%"];
    let etl = machine()
        .event(0, T, recorded(0, cpu, 50.0))
        .event(0, T + 1, recorded(40, heap, 10.0))
        .event(1, T + 2, recorded(50, heap, 20.0))
        .event(1, T + 3, recorded(40, heap, 11.5))
        .event(0, T + 4, recorded(0, ["Processor", "1", cpu[2], cpu[3]], 0.0))
        .event(0, T + 5, recorded(0, cpu, f64::NAN))
        // The id is another's from here on.
        .event(0, T + 6, Process::end(40, "a.exe"))
        .event(0, T + 7, Process::start(40, "c.exe"))
        .event(0, T + 8, recorded(40, heap, 1.0));
    let trace = synthetic(etl);
    let shown: Vec<_> = trace
        .counters
        .iter()
        .map(|track| {
            let process = track.process.map(|process| trace.process(process).unwrap().name.clone());
            (process, track.path(), track.unit.as_str(), values(track))
        })
        .collect();
    let named = |name: &str| Some(name.to_owned());
    let (heap, cpu) = (r"System.Runtime\gc-heap-size", r"Processor(0)\% Processor Time");
    assert_eq!(
        shown,
        [
            (None, cpu.to_owned(), "%", vec![(0, 50.0)]),
            (named("a.exe"), heap.to_owned(), "MB", vec![(1, 10.0), (3, 11.5)]),
            (named("c.exe"), heap.to_owned(), "MB", vec![(8, 1.0)]),
            (named("b.exe"), heap.to_owned(), "MB", vec![(2, 20.0)]),
            (None, cpu.replace("(0)", "(1)"), "%", vec![(4, 0.0)]),
        ]
    );
    assert_eq!(trace.lost.malformed_events, 0);
}

#[test]
fn what_is_no_counter_or_cut_short_is_no_value() {
    let whole = || recorded(0, ["A", "", "b", ""], 1.0);
    let length = whole().record(T, 8).len();
    for cut in 1..8 {
        let trace = synthetic(machine().event(0, T, whole().record_length(length - cut)));
        assert_eq!((trace.counters.len(), trace.lost.malformed_events), (0, 1), "{cut}");
    }
    let other = Built::manifest(guid("deb49ce9-f9ba-505d-8029-5461bd3c09a5"), 0, 0, |bytes| bytes.u32(1));
    let trace = synthetic(machine().event(0, T, other.item(Item::schema("Other", b""))));
    assert_eq!((trace.counters.len(), trace.lost.malformed_events), (0, 0));
}
