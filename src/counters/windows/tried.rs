//! Does the steps of a trial, in this process. A DLL may take it down.

use std::ffi::{CString, c_void};
use std::mem;
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, FARPROC, GetLastError};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_WITH_ALTERED_SEARCH_PATH, LoadLibraryExW,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_MULTI_SZ, RRF_RT_REG_SZ, RegGetValueW,
};

use super::{GLOBAL, ROOM_FOR_ALL, wide};
use crate::counters::block::MOST_BYTES;
use crate::counters::registry::SERVICES;
use crate::counters::trial::{Answer, Failure, Step, lengths_fit};

type Open = unsafe extern "system" fn(*const u16) -> u32;
type Collect = unsafe extern "system" fn(*const u16, *mut *mut c_void, *mut u32, *mut u32) -> u32;
type Close = unsafe extern "system" fn() -> u32;

/// A DLL that is being tried. It stays loaded until the process ends.
#[derive(Debug, Default)]
pub struct Tried(Option<Functions>);

#[derive(Clone, Copy, Debug)]
struct Functions {
    open: Open,
    collect: Collect,
    close: Close,
}

impl Tried {
    /// Does a step with the DLL of a service; [`Step::Load`] comes first.
    pub fn step(&mut self, step: Step, service: &str) -> Answer {
        let done = match (step, self.0) {
            (Step::Load, _) => load(service).map(|functions| {
                self.0 = Some(functions);
                Answer::Done
            }),
            (Step::Open, Some(functions)) => open(functions.open, service),
            (Step::Collect, Some(functions)) => collect(functions.collect),
            // SAFETY: the DLL is loaded, and has been opened.
            (Step::Close, Some(functions)) => returned(unsafe { (functions.close)() }),
            (_, None) => Err(Failure::NoValue { value: "Library".to_owned() }),
        };
        done.unwrap_or_else(Answer::Failed)
    }
}

fn returned(code: u32) -> Result<Answer, Failure> {
    if code == 0 { Ok(Answer::Done) } else { Err(Failure::Returned { code }) }
}

/// A text, whose variables are replaced, or several with a zero behind each.
fn text(key: &str, value: &str, is_several: bool) -> Option<Vec<u16>> {
    let (key, value) = (wide(key), wide(value));
    let mut text = vec![0_u16; 1 << 15];
    let mut size = 2 * text.len() as u32;
    // What is expanded is a plain text then; asking for the other type as well is an error.
    let kinds = if is_several { RRF_RT_REG_MULTI_SZ } else { RRF_RT_REG_SZ };
    // SAFETY: both names end with 0, and `size` is the room of `text` in bytes.
    let code = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            kinds,
            ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &mut size,
        )
    };
    text.truncate(size as usize / 2);
    (code == 0 && !text.is_empty()).then_some(text)
}

fn load(service: &str) -> Result<Functions, Failure> {
    let key = format!(r"{SERVICES}\{service}\Performance");
    let value = |name: &str| -> Result<String, Failure> {
        let text = text(&key, name, false).ok_or_else(|| Failure::NoValue { value: name.to_owned() })?;
        Ok(String::from_utf16_lossy(&text).trim_end_matches('\0').to_owned())
    };
    let [library, open, collect, close] = ["Library", "Open", "Collect", "Close"].map(value);
    let (library, open, collect, close) = (library?, open?, collect?, close?);
    let flags = if Path::new(&library).is_absolute() { LOAD_WITH_ALTERED_SEARCH_PATH } else { 0 };
    // SAFETY: the name ends with 0. What the DLL does when it is loaded is why this process is apart.
    let module = unsafe { LoadLibraryExW(wide(&library).as_ptr(), ptr::null_mut(), flags) };
    if module.is_null() {
        // SAFETY: reads a value of this thread.
        return Err(Failure::NotLoaded { code: unsafe { GetLastError() } });
    }
    let export = |name: &str| -> Result<FARPROC, Failure> {
        let missing = || Failure::NoExport { function: name.to_owned() };
        let text = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the module is loaded and stays so, and the name ends with 0.
        let found = unsafe { GetProcAddress(module, text.as_ptr().cast()) };
        if found.is_some() { Ok(found) } else { Err(missing()) }
    };
    let missing = |function: &str| Failure::NoExport { function: function.to_owned() };
    // SAFETY: a performance DLL has its three functions with these types ("Implementing OpenPerformanceData" and the
    // pages beside it).
    let functions = unsafe {
        (
            mem::transmute::<FARPROC, Option<Open>>(export(&open)?),
            mem::transmute::<FARPROC, Option<Collect>>(export(&collect)?),
            mem::transmute::<FARPROC, Option<Close>>(export(&close)?),
        )
    };
    Ok(Functions {
        open: functions.0.ok_or_else(|| missing(&open))?,
        collect: functions.1.ok_or_else(|| missing(&collect))?,
        close: functions.2.ok_or_else(|| missing(&close))?,
    })
}

fn open(open: Open, service: &str) -> Result<Answer, Failure> {
    let devices = text(&format!(r"{SERVICES}\{service}\Linkage"), "Export", true);
    // SAFETY: the names end with two zeros and live through the call, or there are none.
    returned(unsafe { open(devices.as_ref().map_or(ptr::null(), |devices| devices.as_ptr())) })
}

/// What stands behind the room, to see whether the DLL writes there, and how much of it.
const FENCE: u64 = 0xfe9c_e5a1_fe9c_e5a1;
const FENCES: usize = 512;

fn collect(collect: Collect) -> Result<Answer, Failure> {
    let what = wide(GLOBAL);
    let mut room = ROOM_FOR_ALL;
    loop {
        // Of eight bytes each, for blocks are aligned so.
        let mut buffer = vec![0_u64; room / 8];
        buffer.resize(room / 8 + FENCES, FENCE);
        let (mut at, mut bytes, mut objects) = (buffer.as_mut_ptr().cast(), room as u32, 0);
        // SAFETY: `bytes` is the room at `at`; all live through the call.
        let code = unsafe { collect(what.as_ptr(), &mut at, &mut bytes, &mut objects) };
        let fences = buffer.get(room / 8..).unwrap_or_default();
        if fences.iter().any(|fence| *fence != FENCE) {
            return Err(Failure::Overran);
        }
        match code {
            ERROR_MORE_DATA if room < MOST_BYTES => room *= 2,
            0 => {
                let given: Vec<u8> =
                    buffer.iter().flat_map(|eight| eight.to_le_bytes()).take(bytes as usize).collect();
                let fits = bytes as usize <= room && lengths_fit(&given, objects);
                return if fits { Ok(Answer::Gave { objects, bytes }) } else { Err(Failure::WrongLengths) };
            }
            code => return Err(Failure::Returned { code }),
        }
    }
}
