//! What the join keeps of processes that nobody wants.

use super::{FEW, Join, Ticks};
use crate::event::{Event, Kind, Pointer};
use crate::events::kernel::{Frames, Sample, StackWalk};
use crate::guids::PERF_INFO;
use crate::origin::KernelSpace;
use crate::trace::processes::Threads;

fn event(time: i64) -> Event<'static> {
    Event {
        time: Ticks(time),
        provider: PERF_INFO,
        kind: Kind::Classic,
        opcode: 46,
        version: 2,
        pointer: Pointer::Bits64,
        processor: 0,
        pid: 0,
        tid: 0,
        items: &[],
        payload: &[],
    }
}

#[test]
fn unwanted_samples_and_idle_ones_take_no_memory() {
    let mut join = Join::new(KernelSpace::default());
    join.keep_only([40]);
    let threads = Threads::new(0);
    let frames = |address: u64| address.to_le_bytes();
    let mut most = 0;
    for number in 1..=4 * FEW as i64 {
        let (time, address) = (10 * number, 0x1000 + number as u64);
        let mut sample = Sample { address, tid: 41, count: 1, in_dpc: false, in_isr: false, priority: 8 };
        // Of ten samples one is wanted, and five are idle.
        let pid = match number % 10 {
            0 => 40,
            1..=4 => 50,
            _ => 0,
        };
        sample.tid = if pid == 0 { 0 } else { pid + 1 };
        join.sample(sample, Pointer::Bits64, (Ticks(time), 0), 0);
        let (event_time, tid) = (Ticks(time), sample.tid);
        let bytes = frames(address);
        let frames = Frames::new(&bytes, Pointer::Bits64);
        join.stack_walk(&StackWalk::Stack { event_time, pid, tid, frames }, &event(time + 2));
        if join.is_sweep_due() {
            join.sweep(Ticks(time), &threads, &mut []);
        }
        most = most.max(join.samples.len());
    }
    join.sweep(Ticks(i64::MAX), &threads, &mut []);
    let wanted = 4 * FEW / 10;
    assert_eq!(join.samples.len(), wanted);
    assert_eq!(join.stacks.len(), wanted, "no other stack is stored");
    assert!(join.unwanted >= 4 * wanted as u64 && join.orphans == 0);
    assert!(most <= FEW, "{most} at once");
}
