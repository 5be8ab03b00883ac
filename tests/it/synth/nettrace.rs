//! Streams of a .NET runtime's events, typed by hand from Microsoft's NetTraceFormat.md.

use super::bytes::Bytes;
use super::counters::utf16;

/// A stream: its beginning, and what is put behind it.
pub struct Stream(Vec<u8>);

/// The kind of event that carries a mean, as .NET Core 3.1 describes it.
pub const MEAN: &[(&str, u32)] =
    &[("Name", 18), ("DisplayName", 18), ("Mean", 14), ("IntervalSec", 13), ("DisplayUnits", 18)];
/// One that carries a sum.
pub const SUM: &[(&str, u32)] = &[("Name", 18), ("Increment", 14), ("IntervalSec", 13), ("DisplayUnits", 18)];

impl Stream {
    /// Version 4, and a clock of 10 MHz.
    pub fn begin() -> Stream {
        Stream::of_version(4)
    }

    pub fn of_version(version: u32) -> Stream {
        let mut stream = Stream(b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec());
        stream.object("Trace", version);
        // Year, month, day of week, day, hour, minute, second, ms; ticks at that time, ticks a second; sizes.
        for part in [2026_u16, 11, 2, 24, 9, 0, 14, 250] {
            stream.0.extend(part.to_le_bytes());
        }
        stream.0.extend(5_000_i64.to_le_bytes());
        stream.0.extend(10_000_000_i64.to_le_bytes());
        for part in [8_u32, 4711, 2, 0] {
            stream.0.extend(part.to_le_bytes());
        }
        stream.0.push(6);
        stream
    }

    fn object(&mut self, name: &str, version: u32) {
        self.0.extend([5, 5, 1]);
        for part in [version, version, name.len() as u32] {
            self.0.extend(part.to_le_bytes());
        }
        self.0.extend(name.as_bytes());
        self.0.push(6);
    }

    /// A block of any kind.
    pub fn block(mut self, name: &str, content: &[u8]) -> Stream {
        self.object(name, 2);
        self.0.extend((content.len() as u32).to_le_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(content);
        self.0.push(6);
        self
    }

    /// A block with events, whose headers are compressed or not.
    pub fn events(self, name: &str, compressed: bool, events: &[Vec<u8>]) -> Stream {
        let head = Bytes::new(8).u16(20).u16(compressed.into()).u64(0).u64(u64::MAX).finish();
        self.block(name, &[head, events.concat()].concat())
    }

    /// Describes kinds of events.
    pub fn kinds(self, kinds: &[Vec<u8>]) -> Stream {
        // Kind 0, no time, a size.
        let blob = |payload: &Vec<u8>| [&[0x81, 0, 0], &size(payload)[..], payload].concat();
        self.events("MetadataBlock", true, &kinds.iter().map(blob).collect::<Vec<_>>())
    }

    pub fn end(mut self) -> Vec<u8> {
        self.0.push(1);
        self.0
    }

    /// As it is when the program is killed.
    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The description of a kind: number, provider, id, name, and an object "Payload" with these fields.
pub fn kind(number: u32, provider: &str, name: &str, fields: &[(&str, u32)]) -> Vec<u8> {
    let head = Bytes::new(8).u32(number).raw(&utf16(provider)).u32(5).raw(&utf16(name));
    // Keywords, version, level; one field, an object.
    let mut bytes = head.u64(0).u32(1).u32(4).u32(1).u32(1).u32(fields.len() as u32);
    for (name, kind) in fields {
        bytes = bytes.u32(*kind).raw(&utf16(name));
    }
    bytes.raw(&utf16("Payload")).finish()
}

/// A compressed header with kind, thread, processor, time and size, and the payload.
pub fn event(kind: u8, ticks: u8, payload: &[u8]) -> Vec<u8> {
    // Sequence 1, captured by thread 300 on processor 1; thread 300, no stack.
    let mut bytes = vec![0x8f, kind, 1, 0xac, 0x02, 1, 0xac, 0x02, 0, ticks];
    bytes.extend(size(payload));
    bytes.extend(payload);
    bytes
}

/// Up to 16,383, in two bytes of seven bits.
fn size(payload: &[u8]) -> [u8; 2] {
    [payload.len() as u8 & 0x7f | 0x80, (payload.len() >> 7) as u8]
}

/// The same with a header of 80 bytes that leaves nothing out.
pub fn plain_event(kind: u32, ticks: i64, payload: &[u8]) -> Vec<u8> {
    let head = Bytes::new(8).u32(76 + payload.len() as u32).u32(0x8000_0000 | kind).u32(1).u64(300).u64(300);
    let head = head.u32(1).u32(0).i64(ticks).raw(&[0; 32]).u32(payload.len() as u32);
    let mut bytes = head.raw(payload).finish();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The payload of [`MEAN`].
pub fn mean(name: &str, value: f64, seconds: f32, units: &str) -> Vec<u8> {
    let head = Bytes::new(8).raw(&utf16(name)).raw(&utf16("shown")).u64(value.to_bits());
    head.u32(seconds.to_bits()).raw(&utf16(units)).finish()
}

/// The payload of [`SUM`].
pub fn sum(name: &str, value: f64, seconds: f32, units: &str) -> Vec<u8> {
    let head = Bytes::new(8).raw(&utf16(name)).u64(value.to_bits());
    head.u32(seconds.to_bits()).raw(&utf16(units)).finish()
}
