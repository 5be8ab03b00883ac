//! One recording: both sessions from their start to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::guid::Guid;
use crate::guids::{CLR, CLR_RUNDOWN, PERF_INFO, THREAD};
use crate::origin::Origin;
use crate::sink::{Inventory, Sink};

use super::consumer::{self, Consumer};
use super::diagnosis::Phase;
use super::error::{NO_SUCH_SESSION, SessionError};
use super::interval::{self, InForce};
use super::machine::{self, now};
use super::missing::Missing;
use super::pipeline::{Counters, Feed, Pipeline, Rundown};
use super::scope::Scope;
use super::status::{Losses, Status};
use super::undo::{Guard, Undo};
use super::{etw, journal, lists, process, running, snapshot, system};

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples per second and processor.
    pub frequency: u32,
    /// The processes whose CLR events are wanted. All, where a filter cannot express them.
    pub scope: Scope,
    /// Records context switches, and threads that are made ready, of all processes and with their stacks too.
    pub waits: bool,
}

/// A recording that runs. Dropping it stops everything without a result.
#[derive(Debug)]
pub struct Recorder<S> {
    // In the order in which they are dropped: the interval first, which is the whole machine's.
    interval: Option<Guard>,
    kernel: Half,
    clr: Option<Half>,
    pipeline: Pipeline<S>,
    counters: Arc<Counters>,
    scope: Scope,
    waits: bool,
    profile: Profile,
    inventory: Inventory,
    started: Started,
}

/// A flag that switches samples on. Windows knows two, and its documentation does not say which of them counts for a
/// system-logger session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileFlag {
    /// 0x2 of group mask word 1 (PERF_PROFILE).
    Group,
    /// 0x0100_0000 of group mask word 0 (EVENT_TRACE_FLAG_PROFILE), beside the other.
    Classic,
}

/// Which flag it is, and since when.
#[derive(Debug)]
struct Profile {
    flag: ProfileFlag,
    since: Instant,
    other_tried: bool,
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
#[non_exhaustive]
pub struct Started {
    /// This machine, and the clock of its events.
    pub origin: Origin,
    /// The sampling interval in force, in 100 ns.
    pub interval: u32,
    /// The sampling interval that was asked for, in 100 ns.
    pub asked_interval: u32,
    /// Sessions of crashed runs that were stopped.
    pub stale: Vec<String>,
    /// What the recording goes on without.
    pub missing: Vec<Missing>,
}

/// Whose .NET code is worth waiting for when a recording ends.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// Every program's.
    All,
    /// That of these processes; of none, and nothing is asked.
    Of(&'a [u32]),
}

impl Whose<'_> {
    fn includes(self, pid: u32) -> bool {
        match self {
            Whose::All => true,
            Whose::Of(pids) => pids.contains(&pid),
        }
    }
}

/// How far a recording is that ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ending {
    /// The programs that are listing their .NET code, by process id.
    pub listing: Vec<u32>,
    /// Events that came in all.
    pub events: u64,
}

/// A recording that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stopped<S> {
    /// The sink; it has all events.
    pub sink: S,
    /// What did not come through.
    pub losses: Losses,
    /// Programs, by process id, that run .NET code and did not list all of it when they were asked at the end.
    pub unlisted: Vec<u32>,
    /// The flag that samples were switched on with at the end; the first is [`ProfileFlag::Group`].
    pub profile: ProfileFlag,
    /// What failed while it ended, without costing the result.
    pub problems: Vec<SessionError>,
}

