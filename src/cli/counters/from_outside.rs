//! What Windows shows of one process without asking it: the object Process, and what .NET Framework counts there.

use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use etwprof::counters::CounterPath;
use etwprof::counters::framework::windows::{SourceError, sample};
use etwprof::counters::framework::{Sample, USUAL, known, readings};
use etwprof::report::counters as report;
use etwprof::session::process::{Watched, watch};

use super::live;
use super::performance::OfProcess;
use crate::cli::say;
use crate::cli::usage::Usage;

/// The counters of one process.
pub(super) struct FromOutside {
    running: Watched,
    process: Option<OfProcess>,
    framework: Option<Framework>,
}

/// Those of its runtimes.
struct Framework {
    name: String,
    wanted: Vec<CounterPath>,
    before: Sample,
}

impl FromOutside {
    /// `wanted` are counters of .NET Framework. Without any, and unless `others` are wanted, there are those of the object
    /// Process, and the usual ones if the process has such a runtime.
    pub(super) fn open(pid: u32, name: &str, wanted: Vec<CounterPath>, others: bool) -> Result<FromOutside> {
        let running = watch(pid).ok_or_else(|| Usage(format!("--pid {pid}: no such process")))?;
        if !wanted.is_empty() {
            wanted.iter().try_for_each(check)?;
            let before = sample(pid).map_err(|error| anyhow!(error).context(format!("--pid {pid}")))?;
            let framework = Framework::new(name, wanted, before);
            return Ok(FromOutside { running, process: None, framework: Some(framework) });
        }
        if others {
            return Ok(FromOutside { running, process: None, framework: None });
        }
        let framework = match sample(pid) {
            Ok(before) if before.runtimes.is_empty() && before.refused.is_empty() => None,
            Ok(before) => {
                let path = |(object, counter): &(&str, &str)| CounterPath {
                    object: (*object).to_owned(),
                    instance: None,
                    counter: (*counter).to_owned(),
                };
                Some(Framework::new(name, USUAL.iter().map(path).collect(), before))
            }
            Err(SourceError::Nobody(_) | SourceError::NoNamespaces(_)) => None,
            Err(error) => {
                say::warning(error);
                None
            }
        };
        let process = of_process(pid).map_err(say::warning).ok();
        Ok(FromOutside { running, process, framework })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.process.is_none() && self.framework.is_none()
    }

    /// Those since the call before, after this time; none when the process has ended.
    pub(super) fn next(&mut self, after: Duration) -> Result<Option<report::Moment>> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + after;
        let mut moment = match &mut self.process {
            Some(process) => match process.next(after)? {
                Some(moment) => moment,
                None => return Ok(None),
            },
            None => {
                std::thread::sleep(after);
                report::Moment { unix_ms: i64::try_from(now.as_millis()).ok(), ..Default::default() }
            }
        };
        if let Some(framework) = &mut self.framework {
            let sample = sample(self.running.pid);
            // The memory goes with the process.
            if !self.running.is_running() {
                return Ok(None);
            }
            let (seconds, rows) = framework.next(sample?);
            moment.seconds = moment.seconds.or(seconds);
            moment.counters.extend(rows);
        }
        Ok(self.running.is_running().then_some(moment))
    }
}

impl Framework {
    fn new(name: &str, wanted: Vec<CounterPath>, before: Sample) -> Framework {
        for error in &before.refused {
            say::warning(format_args!("a block of counters of .NET Framework is left out: {error}"));
        }
        Framework { name: name.to_owned(), wanted, before }
    }

    fn next(&mut self, sample: Sample) -> (Option<f64>, Vec<report::Row>) {
        let found = readings(Some(&self.before), &sample, &self.name, &self.wanted);
        let ticks = sample.qpc.saturating_sub(self.before.qpc);
        let seconds = (sample.qpc_hz > 0).then(|| ticks as f64 / sample.qpc_hz as f64);
        self.before = sample;
        (seconds, found.into_iter().map(report::Row::from).collect())
    }
}

/// The object Process may be switched off; then everything else is shown.
fn of_process(pid: u32) -> Result<OfProcess> {
    let mut process = OfProcess::open(pid)?;
    match process.next(Duration::ZERO)? {
        Some(_) => Ok(process),
        None => bail!(
            "the performance counters of Windows lack process {pid}; `etwprof counters` lists whether the object Process is there"
        ),
    }
}

/// Refuses what .NET Framework does not count.
fn check(path: &CounterPath) -> Result<()> {
    let CounterPath { object, counter, .. } = path;
    let of_object: Vec<_> =
        known().filter(|(known, _)| object.eq_ignore_ascii_case(known)).map(|(_, counter)| counter).collect();
    if of_object.is_empty() {
        let mut objects: Vec<_> = known().map(|(object, _)| object).collect();
        objects.dedup();
        bail!(Usage(format!("no object {object:?}; .NET Framework has {}", objects.join(", "))));
    }
    let is = |known: &&str| {
        counter == "*" || counter.eq_ignore_ascii_case(known.split(" (").next().unwrap_or(known))
    };
    if !of_object.iter().any(|known| is(known) || counter.eq_ignore_ascii_case(known)) {
        bail!(Usage(format!("{object} has no counter {counter:?}; it has {}", of_object.join(", "))));
    }
    Ok(())
}

/// The processes that run .NET Framework and let this account read its counters.
pub(super) fn readable() -> impl Iterator<Item = (u32, String)> {
    live::readable()
        .into_iter()
        .filter(|(pid, _)| sample(*pid).is_ok_and(|sample| !sample.runtimes.is_empty()))
}
