//! Samples, their interval, deferred calls and interrupts: event group 0x0F.

use crate::synth::{Event, IntoEvent};

const GROUP: u8 = 0x0F;

/// The profile interrupt found a thread running.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    address: u64,
    thread: u32,
    count: u16,
    flags: u8,
}

impl Sample {
    /// One sample at normal priority.
    pub fn new(address: u64, thread: u32) -> Self {
        Sample { address, thread, count: 1, flags: 8 << 3 }
    }

    /// The idle thread, at its priority.
    pub fn idle(address: u64) -> Self {
        Self::new(address, 0).priority(16)
    }

    pub fn count(self, count: u16) -> Self {
        Self { count, ..self }
    }

    /// Found in a deferred procedure call.
    pub fn dpc(self) -> Self {
        Self { flags: self.flags | 1, ..self }
    }

    /// Found in an interrupt service routine.
    pub fn isr(self) -> Self {
        Self { flags: self.flags | 2, ..self }
    }

    /// 0 to 31.
    pub fn priority(self, priority: u8) -> Self {
        assert!(priority < 32, "a priority has five bits");
        Self { flags: self.flags & 7 | priority << 3, ..self }
    }
}

impl From<Sample> for Event {
    fn from(sample: Sample) -> Event {
        Event::kernel(GROUP, 46, 2, move |bytes| {
            bytes.ptr(sample.address).u32(sample.thread).u16(sample.count).u8(sample.flags).u8(0)
        })
    }
}

/// A performance counter's interrupt found a thread running.
pub fn counter_sample(address: u64, thread: u32, source: u16) -> Event {
    Event::kernel(GROUP, 47, 2, move |bytes| bytes.ptr(address).u32(thread).u16(source).u16(0))
}

/// The sampling interval of a source changed while the session ran. In 100 ns; source 0 is the timer.
pub fn set_interval(source: u32, old: u32, new: u32) -> Event {
    interval(72, source, old, new)
}

/// The sampling interval when the session began, as its rundown tells it.
pub fn collection_start(interval_100ns: u32) -> Event {
    interval(73, 0, interval_100ns, interval_100ns).by(4, 8)
}

/// The sampling interval when the session ended.
pub fn collection_end(interval_100ns: u32) -> Event {
    interval(74, 0, interval_100ns, interval_100ns).by(4, 8)
}

/// The interval of a performance counter when the session began: a sample each `interval` of what it counts.
pub fn source_interval(source: u32, interval: u32, name: &str) -> Event {
    let name = name.to_owned();
    Event::kernel(GROUP, 73, 3, move |bytes| bytes.u32(source).u32(interval).u32(interval).utf16z(&name))
        .by(4, 8)
}

/// An interval of version 2 (no name): `kind` 72, 73 or 74.
pub fn interval_without_name(kind: u8, source: u32, old: u32, new: u32) -> Event {
    Event::kernel(GROUP, kind, 2, move |bytes| bytes.u32(source).u32(new).u32(old))
}

fn interval(kind: u8, source: u32, old: u32, new: u32) -> Event {
    let name = if source == 0 { "Timer" } else { "" };
    Event::kernel(GROUP, kind, 3, move |bytes| bytes.u32(source).u32(new).u32(old).utf16z(name))
}

/// A deferred procedure call that began at `began` and ended at the record's time.
pub fn dpc(began: i64, routine: u64) -> Event {
    deferred(68, began, routine)
}

/// A timer's deferred procedure call.
pub fn timer_dpc(began: i64, routine: u64) -> Event {
    deferred(69, began, routine)
}

/// A deferred procedure call that ran in a thread.
pub fn threaded_dpc(began: i64, routine: u64) -> Event {
    deferred(66, began, routine)
}

fn deferred(kind: u8, began: i64, routine: u64) -> Event {
    Event::kernel(GROUP, kind, 2, move |bytes| bytes.i64(began).ptr(routine))
}

/// An interrupt service routine that began at `began` and ended at the record's time.
pub fn isr(began: i64, routine: u64, vector: u16) -> Event {
    Event::kernel(GROUP, 67, 2, move |bytes| bytes.i64(began).ptr(routine).u8(1).u16(vector).u8(0))
}

/// The same for a message-signalled interrupt.
pub fn msi_isr(began: i64, routine: u64, vector: u16, message: u32) -> Event {
    Event::kernel(GROUP, 50, 2, move |bytes| {
        bytes.i64(began).ptr(routine).u8(1).u16(vector).u8(0).u32(message)
    })
}

/// A system call began.
pub fn syscall_enter(address: u64) -> Event {
    Event::kernel(GROUP, 51, 2, move |bytes| bytes.ptr(address))
}

/// A system call ended.
pub fn syscall_exit(status: u32) -> Event {
    Event::kernel(GROUP, 52, 2, move |bytes| bytes.u32(status))
}

/// A text that somebody put into the trace.
pub fn mark(text: &str) -> Event {
    let text = text.to_owned();
    Event::kernel(GROUP, 34, 2, move |bytes| bytes.ansiz(&text))
}
