//! The bytes of frequent records. Each is made once by the builder, and only what differs is written over it: a gigabyte
//! takes a second and not a minute.

use crate::synth::kernel::perfinfo::{dpc, isr};
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::{Event, Sample, stack_walk};

/// A PERFINFO header: the time is at 8, the payload begins at 16.
const TIME: usize = 8;
const PAYLOAD: usize = 16;

/// Makes records of one pointer size.
#[derive(Clone, Debug)]
pub(super) struct Templates {
    pointer_size: usize,
    sample: Vec<u8>,
    idle: Vec<u8>,
    dpc_sample: Vec<u8>,
    stack: Vec<u8>,
    kernel_key: Vec<u8>,
    user_key: Vec<u8>,
    deleted: Vec<u8>,
    rundown: Vec<u8>,
    switch: Vec<u8>,
    ready: Vec<u8>,
    isr: Vec<u8>,
    dpc: Vec<u8>,
}

/// What a frequent record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frequent {
    Sample {
        address: u64,
        thread: u32,
    },
    /// Of the idle thread.
    Idle {
        address: u64,
    },
    /// Of the idle thread, in a DPC.
    DpcSample {
        address: u64,
    },
    Stack {
        of: i64,
        process: u32,
        thread: u32,
    },
    KernelKey {
        of: i64,
        process: u32,
        thread: u32,
        key: u64,
    },
    UserKey {
        of: i64,
        process: u32,
        thread: u32,
        key: u64,
    },
    Deleted {
        key: u64,
    },
    Rundown {
        key: u64,
    },
    Switch {
        old: u32,
        new: u32,
    },
    Ready {
        thread: u32,
    },
    Isr {
        began: i64,
        routine: u64,
    },
    Dpc {
        began: i64,
        routine: u64,
    },
}

impl Templates {
    pub(super) fn new(pointer_size: usize) -> Self {
        let make = |event: Event| event.record(0, pointer_size);
        Templates {
            pointer_size,
            sample: make(Sample::new(0, 0).into()),
            idle: make(Sample::idle(0).into()),
            dpc_sample: make(Sample::idle(0).dpc().into()),
            stack: make(stack_walk::full(0, 0, 0, &[])),
            kernel_key: make(stack_walk::kernel_key(0, 0, 0, 0)),
            user_key: make(stack_walk::user_key(0, 0, 0, 0)),
            deleted: make(stack_walk::key_delete(0, &[])),
            rundown: make(stack_walk::key_rundown(0, &[])),
            switch: make(CSwitch::new(0, 0).into()),
            ready: make(ready(0, false)),
            isr: make(isr(0, 0, 0xD1)),
            dpc: make(dpc(0, 0)),
        }
    }

    /// Makes the record in `record`: `frames` are those of a stack or of a key's definition, leaf first.
    pub(super) fn make(
        &self,
        record: &mut Vec<u8>,
        time: i64,
        what: Frequent,
        frames: impl Iterator<Item = u64>,
    ) {
        let template = match what {
            Frequent::Sample { .. } => &self.sample,
            Frequent::Idle { .. } => &self.idle,
            Frequent::DpcSample { .. } => &self.dpc_sample,
            Frequent::Stack { .. } => &self.stack,
            Frequent::KernelKey { .. } => &self.kernel_key,
            Frequent::UserKey { .. } => &self.user_key,
            Frequent::Deleted { .. } => &self.deleted,
            Frequent::Rundown { .. } => &self.rundown,
            Frequent::Switch { .. } => &self.switch,
            Frequent::Ready { .. } => &self.ready,
            Frequent::Isr { .. } => &self.isr,
            Frequent::Dpc { .. } => &self.dpc,
        };
        record.clear();
        record.extend_from_slice(template);
        put(record, TIME, &time.to_le_bytes());
        match what {
            Frequent::Sample { address, thread } => {
                let next = self.pointer(record, PAYLOAD, address);
                put(record, next, &thread.to_le_bytes());
            }
            Frequent::Idle { address } | Frequent::DpcSample { address } => {
                self.pointer(record, PAYLOAD, address);
            }
            Frequent::Stack { of, process, thread } => owner(record, of, process, thread),
            Frequent::KernelKey { of, process, thread, key }
            | Frequent::UserKey { of, process, thread, key } => {
                owner(record, of, process, thread);
                self.pointer(record, PAYLOAD + 16, key);
            }
            Frequent::Deleted { key } | Frequent::Rundown { key } => {
                self.pointer(record, PAYLOAD, key);
            }
            Frequent::Switch { old, new } => {
                put(record, PAYLOAD, &new.to_le_bytes());
                put(record, PAYLOAD + 4, &old.to_le_bytes());
            }
            Frequent::Ready { thread } => put(record, PAYLOAD, &thread.to_le_bytes()),
            Frequent::Isr { began, routine } | Frequent::Dpc { began, routine } => {
                put(record, PAYLOAD, &began.to_le_bytes());
                self.pointer(record, PAYLOAD + 8, routine);
            }
        }
        for frame in frames {
            record.extend_from_slice(&frame.to_le_bytes()[..self.pointer_size]);
        }
        let size = u16::try_from(record.len()).expect("a stack has few frames");
        put(record, 4, &size.to_le_bytes());
    }

    fn pointer(&self, record: &mut [u8], at: usize, value: u64) -> usize {
        put(record, at, &value.to_le_bytes()[..self.pointer_size]);
        at + self.pointer_size
    }
}

fn owner(record: &mut [u8], of: i64, process: u32, thread: u32) {
    put(record, PAYLOAD, &of.to_le_bytes());
    put(record, PAYLOAD + 8, &process.to_le_bytes());
    put(record, PAYLOAD + 12, &thread.to_le_bytes());
}

fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    record[at..at + bytes.len()].copy_from_slice(bytes);
}

/// What the builder makes of the same, all of it: the templates must give the same bytes.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_gives_what_the_builder_makes() {
        let frames = [0x8123_4567, 0x1234];
        let (of, process, thread, key, routine) = (77, 40, 44, 0x8877_6655, 0x8000_1234);
        let cases: [(Frequent, Event, bool); 12] = [
            (Frequent::Sample { address: key, thread }, Sample::new(key, thread).into(), false),
            (Frequent::Idle { address: key }, Sample::idle(key).into(), false),
            (Frequent::DpcSample { address: key }, Sample::idle(key).dpc().into(), false),
            (Frequent::Stack { of, process, thread }, stack_walk::full(of, process, thread, &frames), true),
            (
                Frequent::KernelKey { of, process, thread, key },
                stack_walk::kernel_key(of, process, thread, key),
                false,
            ),
            (
                Frequent::UserKey { of, process, thread, key },
                stack_walk::user_key(of, process, thread, key),
                false,
            ),
            (Frequent::Deleted { key }, stack_walk::key_delete(key, &frames), true),
            (Frequent::Rundown { key }, stack_walk::key_rundown(key, &frames), true),
            (Frequent::Switch { old: 8, new: 12 }, CSwitch::new(8, 12).into(), false),
            (Frequent::Ready { thread }, ready(thread, false), false),
            (Frequent::Isr { began: of, routine }, isr(of, routine, 0xD1), false),
            (Frequent::Dpc { began: of, routine }, dpc(of, routine), false),
        ];
        for width in [4, 8] {
            let templates = Templates::new(width);
            for (what, event, has_frames) in &cases {
                let mut record = Vec::new();
                let frames = frames.iter().copied().filter(|_| *has_frames);
                templates.make(&mut record, 99, *what, frames);
                assert_eq!(record, event.record(99, width), "{what:?} of {width} bytes");
            }
        }
    }
}
