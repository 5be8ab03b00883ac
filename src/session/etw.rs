//! The calls of the ETW API: sessions are started by ferrisetw, the rest is here. One function per call, each with
//! the reason why its `unsafe` is sound.

use std::mem::{offset_of, size_of};
use std::time::Duration;

use ferrisetw::native::{EvntraceNativeError, TraceHandle};
use ferrisetw::trace::{KernelTrace, LoggingMode, TraceError, TraceProperties, TraceTrait, UserTrace};
use windows_sys::Win32::System::Diagnostics::Etw::{
    CLASSIC_EVENT_ID, CONTROLTRACE_HANDLE, CloseTrace, ControlTraceW, ENABLE_TRACE_PARAMETERS,
    ENABLE_TRACE_PARAMETERS_VERSION, ENABLE_TRACE_PARAMETERS_VERSION_2, EVENT_CONTROL_CODE_ENABLE_PROVIDER,
    EVENT_FILTER_DESCRIPTOR, EVENT_TRACE_CONTROL_FLUSH, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP,
    EVENT_TRACE_PROPERTIES, EVENT_TRACE_REAL_TIME_MODE, EVENT_TRACE_SYSTEM_LOGGER_MODE, EnableTraceEx2,
    PROCESSTRACE_HANDLE, QueryAllTracesW, StartTraceW, TRACE_PROFILE_INTERVAL, TRACE_QUERY_INFO_CLASS,
    TraceQueryInformation, TraceSampledProfileIntervalInfo, TraceSetInformation, TraceStackTracingInfo,
    TraceSystemTraceEnableFlagsInfo, WNODE_FLAG_TRACED_GUID,
};
use windows_sys::core::GUID;

use crate::access::is_denied;
use crate::guid::Guid;
use crate::guids;

use super::diagnosis::Phase;
use super::error::{ALREADY_EXISTS, BUSY, INVALID_PARAMETER, NO_SUCH_SESSION, SessionError, Step};
use super::journal;
use super::scope::ScopeFilter;

/// Buffers of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    /// Of one buffer, in KiB.
    pub(super) size: u32,
    /// That the session starts with.
    pub(super) minimum: u32,
    /// That it may grow to.
    pub(super) maximum: u32,
}

/// What ferrisetw calls to start a session.
const START: &str = "StartTraceW, OpenTraceW";

/// Starts a session in system-logger mode with nothing switched on.
pub(super) fn start_kernel(name: &str, buffers: Buffers) -> Result<(), SessionError> {
    let builder = KernelTrace::new().named(name.to_owned()).set_trace_properties(properties(buffers));
    let arguments = || format!("{name}, system logger, {buffers:?}");
    journal::call(START, arguments, || started(builder.start(), Step::StartKernel)).or_else(|error| {
        as_granted(error, name, guids::KERNEL_SESSION, EVENT_TRACE_SYSTEM_LOGGER_MODE, buffers)
    })
}

/// Starts a session for providers of programs.
pub(super) fn start_user(name: &str, buffers: Buffers) -> Result<(), SessionError> {
    let builder = UserTrace::new().named(name.to_owned()).set_trace_properties(properties(buffers));
    let arguments = || format!("{name}, {buffers:?}");
    journal::call(START, arguments, || started(builder.start(), Step::StartClr))
        .or_else(|error| as_granted(error, name, guids::CLR_SESSION, 0, buffers))
}

fn started<T: TraceTrait>(
    result: Result<(T, TraceHandle), TraceError>,
    step: Step,
) -> Result<(), SessionError> {
    let (trace, consumer) = result.map_err(|error| failed(step, &error))?;
    detach(trace, consumer);
    Ok(())
}

