//! Keys and values below HKEY_LOCAL_MACHINE, in the 64-bit view.

use std::ptr;

use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_READ, KEY_WOW64_64KEY, KEY_WRITE, REG_BINARY, REG_MULTI_SZ, RegCloseKey,
    RegCreateKeyExW, RegDeleteTreeW, RegDeleteValueW, RegEnumKeyExW, RegOpenKeyExW, RegQueryValueExW,
    RegSetValueExW,
};

use crate::access::CallError;

use super::{failed, wide};

const NOT_FOUND: u32 = 2;
const MORE_DATA: u32 = 234;
const NO_MORE_ITEMS: u32 = 259;
/// More than any value of ours has.
const LARGEST: usize = 1 << 20;

/// An open key.
pub(super) struct Key {
    handle: HKEY,
    path: String,
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    kind: u32,
    pub(super) bytes: Vec<u8>,
}

impl Value {
    pub(super) fn binary(bytes: &[u8]) -> Value {
        Value { kind: REG_BINARY, bytes: bytes.to_vec() }
    }

    /// Lines of text.
    pub(super) fn lines(lines: impl IntoIterator<Item = String>) -> Value {
        let units = lines.into_iter().flat_map(|line| wide(&line)).chain([0]);
        Value { kind: REG_MULTI_SZ, bytes: units.flat_map(u16::to_le_bytes).collect() }
    }

    /// The lines of a text.
    pub(super) fn text(&self) -> Vec<String> {
        let (units, _) = self.bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        let lines = units.split(|unit| *unit == 0).filter(|line| !line.is_empty());
        lines.map(String::from_utf16_lossy).collect()
    }
}

impl Key {
    /// A key to read, if it is there.
    pub(super) fn open(path: &str) -> Result<Option<Key>, CallError> {
        let (text, mut handle) = (wide(path), ptr::null_mut());
        // SAFETY: the path ends with 0, and the result lives through the call.
        let code = unsafe {
            RegOpenKeyExW(HKEY_LOCAL_MACHINE, text.as_ptr(), 0, KEY_READ | KEY_WOW64_64KEY, &mut handle)
        };
        match code {
            0 => Ok(Some(Key { handle, path: path.to_owned() })),
            NOT_FOUND => Ok(None),
            code => Err(failed("RegOpenKeyExW", format!("HKLM\\{path}"), code)),
        }
    }

    /// A key to write, made if it is not there.
    pub(super) fn create(path: &str) -> Result<Key, CallError> {
        let (text, mut handle) = (wide(path), ptr::null_mut());
        // SAFETY: the path ends with 0; without security attributes the key inherits its parent's; the result lives
        // through the call.
        let code = unsafe {
            RegCreateKeyExW(
                HKEY_LOCAL_MACHINE,
                text.as_ptr(),
                0,
                ptr::null(),
                0,
                KEY_READ | KEY_WRITE | KEY_WOW64_64KEY,
                ptr::null(),
                &mut handle,
                ptr::null_mut(),
            )
        };
        if code == 0 {
            return Ok(Key { handle, path: path.to_owned() });
        }
        Err(failed("RegCreateKeyExW", format!("HKLM\\{path}"), code))
    }

    /// Deletes a key with all that is in it, in one call together with those above it, up to `top`, that have no other
    /// key in them.
    pub(super) fn delete(path: &str, top: &str) -> Result<(), CallError> {
        let mut path = path;
        while path != top {
            let Some((parent, name)) = path.rsplit_once('\\') else { break };
            let others = match Key::open(parent)? {
                Some(parent) => parent.keys()?.iter().any(|other| other != name),
                None => false,
            };
            if others {
                break;
            }
            path = parent;
        }
        let Some((parent, name)) = path.rsplit_once('\\') else { return Ok(()) };
        if Key::open(path)?.is_none() {
            return Ok(());
        }
        let (parent, name) = (Key::create(parent)?, wide(name));
        // SAFETY: the key is open, and the name ends with 0.
        let code = unsafe { RegDeleteTreeW(parent.handle, name.as_ptr()) };
        if matches!(code, 0 | NOT_FOUND) {
            Ok(())
        } else {
            Err(failed("RegDeleteTreeW", format!("HKLM\\{path}"), code))
        }
    }

    fn failed(&self, call: &'static str, code: u32) -> CallError {
        failed(call, format!("HKLM\\{}", self.path), code)
    }

    pub(super) fn value(&self, name: &str) -> Result<Option<Value>, CallError> {
        let name = wide(name);
        let mut bytes = vec![0u8; 1024];
        loop {
            let (mut kind, mut size) = (0, bytes.len() as u32);
            // SAFETY: the key is open; the name ends with 0; `size` is the length of `bytes`; all live through the
            // call.
            let code = unsafe {
                RegQueryValueExW(
                    self.handle,
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
                    return Ok(Some(Value { kind, bytes }));
                }
                NOT_FOUND => return Ok(None),
                MORE_DATA if bytes.len() < LARGEST => bytes.resize(bytes.len() * 4, 0),
                code => return Err(self.failed("RegQueryValueExW", code)),
            }
        }
    }

    pub(super) fn set(&self, name: &str, value: &Value) -> Result<(), CallError> {
        let (name, bytes) = (wide(name), &value.bytes);
        // SAFETY: the key is open; the name ends with 0; the bytes are as many as is said.
        let code = unsafe {
            RegSetValueExW(self.handle, name.as_ptr(), 0, value.kind, bytes.as_ptr(), bytes.len() as u32)
        };
        if code == 0 { Ok(()) } else { Err(self.failed("RegSetValueExW", code)) }
    }

    /// Deletes a value, if it is there.
    pub(super) fn unset(&self, name: &str) -> Result<(), CallError> {
        let name = wide(name);
        // SAFETY: the key is open, and the name ends with 0.
        let code = unsafe { RegDeleteValueW(self.handle, name.as_ptr()) };
        if matches!(code, 0 | NOT_FOUND) { Ok(()) } else { Err(self.failed("RegDeleteValueW", code)) }
    }

    /// The names of the keys in this one.
    pub(super) fn keys(&self) -> Result<Vec<String>, CallError> {
        let mut names = Vec::new();
        loop {
            // No key has a longer name than 255 characters.
            let mut name = [0u16; 256];
            let mut length = name.len() as u32;
            // SAFETY: the key is open; the buffer has `length` units; what is not wanted is null.
            let code = unsafe {
                RegEnumKeyExW(
                    self.handle,
                    names.len() as u32,
                    name.as_mut_ptr(),
                    &mut length,
                    ptr::null(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            match code {
                0 => {
                    names.push(String::from_utf16_lossy(name.get(..length as usize).unwrap_or_default()));
                }
                NO_MORE_ITEMS => return Ok(names),
                code => return Err(self.failed("RegEnumKeyExW", code)),
            }
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and open, and this is its last use.
        unsafe { RegCloseKey(self.handle) };
    }
}
