//! Recordings in which a little is shown often.

use std::sync::Arc;

use etwprof::trace::Trace;

use super::reading;
use crate::synth::{Etl, Process, START, Sample, Thread, stack_walk};

/// Where its code lies, and the kernel's.
pub const CODE: u64 = 0x7ff6_0000_0000;
pub const KERNEL: u64 = 0xFFFF_8000_0000_0000;

/// Samples that all show one user stack, told once by a key.
pub struct Shown {
    pub processes: u32,
    /// In each process.
    pub threads: u32,
    /// Addresses of the one stack.
    pub depth: u64,
    /// Distinct kernel stacks of one address below it; 0 for none.
    pub leaves: u64,
    /// Distinct addresses of a stack of their own above it, in the kernel's half; 0 for none.
    pub tops: u64,
    pub samples: u32,
}

const KEY: u64 = 0x77;
const DEEP_KERNEL: u64 = 0x78;

impl Shown {
    pub fn file(&self) -> Etl {
        let mut etl = Etl::new().cpus(1);
        let pid = |process: u32| 1_000 + 4 * process;
        let tid = |process: u32, thread: u32| 1_000_000 + 4 * (process * self.threads + thread);
        for process in 0..self.processes {
            etl = etl.event(0, START + 1, Process::dc_start(pid(process), "a.exe"));
            for thread in 0..self.threads {
                let (pid, tid) = (pid(process), tid(process, thread));
                etl = etl.event(0, START + 1, Thread::dc_start(pid, tid));
            }
        }
        for number in 0..self.samples {
            let (process, thread) = (number % self.processes, number / self.processes % self.threads);
            let (pid, tid) = (pid(process), tid(process, thread));
            let time = START + 10 + 10 * i64::from(number);
            let number = u64::from(number);
            etl = etl.event(0, time, Sample::new(if self.leaves > 0 { KERNEL } else { CODE }, tid));
            if self.tops > 0 {
                // The stack that is told once is the kernel's, and stands below a user stack that is always another one.
                etl = etl.event(0, time + 1, stack_walk::kernel_key(time, pid, tid, DEEP_KERNEL));
                let top = CODE + 0x10 * (number % self.tops);
                etl = etl.event(0, time + 2, stack_walk::full(time, pid, tid, &[top]));
                continue;
            }
            if self.leaves > 0 {
                let leaf = KERNEL + 0x10 * (number % self.leaves);
                etl = etl.event(0, time + 1, stack_walk::full(time, pid, tid, &[leaf]));
            }
            etl = etl.event(0, time + 2, stack_walk::user_key(time, pid, tid, KEY));
        }
        let end = START + 100 + 10 * i64::from(self.samples);
        let (key, base) = if self.tops > 0 { (DEEP_KERNEL, KERNEL) } else { (KEY, CODE) };
        let frames: Vec<u64> = (0..self.depth).map(|frame| base + 0x100_0000 + 0x10 * frame).collect();
        etl.event(0, end, stack_walk::key_rundown(key, &frames))
    }

    pub fn trace(&self) -> Arc<Trace> {
        reading::synthetic(self.file())
    }
}
