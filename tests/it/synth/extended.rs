//! The extended items between an EVENT_HEADER and its payload.

use super::{Bytes, Guid};

/// One extended item.
#[derive(Clone, Debug)]
pub struct Item {
    kind: u16,
    data: Vec<u8>,
}

impl Item {
    /// An item of any type: its data without the 8-byte item header.
    pub fn new(kind: u16, data: &[u8]) -> Self {
        Item { kind, data: data.to_vec() }
    }

    pub fn related_activity(activity: Guid) -> Self {
        Self::new(1, &activity.0)
    }

    pub fn sid(authority: u8, sub_authorities: &[u32]) -> Self {
        Self::new(2, &Bytes::new(8).sid(authority, sub_authorities).finish())
    }

    /// A stack of 4-byte addresses, leaf first.
    pub fn stack32(match_id: u64, frames: &[u64]) -> Self {
        Self::new(5, &Bytes::new(4).u64(match_id).ptrs(frames).finish())
    }

    /// A stack of 8-byte addresses, leaf first. A 32-bit process on a 64-bit system has this one too.
    pub fn stack64(match_id: u64, frames: &[u64]) -> Self {
        Self::new(6, &Bytes::new(8).u64(match_id).ptrs(frames).finish())
    }

    pub fn event_key(key: u64) -> Self {
        Self::new(10, &key.to_le_bytes())
    }

    /// A TraceLogging schema: size, one tag byte, the event's name, then the fields as raw bytes.
    pub fn schema(name: &str, fields: &[u8]) -> Self {
        let body = Bytes::new(8).u8(0).ansiz(name).raw(fields).finish();
        let size = u16::try_from(body.len() + 2).expect("a short schema");
        Self::new(11, &Bytes::new(8).u16(size).raw(&body).finish())
    }

    /// The traits of a TraceLogging provider: size and name.
    pub fn provider_traits(name: &str) -> Self {
        let size = u16::try_from(name.len() + 3).expect("a short name");
        Self::new(12, &Bytes::new(8).u16(size).ansiz(name).finish())
    }

    pub fn process_start_key(key: u64) -> Self {
        Self::new(13, &key.to_le_bytes())
    }

    /// A reference to a cached stack of a 32-bit system.
    pub fn stack_key32(match_id: u64, key: u32) -> Self {
        Self::new(17, &Bytes::new(4).u64(match_id).u32(key).u32(0).finish())
    }

    /// A reference to a cached stack of a 64-bit system.
    pub fn stack_key64(match_id: u64, key: u64) -> Self {
        Self::new(18, &Bytes::new(8).u64(match_id).u64(key).finish())
    }
}

/// The items as they lie in a record: each with its size, type, a mark that another follows, and padding to 8.
pub(super) fn lay(items: &[Item]) -> Vec<u8> {
    let mut bytes = Bytes::new(8);
    for (index, item) in items.iter().enumerate() {
        let another_follows = index + 1 < items.len();
        let length = u16::try_from(item.data.len()).expect("an item has less than 64 KiB");
        bytes = bytes
            .u16((8 + length).next_multiple_of(8)) // the whole item with its padding
            .u16(item.kind)
            .u16(another_follows.into())
            .u16(length)
            .raw(&item.data)
            .pad_to_8();
    }
    bytes.finish()
}
