//! The records of a buffer: eleven header kinds, one [`Event`].
//!
//! Every record starts on an 8-byte boundary. Byte 2 is the header type and byte 3 the marker; bit 7 of the marker is
//! set on every valid record.
//!
//! | type | header | bytes | size at | writer |
//! |---|---|---|---|---|
//! | 0x01 / 0x02 | SYSTEM 32 / 64 | 32 | 4 | kernel, with process and thread |
//! | 0x03 / 0x04 | COMPACT 32 / 64 | 24 | 4 | the same without CPU times |
//! | 0x0A / 0x14 | FULL 32 / 64 | 48 | 0 | classic providers |
//! | 0x0B / 0x15 | INSTANCE 32 / 64 | 72 | 0 | classic providers |
//! | 0x10 / 0x11 | PERFINFO 32 / 64 | 16 | 4 | kernel, short: no process, no thread |
//! | 0x12 / 0x13 | EVENT_HEADER 32 / 64 | 80 | 0 | manifest, TraceLogging, EventSource |
//! | any, marker 0x90 | MESSAGE | 8 and more | 0 | WPP |
//!
//! SYSTEM, COMPACT and PERFINFO name their event by a group and a type byte; the group stands for a task GUID
//! ([`guids`](crate::guids)). All but the 32-bit PERFINFO, COMPACT, INSTANCE and MESSAGE forms are verified on real files.

use crate::bytes::Reader;
use crate::event::{Event, Kind, NO_ID, Pointer, Ticks};
use crate::guid::Guid;
use crate::guids::hook_task;

use super::digest::Hook;

/// The size and time of a record: what the merge needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes with header and extended items, without the padding behind it.
    pub(super) size: usize,
    /// `None` where a record carries no time (WPP without a timestamp, unknown header types).
    pub(super) time: Option<Ticks>,
    /// Its first eight bytes.
    pub(super) word: u64,
}

/// How far into a record its time may lie.
pub(super) const LONGEST_HEAD: usize = 64;

const MARKER_VALID: u8 = 0x80;
const MARKER_MESSAGE: u8 = 0x90;
const MARKER_TIMED: u8 = 0xB0;

/// Looks at the record at the start of `bytes`; `None` when no valid record starts there.
#[inline(always)]
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    head_within(bytes, bytes.len())
}

/// The same where only the first of `available` bytes are at hand: [`LONGEST_HEAD`] are enough.
#[inline(always)]
pub(super) fn head_within(bytes: &[u8], available: usize) -> Option<Head> {
    let word = first_word(bytes)?;
    let Some(header) = short_header(word) else { return long_head(bytes, available, word) };
    let size = usize::from((word >> 32) as u16);
    // The time stands behind the thread and the process, where these are.
    let time = time_at(bytes, if header == PERFINFO { 8 } else { 16 });
    (size >= header && size <= available).then_some(Head { size, time, word })
}

/// The head of a record that is not one of the kernel's short ones.
fn long_head(bytes: &[u8], available: usize, word: u64) -> Option<Head> {
    let [a, b, kind, marker, _, _, e, f] = word.to_le_bytes();
    if marker & MARKER_VALID == 0 || u32::from_le_bytes([a, b, kind, marker]) == u32::MAX {
        return None;
    }
    let size = usize::from(u16::from_le_bytes([a, b]));
    let (minimum, time) = match (marker, kind) {
        (MARKER_MESSAGE, _) => (8, message_time(bytes, u16::from_le_bytes([e, f]))),
        // A ULONG32 size with 0xB0 on top: nobody writes it, nothing in it is for us.
        (MARKER_TIMED, _) => (8, None),
        (_, 0x0A | 0x14) => (48, time_at(bytes, 16)),
        (_, 0x0B | 0x15) => (72, time_at(bytes, 16)),
        (_, 0x12 | 0x13) => (80, time_at(bytes, 16)),
        _ => (8, None),
    };
    (size >= minimum && size <= available).then_some(Head { size, time, word })
}

