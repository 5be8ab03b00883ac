//! Processes of this machine: which run, since when, when one ends, starting one suspended; and the privilege to sample.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio};

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_INVALID_PARAMETER, ERROR_NOT_FOUND, FILETIME, GetLastError, HANDLE,
    INVALID_HANDLE_VALUE, LUID, WAIT_TIMEOUT,
};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::Storage::FileSystem::QueryDosDeviceW;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
    TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::SystemInformation::{GetNativeSystemInfo, SYSTEM_INFO};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, CREATE_SUSPENDED, GetActiveProcessorCount, GetCurrentProcess, GetProcessId,
    GetProcessTimes, OpenProcess, OpenProcessToken, OpenThread, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, ResumeThread, THREAD_SUSPEND_RESUME, TerminateProcess,
    WaitForSingleObject,
};

use super::error::{SessionError, Step};
use super::etw::wide;
use super::journal;
use super::program::Search;
use super::undo::Guard;

/// A handle that is closed when it is dropped.
#[derive(Debug)]
pub(super) struct Owned(pub(super) HANDLE);

// SAFETY: a handle may be used from any thread.
unsafe impl Send for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the handle is open and this is its only owner.
        unsafe { CloseHandle(self.0) };
    }
}

pub(super) fn last_error() -> u32 {
    // SAFETY: reads a value of this thread.
    unsafe { GetLastError() }
}

/// A process in the system's list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id.
    pub pid: u32,
    /// The id of the process that started it, which may be gone and its id used again.
    pub parent: u32,
    /// The file name of its executable.
    pub name: String,
}

/// Every process that runs now; none if the system does not say.
pub fn all() -> Vec<Entry> {
    // SAFETY: no pointers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Vec::new();
    }
    let snapshot = Owned(snapshot);
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut entries = Vec::new();
    // SAFETY: the snapshot is open, and the entry says its size.
    let mut more = unsafe { Process32FirstW(snapshot.0, &mut entry) };
    while more != 0 {
        let name = entry.szExeFile.split(|unit| *unit == 0).next().unwrap_or_default();
        entries.push(Entry {
            pid: entry.th32ProcessID,
            parent: entry.th32ParentProcessID,
            name: String::from_utf16_lossy(name),
        });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.0, &mut entry) };
    }
    entries
}

/// A process that is waited for.
#[derive(Debug)]
pub struct Watched {
    /// Its id.
    pub pid: u32,
    /// When it was started, as a FILETIME; `None` if the system does not say.
    pub since: Option<u64>,
    /// `None` for a process that exists but may not be opened (a protected one).
    handle: Option<Owned>,
}

/// Opens a process to wait for its end; `None` if there is no process of this id.
pub fn watch(pid: u32) -> Option<Watched> {
    // SAFETY: no pointers.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    let handle = if !handle.is_null() {
        let process = Owned(handle);
        // Windows rounds an id down to a multiple of four, and opens a process that nobody asked for.
        // SAFETY: the handle is open.
        if unsafe { GetProcessId(process.0) } != pid {
            return None;
        }
        Some(process)
    } else {
        // The code for an id that nobody has; others (access denied) are of processes that exist.
        if last_error() == ERROR_INVALID_PARAMETER {
            return None;
        }
        None
    };
    let since = handle.as_ref().and_then(start_time);
    let watched = Watched { pid, since, handle };
    // A process that has ended can be opened as long as somebody has a handle of it.
    watched.is_running().then_some(watched)
}

impl Watched {
    /// True until the process has ended.
    pub fn is_running(&self) -> bool {
        match &self.handle {
            // SAFETY: the handle is open; waits for no time.
            Some(handle) => unsafe { WaitForSingleObject(handle.0, 0) == WAIT_TIMEOUT },
            None => {
                let all = all();
                all.is_empty() || all.iter().any(|entry| entry.pid == self.pid)
            }
        }
    }
}

pub(super) fn start_time(process: &Owned) -> Option<u64> {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and the four places live through the call.
    let ok = unsafe { GetProcessTimes(process.0, &mut created, &mut exited, &mut kernel, &mut user) };
    (ok != 0).then(|| u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}

/// Where the stdout of a started program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdout {
    /// To this process's stdout.
    Ours,
    /// To this process's stderr.
    Stderr,
}

