//! How samples get their stacks: one test for each rule.
//!
//! Addresses: `0xa` and the like are user code, `K + 1` and the like are the kernel's. Frames are leaf first, as in a
//! file; the expected texts are root first, as one reads a tree.

use std::sync::Arc;

use etwprof::etl::Recording;
use etwprof::profile::{Filter, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::{Builder, Parts, Trace};

use crate::support::reading;
use crate::support::stacks::{machine, stacks, stacks_of};
use crate::synth::{Etl, Event, IntoEvent, Item, START, Sample, guid, kernel, stack_walk};
use kernel::perfinfo;

const K: u64 = 0xffff_8000_0000_0000;
const T: i64 = START + 1_000;

/// A kernel-mode sample with its kernel fragment.
fn in_kernel(etl: Etl, cpu: u16, time: i64, process: u32, thread: u32, address: u64) -> Etl {
    etl.event(cpu, time, Sample::new(address, thread)).event(
        cpu,
        time + 2,
        stack_walk::full(time, process, thread, &[address]),
    )
}

#[test]
fn a_user_sample_has_a_user_fragment() {
    let etl = machine().sampled(0, T, 40, 41, &[0xa, 0xb]);
    assert_eq!(stacks(etl), ["a.exe: 0xb 0xa"]);
}

#[test]
fn a_kernel_sample_has_both_fragments() {
    let etl = machine().sampled(0, T, 40, 41, &[K + 1, K + 2, 0xa, 0xb]);
    assert_eq!(stacks(etl), ["a.exe: 0xb 0xa 0xffff800000000002 0xffff800000000001"]);
}

#[test]
fn a_user_fragment_may_come_late_and_from_another_processor() {
    let late = T + 4_000_000; // 0.4 s
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1).event(1, late - 10, Sample::idle(K)).event(
        3,
        late,
        stack_walk::full(T, 40, 41, &[0xa]),
    );
    assert_eq!(stacks(etl), ["a.exe: 0xa 0xffff800000000001"]);
}

#[test]
fn one_user_fragment_completes_all_that_waits_on_its_thread() {
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1);
    let etl = in_kernel(etl, 0, T + 10, 40, 41, K + 2);
    let etl = in_kernel(etl, 0, T + 20, 40, 42, K + 3); // another thread
    // It names the earlier of the two.
    let etl = etl.event(0, T + 30, stack_walk::full(T, 40, 41, &[0xa]));
    assert_eq!(
        stacks(etl),
        [
            "a.exe: 0xa 0xffff800000000001",
            "a.exe: 0xa 0xffff800000000002",
            "a.exe: [user stack missing] 0xffff800000000003"
        ]
    );
}

#[test]
fn a_user_fragment_of_any_event_completes_what_waits() {
    // The fragment belongs to an image load between the samples, not to a sample.
    let load = crate::synth::Image::load(40, 0x10_0000, 0x1000, "x.dll").by(40, 41);
    let etl = in_kernel(machine().event(0, T - 5, load), 0, T, 40, 41, K + 1).event(
        0,
        T + 30,
        stack_walk::full(T - 5, 40, 41, &[0xa]),
    );
    let trace = reading::synthetic(etl.clone());
    assert_eq!(trace.lost.orphan_stacks, 0);
    assert_eq!(stacks(etl), ["a.exe: 0xa 0xffff800000000001"]);
}

#[test]
fn a_stay_in_the_kernel_ends_with_its_user_fragment() {
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1).event(0, T + 5, stack_walk::full(T, 40, 41, &[0xa]));
    let etl =
        in_kernel(etl, 0, T + 10, 40, 41, K + 2).event(0, T + 15, stack_walk::full(T + 10, 40, 41, &[0xb]));
    assert_eq!(stacks(etl), ["a.exe: 0xa 0xffff800000000001", "a.exe: 0xb 0xffff800000000002"]);
}

