//! Samples become one where a recording may take little memory, and what they count stays. That nothing else changes,
//! `reading` asserts of every recording of the tests.

use std::num::NonZeroUsize;

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::event::NO_ID;
use etwprof::trace::{ANY_PROCESSOR, Builder, Trace};

use crate::support::reading;
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo;
use crate::synth::{Etl, Image, Process, START, Sample, clr, stack_walk};

const MS: i64 = 10_000;
const BASE: u64 = 0x7ff6_0000_0000;
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// So many samples of thread 41, a millisecond apart, the first at `from` ms.
fn busy(etl: Etl, from: i64, count: i64) -> Etl {
    let at = |number: i64| START + (from + number) * MS;
    (0..count).fold(etl, |etl, number| etl.sampled(0, at(number), 40, 41, &[BASE + 0x10, BASE + 0x20]))
}

/// The trace of a recording whose samples may take so much memory, after it was read in every other way.
#[track_caller]
fn held(etl: Etl, memory: u64) -> Trace {
    let recording = Recording::from_bytes("held.etl", etl.finish()).unwrap();
    reading::every_way(&recording, |_| ());
    let hold = |builder: &mut Builder| builder.hold(memory);
    analysis::trace_with(&recording, NonZeroUsize::new(2), &mut |_| (), hold).value
}

fn sizes(trace: &Trace) -> Vec<u8> {
    trace.samples.iter().map(|sample| sample.count).collect()
}

#[test]
fn samples_of_one_stack_are_one() {
    let trace = held(busy(machine(), 10, 1_000), 0);
    assert_eq!(sizes(&trace), [255, 255, 255, 235]);
    assert_eq!(trace.samples.iter().map(|sample| sample.weight).sum::<u32>(), 1_000 * 10_000);
    assert_eq!(trace.sample_count(), 1_000);
    // The first time of each.
    let times: Vec<i64> = trace.samples.iter().map(|sample| (sample.time.0 - START) / MS).collect();
    assert_eq!(times, [10, 265, 520, 775]);
}

#[test]
fn times_get_no_coarser_than_they_must() {
    // The last 2,000 may still get stacks.
    let trace = held(busy(machine(), 0, 10_000), 6_000 * 128);
    assert_eq!(trace.merged.unwrap().within_seconds, Some(0.01));
    assert_eq!(trace.sample_count(), 10_000);
    let trace = held(busy(machine(), 0, 10_000), 1_000 * 128);
    assert_eq!(trace.merged.unwrap().within_seconds, Some(0.1));
    assert!(trace.merged.unwrap().is_too_much, "because of the last 2,000");
    let whole = held(busy(machine(), 0, 10_000), 10_001 * 128);
    assert_eq!((whole.merged, whole.samples.len()), (None, 10_000));
}

#[test]
fn different_stacks_cannot_be_one() {
    let etl = (0..1_000).fold(machine(), |etl, number| {
        etl.sampled(0, START + (10 + number) * MS, 40, 41, &[BASE + number as u64])
    });
    let trace = held(etl, 1);
    assert_eq!((trace.samples.len(), trace.merged.unwrap().is_too_much), (1_000, true));
}

/// The same addresses are other code later.
#[test]
fn another_image_at_the_same_base() {
    let load = |name| Image::load(40, BASE, 0x1000, name);
    let unload = |name| Image::unload(40, BASE, 0x1000, name);
    let at = |ms: i64| START + ms * MS;
    let etl = busy(machine(), 10, 100).event(0, at(120), load("x.dll"));
    let etl = busy(etl, 130, 100).event(0, at(240), unload("x.dll"));
    let etl = busy(etl, 250, 100).event(0, at(360), load("y.dll"));
    // The unload was lost.
    let etl = busy(etl, 370, 100).event(0, at(480), load("z.dll"));
    assert_eq!(sizes(&held(busy(etl, 490, 100), 0)), [100; 5]);
}

#[test]
fn another_driver_at_the_same_base() {
    let at = |ms: i64| START + ms * MS;
    let busy = |etl: Etl, from: i64| {
        let samples = from..from + 100;
        samples.fold(etl, |etl, ms| etl.sampled(0, at(ms), 40, 41, &[KERNEL + 0x10, BASE]))
    };
    let etl = busy(machine(), 10).event(0, at(120), Image::load(0, KERNEL, 0x1000, "x.sys"));
    let etl = busy(etl, 130).event(0, at(240), Image::unload(0, KERNEL, 0x1000, "x.sys"));
    assert_eq!(sizes(&held(busy(etl, 250), 0)), [100; 3]);
}

#[test]
fn another_method_in_freed_memory() {
    let method = |name| ["T", name, "void ()"];
    let at = |ms: i64| START + ms * MS;
    let etl = machine().event(0, at(1), clr::Method::load(40, BASE, 0x80, method("A")).id(1));
    let etl = busy(etl, 10, 100);
    let etl = etl.event(0, at(120), clr::Method::unload(40, BASE, 0x80, method("A")).id(1)).event(
        0,
        at(121),
        clr::Method::load(40, BASE, 0x80, method("B")).id(2),
    );
    assert_eq!(sizes(&held(busy(etl, 130, 100), 0)), [100, 100]);
}

