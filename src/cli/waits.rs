//! `etwprof threads` and `etwprof waits`: what threads did while they did not run.

use std::ops::Range;

use anyhow::{Result, bail};
use etwprof::event::Ticks;
#[cfg(windows)]
use etwprof::profile::Detail;
use etwprof::profile::{Filter, Measure, Measured};
use etwprof::report::{Spelling, thread_times, waits};
use etwprof::trace::waits::{Wait, Waits};
use etwprof::trace::{Keep, Runner, Trace};
use etwprof::{Analysis, Options};

use super::options::{check_switches, warn_of_stacks};
use super::{args, candidates, load, output, strict, symbols};

pub(super) fn threads(args: &args::Threads, quiet: bool) -> Result<()> {
    let filter = args.which.filter()?;
    let options = args.limits.options(Filter::default(), None, Default::default());
    let measure = Measure { what: Measured::Blocked, ..Measure::default() };
    let analysis = load::analysis(&args.files, &Options { measure, ..options }, quiet)?;
    load::warn(&analysis);
    let trace = &analysis.profile.trace;
    let (all, keeps) = chosen(&analysis, &filter, quiet)?;
    let Range { start, end } = filter.period(trace);
    let has_range = (start, end) != (Ticks(i64::MIN), Ticks(i64::MAX));
    let all = if has_range { all.between((start, end)) } else { all };
    if all.window.0 >= all.window.1 {
        bail!("--from, --to: no context switches were recorded in this range");
    }
    let was_there = |index: usize| all.threads.get(index).is_some_and(|thread| !thread.spans.is_empty());
    let kept = |index: usize| keeps.get(index) == Some(&true) && (!has_range || was_there(index));
    let table = thread_times::Threads::new(trace, &all, kept, args.sort.sort());
    let table = table.first(if args.table.rows == 0 { usize::MAX } else { args.table.rows });
    let printed = output::print(|mut out| match (args.table.json, args.table.csv) {
        (true, _) => thread_times::write_json(&mut out, &table),
        (_, true) => thread_times::write_csv(&mut out, &table),
        _ => thread_times::write(&mut out, &table, output::terminal_width()),
    });
    checked(args.limits.strict, &analysis, printed)
}

pub(super) fn worst(args: &args::WorstWaits, quiet: bool) -> Result<()> {
    let filter = args.which.filter()?;
    let detail = args.names.options();
    // A wait is shown whole, wherever the range begins.
    let whole = Filter { from: None, to: None, beside: true, ..filter.clone() };
    let options = args.limits.options(whole, args.symbols.options(quiet)?, detail);
    let measure = Measure { what: Measured::Blocked, wakers: true, ..Measure::default() };
    // Disk I/O and hard faults may be what threads waited for.
    let keep = Keep { disk: true, ..Keep::default() };
    let analysis = load::analysis(&args.files, &Options { measure, keep, ..options }, quiet)?;
    load::warn(&analysis);
    let (all, keeps) = chosen(&analysis, &filter, quiet)?;
    if !quiet {
        warn_of_stacks(&analysis.profile.trace);
        symbols::warnings(&analysis);
    }
    let spelling = Spelling::new(&analysis.profile, detail);
    let Range { start, end } = filter.period(&analysis.profile.trace);
    let within = |wait: &Wait| wait.blocked.start < end && wait.end() > start;
    let kept = |index: usize, wait: &Wait| keeps.get(index) == Some(&true) && within(wait);
    let most = if args.rows == 0 { usize::MAX } else { args.rows };
    let worst = waits::WorstWaits::new(&analysis.profile, &spelling, &all, kept, most);
    let printed = output::print(|mut out| match (args.json, args.csv) {
        (true, _) => waits::write_json(&mut out, &worst),
        (_, true) => waits::write_csv(&mut out, &worst),
        _ => waits::write(&mut out, &worst, output::terminal_width()),
    });
    checked(args.limits.strict, &analysis, printed)
}

/// Samples are not shown, so neither their stacks nor their names matter.
fn checked(strict: bool, analysis: &Analysis, printed: Result<()>) -> Result<()> {
    strict::checked(strict, printed, || strict::of_reading(&analysis.profile.trace.lost, &analysis.damage))
}

/// Prints the times of threads and the longest waits below a profile, of what `filter` keeps.
#[cfg(windows)]
pub(super) fn summary(analysis: &Analysis, filter: &Filter, detail: Detail) -> Result<()> {
    const THREADS: usize = 10;
    const WAITS: usize = 5;
    let (all, keeps) = chosen(analysis, filter, true)?;
    let kept = |index: usize| keeps.get(index) == Some(&true);
    let spelling = Spelling::new(&analysis.profile, detail);
    let table = thread_times::Threads::new(&analysis.profile.trace, &all, kept, Default::default());
    let worst = waits::WorstWaits::new(&analysis.profile, &spelling, &all, |index, _| kept(index), WAITS);
    output::print(|mut out| {
        writeln!(out)?;
        thread_times::write_rows(&mut out, &table.first(THREADS), output::terminal_width())?;
        writeln!(out, "\nlongest waits\n")?;
        waits::write_rows(&mut out, &worst, output::terminal_width())
    })
}

impl args::Which {
    pub(super) fn filter(&self) -> Result<Filter> {
        let args::Which { processes, tid, thread, from, to } = self;
        let (tids, threads) = (tid.clone(), thread.clone());
        Ok(Filter { tids, threads, from: *from, to: *to, ..processes.options()? })
    }
}

/// The states of all threads, and which of them are chosen.
fn chosen(analysis: &Analysis, filter: &Filter, quiet: bool) -> Result<(Waits, Vec<bool>)> {
    let trace: &Trace = &analysis.profile.trace;
    check_switches(trace)?;
    candidates::check_processes(filter, trace, quiet)?;
    let Some(all) = Waits::new(trace) else { bail!("the recording has no context switches") };
    let runner = |times: &etwprof::trace::waits::ThreadTimes| Runner {
        process: times.process,
        tid: times.tid,
        thread: times.thread,
    };
    let runners: Vec<Runner> = all.threads.iter().map(runner).collect();
    let mut keeps = filter.runners(trace, &runners);
    // Of the others, nothing is known.
    keeps.iter_mut().zip(&runners).for_each(|(keeps, runner)| *keeps &= trace.is_whole(runner.process));
    if !keeps.contains(&true) {
        bail!("no thread is left after filtering; `etwprof threads -n 0` lists all");
    }
    Ok((all, keeps))
}