#[test]
fn a_user_fragment_for_an_event_before_the_thread_left_the_kernel_is_dropped() {
    let etl = machine()
        .event(0, T, Sample::new(0xc, 41))
        .event(0, T + 10, Sample::new(0xa, 41))
        .event(0, T + 14, stack_walk::full(T + 10, 40, 41, &[0xa]))
        .event(0, T + 20, stack_walk::full(T, 40, 41, &[0xb]));
    assert_eq!(stacks(etl), ["a.exe: [no stack] 0xc", "a.exe: 0xa"]);
}

#[test]
fn system_and_idle_wait_for_no_user_fragment() {
    let etl = in_kernel(machine(), 0, T, 4, 5, K + 1).event(0, T + 9, stack_walk::full(T, 4, 5, &[0xa]));
    // Whatever that user stack is, no kernel part of System takes it as its callers.
    let trace = reading::synthetic(etl);
    let kernel = trace.stack(trace.samples[0].stack).kernel;
    assert_eq!(kernel.map(|k| trace.addresses.path(k).count()), Some(1));
    assert_eq!(stacks(in_kernel(machine(), 0, T, 4, 5, K + 1)), ["System: 0xffff800000000001"]);
}

#[test]
fn interrupts_have_no_user_part() {
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1) // waits
        .event(0, T + 10, Sample::new(K + 2, 41).dpc())
        .event(0, T + 12, stack_walk::full(T + 10, 40, 41, &[K + 2]))
        .event(0, T + 20, Sample::new(K + 3, 41).isr())
        .event(0, T + 22, stack_walk::full(T + 20, 40, 41, &[K + 3]))
        .event(0, T + 24, stack_walk::full(T + 20, 40, 41, &[0xa]));
    assert_eq!(
        stacks(etl),
        [
            "a.exe: 0xa 0xffff800000000001",
            "a.exe: [DPC] 0xffff800000000002",
            "a.exe: [ISR] 0xffff800000000003"
        ]
    );
}

#[test]
fn time_and_thread_name_the_event() {
    let etl = machine()
        .event(0, T, Sample::new(0xa, 41))
        .event(1, T, Sample::new(0xb, 42))
        .event(2, T, Sample::new(0xc, 51))
        .event(3, T + 5, stack_walk::full(T, 50, 51, &[0xc, 0x3]))
        .event(3, T + 6, stack_walk::full(T, 40, 41, &[0xa, 0x1]))
        .event(3, T + 7, stack_walk::full(T, 40, 42, &[0xb, 0x2]));
    assert_eq!(stacks(etl), ["a.exe: 0x1 0xa", "a.exe: 0x2 0xb", "b.exe: 0x3 0xc"]);
}

#[test]
fn idle_threads_of_several_processors_at_one_time() {
    let mut etl = machine();
    for cpu in 0..4 {
        etl = etl.event(cpu, T, Sample::new(K + u64::from(cpu), 0).dpc());
    }
    for cpu in [2, 0, 3, 1] {
        etl = etl.event(cpu, T + 4, stack_walk::full(T, 0, 0, &[K + u64::from(cpu)]));
    }
    let trace = reading::synthetic(etl);
    for (cpu, sample) in (0..).zip(&trace.samples) {
        assert_eq!(sample.processor, cpu);
        let kernel = trace.stack(sample.stack).kernel;
        assert_eq!(kernel.and_then(|stack| trace.addresses.value(stack)), Some(K + u64::from(cpu)));
    }
    assert_eq!(trace.samples.len(), 4);
    assert_eq!(trace.lost.orphan_stacks, 0);
}

#[test]
fn a_stack_without_its_event_is_counted() {
    let etl =
        machine().sampled(0, T, 40, 41, &[0xa]).event(0, T + 9, stack_walk::full(T + 1, 40, 41, &[0xb]));
    assert_eq!(reading::synthetic(etl.clone()).lost.orphan_stacks, 1);
    assert_eq!(stacks(etl), ["a.exe: 0xa"]);
}