#[test]
fn ids_are_used_again() {
    let at = |ms: i64| START + ms * MS;
    let etl = busy(machine(), 10, 100).event(0, at(120), Process::end(40, "a.exe"));
    let etl = etl.event(0, at(130), Process::start(40, "new.exe"));
    // Long enough for searches that find the first ones settled.
    let trace = held(busy(etl, 3_000, 3_000), 0);
    assert_eq!(sizes(&trace)[..2], [100, 255]);
    assert_eq!(trace.sample_count(), 3_100);
}

/// Two threads on two processors, each 100 times a second for a minute.
#[test]
fn threads_and_processors_go_last() {
    let etl = (0..12_000).fold(machine(), |etl, number| {
        let (cpu, ms) = ((number % 2) as u16, 10 + 5 * number);
        etl.sampled(cpu, START + ms * MS, 40, 41 + u32::from(cpu), &[BASE + 0x10 + number as u64 % 100])
    });
    let recording = Recording::from_bytes("threads.etl", etl.finish()).unwrap();
    let held = |samples: u64| {
        let hold = |builder: &mut Builder| builder.hold(samples * 128);
        reading::every_way(&recording, hold);
        analysis::trace_with(&recording, NonZeroUsize::new(2), &mut |_| (), hold).value
    };
    let threads = |trace: &Trace| {
        let mut threads: Vec<u32> = trace.runners.iter().map(|runner| runner.tid).collect();
        threads.sort_unstable();
        threads
    };
    let whole = held(2_000);
    assert_eq!((threads(&whole), whole.merged.unwrap().stacks_only), (vec![41, 42], false));
    assert!(whole.samples.iter().all(|sample| sample.processor < 2));
    let stacks = held(100);
    assert_eq!((threads(&stacks), stacks.merged.unwrap().stacks_only), (vec![NO_ID], true));
    assert_eq!((stacks.samples.len(), stacks.sample_count()), (100, 12_000));
    assert!(stacks.samples.iter().all(|sample| sample.processor == ANY_PROCESSOR && sample.count == 120));
}

#[test]
fn another_interval_is_in_force() {
    let at = |ms: i64| START + ms * MS;
    let etl = busy(machine(), 10, 100).event(0, at(120), perfinfo::set_interval(0, 10_000, 20_000));
    let trace = held(busy(etl, 130, 100), 0);
    let weights: Vec<u32> = trace.samples.iter().map(|sample| sample.weight).collect();
    assert_eq!(weights, [1_000_000, 2_000_000]);
}

/// Their weights would not fit in one: half a minute each.
#[test]
fn long_intervals_are_not_too_much() {
    let told = perfinfo::set_interval(0, 300_000_000, 300_000_000);
    let trace = held(busy(machine().event(0, START + 5, told), 10, 5_000), 0);
    assert_eq!(trace.samples.iter().map(|sample| u64::from(sample.weight)).sum::<u64>(), 5_000 * 300_000_000);
    assert!(trace.samples.len() < 500);
}

/// Their user parts come when the thread leaves the kernel, long after others were searched.
#[test]
fn samples_that_await_their_stacks_stay() {
    let at = |ms: i64| START + ms * MS;
    let mut etl = machine();
    for ms in 10..5_000 {
        etl = etl.event(0, at(ms), Sample::new(KERNEL + 0x10, 41)).event(
            0,
            at(ms) + 2,
            stack_walk::full(at(ms), 40, 41, &[KERNEL + 0x10]),
        );
    }
    let etl = etl.event(0, at(5_001), stack_walk::full(at(4_999), 40, 41, &[BASE]));
    let trace = held(etl, 0);
    assert_eq!(trace.lost.orphan_stacks, 0);
    assert!(trace.samples.iter().all(|sample| trace.stack(sample.stack).user.is_some()));
    assert_eq!(trace.samples.len(), 4_990_usize.div_ceil(255));
}

/// A key is defined at the end.
#[test]
fn stacks_by_key_are_one_once_they_are_known() {
    let at = |ms: i64| START + ms * MS;
    let mut etl = machine();
    for ms in 10..1_010 {
        etl = etl.event(0, at(ms), Sample::new(BASE, 41)).event(
            0,
            at(ms) + 2,
            stack_walk::user_key(at(ms), 40, 41, ms as u64 % 2),
        );
    }
    let etl = etl.event(0, at(2_000), stack_walk::key_delete(0, &[BASE, BASE + 1])).event(
        0,
        at(2_000),
        stack_walk::key_delete(1, &[BASE, BASE + 2]),
    );
    assert_eq!(sizes(&held(etl, 0)), [255, 255, 245, 245]);
}
