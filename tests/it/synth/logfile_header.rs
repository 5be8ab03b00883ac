//! The first record of a file: TRACE_LOGFILE_HEADER.

use super::{Bytes, Event, IntoEvent};

/// The clock of a trace's times.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// Type 0, in practice the same as QPC.
    Raw { freq: i64 },
    /// Type 1: the performance counter, `freq` ticks a second.
    Qpc { freq: i64 },
    /// Type 2: FILETIME.
    SystemTime,
    /// Type 3: the processor's cycle counter.
    CpuCycles { mhz: u32 },
}

impl Clock {
    fn kind(self) -> u32 {
        match self {
            Clock::Raw { .. } => 0,
            Clock::Qpc { .. } => 1,
            Clock::SystemTime => 2,
            Clock::CpuCycles { .. } => 3,
        }
    }

    /// Ticks a second.
    pub(super) fn frequency(self) -> i64 {
        match self {
            Clock::Raw { freq } | Clock::Qpc { freq } => freq,
            Clock::SystemTime => 10_000_000,
            Clock::CpuCycles { mhz } => i64::from(mhz) * 1_000_000,
        }
    }
}

/// The fields that tests vary; times are FILETIME.
#[derive(Clone, Debug)]
pub(super) struct LogfileHeader {
    pub buffer_size: u32,
    pub build: u32,
    pub cpus: u32,
    pub end_time: i64,
    pub mode: u32,
    pub buffers_written: u32,
    pub pointer_size: usize,
    pub events_lost: u32,
    pub cpu_mhz: u32,
    pub boot_time: i64,
    pub clock: Clock,
    pub start_time: i64,
    pub buffers_lost: u32,
    pub session: String,
    pub file: String,
}

impl From<LogfileHeader> for Event {
    fn from(header: LogfileHeader) -> Event {
        Event::kernel(0x00, 0, 2, move |bytes| header.lay(bytes)).by(4, 8)
    }
}

impl LogfileHeader {
    fn lay(&self, bytes: Bytes) -> Bytes {
        let cpu_mhz = match self.clock {
            Clock::CpuCycles { mhz } => mhz,
            _ => self.cpu_mhz,
        };
        // The counter's frequency is told whatever the clock.
        let perf_freq = match self.clock {
            Clock::Raw { freq } | Clock::Qpc { freq } => freq,
            Clock::SystemTime | Clock::CpuCycles { .. } => 10_000_000,
        };
        let bytes = bytes
            .u32(self.buffer_size)
            .raw(&[10, 0, 1, 5]) // version: major, minor, sub, sub-minor
            .u32(self.build)
            .u32(self.cpus)
            .i64(self.end_time)
            .u32(156_250) // timer resolution, 100 ns
            .u32(0) // maximum file size
            .u32(self.mode)
            .u32(self.buffers_written)
            .u32(1) // start buffers
            .u32(u32::try_from(self.pointer_size).expect("4 or 8"))
            .u32(self.events_lost)
            .u32(cpu_mhz)
            .ptr(0) // two stale pointers to the names
            .ptr(0);
        Self::lay_time_zone(bytes)
            .zeros(4)
            .i64(self.boot_time)
            .i64(perf_freq)
            .i64(self.start_time)
            .u32(self.clock.kind())
            .u32(self.buffers_lost)
            .utf16z(&self.session)
            .utf16z(&self.file)
    }

    /// Central Europe: 172 bytes.
    fn lay_time_zone(bytes: Bytes) -> Bytes {
        let october = [0, 10, 0, 5, 3, 0, 0, 0]; // the last Sunday, 3:00
        let march = [0, 3, 0, 5, 2, 0, 0, 0];
        let bytes = bytes.i32(-60).utf16_field("@tzres.dll,-322", 32);
        let bytes = october.into_iter().fold(bytes, Bytes::u16).i32(0).utf16_field("@tzres.dll,-321", 32);
        march.into_iter().fold(bytes, Bytes::u16).i32(-60)
    }
}
