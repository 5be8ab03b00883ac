//! Events of our own that describe themselves (TraceLogging): their extended items carry the name of the provider, and the names
//! and types of the fields. The layout of the items is that of `TraceLoggingProvider.h` in the Windows SDK.

use crate::event::ExtendedItems;

/// The name of the provider.
const PROVIDER: &str = "etwprof";

/// The types of fields (`TlgIn_t`).
pub(super) const UNICODE_STRING: u8 = 1;
pub(super) const UINT32: u8 = 8;
pub(super) const INT64: u8 = 9;
pub(super) const DOUBLE: u8 = 12;
pub(super) const BOOL32: u8 = 13;
/// The field is an array: its length as a `u16`, and so many values.
pub(super) const ARRAY: u8 = 0x40;
/// A second byte says how a number is meant (`TlgOut_t`).
pub(super) const HAS_OUT_TYPE: u8 = 0x80;
pub(super) const PID: u8 = 5;

/// The extended items of an event with these fields, as they lie in a file.
pub(super) fn items(event: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut traits = vec![0; 2];
    push_text(&mut traits, PROVIDER);
    // One byte without tags.
    let mut schema = vec![0; 3];
    push_text(&mut schema, event);
    for (name, kind) in fields {
        push_text(&mut schema, name);
        schema.extend_from_slice(kind);
    }
    for data in [&mut schema, &mut traits] {
        let size = data.len() as u16;
        data.splice(..2, size.to_le_bytes());
    }
    ExtendedItems::lay(&[
        (ExtendedItems::TRACELOGGING_SCHEMA, &schema),
        (ExtendedItems::PROVIDER_TRAITS, &traits),
    ])
}

fn push_text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
    to.push(0);
}
