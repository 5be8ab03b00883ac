//! `etwprof gc` and `jit`: what .NET runtimes did beside the code of their programs.

use anyhow::{Result, bail};
use etwprof::profile::Filter;
use etwprof::report::{gc, jit};
use etwprof::trace::ProcessId;
use etwprof::{Analysis, Options};

use super::{args, candidates, load, output, strict};

/// How collections are recorded.
pub(super) const RECORD_GC: &str =
    "record the GC keyword of Microsoft-Windows-DotNETRuntime (PerfView collects it by default)";

/// How compilations are recorded.
pub(super) const RECORD_JIT: &str =
    "record the JIT keyword of Microsoft-Windows-DotNETRuntime, at the verbose level for the times";

/// Rows of each runtime on a console.
const ROWS: usize = 10;

pub(super) fn gc(args: &args::Runtimes, quiet: bool) -> Result<()> {
    let (analysis, wanted) = open(args, quiet)?;
    let all = gc::Gc::new(&analysis.profile.trace, &wanted);
    if all.runtimes.is_empty() {
        let everywhere = gc::Gc::new(&analysis.profile.trace, &everybody(&analysis));
        let there = everywhere.runtimes.iter().map(|one| (one.process.as_str(), one.pid, one.gcs));
        check_others("had no garbage collections; those that had some", there)?;
        bail!("no garbage collections in this recording; {RECORD_GC}");
    }
    let shown = all.clone().first(args.most());
    let printed = output::print(|mut out| match (args.json, args.csv) {
        (true, _) => gc::write_json(&mut out, &shown),
        (_, true) => gc::write_csv(&mut out, &shown),
        _ => gc::write(&mut out, &shown, &all, output::terminal_width()),
    });
    checked(args, &analysis, printed)
}

pub(super) fn jit(args: &args::Runtimes, quiet: bool) -> Result<()> {
    let (analysis, wanted) = open(args, quiet)?;
    let all = jit::Jit::new(&analysis.profile.trace, &wanted);
    if all.runtimes.is_empty() {
        let everywhere = jit::Jit::new(&analysis.profile.trace, &everybody(&analysis));
        let there = everywhere.runtimes.iter().map(|one| (one.process.as_str(), one.pid, one.methods));
        check_others("compiled no methods; those that did", there)?;
        bail!("no method was compiled in this recording; {RECORD_JIT}");
    }
    let shown = all.clone().first(args.most());
    let printed = output::print(|mut out| match (args.json, args.csv) {
        (true, _) => jit::write_json(&mut out, &shown),
        (_, true) => jit::write_csv(&mut out, &shown),
        _ => jit::write(&mut out, &shown, &all, output::terminal_width()),
    });
    checked(args, &analysis, printed)
}

/// Reads a recording, and says which of its processes are wanted.
fn open(args: &args::Runtimes, quiet: bool) -> Result<(Analysis, Vec<bool>)> {
    let filter = args.processes.options()?;
    // Names of functions are not shown, and every sample may be in a pause.
    let options = Options { filter: Filter::default(), symbols: None, ..Options::default() };
    let analysis = load::analysis(&args.files, &options, quiet)?;
    load::warn(&analysis);
    candidates::check_processes(&filter, &analysis.profile.trace, quiet)?;
    let trace = &analysis.profile.trace;
    let wanted = (0..).map(ProcessId).zip(filter.processes(trace));
    let wanted = wanted.map(|(process, is_wanted)| is_wanted && trace.is_whole(process)).collect();
    Ok((analysis, wanted))
}

/// Every process of a recording is wanted.
fn everybody(analysis: &Analysis) -> Vec<bool> {
    vec![true; analysis.profile.trace.processes.len()]
}

/// Fails with the processes that have what the chosen ones do not: name, id, and how much of it.
fn check_others<'p>(what: &str, there: impl Iterator<Item = (&'p str, u32, u64)>) -> Result<()> {
    let there = there.map(|(process, pid, number)| (format!("{process} ({pid})"), number));
    let there: Vec<(String, u64)> = there.collect();
    let there = candidates::added_up(there.iter().map(|(process, number)| (process.as_str(), *number)));
    if there.is_empty() {
        return Ok(());
    }
    bail!("the chosen processes {what}: {}", candidates::most(&there));
}

fn checked(args: &args::Runtimes, analysis: &Analysis, printed: Result<()>) -> Result<()> {
    strict::checked(args.strict, printed, || {
        strict::of_reading(&analysis.profile.trace.lost, &analysis.damage)
    })
}

impl args::Runtimes {
    /// How many rows of each runtime are shown.
    fn most(&self) -> usize {
        match self.rows {
            Some(0) => usize::MAX,
            Some(rows) => rows,
            None if self.json || self.csv => usize::MAX,
            None => ROWS,
        }
    }
}