/// Starts a program that waits to be resumed, and is ended if its guard is dropped before. It has this process's
/// stdin and stderr, and no more rights. A name without a folder is also looked for where a console would.
pub fn spawn_suspended(
    program: &OsString,
    arguments: &[OsString],
    stdout: Stdout,
) -> io::Result<(Guard, Child)> {
    let spawn = |program: &OsStr| {
        let mut command = Command::new(program);
        if stdout == Stdout::Stderr {
            command.stdout(Stdio::from(io::stderr()));
        }
        command.args(arguments).creation_flags(CREATE_SUSPENDED).spawn()
    };
    let start = || match spawn(program) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let search = Search::of_environment();
            match search.find(program) {
                Some(found) => spawn(found.as_os_str()),
                None => Err(io::Error::new(error.kind(), search.explain(program))),
            }
        }
        other => other,
    };
    Guard::program(start, Child::id)
}

/// (thread, process) of every thread that runs now, but the idle threads, which all have the id 0; none if the system does
/// not say.
pub(super) fn threads() -> Vec<(u32, u32)> {
    list_threads().unwrap_or_default()
}

/// The same, or the system's code.
fn list_threads() -> Result<Vec<(u32, u32)>, u32> {
    // SAFETY: no pointers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(last_error());
    }
    let snapshot = Owned(snapshot);
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..Default::default() };
    let mut threads = Vec::new();
    // SAFETY: the snapshot is open, and the entry says its size.
    let mut more = unsafe { Thread32First(snapshot.0, &mut entry) };
    while more != 0 {
        if entry.th32ThreadID != 0 {
            threads.push((entry.th32ThreadID, entry.th32OwnerProcessID));
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.0, &mut entry) };
    }
    Ok(threads)
}

/// Lets a program run that was started suspended: resumes all its threads, of which it has one. It is an error if the
/// system lists none.
pub fn resume(pid: u32, mut guard: Guard) -> Result<(), SessionError> {
    let threads = list_threads().map_err(|code| SessionError::call(Step::Resume, code))?;
    let mut has_run = false;
    for (thread, _) in threads.into_iter().filter(|(_, owner)| *owner == pid) {
        // SAFETY: no pointers.
        let thread = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, thread) };
        if thread.is_null() {
            return Err(SessionError::call(Step::Resume, last_error()));
        }
        let thread = Owned(thread);
        // SAFETY: the handle is open.
        if unsafe { ResumeThread(thread.0) } == u32::MAX {
            return Err(SessionError::call(Step::Resume, last_error()));
        }
        guard.disarm();
        has_run = true;
    }
    if has_run { Ok(()) } else { Err(SessionError::call(Step::Resume, ERROR_NOT_FOUND)) }
}

/// Ends a process at once.
pub(super) fn end(pid: u32) -> Result<(), SessionError> {
    const EXIT_CODE: u32 = 1;
    // SAFETY: no pointers.
    let process = unsafe { OpenProcess(PROCESS_TERMINATE, 0, pid) };
    if process.is_null() {
        return Err(SessionError::call(Step::End, last_error()));
    }
    let process = Owned(process);
    // SAFETY: the handle is open.
    if unsafe { TerminateProcess(process.0, EXIT_CODE) } == 0 {
        return Err(SessionError::call(Step::End, last_error()));
    }
    Ok(())
}

/// The name of the privilege that sampling needs.
const PROFILE: &str = "SeSystemProfilePrivilege";
/// The name of the privilege to look into every process, which administrators have.
pub(super) const DEBUG: &str = "SeDebugPrivilege";

/// Switches on the privilege that sampling needs, which a token has but not on.
pub(super) fn enable_profile_privilege() -> Result<(), SessionError> {
    Privilege::enable(PROFILE).map(drop)
}

/// A privilege that is on. It stays on when this is dropped.
pub(super) struct Privilege {
    name: &'static str,
    token: Owned,
    id: LUID,
}

