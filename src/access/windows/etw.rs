//! The descriptors of ETW sessions and providers.
//!
//! Windows keeps them in the registry, in `HKLM\SYSTEM\CurrentControlSet\Control\WMI\Security`, one binary value for
//! each GUID. EventAccessControl changes the value and tells the kernel; it can add an entry, but not take one away.

use std::ptr;

use windows_sys::Win32::System::Diagnostics::Etw::{
    EventAccessControl, EventAccessQuery, EventAccessRemove, EventSecurityAddDACL,
};
use windows_sys::core::GUID;

use crate::access::{CallError, Sid, rights};
use crate::guid::Guid;

use super::failed;
use super::registry::{Key, Value};

const SECURITY: &str = r"SYSTEM\CurrentControlSet\Control\WMI\Security";
const NOT_FOUND: u32 = 2;
const MORE_DATA: u32 = 234;
const INSUFFICIENT_BUFFER: u32 = 122;
/// No descriptor is larger: its lists have 16-bit sizes, and its SIDs 68 bytes.
const LARGEST: usize = 3 * 0x1_0000;

fn guid_of(guid: Guid) -> GUID {
    let [a, b, c, d, e, f, g, h, data4 @ ..] = guid.to_bytes();
    GUID {
        data1: u32::from_le_bytes([a, b, c, d]),
        data2: u16::from_le_bytes([e, f]),
        data3: u16::from_le_bytes([g, h]),
        data4,
    }
}

pub(super) fn stored(guid: Guid) -> Result<Option<Vec<u8>>, CallError> {
    let Some(key) = Key::open(SECURITY)? else { return Ok(None) };
    Ok(key.value(&guid.to_string())?.map(|value| value.bytes))
}

pub(super) fn applied(guid: Guid) -> Result<Vec<u8>, CallError> {
    let raw = guid_of(guid);
    let mut bytes = vec![0u8; 1024];
    loop {
        let mut size = bytes.len() as u32;
        // SAFETY: `raw` and `size` live through the call, and `size` is the length of `bytes`.
        let code = unsafe { EventAccessQuery(&raw, bytes.as_mut_ptr().cast(), &mut size) };
        let size = size as usize;
        match code {
            0 => {
                bytes.truncate(size);
                return Ok(bytes);
            }
            MORE_DATA | INSUFFICIENT_BUFFER if size > bytes.len() && size <= LARGEST => bytes.resize(size, 0),
            code => return Err(failed("EventAccessQuery", guid, code)),
        }
    }
}

pub(super) fn allow(guid: Guid, sid: &Sid, rights: u32) -> Result<(), CallError> {
    let raw = guid_of(guid);
    // SAFETY: `raw` lives through the call; the bytes of `sid` are a whole SID, which the call only reads.
    let code = unsafe {
        EventAccessControl(
            &raw,
            EventSecurityAddDACL as u32,
            sid.bytes().as_ptr().cast_mut().cast(),
            rights,
            true,
        )
    };
    if code == 0 { Ok(()) } else { Err(failed("EventAccessControl", guid, code)) }
}

pub(super) fn remove(guid: Guid) -> Result<(), CallError> {
    // SAFETY: the GUID lives through the call.
    let code = unsafe { EventAccessRemove(&guid_of(guid)) };
    if matches!(code, 0 | NOT_FOUND) { Ok(()) } else { Err(failed("EventAccessRemove", guid, code)) }
}

/// Stores a descriptor byte for byte.
///
/// The kernel is told of changes by EventAccessControl alone. So an entry for nobody is added: that changes no rights,
/// and makes Windows read the new value and hand it on. Then the bytes are stored again without that entry. The kernel
/// keeps it until it reads the value the next time; it gives nothing.
pub(super) fn store(guid: Guid, descriptor: &[u8]) -> Result<(), CallError> {
    let before = stored(guid)?;
    let name = guid.to_string();
    let key = Key::create(SECURITY)?;
    key.set(&name, &Value::binary(descriptor))?;
    if let Err(error) = allow(guid, &Sid::nobody(), rights::bits::QUERY) {
        // What the kernel was not told must not be taken for done.
        match before {
            Some(bytes) => key.set(&name, &Value::binary(&bytes))?,
            None => key.unset(&name)?,
        }
        return Err(error);
    }
    key.set(&name, &Value::binary(descriptor))
}

// A null system name, here and in the other calls, is this machine.
pub(super) const THIS_MACHINE: *const u16 = ptr::null();
