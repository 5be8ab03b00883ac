//! What a live session knows of the machine it runs on, as far as its events do not tell.

use crate::etl::Clock;
use crate::event::Pointer;

/// This machine, for whoever takes the events of a session.
#[derive(Clone, Debug)]
pub struct Host {
    /// The clock of all events.
    pub clock: Clock,
    /// Logical processors.
    pub processors: u32,
    /// The build number of Windows.
    pub os_build: u32,
    /// The pointer width.
    pub pointer: Pointer,
    /// The processor's architecture as SYSTEM_INFO counts them: 0 x86, 9 x64, 12 ARM64.
    pub architecture: u16,
    /// The machine's name.
    pub name: String,
    /// The sampling interval in force, in 100 ns.
    pub interval: u32,
    /// The Windows folder.
    pub windows: String,
    /// Its volumes: (`\Device\HarddiskVolume3`, `C:`).
    pub volumes: Vec<(String, String)>,
}