// Kernel flags, as group masks: the word's index is in the top three bits of a PERF_ constant.
const PROCESS_THREAD_IMAGE: u32 = 0x1 | 0x2 | 0x4;
const MASK1_PROFILE: u32 = 0x2;
const MASK0_PROFILE: u32 = 0x0100_0000;
const SAMPLED_PROFILE: u8 = 46;
// Context switches and ready threads have two flags each, as samples have, and both are set (B-switch-flags): PERF_CONTEXT_SWITCH and
// PERF_DISPATCHER, EVENT_TRACE_FLAG_CSWITCH and EVENT_TRACE_FLAG_DISPATCHER.
const MASK1_WAITS: u32 = 0x4 | 0x200;
const MASK0_WAITS: u32 = 0x10 | 0x800;
const CONTEXT_SWITCH: u8 = 36;
const READY_THREAD: u8 = 50;

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
const GC: u64 = 0x1;
const CONTENTION: u64 = 0x4000;
const EXCEPTION: u64 = 0x8000;
const THREADING: u64 = 0x1_0000;
/// What runtimes report as it happens: code, collections and pauses, contended locks, exceptions, the thread pool.
const LIVE: u64 = NAMES | GC | CONTENTION | EXCEPTION | THREADING;

/// Buffers are handed out at least every second, and need time to come: this is safely longer.
const WINDOW_SECONDS: u64 = 2;

/// Programs with a CLR get so long to take note that its provider is on: from then on they hand out what stacks need.
const CLR_PATIENCE: Duration = Duration::from_secs(1);
/// After this time without one sample the other flag is set as well. Idle processors are sampled too, and what is sampled
/// in the first moments is handed out after a second.
const SAMPLES_DUE: Duration = Duration::from_secs(2);

/// How long CLRs may take to list their code at the end.
const RUNDOWN_LIMIT: Duration = Duration::from_secs(10);
/// A CLR that is known and has begun no list after this time hangs or is suspended. Whoever waits for a result should
/// have it within a second, unless a list is on its way.
const RUNDOWN_ANSWER: Duration = Duration::from_millis(700);
/// A CLR that is not known and has not begun after this time is not there.
const RUNDOWN_QUIET: Duration = Duration::from_millis(150);

impl<S: Sink> Recorder<S> {
    /// Starts recording into the sink that `make` gives. Whatever fails, what was done before is undone.
    pub fn start(options: &Options, make: impl FnOnce(&Origin) -> S) -> Result<Recorder<S>, SessionError> {
        process::enable_profile_privilege()?;
        let stale = running::stop_stale();
        let found = interval::find(stale.interval);
        let [kernel_name, clr_name] = running::names(found.own);

        let base = now();
        let buffers = kernel_buffers(options, process::processors());
        let kernel = Half::start(kernel_name, |name| etw::start_kernel(name, buffers))?;
        // Now that a session's name keeps what it was.
        let asked_interval = 10_000_000 / options.frequency.max(1);
        let InForce { interval: in_force, guard: interval, missing } = found.change(asked_interval);
        let mut stacks = vec![(PERF_INFO, SAMPLED_PROFILE)];
        if options.waits {
            stacks.extend([(THREAD, CONTEXT_SWITCH), (THREAD, READY_THREAD)]);
        }
        etw::trace_stacks(kernel.handle, &stacks)?;
        let (kernel_opened, header) = consumer::open(&kernel.name)?;

        let origin = machine::origin(base, &header, in_force);
        let window = (origin.clock.frequency * WINDOW_SECONDS) as i64;
        let started = Started {
            origin,
            interval: in_force,
            asked_interval,
            stale: stale.stopped,
            missing: missing.into_iter().collect(),
        };
        let pipeline = Pipeline::start(make(&started.origin), window)
            .map_err(|error| SessionError::Thread(error.to_string()))?;
        let counters = pipeline.counters();
        let profile = Profile { flag: ProfileFlag::Group, since: Instant::now(), other_tried: false };
        // From here on a failure drops all of it, in its order.
        let mut recorder = Recorder {
            interval,
            kernel,
            clr: None,
            pipeline,
            counters,
            scope: options.scope.clone().expressible(),
            waits: options.waits,
            profile,
            inventory: Inventory::default(),
            started,
        };
        recorder.kernel.consumer = Some(kernel_opened.run(recorder.kernel_feed())?);
        if let Err(error) = recorder.start_clr(clr_name) {
            recorder.clr = None;
            recorder.started.missing.push(Missing::DotNet(error));
        }
        // What comes from now on the events report; what was there before, the kernel's list, if there is one.
        etw::enable_kernel(recorder.kernel.handle, [PROCESS_THREAD_IMAGE, 0, 0, 0, 0, 0, 0, 0])?;
        recorder.inventory = snapshot::take(|| now().0);
        if let Some(clr) = &recorder.clr {
            lists::wait_at_start(&recorder.counters, &clr.name);
        }
        // Samples come last: whatever they hit is then being recorded, and none is without its stack.
        recorder.switch_on(ProfileFlag::Group)?;
        Ok(recorder)
    }