/// Starts a session that was refused once more, with the GUID under which `etwprof grant` gives rights.
///
/// ferrisetw starts sessions with a new GUID each time, which is right for administrators: several can then profile at
/// once, for Windows has no two sessions of one GUID.
fn as_granted(
    refused: SessionError,
    name: &str,
    session: Guid,
    mode: u32,
    buffers: Buffers,
) -> Result<(), SessionError> {
    let SessionError::Call { step, code } = refused else { return Err(refused) };
    // ferrisetw opens a session when it has started it. Where that is what was refused the session runs, and its name is
    // taken.
    let is_free = |stopped: Result<_, SessionError>| match stopped {
        Ok(_) => true,
        Err(error) => error.code() == Some(NO_SUCH_SESSION),
    };
    if !is_denied(code) || !is_free(stop(name)) {
        return Err(refused);
    }
    match start_as(session, step, name, mode, buffers) {
        // Somebody else profiles on granted rights, which is why; other second errors come of the first refusal.
        Err(second) if second.code() != Some(ALREADY_EXISTS) => Err(refused),
        other => other,
    }
}

fn start_as(session: Guid, step: Step, name: &str, mode: u32, buffers: Buffers) -> Result<(), SessionError> {
    const QPC: u32 = 1;
    let arguments = || format!("{name} with the GUID {session}, mode {mode:#x}, {buffers:?}");
    let name = wide(name);
    let mut block = Block::new();
    let properties = &mut block.properties;
    properties.Wnode.Guid = guid(session);
    properties.Wnode.ClientContext = QPC;
    properties.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    properties.BufferSize = buffers.size;
    properties.MinimumBuffers = buffers.minimum;
    properties.MaximumBuffers = buffers.maximum;
    properties.FlushTimer = 1;
    properties.LogFileMode = EVENT_TRACE_REAL_TIME_MODE | mode;
    // A real-time session writes to no file.
    properties.LogFileNameOffset = 0;
    let mut handle = CONTROLTRACE_HANDLE { Value: 0 };
    // SAFETY: the name ends with 0; the block is as large as its BufferSize says; all live through the call.
    let start = || unsafe { StartTraceW(&mut handle, name.as_ptr(), &raw mut block.properties) };
    let status = journal::call("StartTraceW", arguments, start);
    check(step, status)
}

fn properties(buffers: Buffers) -> TraceProperties {
    TraceProperties {
        buffer_size: buffers.size,
        min_buffer: buffers.minimum,
        max_buffer: buffers.maximum,
        flush_timer: Duration::from_secs(1),
        log_file_mode: LoggingMode::EVENT_TRACE_REAL_TIME_MODE,
    }
}

/// Takes the session from ferrisetw: closes its consumer, which would read cooked timestamps and is never run, and
/// keeps its destructor from closing that handle's number again when it may be another consumer's.
fn detach(trace: impl TraceTrait, consumer: TraceHandle) {
    std::mem::forget(trace);
    // SAFETY: the handle is ferrisetw's from OpenTraceW; nothing processes it, and nothing closes it after this.
    unsafe { CloseTrace(PROCESSTRACE_HANDLE { Value: consumer.Value }) };
}

fn failed(step: Step, error: &TraceError) -> SessionError {
    const INVALID_NAME: u32 = 123;
    const INVALID_HANDLE: u32 = 6;
    let code = match error {
        TraceError::InvalidTraceName => INVALID_NAME,
        TraceError::EtwNativeError(EvntraceNativeError::AlreadyExist) => ALREADY_EXISTS,
        TraceError::EtwNativeError(EvntraceNativeError::InvalidHandle) => INVALID_HANDLE,
        TraceError::EtwNativeError(EvntraceNativeError::IoError(error)) => {
            error.raw_os_error().unwrap_or_default() as u32
        }
    };
    SessionError::call(step, code)
}

/// What a session says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Properties {
    /// For the calls that take one; 0 in a list of all sessions.
    pub(super) handle: u64,
    pub(super) name: String,
    /// LogFileMode.
    pub(super) mode: u32,
    pub(super) kernel_flags: u32,
    pub(super) buffers: u32,
    pub(super) free_buffers: u32,
    pub(super) events_lost: u32,
    pub(super) buffers_lost: u32,
}

const NAME_LENGTH: usize = 1024;

/// EVENT_TRACE_PROPERTIES with room for both names, as the API wants it: one block.
#[repr(C)]
struct Block {
    properties: EVENT_TRACE_PROPERTIES,
    name: [u16; NAME_LENGTH],
    file: [u16; NAME_LENGTH],
}

