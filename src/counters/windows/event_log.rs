//! What the event log of this Windows says of performance counters.

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, ERROR_NO_MORE_ITEMS, GetLastError};
use windows_sys::Win32::System::EventLog::{
    EVT_HANDLE, EvtClose, EvtNext, EvtQuery, EvtQueryChannelPath, EvtRender, EvtRenderEventXml,
};

use super::wide;
use crate::counters::perflib::{Logged, event_query};

/// So many events are read.
const MOST_EVENTS: usize = 10_000;

/// How long the log may take to give an event, in ms.
const PATIENCE: u32 = 10_000;

/// The longest event that is read, in characters.
const MOST_CHARACTERS: usize = 1 << 20;

/// A handle of the log.
struct Handle(EVT_HANDLE);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and this is its only owner.
        unsafe { EvtClose(self.0) };
    }
}

/// The events of the last week about performance counters, in the log Application.
///
/// # Errors
/// The system's error code.
pub fn logged() -> Result<Vec<Logged>, u32> {
    let (path, query) = (wide("Application"), wide(event_query()));
    // SAFETY: both texts end with 0.
    let found = unsafe { EvtQuery(0, path.as_ptr(), query.as_ptr(), EvtQueryChannelPath) };
    if found == 0 {
        return Err(last_error());
    }
    let found = Handle(found);
    let mut events = Vec::new();
    while events.len() < MOST_EVENTS {
        let (mut event, mut count) = (0, 0);
        // SAFETY: there is room for one event.
        let is_there = unsafe { EvtNext(found.0, 1, &mut event, PATIENCE, 0, &mut count) } != 0;
        if !is_there {
            match last_error() {
                ERROR_NO_MORE_ITEMS => break,
                code => return Err(code),
            }
        }
        let event = Handle(event);
        events.extend(xml(&event).and_then(|xml| Logged::parse(&xml)));
    }
    Ok(events)
}

fn xml(event: &Handle) -> Option<String> {
    let mut text = vec![0_u16; 4096];
    loop {
        let (mut used, mut count) = (0, 0);
        // SAFETY: the event is open, and the size is that of the room in bytes.
        let is_done = unsafe {
            EvtRender(
                0,
                event.0,
                EvtRenderEventXml,
                2 * text.len() as u32,
                text.as_mut_ptr().cast(),
                &mut used,
                &mut count,
            )
        } != 0;
        let needed = used as usize / 2;
        if is_done {
            text.truncate(needed);
            return Some(String::from_utf16_lossy(&text).trim_end_matches('\0').to_owned());
        }
        if last_error() != ERROR_INSUFFICIENT_BUFFER || needed <= text.len() || needed > MOST_CHARACTERS {
            return None;
        }
        text = vec![0_u16; needed];
    }
}

fn last_error() -> u32 {
    // SAFETY: reads a value of this thread. Where a function failed without a code, something went wrong all the same.
    unsafe { GetLastError() }.max(1)
}
