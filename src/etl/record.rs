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
//! ([`group_task`]). All but the 32-bit PERFINFO, COMPACT, INSTANCE and MESSAGE forms are verified on real files.

use crate::bytes::Reader;
use crate::event::{Event, Kind, NO_ID, Pointer, Ticks};
use crate::guid::Guid;

/// The size and time of a record: what the merge needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes with header and extended items, without the padding behind it.
    pub(super) size: usize,
    /// `None` where a record carries no time (WPP without a timestamp, unknown header types).
    pub(super) time: Option<Ticks>,
}

/// How far into a record its time may lie.
pub(super) const LONGEST_HEAD: usize = 64;

const MARKER_VALID: u8 = 0x80;
const MARKER_MESSAGE: u8 = 0x90;
const MARKER_TIMED: u8 = 0xB0;

/// Looks at the record at the start of `bytes`; `None` when no valid record starts there.
#[inline]
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    head_within(bytes, bytes.len())
}

/// The same where only the first of `available` bytes are at hand: [`LONGEST_HEAD`] are enough.
#[inline]
pub(super) fn head_within(bytes: &[u8], available: usize) -> Option<Head> {
    let [a, b, kind, marker, c, d, e, f] = *bytes.first_chunk::<8>()?;
    if marker & MARKER_VALID == 0 || u32::from_le_bytes([a, b, kind, marker]) == u32::MAX {
        return None;
    }
    let size_first = usize::from(u16::from_le_bytes([a, b]));
    let size_second = usize::from(u16::from_le_bytes([c, d]));
    let (size, minimum, time) = match (marker, kind) {
        (MARKER_MESSAGE, _) => {
            let options = u16::from_le_bytes([e, f]);
            (size_first, 8, message_time(bytes, options))
        }
        // A ULONG32 size with 0xB0 on top: nobody writes it, nothing in it is for us.
        (MARKER_TIMED, _) => (size_first, 8, None),
        (_, 0x01 | 0x02) => (size_second, 32, time_at(bytes, 16)),
        (_, 0x03 | 0x04) => (size_second, 24, time_at(bytes, 16)),
        (_, 0x10 | 0x11) => (size_second, 16, time_at(bytes, 8)),
        (_, 0x0A | 0x14) => (size_first, 48, time_at(bytes, 16)),
        (_, 0x0B | 0x15) => (size_first, 72, time_at(bytes, 16)),
        (_, 0x12 | 0x13) => (size_first, 80, time_at(bytes, 16)),
        _ => (size_first, 8, None),
    };
    (size >= minimum && size <= available).then_some(Head { size, time })
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

/// Decodes the record at the start of `bytes`, whose [`head`] is `head`. `time` stands in for a time it lacks.
///
/// A record whose inner structure does not fit its size comes out with an empty payload.
#[inline]
pub(super) fn decode<'a>(bytes: &'a [u8], head: Head, time: Ticks, processor: u16) -> Event<'a> {
    let record = bytes.get(..head.size).unwrap_or(bytes);
    let time = head.time.unwrap_or(time);
    let (kind, marker) = match *record {
        [_, _, kind, marker, ..] => (kind, marker),
        _ => (0, 0),
    };
    let blank = Event {
        time,
        provider: Guid::ZERO,
        kind: Kind::Unknown(kind),
        opcode: 0,
        version: 0,
        pointer: Pointer::Bits64,
        processor,
        pid: NO_ID,
        tid: NO_ID,
        items: &[],
        payload: &[],
    };
    match (marker, kind) {
        (MARKER_MESSAGE, _) => message(record, blank),
        (MARKER_TIMED, _) => Some(blank),
        (_, 0x01) => system(record, blank, Pointer::Bits32, 32),
        (_, 0x02) => system(record, blank, Pointer::Bits64, 32),
        (_, 0x03) => system(record, blank, Pointer::Bits32, 24),
        (_, 0x04) => system(record, blank, Pointer::Bits64, 24),
        (_, 0x10) => perfinfo(record, blank, Pointer::Bits32),
        (_, 0x11) => perfinfo(record, blank, Pointer::Bits64),
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

/// SYSTEM_TRACE_HEADER and its COMPACT form: version, type, marker, size, hook, thread, process, time, CPU times.
#[inline]
fn system<'a>(record: &'a [u8], blank: Event<'a>, pointer: Pointer, header: usize) -> Option<Event<'a>> {
    let mut reader = Reader::new(record);
    let version = reader.u16()?;
    reader.skip(4)?;
    let (opcode, group) = (reader.u8()?, reader.u8()?);
    let (tid, pid) = (reader.u32()?, reader.u32()?);
    Some(Event {
        provider: hook_task(group, opcode),
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

/// PERFINFO_TRACE_HEADER: version, type, marker, size, hook, time. Version bit 15 says that a PEBS index follows,
/// bits 8-10 how many performance counters do.
#[inline]
fn perfinfo<'a>(record: &'a [u8], blank: Event<'a>, pointer: Pointer) -> Option<Event<'a>> {
    let mut reader = Reader::new(record);
    let version = reader.u16()?;
    reader.skip(4)?;
    let (opcode, group) = (reader.u8()?, reader.u8()?);
    let counters = usize::from(version >> 15) + usize::from(version >> 8 & 7);
    Some(Event {
        provider: hook_task(group, opcode),
        kind: Kind::Classic,
        opcode,
        version: version as u8,
        pointer,
        payload: record.get(16 + 8 * counters..)?,
        ..blank
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

const PROCESS: u8 = 0x03;
const IMAGE: u8 = 0x14;
const OPCODE_IMAGE_LOAD: u8 = 10;

/// The task of a kernel hook. Image load is hook 0x030A, type 10 of the *process* group, and belongs to the image
/// task all the same (verified on net.4.5.2.x64.etl).
#[inline]
fn hook_task(group: u8, opcode: u8) -> Guid {
    group_task(if group == PROCESS && opcode == OPCODE_IMAGE_LOAD { IMAGE } else { group })
}

/// The task GUID that a kernel event group stands for; [`Guid::ZERO`] with the group as its last byte for a group
/// that nobody has documented.
pub fn group_task(group: u8) -> Guid {
    GROUP_TASKS.get(usize::from(group)).copied().unwrap_or(Guid::from_u128(group as u128))
}

const GROUP_TASKS: [Guid; 31] = [
    Guid::from_u128(0x68fdd900_4a3e_11d1_84f4_0000f80464e3), // 00 EventTrace
    Guid::from_u128(0x3d6fa8d4_fe05_11d0_9dda_00c04fd7ba7c), // 01 DiskIo
    Guid::from_u128(0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c), // 02 PageFault
    Guid::from_u128(0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c), // 03 Process
    Guid::from_u128(0x90cbdc39_4a3e_11d1_84f4_0000f80464e3), // 04 FileIo
    Guid::from_u128(0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c), // 05 Thread
    Guid::from_u128(0x9a280ac0_c8e0_11d1_84e2_00c04fb998a2), // 06 TcpIp
    Guid::from_u128(0x3282fc76_feed_498e_8aa7_e70f459d430e), // 07 Job
    Guid::from_u128(0xbf3a50c5_a9c9_4988_a005_2df0b7c80f80), // 08 UdpIp
    Guid::from_u128(0xae53722e_c863_11d2_8659_00c04fa321a1), // 09 Registry
    Guid::from_u128(0x13976d09_a327_438c_950b_7f03192815c7), // 0A DbgPrint
    Guid::from_u128(0x01853a65_418f_4f36_aefc_dc0f1d2fd235), // 0B SystemConfig
    Guid::from_u128(0x99134383_5248_43fc_834b_529454e75df3), // 0C Spare, LBR
    Guid::from_u128(0x42695762_ea50_497a_9068_5cbbb35e0b95), // 0D WNF
    Guid::from_u128(0x0268a8b6_74fd_4302_9dd0_6e8f1795c0cf), // 0E Pool
    Guid::from_u128(0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc), // 0F PerfInfo
    Guid::from_u128(0x222962ab_6180_4b88_a825_346b75f2a24a), // 10 Heap
    Guid::from_u128(0x89497f50_effe_4440_8cf2_ce6b1cdcaca7), // 11 Object
    Guid::from_u128(0xe43445e0_0903_48c3_b878_ff0fccebdd04), // 12 Power
    Guid::from_u128(0xa9152f00_3f58_4bee_92a1_70c7d079d5dd), // 13 ModBound
    Guid::from_u128(0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518), // 14 Image
    Guid::from_u128(0xb2d14872_7c5b_463d_8419_ee9bf7d23e04), // 15 DPC
    Guid::from_u128(0x7687a439_f752_45b8_b741_321aec0f8df9), // 16 Cache manager
    Guid::from_u128(0x3ac66736_cc59_4cff_8115_8df50e39816b), // 17 CritSec
    Guid::from_u128(0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3), // 18 StackWalk
    Guid::from_u128(0x9aec974b_5b8e_4118_9b92_3186d8002ce5), // 19 UMS
    Guid::from_u128(0x45d8cccd_539f_4b72_a8b7_5c683142609a), // 1A ALPC
    Guid::from_u128(0xd837ca92_12b9_44a5_ad6a_3a65b3578aa8), // 1B SplitIo
    Guid::from_u128(0xc861d0e2_a2c1_4d36_9f9c_970bab943a12), // 1C ThreadPool
    Guid::from_u128(0x7f2a405c_69b5_4bf9_a1f5_30e8f1afab5e), // 1D Hypervisor
    Guid::from_u128(0x2ce9a149_effe_42f0_a635_a1d39e26c8f2), // 1E HypervisorX
];
