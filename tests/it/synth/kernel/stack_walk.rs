//! Stacks of other events: event group 0x18. Frames are leaf first.
//!
//! The event that a stack belongs to is told by its time and thread; a stack's own time is when it was taken.

use crate::synth::Event;

const GROUP: u8 = 0x18;

/// The frames themselves.
pub fn full(of: i64, process: u32, thread: u32, frames: &[u64]) -> Event {
    let frames = frames.to_vec();
    Event::kernel(GROUP, 32, 2, move |bytes| bytes.i64(of).u32(process).u32(thread).ptrs(&frames))
}

/// The kernel part, as a key that stands for the frames.
pub fn kernel_key(of: i64, process: u32, thread: u32, key: u64) -> Event {
    Event::kernel(GROUP, 37, 2, move |bytes| bytes.i64(of).u32(process).u32(thread).ptr(key))
}

/// The user part, as a key that stands for the frames.
pub fn user_key(of: i64, process: u32, thread: u32, key: u64) -> Event {
    Event::kernel(GROUP, 38, 2, move |bytes| bytes.i64(of).u32(process).u32(thread).ptr(key))
}

/// What a key stands for, told when it begins.
pub fn key_create(key: u64, frames: &[u64]) -> Event {
    definition(34, key, frames)
}

/// What a key stood for, told when it ends.
pub fn key_delete(key: u64, frames: &[u64]) -> Event {
    definition(35, key, frames)
}

/// What a key stands for, told when the session ends.
pub fn key_rundown(key: u64, frames: &[u64]) -> Event {
    definition(36, key, frames)
}

fn definition(kind: u8, key: u64, frames: &[u64]) -> Event {
    let frames = frames.to_vec();
    Event::kernel(GROUP, kind, 2, move |bytes| bytes.ptr(key).ptrs(&frames))
}
