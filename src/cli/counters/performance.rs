//! The performance counters of this Windows, through a process of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use etwprof::counters::apart::{self, Apart, AskError};
use etwprof::counters::perflib::{Finding, Kind};
use etwprof::counters::trial::{Failure, Step, TRY, Trial, try_service};
use etwprof::counters::{Block, CounterPath, Dump, Names, Reading, process_instance, readings, windows};
use etwprof::report::counters as report;

use super::follow::follow;
use super::saved::{missing, seconds};
use crate::cli::args;
use crate::cli::usage::{self, Usage};

/// The command line that makes a process answer: none that help or completions could show.
const ANSWER: [&str; 2] = ["counters", "--answer"];

/// How long one step of one DLL may take, which is what Windows gives them.
const TRIAL: Duration = Duration::from_secs(10);

/// The first query loads the DLLs of all vendors, and Windows gives each of them ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is shown of a process, as indices of names that every Windows has: processor time, working set, private bytes,
/// handles, threads, page faults, bytes read and written.
const OF_PROCESS: [u32; 8] = [6, 180, 186, 952, 680, 28, 1420, 1422];

/// Answers the questions of another process of this program, if that started this one with `line`.
pub(in crate::cli) fn answered(line: &[OsString]) -> bool {
    if line.get(1..).is_none_or(|words| words != ANSWER) {
        return false;
    }
    windows::end_at_a_crash();
    let mut tried = windows::Tried::default();
    let done = apart::answer(io::stdin().lock(), io::stdout().lock(), |question| {
        match question.strip_prefix(TRY).and_then(Step::asked) {
            Some((step, service)) => Ok(tried.step(step, service).to_string().into_bytes()),
            None => windows::query(question),
        }
    });
    windows::close();
    // Whoever asked is gone.
    let _nobody = done;
    true
}

/// A process of its own that answers.
fn apart() -> Result<Apart> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program's own file")?);
    command.args(ANSWER);
    Ok(Apart::new(command))
}

/// The English names, if they can be read.
pub(super) fn names() -> Option<Vec<u8>> {
    apart().ok()?.ask(windows::NAMES, PATIENCE).ok()
}

/// How the DLL of a service does by itself: in a process of its own, so that none disturbs the next.
pub(super) fn tried(service: &str) -> Result<Trial> {
    Ok(try_service(&mut apart()?, service, TRIAL)?)
}

/// A finding if a query of all counters fails.
pub(super) fn query_fails() -> Result<Option<Finding>> {
    let kind = match apart()?.ask(windows::GLOBAL, PATIENCE) {
        Ok(_) => return Ok(None),
        Err(AskError::Refused(5)) => Kind::AccessDenied,
        Err(error) => Kind::QueryFails { failure: Failure::try_from(error)? },
    };
    Ok(Some(Finding { service: None, kind }))
}

/// What reads the counters of this machine.
pub(super) struct Machine {
    apart: Apart,
    names: Names,
    raw_names: Vec<u8>,
    before: Option<(Instant, Block)>,
}

impl Machine {
    pub(super) fn open() -> Result<Machine> {
        let mut apart = apart()?;
        let raw_names = apart.ask(windows::NAMES, PATIENCE).map_err(|error| explained(&error))?;
        Ok(Machine { apart, names: Names::parse(&raw_names), raw_names, before: None })
    }

    fn ask(&mut self, what: &str) -> Result<Vec<u8>> {
        self.apart.ask(what, PATIENCE).map_err(|error| explained(&error))
    }

    fn block(&mut self, what: &str) -> Result<Block> {
        Ok(Block::parse(self.ask(what)?)?)
    }

