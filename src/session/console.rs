//! Ctrl-C: once stops the recording, twice ends the program, and neither leaves anything behind.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use windows_sys::Win32::Foundation::GetLastError;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};

use super::error::{SessionError, Step};
use super::undo;

static RECORDING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
static END: OnceLock<fn()> = OnceLock::new();

/// From now on Ctrl-C asks to stop, until [`recording_is_over`]. The second one, and the end of the console, undo
/// everything and call `end`, which should end the process; where it returns, Windows does. Only the first `end` counts.
pub fn listen(end: fn()) -> Result<(), SessionError> {
    let _ = END.set(end);
    RECORDING.store(true, SeqCst);
    // SAFETY: the handler is a function of this program and stays.
    if unsafe { SetConsoleCtrlHandler(Some(on_event), 1) } == 0 {
        // SAFETY: reads a value of this thread.
        return Err(SessionError::call(Step::Listen, unsafe { GetLastError() }));
    }
    Ok(())
}

/// From now on the first Ctrl-C ends the program: there is nothing left to stop.
pub fn recording_is_over() {
    RECORDING.store(false, SeqCst);
}

/// True after the first Ctrl-C.
pub fn asked_to_stop() -> bool {
    ASKED.load(SeqCst)
}

/// Called by the system on a thread that it makes. Closing the window, logging off and shutting down end the process
/// when this returns.
unsafe extern "system" fn on_event(event: u32) -> i32 {
    let polite = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if polite && RECORDING.load(SeqCst) && !ASKED.swap(true, SeqCst) {
        return 1;
    }
    undo::everything();
    if let Some(end) = END.get() {
        end();
    }
    // The next handler is Windows' own, which ends the process.
    0
}
