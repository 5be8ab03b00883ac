//! The performance counters of this Windows: `HKEY_PERFORMANCE_DATA`. Code of vendors runs in the process that asks, so
//! this is for a process of its own (the module `apart`).

mod event_log;
mod files;
mod registry;
mod tried;

use std::ptr;
use std::thread;
use std::time::Duration;

use windows_sys::Win32::Foundation::{ERROR_BUSY, ERROR_MORE_DATA};
use windows_sys::Win32::System::Diagnostics::Debug::{
    SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode,
};
use windows_sys::Win32::System::Registry::{HKEY_PERFORMANCE_DATA, RegCloseKey, RegQueryValueExW};

use super::block::MOST_BYTES;

pub use event_log::logged;
pub use files::Here;
pub use registry::{registry, services};
pub use tried::Tried;

/// The value that has the English names.
pub const NAMES: &str = "Counter 009";

/// What asks for all objects but those that take long.
pub const GLOBAL: &str = "Global";

/// Room for a few objects, and for all.
const FIRST_ROOM: usize = 64 << 10;
const ROOM_FOR_ALL: usize = 1 << 20;

/// How often a query is repeated while somebody else's holds it up, and the time between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Asks for objects by their indices ("2 238"), for [`GLOBAL`] or for [`NAMES`]; gives the value's bytes.
///
/// # Errors
/// The system's error code.
pub fn query(what: &str) -> Result<Vec<u8>, u32> {
    let is_long = !what.starts_with(|first: char| first.is_ascii_digit());
    let mut bytes = vec![0_u8; if is_long { ROOM_FOR_ALL } else { FIRST_ROOM }];
    let name = wide(what);
    let mut tries = 0;
    loop {
        let (mut kind, mut size) = (0, bytes.len() as u32);
        // SAFETY: the key is predefined; the name ends with 0; `size` is the length of `bytes`; all live through the call.
        let code = unsafe {
            RegQueryValueExW(
                HKEY_PERFORMANCE_DATA,
                name.as_ptr(),
                ptr::null(),
                &mut kind,
                bytes.as_mut_ptr(),
                &mut size,
            )
        };
        match code {
            0 => {
                bytes.truncate(size as usize);
                return Ok(bytes);
            }
            // The size is undefined then.
            ERROR_MORE_DATA if bytes.len() < MOST_BYTES => bytes.resize(bytes.len() * 2, 0),
            ERROR_BUSY if tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            code => return Err(code),
        }
    }
}

/// Lets go of the vendors' DLLs. Once, at the end: the next query would load them all again.
pub fn close() {
    // SAFETY: closing the predefined key only empties the caches of this process.
    unsafe { RegCloseKey(HKEY_PERFORMANCE_DATA) };
}

/// Lets a crash end this process at once, without a window that waits for somebody.
pub fn end_at_a_crash() {
    // SAFETY: no pointers.
    unsafe { SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX) };
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}