#[test]
fn stacks_of_other_events_are_no_orphans() {
    let start = crate::synth::Thread::start(40, 49).by(40, 41);
    let switch = kernel::thread::CSwitch::new(41, 42);
    let fault = Event::kernel(0x02, 32, 2, |bytes| bytes.zeros(40)); // a hard fault has no thread
    let etl = machine()
        .event(0, T, start)
        .event(0, T + 2, stack_walk::full(T, 40, 41, &[K + 1]))
        .event(0, T + 3, stack_walk::full(T, 40, 41, &[0xa]))
        .event(0, T + 10, switch)
        .event(0, T + 12, stack_walk::full(T + 10, 40, 42, &[0xb])) // the thread switched to
        .event(0, T + 20, fault)
        .event(0, T + 22, stack_walk::full(T + 20, 40, 41, &[0xc]));
    assert_eq!(reading::synthetic(etl).lost.orphan_stacks, 0);
}

#[test]
fn identities_and_the_like_own_no_stacks() {
    let id = crate::synth::image_id::image_id(40, 0x10_0000, 0x1000, 1, "x.dll").by(40, 41);
    let etl = machine().event(0, T, id).event(0, T + 3, stack_walk::full(T, 40, 41, &[0xa]));
    assert_eq!(reading::synthetic(etl).lost.orphan_stacks, 1);
}

#[test]
fn a_sample_without_a_stack_is_its_address() {
    let etl = machine().event(0, T, Sample::new(0xa, 41)).event(0, T + 1, Sample::new(0, 41));
    assert_eq!(stacks(etl), ["a.exe: [no stack] 0xa", "a.exe: [no stack] 0x0"]);
}

#[test]
fn the_address_is_not_put_on_top_of_its_stack() {
    // In WOW64's ntdll the sampled address lies a few bytes behind the first frame.
    let etl = machine().event(0, T, Sample::new(0xa4, 41)).event(
        0,
        T + 4,
        stack_walk::full(T, 40, 41, &[0xa0, 0xb]),
    );
    assert_eq!(stacks(etl), ["a.exe: 0xb 0xa0"]);
}

#[test]
fn zeros_at_wow64_borders_are_no_frames() {
    let etl = machine().event(0, T, Sample::new(0xa, 41)).event(
        0,
        T + 4,
        stack_walk::full(T, 40, 41, &[0xa, 0, 0xb, 0xc, 0, 0]),
    );
    assert_eq!(stacks(etl), ["a.exe: 0xc 0xb 0xa"]);
}

#[test]
fn kernel_frames_in_the_middle_of_a_user_fragment_stay() {
    // win32k calls back into user mode.
    let etl = machine().event(0, T, Sample::new(0xa, 41)).event(
        0,
        T + 4,
        stack_walk::full(T, 40, 41, &[0xa, K + 7, 0xb]),
    );
    assert_eq!(stacks(etl), ["a.exe: 0xb 0xffff800000000007 0xa"]);
}

#[test]
fn one_record_may_hold_both_parts() {
    // As ARM64 has it. It is for its own event and completes no other.
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1).event(0, T + 10, Sample::new(K + 2, 41)).event(
        0,
        T + 12,
        stack_walk::full(T + 10, 40, 41, &[K + 2, K + 3, 0xa, 0xb]),
    );
    assert_eq!(
        stacks(etl),
        [
            "a.exe: [user stack missing] 0xffff800000000001",
            "a.exe: 0xb 0xa 0xffff800000000003 0xffff800000000002"
        ]
    );
}

#[test]
fn one_record_with_both_parts_of_an_interrupt_is_its_kernel_part() {
    let etl = machine().event(0, T, Sample::new(K + 2, 41).dpc()).event(
        0,
        T + 2,
        stack_walk::full(T, 40, 41, &[K + 2, K + 3, 0xa, 0xb]),
    );
    assert_eq!(stacks(etl), ["a.exe: [DPC] 0xffff800000000003 0xffff800000000002"]);
}

#[test]
fn a_late_user_stack_of_the_tracing_provider_completes_what_waits() {
    let late = Event::manifest(guid("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"), 18, 0, |bytes| bytes)
        .opcode(24)
        .by(40, 41)
        .item(Item::stack64(0, &[0xa, 0xb]));
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1);
    let etl = in_kernel(etl, 0, T + 10, 40, 41, K + 2).event(1, T + 100, late);
    assert_eq!(stacks(etl), ["a.exe: 0xb 0xa 0xffff800000000001", "a.exe: 0xb 0xa 0xffff800000000002"]);
}