impl Block {
    fn new() -> Box<Block> {
        let mut block = Box::new(Block {
            properties: EVENT_TRACE_PROPERTIES::default(),
            name: [0; NAME_LENGTH],
            file: [0; NAME_LENGTH],
        });
        block.properties.Wnode.BufferSize = size_of::<Block>() as u32;
        block.properties.LoggerNameOffset = offset_of!(Block, name) as u32;
        block.properties.LogFileNameOffset = offset_of!(Block, file) as u32;
        block
    }

    fn read(&self) -> Properties {
        let p = &self.properties;
        let length = self.name.iter().position(|unit| *unit == 0).unwrap_or(NAME_LENGTH);
        Properties {
            // SAFETY: both arms of the union are plain integers of 8 bytes.
            handle: unsafe { p.Wnode.Anonymous1.HistoricalContext },
            name: String::from_utf16_lossy(self.name.get(..length).unwrap_or_default()),
            mode: p.LogFileMode,
            kernel_flags: p.EnableFlags,
            buffers: p.NumberOfBuffers,
            free_buffers: p.FreeBuffers,
            events_lost: p.EventsLost,
            buffers_lost: p.LogBuffersLost.saturating_add(p.RealTimeBuffersLost),
        }
    }
}

fn control(step: Step, name: &str, code: u32) -> Result<Properties, SessionError> {
    let arguments = || format!("{name}, {}", control_name(code));
    let name = wide(name);
    let mut block = Block::new();
    let handle = CONTROLTRACE_HANDLE { Value: 0 };
    // SAFETY: the name ends with 0; the block is as large as its BufferSize says and lives through the call.
    let control = || unsafe { ControlTraceW(handle, name.as_ptr(), &raw mut block.properties, code) };
    let status = journal::call("ControlTraceW", arguments, control);
    check(step, status).map(|()| block.read())
}

fn control_name(code: u32) -> &'static str {
    match code {
        EVENT_TRACE_CONTROL_QUERY => "QUERY",
        EVENT_TRACE_CONTROL_STOP => "STOP",
        EVENT_TRACE_CONTROL_FLUSH => "FLUSH",
        _ => "another",
    }
}

pub(super) fn query(name: &str) -> Result<Properties, SessionError> {
    control(Step::Query, name, EVENT_TRACE_CONTROL_QUERY)
}

/// Stops it; what it was at its end.
pub(super) fn stop(name: &str) -> Result<Properties, SessionError> {
    control(Step::Stop, name, EVENT_TRACE_CONTROL_STOP)
}

/// Hands out what the session has in its buffers, without waiting for its timer.
pub(super) fn flush(name: &str) -> Result<(), SessionError> {
    control(Step::Flush, name, EVENT_TRACE_CONTROL_FLUSH).map(drop)
}

/// Every session that this user may see.
pub(super) fn all() -> Result<Vec<Properties>, SessionError> {
    // Before Windows 10 there are at most 64, and room for more is an invalid parameter. EtwMaxLoggers of the registry
    // goes up to 256.
    const MOST: [usize; 2] = [64, 256];
    const MORE_DATA: u32 = 234;
    let mut sessions = Vec::new();
    for room in MOST {
        let mut blocks: Vec<Box<Block>> = (0..room).map(|_| Block::new()).collect();
        let mut pointers: Vec<*mut EVENT_TRACE_PROPERTIES> =
            blocks.iter_mut().map(|block| &raw mut block.properties).collect();
        let mut count = 0;
        // SAFETY: `room` pointers to blocks that are as large as their BufferSize says; all live through the call.
        let ask = || unsafe { QueryAllTracesW(pointers.as_mut_ptr(), room as u32, &mut count) };
        let status = journal::call("QueryAllTracesW", || format!("room for {room}"), ask);
        if status != MORE_DATA {
            check(Step::List, status)?;
        }
        // With more than there is room for it gives as many as there is room for.
        sessions = blocks.iter().take(count as usize).map(|block| block.read()).collect();
        if status != MORE_DATA {
            break;
        }
    }
    Ok(sessions)
}

