//! One recording: both sessions from their start to their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GetSystemTimePreciseAsFileTime;

use crate::etl::{Clock, ClockKind};
use crate::event::{Pointer, Ticks};
use crate::events::providers::{CLR, CLR_RUNDOWN, PERF_INFO};
use crate::guid::Guid;

use super::consumer::{self, Consumer, LogHeader};
use super::error::{NO_SUCH_SESSION, SessionError};
use super::host::Host;
use super::inventory::Inventory;
use super::pipeline::{Counters, Pipeline, Rundown, Sink};
use super::scope::Scope;
use super::undo::{Guard, Undo};
use super::{etw, lists, process, running, snapshot};

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples per second and processor.
    pub frequency: u32,
    /// The processes whose CLR events are wanted. All, where a filter cannot express them.
    pub scope: Scope,
}

/// A recording that runs. Dropping it stops everything without a result.
#[derive(Debug)]
pub struct Recorder<S> {
    kernel: Half,
    clr: Half,
    interval: Guard,
    pipeline: Pipeline<S>,
    counters: Arc<Counters>,
    scope: Scope,
    inventory: Inventory,
    started: Started,
}

/// One of the two sessions, and its consumer.
#[derive(Debug)]
struct Half {
    // These two in the order in which they are dropped: a session is stopped before its consumer is closed.
    guard: Guard,
    consumer: Option<Consumer>,
    name: String,
    handle: u64,
}

