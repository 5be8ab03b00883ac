//! Values of counters that etwprof records beside samples, as events of a provider of its own.
//!
//! An event has one value, and describes itself (TraceLogging): its extended items carry the name of the provider and the
//! names and types of the fields, so any reader shows it. The fields are `ProcessId` (`u32`, 0 for a counter of the whole machine),
//! `Object`, `Instance`, `Counter` and `Unit` (UTF-16 up to a zero; the instance is empty where there is only one), and
//! `Value` (an IEEE number of 8 bytes). The layout of the items is that of `TraceLoggingProvider.h` in the Windows SDK.

use crate::bytes::Utf16;
use crate::event::{Event, ExtendedItems, Kind};

/// The name of the event.
pub const NAME: &str = "Counter";
/// The name of its provider.
pub const PROVIDER: &str = "etwprof";

/// The types of fields, and how numbers are meant: `TlgIn_t` and `TlgOut_t`.
const UNICODE_STRING: u8 = 1;
const UINT32: u8 = 8;
const DOUBLE: u8 = 12;
const HAS_OUT_TYPE: u8 = 0x80;
const PID: u8 = 5;

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

/// Decodes the event; the outer `None` if its payload is too short, the inner `None` for another event.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<CounterValue<'a>>> {
    if event.kind != Kind::Manifest(0) || event.tracelogging_name().as_deref() != Some(NAME) {
        return Some(None);
    }
    let mut r = event.reader();
    let value = CounterValue {
        pid: r.u32()?,
        object: r.utf16(),
        instance: r.utf16(),
        counter: r.utf16(),
        unit: r.utf16(),
        bits: r.u64()?,
    };
    Some(Some(value))
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
    let mut traits = vec![0; 2];
    push_text(&mut traits, PROVIDER);
    // One byte without tags.
    let mut schema = vec![0; 3];
    push_text(&mut schema, NAME);
    let text = [UNICODE_STRING].as_slice();
    let fields = [
        ("ProcessId", [UINT32 | HAS_OUT_TYPE, PID].as_slice()),
        ("Object", text),
        ("Instance", text),
        ("Counter", text),
        ("Unit", text),
        ("Value", &[DOUBLE]),
    ];
    for (name, kind) in fields {
        push_text(&mut schema, name);
        schema.extend_from_slice(kind);
    }
    let mut items = Vec::new();
    let all = [(ExtendedItems::TRACELOGGING_SCHEMA, schema), (ExtendedItems::PROVIDER_TRAITS, traits)];
    for (kind, mut data) in all {
        let length = data.len() as u16;
        data.splice(..2, length.to_le_bytes());
        let size = (8 + data.len()).next_multiple_of(8);
        let follows = u16::from(kind == ExtendedItems::TRACELOGGING_SCHEMA);
        let end = items.len() + size;
        for field in [size as u16, kind, follows, length] {
            items.extend_from_slice(&field.to_le_bytes());
        }
        items.extend_from_slice(&data);
        items.resize(end, 0);
    }
    items
}

fn push_text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
    to.push(0);
}
