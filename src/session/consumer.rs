//! Reads a session: OpenTraceW with raw timestamps, ProcessTrace on a thread of its own, the callback.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_CTX_CLOSE_PENDING, ERROR_SUCCESS, GetLastError};
use windows_sys::Win32::System::Diagnostics::Etw::{
    CloseTrace, EVENT_HEADER_EXTENDED_DATA_ITEM, EVENT_RECORD, EVENT_TRACE_LOGFILEW, OpenTraceW,
    PROCESS_TRACE_MODE_EVENT_RECORD, PROCESS_TRACE_MODE_RAW_TIMESTAMP, PROCESS_TRACE_MODE_REAL_TIME,
    PROCESSTRACE_HANDLE, ProcessTrace, TRACE_LOGFILE_HEADER,
};
use windows_sys::core::GUID;

use crate::event::{Event, Kind, Pointer, Ticks};
use crate::guid::Guid;
use crate::origin::Platform;

use super::error::{SessionError, Step};
use super::pipeline::Feed;
use super::{etw, journal, machine, priority};

/// A session that is being read.
#[derive(Debug)]
pub(super) struct Consumer {
    handle: u64,
    thread: Option<JoinHandle<u32>>,
}

/// What OpenTraceW tells of the machine and the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogHeader {
    pub(super) processors: u32,
    pub(super) os_build: u32,
    /// Ticks a second of the session's clock.
    pub(super) frequency: u64,
    /// Zeros where a live session has none.
    pub(super) platform: Platform,
}

/// An opened session that nobody reads yet; closed if nobody ever does.
pub(super) struct Opened {
    handle: Option<u64>,
    /// From `Box::leak`, freed when this is dropped. It is no box because the API keeps its address.
    reader: NonNull<Reader>,
}

// SAFETY: the reader is this value's alone and may be used by any thread.
unsafe impl Send for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            close(handle);
        }
        // SAFETY: from a box; no callback comes any more: nothing processes the handle, or it was never processed.
        drop(unsafe { Box::from_raw(self.reader.as_ptr()) });
    }
}

/// What the callback works with.
struct Reader {
    /// Set before ProcessTrace runs.
    feed: Option<Feed>,
    /// Extended items in the layout of files.
    items: Vec<u8>,
}

/// Opens a session for reading.
pub(super) fn open(session: &str) -> Result<(Opened, LogHeader), SessionError> {
    let mut name = etw::wide(session);
    let reader = NonNull::from(Box::leak(Box::new(Reader { feed: None, items: Vec::new() })));
    let mut opened = Opened { handle: None, reader };
    let mut log = EVENT_TRACE_LOGFILEW { LoggerName: name.as_mut_ptr(), ..Default::default() };
    log.Anonymous1.ProcessTraceMode =
        PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
    log.Anonymous2.EventRecordCallback = Some(on_event);
    log.BufferCallback = Some(on_buffer);
    log.Context = reader.as_ptr().cast();
    let mut handle = PROCESSTRACE_HANDLE { Value: u64::MAX };
    let opening = || {
        // SAFETY: the structure and the name live through the call; the context lives until ProcessTrace has returned.
        handle = unsafe { OpenTraceW(&mut log) };
        // The invalid handle, and what a 32-bit system gives for it.
        if handle.Value == u64::MAX || handle.Value == u64::from(u32::MAX) {
            // SAFETY: reads a value of this thread.
            let code = unsafe { GetLastError() };
            return Err(SessionError::call(Step::Read, code));
        }
        Ok(())
    };
    journal::call("OpenTraceW", || format!("{session}, real time, event records, raw timestamps"), opening)?;
    journal::fact(&format!("LOGFILE header of {session}"), || logfile_header(&log));
    let header = LogHeader {
        processors: log.LogfileHeader.NumberOfProcessors,
        os_build: log.LogfileHeader.ProviderVersion,
        frequency: u64::try_from(log.LogfileHeader.PerfFreq).unwrap_or(0),
        platform: platform(&log.LogfileHeader),
    };
    opened.handle = Some(handle.Value);
    Ok((opened, header))
}

fn platform(header: &TRACE_LOGFILE_HEADER) -> Platform {
    // SAFETY: the arms of the unions are plain integers.
    let (version, cpu_mhz) =
        unsafe { (header.Anonymous1.Version, header.Anonymous2.Anonymous.CpuSpeedInMHz) };
    Platform {
        version: version.to_le_bytes(),
        timer_resolution: header.TimerResolution,
        cpu_mhz,
        boot: header.BootTime,
        time_zone: machine::bytes_of(&header.TimeZone),
    }
}

