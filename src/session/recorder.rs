//! One recording: both sessions from their start to their end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GetSystemTimePreciseAsFileTime;

use crate::etl::{Clock, ClockKind};
use crate::event::{Pointer, Ticks};
use crate::events::providers::{CLR, CLR_RUNDOWN, PERF_INFO};
use crate::trace::Machine;

use super::consumer::{self, Consumer, LogHeader, Opened};
use super::error::{NO_SUCH_SESSION, SessionError};
use super::pipeline::{Counters, Pipeline, Sink};
use super::undo::{Guard, Undo};
use super::{etw, process, running};

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples per second and processor.
    pub frequency: u32,
    /// Only these processes' CLR events, where there are at most [`MOST_PIDS`]; empty: all.
    pub clr_pids: Vec<u32>,
}

/// A filter of a provider takes so many pids (documentation of EVENT_FILTER_DESCRIPTOR).
const MOST_PIDS: usize = 8;

/// A recording that runs. Dropping it stops everything without a result.
#[derive(Debug)]
pub struct Recorder<S> {
    // In the order in which they are dropped: sessions are stopped before their consumers are closed.
    kernel: Guard,
    clr: Guard,
    interval: Guard,
    consumers: Vec<Consumer>,
    pipeline: Pipeline<S>,
    counters: Arc<Counters>,
    kernel_name: String,
    clr_name: String,
    clr_handle: u64,
    clr_pids: Vec<u32>,
    started: Started,
}

/// What is known when a recording has been started.
#[derive(Clone, Debug)]
pub struct Started {
    /// The clock of all events.
    pub clock: Clock,
    /// This machine.
    pub machine: Machine,
    /// The sampling interval in force, in 100 ns.
    pub interval: u32,
    /// What was asked for, in 100 ns.
    pub asked_interval: u32,
    /// Sessions of crashed runs that were stopped.
    pub stale: Vec<String>,
}

/// How a recording goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// Events that came.
    pub events: u64,
    /// CPU samples among them.
    pub samples: u64,
    /// What was lost up to now.
    pub losses: Losses,
    /// The kernel session's buffers.
    pub buffers: u32,
    /// Of these: those with events in them.
    pub buffers_used: u32,
}

/// What did not come through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the sessions had no room for.
    pub events: u64,
    /// Buffers that the sessions lost.
    pub buffers: u64,
    /// Events that were dropped here because the builder was too slow.
    pub dropped: u64,
    /// Events that came so late that they are out of order.
    pub late: u64,
    /// Lists of a CLR's code that were begun and not complete when the recording ended.
    pub unfinished_rundowns: u64,
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Stopped<S> {
    /// The sink; it has all events.
    pub sink: S,
    /// What did not come through.
    pub losses: Losses,
    /// What failed while it ended, without costing the result.
    pub problems: Vec<SessionError>,
}

// Kernel flags, as group masks: the word's index is in the top three bits of a PERF_ constant.
const PROCESS_THREAD_IMAGE: u32 = 0x1 | 0x2 | 0x4;
const MASK1_PROFILE: u32 = 0x2;
const SAMPLED_PROFILE: u8 = 46;

const VERBOSE: u8 = 5;
// Keywords of the CLR's providers, the same for both.
const LOADER: u64 = 0x8;
const JIT: u64 = 0x10;
const NGEN: u64 = 0x20;
const START_ENUMERATION: u64 = 0x40;
const FORCE_END_ENUMERATION: u64 = 0x100;
const IL_TO_NATIVE_MAP: u64 = 0x2_0000;
const NAMES: u64 = LOADER | JIT | NGEN | IL_TO_NATIVE_MAP;

/// Buffers are handed out at least every second, and need time to come: this is safely longer.
const WINDOW_SECONDS: u64 = 2;

/// How long CLRs may take to list their code at the end.
const RUNDOWN_LIMIT: Duration = Duration::from_secs(10);
/// A CLR that has not begun after this time is not there.
const RUNDOWN_QUIET: Duration = Duration::from_millis(500);