/// The first eight bytes of a record, which say what it is.
#[inline(always)]
fn first_word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Header bytes of the kernel's short records: with CPU times, without them, and without thread and process too.
const SYSTEM: usize = 32;
const COMPACT: usize = 24;
const PERFINFO: usize = 16;

/// The header bytes of a valid record of the kernel's, by its first word; `None` for all others.
#[inline(always)]
fn short_header(word: u64) -> Option<usize> {
    let (kind, marker) = ((word >> 16) as u8, (word >> 24) as u8);
    if marker & MARKER_VALID == 0 || marker == MARKER_MESSAGE || marker == MARKER_TIMED {
        return None;
    }
    match kind {
        0x10 | 0x11 => Some(PERFINFO),
        0x01 | 0x02 => Some(SYSTEM),
        0x03 | 0x04 => Some(COMPACT),
        _ => None,
    }
}

#[inline]
fn time_at(bytes: &[u8], offset: usize) -> Option<Ticks> {
    Reader::at(bytes, offset).i64().map(Ticks)
}

/// The optional fields before a WPP message's timestamp, in their order.
fn message_time(bytes: &[u8], options: u16) -> Option<Ticks> {
    if options & 0x8 == 0 {
        return None;
    }
    let sequence = if options & 0x1 != 0 { 4 } else { 0 };
    let identity = match options & 0x6 {
        0 => 0,
        4 => 4,
        _ => 16,
    };
    time_at(bytes, 8 + sequence + identity)
}

/// Decodes a whole record, of a time that it may lack itself.
///
/// A record whose inner structure does not fit its size comes out with an empty payload.
#[inline]
pub(super) fn decode(record: &[u8], time: Ticks, processor: u16) -> Event<'_> {
    let (kind, marker) = match *record {
        [_, _, kind, marker, ..] => (kind, marker),
        _ => (0, 0),
    };
    let blank = Event { kind: Kind::Unknown(kind), ..Event::unknown(time, processor) };
    match (marker, kind) {
        (MARKER_MESSAGE, _) => message(record, blank),
        (MARKER_TIMED, _) => Some(blank),
        (_, 0x01..=0x04 | 0x10 | 0x11) => hooked(record, blank),
        (_, 0x0A) => classic(record, blank, Pointer::Bits32, 48),
        (_, 0x14) => classic(record, blank, Pointer::Bits64, 48),
        (_, 0x0B) => classic(record, blank, Pointer::Bits32, 72),
        (_, 0x15) => classic(record, blank, Pointer::Bits64, 72),
        (_, 0x12) => manifest(record, blank, Pointer::Bits32),
        (_, 0x13) => manifest(record, blank, Pointer::Bits64),
        _ => Some(blank),
    }
    .unwrap_or(blank)
}

/// The record of a [`hook`].
#[inline]
fn hooked<'a>(record: &'a [u8], blank: Event<'a>) -> Option<Event<'a>> {
    let Hook { group, opcode, version, pointer, pid, tid, payload } = hook(record, first_word(record)?)?;
    let provider = hook_task(group, opcode);
    Some(Event { provider, kind: Kind::Classic, opcode, version, pointer, pid, tid, payload, ..blank })
}

/// Reads the short head of a kernel record, whose first eight bytes are `word`; `None` if it has another head.
///
/// SYSTEM_TRACE_HEADER and its COMPACT form: version, type, marker, size, hook, thread, process, time, CPU times.
/// PERFINFO_TRACE_HEADER: version, type, marker, size, hook, time; version bit 15 says that a PEBS index follows, bits
/// 8-10 how many performance counters do.
#[inline(always)]
pub(super) fn hook(record: &[u8], word: u64) -> Option<Hook<'_>> {
    let header = short_header(word)?;
    // Types come in pairs, the even one of 64 bits; but PERFINFO begins with an even one.
    let is_wide = (word >> 16 & 1 == 1) == (header == PERFINFO);
    let (tid, pid, counters) = match header {
        PERFINFO => (NO_ID, NO_ID, (word >> 15 & 1) + (word >> 8 & 7)),
        _ => {
            let mut reader = Reader::at(record, 8);
            (reader.u32()?, reader.u32()?, 0)
        }
    };
    Some(Hook {
        group: (word >> 56) as u8,
        opcode: (word >> 48) as u8,
        version: word as u8,
        pointer: if is_wide { Pointer::Bits64 } else { Pointer::Bits32 },
        pid,
        tid,
        payload: record.get(header + 8 * counters as usize..)?,
    })
}