/// Every field of the header, for the journal: which of them a live session fills in is documented for few.
fn logfile_header(log: &EVENT_TRACE_LOGFILEW) -> String {
    let h = &log.LogfileHeader;
    // SAFETY: the arms of the unions are plain integers.
    let (version, lost, pointer, start, cpu) = unsafe {
        let detail = h.Anonymous2.Anonymous;
        (
            h.Anonymous1.Version,
            detail.EventsLost,
            detail.PointerSize,
            detail.StartBuffers,
            detail.CpuSpeedInMHz,
        )
    };
    let (buffer, build, processors) = (h.BufferSize, h.ProviderVersion, h.NumberOfProcessors);
    let (began, ended, boot) = (h.StartTime, h.EndTime, h.BootTime);
    let (frequency, resolution, mode) = (h.PerfFreq, h.TimerResolution, h.LogFileMode);
    let (clock, written, buffers_lost) = (h.ReservedFlags, h.BuffersWritten, h.BuffersLost);
    let bias = h.TimeZone.Bias;
    format!(
        "BufferSize {buffer} Version {version:#x} ProviderVersion {build} NumberOfProcessors {processors} \
         PointerSize {pointer} PerfFreq {frequency} ReservedFlags (clock) {clock} StartTime {began} EndTime {ended} \
         BootTime {boot} TimeZone.Bias {bias} TimerResolution {resolution} LogFileMode {mode:#x} BuffersWritten {written} \
         StartBuffers {start} CpuSpeedInMHz {cpu} EventsLost {lost} BuffersLost {buffers_lost}"
    )
}

impl Opened {
    /// Starts the thread that reads it into `feed`.
    pub(super) fn run(self, feed: Feed) -> Result<Consumer, SessionError> {
        // SAFETY: the reader lives as long as `self`; there are no callbacks before ProcessTrace.
        unsafe { (*self.reader.as_ptr()).feed = Some(feed) };
        let handle = self.handle.unwrap_or(u64::MAX);
        let work = move || {
            priority::highest();
            let mut opened = self;
            let open = PROCESSTRACE_HANDLE { Value: handle };
            // SAFETY: the handle is open. `opened` keeps the context alive, and only the callbacks, which come on this
            // thread, touch it while this runs.
            let process = || unsafe { ProcessTrace(&open, 1, std::ptr::null(), std::ptr::null()) };
            let status = journal::call("ProcessTrace", || format!("handle {handle:#x}"), process);
            // The consumer closes the handle: closing is how it makes a call that goes on return.
            opened.handle = None;
            status
        };
        // Where no thread can be started the closure is dropped, and the handle closed with it.
        let thread = std::thread::Builder::new().name("consumer".to_owned()).spawn(work);
        let thread = thread.map_err(|error| SessionError::Thread(error.to_string()))?;
        Ok(Consumer { handle, thread: Some(thread) })
    }
}

/// How long a stopped session may go on handing out what it has, and a closed one may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

impl Consumer {
    /// True when there is nothing more to read: the session was stopped, by us or by somebody else.
    pub(super) fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Reads to the end of the session if it was stopped, and closes it.
    pub(super) fn finish(mut self, stopped: bool) -> Result<(), SessionError> {
        if !stopped {
            self.close();
            return Ok(());
        }
        if !self.is_done_in(PATIENCE) {
            self.close();
            return Err(SessionError::Unread);
        }
        self.close().map_or(Ok(()), |status| etw::check(Step::Read, status))
    }

    fn is_done_in(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_done() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.is_done()
    }

