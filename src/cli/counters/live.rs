//! The counters of running .NET programs.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use etwprof::counters::CounterPath;
use etwprof::counters::runtime::{self, Counted, EventCounters, RuntimeError};
use etwprof::report::counters as report;

use super::show;
use crate::cli::usage::Usage;
use crate::cli::{args, output, say};

/// The counters of every runtime, and of most interest.
const SYSTEM_RUNTIME: &str = "System.Runtime";

/// A runtime sends all counters of an interval at once. What comes later than this belongs to the next.
const AT_ONCE: Duration = Duration::from_millis(150);

/// Lists the processes that can be read.
pub(super) fn list(args: &args::Counters) -> Result<()> {
    let processes = runtime::listening().into_iter().map(|(pid, _)| (pid, name(pid)));
    let processes: Vec<_> = processes
        .map(|(pid, process)| report::Listening { pid, process: process.unwrap_or_default() })
        .collect();
    if processes.is_empty() && !args.json && !args.csv {
        say::note("no .NET process of this user is running; `etwprof counters FILE` shows saved counters");
        return Ok(());
    }
    output::print(|mut out| match (args.json, args.csv) {
        (true, _) => report::write_listening_json(&mut out, &processes),
        (_, true) => report::write_listening_csv(&mut out, &processes),
        _ => report::write_listening(&mut out, &processes, output::terminal_width()),
    })
}

/// Shows the counters of a process as they come.
pub(super) fn run(args: &args::Counters, wanted: &[CounterPath], quiet: bool) -> Result<()> {
    if let Some(path) = wanted.iter().find(|path| path.instance.is_some()) {
        bail!(Usage(format!("{}: a .NET process has no instances; write 'Provider\\counter'", path.object)));
    }
    if args.every < Duration::from_millis(100) {
        bail!(Usage("--every: at least 100ms".to_owned()));
    }
    if args.json && args.count.is_none() {
        bail!(Usage("--json: say how many samples with --count; --csv prints them as they come".to_owned()));
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
    let counters = EventCounters::ask(pid, &providers, args.every.as_secs_f64())
        .map_err(|error| anyhow!(error).context(format!("--pid {pid}")))?;
    let source = match name(pid) {
        Some(name) => format!("{name} ({pid})"),
        None => format!("process {pid}"),
    };
    let mut samples = Samples { counted: receive(counters), wanted, every: args.every, pending: Vec::new() };
    let most = args.count.map_or(u64::MAX, |count| count.get());
    if args.json {
        let mut moments = Vec::new();
        while (moments.len() as u64) < most
            && let Some(moment) = samples.next(&providers)?
        {
            moments.push(moment);
        }
        return show(args, &report::Counters { source, moments });
    }
    let mut failed = None;
    let in_place = io::stdout().is_terminal() && !args.csv;
    output::print(|out| {
        let mut lines = None;
        let mut csv = if args.csv { Some(report::CsvLines::begin(io::stdout())?) } else { None };
        for _ in 0..most {
            let moment = match samples.next(&providers) {
                Ok(Some(moment)) => moment,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if let Some(csv) = &mut csv {
                csv.write(&moment)?;
                continue;
            }
            let mut text = Vec::new();
            let counters = report::Counters { source: source.clone(), moments: vec![moment] };
            report::write(&mut text, &counters, output::terminal_width())?;
            match lines.replace(text.iter().filter(|byte| **byte == b'\n').count()) {
                Some(lines) if in_place => ::console::Term::stdout().clear_last_lines(lines)?,
                Some(_) => writeln!(out)?,
                None => {}
            }
            out.write_all(&text)?;
            out.flush()?;
        }
        Ok(())
    })?;
    match failed {
        Some(error) => Err(error),
        None => {
            if args.count.is_none() && !quiet {
                say::note(format_args!("{source} has ended"));
            }
            Ok(())
        }
    }
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
    let processes = runtime::listening().into_iter().filter_map(|(pid, _)| Some((pid, name(pid)?)));
    let found: Vec<_> = processes.filter(|(_, name)| wanted.matches_executable(name)).collect();
    match found.as_slice() {
        [(pid, _)] => Ok(*pid),
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

/// What a process is called: of one that `dotnet` runs, the program that it runs.
#[cfg(not(windows))]
fn name(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let file = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let program = file(words.first()?);
    let run = words.iter().skip(1).find(|word| word.ends_with(".dll"));
    Some(run.filter(|_| program == "dotnet").map_or(program, |run| file(run)))
}

#[cfg(windows)]
fn name(pid: u32) -> Option<String> {
    let all = etwprof::session::process::all();
    all.into_iter().find(|entry| entry.pid == pid).map(|entry| entry.name)
}