/// EVENT_TRACE_HEADER and its INSTANCE form: size, type, marker, opcode, level, version, thread, process, time, task.
fn classic<'a>(record: &'a [u8], blank: Event<'a>, pointer: Pointer, header: usize) -> Option<Event<'a>> {
    let mut reader = Reader::at(record, 4);
    let (opcode, _level, version) = (reader.u8()?, reader.u8()?, reader.u16()?);
    let (tid, pid) = (reader.u32()?, reader.u32()?);
    reader.skip(8)?;
    Some(Event {
        provider: reader.guid()?,
        kind: Kind::Classic,
        opcode,
        version: version as u8,
        pointer,
        pid,
        tid,
        payload: record.get(header..)?,
        ..blank
    })
}

/// EVENT_HEADER. Bit 0 of its flags says that extended items follow; the bitness flags of the API are not in files.
#[inline]
fn manifest<'a>(record: &'a [u8], blank: Event<'a>, pointer: Pointer) -> Option<Event<'a>> {
    let mut reader = Reader::at(record, 4);
    let flags = reader.u16()?;
    reader.skip(2)?;
    let (tid, pid) = (reader.u32()?, reader.u32()?);
    reader.skip(8)?;
    let provider = reader.guid()?;
    let (id, version) = (reader.u16()?, reader.u8()?);
    reader.skip(2)?;
    let opcode = reader.u8()?;
    let body = record.get(80..)?;
    let items = if flags & 1 != 0 { items_length(body) } else { 0 };
    let (items, payload) = body.split_at_checked(items)?;
    Some(Event {
        provider,
        kind: Kind::Manifest(id),
        opcode,
        version,
        pointer,
        pid,
        tid,
        items,
        payload,
        ..blank
    })
}

/// The bytes that extended items take: bit 0 of an item's linkage says that another follows.
fn items_length(body: &[u8]) -> usize {
    let mut length = 0;
    loop {
        let mut reader = Reader::at(body, length);
        let (Some(size), Some(_kind), Some(linkage)) = (reader.u16(), reader.u16(), reader.u16()) else {
            return body.len();
        };
        length += usize::from(size).max(8);
        if linkage & 1 == 0 {
            return length;
        }
    }
}

/// A WPP message. Its strings live in the writer's symbols, so only its identity is of use here.
fn message<'a>(record: &'a [u8], blank: Event<'a>) -> Option<Event<'a>> {
    let mut reader = Reader::at(record, 4);
    let (number, options) = (reader.u16()?, reader.u16()?);
    if options & 0x1 != 0 {
        reader.skip(4)?;
    }
    let mut provider = Guid::ZERO;
    if options & 0x2 != 0 {
        provider = reader.guid()?;
    } else if options & 0x4 != 0 {
        reader.skip(4)?;
    }
    if options & 0x8 != 0 {
        reader.skip(8)?;
    }
    let (mut tid, mut pid) = (NO_ID, NO_ID);
    if options & 0x20 != 0 {
        (tid, pid) = (reader.u32()?, reader.u32()?);
    }
    let pointer = if options & 0x80 != 0 { Pointer::Bits32 } else { Pointer::Bits64 };
    Some(Event { provider, kind: Kind::Message(number), pointer, pid, tid, payload: reader.rest(), ..blank })
}
