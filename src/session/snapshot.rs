//! Takes the [`Inventory`]: processes, threads and modules by Toolhelp, drivers by EnumDeviceDrivers.

use std::fs::File;
use std::io::Read;

use windows_sys::Win32::Foundation::{ERROR_BAD_LENGTH, HANDLE, INVALID_HANDLE_VALUE, MAX_PATH};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, MODULEENTRY32W, Module32FirstW, Module32NextW, TH32CS_SNAPMODULE,
    TH32CS_SNAPMODULE32,
};
use windows_sys::Win32::System::Memory::{MEM_IMAGE, MEMORY_BASIC_INFORMATION, VirtualQueryEx};
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumDeviceDrivers, K32GetDeviceDriverFileNameW, K32GetMappedFileNameW,
};
use windows_sys::Win32::System::Threading::{
    IsWow64Process, OpenProcess, PROCESS_QUERY_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_VM_READ,
};

use crate::bytes::Reader;
use crate::event::Ticks;
use crate::mmap;
use crate::sink::{Inventory, Loaded, Running};

use super::process::{self, Owned, Privilege};
use super::undo;

/// Asks the system what runs. What it does not say is left out: the kernel's own lists have it, if they come.
pub(super) fn take(now: impl Fn() -> Ticks) -> Inventory {
    // Without it processes of other users are closed, and on Windows 11 24H2 the kernel is hidden.
    let debug = Privilege::enable(process::DEBUG);
    let mut inventory = Inventory { from: now(), ..Inventory::default() };
    for process::Entry { pid, parent, name } in process::all() {
        // The idle process has no name that anybody would know.
        if pid != 0 {
            let process = look_into(pid, &mut inventory);
            inventory.processes.push(Running { parent, name, ..process });
        }
    }
    inventory.threads = process::threads();
    let drivers = drivers();
    inventory.kernel_is_hidden = drivers.is_empty();
    inventory.modules.extend(drivers);
    inventory.until = now();
    // A program that is started later has no more rights than before.
    if let Ok(privilege) = debug {
        privilege.disable();
    }
    inventory
}

/// Adds a process's modules to the inventory, and gives what its handle says.
fn look_into(pid: u32, inventory: &mut Inventory) -> Running {
    let open = |rights| {
        // SAFETY: no pointers.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        (!handle.is_null()).then(|| Owned(handle))
    };
    let whole = open(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ);
    let handle = whole.as_ref().map(|handle| handle.0);
    let limited = if whole.is_none() { open(PROCESS_QUERY_LIMITED_INFORMATION) } else { None };
    let process = whole.as_ref().or(limited.as_ref());
    let wow64 = process.is_some_and(is_wow64);
    match handle {
        Some(handle) => {
            let modules = modules(pid, handle, wow64);
            // Others without a list are beginning or ending, and the events say what they load. Under Wine the question
            // for the memory of one that ends may never return.
            let modules = modules.or_else(|| undo::is_suspended(pid).then(|| mapped_images(pid, handle)));
            inventory.modules.extend(modules.unwrap_or_default());
        }
        None => inventory.closed += 1,
    }
    let created = process.and_then(process::start_time).and_then(|time| i64::try_from(time).ok());
    Running { pid, parent: 0, name: String::new(), created, wow64 }
}

fn is_wow64(process: &Owned) -> bool {
    let mut wow64 = 0;
    // SAFETY: the handle is open, and the place lives through the call.
    let ok = unsafe { IsWow64Process(process.0, &mut wow64) };
    ok != 0 && wow64 != 0
}

/// The modules that the loader of a process lists, of both widths; `None` for one that has none yet, as a program that was
/// started suspended.
fn modules(pid: u32, process: HANDLE, wow64: bool) -> Option<Vec<Loaded>> {
    let snapshot = modules_snapshot(pid)?;
    let mut entry = MODULEENTRY32W { dwSize: size_of::<MODULEENTRY32W>() as u32, ..Default::default() };
    let mut modules = Vec::new();
    // SAFETY: the snapshot is open, and the entry says its size.
    let mut more = unsafe { Module32FirstW(snapshot.0, &mut entry) };
    while more != 0 {
        let base = entry.modBaseAddr as u64;
        let path = text(&entry.szExePath);
        // A 32-bit process sees its own system folder as System32, and a long path is cut.
        let is_doubtful = wow64 || path.len() + 1 >= MAX_PATH as usize;
        let path = if is_doubtful { mapped_file(process, base).unwrap_or(path) } else { path };
        modules.push(Loaded { pid, base, size: u64::from(entry.modBaseSize), path });
        // SAFETY: as above.
        more = unsafe { Module32NextW(snapshot.0, &mut entry) };
    }
    Some(modules).filter(|modules| !modules.is_empty())
}

fn modules_snapshot(pid: u32) -> Option<Owned> {
    // The documentation asks to try again while the process loads modules; it need not end.
    const TRIES: u32 = 8;
    for _ in 0..TRIES {
        // SAFETY: no pointers.
        let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPMODULE | TH32CS_SNAPMODULE32, pid) };
        if snapshot != INVALID_HANDLE_VALUE {
            return Some(Owned(snapshot));
        }
        if process::last_error() != ERROR_BAD_LENGTH {
            return None;
        }
    }
    None
}