#[test]
fn an_id_used_again_waits_for_nothing_of_its_former_thread() {
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1)
        .event(0, T + 10, crate::synth::Thread::end(40, 41))
        .event(0, T + 20, crate::synth::Thread::start(50, 41).by(50, 51))
        .sampled(0, T + 30, 50, 41, &[0xb]);
    assert_eq!(stacks(etl), ["a.exe: [user stack missing] 0xffff800000000001", "b.exe: 0xb"]);
}

#[test]
fn a_stack_tells_the_process_better_than_the_thread_table() {
    let etl = machine().sampled(0, T, 50, 41, &[0xa]); // 41 is of process 40 by the rundown
    assert_eq!(stacks(etl), ["b.exe: 0xa"]);
}

mod keys {
    use super::*;

    fn reference(etl: Etl, time: i64, kernel: bool, key: u64) -> Etl {
        let address = if kernel { K } else { 0x1 };
        let stack = if kernel { stack_walk::kernel_key } else { stack_walk::user_key };
        let sample = Sample::new(address, 41);
        etl.event(0, time, sample).event(0, time + 2, stack(time, 40, 41, key))
    }

    #[test]
    fn a_key_stands_for_its_next_definition() {
        let etl =
            reference(machine(), T, false, 7).event(1, T + 500, stack_walk::key_rundown(7, &[0xa, 0xb]));
        assert_eq!(stacks(etl), ["a.exe: 0xb 0xa"]);
    }

    #[test]
    fn keys_are_used_again() {
        let etl = reference(machine(), T, false, 7);
        let etl = reference(etl, T + 10, false, 7).event(0, T + 20, stack_walk::key_delete(7, &[0xa]));
        let etl = reference(etl, T + 30, false, 7).event(0, T + 40, stack_walk::key_delete(7, &[0xb]));
        let etl = reference(etl, T + 50, false, 7).event(0, T + 60, stack_walk::key_rundown(7, &[0xc]));
        assert_eq!(stacks(etl), ["a.exe: 0xa", "a.exe: 0xa", "a.exe: 0xb", "a.exe: 0xc"]);
    }

    #[test]
    fn kernel_and_user_keys_are_apart() {
        let etl = reference(machine(), T, true, 7)
            .event(0, T + 4, stack_walk::user_key(T, 40, 41, 7))
            .event(0, T + 10, stack_walk::key_delete(7, &[0xa])) // user, by its last frame
            .event(0, T + 20, stack_walk::key_delete(7, &[K + 1, K + 2]));
        assert_eq!(stacks(etl), ["a.exe: 0xa 0xffff800000000002 0xffff800000000001"]);
    }

    #[test]
    fn a_user_key_completes_what_waits_when_it_is_named() {
        let etl = in_kernel(machine(), 0, T, 40, 41, K + 1).event(
            0,
            T + 10,
            stack_walk::user_key(T - 900, 40, 41, 7),
        );
        let etl = in_kernel(etl, 0, T + 20, 40, 41, K + 2) // after the reference: not completed by it
            .event(0, T + 30, stack_walk::key_delete(7, &[0xa]));
        assert_eq!(
            stacks(etl),
            ["a.exe: 0xa 0xffff800000000001", "a.exe: [user stack missing] 0xffff800000000002"]
        );
    }

    #[test]
    fn a_key_told_only_when_it_was_made() {
        let etl = machine().event(0, T - 10, stack_walk::key_create(7, &[0xa]));
        assert_eq!(stacks(reference(etl, T, false, 7)), ["a.exe: 0xa"]);
    }

