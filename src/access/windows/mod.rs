//! The calls of Windows that grants are made of: each behind one safe function, with the reason why it is sound.

mod accounts;
mod etw;
mod group;
mod local;
mod lsa;
mod record;
mod registry;

pub use accounts::{Caller, Elevation, Named, account, caller, groups, holds_privilege, name};
pub use local::LocalMachine;

use super::CallError;

fn failed(call: &'static str, object: impl ToString, code: u32) -> CallError {
    CallError { call, object: object.to_string(), code }
}

/// UTF-16 with its terminator.
fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// `length` units at `text`.
///
/// # Safety
///
/// `text` must point to `length` units that can be read, or `length` be 0.
unsafe fn narrow(text: *const u16, length: usize) -> String {
    if length == 0 || text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(text, length) })
}