/// What is mapped as an image, by the memory of the process: for one whose loader has not run.
fn mapped_images(pid: u32, process: HANDLE) -> Vec<Loaded> {
    let mut images: Vec<Loaded> = Vec::new();
    let mut address = 0_u64;
    let mut region = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the handle is open; the region's place lives through the call, and its size is said.
    while unsafe { VirtualQueryEx(process, address as *const _, &mut region, size_of_val(&region)) } != 0 {
        let base = region.AllocationBase as u64;
        let end = (region.BaseAddress as u64).saturating_add(region.RegionSize as u64);
        if region.Type == MEM_IMAGE {
            match images.last_mut().filter(|last| last.base == base) {
                Some(last) => last.size = end - base,
                None => {
                    let path = mapped_file(process, base).unwrap_or_default();
                    images.push(Loaded { pid, base, size: end.saturating_sub(base), path });
                }
            }
        }
        if end <= address {
            break;
        }
        address = end;
    }
    images
}

/// The file that is mapped at an address, by its device path: what the kernel's own events say.
fn mapped_file(process: HANDLE, address: u64) -> Option<String> {
    let mut name = [0; 2048];
    // SAFETY: the handle is open, and the length is the buffer's.
    let length =
        unsafe { K32GetMappedFileNameW(process, address as *const _, name.as_mut_ptr(), name.len() as u32) };
    let name = name.get(..length as usize)?;
    (!name.is_empty()).then(|| String::from_utf16_lossy(name))
}

/// The kernel and its drivers; none where the system does not say where they are.
fn drivers() -> Vec<Loaded> {
    let mut bases = vec![std::ptr::null_mut(); 4096];
    let room = size_of_val(bases.as_slice()) as u32;
    let mut needed = 0;
    // SAFETY: the room is the buffer's, and all lives through the call.
    if unsafe { K32EnumDeviceDrivers(bases.as_mut_ptr(), room, &mut needed) } == 0 {
        return Vec::new();
    }
    bases.truncate(needed as usize / size_of::<*mut std::ffi::c_void>());
    bases.retain(|base| !base.is_null());
    let driver = |base: &*mut std::ffi::c_void| {
        let mut name = [0; 1024];
        // SAFETY: the length is the buffer's.
        let length = unsafe { K32GetDeviceDriverFileNameW(*base, name.as_mut_ptr(), name.len() as u32) };
        let path = text(name.get(..length as usize)?);
        // Dumps in memory of drivers of the disk have no file of their name; nobody runs them.
        let size = size_on_disk(&path)?;
        Some(Loaded { pid: 0, base: *base as u64, size: u64::from(size), path })
    };
    bases.iter().filter_map(driver).collect()
}

/// The size that an image's header gives for its mapping.
fn size_on_disk(path: &str) -> Option<u32> {
    let mut start = Vec::new();
    File::open(mmap::openable(path.as_ref())).ok()?.take(4096).read_to_end(&mut start).ok()?;
    // PE format: the place of the signature is at 0x3c, and SizeOfImage 80 bytes behind it for both widths.
    let at = |offset: usize| Reader::new(start.get(offset..)?).u32();
    let signature = at(0x3c)? as usize;
    (at(signature)? == u32::from_le_bytes(*b"PE\0\0")).then_some(())?;
    at(signature.checked_add(80)?)
}

fn text(units: &[u16]) -> String {
    String::from_utf16_lossy(units.split(|unit| *unit == 0).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory() -> Inventory {
        take(|| Ticks(7))
    }

    fn own_name() -> String {
        std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn this_process_is_in_the_inventory() {
        let (own, inventory) = (std::process::id(), inventory());
        let process = inventory.processes.iter().find(|process| process.pid == own).unwrap();
        assert!(process.name.eq_ignore_ascii_case(&own_name()), "{process:?}");
        assert!(process.created.is_some_and(|created| created > 132_000_000_000_000_000), "{process:?}");
        // SAFETY: no pointers.
        let thread = unsafe { windows_sys::Win32::System::Threading::GetCurrentThreadId() };
        assert!(inventory.threads.contains(&(thread, own)));
        let here = this_process_is_in_the_inventory as fn() as usize as u64;
        let covers = |module: &&Loaded| module.base <= here && here - module.base < module.size;
        let module = inventory.modules.iter().filter(|module| module.pid == own).find(covers).unwrap();
        assert!(module.path.to_lowercase().ends_with(&own_name().to_lowercase()), "{module:?}");
        let ntdll = |module: &&Loaded| module.pid == own && module.path.to_lowercase().ends_with("ntdll.dll");
        assert!(inventory.modules.iter().any(|module| ntdll(&module)));
    }

    #[test]
    fn mapped_images_are_those_that_the_loader_lists() {
        let own = std::process::id();
        // SAFETY: no pointers.
        let process = unsafe { OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, 0, own) };
        let process = Owned(process);
        let listed = modules(own, process.0, false).unwrap();
        let mapped = mapped_images(own, process.0);
        let exe = listed.iter().find(|module| module.path.to_lowercase().ends_with(".exe")).unwrap();
        let same = mapped.iter().find(|module| module.base == exe.base).unwrap();
        assert_eq!(same.size, exe.size);
        let name = |path: &str| path.rsplit('\\').next().unwrap_or_default().to_lowercase();
        assert_eq!(name(&same.path), name(&exe.path), "{same:?} {exe:?}");
    }

    #[test]
    fn sizes_of_drivers_come_from_their_headers() {
        let own = std::env::current_exe().unwrap();
        let listed = inventory().modules.into_iter().find(|module| {
            module.pid == std::process::id()
                && module.path.to_lowercase().ends_with(&own_name().to_lowercase())
        });
        assert_eq!(size_on_disk(&own.to_string_lossy()).map(u64::from), listed.map(|listed| listed.size));
        assert_eq!(size_on_disk(r"C:\no such file"), None);
    }
}