    #[test]
    fn a_key_made_anew_is_not_the_old_one() {
        let etl = machine().event(0, T - 10, stack_walk::key_create(7, &[0xa]));
        let etl = reference(etl, T, false, 7).event(0, T + 10, stack_walk::key_delete(7, &[0xa])).event(
            0,
            T + 20,
            stack_walk::key_create(7, &[0xb]),
        );
        assert_eq!(stacks(reference(etl, T + 30, false, 7)), ["a.exe: 0xa", "a.exe: 0xb"]);
    }

    #[test]
    fn a_key_never_told_is_counted_and_leaves_the_address() {
        let etl = reference(machine(), T, false, 7).event(0, T + 9, stack_walk::key_delete(8, &[0xa]));
        assert_eq!(reading::synthetic(etl.clone()).lost.undefined_stack_keys, 1);
        assert_eq!(stacks(etl), ["a.exe: [no stack] 0x1"]);
    }

    #[test]
    fn the_address_stands_for_a_kernel_part_never_told() {
        let etl = reference(machine(), T, true, 7).event(0, T + 4, stack_walk::full(T, 40, 41, &[0xa]));
        assert_eq!(stacks(etl), ["a.exe: 0xa 0xffff800000000000"]);
    }
}

mod weights {
    use super::*;

    fn weights(etl: Etl) -> Vec<u32> {
        reading::synthetic(etl).samples.iter().map(|sample| sample.weight).collect()
    }

    #[test]
    fn a_millisecond_if_nobody_says_otherwise() {
        assert_eq!(weights(machine().event(0, T, Sample::new(0xa, 41))), [10_000]);
    }

    #[test]
    fn the_interval_may_change_in_mid_trace() {
        let sample = Sample::new(0xa, 41);
        let etl = machine()
            .event(0, T - 5, perfinfo::collection_start(1_221))
            .event(0, T, sample)
            .event(0, T + 10, perfinfo::set_interval(0, 1_221, 50_000))
            .event(0, T + 20, sample)
            .event(0, T + 30, perfinfo::set_interval(2, 65_536, 99)) // a counter's, not the timer's
            .event(0, T + 40, sample);
        assert_eq!(weights(etl), [1_221, 50_000, 50_000]);
    }

    #[test]
    fn samples_before_the_rundown_ran_at_its_interval() {
        let sample = Sample::new(0xa, 41);
        let etl = machine().event(0, T, sample).event(0, T + 9, perfinfo::collection_start(2_500));
        assert_eq!(weights(etl), [2_500]);
    }

    #[test]
    fn samples_before_the_first_change_ran_at_the_old_interval() {
        let sample = Sample::new(0xa, 41);
        let etl = machine()
            .event(0, T, sample)
            .event(0, T + 9, perfinfo::set_interval(0, 10_000, 1_250))
            .event(0, T + 20, sample);
        assert_eq!(weights(etl), [10_000, 1_250]);
    }

    #[test]
    fn a_sample_may_stand_for_several_intervals() {
        let sample = Sample::new(0xa, 41);
        let etl = machine().event(0, T, sample.count(3)).event(0, T + 1, sample.count(0));
        assert_eq!(weights(etl), [30_000, 10_000], "version 1 leaves the count 0");
    }
}

#[test]
fn a_32_bit_system_has_its_own_border() {
    let etl = machine().pointer_size(4).sampled(0, T, 40, 41, &[0x8000_0001, 0x7fff_ffff]);
    assert_eq!(stacks(etl), ["a.exe: 0x7fffffff 0x80000001"]);
    let trace =
        reading::synthetic(machine().pointer_size(4).sampled(0, T, 40, 41, &[0x8000_0001, 0x7fff_ffff]));
    assert_eq!(trace.stack(trace.samples[0].stack).parts(), Parts::KernelAndUser);
}

