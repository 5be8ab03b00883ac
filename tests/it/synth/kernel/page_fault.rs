//! Page faults: event group 2.

use crate::synth::Event;

const GROUP: u8 = 0x02;

/// The key of the file that every hard fault reads.
pub const FILE: u64 = 0x8a00_1000;

/// A thread touched `address` at `instruction`: 10 the page was in memory, 11 it gets zeros, 12 a copy, 14 it has to be
/// read, and so on.
pub fn fault(kind: u8, address: u64, instruction: u64) -> Event {
    Event::kernel(GROUP, kind, 2, move |bytes| bytes.ptr(address).ptr(instruction))
}

/// The page at `address` was read for `thread`, which took from `began` to the record's time.
pub fn hard_fault(began: i64, address: u64, thread: u32, size: u32) -> Event {
    Event::kernel(GROUP, 32, 2, move |bytes| {
        // Offset in the file, and the file object.
        bytes.i64(began).u64(0x1_0000).ptr(address).ptr(FILE).u32(thread).u32(size)
    })
}
