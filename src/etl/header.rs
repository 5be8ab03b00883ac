//! The first record of a file: TRACE_LOGFILE_HEADER, and the clock that it defines.

use crate::event::{Event, Pointer, Ticks};

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
    /// Nominal speed of a processor in MHz.
    pub cpu_mhz: u32,
    /// When the log was closed; FILETIME, 0 if it never was.
    pub end: i64,
    /// When the machine was started; FILETIME, 0 where the writer left it out.
    pub boot: i64,
    /// The session's name; `Relogger` in files that were merged.
    pub session: String,
    /// The clock of all its times.
    pub clock: Clock,
}

/// Which clock a recording's times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// QueryPerformanceCounter.
    Qpc,
    /// System time: times are FILETIMEs, 100 ns units since 1601.
    SystemTime,
    /// The processor's cycle counter, at its nominal speed.
    CpuCycle,
}

/// Converts a recording's times.
///
/// The base is the time of the first record, which belongs to StartTime. The boot time in the header is *not* a base:
/// converted with it, times are wrong by 0.1 to 14 s in real files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kind of clock.
    pub kind: ClockKind,
    /// Units in a second; never 0.
    pub frequency: u64,
    /// The time of the first record.
    pub base: Ticks,
    /// The FILETIME that belongs to `base`.
    pub base_utc: i64,
}

/// 100 ns units in a second.
const FILETIME_PER_SECOND: i128 = 10_000_000;

impl Clock {
    /// Seconds since the recording's first record; negative before it.
    pub fn seconds(&self, time: Ticks) -> f64 {
        self.seconds_between(self.base, time)
    }

    /// Seconds from `from` to `to`.
    pub fn seconds_between(&self, from: Ticks, to: Ticks) -> f64 {
        (i128::from(to.0) - i128::from(from.0)) as f64 / self.frequency as f64
    }

    /// The FILETIME of a moment: UTC, in 100 ns units since 1601.
    pub fn filetime(&self, time: Ticks) -> i64 {
        let since = i128::from(time.0) - i128::from(self.base.0);
        let filetime = i128::from(self.base_utc) + since * FILETIME_PER_SECOND / i128::from(self.frequency);
        i64::try_from(filetime).unwrap_or(if filetime < 0 { i64::MIN } else { i64::MAX })
    }

    /// The moment of a FILETIME: the inverse of [`filetime`](Clock::filetime).
    pub fn moment(&self, filetime: i64) -> Ticks {
        let since = i128::from(filetime) - i128::from(self.base_utc);
        let ticks = since.saturating_mul(i128::from(self.frequency)) / FILETIME_PER_SECOND;
        let ticks = ticks.saturating_add(i128::from(self.base.0));
        Ticks(i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX }))
    }

    /// How many units of this clock `seconds` are.
    pub fn ticks(&self, seconds: f64) -> i64 {
        (seconds * self.frequency as f64) as i64
    }

    /// The moment `seconds` after the first record.
    pub fn at(&self, seconds: f64) -> Ticks {
        Ticks(self.base.0.saturating_add(self.ticks(seconds)))
    }
}

/// Reads the header record, the first event of the first buffer.
///
/// Offsets differ by pointer size only because of two stale name pointers in the middle (64-bit form verified on 12
/// files, 32-bit form on two).
pub(super) fn read(event: &Event<'_>) -> Option<LogHeader> {
    let mut r = event.reader();
    let buffer_size = r.u32()?;
    r.skip(4)?; // Version: informative only.
    let (os_build, processors, end) = (r.u32()?, r.u32()?, r.i64()?);
    r.skip(8)?; // TimerResolution, MaximumFileSize.
    let (mode, buffers_written) = (r.u32()?, r.u32()?);
    r.skip(4)?; // StartBuffers.
    let pointer_size = r.u32()?;
    let (events_lost, cpu_mhz) = (r.u32()?, r.u32()?);
    r.skip(2 * event.pointer.bytes())?; // LoggerName, LogFileName: addresses in a process long gone.
    r.skip(172 + 4)?; // TIME_ZONE_INFORMATION and padding.
    let (boot, perf_frequency, start) = (r.i64()?, r.u64()?, r.i64()?);
    let (clock_kind, buffers_lost) = (r.u32()?, r.u32()?);
    let session = r.utf16().to_string();
    let (kind, frequency) = match clock_kind {
        2 => (ClockKind::SystemTime, 10_000_000),
        3 => (ClockKind::CpuCycle, u64::from(cpu_mhz) * 1_000_000),
        _ => (ClockKind::Qpc, perf_frequency),
    };
    let base_utc = if kind == ClockKind::SystemTime { event.time.0 } else { start };
    Some(LogHeader {
        buffer_size,
        os_build,
        processors,
        pointer: if pointer_size == 4 { Pointer::Bits32 } else { Pointer::Bits64 },
        mode,
        buffers_written,
        events_lost,
        buffers_lost,
        cpu_mhz,
        end,
        boot,
        session,
        clock: Clock { kind, frequency: frequency.max(1), base: event.time, base_utc },
    })
}