    /// A way into the recording for events that no session writes. Their times are of [`now`].
    pub fn feed(&self) -> Feed {
        self.pipeline.feed()
    }

    fn kernel_feed(&self) -> Feed {
        let observer = journal::observer("kernel", self.started.origin.clock.frequency);
        self.pipeline.feed().know(process::threads()).observed(observer)
    }

    fn clr_feed(&self) -> Feed {
        self.pipeline.feed().observed(journal::observer("CLR", self.started.origin.clock.frequency))
    }

    /// Starts the part that a recording can do without; of its two providers one is enough.
    fn start_clr(&mut self, name: String) -> Result<(), SessionError> {
        let clr = Half::start(name, |name| etw::start_user(name, CLR_BUFFERS))?;
        let (opened, _) = consumer::open(&clr.name)?;
        let feed = self.clr_feed();
        let clr = self.clr.insert(clr);
        clr.consumer = Some(opened.run(feed)?);
        let mut live = self.enable_clr(CLR, LIVE, CLR_PATIENCE);
        if live.is_err() && matches!(self.scope, Scope::Names(_)) {
            // By name is the younger of the filters. Without it there is only more to read.
            self.scope = Scope::All;
            live = self.enable_clr(CLR, LIVE, CLR_PATIENCE);
        }
        let suppressed = if self.scope == Scope::All { SUPPRESS_NGEN } else { 0 };
        let before = self.enable_clr(CLR_RUNDOWN, NAMES | START_ENUMERATION | suppressed, CLR_PATIENCE);
        let missing = match (live, before) {
            (Err(error), Err(_)) => return Err(error),
            (live, before) => live.map_err(Missing::DotNet).and(before.map_err(Missing::DotNetBefore)),
        };
        self.started.missing.extend(missing.err());
        Ok(())
    }

    fn enable_clr(&self, id: Guid, keywords: u64, patience: Duration) -> Result<(), SessionError> {
        let provider = etw::Provider { id, level: VERBOSE, keywords };
        let filter = self.scope.filter();
        self.clr.as_ref().map_or(Ok(()), |clr| etw::enable(clr.handle, provider, filter.as_ref(), patience))
    }

    /// Switches samples on, and what must come with them.
    fn switch_on(&mut self, flag: ProfileFlag) -> Result<(), SessionError> {
        let classic = if flag == ProfileFlag::Classic { MASK0_PROFILE } else { 0 };
        let waits = if self.waits { (MASK0_WAITS, MASK1_WAITS) } else { (0, 0) };
        let words = [PROCESS_THREAD_IMAGE | classic | waits.0, MASK1_PROFILE | waits.1];
        etw::enable_kernel(self.kernel.handle, [words[0], words[1], 0, 0, 0, 0, 0, 0])?;
        (self.profile.flag, self.profile.since) = (flag, Instant::now());
        Ok(())
    }

