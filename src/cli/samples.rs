//! The samples of a recording, from the files to the account of all of them: what every report on samples begins and ends
//! with.

use std::path::PathBuf;

use anyhow::{Result, bail};
use etwprof::etl::Recording;
use etwprof::profile::{Arranged, Balance, Detail, Filter, Metric, Profile, Resolution, Unresolved};
use etwprof::report::events::Counter;
use etwprof::report::{amount, count, cut_stacks, filtered_out};
use etwprof::trace::{EventSet, Keep};
use etwprof::{Analysis, Options, analysis};

use super::usage::Usage;
use super::{args, candidates, choose, load, say, strict, symbols};

/// Reads a recording and names its samples, with lines if `detail` has them. Fails where there are none, or none that the
/// filter keeps.
pub(super) fn open(
    files: &[PathBuf],
    args: &args::Reading,
    measure: &args::Measure,
    detail: Detail,
    quiet: bool,
) -> Result<Analysis> {
    open_keeping(Keep::default(), files, args, measure, detail, quiet)
}

/// The same with more events than the metric needs.
pub(super) fn open_keeping(
    keep: Keep,
    files: &[PathBuf],
    args: &args::Reading,
    measure: &args::Measure,
    detail: Detail,
    quiet: bool,
) -> Result<Analysis> {
    let filter = args.filter.options()?;
    let options = args.limits.options(filter, args.symbols.options(quiet)?, detail);
    let events = chosen_events(files, measure, quiet)?;
    let options = Options { measure: measure.checked()?, keep, events, ..options };
    let mut analysis = load::analysis(files, &options, quiet)?;
    load::warn(&analysis);
    measure.check(&analysis.profile.trace, quiet)?;
    if analysis.profile.balance.total == 0 && analysis.profile.metric == Metric::CPU {
        bail!(
            "no CPU samples in {}{}; record them with `wpr -start CPU`, `PerfView collect` or the kernel's PROFILE flag \
             (`etwprof events` lists what was recorded)",
            files.first().map(|file| file.display().to_string()).unwrap_or_default(),
            match files.len() {
                0 | 1 => String::new(),
                parts => format!(" and its {} other parts", parts - 1),
            }
        );
    }
    choose::narrow(&mut analysis, &options.filter, &args.filter.samples, detail, quiet)?;
    choose::check_some_are_left(&options.filter, &analysis.profile.balance)?;
    Ok(analysis)
}

/// The events that are to be kept. Where somebody chose some by name, a reading of its own finds what the recording has.
fn chosen_events(files: &[PathBuf], measure: &args::Measure, quiet: bool) -> Result<EventSet> {
    if measure.metric == args::MetricWord::Allocated {
        return Ok(EventSet::allocations());
    }
    if measure.event.is_empty() {
        return Ok(EventSet::default());
    }
    let recording = Recording::open(files)?;
    let reading = load::watched(&recording, quiet, |progress| {
        recording.fold(analysis::processors(), progress, Counter::default, Counter::event)
    })?;
    for wanted in &measure.event {
        if reading.value.chosen(|name| wanted.matches(name)).is_empty() {
            bail!(candidates::no_such_event(wanted, &reading.value.rows()));
        }
    }
    if measure.event.iter().any(|wanted| wanted.matches("PerfInfo/Sample")) {
        bail!(Usage(
            "--event: CPU samples are what is shown without it; leave it out, or name other events"
                .to_owned()
        ));
    }
    Ok(reading.value.chosen(|name| measure.event.iter().any(|wanted| wanted.matches(name))))
}

/// Prints a table of `arranged` samples, between the warnings and the account.
///
/// # Errors
/// Those of `print`, and with `--strict` all that is wrong with the recording.
pub(super) fn report(
    args: &args::Reading,
    shaping: &args::Shaping,
    analysis: &Analysis,
    arranged: &Arranged,
    quiet: bool,
    print: impl FnOnce() -> Result<()>,
) -> Result<()> {
    check_some_are_left(&analysis.profile, arranged)?;
    warn(analysis, shaping, arranged, quiet);
    let printed = print().map(|()| close(analysis, arranged, quiet));
    let names_wanted = !args.symbols.no_symbols;
    strict::checked(args.limits.strict, printed, || strict::reasons(analysis, names_wanted))
}

/// Fails where there were samples, and the shape of the tree left all of them out.
pub(super) fn check_some_are_left(profile: &Profile, arranged: &Arranged) -> Result<()> {
    match profile.balance.kept {
        0 => Ok(()),
        _ => choose::check_some_are_left(&Filter::default(), &arranged.balance),
    }
}

/// Warns of what makes a report of `arranged` samples less than it could be: before it, for a reader may not want all of
/// it.
pub(super) fn warn(analysis: &Analysis, shaping: &args::Shaping, arranged: &Arranged, quiet: bool) {
    if quiet {
        return;
    }
    shaping.warn(&analysis.profile, arranged);
    load::warn_broken(&analysis.profile);
    symbols::warnings(analysis);
    if arranged.cut.samples > 0 {
        say::warning(cut_stacks(&arranged.cut));
    }
}

/// Closes a report of `arranged` samples: what has no name, and the account of all samples.
pub(super) fn close(analysis: &Analysis, arranged: &Arranged, quiet: bool) {
    if quiet {
        return;
    }
    let profile = &analysis.profile;
    let frames = profile.resolution_of_all();
    symbols::closing_lines(analysis, &frames, analysis.recording.is_none());
    if let Some(line) = managed_line(&frames) {
        say::note(line);
    }
    say::note(closing_line(&arranged.balance, arranged.values.total(), profile.metric));
}

/// The account of all samples, in one line.
fn closing_line(balance: &Balance, time: i64, metric: Metric) -> String {
    let of = if metric == Metric::CPU { "of CPU" } else { metric.name };
    let mut line = format!("{} {} = {} kept", count(balance.total), metric.samples, count(balance.kept),);
    if let Some(amount) = amount(metric, time) {
        line += &format!(" ({amount} {of})");
    }
    if metric == Metric::CPU || balance.idle > 0 {
        line += &format!(" + {} idle", count(balance.idle));
    }
    if balance.filtered > 0 {
        line += &format!(" + {}", filtered_out(balance));
    }
    if balance.stacks.none > 0 {
        line += &format!("; {} without a stack", count(balance.stacks.none));
    }
    if balance.stacks.broken > 0 {
        line += &format!("; {} with a broken stack", count(balance.stacks.broken));
    }
    if balance.stacks.repaired > 0 {
        line += &format!("; {} with a repaired stack", count(balance.stacks.repaired));
    }
    line
}

/// How much of the code is managed, and how much of it has no name and why; nothing where neither matters.
fn managed_line(all: &Resolution) -> Option<String> {
    let percent = |frames: u64| 100.0 * frames as f64 / all.total().max(1) as f64;
    let (managed, unnamed) = (percent(all.managed), percent(all.outside_images()));
    const MATTERS: f64 = 1.0;
    if managed < MATTERS && unnamed < MATTERS {
        return None;
    }
    let mut line = format!("frames: {managed:.1}% .NET methods");
    let worst = all.causes().into_iter().find(|count| count.cause != Unresolved::NoSymbols);
    if let Some(worst) = worst.filter(|_| unnamed >= MATTERS) {
        line += &format!(", {unnamed:.1}% unknown code (mostly: {})", worst.cause.text());
    }
    Some(line)
}