    /// What asks for the objects of these paths.
    fn question(&self, wanted: &[CounterPath]) -> Result<String> {
        let mut all = Vec::new();
        for path in wanted {
            let indices = self.names.indices(&path.object);
            match path.object.trim_start_matches('#').parse() {
                Ok(index) => all.push(index),
                Err(_) if indices.is_empty() => bail!(Usage(format!(
                    "no object {:?}; `etwprof counters` lists what is there",
                    path.object
                ))),
                Err(_) => {}
            }
            all.extend(indices);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
    }
}

/// The objects that there are.
pub(super) fn available() -> Result<report::Available> {
    let mut machine = Machine::open()?;
    let block = machine.block(windows::GLOBAL)?;
    Ok(report::Available::new(&block, &machine.names))
}

/// Shows these counters as time passes.
pub(super) fn run(args: &args::Counters, wanted: &[CounterPath]) -> Result<()> {
    let mut machine = Machine::open()?;
    let question = machine.question(wanted)?;
    let first = machine.block(&question)?;
    let source = first.machine.clone();
    machine.before = Some((Instant::now(), first));
    let mut is_first = true;
    follow(args, &source, &mut || {
        wait(&machine.before, args.every);
        let block = machine.block(&question)?;
        let before = machine.before.as_ref().map(|(_, block)| block);
        let found = readings(before, &block, &machine.names, wanted)?;
        if std::mem::take(&mut is_first)
            && let Some(path) = wanted.iter().find(|path| {
                readings(None, &block, &machine.names, std::slice::from_ref(path))
                    .is_ok_and(|found| found.is_empty())
            })
        {
            bail!(Usage(missing(std::slice::from_ref(&block), &machine.names, path)));
        }
        let moment = report::Moment {
            unix_ms: block.unix_ms,
            seconds: before.map(|before| seconds(before, &block)),
            counters: found.into_iter().map(report::Row::from).collect(),
        };
        machine.before = Some((Instant::now(), block));
        Ok(Some(moment))
    })
}

/// Waits until so long after the sample before.
fn wait(before: &Option<(Instant, Block)>, every: Duration) {
    if let Some((since, _)) = before {
        std::thread::sleep(every.saturating_sub(since.elapsed()));
    }
}

/// Saves the blocks of these counters, or of all, with their names.
pub(super) fn dump(args: &args::Counters, to: &std::path::Path, wanted: &[CounterPath]) -> Result<()> {
    let mut machine = Machine::open()?;
    let question = if wanted.is_empty() { windows::GLOBAL.to_owned() } else { machine.question(wanted)? };
    let cannot = |error| usage::cannot("write", to, &error);
    let block = machine.ask(&question)?;
    let mut file = io::BufWriter::new(File::create(to).map_err(cannot)?);
    Dump::begin(&mut file, &machine.raw_names).map_err(cannot)?;
    Dump::add(&mut file, &block).and_then(|()| file.flush()).map_err(cannot)?;
    for _ in 1..args.count.map_or(1, |count| count.get()) {
        std::thread::sleep(args.every);
        let block = machine.ask(&question)?;
        Dump::add(&mut file, &block).and_then(|()| file.flush()).map_err(cannot)?;
    }
    Ok(())
}

/// Chosen counters that are read again and again.
pub(in crate::cli) struct Rates {
    machine: Machine,
    question: String,
    wanted: Vec<CounterPath>,
    before: Block,
}

impl Rates {
    /// Those of `wanted` that this Windows has; `None` where it has none of them. What it does not have is left in `wanted`.
    pub(in crate::cli) fn open(wanted: &mut Vec<CounterPath>) -> Result<Option<Rates>> {
        let mut machine = Machine::open()?;
        let is_here = |path: &mut CounterPath| {
            path.object.starts_with('#') || !machine.names.indices(&path.object).is_empty()
        };
        let here: Vec<CounterPath> = wanted.extract_if(.., is_here).collect();
        if here.is_empty() {
            return Ok(None);
        }
        let question = machine.question(&here)?;
        let before = machine.block(&question)?;
        Ok(Some(Rates { machine, question, wanted: here, before }))
    }

    /// Their values since the call before, and when that was, in ticks of QueryPerformanceCounter.
    pub(in crate::cli) fn next(&mut self) -> Result<(i64, Vec<Reading>)> {
        let block = self.machine.block(&self.question)?;
        let found = readings(Some(&self.before), &block, &self.machine.names, &self.wanted)?;
        self.before = block;
        Ok((self.before.qpc, found))
    }
}

/// The counters of one process.
pub(super) struct OfProcess {
    machine: Machine,
    pid: u32,
    before: Option<Block>,
}

impl OfProcess {
    pub(super) fn open(pid: u32) -> Result<OfProcess> {
        let mut machine = Machine::open()?;
        let before = machine.block(PROCESS)?;
        Ok(OfProcess { machine, pid, before: Some(before) })
    }

    /// Those since the call before, after this time; none when it has ended.
    pub(super) fn next(&mut self, after: Duration) -> Result<Option<report::Moment>> {
        std::thread::sleep(after);
        let block = self.machine.block(PROCESS)?;
        let Some(instance) = process_instance(&block, self.pid) else { return Ok(None) };
        let path = |counter: u32| CounterPath {
            object: PROCESS.to_owned(),
            instance: Some(instance.clone()),
            counter: counter.to_string(),
        };
        let wanted = OF_PROCESS.map(path);
        let found = readings(self.before.as_ref(), &block, &self.machine.names, &wanted)?;
        let seconds = self.before.as_ref().map(|before| seconds(before, &block));
        let moment = report::Moment {
            unix_ms: block.unix_ms,
            seconds,
            counters: found.into_iter().map(report::Row::from).collect(),
        };
        self.before = Some(block);
        Ok(Some(moment))
    }
}

/// The object "Process".
const PROCESS: &str = "230";

/// An error with its cause and its cure.
fn explained(error: &AskError) -> anyhow::Error {
    let cure = match error {
        AskError::Refused(5) => {
            "reading them needs an elevated console, or an account in the group Performance Monitor Users"
                .to_owned()
        }
        AskError::Ended(_) | AskError::TimeOut(_) => culprits(),
        AskError::Refused(_) => "`etwprof counters --diagnose` looks for the cause".to_owned(),
        AskError::Start(_) => return anyhow!("{error}"),
    };
    anyhow!("cannot read performance counters: {error}; {cure}")
}

/// The services whose DLL crashes or hangs when it is tried by itself, with what to do.
fn culprits() -> String {
    let mut found = Vec::new();
    for service in windows::services() {
        match tried(&service) {
            Ok(Trial::Failed { failure: Failure::Crashed { code: Some(code) }, .. }) => {
                found.push(format!("the DLL of {service} crashes ({code:#x})"));
            }
            Ok(Trial::Failed { failure: Failure::Crashed { code: None }, .. }) => {
                found.push(format!("the DLL of {service} crashes"));
            }
            Ok(Trial::Failed { failure: Failure::Hung { .. }, .. }) => {
                found.push(format!("the DLL of {service} hangs"));
            }
            _ => {}
        }
    }
    match found.as_slice() {
        [] => "the DLL of one of the services crashed or hung, but none does when it is tried by itself"
            .to_owned(),
        several => format!(
            "{}; `lodctr /D:SERVICE` in an elevated console switches its counters off",
            several.join(", ")
        ),
    }
}