impl Privilege {
    /// Switches a privilege of this process on.
    pub(super) fn enable(name: &'static str) -> Result<Privilege, SessionError> {
        let mut token: HANDLE = std::ptr::null_mut();
        // SAFETY: the handle's place lives through the call.
        let ok = unsafe {
            OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &mut token)
        };
        if ok == 0 {
            return Err(SessionError::call(Step::EnablePrivilege, last_error()));
        }
        let token = Owned(token);
        let mut id = LUID::default();
        // SAFETY: the name ends with 0, and the id's place lives through the call.
        let ok = unsafe { LookupPrivilegeValueW(std::ptr::null(), wide(name).as_ptr(), &mut id) };
        if ok == 0 {
            return Err(SessionError::call(Step::EnablePrivilege, last_error()));
        }
        let privilege = Privilege { name, token, id };
        match privilege.set(SE_PRIVILEGE_ENABLED) {
            0 => Ok(privilege),
            code => Err(SessionError::call(Step::EnablePrivilege, code)),
        }
    }

    /// Switches it off, as far as the system lets us.
    pub(super) fn disable(self) {
        self.set(0);
    }

    /// The system's code.
    fn set(&self, attributes: u32) -> u32 {
        let privileges = TOKEN_PRIVILEGES {
            PrivilegeCount: 1,
            Privileges: [LUID_AND_ATTRIBUTES { Luid: self.id, Attributes: attributes }],
        };
        let adjust = || {
            // SAFETY: one privilege, as its count says; no previous state is asked for.
            unsafe {
                AdjustTokenPrivileges(
                    self.token.0,
                    0,
                    &privileges,
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
            // The call succeeds with ERROR_NOT_ALL_ASSIGNED where the token has no such privilege, and sets no error
            // otherwise.
            last_error()
        };
        let name = self.name;
        journal::call("AdjustTokenPrivileges", || format!("{name}, attributes {attributes:#x}"), adjust)
    }
}

/// The processor's architecture as SYSTEM_INFO counts them: 0 x86, 9 x64, 12 ARM64.
pub(super) fn architecture() -> u16 {
    let mut info = SYSTEM_INFO::default();
    // SAFETY: the structure lives through the call; its union's first arm is the architecture.
    unsafe {
        GetNativeSystemInfo(&mut info);
        info.Anonymous.Anonymous.wProcessorArchitecture
    }
}

/// Logical processors, in all their groups.
pub(super) fn processors() -> u32 {
    // SAFETY: no pointers.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }.max(1)
}

/// The devices behind the drive letters: (`\Device\HarddiskVolume3`, `C:`).
pub(super) fn volumes() -> Vec<(String, String)> {
    let device = |letter: char| {
        let dos = format!("{letter}:");
        let mut target = [0; 512];
        // SAFETY: the name ends with 0, and the length is the buffer's.
        let length =
            unsafe { QueryDosDeviceW(wide(&dos).as_ptr(), target.as_mut_ptr(), target.len() as u32) };
        let name = target.get(..length as usize)?.split(|unit| *unit == 0).next()?;
        (!name.is_empty()).then(|| (String::from_utf16_lossy(name), dos))
    };
    ('A'..='Z').filter_map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_not_a_multiple_of_four_is_nobodys() {
        let own = std::process::id();
        assert_eq!(watch(own).map(|own| own.pid), Some(own));
        for more in 1..4 {
            assert!(watch(own + more).is_none(), "{}", own + more);
        }
    }

    #[test]
    fn a_program_whose_thread_is_not_found_is_an_error() {
        let spawn = || spawn_suspended(&"cmd".into(), &["/c".into(), "exit 3".into()], Stdout::Ours).unwrap();
        let (guard, mut lost) = spawn();
        let error = resume(0x7fff_fff0, guard).unwrap_err();
        assert_eq!(error.code(), Some(ERROR_NOT_FOUND));
        assert_eq!(lost.wait().unwrap().code(), Some(1), "it is ended, and has not run");
        let (guard, mut found) = spawn();
        resume(found.id(), guard).unwrap();
        assert_eq!(found.wait().unwrap().code(), Some(3));
    }
}
