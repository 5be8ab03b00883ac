//! The blocks of a process of this Windows, from outside.

use std::ffi::c_void;
use std::mem;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_ACCESS_DENIED, ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, GetLastError, HANDLE,
};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Memory::{
    FILE_MAP_READ, MEMORY_BASIC_INFORMATION, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, OpenFileMappingW,
    UnmapViewOfFile, VirtualQuery,
};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::GetCurrentProcess;
use windows_sys::core::BOOL;

use super::{MOST_BYTES, Sample, legacy, runtimes};

/// Why the counters of a process cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// There is no runtime.
    #[error("process {0} runs no .NET Framework, or has only begun")]
    Nobody(u32),
    /// The counters are not for this account.
    #[error(
        "the .NET Framework in process {0} lets only its own user, Administrators, Performance Monitor Users and \
         Performance Log Users read its counters"
    )]
    Denied(u32),
    /// This system lacks what leads to the blocks of version 4, and there is none of version 2.
    #[error(
        "this system has no private namespaces, in which .NET Framework 4 keeps the counters of process {0}"
    )]
    NoNamespaces(u32),
    /// The system fails.
    #[error("cannot read the counters of .NET Framework in process {pid}: {call} fails with error {code}")]
    System {
        /// The process.
        pid: u32,
        /// The function.
        call: &'static str,
        /// Its error.
        code: u32,
    },
}

impl SourceError {
    fn last(pid: u32, call: &'static str) -> SourceError {
        // SAFETY: reads a value of this thread.
        match unsafe { GetLastError() } {
            ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND => SourceError::Nobody(pid),
            ERROR_ACCESS_DENIED => SourceError::Denied(pid),
            code => SourceError::System { pid, call, code },
        }
    }
}

/// The runtimes of .NET Framework in a process, now.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn sample(pid: u32) -> Result<Sample, SourceError> {
    let newer = newer(pid).map(|view| runtimes(pid, &mut |at, to| view.copy(at, to)));
    let older = View::open(pid, &format!(r"Global\Cor_Public_IPCBlock_{pid}"))
        .map(|view| legacy(pid, &mut |at, to| view.copy(at, to)));
    let mut sample = Sample::default();
    // SAFETY: both places live through the calls.
    unsafe {
        QueryPerformanceCounter(&mut sample.qpc);
        QueryPerformanceFrequency(&mut sample.qpc_hz);
    }
    let found = match (newer, older) {
        (Ok(newer), older) => newer.into_iter().chain(older.ok()).collect(),
        (Err(_), Ok(older)) => vec![older],
        (Err(newer), Err(SourceError::Nobody(_))) => return Err(newer),
        (Err(SourceError::Nobody(_) | SourceError::NoNamespaces(_)), Err(older)) => return Err(older),
        (Err(newer), Err(_)) => return Err(newer),
    };
    for runtime in found {
        match runtime {
            Ok(runtime) => sample.runtimes.push(runtime),
            Err(error) => sample.refused.push(error),
        }
    }
    Ok(sample)
}

/// The functions for private namespaces. Wine has not all of them, and a program that imports what is not there does not
/// start.
struct Namespaces {
    create_boundary: unsafe extern "system" fn(*const u16, u32) -> HANDLE,
    add_sid: unsafe extern "system" fn(*mut HANDLE, *const c_void) -> BOOL,
    open: unsafe extern "system" fn(*const c_void, *const u16) -> HANDLE,
    close: unsafe extern "system" fn(HANDLE, u32) -> u8,
    delete_boundary: unsafe extern "system" fn(HANDLE),
}

impl Namespaces {
    fn find() -> Option<Namespaces> {
        let library = wide("kernel32.dll");
        // SAFETY: the name ends with 0. The library is always loaded.
        let library = unsafe { GetModuleHandleW(library.as_ptr()) };
        // SAFETY: the name ends with 0.
        let find = |name: &std::ffi::CStr| unsafe { GetProcAddress(library, name.as_ptr().cast()) };
        let (create, add) = (find(c"CreateBoundaryDescriptorW")?, find(c"AddSIDToBoundaryDescriptor")?);
        let (open, close) = (find(c"OpenPrivateNamespaceW")?, find(c"ClosePrivateNamespace")?);
        let delete = find(c"DeleteBoundaryDescriptor")?;
        // SAFETY: these are the functions' types in `namespaceapi.h`; a handle is a pointer, a BOOLEAN a byte.
        unsafe {
            Some(Namespaces {
                create_boundary: mem::transmute::<
                    unsafe extern "system" fn() -> isize,
                    unsafe extern "system" fn(*const u16, u32) -> HANDLE,
                >(create),
                add_sid: mem::transmute::<
                    unsafe extern "system" fn() -> isize,
                    unsafe extern "system" fn(*mut HANDLE, *const c_void) -> BOOL,
                >(add),
                open: mem::transmute::<
                    unsafe extern "system" fn() -> isize,
                    unsafe extern "system" fn(*const c_void, *const u16) -> HANDLE,
                >(open),
                close: mem::transmute::<
                    unsafe extern "system" fn() -> isize,
                    unsafe extern "system" fn(HANDLE, u32) -> u8,
                >(close),
                delete_boundary: mem::transmute::<
                    unsafe extern "system" fn() -> isize,
                    unsafe extern "system" fn(HANDLE),
                >(delete),
            })
        }
    }
}

