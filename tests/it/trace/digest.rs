//! Buffers that are digested by themselves give the trace that events give one by one.

use etwprof::etl::Recording;
use etwprof::trace::Keep;
use proptest::prelude::*;

use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo;
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::{Etl, Event, START, Sample, Thread, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;
const T: i64 = START + 1_000;

/// What a processor writes at a moment.
#[derive(Clone, Copy, Debug)]
enum Step {
    Idle,
    IdleForTwo,
    IdleDpc,
    KernelSample,
    UserSample,
    Switch,
    Ready,
    Isr,
    /// A DPC that is cut short.
    Malformed,
    Interval,
    Key,
    Define,
    ThreadBegins,
    /// The stack of the event that this processor wrote so many events ago.
    Stack {
        ago: usize,
        kernel: bool,
    },
    Orphan,
}

fn step() -> impl Strategy<Value = (Step, u16, i64)> {
    let stack = (0..4usize, any::<bool>()).prop_map(|(ago, kernel)| Step::Stack { ago, kernel });
    let others = [
        Step::IdleForTwo,
        Step::IdleDpc,
        Step::Switch,
        Step::Ready,
        Step::Isr,
        Step::Malformed,
        Step::Interval,
        Step::Key,
        Step::Define,
        Step::ThreadBegins,
        Step::Orphan,
    ];
    let step = prop_oneof![
        3 => Just(Step::Idle),
        2 => Just(Step::KernelSample),
        2 => Just(Step::UserSample),
        11 => proptest::sample::select(others.to_vec()),
        8 => stack,
    ];
    (step, 0..3u16, 1..40i64)
}

/// The events of the steps. Each is of another moment, as with the clocks that Windows uses; times of one moment are
/// tested in `kept`.
fn recording(steps: Vec<(Step, u16, i64)>) -> Etl {
    let mut etl = machine();
    let mut time = T;
    let mut written: [Vec<(i64, u32)>; 3] = Default::default();
    for (number, (step, cpu, later)) in (1u64..).zip(steps) {
        time += later;
        let busy = 41 + u32::from(cpu % 2);
        let (tid, event): (u32, Event) = match step {
            Step::Idle => (0, Sample::idle(K).into()),
            Step::IdleForTwo => (0, Sample::idle(K).count(2).into()),
            Step::IdleDpc => (0, Sample::idle(K).dpc().into()),
            Step::KernelSample => (busy, Sample::new(K + number, busy).into()),
            Step::UserSample => (busy, Sample::new(number, busy).into()),
            Step::Switch => (busy, CSwitch::new(52, busy).into()),
            Step::Ready => (busy, ready(51, false)),
            Step::Isr => (busy, perfinfo::isr(time - 1, K, 7)),
            Step::Malformed => (busy, Event::kernel(0x0f, 68, 2, |bytes| bytes.u8(1))),
            Step::Interval => (busy, perfinfo::set_interval(0, 10_000, 10_000 + number as u32)),
            Step::Key => (busy, stack_walk::user_key(written_at(&written, cpu, 0).0, 40, busy, number % 3)),
            Step::Define => (busy, stack_walk::key_delete(number % 3, &[0x500 + number])),
            Step::ThreadBegins => (busy, Thread::start(40, busy).into()),
            Step::Stack { ago, kernel } => {
                let (of, tid) = written_at(&written, cpu, ago);
                let pid = if tid == 0 { 0 } else { 40 };
                let leaf = if kernel { K + number % 5 } else { 0x1000 + number % 5 };
                etl = etl.event(cpu, time, stack_walk::full(of, pid, tid, &[leaf, leaf + 1]));
                continue;
            }
            Step::Orphan => (busy, stack_walk::full(time - 1_000_000, 40, busy, &[K])),
        };
        etl = etl.event(cpu, time, event);
        written[usize::from(cpu)].push((time, tid));
    }
    etl
}

fn written_at(written: &[Vec<(i64, u32)>; 3], cpu: u16, ago: usize) -> (i64, u32) {
    written[usize::from(cpu)].iter().rev().nth(ago).copied().unwrap_or((T, 41))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn every_way_gives_the_same_trace(
        steps in prop::collection::vec(step(), 1..120),
        small in any::<bool>(),
        compressed in any::<bool>(),
        keep in prop::sample::select(vec![Keep::default(), Keep::ALL]),
        idle in any::<bool>(),
        only in any::<bool>(),
    ) {
        let mut etl = recording(steps);
        if small {
            etl = etl.buffer_size(512);
        }
        if compressed {
            etl = etl.compressed();
        }
        let recording = Recording::from_bytes("digest.etl", etl.finish()).unwrap();
        every_way(&recording, |builder| {
            builder.keep(keep);
            if idle {
                builder.keep_idle();
            }
            if only {
                builder.keep_only([0, 40]);
            }
        });
    }
}