    /// To be called now and then while it records. Where no sample comes it sets the other flag as well, once.
    pub fn tend(&mut self) {
        let Profile { since, other_tried, .. } = &mut self.profile;
        if *other_tried || since.elapsed() < SAMPLES_DUE || self.counters.samples().all > 0 {
            return;
        }
        *other_tried = true;
        // Where the system refuses it, the first one stays.
        let _ = self.switch_on(ProfileFlag::Classic);
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
        let clr = self.clr.as_ref().and_then(|clr| etw::query(&clr.name).ok()).unwrap_or_default();
        let status = Status {
            events: self.counters.events.load(Relaxed),
            samples: self.counters.samples(),
            losses: self.losses(&kernel, &clr),
            buffers: kernel.buffers,
            buffers_used: kernel.buffers.saturating_sub(kernel.free_buffers),
            waiting: self.pipeline.waiting(),
            memory: system::private_memory(),
            memory_left: system::memory_left(),
        };
        journal::health(&status);
        status
    }

    /// Has the kernel session hand out what is in its buffers, without waiting for them to be full. Best effort.
    pub fn flush(&self) {
        let _ = etw::flush(&self.kernel.name);
    }

    /// True when it cannot go on: somebody stopped the kernel session, or the builder panicked.
    pub fn is_over(&self) -> bool {
        self.pipeline.has_failed() || self.kernel.is_done()
    }

    /// Stops sampling, lets the kernel and the CLRs list what is there, and gives the sink when it has everything.
    /// `on_wait` hears again and again of the lists that are waited for.
    pub fn stop(
        mut self,
        whose: Whose<'_>,
        on_wait: &mut dyn FnMut(&Ending),
    ) -> Result<Stopped<S>, SessionError> {
        self.status();
        self.list_what_runs();
        let kernel_stopped = self.kernel.stop();
        journal::phase(Phase::Stopped);
        // After that, so that of two runs that end at once the second sees no other. Where it fails it is tried again
        // below.
        let _ = self.interval.as_mut().map_or(Ok(()), Guard::undo);
        let listed = self.list_clr_code(whose, on_wait);
        let unlisted = self.unlisted(whose);
        let clr_stopped = self.clr.as_mut().map_or_else(|| Ok(etw::Properties::default()), Half::stop);

        let kernel_read = self.kernel.finish(&kernel_stopped);
        let clr_read = self.clr.as_mut().map_or(Ok(()), |clr| clr.finish(&clr_stopped));
        // A session's last figures come with its stop.
        let end = |stopped: &Result<etw::Properties, _>| stopped.as_ref().cloned().unwrap_or_default();
        let mut losses = self.losses(&end(&kernel_stopped), &end(&clr_stopped));
        let Recorder { pipeline, kernel, clr, interval, profile, inventory, .. } = self;
        // What could not be stopped or put back is tried again here, and a warning names what is left.
        drop((interval, kernel, clr));
        let mut drained = pipeline.finish().ok_or(SessionError::Builder)?;
        drained.sink.inventory(inventory);
        losses.late = drained.late;
        let ends = [listed, kernel_read, clr_read];
        let problems = ends.into_iter().filter_map(Result::err).collect();
        Ok(Stopped { sink: drained.sink, losses, unlisted, profile: profile.flag, problems })
    }

    /// Has the CLRs list their code: modules first, which are few and needed most, then methods.
    fn list_clr_code(&self, whose: Whose<'_>, on_wait: &mut dyn FnMut(&Ending)) -> Result<(), SessionError> {
        let Some(clr) = &self.clr else { return Ok(()) };
        let cannot = self.started.missing.iter().any(|missing| matches!(missing, Missing::DotNetBefore(_)));
        if cannot || matches!(whose, Whose::Of([])) {
            return Ok(());
        }
        let until = Instant::now() + RUNDOWN_LIMIT;
        let mut silent = BTreeSet::new();
        for keywords in [LOADER, NAMES & !LOADER] {
            if clr.is_done() {
                break;
            }
            let before = self.rundowns(whose);
            // Their lists say when they begin and end, so nothing else is waited for.
            self.enable_clr(CLR_RUNDOWN, keywords | FORCE_END_ENUMERATION, Duration::ZERO)?;
            self.wait_for_rundown(clr, whose, &Awaited { before: &before, silent: &silent, until }, on_wait);
            let after = self.rundowns(whose);
            if after == before {
                break;
            }
            // Who has not said a word is not waited for again.
            silent = before
                .into_iter()
                .filter(|(pid, was)| after.get(pid) == Some(was))
                .map(|(pid, _)| pid)
                .collect();
        }
        Ok(())
    }