    /// Closing makes ProcessTrace return, if it has not yet; its status.
    fn close(&mut self) -> Option<u32> {
        if self.thread.is_some() && !close(self.handle) && !self.is_done_in(PATIENCE) {
            // It was not closed and its session runs on: that thread ends with the program.
            self.thread = None;
        }
        // A panic of that thread is impossible but for one of ProcessTrace itself.
        self.thread.take()?.join().ok()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Closes a handle of OpenTraceW; false if the system refuses.
fn close(handle: u64) -> bool {
    // SAFETY: the handle is from OpenTraceW and is closed once.
    let close = || unsafe { CloseTrace(PROCESSTRACE_HANDLE { Value: handle }) };
    let status = journal::call("CloseTrace", || format!("handle {handle:#x}"), close);
    // Pending: ProcessTrace returns soon.
    matches!(status, ERROR_SUCCESS | ERROR_CTX_CLOSE_PENDING)
}

/// A panic must not cross into the system's code. Nothing in here is known to panic.
unsafe extern "system" fn on_event(record: *mut EVENT_RECORD) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the system gives a valid record for the time of this call.
        let Some(record) = (unsafe { record.as_ref() }) else { return };
        // SAFETY: the context is the Reader that `open` gave; ProcessTrace calls back on one thread, one at a time.
        let Some(reader) = (unsafe { record.UserContext.cast::<Reader>().as_mut() }) else { return };
        let Reader { feed: Some(feed), items } = reader else { return };
        items.clear();
        // SAFETY: the counts belong to the pointers, and both are valid for the time of this call.
        let (payload, extended) = unsafe {
            (
                slice(record.UserData.cast::<u8>(), usize::from(record.UserDataLength)),
                slice(record.ExtendedData, usize::from(record.ExtendedDataCount)),
            )
        };
        for (left, item) in (0..extended.len()).rev().zip(extended) {
            // SAFETY: as above.
            let data = unsafe { slice(item.DataPtr as usize as *const u8, usize::from(item.DataSize)) };
            push_item(items, item, data, left > 0);
        }
        feed.event(&event(record, items, payload));
    }));
}

/// Called after each of the session's buffers; nonzero goes on.
unsafe extern "system" fn on_buffer(log: *mut EVENT_TRACE_LOGFILEW) -> u32 {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the system gives the structure of OpenTraceW, with its context, for the time of this call.
        let reader = unsafe { log.as_ref().and_then(|log| log.Context.cast::<Reader>().as_mut()) };
        if let Some(feed) = reader.and_then(|reader| reader.feed.as_mut()) {
            feed.buffer_ends();
        }
    }));
    1
}

/// # Safety
/// `start` is null or points to `count` values that live for `'a`.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// An extended item as it lies in a file: see [`ExtendedItems`](crate::event::ExtendedItems).
fn push_item(items: &mut Vec<u8>, item: &EVENT_HEADER_EXTENDED_DATA_ITEM, data: &[u8], more: bool) {
    let size = (8 + data.len()).next_multiple_of(8);
    let start = items.len();
    for field in [size as u16, item.ExtType, u16::from(more), item.DataSize] {
        items.extend_from_slice(&field.to_le_bytes());
    }
    items.extend_from_slice(data);
    items.resize(start + size, 0);
}

/// Flags of EVENT_HEADER.
const TRACE_MESSAGE: u16 = 0x8;
const HEADER_32_BIT: u16 = 0x20;
const CLASSIC_HEADER: u16 = 0x100;
const PROCESSOR_INDEX: u16 = 0x200;

fn event<'a>(record: &EVENT_RECORD, items: &'a [u8], payload: &'a [u8]) -> Event<'a> {
    let header = &record.EventHeader;
    let descriptor = &header.EventDescriptor;
    // SAFETY: both arms of the union are two bytes.
    let index = unsafe { record.BufferContext.Anonymous.ProcessorIndex };
    // Without the flag it is one byte, and the alignment in the other.
    let processor = if header.Flags & PROCESSOR_INDEX != 0 { index } else { index & 0xff };
    let kind = match header.Flags {
        flags if flags & TRACE_MESSAGE != 0 => Kind::Message(descriptor.Id),
        flags if flags & CLASSIC_HEADER != 0 => Kind::Classic,
        _ => Kind::Manifest(descriptor.Id),
    };
    Event {
        time: Ticks(header.TimeStamp),
        provider: guid(&header.ProviderId),
        kind,
        opcode: descriptor.Opcode,
        version: descriptor.Version,
        pointer: if header.Flags & HEADER_32_BIT != 0 { Pointer::Bits32 } else { Pointer::Bits64 },
        processor,
        pid: header.ProcessId,
        tid: header.ThreadId,
        items,
        payload,
    }
}

fn guid(guid: &GUID) -> Guid {
    let (a, b, c) = (u128::from(guid.data1), u128::from(guid.data2), u128::from(guid.data3));
    Guid::from_u128(a << 96 | b << 80 | c << 64 | u128::from(u64::from_be_bytes(guid.data4)))
}