/// What is known when a recording has been started.
#[derive(Clone, Debug)]
pub struct Started {
    /// This machine.
    pub host: Host,
    /// The sampling interval that was asked for, in 100 ns.
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
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Stopped<S> {
    /// The sink; it has all events.
    pub sink: S,
    /// What did not come through.
    pub losses: Losses,
    /// Programs, by process id, that run .NET code and did not list all of it when they were asked at the end.
    pub unlisted: Vec<u32>,
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
/// Without it every method of every NGEN image that is loaded is listed (documentation of CLR ETW keywords; from .NET
/// Framework 4.5 on). Where every program of the machine is asked, they list these once, at the end; the few of a filter
/// do so at the start, too, because they may end before the recording does.
const SUPPRESS_NGEN: u64 = 0x4_0000;
const NAMES: u64 = LOADER | JIT | NGEN | IL_TO_NATIVE_MAP;

/// Buffers are handed out at least every second, and need time to come: this is safely longer.
const WINDOW_SECONDS: u64 = 2;

/// How long CLRs may take to list their code at the end.
const RUNDOWN_LIMIT: Duration = Duration::from_secs(10);
/// A CLR that is known and has not begun after this time hangs or is suspended.
const RUNDOWN_ANSWER: Duration = Duration::from_secs(3);
/// A CLR that is not known and has not begun after this time is not there.
const RUNDOWN_QUIET: Duration = Duration::from_millis(500);

impl<S: Sink> Recorder<S> {
    /// Starts recording into the sink that `make` gives. Whatever fails, what was done before is undone.
    pub fn start(options: &Options, make: impl FnOnce(&Host) -> S) -> Result<Recorder<S>, SessionError> {
        process::enable_profile_privilege()?;
        let stale = running::stop_stale();

        let before = etw::sampling_interval()?;
        let asked_interval = 10_000_000 / options.frequency.max(1);
        let (interval, ()) =
            Guard::new(Undo::Interval(before), || etw::set_sampling_interval(asked_interval))?;
        // A rate that the machine cannot do becomes one that it can.
        let in_force = etw::sampling_interval()?;

        let base = now();
        let buffers = kernel_buffers(options.frequency, process::processors());
        let kernel = Half::start("kernel", |name| etw::start_kernel(name, buffers))?;
        etw::trace_stacks(kernel.handle, &[(PERF_INFO, SAMPLED_PROFILE)])?;
        let (kernel_opened, header) = consumer::open(&kernel.name)?;
        let clr = Half::start("clr", |name| etw::start_user(name, CLR_BUFFERS))?;
        let (clr_opened, _) = consumer::open(&clr.name)?;

        let clock = clock(base, &header);
        let started = Started { host: host(clock, &header, in_force), asked_interval, stale };
        let pipeline = Pipeline::start(make(&started.host), (clock.frequency * WINDOW_SECONDS) as i64)
            .map_err(|error| SessionError::Thread(error.to_string()))?;
        let counters = pipeline.counters();
        // From here on a failure drops all of it, in its order.
        let mut recorder = Recorder {
            kernel,
            clr,
            interval,
            pipeline,
            counters,
            scope: options.scope.clone().expressible(),
            inventory: Inventory::default(),
            started,
        };
        recorder.kernel.consumer = Some(kernel_opened.run(recorder.pipeline.feed())?);
        recorder.clr.consumer = Some(clr_opened.run(recorder.pipeline.feed())?);

        recorder.enable_clr(CLR, NAMES)?;
        let suppressed = if recorder.scope == Scope::All { SUPPRESS_NGEN } else { 0 };
        recorder.enable_clr(CLR_RUNDOWN, NAMES | START_ENUMERATION | suppressed)?;
        // What comes from now on the events report; what was there before, the kernel's list, if there is one.
        etw::enable_kernel(recorder.kernel.handle, [PROCESS_THREAD_IMAGE, 0, 0, 0, 0, 0, 0, 0])?;
        recorder.inventory = snapshot::take(|| now().0);
        lists::wait_at_start(&recorder.counters, &recorder.clr.name);
        // Samples come last: whatever they hit is then being recorded, and none is without its stack.
        let masks = [PROCESS_THREAD_IMAGE, MASK1_PROFILE, 0, 0, 0, 0, 0, 0];
        etw::enable_kernel(recorder.kernel.handle, masks)?;
        Ok(recorder)
    }

    fn enable_clr(&mut self, provider: Guid, keywords: u64) -> Result<(), SessionError> {
        let enable = |scope: &Scope| {
            etw::enable(self.clr.handle, provider, VERBOSE, keywords, scope.filter().as_ref())
        };
        match enable(&self.scope) {
            // By name is the younger of the filters. Without it there is only more to read.
            Err(_) if matches!(self.scope, Scope::Names(_)) => {
                enable(&Scope::All)?;
                self.scope = Scope::All;
                Ok(())
            }
            done => done,
        }
    }

    /// Switches the kernel's events off before the session is stopped: that makes the kernel list what still runs, also
    /// where a stop does not hand the list out any more (perfview#928). A stop makes up for what fails here.
    fn list_what_runs(&self) {
        if etw::enable_kernel(self.kernel.handle, [0; 8]).is_ok() {
            let _ = etw::flush(&self.kernel.name);
        }
    }

    /// What is known since the start.
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// How it goes. Asks the system.
    pub fn status(&self) -> Status {
        let kernel = etw::query(&self.kernel.name).unwrap_or_default();
        let clr = etw::query(&self.clr.name).unwrap_or_default();
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
        self.pipeline.has_failed() || self.kernel.is_done() || self.clr.is_done()
    }

    /// Stops sampling, lets the kernel and the CLRs list what is there, and gives the sink when it has everything.
    pub fn stop(mut self) -> Result<Stopped<S>, SessionError> {
        self.list_what_runs();
        let kernel_stopped = self.kernel.stop();
        let interval_restored = self.interval.undo();
        let listed = self.list_clr_code();
        let unlisted = self.unlisted();
        let clr_stopped = self.clr.stop();

        let kernel_read = self.kernel.finish(&kernel_stopped);
        let clr_read = self.clr.finish(&clr_stopped);
        // A session's last figures come with its stop.
        let end = |stopped: &Result<etw::Properties, _>| stopped.as_ref().cloned().unwrap_or_default();
        let mut losses = self.losses(&end(&kernel_stopped), &end(&clr_stopped));
        let Recorder { pipeline, kernel, clr, interval, inventory, .. } = self;
        // What could not be stopped is tried again here, and told.
        drop((kernel, clr, interval));
        let mut drained = pipeline.finish().ok_or(SessionError::Builder)?;
        drained.sink.inventory(inventory);
        losses.late = drained.late;
        let ends = [
            kernel_stopped.map(drop),
            interval_restored,
            listed,
            clr_stopped.map(drop),
            kernel_read,
            clr_read,
        ];
        let problems = ends.into_iter().filter_map(Result::err).collect();
        Ok(Stopped { sink: drained.sink, losses, unlisted, problems })
    }

    /// Has the CLRs list their code: modules first, which are few and needed most, then methods.
    fn list_clr_code(&mut self) -> Result<(), SessionError> {
        let until = Instant::now() + RUNDOWN_LIMIT;
        for keywords in [LOADER, NAMES & !LOADER] {
            if self.clr.is_done() {
                break;
            }
            let before = self.counters.rundowns().clone();
            self.enable_clr(CLR_RUNDOWN, keywords | FORCE_END_ENUMERATION)?;
            self.wait_for_rundown(&before, until);
            if self.counters.rundowns().is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until every CLR has listed its code once more than `before`, or will not.
    fn wait_for_rundown(&self, before: &BTreeMap<u32, Rundown>, until: Instant) {
        let start = Instant::now();
        let (mut last, mut since) = (before.clone(), start);
        while Instant::now() < until && !self.clr.is_done() {
            // Without this the session would keep the last events for a second.
            let _ = etw::flush(&self.clr.name);
            std::thread::sleep(Duration::from_millis(20));
            let now = self.counters.rundowns().clone();
            let waits = |(pid, rundown): (&u32, &Rundown)| {
                let has_begun = before.get(pid).copied().unwrap_or_default() != *rundown;
                let is_open = rundown.done < rundown.begun;
                (is_open || !has_begun && start.elapsed() < RUNDOWN_ANSWER) && process::watch(*pid).is_some()
            };
            if !now.iter().any(waits) && now == last && since.elapsed() > RUNDOWN_QUIET {
                break;
            }
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    /// Who has not listed all of its code, of the programs that still run.
    fn unlisted(&self) -> Vec<u32> {
        let rundowns = self.counters.rundowns().clone();
        let unlisted =
            rundowns.iter().filter(|(_, rundown)| rundown.done == 0 || rundown.done < rundown.begun);
        unlisted.map(|(pid, _)| *pid).filter(|pid| process::watch(*pid).is_some()).collect()
    }

    fn losses(&self, kernel: &etw::Properties, clr: &etw::Properties) -> Losses {
        Losses {
            events: u64::from(kernel.events_lost) + u64::from(clr.events_lost),
            buffers: u64::from(kernel.buffers_lost) + u64::from(clr.buffers_lost),
            dropped: self.counters.dropped.load(Relaxed),
            late: 0,
        }
    }
}

impl Half {
    fn start(part: &str, start: impl FnOnce(&str) -> Result<(), SessionError>) -> Result<Half, SessionError> {
        let name = running::name(part);
        let (guard, ()) = Guard::new(Undo::Session(name.clone()), || start(&name))?;
        let handle = etw::query(&name)?.handle;
        Ok(Half { guard, consumer: None, name, handle })
    }

    fn is_done(&self) -> bool {
        self.consumer.as_ref().is_some_and(Consumer::is_done)
    }

    /// Stops the session and gives its last figures. One that somebody else has stopped needs no undoing either.
    fn stop(&mut self) -> Result<etw::Properties, SessionError> {
        let end = etw::stop(&self.name);
        let end = if is_stopped(&end) { end } else { etw::stop(&self.name) };
        if is_stopped(&end) {
            self.guard.disarm();
        }
        end
    }

    /// Reads what is left.
    fn finish<T>(&mut self, stopped: &Result<T, SessionError>) -> Result<(), SessionError> {
        self.consumer.take().map_or(Ok(()), |consumer| consumer.finish(is_stopped(stopped)))
    }
}

fn is_stopped<T>(end: &Result<T, SessionError>) -> bool {
    end.as_ref().err().is_none_or(|error| error.code() == Some(NO_SUCH_SESSION))
}

/// A sample with its stack takes some 600 bytes (stacks of 64 frames), and three seconds of them must find room while
/// this process does not get to run.
fn kernel_buffers(frequency: u32, processors: u32) -> etw::Buffers {
    const SIZE: u32 = 256;
    const MOST: u32 = 2048;
    // At the start one processor writes the list of all images, some 12 MB on a large machine, faster than it is read.
    const FIRST: u32 = 128;
    let per_processor = (frequency * 600 * 3 / (SIZE << 10)).max(8);
    let maximum = (per_processor * processors).clamp(2 * FIRST, MOST.max(2 * processors));
    etw::Buffers { size: SIZE, minimum: (maximum / 4).max(2 * processors).max(FIRST), maximum }
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

fn host(clock: Clock, header: &LogHeader, interval: u32) -> Host {
    let architecture = process::architecture();
    let variable = |name| std::env::var(name).ok();
    Host {
        clock,
        processors: header.processors,
        os_build: header.os_build,
        // The header's own pointer size is wrong at times in live sessions.
        pointer: if matches!(architecture, 9 | 12) { Pointer::Bits64 } else { Pointer::Bits32 },
        architecture,
        name: variable("COMPUTERNAME").unwrap_or_default(),
        interval,
        windows: variable("SystemRoot").unwrap_or_else(|| r"C:\Windows".to_owned()),
        volumes: process::volumes(),
    }
}