    /// Waits until every CLR has listed its code once more than before, or will not.
    fn wait_for_rundown(
        &self,
        clr: &Half,
        whose: Whose<'_>,
        awaited: &Awaited<'_>,
        on_wait: &mut dyn FnMut(&Ending),
    ) {
        let Awaited { before, silent, until } = awaited;
        let asked = Instant::now();
        let (mut last, mut since) = ((*before).clone(), asked);
        while Instant::now() < *until && !clr.is_done() {
            // Without this the session would keep the last events for a second.
            let _ = etw::flush(&clr.name);
            std::thread::sleep(Duration::from_millis(20));
            let now = self.rundowns(whose);
            let is_open = |rundown: &Rundown| rundown.done < rundown.begun;
            let waits = |(pid, rundown): (&u32, &Rundown)| {
                let has_begun = before.get(pid).copied().unwrap_or_default() != *rundown;
                let may_begin = !has_begun && !silent.contains(pid) && asked.elapsed() < RUNDOWN_ANSWER;
                (is_open(rundown) || may_begin) && process::watch(*pid).is_some()
            };
            if !now.iter().any(waits) && now == last && since.elapsed() > RUNDOWN_QUIET {
                break;
            }
            let listing: Vec<u32> =
                now.iter().filter(|(_, rundown)| is_open(rundown)).map(|(pid, _)| *pid).collect();
            if !listing.is_empty() {
                on_wait(&Ending { listing, events: self.counters.events.load(Relaxed) });
            }
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    /// The lists of those that matter.
    fn rundowns(&self, whose: Whose<'_>) -> BTreeMap<u32, Rundown> {
        let mut rundowns = self.counters.rundowns().clone();
        rundowns.retain(|pid, _| whose.includes(*pid));
        rundowns
    }

    /// Who has not listed all of its code, of the programs that still run.
    fn unlisted(&self, whose: Whose<'_>) -> Vec<u32> {
        let rundowns = self.rundowns(whose);
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

/// Whose lists are waited for, and how long.
struct Awaited<'a> {
    /// The lists there were before they were asked.
    before: &'a BTreeMap<u32, Rundown>,
    /// Those that are not waited for.
    silent: &'a BTreeSet<u32>,
    until: Instant,
}

impl Half {
    fn start(
        name: String,
        start: impl FnOnce(&str) -> Result<(), SessionError>,
    ) -> Result<Half, SessionError> {
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
/// this process does not get to run. So must context switches, of which a busy processor has thousands in a second.
fn kernel_buffers(options: &Options, processors: u32) -> etw::Buffers {
    const SWITCHES: u32 = 10_000;
    const SIZE: u32 = 256;
    const MOST: u32 = 2048;
    // At the start one processor writes the list of all images, some 12 MB on a large machine, faster than it is read.
    const FIRST: u32 = 128;
    let events = options.frequency + if options.waits { SWITCHES } else { 0 };
    let per_processor = (events * 600 * 3 / (SIZE << 10)).max(8);
    let maximum = (per_processor * processors).clamp(2 * FIRST, MOST.max(2 * processors));
    etw::Buffers { size: SIZE, minimum: (maximum / 4).max(2 * processors).max(FIRST), maximum }
}

/// The rundown of a large program is tens of megabytes within a second.
const CLR_BUFFERS: etw::Buffers = etw::Buffers { size: 256, minimum: 32, maximum: 512 };
