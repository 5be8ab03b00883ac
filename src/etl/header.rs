//! The first record of a file: TRACE_LOGFILE_HEADER, and the clock that it defines.

use crate::clock::{Clock, ClockKind};
use crate::event::{Event, Pointer};
use crate::origin::Platform;

/// What the recording says of itself and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The session's buffer size in bytes; a file's header buffer may be smaller.
    pub buffer_size: u32,
    /// The build number of the operating system (9200, 19041, 26100).
    pub os_build: u32,
    /// Logical processors of the machine.
    pub processors: u32,
    /// The pointer width of the machine.
    pub pointer: Pointer,
    /// LogFileMode: 0x2 circular, 0x0400_0000 compressed, 0x1000_0000 no buffers per processor.
    pub mode: u32,
    /// Buffers in the file.
    pub buffers_written: u32,
    /// Events that the session could not write.
    pub events_lost: u32,
    /// Buffers that the session could not write.
    pub buffers_lost: u32,
    /// When the log was closed; FILETIME, 0 if it never was.
    pub end: i64,
    /// What it says of the machine and of Windows.
    pub platform: Platform,
    /// The session's name; `Relogger` in files that were merged.
    pub session: String,
    /// The clock of all its times.
    pub clock: Clock,
}

impl LogHeader {
    /// True if the session compressed its buffers.
    pub fn is_compressed(&self) -> bool {
        self.mode & MODE_COMPRESSED != 0
    }

    /// True if new buffers took the places of the oldest.
    pub fn is_circular(&self) -> bool {
        self.mode & MODE_CIRCULAR != 0
    }
}

/// The bit of LogFileMode for files of a bounded size.
const MODE_CIRCULAR: u32 = 0x2;

/// The bit of LogFileMode for compressed buffers.
pub(super) const MODE_COMPRESSED: u32 = 0x0400_0000;

/// Reads the header record, the first event of the first buffer.
///
/// Offsets differ by pointer size only because of two stale name pointers in the middle (64-bit form verified on 12
/// files, 32-bit form on two).
pub(super) fn read(event: &Event<'_>) -> Option<LogHeader> {
    let mut r = event.reader();
    let buffer_size = r.u32()?;
    let version = r.array()?;
    let (os_build, processors, end) = (r.u32()?, r.u32()?, r.i64()?);
    let timer_resolution = r.u32()?;
    r.skip(4)?; // MaximumFileSize.
    let (mode, buffers_written) = (r.u32()?, r.u32()?);
    r.skip(4)?; // StartBuffers.
    let pointer_size = r.u32()?;
    let (events_lost, cpu_mhz) = (r.u32()?, r.u32()?);
    r.skip(2 * event.pointer.bytes())?; // LoggerName, LogFileName: addresses in a process long gone.
    let time_zone = r.array()?;
    r.skip(4)?; // Padding.
    let (boot, perf_frequency, start) = (r.i64()?, r.u64()?, r.i64()?);
    let (clock_kind, buffers_lost) = (r.u32()?, r.u32()?);
    let session = r.utf16().to_string();
    let (kind, frequency) = match clock_kind {
        2 => (ClockKind::SystemTime, 10_000_000),
        3 => (ClockKind::CpuCycle, u64::from(cpu_mhz) * 1_000_000),
        _ => (ClockKind::Qpc, perf_frequency),
    };
    let base_utc = if kind == ClockKind::SystemTime { event.time.0 } else { start };
    let platform = Platform { version, timer_resolution, cpu_mhz, boot, time_zone };
    Some(LogHeader {
        buffer_size,
        os_build,
        processors,
        pointer: if pointer_size == 4 { Pointer::Bits32 } else { Pointer::Bits64 },
        mode,
        buffers_written,
        events_lost,
        buffers_lost,
        end,
        platform,
        session,
        clock: Clock {
            kind,
            frequency: frequency.max(1),
            base: event.time,
            base_utc,
            utc_offset: platform.utc_offset(base_utc),
        },
    })
}
