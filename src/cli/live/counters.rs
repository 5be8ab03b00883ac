//! Counters beside a recording: a thread of its own reads them, and puts their values into it as events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use etwprof::counters::runtime::{self, Counted, EventCounters, RuntimeError};
use etwprof::counters::{CounterPath, Reading};
use etwprof::event::{Event, Kind, Pointer, Ticks};
use etwprof::events::counter;
use etwprof::guids::ETWPROF;
use etwprof::report::counters::Row;
use etwprof::session::{self, Feed, process};

use crate::cli::args::{CounterLimit, Recording, StopWhen};
use crate::cli::counters::performance::Rates;
use crate::cli::usage::Usage;

/// How often is looked for what .NET programs have sent.
const TICK: Duration = Duration::from_millis(20);
/// How long the end of a recording waits for a counter that is being read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Values that claim to be older than this were not stamped with the recording's clock.
const OLDEST_SECONDS: i64 = 10;
/// What begins so is a provider of .NET counters: no object of Windows is looked for.
const OF_DOTNET: [&str; 2] = ["System.", "Microsoft."];

/// Counters that are to be recorded.
pub(super) struct Asked {
    of_windows: Option<Rates>,
    of_programs: Vec<CounterPath>,
    limits: Vec<CounterLimit>,
    every: Duration,
}

impl Asked {
    /// Those of the flags, if there are any. Fails where Windows' counters cannot be read.
    pub(super) fn new(args: &Recording) -> Result<Option<Asked>> {
        let limits: Vec<CounterLimit> = args
            .stop_when
            .iter()
            .filter_map(|condition| match condition {
                StopWhen::Counter(limit) => Some(limit.clone()),
                _ => None,
            })
            .collect();
        let mut wanted = Vec::new();
        for name in &args.counters {
            match name.parse() {
                Ok(path) => wanted.push(path),
                Err(_) if !name.contains('\\') && !name.trim().is_empty() => {
                    wanted.extend(CounterPath::all_of(name.trim()));
                }
                Err(error) => bail!(Usage(format!("--counters: {error}"))),
            }
        }
        for limit in &limits {
            if !wanted.contains(&limit.path) {
                wanted.push(limit.path.clone());
            }
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        if args.counters_every < Duration::from_millis(100) {
            bail!(Usage("--counters-every: at least 100ms".to_owned()));
        }
        let is_dotnet =
            |path: &mut CounterPath| OF_DOTNET.iter().any(|prefix| path.object.starts_with(prefix));
        let mut of_programs: Vec<CounterPath> = wanted.extract_if(.., is_dotnet).collect();
        let mut of_windows = None;
        if !wanted.is_empty() {
            of_windows = Rates::open(&mut wanted)?;
            of_programs.append(&mut wanted);
        }
        Ok(Some(Asked { of_windows, of_programs, limits, every: args.counters_every }))
    }

    /// Reads those of the machine, and of `targets` as [`Beside::of`] has them, until [`Beside::finish`].
    pub(super) fn start(
        self,
        feed: Feed,
        ticks_a_second: u64,
        targets: Option<Vec<u32>>,
    ) -> std::io::Result<Beside> {
        let said = Mutex::new(Said { targets, ..Said::default() });
        let shared = Arc::new(Shared { is_over: AtomicBool::new(false), said });
        let theirs = Arc::clone(&shared);
        let oldest = i64::try_from(ticks_a_second).unwrap_or(i64::MAX).saturating_mul(OLDEST_SECONDS);
        let work = move || {
            let Asked { of_windows, of_programs, limits, every } = self;
            let values = Values { feed, items: counter::items(), limits, oldest, shared: &theirs };
            Sources { of_windows, programs: Programs::new(of_programs, every), values, every }.read();
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(work)?;
        Ok(Beside { shared, thread })
    }
}

/// Counters that are being recorded.
pub(super) struct Beside {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    is_over: AtomicBool,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    /// The processes whose counters are wanted; `None` for all.
    targets: Option<Vec<u32>>,
    warnings: Vec<String>,
    /// The first limit that was passed.
    passed: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beside {
    /// Whose counters are wanted from now on; `None` for those of all processes.
    pub(super) fn of(&self, targets: Option<Vec<u32>>) {
        self.shared.lock().targets = targets;
    }

    /// What went wrong since the last call.
    pub(super) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().warnings)
    }

    /// The limit of `--stop-when` that was passed, as the end of "stopped: ...".
    pub(super) fn passed(&self) -> Option<String> {
        self.shared.lock().passed.clone()
    }

    /// Ends the reading, so that no value comes any more. What still hangs is left to itself.
    pub(super) fn finish(self) -> Vec<String> {
        self.shared.is_over.store(true, Relaxed);
        let until = Instant::now() + PATIENCE;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.warnings()
    }
}

/// Everything that is read.
struct Sources<'s> {
    of_windows: Option<Rates>,
    programs: Programs,
    values: Values<'s>,
    every: Duration,
}

