//! The names of files: event group 4.

use crate::synth::Event;

const GROUP: u8 = 0x04;

/// From now on a key means this file.
pub fn created(key: u64, path: &str) -> Event {
    name(32, key, path)
}

/// Until now a key meant this file.
pub fn deleted(key: u64, path: &str) -> Event {
    name(35, key, path)
}

/// A key means this file, as the rundown has it.
pub fn rundown(key: u64, path: &str) -> Event {
    name(36, key, path)
}

fn name(kind: u8, key: u64, path: &str) -> Event {
    let path = path.to_owned();
    Event::kernel(GROUP, kind, 2, move |bytes| bytes.ptr(key).utf16z(&path))
}
