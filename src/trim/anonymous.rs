//! Records without what they say of who recorded: users, machines, folders, command lines.
//!
//! A record keeps its length: each text is replaced in its place, and bytes that are in no known part of it become zeros.
//! Events whose layout is not known are left out.

use std::ops::Range;

use crate::event::{Event, ExtendedItems};

use super::layout::{Field, Layout, layout};
use super::pseudonyms::Pseudonyms;

/// The item that names the user.
const SID_ITEM: u16 = 2;
/// Items with numbers only (related activity, terminal session, instance, stacks, counters, keys, clock), and what a
/// provider says of itself. The others name packages and containers.
const PLAIN_ITEMS: [u16; 14] = [
    1,
    3,
    4,
    ExtendedItems::STACK32,
    ExtendedItems::STACK64,
    7,
    8,
    10,
    ExtendedItems::TRACELOGGING_SCHEMA,
    ExtendedItems::PROVIDER_TRAITS,
    13,
    15,
    17,
    18,
];

/// The bytes before an item's data.
const ITEM_HEAD: usize = 8;

/// True for an event whose texts are known, or that has none.
pub(super) fn is_known(event: &Event<'_>) -> bool {
    layout(event).is_some()
}

/// The record of an event without its secrets, as long as before; `None` if it has none.
pub(super) fn without_secrets(
    pseudonyms: &mut Pseudonyms,
    event: &Event<'_>,
    record: &[u8],
) -> Option<Vec<u8>> {
    let fields = fields(event, record);
    if fields.is_empty() {
        return None;
    }
    let mut record = record.to_vec();
    for field in fields {
        match field {
            Field::Wide(place, style) => {
                let (bytes, _) = record.get_mut(place)?.as_chunks_mut::<2>();
                let mut units: Vec<u16> = bytes.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
                pseudonyms.replace(&mut units, style);
                bytes.iter_mut().zip(units).for_each(|(bytes, unit)| *bytes = unit.to_le_bytes());
            }
            Field::Narrow(place, style) => {
                let bytes = record.get_mut(place)?;
                let mut units: Vec<u16> = bytes.iter().copied().map(u16::from).collect();
                pseudonyms.replace(&mut units, style);
                bytes.iter_mut().zip(units).for_each(|(byte, unit)| *byte = unit.to_le_bytes()[0]);
            }
            Field::Sid(place) => pseudonyms.sid(record.get_mut(place)?),
            Field::Nothing(place) => record.get_mut(place)?.fill(0),
        }
    }
    Some(record)
}

/// What is replaced in a record, by places in it.
fn fields(event: &Event<'_>, record: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut add = |field: fn(Range<usize>) -> Field, part: &[u8]| {
        let is_empty = part.iter().all(|byte| *byte == 0);
        fields.extend(place(part, record).filter(|_| !is_empty).map(field));
    };
    // What is between items, or behind them, is nobody's.
    let mut end = 0;
    for (kind, data) in event.extended() {
        match kind {
            SID_ITEM => add(Field::Sid, data),
            plain if PLAIN_ITEMS.contains(&plain) => {}
            _ => add(Field::Nothing, data),
        }
        let Some(data) = place(data, event.items) else { continue };
        add(Field::Nothing, event.items.get(end..data.start.saturating_sub(ITEM_HEAD)).unwrap_or_default());
        end = data.end;
    }
    add(Field::Nothing, event.items.get(end..).unwrap_or_default());
    // An event whose layout is not known is not kept, but for the recording's header.
    let layout = layout(event).unwrap_or_else(Layout::of_header);
    add(Field::Nothing, event.payload.get(layout.end..).unwrap_or_default());
    if let Some(payload) = place(event.payload, record) {
        let moved = |place: Range<usize>| payload.start + place.start..payload.start + place.end;
        fields.extend(layout.fields.into_iter().map(|field| field.at(moved)));
    }
    fields
}

/// Where a part of some bytes is in them.
fn place(part: &[u8], whole: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let place = start..start + part.len();
    (place.end <= whole.len()).then_some(place)
}
