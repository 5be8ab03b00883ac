//! What this machine and this process are: facts for the journal, and the memory that is left.

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::Security::{
    GetTokenInformation, TOKEN_INFORMATION_CLASS, TOKEN_QUERY, TokenElevation, TokenElevationType,
};
use windows_sys::Win32::System::ProcessStatus::{
    K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS, PROCESS_MEMORY_COUNTERS_EX,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::access::windows::{caller, holds_privilege};

use super::etw::wide;
use super::process;

/// (what, which), as far as the system says. Asks the system, and nothing of it is written down.
pub(super) fn facts() -> Vec<(&'static str, String)> {
    let yes =
        |known: Option<bool>| known.map_or("not known", |yes| if yes { "yes" } else { "no" }).to_owned();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let (memory, left) = (private_memory(), memory_left());
    vec![
        ("Windows", windows()),
        ("architecture", process::architecture().to_string()),
        ("processors that this process may use", processors.to_string()),
        ("elevated", yes(token(TokenElevation).map(|value| value != 0))),
        ("elevation type (1 the only token, 2 full, 3 filtered by UAC)", number(token(TokenElevationType))),
        ("account", caller().map_or("not known".to_owned(), |caller| caller.sid.to_string())),
        ("SeSystemProfilePrivilege in the token", yes(holds_privilege("SeSystemProfilePrivilege").ok())),
        ("SeDebugPrivilege in the token", yes(holds_privilege("SeDebugPrivilege").ok())),
        ("memory of this process, and what it could still have", format!("{memory}, {left} bytes")),
    ]
}

fn number(value: Option<u32>) -> String {
    value.map_or("not known".to_owned(), |value| value.to_string())
}

/// The version as `winver` shows it. The calls for it answer according to the program's manifest, the registry does not.
fn windows() -> String {
    let text = |name| registry_text(name).unwrap_or_default();
    let revision = registry_number(VERSION, "UBR").map(|revision| format!(".{revision}")).unwrap_or_default();
    format!(
        "{} {} {} build {}{revision}",
        text("ProductName"),
        text("DisplayVersion"),
        text("InstallationType"),
        text("CurrentBuildNumber")
    )
}

const VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

fn registry_text(name: &str) -> Option<String> {
    let mut text = [0_u16; 256];
    let mut size = size_of_val(&text) as u32;
    // SAFETY: both names end with 0; the size is that of the buffer; all live through the call.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            wide(VERSION).as_ptr(),
            wide(name).as_ptr(),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &mut size,
        )
    };
    let text = text.split(|unit| *unit == 0).next().unwrap_or_default();
    (status == 0).then(|| String::from_utf16_lossy(text))
}

/// Version of Windows as headers have it: major, minor, and two numbers that are the same in all real files. 0.0 before
/// Windows 10.
pub(super) fn version() -> [u8; 4] {
    let number = |name| registry_number(VERSION, name).and_then(|number| u8::try_from(number).ok());
    let [major, minor] = ["CurrentMajorVersionNumber", "CurrentMinorVersionNumber"].map(number);
    [major.unwrap_or(0), minor.unwrap_or(0), 1, 5]
}

/// The nominal speed of the first processor; 0 if the system does not say.
pub(super) fn cpu_mhz() -> u32 {
    registry_number(r"HARDWARE\DESCRIPTION\System\CentralProcessor\0", "~MHz").unwrap_or(0)
}

fn registry_number(key: &str, name: &str) -> Option<u32> {
    let mut value = 0_u32;
    let mut size = size_of_val(&value) as u32;
    // SAFETY: both names end with 0; the size is that of the number; all live through the call.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            wide(key).as_ptr(),
            wide(name).as_ptr(),
            RRF_RT_REG_DWORD,
            std::ptr::null_mut(),
            (&raw mut value).cast(),
            &mut size,
        )
    };
    (status == 0).then_some(value)
}

/// A class of the process's token that is one number.
fn token(class: TOKEN_INFORMATION_CLASS) -> Option<u32> {
    let mut token: HANDLE = std::ptr::null_mut();
    // SAFETY: the handle's place lives through the call.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return None;
    }
    let (mut value, mut size) = (0_u32, 0);
    // SAFETY: the length is that of the number, whose place lives through the call; the handle is open, closed once.
    let ok = unsafe {
        let ok =
            GetTokenInformation(token, class, (&raw mut value).cast(), size_of_val(&value) as u32, &mut size);
        CloseHandle(token);
        ok
    };
    (ok != 0).then_some(value)
}

/// Memory of this process that no other shares, in bytes; 0 if the system does not say.
pub(super) fn private_memory() -> u64 {
    let mut counters = PROCESS_MEMORY_COUNTERS_EX::default();
    let size = size_of_val(&counters) as u32;
    // SAFETY: the longer structure begins with the shorter one, as the size says; it lives through the call.
    let ok = unsafe {
        let place = (&raw mut counters).cast::<PROCESS_MEMORY_COUNTERS>();
        K32GetProcessMemoryInfo(GetCurrentProcess(), place, size)
    };
    // The same figure; one of them is 0 on Windows 7, the other under Wine.
    if ok == 0 { 0 } else { counters.PrivateUsage.max(counters.PagefileUsage) as u64 }
}

/// Memory that this process could still have, in bytes; all, if the system does not say.
pub(super) fn memory_left() -> u64 {
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the structure says its size and lives through the call.
    let ok = unsafe { GlobalMemoryStatusEx(&mut status) };
    if ok == 0 { u64::MAX } else { status.ullAvailPageFile }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_it_is() {
        assert!(private_memory() > 1 << 16, "{}", private_memory());
        assert!((1 << 20..1 << 60).contains(&memory_left()), "{}", memory_left());
        let facts = facts();
        let value = |name| &facts.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(value("Windows").contains("build"), "{}", value("Windows"));
        assert!(["yes", "no"].contains(&value("elevated").as_str()));
    }
}