/// A provider of programs, and what is wanted of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provider {
    pub(super) id: Guid,
    pub(super) level: u8,
    pub(super) keywords: u64,
}

/// Switches a provider on. No filter: for all processes; with one it may still be for all, where the system cannot
/// filter. Waits up to `patience` until all programs with the provider have been called.
pub(super) fn enable(
    session: u64,
    provider: Provider,
    filter: Option<&ScopeFilter>,
    patience: Duration,
) -> Result<(), SessionError> {
    // Ids are an array of ULONGs (ferrisetw's has u16s, so it cannot be used).
    let mut descriptor = filter.map_or_else(EVENT_FILTER_DESCRIPTOR::default, |filter| {
        EVENT_FILTER_DESCRIPTOR { Ptr: filter.data.as_ptr() as u64, Size: filter.size, Type: filter.kind }
    });
    let filtered = filter.is_some();
    let mut parameters = ENABLE_TRACE_PARAMETERS {
        Version: ENABLE_TRACE_PARAMETERS_VERSION_2,
        EnableFilterDesc: if filtered { &raw mut descriptor } else { std::ptr::null_mut() },
        FilterDescCount: u32::from(filtered),
        ..Default::default()
    };
    let mut status = enable_with(session, provider, filter, patience, &parameters);
    if status == INVALID_PARAMETER {
        // Filters by process, and this version of the structure, came with Windows 8.1.
        parameters =
            ENABLE_TRACE_PARAMETERS { Version: ENABLE_TRACE_PARAMETERS_VERSION, ..Default::default() };
        status = enable_with(session, provider, None, patience, &parameters);
    }
    const TIMEOUT: u32 = 1460;
    // The provider is on, and a program that hangs has not been called yet.
    if status == TIMEOUT { Ok(()) } else { check(Step::EnableProvider, status) }
}

/// `filter` is what `parameters` points to.
fn enable_with(
    session: u64,
    provider: Provider,
    filter: Option<&ScopeFilter>,
    patience: Duration,
    parameters: &ENABLE_TRACE_PARAMETERS,
) -> u32 {
    let Provider { id, level, keywords } = provider;
    let version = parameters.Version;
    let arguments = || {
        format!(
            "session {session:#x}, provider {id}, enable, level {level}, keywords {keywords:#x}, parameters version \
             {version}, filter {filter:?}, time-out {patience:?}"
        )
    };
    // SAFETY: provider, parameters, descriptor and filter live through the call, which copies them.
    let enable = || unsafe {
        EnableTraceEx2(
            CONTROLTRACE_HANDLE { Value: session },
            &guid(provider.id),
            EVENT_CONTROL_CODE_ENABLE_PROVIDER,
            provider.level,
            provider.keywords,
            0,
            patience.as_millis() as u32,
            parameters,
        )
    };
    journal::call("EnableTraceEx2", arguments, enable)
}

/// The profile source of the timer.
const TIMER: u32 = 0;

/// The machine's sampling interval, in 100 ns.
pub(super) fn sampling_interval() -> Result<u32, SessionError> {
    let mut info = TRACE_PROFILE_INTERVAL { Source: TIMER, Interval: 0 };
    let mut length = 0;
    // SAFETY: the length is that of the structure, which lives through the call.
    let ask = || unsafe {
        TraceQueryInformation(
            CONTROLTRACE_HANDLE { Value: 0 },
            TraceSampledProfileIntervalInfo,
            (&raw mut info).cast(),
            size_of_val(&info) as u32,
            &mut length,
        )
    };
    let arguments = || "SampledProfileIntervalInfo".to_owned();
    let status = journal::call("TraceQueryInformation", arguments, ask);
    journal::fact("sampling interval as read, 100 ns", || info.Interval.to_string());
    check(Step::ReadInterval, status).map(|()| info.Interval)
}