/// The machine says at the session's end, as real ones do, how far user mode reaches.
#[test]
fn a_32_bit_system_may_leave_its_programs_3_gib() {
    let high = 0x9000_0001; // user mode with /3GB
    let with = |config: Event| {
        let etl = machine().pointer_size(4);
        let etl = in_kernel(etl, 0, T, 40, 41, 0xc000_0001)
            .event(0, T + 10, stack_walk::full(T, 40, 41, &[high, 0x7000_0001]))
            .event(0, T + 20, Sample::new(high, 41))
            .event(0, T + 24, stack_walk::full(T + 20, 40, 41, &[high, high + 0x10]));
        reading::synthetic(etl.event(0, T + 900, config))
    };
    let parts = |trace: &Trace| -> Vec<Parts> {
        trace.samples.iter().map(|sample| trace.stack(sample.stack).parts()).collect()
    };
    let trace = with(kernel::system::cpu_config_3gb());
    assert_eq!(parts(&trace), [Parts::KernelAndUser, Parts::User]);
    assert!(trace.is_kernel_address(0xc000_0001) && !trace.is_kernel_address(high));
    let trace = with(kernel::system::cpu_config(2_000, 1, "OLD", 0));
    assert_eq!(parts(&trace), [Parts::Kernel, Parts::Kernel], "without it");
}

/// A coarse clock gives several samples of a thread one time. Every one gets its stack.
#[test]
fn samples_of_one_moment_each_get_a_stack() {
    let sample = |etl: Etl, number: u64| etl.event(0, T, Sample::new(number, 41));
    let stack = |etl: Etl, at: i64, number: u64| {
        etl.event(0, at, stack_walk::full(T, 40, 41, &[number, 0x100 + number]))
    };
    let expected: Vec<String> =
        (1..=5).map(|number: u64| format!("a.exe: {:#x} {number:#x}", 0x100 + number)).collect();
    let in_turns = (1..=5).fold(machine(), |etl, number| stack(sample(etl, number), T, number));
    assert_eq!(stacks(in_turns), expected);
    let all = (1..=5).fold(machine(), sample);
    assert_eq!(stacks((1..=5).fold(all.clone(), |etl, number| stack(etl, T + 1, number))), expected);
    // Found by their addresses.
    assert_eq!(stacks([4, 2, 5, 1, 3].into_iter().fold(all, |etl, number| stack(etl, T, number))), expected);

    // At one address, in order.
    let same = (0..3).fold(machine(), |etl, _| sample(etl, 0xa));
    let etl = (1..=3).fold(same, |etl, caller| etl.event(0, T, stack_walk::full(T, 40, 41, &[0xa, caller])));
    assert_eq!(stacks(etl), ["a.exe: 0x1 0xa", "a.exe: 0x2 0xa", "a.exe: 0x3 0xa"]);

    // By their mode, where the frames come later.
    let etl = machine()
        .event(0, T, Sample::new(0xa, 41))
        .event(0, T, Sample::new(K + 1, 41).dpc())
        .event(0, T, stack_walk::kernel_key(T, 40, 41, 7))
        .event(0, T, stack_walk::user_key(T, 40, 41, 8))
        .event(0, T + 9, stack_walk::key_rundown(7, &[K + 1]))
        .event(0, T + 9, stack_walk::key_rundown(8, &[0xa]));
    assert_eq!(stacks(etl), ["a.exe: 0xa", "a.exe: [DPC] 0xffff800000000001"]);
}

/// Seen in user mode, a thread has left the kernel: the user part of what waited then was lost.
#[test]
fn a_sample_in_user_mode_ends_the_stay_in_the_kernel() {
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1);
    let etl = in_kernel(etl, 1, T + 1, 40, 42, K + 3).event(0, T + 10, Sample::new(0xc, 41));
    let etl = in_kernel(etl, 0, T + 20, 40, 41, K + 2)
        .event(0, T + 30, stack_walk::full(T + 20, 40, 41, &[0xb]))
        .event(1, T + 31, stack_walk::full(T + 1, 40, 42, &[0xa]));
    assert_eq!(
        stacks(etl),
        [
            "a.exe: [user stack missing] 0xffff800000000001",
            "a.exe: 0xa 0xffff800000000003", // another thread
            "a.exe: [no stack] 0xc",
            "a.exe: 0xb 0xffff800000000002"
        ]
    );
    // The stack of that sample completes nothing before it either.
    let etl = in_kernel(machine(), 0, T, 40, 41, K + 1).sampled(0, T + 10, 40, 41, &[0xc, 0xd]);
    assert_eq!(stacks(etl), ["a.exe: [user stack missing] 0xffff800000000001", "a.exe: 0xd 0xc"]);
}

