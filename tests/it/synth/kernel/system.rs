//! The session's own events (group 0), the machine (group 0x0B) and losses.

use crate::synth::{Bytes, Event, IntoEvent, guid};

/// Process, thread, image load and profile: the kernel flags of a sampling session as group masks.
pub const SAMPLING_MASKS: [u32; 8] = [0x0000_0007, 0x0000_0002, 0, 0, 0, 0, 0, 0];

/// The start rundown begins; the group masks in force.
pub fn extension(masks: [u32; 8]) -> Event {
    Event::kernel(0x00, 5, 2, move |bytes| lay_masks(bytes, masks))
}

/// The end rundown begins.
pub fn end_extension(masks: [u32; 8]) -> Event {
    Event::kernel(0x00, 32, 2, move |bytes| lay_masks(bytes, masks))
}

fn lay_masks(bytes: Bytes, masks: [u32; 8]) -> Bytes {
    const KERNEL_EVENT_VERSION: u32 = 42;
    masks.into_iter().fold(bytes, Bytes::u32).u32(KERNEL_EVENT_VERSION)
}

/// A rundown, at the start or at the end, is complete.
pub fn rundown_complete() -> Event {
    Event::kernel(0x00, 8, 2, |bytes| bytes)
}

/// The partition record that newer systems put beside the header.
pub fn partition_info() -> Event {
    Event::kernel(0x00, 80, 2, |bytes| bytes.zeros(48)).by(4, 8)
}

/// The machine's processors, version 3. `architecture`: 0 x86, 9 x64, 12 ARM64.
pub fn cpu_config(mhz: u32, processors: u32, computer: &str, architecture: u16) -> Event {
    cpu_config_of(mhz, processors, computer, architecture, None)
}

/// The same of a 32-bit machine that leaves its programs 3 GiB.
pub fn cpu_config_3gb() -> Event {
    cpu_config_of(2_000, 1, "OLD", 0, Some(0xbffe_ffff))
}

fn cpu_config_of(
    mhz: u32,
    processors: u32,
    computer: &str,
    architecture: u16,
    highest_user_address: Option<u64>,
) -> Event {
    let computer = computer.to_owned();
    Event::kernel(0x0B, 10, 3, move |bytes| {
        let usual = if bytes.pointer_size() == 4 { 0x7ffe_ffff } else { 0x7fff_fffe_ffff };
        let highest_user_address = highest_user_address.unwrap_or(usual);
        bytes
            .u32(mhz)
            .u32(processors)
            .u32(16_384) // memory, MB
            .u32(4_096) // page
            .u32(65_536) // allocation granularity
            .utf16_field(&computer, 256)
            .utf16_field("", 134) // domain
            .ptr(0) // hyper-threading
            .ptr(highest_user_address)
            .u16(architecture)
            .u16(6) // level
            .u16(0x9a03) // revision
            .u8(1) // no-execute
            .u8(1) // physical address extension
            .u32(0) // memory speed
    })
    .by(4, 8)
}

/// What a real-time stream lost: `kind` 32 an event, 33 a buffer, 34 a file.
pub fn lost(kind: u8) -> Event {
    Event::classic(guid("6a399ae0-4bc6-4de9-870b-3657f8947e7e"), kind, 0, |bytes| bytes)
}