/// Sets the machine's sampling interval, in 100 ns.
pub(super) fn set_sampling_interval(interval: u32) -> Result<(), SessionError> {
    let info = TRACE_PROFILE_INTERVAL { Source: TIMER, Interval: interval };
    let arguments = || format!("SampledProfileIntervalInfo, {interval} x 100 ns");
    set(Step::SetInterval, 0, TraceSampledProfileIntervalInfo, &[info], arguments)
}

/// Asks for a stack with each of these events (task GUID and type).
pub(super) fn trace_stacks(session: u64, events: &[(Guid, u8)]) -> Result<(), SessionError> {
    let arguments = || format!("session {session:#x}, StackTracingInfo, {events:?}");
    let ids: Vec<CLASSIC_EVENT_ID> = events
        .iter()
        .map(|(task, kind)| CLASSIC_EVENT_ID { EventGuid: guid(*task), Type: *kind, Reserved: [0; 7] })
        .collect();
    until_free(|| set(Step::TraceStacks, session, TraceStackTracingInfo, &ids, arguments))
}

/// Switches kernel events on, by group masks.
pub(super) fn enable_kernel(session: u64, masks: [u32; 8]) -> Result<(), SessionError> {
    let arguments = || format!("session {session:#x}, SystemTraceEnableFlagsInfo, {masks:x?}");
    let is_on = masks.iter().any(|mask| *mask != 0);
    if is_on {
        // Before the call: records come while it goes on.
        journal::phase(Phase::FirstSecond);
    }
    let result =
        until_free(|| set(Step::EnableKernel, session, TraceSystemTraceEnableFlagsInfo, &masks, arguments));
    if !is_on {
        journal::phase(Phase::Off);
    }
    read_masks_back(session);
    result
}

/// For the journal alone: what the system made of the masks. Whether it can be asked is not documented.
fn read_masks_back(session: u64) {
    if !journal::is_on() {
        return;
    }
    let (mut masks, mut length) = ([0_u32; 8], 0);
    // SAFETY: the length is that of the masks, which live through the call.
    let ask = || unsafe {
        TraceQueryInformation(
            CONTROLTRACE_HANDLE { Value: session },
            TraceSystemTraceEnableFlagsInfo,
            masks.as_mut_ptr().cast(),
            size_of_val(&masks) as u32,
            &mut length,
        )
    };
    let arguments = || format!("session {session:#x}, SystemTraceEnableFlagsInfo");
    let status = journal::call("TraceQueryInformation", arguments, ask);
    journal::fact("kernel event masks as read", || match status {
        0 => format!("{masks:x?} ({length} bytes)"),
        code => format!("refused with {code}"),
    });
}

/// Tries again where somebody holds the sampling source: security products do so for moments.
fn until_free(mut call: impl FnMut() -> Result<(), SessionError>) -> Result<(), SessionError> {
    const AGAIN: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(200);
    for _ in 0..AGAIN {
        match call() {
            Err(error) if error.code() == Some(BUSY) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    call()
}

/// `T` is the plain C structure that the class takes, or an element of the array that it takes.
fn set<T: Copy>(
    step: Step,
    session: u64,
    class: TRACE_QUERY_INFO_CLASS,
    data: &[T],
    arguments: impl FnOnce() -> String,
) -> Result<(), SessionError> {
    // SAFETY: the length is that of the slice, which lives through the call.
    let set = || unsafe {
        TraceSetInformation(
            CONTROLTRACE_HANDLE { Value: session },
            class,
            data.as_ptr().cast(),
            size_of_val(data) as u32,
        )
    };
    check(step, journal::call("TraceSetInformation", arguments, set))
}

pub(super) fn check(step: Step, status: u32) -> Result<(), SessionError> {
    if status == 0 { Ok(()) } else { Err(SessionError::call(step, status)) }
}

pub(super) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

fn guid(guid: Guid) -> GUID {
    let [a, b, c, d, e, f, g, h, data4 @ ..] = guid.to_bytes();
    GUID {
        data1: u32::from_le_bytes([a, b, c, d]),
        data2: u16::from_le_bytes([e, f]),
        data3: u16::from_le_bytes([g, h]),
        data4,
    }
}