impl<S: Sink> Recorder<S> {
    /// Starts recording into the sink that `make` gives. Whatever fails, what was done before is undone.
    pub fn start(options: &Options, make: impl FnOnce(&Started) -> S) -> Result<Recorder<S>, SessionError> {
        process::enable_profile_privilege()?;
        let stale = running::stop_stale();

        let before = etw::sampling_interval()?;
        let asked_interval = 10_000_000 / options.frequency.max(1);
        let (interval, ()) =
            Guard::new(Undo::Interval(before), || etw::set_sampling_interval(asked_interval))?;
        // A rate that the machine cannot do becomes one that it can.
        let in_force = etw::sampling_interval()?;

        let processors = std::thread::available_parallelism().map_or(1, |number| number.get() as u32);
        let base = now();
        let (kernel_name, clr_name) = (running::name("kernel"), running::name("clr"));
        let (kernel, ()) = Guard::new(Undo::Session(kernel_name.clone()), || {
            etw::start_kernel(&kernel_name, kernel_buffers(options.frequency, processors))
        })?;
        let kernel_handle = etw::query(&kernel_name)?.handle;
        etw::trace_stacks(kernel_handle, &[(PERF_INFO, SAMPLED_PROFILE)])?;
        let (kernel_opened, header) = consumer::open(&kernel_name)?;

        let (clr, ()) =
            Guard::new(Undo::Session(clr_name.clone()), || etw::start_user(&clr_name, CLR_BUFFERS))?;
        let clr_handle = etw::query(&clr_name)?.handle;
        let (clr_opened, _) = consumer::open(&clr_name)?;

        let clock = clock(base, &header);
        let started =
            Started { clock, machine: machine_of(&header), interval: in_force, asked_interval, stale };
        let sink = make(&started);
        let pipeline = Pipeline::start(sink, (clock.frequency * WINDOW_SECONDS) as i64)
            .map_err(|error| SessionError::Thread(error.to_string()))?;
        let counters = pipeline.counters();
        let read = |opened: Opened| opened.run(pipeline.feed());
        let consumers = vec![read(kernel_opened)?, read(clr_opened)?];

        let mut clr_pids = options.clr_pids.clone();
        if clr_pids.len() > MOST_PIDS {
            clr_pids.clear();
        }
        etw::enable(clr_handle, CLR, VERBOSE, NAMES, &clr_pids)?;
        etw::enable(clr_handle, CLR_RUNDOWN, VERBOSE, NAMES | START_ENUMERATION, &clr_pids)?;
        // Samples come last: whatever they hit is then being recorded, and none is without its stack.
        etw::enable_kernel(kernel_handle, [PROCESS_THREAD_IMAGE, MASK1_PROFILE, 0, 0, 0, 0, 0, 0])?;
        Ok(Recorder {
            kernel,
            clr,
            interval,
            consumers,
            pipeline,
            counters,
            kernel_name,
            clr_name,
            clr_handle,
            clr_pids,
            started,
        })
    }

    /// What is known since the start.
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// How it goes. Asks the system.
    pub fn status(&self) -> Status {
        let kernel = etw::query(&self.kernel_name).unwrap_or_default();
        let clr = etw::query(&self.clr_name).unwrap_or_default();
        Status {
            events: self.counters.events.load(Relaxed),
            samples: self.counters.samples.load(Relaxed),
            losses: self.losses(&kernel, &clr),
            buffers: kernel.buffers,
            buffers_used: kernel.buffers.saturating_sub(kernel.free_buffers),
        }
    }

    /// True when it cannot go on: somebody stopped a session, or the builder panicked.
    pub fn is_over(&self) -> bool {
        self.pipeline.has_failed() || self.consumers.iter().any(Consumer::is_done)
    }

    /// Stops sampling, lets the kernel and the CLRs list what is there, and gives the sink when it has everything.
    pub fn stop(mut self) -> Result<Stopped<S>, SessionError> {
        let kernel_stopped = stop_session(&mut self.kernel, &self.kernel_name);
        let interval_restored = self.interval.undo();
        let listed = self.list_clr_code();
        let clr_stopped = stop_session(&mut self.clr, &self.clr_name);

        let is_stopped = |end: &Result<_, SessionError>| match end {
            Ok(_) => true,
            Err(error) => error.code() == Some(NO_SUCH_SESSION),
        };
        let stopped = is_stopped(&kernel_stopped) && is_stopped(&clr_stopped);
        let read: Vec<_> = self.consumers.drain(..).map(|consumer| consumer.finish(stopped)).collect();
        // A session's last figures come with its stop.
        let end = |stopped: &Result<etw::Properties, _>| stopped.as_ref().cloned().unwrap_or_default();
        let mut losses = self.losses(&end(&kernel_stopped), &end(&clr_stopped));
        let Recorder { pipeline, kernel, clr, interval, .. } = self;
        // What could not be stopped is tried again here, and told.
        drop((kernel, clr, interval));
        let drained = pipeline.finish().ok_or(SessionError::Builder)?;
        losses.late = drained.late;
        let ends = [kernel_stopped.map(drop), clr_stopped.map(drop), interval_restored, listed];
        let problems = ends.into_iter().chain(read);
        Ok(Stopped { sink: drained.sink, losses, problems: problems.filter_map(Result::err).collect() })
    }

