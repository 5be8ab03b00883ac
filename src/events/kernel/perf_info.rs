//! PerfInfo events (group 0F): samples, their interval, DPCs and interrupts.

use crate::bytes::{Reader, Utf16};
use crate::event::{Event, Pointer, Ticks};

/// A CPU sample: where a processor was when the profile interrupt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The interrupted instruction. Equals the first frame of the sample's stack.
    pub address: u64,
    /// The interrupted thread; 0 for the idle thread. The process is not in the record.
    pub tid: u32,
    /// How many intervals it stands for; 1 in every file seen.
    pub count: u16,
    /// It interrupted a deferred procedure call; the thread is a bystander.
    pub in_dpc: bool,
    /// It interrupted an interrupt service routine; the thread is a bystander.
    pub in_isr: bool,
    /// The thread's priority.
    pub priority: u8,
}

impl Sample {
    /// Reads the payload. Address P, thread u32, count u16, flags u8 (0 DPC, 1 ISR, 3-7 priority), rank u8 (verified on
    /// 79,528 samples).
    #[inline]
    pub fn read(payload: &[u8], pointer: Pointer) -> Option<Sample> {
        let mut r = Reader::new(payload);
        let (address, tid, count, flags) = (pointer.read(&mut r)?, r.u32()?, r.u16()?, r.u8()?);
        Some(Sample {
            address,
            tid,
            // Version 1 has no count and leaves the field 0.
            count: count.max(1),
            in_dpc: flags & 1 != 0,
            in_isr: flags & 2 != 0,
            priority: flags >> 3,
        })
    }

    /// True if the processor had nothing to do: the idle thread outside DPCs and interrupts.
    pub fn is_idle(&self) -> bool {
        self.tid == 0 && !self.in_dpc && !self.in_isr
    }
}

pub(super) fn decode_sample(event: &Event<'_>) -> Option<Sample> {
    Sample::read(event.payload, event.pointer)
}

/// Where a processor was when one of its performance counters had counted its interval. It is no CPU sample: there are
/// as many as there were cache misses, or whatever is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterSample {
    /// The interrupted instruction.
    pub address: u64,
    /// The interrupted thread; 0 for the idle thread.
    pub tid: u32,
    /// What is counted: a [`ProfileInterval::source`].
    pub source: u16,
}

/// Address P, thread u32, source u16, reserved u16 (public reference; not seen in a real file).
pub(super) fn decode_counter_sample(event: &Event<'_>) -> Option<CounterSample> {
    let mut r = event.reader();
    Some(CounterSample { address: event.pointer.read(&mut r)?, tid: r.u32()?, source: r.u16()? })
}

/// The interval of a profile source was set, or is told at the start or end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileInterval<'a> {
    /// The source; 0 is the timer, others are performance counters.
    pub source: u32,
    /// The interval in force from now on: in 100 ns for the timer, else in what is counted.
    pub interval: u32,
    /// The interval until now, in the same.
    pub old_interval: u32,
    /// The source's name; empty in the older records.
    pub name: Utf16<'a>,
}

/// Source, new, old; then the source's name in version 3 (verified on gc and 2016 traces).
pub(super) fn decode_interval<'a>(event: &Event<'a>) -> Option<ProfileInterval<'a>> {
    let mut r = event.reader();
    Some(ProfileInterval { source: r.u32()?, interval: r.u32()?, old_interval: r.u32()?, name: r.utf16() })
}

/// Which routine interrupted a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterruptKind {
    /// A DPC.
    Dpc,
    /// A threaded DPC.
    ThreadedDpc,
    /// A timer's DPC.
    TimerDpc,
    /// An interrupt service routine with its vector.
    Isr {
        /// The interrupt vector.
        vector: u16,
    },
    /// The service routine of a message-signalled interrupt.
    MessageIsr {
        /// The interrupt vector.
        vector: u16,
    },
}

/// A DPC or interrupt that has just ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupt {
    /// What it was.
    pub kind: InterruptKind,
    /// When it began.
    pub start: Ticks,
    /// Its routine.
    pub routine: u64,
}

/// Start u64, routine P; for interrupts then a return value u8 and the vector, unaligned (50 and 66 to 69
/// verified on slow-ppt.etl, the same in 32 bits on real payloads).
pub(super) fn decode_interrupt(event: &Event<'_>) -> Option<Interrupt> {
    let mut r = event.reader();
    let (start, routine) = (Ticks(r.i64()?), event.pointer.read(&mut r)?);
    let kind = match event.opcode {
        66 => InterruptKind::ThreadedDpc,
        68 => InterruptKind::Dpc,
        69 => InterruptKind::TimerDpc,
        _ => {
            r.skip(1)?;
            // Version 2 widened the vector from one byte.
            let vector = if event.version < 2 { u16::from(r.u8()?) } else { r.u16()? };
            match event.opcode {
                50 => InterruptKind::MessageIsr { vector },
                _ => InterruptKind::Isr { vector },
            }
        }
    };
    Some(Interrupt { kind, start, routine })
}