impl Sources<'_> {
    fn read(mut self) {
        let mut due = Instant::now();
        while !self.values.shared.is_over.load(Relaxed) {
            if Instant::now() >= due {
                due = Instant::now() + self.every;
                self.of_windows();
                let targets = self.values.shared.lock().targets.clone();
                self.programs.look(targets);
            }
            self.programs.receive(&mut self.values);
            std::thread::sleep(TICK);
        }
    }

    fn of_windows(&mut self) {
        let Some(rates) = &mut self.of_windows else { return };
        match rates.next() {
            Ok((time, readings)) => {
                readings.into_iter().for_each(|reading| self.values.take(0, time, reading));
                self.values.feed.flush();
            }
            Err(error) => {
                let warning = format!("--counters: {error:#}; the recording continues without them");
                self.values.shared.lock().warnings.push(warning);
                self.of_windows = None;
            }
        }
    }
}

/// What a .NET program sends, or why it does not.
type Sent = Result<Vec<Counted>, RuntimeError>;

/// The .NET programs among the targets.
struct Programs {
    wanted: Vec<CounterPath>,
    providers: Vec<String>,
    every: Duration,
    /// By process id; `None` for one that will send no more.
    all: BTreeMap<u32, Option<Receiver<Sent>>>,
}

impl Programs {
    fn new(wanted: Vec<CounterPath>, every: Duration) -> Programs {
        let mut providers: Vec<String> = wanted.iter().map(|path| path.object.clone()).collect();
        providers.sort();
        providers.dedup();
        Programs { wanted, providers, every, all: BTreeMap::new() }
    }

    /// Asks those that have come since the last call.
    fn look(&mut self, targets: Option<Vec<u32>>) {
        if self.providers.is_empty() {
            return;
        }
        let targets =
            targets.unwrap_or_else(|| runtime::listening().into_iter().map(|(pid, _)| pid).collect());
        for pid in targets {
            self.all.entry(pid).or_insert_with(|| Some(ask(pid, self.providers.clone(), self.every)));
        }
    }

    /// Takes what has come.
    fn receive(&mut self, values: &mut Values<'_>) {
        let mut not_yet = Vec::new();
        for (pid, program) in &mut self.all {
            while let Some(sent) = program.as_ref().and_then(|program| program.try_recv().ok()) {
                match sent {
                    Ok(counted) => counted.into_iter().for_each(|Counted { time, reading, .. }| {
                        if self.wanted.iter().any(|path| path.means(&reading.object, None, &reading.counter))
                        {
                            values.take(*pid, time, reading);
                        }
                    }),
                    // Most programs are none of .NET, and one may not have begun to listen.
                    Err(RuntimeError::Nobody(_)) => not_yet.push(*pid),
                    Err(error) => {
                        values.shared.lock().warnings.push(format!("--counters: {error}"));
                        *program = None;
                    }
                }
            }
        }
        not_yet.iter().for_each(|pid| drop(self.all.remove(pid)));
        values.feed.flush();
    }
}

/// Reads on a thread of its own, for a runtime need not answer. It ends with the program, or with this one.
fn ask(pid: u32, providers: Vec<String>, every: Duration) -> Receiver<Sent> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        let mut counters = match EventCounters::ask(pid, &providers, every.as_secs_f64()) {
            Ok(counters) => counters,
            Err(error) => return drop(to.send(Err(error))),
        };
        while let Some(sent) = counters.receive().transpose() {
            let is_error = sent.is_err();
            if to.send(sent).is_err() || is_error {
                return;
            }
        }
    });
    from
}

/// Where values go.
struct Values<'s> {
    feed: Feed,
    items: Vec<u8>,
    limits: Vec<CounterLimit>,
    /// Ticks.
    oldest: i64,
    shared: &'s Shared,
}

impl Values<'_> {
    /// Takes the value of a process, or of the machine (0), that was read at this time.
    fn take(&mut self, pid: u32, time: i64, reading: Reading) {
        let Ok(value) = reading.value else { return };
        let (Ticks(now), _) = session::now();
        let is_of_clock = (0..self.oldest).contains(&now.saturating_sub(time));
        let texts = [
            &*reading.object,
            reading.instance.as_deref().unwrap_or_default(),
            &*reading.counter,
            &*reading.unit,
        ];
        self.feed.event(&Event {
            time: Ticks(if is_of_clock { time } else { now }),
            provider: ETWPROF,
            kind: Kind::Manifest(0),
            opcode: 0,
            version: 0,
            pointer: Pointer::Bits64,
            processor: 0,
            pid: if pid == 0 { std::process::id() } else { pid },
            tid: 0,
            items: &self.items,
            payload: &counter::payload(pid, texts, value),
        });
        let is_passed = |CounterLimit { path, above, value: limit }: &CounterLimit| {
            path.means(&reading.object, reading.instance.as_deref(), &reading.counter)
                && if *above { value > *limit } else { value < *limit }
        };
        if self.limits.iter().any(is_passed) {
            let of = process::all().into_iter().find(|process| pid != 0 && process.pid == pid);
            let of = of.map(|process| format!(" of {} ({pid})", process.name)).unwrap_or_default();
            let row = Row::from(reading);
            let text = format!("{}{of} is {}", row.path(), row.shown_with_unit());
            self.shared.lock().passed.get_or_insert(text);
        }
    }
}
