//! One event: what every source gives and every decoder takes.

use crate::bytes::Reader;
pub use crate::clock::Ticks;
use crate::guid::Guid;

/// The width of a pointer in an event's payload.
///
/// It is the bitness of the event's writer: a 64-bit recording holds 32-bit records of WOW64 processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pointer {
    /// Four bytes.
    Bits32,
    /// Eight bytes.
    Bits64,
}

impl Pointer {
    /// The width in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Pointer::Bits32 => 4,
            Pointer::Bits64 => 8,
        }
    }

    /// Reads one pointer.
    #[inline]
    pub fn read(self, reader: &mut Reader<'_>) -> Option<u64> {
        match self {
            Pointer::Bits32 => reader.u32().map(u64::from),
            Pointer::Bits64 => reader.u64(),
        }
    }
}

/// How an event names itself within its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A classic event: its provider is the task GUID, and opcode and version tell the layout.
    Classic,
    /// A manifest, EventSource or TraceLogging event with this id.
    Manifest(u16),
    /// A WPP message with this number; its provider is the message GUID where there is one.
    Message(u16),
    /// A record whose header type nobody knows; stepped over by its size.
    Unknown(u8),
}

/// A process or thread id that the header does not know.
pub const NO_ID: u32 = u32::MAX;

/// One event, borrowed from its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When it was written.
    pub time: Ticks,
    /// The provider, or for classic events the task (class) GUID.
    pub provider: Guid,
    /// Classic, manifest, or neither.
    pub kind: Kind,
    /// The opcode, called type for classic events.
    pub opcode: u8,
    /// The version of the payload's layout.
    pub version: u8,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// The processor that wrote it.
    pub processor: u16,
    /// The process in the header, or [`NO_ID`]. Not always the process that the event is about.
    pub pid: u32,
    /// The thread in the header, or [`NO_ID`].
    pub tid: u32,
    /// The extended items, undecoded: see [`Event::extended`].
    pub items: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Event<'a> {
    /// An event of which only this is known.
    pub(crate) fn unknown(time: Ticks, processor: u16) -> Event<'a> {
        Event {
            time,
            provider: Guid::ZERO,
            kind: Kind::Unknown(0),
            opcode: 0,
            version: 0,
            pointer: Pointer::Bits64,
            processor,
            pid: NO_ID,
            tid: NO_ID,
            items: &[],
            payload: &[],
        }
    }

    /// A cursor over the payload.
    #[inline]
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.payload)
    }

    /// The extended data items that came with the event.
    pub fn extended(&self) -> ExtendedItems<'a> {
        ExtendedItems { rest: self.items }
    }

    /// The name in the TraceLogging schema (extended item 11) of a self-describing event.
    pub fn tracelogging_name(&self) -> Option<String> {
        let (_, schema) = self.extended().find(|(kind, _)| *kind == ExtendedItems::TRACELOGGING_SCHEMA)?;
        let mut reader = Reader::new(schema);
        reader.skip(2)?;
        // Tags: bytes with the high bit set go on, the first without it ends them.
        while reader.u8()? & 0x80 != 0 {}
        Some(reader.ansi().to_string())
    }

    /// The provider's name in its TraceLogging traits (extended item 12).
    pub fn provider_name(&self) -> Option<String> {
        let (_, traits) = self.extended().find(|(kind, _)| *kind == ExtendedItems::PROVIDER_TRAITS)?;
        let mut reader = Reader::new(traits);
        reader.skip(2)?;
        Some(reader.ansi().to_string())
    }
}

/// Iterates over extended items as (type, data); ends at the first that does not fit.
///
/// Layout of an item (verified on net.4.5.2.x64.etl): `u16` whole size, `u16` type, `u16` linkage (bit 0: another
/// follows), `u16` data size, data, padding to 8.
#[derive(Clone, Debug)]
pub struct ExtendedItems<'a> {
    rest: &'a [u8],
}

impl ExtendedItems<'_> {
    /// Items, each a type and data, as they lie in a file. What is longer than any record can be is cut by whoever reads it.
    pub(crate) fn lay(items: &[(u16, &[u8])]) -> Vec<u8> {
        let field = |size: usize| u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes();
        let mut laid = Vec::new();
        for (index, (kind, data)) in items.iter().enumerate() {
            let size = (8 + data.len()).next_multiple_of(8);
            let end = laid.len() + size;
            laid.extend_from_slice(&field(size));
            laid.extend_from_slice(&kind.to_le_bytes());
            laid.extend_from_slice(&u16::from(index + 1 < items.len()).to_le_bytes());
            laid.extend_from_slice(&field(data.len()));
            laid.extend_from_slice(data);
            laid.resize(end, 0);
        }
        laid
    }

    /// A stack of 32-bit addresses.
    pub const STACK32: u16 = 5;
    /// A stack of 64-bit addresses; WOW64 processes have it too.
    pub const STACK64: u16 = 6;
    /// The schema of a TraceLogging event.
    pub const TRACELOGGING_SCHEMA: u16 = 11;
    /// The traits of a TraceLogging provider.
    pub const PROVIDER_TRAITS: u16 = 12;
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.rest);
        let (size, kind, _linkage, data) =
            (reader.u16()?, reader.u16()?, reader.u16()?, usize::from(reader.u16()?));
        let data = reader.take(data)?;
        self.rest = self.rest.get(usize::from(size).max(8)..).unwrap_or_default();
        Some((kind, data))
    }
}
