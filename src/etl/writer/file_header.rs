//! TRACE_LOGFILE_HEADER, written: the first record of a file.

use crate::bytes::Reader;
use crate::clock::ClockKind;
use crate::event::{Pointer, Ticks};
use crate::origin::Platform;

use super::super::header::MODE_COMPRESSED;
use super::super::record;
use super::Ending;
use super::records::Hooked;

/// Everything that the first record of a file says; the reader's [`LogHeader`](crate::etl::LogHeader) has what matters of it.
/// What is known only in the end ([`Ending`], the number of buffers) the writer fills in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The moment that belongs to `start`.
    pub base: Ticks,
    /// The process that started the log, and its thread.
    pub writer: (u32, u32),
    /// The pointer width of the machine.
    pub pointer: Pointer,
    /// The build number of the operating system.
    pub os_build: u32,
    /// Logical processors of the machine.
    pub processors: u32,
    /// The largest size of the file in MB; 0 without a limit.
    pub maximum_size: u32,
    /// LogFileMode; the bit of compressed files is the writer's.
    pub mode: u32,
    /// What else it says of the machine and of Windows.
    pub platform: Platform,
    /// Units of the performance counter in a second.
    pub frequency: u64,
    /// When the log began; FILETIME.
    pub start: i64,
    /// The clock of all times.
    pub clock: ClockKind,
    /// The session's name.
    pub session: String,
    /// The file's name.
    pub file: String,
}

impl FileHeader {
    /// The record, for [`Writer::new`](super::Writer::new).
    pub fn record(&self) -> Vec<u8> {
        let Platform { version, timer_resolution, cpu_mhz, boot, time_zone } = self.platform;
        let mut payload = Vec::with_capacity(512);
        let u32s = |payload: &mut Vec<u8>, values: &[u32]| {
            values.iter().for_each(|value| payload.extend_from_slice(&value.to_le_bytes()));
        };
        u32s(&mut payload, &[0, u32::from_le_bytes(version), self.os_build, self.processors]);
        payload.extend_from_slice(&[0; 8]); // EndTime
        let pointer = self.pointer.bytes() as u32;
        u32s(&mut payload, &[timer_resolution, self.maximum_size, self.mode, 0, 1, pointer, 0, cpu_mhz]);
        // LoggerName and LogFileName: addresses that mean nothing in a file.
        payload.resize(payload.len() + 2 * self.pointer.bytes(), 0);
        payload.extend_from_slice(&time_zone);
        payload.extend_from_slice(&[0; 4]);
        payload.extend_from_slice(&boot.to_le_bytes());
        payload.extend_from_slice(&self.frequency.to_le_bytes());
        payload.extend_from_slice(&self.start.to_le_bytes());
        let clock = match self.clock {
            ClockKind::Qpc => 1,
            ClockKind::SystemTime => 2,
            ClockKind::CpuCycle => 3,
        };
        u32s(&mut payload, &[clock, 0]);
        for text in [&self.session, &self.file] {
            payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        let (pid, tid) = self.writer;
        let hooked = Hooked { group: 0, opcode: 0, version: 2, pointer: self.pointer, time: self.base };
        hooked.system(pid, tid, &payload)
    }
}

/// Where LogFileMode stands.
const MODE: usize = 32;

/// What a header says that another file's may not.
pub(super) struct Patch {
    pub(super) buffer_size: u32,
    pub(super) compressed: bool,
    pub(super) buffers: u32,
    pub(super) ending: Ending,
}

impl Patch {
    /// Writes it into a header record.
    pub(super) fn apply(&self, record: &mut [u8]) {
        let event = record::decode(record, Ticks(0), 0);
        let fields = record.len() - event.payload.len();
        // Two pointers stand between the first fields and the last ones.
        let buffers_lost = if event.pointer == Pointer::Bits32 { 268 } else { 276 };
        let mode = Reader::at(event.payload, MODE).u32().unwrap_or_default();
        let mode = if self.compressed { mode | MODE_COMPRESSED } else { mode & !MODE_COMPRESSED };
        let Ending { end, events_lost, buffers_lost: lost } = self.ending;
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = record.get_mut(fields + at..fields + at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(0, &self.buffer_size.to_le_bytes());
        put(16, &end.to_le_bytes());
        put(MODE, &mode.to_le_bytes());
        put(36, &self.buffers.to_le_bytes());
        put(48, &events_lost.to_le_bytes());
        put(buffers_lost, &lost.to_le_bytes());
    }
}