/// The SID of Everyone, S-1-1-0: revision and number of parts, the authority with its highest byte first, the part.
static EVERYONE: [u32; 3] = [0x0000_0101, 0x0100_0000, 0];

/// An opened namespace has its name in the whole process, so that only one can be open.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The memory that the runtimes of version 4 in a process share.
fn newer(pid: u32) -> Result<View, SourceError> {
    let system = Namespaces::find().ok_or(SourceError::NoNamespaces(pid))?;
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let boundary = wide(&format!("Cor_CLR_IPCBlock_{pid}"));
    // SAFETY: the name ends with 0.
    let mut boundary = unsafe { (system.create_boundary)(boundary.as_ptr(), 0) };
    if boundary.is_null() {
        return Err(SourceError::last(pid, "CreateBoundaryDescriptorW"));
    }
    let alias = wide("Cor_CLR_READER");
    // SAFETY: the boundary is open, and the SID is whole. Adding to a boundary may move it, and its handle with it.
    let opened = if unsafe { (system.add_sid)(&mut boundary, EVERYONE.as_ptr().cast()) } == 0 {
        Err(SourceError::last(pid, "AddSIDToBoundaryDescriptor"))
    } else {
        // SAFETY: the boundary is open, and the name ends with 0.
        let namespace = unsafe { (system.open)(boundary, alias.as_ptr()) };
        let is_open = !namespace.is_null();
        if is_open { Ok(namespace) } else { Err(SourceError::last(pid, "OpenPrivateNamespaceW")) }
    };
    // SAFETY: the boundary is open, and nothing uses it any more.
    unsafe { (system.delete_boundary)(boundary) };
    let namespace = opened?;
    let view = View::open(pid, r"Cor_CLR_READER\Cor_SxSPublic_IPCBlock");
    // SAFETY: the namespace is open; its objects stay.
    unsafe { (system.close)(namespace, 0) };
    view
}

/// Shared memory, mapped to be read.
struct View {
    start: MEMORY_MAPPED_VIEW_ADDRESS,
    size: usize,
}

impl View {
    fn open(pid: u32, name: &str) -> Result<View, SourceError> {
        let name = wide(name);
        // SAFETY: the name ends with 0.
        let section = unsafe { OpenFileMappingW(FILE_MAP_READ, 0, name.as_ptr()) };
        if section.is_null() {
            return Err(SourceError::last(pid, "OpenFileMappingW"));
        }
        let map = |bytes| {
            // SAFETY: the handle is open; the system chooses the place.
            let start = unsafe { MapViewOfFile(section, FILE_MAP_READ, 0, 0, bytes) };
            if start.Value.is_null() { Err(SourceError::last(pid, "MapViewOfFile")) } else { Ok(start) }
        };
        // A small one has not so many bytes; then all of them.
        let mapped = map(MOST_BYTES).or_else(|_| map(0));
        // SAFETY: the handle is open, and its only owner is here. A view needs none.
        unsafe { CloseHandle(section) };
        let mut view = View { start: mapped?, size: 0 };
        let mut about = MEMORY_BASIC_INFORMATION::default();
        // SAFETY: `about` is as long as is said.
        let written = unsafe { VirtualQuery(view.start.Value, &mut about, size_of_val(&about)) };
        if written == 0 {
            return Err(SourceError::last(pid, "VirtualQuery"));
        }
        view.size = about.RegionSize.min(MOST_BYTES);
        Ok(view)
    }

    /// Copies from this offset; false where there is not so much.
    fn copy(&self, at: usize, to: &mut [u8]) -> bool {
        if at.checked_add(to.len()).is_none_or(|end| end > self.size) {
            return false;
        }
        let mut copied = 0;
        // The system copies: another process writes there at the same time, and pages may be missing, as in a section of
        // somebody who only took the name.
        // SAFETY: the place lies in the view, and `to` is as long as is said. What cannot be read fails.
        let ok = unsafe {
            let from = self.start.Value.byte_add(at);
            ReadProcessMemory(GetCurrentProcess(), from, to.as_mut_ptr().cast(), to.len(), &mut copied)
        };
        ok != 0 && copied == to.len()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: it is mapped, and nothing points into it.
        unsafe { UnmapViewOfFile(self.start) };
    }
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}
