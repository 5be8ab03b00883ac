//! Priorities of the threads that events pass through. On a machine that is busy with what is profiled they would not get
//! to run in time, and the sessions' buffers would overflow. Best effort: without it a recording is only more likely to
//! lose events.

/// For a thread that empties the buffers of a session.
#[cfg(windows)]
pub(super) fn highest() {
    set(windows_sys::Win32::System::Threading::THREAD_PRIORITY_HIGHEST);
}

/// For the thread behind it, which has a queue in between.
#[cfg(windows)]
pub(super) fn above_normal() {
    set(windows_sys::Win32::System::Threading::THREAD_PRIORITY_ABOVE_NORMAL);
}

/// Other systems have no live sessions.
#[cfg(not(windows))]
pub(super) fn above_normal() {}

#[cfg(windows)]
fn set(priority: i32) {
    use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadPriority};
    // SAFETY: no pointers; the handle stands for this thread.
    unsafe { SetThreadPriority(GetCurrentThread(), priority) };
}
