//! The states of threads in time: by hand for what may happen, and against an independent count for a real recording.

use std::sync::Arc;

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::trace::waits::{ChainEnd, State, ThreadTimes, Waits};
use etwprof::trace::{Keep, Trace};
use proptest::prelude::*;

use crate::support::data;
use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::thread::{CSwitch, Thread, ready};
use crate::synth::{Buffer, Etl, Event, IntoEvent, START, Sample};

/// A moment of the recordings made here.
const T: i64 = START + 1_000;

const WAITING: u8 = 5;
const READY: u8 = 1;
const STILL_RUNNING: u8 = 2;
const ENDED: u8 = 4;
const REQUEST: u8 = 6;
const MUTEX: u8 = 29;
const QUANTUM_END: u8 = 30;
const PREEMPTED: u8 = 32;
const YIELD: u8 = 33;
const FAST_MUTEX: u8 = 34;

fn keep() -> Keep {
    Keep { switches: true, readied: true, ..Keep::default() }
}

fn read(etl: Etl) -> (Arc<Trace>, Waits) {
    let recording = Recording::from_bytes("waits.etl", etl.finish()).unwrap();
    let trace = every_way(&recording, |builder| builder.keep(keep())).value;
    let waits = Waits::new(&trace).expect("switches");
    check(&waits);
    (Arc::new(trace), waits)
}

/// What holds for any recording.
fn check(waits: &Waits) {
    let (first, last) = waits.window;
    for thread in &waits.threads {
        assert!(first <= thread.start && thread.start <= thread.end && thread.end <= last, "{thread:?}");
        let mut at = thread.start;
        for span in &thread.spans {
            assert!(span.start == at && span.start < span.end, "{thread:?}");
            at = span.end;
        }
        assert_eq!(at, thread.end, "{thread:?}");
    }
}

fn thread(waits: &Waits, tid: u32) -> &ThreadTimes {
    let mut all = waits.threads.iter().filter(|thread| thread.tid == tid);
    let found = all.next().expect("a thread");
    assert!(all.next().is_none(), "several threads {tid}");
    found
}

/// `R100-150 b150-170 r170-200`: the states of a thread, from `T` on.
fn states(waits: &Waits, tid: u32) -> String {
    text(thread(waits, tid))
}

