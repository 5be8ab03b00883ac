//! The machine: processors, volumes, paths; and losses that a session reports as events.

use crate::bytes::Utf16;
use crate::event::Event;

/// The processors and memory of the machine (SystemConfig 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu<'a> {
    /// Nominal speed.
    pub mhz: u32,
    /// Logical processors.
    pub processors: u32,
    /// Memory in MB.
    pub memory_mb: u32,
    /// The machine's name.
    pub computer: Utf16<'a>,
    /// 0 x86, 9 x64, 12 ARM64; `None` in the older, shorter records.
    pub architecture: Option<u16>,
    /// The highest address of user mode; 0 where the record does not say. Above 2 GiB on a 32-bit system with /3GB.
    pub highest_user_address: u64,
}

/// Version 3, 64-bit: 828 bytes, names at 20 and 532, pointers at 800 (verified on net.4.5.2.x64.etl).
pub(super) fn decode_cpu<'a>(event: &Event<'a>) -> Option<Cpu<'a>> {
    let mut r = event.reader();
    let (mhz, processors, memory_mb) = (r.u32()?, r.u32()?, r.u32()?);
    r.skip(8)?;
    let mut names = r;
    let computer = names.utf16();
    let mut cpu = Cpu { mhz, processors, memory_mb, computer, architecture: None, highest_user_address: 0 };
    // 256 and 134 characters of names, then pointers.
    if event.version >= 2 && r.skip(512 + 268 + event.pointer.bytes()).is_some() {
        cpu.highest_user_address = event.pointer.read(&mut r).unwrap_or(0);
        cpu.architecture = r.u16();
    }
    Some(cpu)
}

/// Facts about the machine's volumes that a merge adds (SysConfig).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SysConfig<'a> {
    /// What the system is called.
    Build {
        /// For instance `9200.16384.amd64fre.win8_rtm.120725-1247`.
        lab: Utf16<'a>,
        /// For instance `Windows Server 2012 Datacenter`.
        product: Utf16<'a>,
    },
    /// Where Windows is.
    Paths {
        /// For instance `C:\Windows\system32`.
        system: Utf16<'a>,
        /// For instance `C:\Windows\`.
        windows: Utf16<'a>,
    },
    /// A device path and the drive that stands for it; both end in a backslash.
    Volume {
        /// For instance `\Device\HarddiskVolume2\`.
        nt: Utf16<'a>,
        /// For instance `C:\`.
        dos: Utf16<'a>,
    },
}

/// Verified on net.4.5.2.x64.etl.
pub(super) fn decode_sys_config<'a>(event: &Event<'a>) -> Option<Option<SysConfig<'a>>> {
    let mut r = event.reader();
    Some(Some(match event.opcode {
        32 => {
            r.skip(8)?;
            SysConfig::Build { lab: r.utf16(), product: r.utf16() }
        }
        33 => SysConfig::Paths { system: r.utf16(), windows: r.utf16() },
        35 => SysConfig::Volume { nt: r.utf16(), dos: r.utf16() },
        _ => return Some(None),
    }))
}

/// What a real-time session could not deliver (RT_LostEvent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// An event.
    Event,
    /// A buffer of events.
    Buffer,
    /// A file of buffers.
    File,
}
