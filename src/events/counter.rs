//! Values of counters that etwprof records beside samples, as events of a provider of its own.
//!
//! An event has one value, and describes itself, so any reader shows it. The fields are `ProcessId` (`u32`, 0 for a counter
//! of the whole machine), `Object`, `Instance`, `Counter` and `Unit` (UTF-16 up to a zero; the instance is empty where there is
//! only one), and `Value` (an IEEE number of 8 bytes).

use crate::bytes::Utf16;
use crate::event::Event;

use super::self_describing::{self, DOUBLE, HAS_OUT_TYPE, PID, UINT32, UNICODE_STRING};

/// The name of the event.
pub const NAME: &str = "Counter";

/// The value of a counter at the time of its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValue<'a> {
    /// The process that it is about; 0 for the whole machine.
    pub pid: u32,
    /// The object, or the provider of an EventCounter.
    pub object: Utf16<'a>,
    /// Of which thing; empty where there is only one.
    pub instance: Utf16<'a>,
    /// The counter.
    pub counter: Utf16<'a>,
    /// What the value is in; empty for a plain number.
    pub unit: Utf16<'a>,
    /// The bits of its value.
    bits: u64,
}

impl CounterValue<'_> {
    /// The value. It comes from a file, and may be infinite or no number.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// Decodes the event; `None` if its payload is too short.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<CounterValue<'a>> {
    let mut r = event.reader();
    Some(CounterValue {
        pid: r.u32()?,
        object: r.utf16(),
        instance: r.utf16(),
        counter: r.utf16(),
        unit: r.utf16(),
        bits: r.u64()?,
    })
}

/// The payload of an event.
pub fn payload(pid: u32, [object, instance, counter, unit]: [&str; 4], value: f64) -> Vec<u8> {
    let mut payload = pid.to_le_bytes().to_vec();
    for text in [object, instance, counter, unit] {
        // A zero would end it here.
        let units = text.encode_utf16().filter(|unit| *unit != 0).chain([0]);
        payload.extend(units.flat_map(u16::to_le_bytes));
    }
    payload.extend_from_slice(&value.to_le_bytes());
    payload
}

/// The extended items of every such event, as they lie in a file.
pub fn items() -> Vec<u8> {
    self_describing::items(
        NAME,
        &[
            ("ProcessId", &[UINT32 | HAS_OUT_TYPE, PID]),
            ("Object", &[UNICODE_STRING]),
            ("Instance", &[UNICODE_STRING]),
            ("Counter", &[UNICODE_STRING]),
            ("Unit", &[UNICODE_STRING]),
            ("Value", &[DOUBLE]),
        ],
    )
}