    /// Has the CLRs list their code: modules first, which are few and needed most, then methods.
    fn list_clr_code(&self) -> Result<(), SessionError> {
        if self.consumers.iter().any(Consumer::is_done) {
            return Ok(());
        }
        for keywords in [LOADER, NAMES & !LOADER] {
            let keywords = keywords | FORCE_END_ENUMERATION;
            etw::enable(self.clr_handle, CLR_RUNDOWN, VERBOSE, keywords, &self.clr_pids)?;
            if !self.wait_for_rundown() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until every CLR that began its list has ended it; false if none has begun one.
    fn wait_for_rundown(&self) -> bool {
        let start = Instant::now();
        let (mut events, mut since) = (self.counters.events.load(Relaxed), start);
        while start.elapsed() < RUNDOWN_LIMIT {
            // Without this the session would keep the last events for a second.
            let _ = etw::flush(&self.clr_name);
            std::thread::sleep(Duration::from_millis(20));
            let now = self.counters.events.load(Relaxed);
            if now != events {
                (events, since) = (now, Instant::now());
            }
            if self.open_rundowns() == 0 && since.elapsed() > RUNDOWN_QUIET {
                break;
            }
        }
        self.counters.rundowns_begun.load(Relaxed) > 0
    }

    fn open_rundowns(&self) -> u64 {
        let begun = self.counters.rundowns_begun.load(Relaxed);
        begun.saturating_sub(self.counters.rundowns_done.load(Relaxed))
    }

    fn losses(&self, kernel: &etw::Properties, clr: &etw::Properties) -> Losses {
        Losses {
            events: u64::from(kernel.events_lost) + u64::from(clr.events_lost),
            buffers: u64::from(kernel.buffers_lost) + u64::from(clr.buffers_lost),
            dropped: self.counters.dropped.load(Relaxed),
            late: 0,
            unfinished_rundowns: self.open_rundowns(),
        }
    }
}

/// Stops a session and gives its last figures. A session that somebody else has stopped needs no undoing either.
fn stop_session(guard: &mut Guard, name: &str) -> Result<etw::Properties, SessionError> {
    let gone = |error: &SessionError| error.code() == Some(NO_SUCH_SESSION);
    let end = etw::stop(name).or_else(|error| if gone(&error) { Err(error) } else { etw::stop(name) });
    match &end {
        Err(error) if !gone(error) => {}
        _ => guard.disarm(),
    }
    end
}

/// A sample with its stack takes some 600 bytes (stacks of 64 frames), and three seconds of them must find room while
/// this process does not get to run.
fn kernel_buffers(frequency: u32, processors: u32) -> etw::Buffers {
    const SIZE: u32 = 256;
    const MOST: u32 = 2048;
    let per_processor = (frequency * 600 * 3 / (SIZE << 10)).max(8);
    let maximum = (per_processor * processors).clamp(2 * processors, MOST.max(2 * processors));
    etw::Buffers { size: SIZE, minimum: (maximum / 4).max(2 * processors), maximum }
}

/// The rundown of a large program is tens of megabytes within a second.
const CLR_BUFFERS: etw::Buffers = etw::Buffers { size: 256, minimum: 32, maximum: 512 };

/// One moment on both clocks: QueryPerformanceCounter, and FILETIME.
fn now() -> (Ticks, i64) {
    let mut ticks = 0;
    let mut time = FILETIME::default();
    // SAFETY: both places live through the calls.
    unsafe {
        QueryPerformanceCounter(&mut ticks);
        GetSystemTimePreciseAsFileTime(&mut time);
    }
    (Ticks(ticks), (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) as i64)
}

fn clock((base, base_utc): (Ticks, i64), header: &LogHeader) -> Clock {
    let mut frequency = header.frequency;
    if frequency == 0 {
        let mut ticks = 0;
        // SAFETY: the place lives through the call.
        unsafe { QueryPerformanceFrequency(&mut ticks) };
        frequency = u64::try_from(ticks).unwrap_or(0).max(1);
    }
    Clock { kind: ClockKind::Qpc, frequency, base, base_utc }
}

fn machine_of(header: &LogHeader) -> Machine {
    let architecture = process::architecture();
    Machine {
        processors: header.processors,
        os_build: header.os_build,
        os_name: String::new(),
        // The header's own pointer size is wrong at times in live sessions.
        pointer: if matches!(architecture, 9 | 12) { Pointer::Bits64 } else { Pointer::Bits32 },
        architecture: Some(architecture),
        name: std::env::var("COMPUTERNAME").unwrap_or_default(),
    }
}
