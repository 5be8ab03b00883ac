//! The counters of running .NET programs.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
#[cfg(not(windows))]
use etwprof::counters::runtime;
use etwprof::counters::runtime::{Counted, EventCounters, RuntimeError};
use etwprof::counters::{CounterPath, framework};
use etwprof::report::counters as report;

use super::follow::follow;
#[cfg(windows)]
use super::from_outside::FromOutside;
use crate::cli::usage::Usage;
use crate::cli::{args, say};

/// The counters of every runtime, and of most interest.
const SYSTEM_RUNTIME: &str = "System.Runtime";

/// A runtime sends all counters of an interval at once. What comes later than this belongs to the next.
const AT_ONCE: Duration = Duration::from_millis(150);

/// Shows the counters of a process as they come.
pub(super) fn run(args: &args::Counters, wanted: &[CounterPath], quiet: bool) -> Result<()> {
    let (of_framework, wanted) = part(wanted);
    if let Some(path) = wanted.iter().find(|path| path.instance.is_some()) {
        bail!(Usage(format!("{}: a .NET process has no instances; write 'Provider\\counter'", path.object)));
    }
    #[cfg(not(windows))]
    if let Some(path) = of_framework.first() {
        bail!(Usage(format!(
            "{}: .NET Framework counts that, on Windows only; other .NET programs have System.Runtime",
            path.object
        )));
    }
    let pid = match (args.pid, &args.name) {
        (Some(pid), _) => pid,
        (None, Some(wanted)) => find(wanted)?,
        (None, None) => bail!("neither --pid nor --name"),
    };
    let mut providers: Vec<String> = wanted.iter().map(|path| path.object.clone()).collect();
    providers.sort();
    providers.dedup();
    if providers.is_empty() {
        providers.push(SYSTEM_RUNTIME.to_owned());
    }
    let asks = !wanted.is_empty() || of_framework.is_empty();
    let counters = asks.then(|| EventCounters::ask(pid, &providers, args.every.as_secs_f64()));
    let source = match name(pid) {
        Some(name) => format!("{name} ({pid})"),
        None => format!("process {pid}"),
    };
    let ended = || {
        if args.count.is_none() && !quiet {
            say::note(format_args!("{source} has ended"));
        }
    };
    // Any process has those of Windows.
    #[cfg(windows)]
    let Some(process) = name(pid) else { bail!(Usage(format!("--pid {pid}: no such process"))) };
    #[cfg(windows)]
    let mut outside = FromOutside::open(pid, &process, of_framework, !wanted.is_empty())?;
    #[cfg(windows)]
    let is_alone = match &counters {
        None => true,
        // What was asked for by name must come.
        Some(Err(RuntimeError::Nobody(_))) => wanted.is_empty() && !outside.is_empty(),
        Some(_) => false,
    };
    #[cfg(windows)]
    if is_alone {
        follow(args, &source, &mut || outside.next(args.every))?;
        ended();
        return Ok(());
    }
    let counters = counters.unwrap_or(Err(RuntimeError::Nobody(pid)));
    let counters = counters.map_err(|error| anyhow!(error).context(format!("--pid {pid}")))?;
    let mut samples =
        Samples { counted: receive(counters), wanted: &wanted, every: args.every, pending: Vec::new() };
    follow(args, &source, &mut || {
        #[cfg_attr(not(windows), expect(unused_mut))]
        let mut moment = samples.next(&providers)?;
        #[cfg(windows)]
        if let Some(moment) = &mut moment {
            let found = outside.next(Duration::ZERO)?.into_iter().flat_map(|found| found.counters);
            moment.counters.splice(0..0, found);
        }
        Ok(moment)
    })?;
    ended();
    Ok(())
}

/// Reads on a thread of its own, for a runtime need not answer.
fn receive(mut counters: EventCounters) -> Receiver<Result<Vec<Counted>, RuntimeError>> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        while let Some(counted) = counters.receive().transpose() {
            let is_error = counted.is_err();
            if to.send(counted).is_err() || is_error {
                return;
            }
        }
    });
    from
}

struct Samples<'a> {
    counted: Receiver<Result<Vec<Counted>, RuntimeError>>,
    wanted: &'a [CounterPath],
    every: Duration,
    pending: Vec<Counted>,
}

