//! What a source says of the machine that wrote its events, and of what it lost.
//!
//! A recording says it in its headers ([`Recording::origin`](crate::etl::Recording::origin)), a live session asks the
//! system. Whoever takes the events needs no more of either.

use crate::bytes::Reader;
use crate::clock::{Change, Clock, Ticks, Zone};
use crate::event::Pointer;

/// Where events come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The clock of all events.
    pub clock: Clock,
    /// The machine that writes them, as far as it is known before the first event.
    pub machine: Machine,
    /// What else the header says of it.
    pub platform: Platform,
    /// Which of its addresses are the kernel's.
    pub kernel: KernelSpace,
    /// The sampling interval in force at the first event, in 100 ns; `None` where only the events say.
    pub interval: Option<u32>,
    /// The Windows folder; empty where only the events say.
    pub windows: String,
    /// Its volumes: (`\Device\HarddiskVolume3`, `C:`); none where only the events say.
    pub volumes: Vec<(String, String)>,
    /// What did not make it to us.
    pub losses: Losses,
    /// Where buffers are missing.
    pub missing: Vec<Missing>,
}

/// Where events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The processor whose events they may be; `None` for any.
    pub processor: Option<u16>,
    /// They were before this moment, and after whatever is there of the processor before it.
    pub until: Ticks,
}

impl Origin {
    /// An origin of which no more is known than this.
    pub fn new(clock: Clock, machine: Machine) -> Origin {
        Origin {
            clock,
            machine,
            platform: Platform::default(),
            kernel: KernelSpace::default(),
            interval: None,
            windows: String::new(),
            volumes: Vec::new(),
            losses: Losses::default(),
            missing: Vec::new(),
        }
    }
}

/// The machine that recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Logical processors.
    pub processors: u32,
    /// The build number of the operating system.
    pub os_build: u32,
    /// The product's name, where the trace was merged on the machine; else empty.
    pub os_name: String,
    /// The pointer width.
    pub pointer: Pointer,
    /// The processor's architecture as SYSTEM_INFO counts them: 0 x86, 9 x64, 12 ARM64; `None` where it is not known.
    pub architecture: Option<u16>,
    /// The machine's name; empty where it is not known.
    pub name: String,
}

/// What else the header of a file says of the machine and of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Version of Windows: major, minor, and two numbers that readers only show.
    pub version: [u8; 4],
    /// Time between two interrupts of the system's clock, in 100 ns; 0 where it is not known.
    pub timer_resolution: u32,
    /// Nominal speed of a processor in MHz; 0 where it is not known.
    pub cpu_mhz: u32,
    /// When the machine was started, as FILETIME; 0 where it is not known.
    pub boot: i64,
    /// TIME_ZONE_INFORMATION; zeros are UTC.
    pub time_zone: [u8; 172],
}

impl Default for Platform {
    /// One of which nothing is known.
    fn default() -> Self {
        Platform { version: [0; 4], timer_resolution: 0, cpu_mhz: 0, boot: 0, time_zone: [0; 172] }
    }
}

impl Platform {
    /// What the wall clocks of the machine show at a FILETIME, in minutes east of UTC; `None` where that cannot be.
    pub fn utc_offset(&self, utc: i64) -> Option<i32> {
        zone(&self.time_zone)?.offset(utc)
    }
}

/// TIME_ZONE_INFORMATION: the bias, and for standard and for daylight saving time a name, a SYSTEMTIME and a bias.
fn zone(bytes: &[u8]) -> Option<Zone> {
    let mut r = Reader::new(bytes);
    let bias = r.i32()?;
    let mut change = || {
        r.skip(64)?; // The name.
        r.skip(2)?; // The year: 0 in a rule for every year.
        let (month, weekday, week, hour, minute) = (r.u16()?, r.u16()?, r.u16()?, r.u16()?, r.u16()?);
        r.skip(4)?; // Seconds and milliseconds.
        Some(Change { month, weekday, week, hour, minute, bias: r.i32()? })
    };
    Some(Zone { bias, standard: change()?, daylight: change()? })
}

/// What a source knows to be missing from its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the session could not write.
    pub events: u64,
    /// Buffers that the session could not write.
    pub buffers: u64,
    /// Buffers that are missing by their sequence numbers.
    pub sequence_gaps: u64,
}

/// Which addresses are the kernel's, for both pointer widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpace {
    /// Where it begins on a 32-bit system.
    start_32: u64,
}

/// The first kernel address of a 64-bit system, as ARM64 has it too; x64's own kernel begins above it.
const KERNEL_64: u64 = 0xFFFF_0000_0000_0000;
/// The first kernel address of a 32-bit system without /3GB.
const KERNEL_32: u64 = 0x8000_0000;
/// The 64 KiB below the kernel are nobody's.
const NO_MANS_LAND: u64 = 0x1_0000;

impl Default for KernelSpace {
    fn default() -> Self {
        KernelSpace { start_32: KERNEL_32 }
    }
}

impl KernelSpace {
    /// That of a machine with this highest user-mode address (SystemConfig): a 32-bit system may leave its programs 3 GiB.
    /// An address that leaves them less than the usual 2 GiB is not believed.
    pub fn above(highest_user_address: u64) -> Self {
        let start = highest_user_address.saturating_add(NO_MANS_LAND + 1);
        KernelSpace { start_32: if start <= 1 << 32 { start.max(KERNEL_32) } else { KERNEL_32 } }
    }

    /// True for an address of the kernel's on a system of this pointer width.
    pub fn contains(self, address: u64, pointer: Pointer) -> bool {
        address
            >= match pointer {
                Pointer::Bits32 => self.start_32,
                Pointer::Bits64 => KERNEL_64,
            }
    }
}
