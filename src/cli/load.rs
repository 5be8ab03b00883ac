//! Opens a recording and reads it into a trace.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use etwprof::analysis::{self, AnalysisError};
use etwprof::etl::{Damage, Reading, Recording};
use etwprof::profile::Profile;
use etwprof::report::{count, duration};
use etwprof::trace::{Lost, Trace};
use etwprof::{Analysis, Options};

use super::progress::Watch;
use super::{say, served};

/// Opens `files` and makes of them what `options` say.
pub(super) fn analysis(files: &[PathBuf], options: &Options, quiet: bool) -> Result<Analysis> {
    // Whatever led here.
    if let Some(file) = files.iter().find(|file| !served::may_open(file)) {
        bail!("{}: no file outside the folders of the server is opened", file.display());
    }
    let read = || Analysis::open(files, options, &Watch::new(options, quiet)).map_err(explained);
    let analysis = served::kept(|| key(files, options), read)?;
    // Before filters fail for what was given up.
    warn_merged(&analysis.profile.trace);
    Ok(analysis)
}

/// The same for the same files, as long as they stay as they are, and for the same options.
fn key(files: &[PathBuf], options: &Options) -> String {
    let state = |file: &PathBuf| file.metadata().map(|file| (file.len(), file.modified().ok())).ok();
    let states: Vec<_> = files.iter().map(state).collect();
    format!("{files:?} {states:?} {options:?}")
}

/// Lets `read` read a recording, with a progress bar.
pub(super) fn watched<T>(
    recording: &Recording,
    quiet: bool,
    read: impl FnOnce(&mut dyn FnMut(u64)) -> Reading<T>,
) -> Result<Reading<T>> {
    analysis::watched(recording, &Watch::reading(quiet), read).map_err(explained)
}

fn explained(error: AnalysisError) -> anyhow::Error {
    match error {
        AnalysisError::Shrunk(cut) => anyhow!("{cut}; is it still being recorded or copied?"),
        // By its type it is known whether the command line is wrong.
        AnalysisError::Recording(error) => error.into(),
        error => error.into(),
    }
}

/// Says on stderr what was lost or damaged, quiet or not: a result without it would look better than it is.
pub(super) fn warn(analysis: &Analysis) {
    warn_lost(&analysis.profile.trace.lost);
    warn_damaged(&analysis.damage);
}

/// Says on stderr what was given up for `--max-memory`, quiet or not.
pub(super) fn warn_merged(trace: &Trace) {
    let Some(merged) = trace.merged else { return };
    let what = match merged.within_seconds {
        None if merged.stacks_only => "samples of one process and stack became one, without times, threads and \
             processors, so --from, --to, --tid, --thread, --cpu and whatever shows times or threads mean little"
            .to_owned(),
        Some(within) => {
            let within = duration(within);
            format!("samples of one stack within {within} became one, so times are that coarse")
        }
        None => "samples of one stack became one, so timelines, --from and --to mean little".to_owned(),
    };
    say::warning(format_args!("--max-memory: {what}; counts and CPU time are exact"));
    if merged.is_too_much {
        say::warning(
            "--max-memory: samples take more than that all the same: too many have different stacks, or still await them",
        );
    }
}

/// Lists the damaged places on stderr, the first few of many.
pub(super) fn warn_damaged(damage: &[Damage]) {
    const SHOWN: usize = 5;
    damage.iter().take(SHOWN).for_each(say::warning);
    if damage.len() > SHOWN {
        let hidden = damage.len() - SHOWN;
        say::warning(format_args!("{hidden} more damaged places; `etwprof info` lists them"));
    }
}

/// Says on stderr what the sessions lost and what does not fit together.
pub(super) fn warn_lost(lost: &Lost) {
    losses(lost).iter().for_each(say::warning);
}

/// What the sessions lost and what does not fit together, one line for each kind.
pub(super) fn losses(lost: &Lost) -> Vec<String> {
    let kinds = [
        (lost.events, "event", "lost while recording"),
        (lost.buffers, "buffer", "lost while recording"),
        (lost.sequence_gaps, "buffer", "missing from the file"),
        (lost.orphan_stacks, "stack", "without an event"),
        (lost.undefined_stack_keys, "stack", "whose key was never defined"),
        (lost.malformed_events, "event", "malformed"),
    ];
    let line = |(number, what, how)| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {what}{plural} {how}", count(number))
    };
    kinds.into_iter().filter(|(number, _, _)| *number > 0).map(line).collect()
}

/// Says on stderr how many stacks are broken and why, where that matters.
pub(super) fn warn_broken(profile: &Profile) {
    const MATTERS: f64 = 1.0;
    let broken = profile.balance.stacks.broken;
    let percent = 100.0 * broken as f64 / profile.balance.kept.max(1) as f64;
    if percent <= MATTERS {
        return;
    }
    let cause = profile.breaks().into_iter().max_by_key(|(_, samples)| *samples);
    if let Some((cause, _)) = cause {
        say::warning(format_args!(
            "{} samples ({percent:.1}%) have broken stacks, without their outer callers; likely cause: {}",
            count(broken),
            cause.text()
        ));
    }
}