#[test]
fn idle_samples_are_counted_and_not_kept() {
    let etl = machine()
        .event(0, T - 5, perfinfo::collection_start(1_221))
        .event(0, T, Sample::idle(K))
        .event(0, T + 2, stack_walk::full(T, 0, 0, &[K, K + 9]))
        .event(2, T, Sample::idle(K))
        .event(2, T + 2, stack_walk::full(T, 0, 0, &[K, K + 9]))
        .event(0, T + 10, perfinfo::set_interval(0, 1_221, 50_000))
        .event(0, T + 20, Sample::idle(K).count(2))
        .sampled(0, T + 30, 40, 41, &[0xa]);
    let trace = reading::synthetic(etl.clone());
    assert_eq!(trace.samples.len(), 1);
    assert_eq!(trace.samples[0].weight, 50_000);
    assert_eq!(trace.addresses.len(), 1, "no stack of theirs is stored");
    assert_eq!(trace.lost.orphan_stacks, 0);
    assert_eq!((trace.idle.samples, trace.sample_count()), (3, 4));
    assert_eq!(trace.idle.by_processor, [(0, 2), (2, 1)].into());
    assert_eq!(trace.idle.by_weight, [(1_221, 2), (100_000, 1)].into());
    assert_eq!(trace.idle.span.map(|(first, last)| (first.0, last.0)), Some((T, T + 20)));
    assert!(trace.processes.iter().any(|process| process.pid == 0));
    // The processor must agree.
    let orphan = etl.event(1, T + 40, stack_walk::full(T, 0, 0, &[K]));
    assert_eq!(reading::synthetic(orphan).lost.orphan_stacks, 1);
}

/// What a live session does with `--pid`: the same account, but for the memory.
#[test]
fn samples_of_unwanted_processes_are_counted_and_not_kept() {
    let etl = machine()
        .event(0, T, Sample::idle(K))
        .sampled(0, T + 10, 40, 41, &[0xa, 0xb])
        .sampled(0, T + 20, 50, 51, &[K + 1, 0xc])
        .event(0, T + 30, Sample::new(0xd, 52)) // of b.exe by its thread
        .event(0, T + 40, Sample::new(0xe, 42)); // of a.exe
    let recording = Recording::from_bytes("synthetic.etl", etl.finish()).unwrap();
    let read = |pids: Option<[u32; 1]>| {
        let keep = |builder: &mut Builder| pids.map_or((), |pids| builder.keep_only(pids));
        Arc::new(reading::every_way(&recording, keep).value)
    };
    let filter = Filter { pids: vec![40], ..Filter::default() };
    let profile = |trace: &Arc<Trace>| Profile::new(trace, &filter, &Unnamed);
    let (all, only) = (read(None), read(Some([40])));
    assert_eq!((all.samples.len(), only.samples.len(), only.unwanted), (4, 2, 2));
    assert_eq!(profile(&only).balance, profile(&all).balance);
    assert_eq!(profile(&only).balance.filtered_by.process, 2);
    assert_eq!(only.lost, all.lost);
    let kept = ["a.exe: 0xb 0xa", "a.exe: [no stack] 0xe"];
    assert_eq!(stacks_of(&only), kept);
}

#[test]
fn samples_in_any_header() {
    let stack = |time| stack_walk::full(time, 40, 41, &[0xa]);
    let etl = machine()
        .event(0, T, Sample::new(0xa, 41).full())
        .event(0, T + 1, stack(T).full())
        .event(0, T + 10, Sample::new(0xa, 41).compact())
        .event(0, T + 11, stack(T + 10).compact())
        .event(0, T + 20, Sample::new(0xa, 41).by(1, 2))
        .event(0, T + 21, stack(T + 20).by(3, 4));
    assert_eq!(stacks(etl), ["a.exe: 0xa"; 3], "the header's ids are not the sample's");
}
