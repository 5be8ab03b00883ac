//! The registry of this Windows, as far as counters go. It is only read.

use std::ptr;

use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_READ, RegCloseKey, RegEnumKeyExW, RegEnumValueW, RegOpenKeyExW,
};

use super::wide;
use crate::counters::registry::{PERFLIB, Registry, SERVICES, Value};

/// The longest name of a key, with the zero.
const KEY_NAME: usize = 256;

/// The longest name of a value, with the zero.
const VALUE_NAME: usize = 16_384;

/// The longest value that is read, in bytes. The names of a big machine have a few MB.
const MOST_BYTES: usize = 64 << 20;

/// So many keys and values are read of a key.
const MOST: usize = 100_000;

/// An open key.
struct Key(HKEY);

impl Key {
    fn open(path: &str) -> Option<Key> {
        let (path, mut key) = (wide(path), ptr::null_mut());
        // SAFETY: the path ends with 0, and the key is written to a place of our own.
        let code = unsafe { RegOpenKeyExW(HKEY_LOCAL_MACHINE, path.as_ptr(), 0, KEY_READ, &mut key) };
        (code == 0).then_some(Key(key))
    }

    fn keys(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut name = [0_u16; KEY_NAME];
        loop {
            let mut length = name.len() as u32;
            // SAFETY: the key is open, and `length` is the room for the name.
            let code = unsafe {
                RegEnumKeyExW(
                    self.0,
                    names.len() as u32,
                    name.as_mut_ptr(),
                    &mut length,
                    ptr::null(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            if code != 0 || names.len() >= MOST {
                return names;
            }
            names.push(String::from_utf16_lossy(name.get(..length as usize).unwrap_or_default()));
        }
    }

    fn values(&self) -> Vec<(String, Value)> {
        let mut values = Vec::new();
        let (mut name, mut data) = (vec![0_u16; VALUE_NAME], vec![0_u8; 1 << 16]);
        let mut index = 0;
        while index < MOST {
            let (mut length, mut kind, mut size) = (name.len() as u32, 0, data.len() as u32);
            // SAFETY: the key is open; `length` and `size` are the room for the name and the data.
            let code = unsafe {
                RegEnumValueW(
                    self.0,
                    index as u32,
                    name.as_mut_ptr(),
                    &mut length,
                    ptr::null(),
                    &mut kind,
                    data.as_mut_ptr(),
                    &mut size,
                )
            };
            match code {
                0 => {
                    let name = String::from_utf16_lossy(name.get(..length as usize).unwrap_or_default());
                    let data = data.get(..size as usize).unwrap_or_default().to_vec();
                    values.push((name, Value { kind, data }));
                }
                ERROR_MORE_DATA if data.len() < MOST_BYTES => {
                    data.resize(data.len() * 4, 0);
                    continue;
                }
                // Longer than anything that matters here.
                ERROR_MORE_DATA => {}
                _ => break,
            }
            index += 1;
        }
        values
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the key is open, and this is its only owner.
        unsafe { RegCloseKey(self.0) };
    }
}

/// The services that count something: those with a key `Performance`.
pub fn services() -> Vec<String> {
    let names = Key::open(SERVICES).map(|services| services.keys()).unwrap_or_default();
    let counts = |name: &String| Key::open(&format!(r"{SERVICES}\{name}\Performance")).is_some();
    names.into_iter().filter(counts).collect()
}

/// What the registry says of counters. Keys that this user may not read are left out.
pub fn registry() -> Registry {
    let mut all = Registry::default();
    let mut add = |path: &str| {
        let Some(key) = Key::open(path) else { return };
        all.add(path);
        key.values().into_iter().for_each(|(name, value)| all.set(path, &name, value));
    };
    add(PERFLIB);
    add(&format!(r"{PERFLIB}\009"));
    let providers = format!(r"{PERFLIB}\_V2Providers");
    for provider in Key::open(&providers).map(|key| key.keys()).unwrap_or_default() {
        add(&format!(r"{providers}\{provider}"));
    }
    for service in services() {
        add(&format!(r"{SERVICES}\{service}"));
        add(&format!(r"{SERVICES}\{service}\Performance"));
        add(&format!(r"{SERVICES}\{service}\Linkage"));
    }
    all
}
