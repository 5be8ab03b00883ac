//! Chosen events and their stacks: carried by the event, recorded by the kernel, or walked by the runtime.

use etwprof::etl::Recording;
use etwprof::guids::{CLR, PAGE_FAULT};
use etwprof::trace::{EventKey, EventSet, StackId, Stacked, Trace};

use crate::support::data;
use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::page_fault;
use crate::synth::{Etl, IntoEvent, Item, START, Sample, clr, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;
const T: i64 = START + 1_000;

fn read(recording: &Recording, events: &EventSet) -> Trace {
    let trace = every_way(recording, |builder| builder.keep_events(events.clone())).value;
    // The same in order of time, one by one, as a live session gives them.
    let start = || {
        let mut builder = etwprof::trace::Builder::new(&etwprof::analysis::origin(recording));
        builder.keep_events(events.clone());
        builder
    };
    let one_by_one = recording
        .fold(std::num::NonZeroUsize::MIN, &mut |_| (), start, etwprof::trace::Builder::event)
        .value
        .finish();
    assert_eq!(texts(&one_by_one), texts(&trace));
    trace
}

fn made(etl: Etl, events: &EventSet) -> Vec<String> {
    texts(&read(&Recording::from_bytes("chosen.etl", etl.finish()).unwrap(), events))
}

fn frames(trace: &Trace, stack: StackId) -> String {
    let stack = trace.stack(stack);
    let of = |part: Option<_>| {
        let path = part.into_iter().flat_map(|part| trace.addresses.path(part));
        let mut frames: Vec<String> = path.map(|frame| format!(" {frame:x}")).collect();
        frames.reverse();
        frames.concat()
    };
    of(stack.user) + &of(stack.kernel)
}

/// `41 of a.exe: 100 bytes of System.String: root ... leaf`.
fn texts(trace: &Trace) -> Vec<String> {
    let text = |one: &Stacked<etwprof::trace::ChosenEvent>| {
        let runner = trace.runner(one.runner);
        let process = trace.process(runner.process).map_or("?", |process| process.label());
        let name = one.fact.of.map(|of| of.name).and_then(|name| trace.kept.types.get(name as usize));
        let name = name.map(|name| format!(" of {name}")).unwrap_or_default();
        format!(
            "{} of {process}: {} bytes{name}:{}",
            runner.tid as i32,
            one.fact.bytes,
            frames(trace, one.stack)
        )
    };
    trace.kept.events.iter().map(text).collect()
}

fn tick(bytes: u64) -> crate::synth::Event {
    clr::by_thread(clr::allocation_tick(40, 3, bytes, "System.String"), 40, 41)
}

#[test]
fn the_runtime_walks_a_stack_for_the_event_before_it_on_the_thread() {
    let walk = |thread, frames: &[u64]| clr::by_thread(clr::stack_walk(40, frames), 40, thread);
    let etl = machine()
        .event(0, T, tick(100))
        // Another thread's comes between.
        .event(1, T + 1, walk(42, &[0x7000]))
        .event(0, T + 2, walk(41, &[0x1000, 0x2000]))
        // The second of the same event is nobody's.
        .event(0, T + 3, walk(41, &[0x9000]))
        // A chosen event without a stack, and another whose stack this is.
        .event(0, T + 10, tick(200))
        .event(0, T + 11, clr::by_thread(clr::gc_start(40, 1, 0, 0, 0), 40, 41))
        .event(0, T + 12, walk(41, &[0x3000]))
        .event(0, T + 20, tick(300))
        .event(0, T + 21, walk(41, &[0x4000]));
    let expected = [
        "41 of a.exe: 100 bytes of System.String: 2000 1000",
        "41 of a.exe: 200 bytes of System.String:",
        "41 of a.exe: 300 bytes of System.String: 4000",
    ];
    assert_eq!(made(etl, &EventSet::allocations()), expected);
}

#[test]
fn an_event_may_carry_its_stack() {
    let etl = machine()
        .event(0, T, tick(100).item(Item::stack64(0, &[0x1000, 0x2000])))
        .event(0, T + 5, tick(200).item(Item::stack64(0, &[K + 1, 0x1000, 0x2000])))
        // Not chosen, nor is its stack.
        .event(
            0,
            T + 9,
            clr::by_thread(clr::gc_start(40, 1, 0, 0, 0), 40, 41).item(Item::stack64(0, &[0x5000])),
        );
    let expected = [
        "41 of a.exe: 100 bytes of System.String: 2000 1000",
        "41 of a.exe: 200 bytes of System.String: 2000 1000 ffff800000000001",
    ];
    assert_eq!(made(etl, &EventSet::allocations()), expected);
}

#[test]
fn the_kernel_records_stacks_of_its_own_events() {
    let mut events = EventSet::default();
    events.insert(EventKey::Classic(PAGE_FAULT, 32), None);
    let etl = machine()
        .event(0, T, page_fault::hard_fault(T - 50, 0x8000, 41, 4096))
        .event(0, T + 2, stack_walk::full(T, 40, 41, &[K]))
        .event(0, T + 4, stack_walk::full(T, 40, 41, &[0x1000, 0x2000]))
        .event(0, T + 20, Sample::new(0x1100, 41))
        .event(0, T + 22, stack_walk::full(T + 20, 40, 41, &[0x1100, 0x2000]))
        .event(0, T + 30, page_fault::hard_fault(T, 0x9000, 51, 4096));
    let expected = ["41 of a.exe: 0 bytes: 2000 1000 ffff800000000000", "51 of b.exe: 0 bytes:"];
    assert_eq!(made(etl.clone(), &events), expected);
    assert_eq!(made(etl, &EventSet::default()), [""; 0]);
}

#[test]
fn events_of_tracelogging_go_by_their_names() {
    let event = |name: &'static str| tick(1).item(Item::schema(name, &[]));
    let etl = machine().event(0, T, event("hello")).event(0, T + 1, event("there"));
    let mut events = EventSet::default();
    events.insert(EventKey::Manifest(CLR, 10), Some("there"));
    assert_eq!(made(etl, &events).len(), 1);
}

/// 52,698 allocations, counted by an independent reader, and the 153 hard faults that TraceEvent lists. That each has a stack is
/// what we see: nobody else says.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn events_of_real_recordings_have_their_stacks() {
    let recording = Recording::open(&[data::file("etl/perfview/PerfViewData.etl")]).unwrap();
    let trace = read(&recording, &EventSet::allocations());
    assert_eq!(trace.kept.events.len(), 52_698);
    let bare = |trace: &Trace| {
        let none = |one: &&Stacked<_>| trace.stack(one.stack).parts() == etwprof::trace::Parts::None;
        trace.kept.events.iter().filter(none).count()
    };
    assert_eq!(bare(&trace), 0);
    let recording = Recording::open(&[data::file("etl/perfview/net.4.5.2.x64.etl")]).unwrap();
    let mut events = EventSet::default();
    events.insert(EventKey::Classic(PAGE_FAULT, 32), None);
    let trace = read(&recording, &events);
    assert_eq!((trace.kept.events.len(), bare(&trace)), (153, 0));
}