impl Samples<'_> {
    /// The counters of the next interval; `None` when the program has ended.
    fn next(&mut self, providers: &[String]) -> Result<Option<report::Moment>> {
        // A runtime that has just begun sends the first ones late.
        let patience = 3 * self.every + Duration::from_secs(5);
        loop {
            let is_pending = !self.pending.is_empty();
            match self.counted.recv_timeout(if is_pending { AT_ONCE.min(self.every / 2) } else { patience }) {
                Ok(counted) => self.pending.extend(counted?),
                Err(_) if is_pending => return self.moment().map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => bail!(
                    "no counters of {} came in {} s; does the program have such a provider, and is it not suspended?",
                    providers.join(", "),
                    patience.as_secs()
                ),
            }
        }
    }

    fn moment(&mut self) -> Result<report::Moment> {
        // A runtime that was late sends two intervals at once.
        let mut seen = HashSet::new();
        let is_known = |counted: &Counted| {
            !seen.insert((counted.reading.object.clone(), counted.reading.counter.clone()))
        };
        let end = self.pending.iter().position(is_known).unwrap_or(self.pending.len());
        let later = self.pending.split_off(end);
        let pending = std::mem::replace(&mut self.pending, later);
        let seconds = pending.iter().map(|counted| counted.seconds).reduce(f64::max);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let is = |path: &CounterPath, counted: &Counted| {
            let is = |wanted: &str, name: &str| wanted.eq_ignore_ascii_case(name);
            is(&path.object, &counted.reading.object)
                && (path.counter == "*" || is(&path.counter, &counted.reading.counter))
        };
        let missing = self.wanted.iter().find(|path| {
            pending.iter().any(|counted| path.object.eq_ignore_ascii_case(&counted.reading.object))
                && !pending.iter().any(|counted| is(path, counted))
        });
        if let Some(CounterPath { object, counter, .. }) = missing {
            let known: Vec<&str> = pending.iter().map(|counted| &*counted.reading.counter).collect();
            bail!(Usage(format!("{object} has no counter {counter:?}; it has {}", known.join(", "))));
        }
        let kept = pending
            .into_iter()
            .filter(|counted| self.wanted.is_empty() || self.wanted.iter().any(|path| is(path, counted)));
        let counters = kept.map(|counted| report::Row::from(counted.reading)).collect();
        Ok(report::Moment { unix_ms: i64::try_from(now.as_millis()).ok(), seconds, counters })
    }
}

/// The only process of this name that can be read.
fn find(wanted: &etwprof::profile::Matcher) -> Result<u32> {
    let found: Vec<_> = readable().into_iter().filter(|(_, name)| wanted.matches_executable(name)).collect();
    match found.as_slice() {
        [(pid, _)] => Ok(*pid),
        [] if cfg!(windows) => bail!("--name {wanted}: no process of this name is running"),
        [] => bail!(
            "--name {wanted}: no .NET process of this name and user is running; `etwprof counters` lists them"
        ),
        several => {
            let pids: Vec<String> = several.iter().map(|(pid, _)| pid.to_string()).collect();
            bail!(Usage(format!(
                "--name {wanted}: several are running; choose one with --pid: {}",
                pids.join(", ")
            )))
        }
    }
}

/// The processes whose counters can be read, with their names.
#[cfg(not(windows))]
fn readable() -> Vec<(u32, String)> {
    runtime::listening().into_iter().filter_map(|(pid, _)| Some((pid, name(pid)?))).collect()
}

#[cfg(windows)]
pub(super) fn readable() -> Vec<(u32, String)> {
    etwprof::session::process::all().into_iter().map(|entry| (entry.pid, entry.name)).collect()
}

/// Parts the counters of .NET Framework from those that a runtime sends.
fn part(wanted: &[CounterPath]) -> (Vec<CounterPath>, Vec<CounterPath>) {
    wanted.iter().cloned().partition(|path| framework::is_object(&path.object))
}

/// What a process is called: of one that `dotnet` runs, the program that it runs.
#[cfg(not(windows))]
pub(super) fn name(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let file = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let program = file(words.first()?);
    let run = words.iter().skip(1).find(|word| word.ends_with(".dll"));
    Some(run.filter(|_| program == "dotnet").map_or(program, |run| file(run)))
}

#[cfg(windows)]
pub(super) fn name(pid: u32) -> Option<String> {
    readable().into_iter().find(|(other, _)| *other == pid).map(|(_, name)| name)
}