fn text(thread: &ThreadTimes) -> String {
    let text = |span: &etwprof::trace::waits::Span| {
        let state = match span.state {
            State::Running => 'R',
            State::Ready => 'r',
            State::Blocked => 'b',
            State::Unknown => '?',
        };
        format!("{state}{}-{}", span.start.0 - T, span.end.0 - T)
    };
    thread.spans.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// A switch on a processor: the old thread leaves it waiting.
fn switch(etl: Etl, cpu: u16, at: i64, old: u32, new: u32) -> Etl {
    leaving(etl, cpu, at, (old, REQUEST, WAITING), new)
}

fn leaving(etl: Etl, cpu: u16, at: i64, (old, reason, state): (u32, u8, u8), new: u32) -> Etl {
    etl.event(cpu, T + at, CSwitch::new(old, new).reason(reason, state))
}

/// `by` makes a thread ready.
fn readied(etl: Etl, cpu: u16, at: i64, tid: u32, by: u32) -> Etl {
    etl.event(cpu, T + at, ready(tid, false).by(40, by))
}

#[test]
fn a_thread_runs_blocks_is_made_ready_and_runs() {
    let etl = switch(machine(), 0, 0, 0, 41);
    let etl = switch(etl, 0, 100, 41, 0);
    let etl = readied(etl, 1, 150, 41, 51);
    let etl = switch(etl, 0, 170, 0, 41);
    let (trace, waits) = read(switch(etl, 0, 200, 41, 0));
    assert_eq!(states(&waits, 41), "R0-100 b100-150 r150-170 R170-200");
    assert_eq!(thread(&waits, 41).switches, 2);
    let wait = thread(&waits, 41).waits().next().unwrap();
    assert_eq!((wait.ticks(), wait.ready_ticks(), wait.end().0 - T), (70, 20, 170));
    assert_eq!(wait.blocked.reason(&trace.kept).unwrap().name(), Some("UserRequest"));
    let by = wait.blocked.readied_by(&trace.kept).unwrap();
    assert_eq!(trace.runner(by.runner).tid, 51);
    // Both spans end with the switch by which it runs again.
    let times: Vec<_> = thread(&waits, 41)
        .spans
        .iter()
        .map(|span| span.switch_in(&trace.kept).map(|one| one.time.0 - T))
        .collect();
    assert_eq!(times, [None, Some(170), Some(170), None]);
    assert_eq!(waits.contradictions, 0);
}

#[test]
fn the_ends_of_a_recording() {
    // 41 runs on a processor from the first switch of another one on; 51 is switched in at the very last event.
    let etl = switch(machine(), 1, 0, 42, 0);
    let etl = readied(etl, 1, 30, 52, 41);
    let etl = switch(etl, 0, 50, 41, 52);
    let (_, waits) = read(switch(etl, 0, 90, 52, 51));
    assert_eq!(states(&waits, 41), "R0-50 b50-90", "it ran before its first switch");
    assert_eq!(states(&waits, 52), "b0-30 r30-50 R50-90");
    assert_eq!(states(&waits, 51), "r0-90", "in a recording with ready events it must have been ready");
    assert_eq!(states(&waits, 42), "b0-90");
    assert_eq!(states(&waits, 5), "b0-90", "System's thread never ran");
}

#[test]
fn without_ready_events_nobody_is_ready_but_who_leaves_ready() {
    let etl = switch(machine(), 0, 0, 0, 41);
    let etl = leaving(etl, 0, 10, (41, PREEMPTED, READY), 51);
    let etl = switch(etl, 0, 30, 51, 41);
    let (_, waits) = read(switch(etl, 0, 40, 41, 51));
    assert_eq!(states(&waits, 41), "R0-10 r10-30 R30-40");
    assert_eq!(states(&waits, 51), "b0-10 R10-30 b30-40");
    assert!(!waits.has_ready_events);
}

#[test]
fn a_thread_that_is_pre_empted_before_its_state_changes_is_ready() {
    let of_41 = |reason| {
        let etl = switch(machine(), 0, 0, 0, 41);
        let etl = leaving(etl, 0, 10, (41, reason, STILL_RUNNING), 51);
        let (_, waits) = read(switch(switch(etl, 0, 30, 51, 41), 0, 40, 41, 0));
        states(&waits, 41)
    };
    for reason in QUANTUM_END..=YIELD {
        assert_eq!(of_41(reason), "R0-10 r10-30 R30-40", "{reason}");
    }
    for reason in [REQUEST, MUTEX, FAST_MUTEX] {
        assert_eq!(of_41(reason), "R0-10 b10-30 R30-40", "{reason}");
    }
}

#[test]
fn a_thread_that_never_leaves_its_processor_shows_in_samples() {
    let etl = switch(machine(), 0, 0, 0, 41).event(3, T + 20, Sample::new(0xa, 52));
    let (_, waits) = read(switch(etl, 0, 40, 41, 0));
    assert_eq!((states(&waits, 52), states(&waits, 51)), ("R0-40".into(), "b0-40".into()));
}

#[test]
fn a_thread_is_made_ready_on_its_way_out() {
    let etl = switch(machine(), 0, 0, 0, 41);
    let etl = readied(etl, 1, 99, 41, 51);
    let etl = switch(etl, 0, 100, 41, 0);
    let (trace, waits) = read(switch(etl, 0, 130, 0, 41));
    assert_eq!(states(&waits, 41), "R0-100 r100-130");
    let by = thread(&waits, 41).spans[1].readied_by(&trace.kept).unwrap();
    assert_eq!(trace.runner(by.runner).tid, 51);
}

#[test]
fn threads_begin_and_end_and_ids_are_used_again() {
    let etl = switch(machine(), 0, 0, 41, 42).event(0, T + 10, Thread::start(40, 43));
    let etl = readied(etl, 0, 20, 43, 42);
    let etl = switch(etl, 0, 30, 42, 43).event(0, T + 55, Thread::end(40, 43));
    let etl = leaving(etl, 0, 60, (43, REQUEST, ENDED), 42);
    // Another process gets the id.
    let etl = etl.event(0, T + 70, Thread::start(50, 43));
    let etl = readied(etl, 0, 75, 43, 42);
    let (trace, waits) = read(switch(etl, 0, 80, 42, 43));
    let named: Vec<_> = waits.threads.iter().filter(|thread| thread.tid == 43).collect();
    let name = |thread: &ThreadTimes| trace.process(thread.process).unwrap().name.clone();
    let named: Vec<_> = named.iter().map(|thread| format!("{}: {}", name(thread), text(thread))).collect();
    assert_eq!(named, ["a.exe: b10-20 r20-30 R30-55", "b.exe: b70-75 r75-80"]);
}

#[test]
fn idle_threads_of_several_processors_are_no_thread() {
    let etl = switch(switch(machine(), 0, 0, 0, 41), 1, 0, 51, 0);
    let etl = switch(switch(etl, 0, 10, 41, 0), 1, 10, 0, 41);
    let (_, waits) = read(switch(switch(etl, 0, 20, 0, 51), 1, 20, 41, 0));
    assert!(waits.threads.iter().all(|thread| thread.tid != 0));
    assert_eq!((states(&waits, 41), waits.contradictions), ("R0-20".replace("R0-20", "R0-10 R10-20"), 0));
}

#[test]
fn sixty_four_processors_and_threads_that_no_record_names() {
    let mut etl = Etl::new().cpus(64);
    for cpu in 0..64 {
        etl = switch(etl, cpu, i64::from(cpu), 0, 1_000 + 4 * u32::from(cpu));
    }
    for cpu in 0..64 {
        etl = switch(etl, cpu, 100 + i64::from(cpu), 1_000 + 4 * u32::from(cpu), 0);
    }
    let (_, waits) = read(etl);
    assert_eq!(waits.threads.len(), 64);
    for (cpu, thread) in waits.threads.iter().enumerate() {
        assert_eq!(thread.ticks(State::Running), 100, "{thread:?}");
        assert_eq!(thread.spans[usize::from(cpu > 0)].processor, Some(cpu as u16));
    }
}

#[test]
fn what_does_not_fit_is_unknown() {
    // Between the two switches of processor 0, 41 went and 42 came.
    let etl = switch(switch(machine(), 1, 0, 51, 0), 0, 10, 0, 41);
    let etl = switch(etl, 0, 50, 42, 0);
    let (_, waits) = read(switch(etl, 0, 60, 0, 41));
    assert_eq!(states(&waits, 41), "b0-10 ?10-50 b50-60");
    assert_eq!(states(&waits, 42), "?0-50 b50-60");
    assert_eq!(waits.contradictions, 1);
}

/// An event of a processor.
type At = (u16, i64, Event);

/// A file of parts; a buffer is missing between each and the next.
fn with_gaps(parts: Vec<Vec<At>>) -> Etl {
    let mut etl = machine();
    // The events of the machine have filled the first buffer.
    let mut sequence = 2;
    for part in parts {
        for cpu in 0..4 {
            let of_cpu = part.iter().filter(|(of, ..)| *of == cpu);
            let buffer =
                of_cpu.fold(Buffer::new(cpu), |buffer, (_, at, event)| buffer.event(T + at, event.clone()));
            etl = etl.buffer(buffer.sequence(sequence));
            sequence += 1;
        }
        sequence += 1;
    }
    etl
}

#[test]
fn a_missing_buffer_is_a_gap() {
    let switch = |cpu: u16, at: i64, old, new| (cpu, at, CSwitch::new(old, new).into());
    let first = vec![switch(0, 0, 0, 41), switch(1, 5, 0, 51), switch(0, 10, 41, 42), switch(1, 20, 51, 5)];
    let second =
        vec![switch(1, 80, 5, 51), switch(0, 90, 52, 0), switch(1, 100, 51, 0), switch(0, 110, 0, 42)];
    let (trace, waits) = read(with_gaps(vec![first, second]));
    assert_eq!(trace.lost.sequence_gaps, 1);
    // Of processor 0 the last switch before it is at 10, the first after it at 90.
    assert_eq!(states(&waits, 41), "R0-10 ?10-90 b90-110");
    assert_eq!(states(&waits, 42), "b0-10 ?10-90 b90-110");
    assert_eq!(states(&waits, 52), "b0-10 ?10-90 b90-110");
    // Of processor 1 they are at 20 and at 80: the missing buffer may be of any.
    assert_eq!(states(&waits, 51), "b0-5 R5-20 ?20-80 R80-100 b100-110");
    assert_eq!(states(&waits, 5), "b0-10 ?10-90 b90-110");
    assert_eq!(waits.contradictions, 0);
}

fn chain(trace: &Trace, waits: &Waits, tid: u32) -> (Vec<String>, ChainEnd, i64) {
    let wait = thread(waits, tid).waits().max_by_key(|wait| wait.ticks()).unwrap();
    let chain = waits.chain(trace, &wait);
    let mut at = wait.blocked.end;
    for link in &chain.links {
        assert!(link.end == at && link.start < link.end, "{chain:?}");
        at = link.start;
    }
    assert_eq!(at, chain.since);
    let links = chain.links.iter().map(|link| {
        let tid = waits.threads[link.thread].tid;
        format!("{tid} {:?} {}-{}", link.state, link.start.0 - T, link.end.0 - T)
    });
    (links.collect(), chain.end, chain.since.0 - T)
}

/// 41 waits for 42, which waits for 51, which waits for 52.
fn three_wakers(etl: Etl, last: impl FnOnce(Etl) -> Etl) -> Etl {
    let etl = switch(switch(switch(etl, 0, 0, 41, 0), 1, 0, 42, 0), 2, 0, 51, 0);
    let etl = switch(switch(etl, 0, 10, 0, 41), 0, 20, 41, 0);
    let etl = last(etl);
    let etl = readied(etl, 3, 50, 51, 52);
    let etl = readied(switch(etl, 2, 55, 0, 51), 2, 60, 42, 51);
    let etl = readied(switch(etl, 1, 65, 0, 42), 1, 70, 41, 42);
    switch(switch(switch(etl, 0, 80, 0, 41), 0, 90, 41, 0), 3, 90, 52, 0)
}

#[test]
fn a_chain_of_three_wakers_fills_a_wait() {
    let (trace, waits) = read(three_wakers(machine(), |etl| etl));
    let (links, end, since) = chain(&trace, &waits, 41);
    assert_eq!(
        links,
        ["42 Running 65-70", "42 Ready 60-65", "51 Running 55-60", "51 Ready 50-55", "52 Running 20-50"]
    );
    assert_eq!((end, since), (ChainEnd::Filled, 20));
}

#[test]
fn a_chain_ends_at_an_interrupt_and_where_no_event_says_more() {
    let by_dpc = |etl: Etl| {
        let etl = switch(etl, 3, 25, 52, 0).event(3, T + 40, ready(52, true));
        switch(etl, 3, 45, 0, 52)
    };
    let (trace, waits) = read(three_wakers(machine(), by_dpc));
    let (links, end, since) = chain(&trace, &waits, 41);
    assert_eq!(links.last().unwrap(), "52 Ready 40-45");
    assert_eq!((end, since), (ChainEnd::Interrupt, 40));

    let silent = |etl: Etl| switch(switch(etl, 3, 25, 52, 0), 3, 45, 0, 52);
    let (trace, waits) = read(three_wakers(machine(), silent));
    assert_eq!(chain(&trace, &waits, 41).1, ChainEnd::NoEvent);
}

#[test]
fn a_cycle_of_wakers_ends() {
    // At one tick each makes the other ready, while both are blocked.
    let etl = switch(switch(machine(), 0, 0, 41, 0), 1, 0, 42, 0);
    let etl = readied(readied(etl, 2, 50, 41, 42), 2, 50, 42, 41);
    let (trace, waits) = read(switch(switch(etl, 0, 60, 0, 41), 1, 60, 0, 42));
    let (links, end, _) = chain(&trace, &waits, 41);
    assert_eq!((links, end), (vec!["42 Unknown 0-50".to_owned()], ChainEnd::Unknown));
}

#[test]
fn the_waker_is_whoever_runs_there_where_the_record_names_nobody() {
    let etl = switch(switch(machine(), 0, 0, 41, 0), 1, 0, 0, 51);
    let etl = etl.event(1, T + 30, ready(41, false));
    let (trace, waits) = read(switch(etl, 0, 40, 0, 41));
    assert_eq!(chain(&trace, &waits, 41).0, ["51 Running 0-30"]);
}

proptest! {
    /// Whatever the events say, in whatever order, with buffers missing: every thread has one state at each moment.
    #[test]
    fn states_cover_every_life(
        steps in prop::collection::vec((0..4u16, 0..8u32, 0..8u32, 0..12i64, 0..10u8), 1..80)
    ) {
        let tid = |number: u32| [0, 41, 42, 51, 52, 43, 44, 900][number as usize];
        let (mut parts, mut time): (Vec<Vec<At>>, i64) = (vec![Vec::new()], 0);
        for (cpu, old, new, later, what) in steps {
            time += later;
            let (old, new) = (tid(old), tid(new));
            let event = match what {
                0..=3 => CSwitch::new(old, new).into(),
                4 => CSwitch::new(old, new).reason(PREEMPTED, READY).into(),
                5 => CSwitch::new(old, new).reason(REQUEST, ENDED).into(),
                6 => ready(old, false).by(40, new),
                7 => Thread::start(40, 43).into(),
                8 => Thread::end(40, old.max(41)).into(),
                _ => {
                    parts.push(Vec::new());
                    continue;
                }
            };
            parts.last_mut().unwrap().push((cpu, time, event));
        }
        parts.last_mut().unwrap().push((0, time + 1, CSwitch::new(41, 42).into()));
        let recording = Recording::from_bytes("waits.etl", with_gaps(parts).finish()).unwrap();
        let trace = analysis::trace_with(&recording, None, &mut |_| (), |builder| builder.keep(keep())).value;
        let waits = Waits::new(&trace).unwrap();
        check(&waits);
        for thread in &waits.threads {
            for wait in thread.waits() {
                let chain = waits.chain(&trace, &wait);
                prop_assert!(chain.since >= wait.blocked.start || chain.links.is_empty());
            }
        }
    }
}

/// The sums come from a script that reads the raw records of the file and shares no code with this reader.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_recording_adds_up_to_the_tick() {
    let recording = Recording::open(&[data::packed("etl/xperf/slow-ppt.zip")]).unwrap();
    let trace = every_way(&recording, |builder| builder.keep(keep())).value;
    let waits = Waits::new(&trace).unwrap();
    check(&waits);
    assert_eq!((waits.window.1.0 - waits.window.0.0, waits.contradictions), (36_540_108, 0));
    assert_eq!(waits.threads.len(), 1_003);
    let sum = |state| waits.threads.iter().map(|thread| thread.ticks(state)).sum::<i64>();
    assert_eq!(
        [State::Running, State::Ready, State::Blocked, State::Unknown].map(sum),
        [22_453_838, 39_445, 34_982_885_703, 0]
    );
    assert_eq!(waits.threads.iter().map(|thread| thread.switches).sum::<u64>(), 15_546);
    // PowerPoint's main thread.
    let main = thread(&waits, 3308);
    let of_main = [State::Running, State::Ready, State::Blocked].map(|state| main.ticks(state));
    assert_eq!(of_main, [17_876_712, 2_970, 18_660_426]);
    let mut longest: Vec<_> = main.waits().map(|wait| (wait.ticks(), wait.blocked.start.0)).collect();
    longest.sort_unstable_by_key(|(ticks, _)| std::cmp::Reverse(*ticks));
    let longest: Vec<_> =
        longest.iter().take(3).map(|(ticks, start)| (*ticks, start - waits.window.0.0)).collect();
    assert_eq!(longest, [(4_295_368, 27_511_291), (4_176_241, 2_786_352), (2_782_086, 0)]);
    // Nobody recorded who was made ready by whom.
    assert!(!waits.has_ready_events);
}
