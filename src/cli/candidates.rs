//! What a filter may have meant: what there is instead of a name or number that the recording does not have.

use std::cmp::Reverse;

use anyhow::{Result, bail};
use etwprof::profile::{During, Filter, Matcher, Moment};
use etwprof::report::events::Row;
use etwprof::report::{count, duration, time_of_day, time_zone};
use etwprof::trace::{Process, Runner, Thread, Trace};
use rustc_hash::FxHashMap;

use super::args::Provider;
use super::runtimes::{RECORD_GC, RECORD_JIT};
use super::say;
use super::usage::Usage;

/// Where all names of providers and events are.
const LISTED_EVENTS: &str = " (`etwprof events` lists them)";

/// Fails if the filter names processes and the recording has none of them; warns of each that it has not.
pub(super) fn check_processes(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    let has = |is: &dyn Fn(&Process) -> bool| trace.processes.iter().any(is);
    let names = filter.names.iter().filter(|name| !has(&|process| name.matches_executable(process.label())));
    let pids = filter.pids.iter().filter(|pid| !has(&|process| process.pid == **pid));
    let there = || {
        let of = |sample| trace.processes.get(trace.runner(sample).process.0 as usize);
        let all = trace.processes.iter().map(|process| (process.label(), 0));
        let sampled =
            trace.samples.iter().filter_map(|sample| Some((of(sample.runner)?.label(), sample.count())));
        added_up(all.chain(sampled))
    };
    let text = |runner: &Runner| {
        let process = trace.process(runner.process)?;
        Some(format!("{} ({})", process.label(), process.pid))
    };
    let has_none = trace.processes.is_empty();
    let missing = names
        .map(|name| {
            if has_none {
                return format!("--name {name}: the recording lists no processes");
            }
            let instead = instead(name, &there(), "the recording has", " (`etwprof info` lists them)");
            format!("--name {name}: no process has this name; {instead}")
        })
        .chain(pids.map(|pid| {
            if has_none {
                return format!("--pid {pid}: the recording lists no processes");
            }
            format!("--pid {pid}: no process has this id; {}", instead_of_id(trace, text, "processes"))
        }));
    answer(missing.collect(), has(&|process| filter.names_process(process)), quiet)
}

/// Says that no provider matches, and which there are, by the number of their events.
pub(super) fn no_such_provider(wanted: &Provider, there: &[(&str, u64)]) -> String {
    let instead = |wanted: &str| match Matcher::parse(wanted) {
        Ok(wanted) => instead(&wanted, &added_up(there.iter().copied()), "the recording has", LISTED_EVENTS),
        Err(error) => error.to_string(),
    };
    match wanted {
        Provider::Guid(guid) => {
            let guid = guid.to_string();
            format!("--provider {guid}: the recording has no such provider; {}", instead(&guid))
        }
        Provider::Name(name) => {
            format!("--provider {name}: the recording has no such provider; {}", instead(name.text()))
        }
    }
}

/// Says that no event matches, and which there are.
pub(super) fn no_such_event(wanted: &Matcher, rows: &[Row]) -> String {
    let there = added_up(rows.iter().filter_map(|row| Some((row.name.as_deref()?, row.count))));
    let instead = instead(wanted, &there, "the recording has", LISTED_EVENTS);
    format!("--event {wanted}: the recording has no such event; {instead}")
}

/// The same for threads, processors and times.
pub(super) fn check_facts(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    check_threads(filter, trace, quiet)?;
    check_processors(filter, trace, quiet)?;
    check_times(filter, trace, quiet)?;
    check_during(filter, trace, quiet)
}

fn check_threads(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    let has = |is: &dyn Fn(&Thread) -> bool| trace.threads.iter().any(is);
    let has_tid =
        |tid: u32| has(&|thread| thread.tid == tid) || trace.runners.iter().any(|runner| runner.tid == tid);
    let has_name = |name: &Matcher| has(&|thread| !thread.name.is_empty() && name.matches(&thread.name));
    let there = || {
        let thread = |sample| trace.thread(trace.runner(sample).thread?);
        let all = trace.threads.iter().map(|thread| (thread.name.as_str(), 0));
        let sampled = trace
            .samples
            .iter()
            .filter_map(|sample| Some((thread(sample.runner)?.name.as_str(), sample.count())));
        added_up(all.chain(sampled).filter(|(name, _)| !name.is_empty()))
    };
    let names = filter.threads.iter().filter(|name| !has_name(name)).map(|name| {
        let why = match there() {
            there if there.is_empty() => {
                "no thread in the recording has a name; --tid takes the ids of threads".to_owned()
            }
            there => format!("no thread has this name; {}", instead(name, &there, "the recording has", "")),
        };
        format!("--thread {name}: {why}")
    });
    let tids = filter.tids.iter().filter(|tid| !has_tid(**tid));
    let missing = names.chain(tids.map(|tid| {
        format!(
            "--tid {tid}: no thread has this id; {}",
            instead_of_id(trace, |runner| Some(runner.tid.to_string()), "threads")
        )
    }));
    let any = filter.tids.iter().any(|tid| has_tid(*tid)) || filter.threads.iter().any(has_name);
    answer(missing.collect(), any, quiet)
}

fn check_processors(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    let processors = trace.machine.processors;
    let is_there = |number: u16| processors == 0 || u32::from(number) < processors;
    let missing = filter.cpus.iter().filter(|cpus| !is_there(*cpus.end())).map(|cpus| {
        let (first, last) = (cpus.start(), cpus.end());
        let given = if first == last { first.to_string() } else { format!("{first}-{last}") };
        format!("--cpu {given}: the machine has the processors 0 to {}", processors.saturating_sub(1))
    });
    answer(missing.collect(), filter.cpus.iter().any(|cpus| is_there(*cpus.start())), quiet)
}

/// Fails where the recording does not say what the .NET runtime did meanwhile; warns where that leaves nothing out.
fn check_during(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    let has_pauses = || !trace.managed.gc_pauses().is_empty();
    match filter.during {
        Some(During::Gc) if !has_pauses() => {
            bail!("--during gc: the recording has no pauses for garbage collections; {RECORD_GC}")
        }
        Some(During::OutsideGc) if !has_pauses() && !quiet => say::warning(format_args!(
            "--during outside-gc: the recording has no pauses for garbage collections, so nothing is left out; {RECORD_GC}"
        )),
        Some(During::Jit) if trace.managed.jit_times().is_empty() => {
            bail!("--during jit: the recording does not say when methods were compiled; {RECORD_JIT}")
        }
        _ => {}
    }
    Ok(())
}

/// Fails for a time of day outside the recording, and for one that is not before the other; says what others are.
pub(super) fn check_times(filter: &Filter, trace: &Trace, quiet: bool) -> Result<()> {
    let end = trace.span.map_or(trace.clock.base, |(_, last)| last.max(trace.clock.base));
    for (option, moment) in [("--from", filter.from), ("--to", filter.to)] {
        let Some(moment) = moment.filter(|moment| !matches!(moment, Moment::Seconds(_))) else { continue };
        let (at, clock) = moment.on_clock(trace);
        let time = time_of_day(&clock, at);
        let zone = match clock.utc_offset {
            Some(_) => time_zone(&clock),
            None => "UTC, as the recording names no time zone".to_owned(),
        };
        // What is shown of the end is less exact than it is.
        if clock.seconds_between(end, at) > 0.001 {
            let (begin, end) = (time_of_day(&clock, clock.base), time_of_day(&clock, end));
            bail!("{option} {time}: the recording lasts from {begin} to {end} ({zone})");
        }
        if !quiet {
            let seconds = clock.seconds(at);
            let side = if seconds < 0.0 { "before" } else { "after" };
            say::note(format_args!("{option} {time} ({zone}) is {:.3} s {side} the start", seconds.abs()));
        }
    }
    if let (Some(from), Some(to)) = (filter.from, filter.to)
        && from.at(trace) >= to.at(trace)
    {
        bail!(Usage("--from must be before --to".to_owned()));
    }
    Ok(())
}

/// Fails for a time of which nothing was recorded.
pub(super) fn check_any_time(filter: &Filter, trace: &Trace) -> Result<()> {
    let end = trace.span.map_or(trace.clock.base, |(_, last)| last.max(trace.clock.base));
    let lasts = || duration(trace.clock.seconds(end));
    if filter.from.is_some_and(|from| from.at(trace) > end) {
        bail!("--from: nothing was recorded from this time on; the recording lasts {}", lasts());
    }
    if filter.to.is_some_and(|to| to.at(trace) <= trace.clock.base) {
        bail!("--to: nothing was recorded before this time; the recording lasts {}", lasts());
    }
    Ok(())
}

/// Fails with the first of what is missing if nothing else is there; warns of each otherwise.
pub(super) fn answer(missing: Vec<String>, any: bool, quiet: bool) -> Result<()> {
    match missing.first() {
        Some(first) if !any => bail!("{first}"),
        _ if quiet => {}
        _ => missing.iter().for_each(say::warning),
    }
    Ok(())
}

/// What there is instead of an id: `text` is that of a thread in its process.
fn instead_of_id(trace: &Trace, text: impl Fn(&Runner) -> Option<String>, what: &str) -> String {
    let mut samples = vec![0; trace.runners.len()];
    for sample in &trace.samples {
        if let Some(samples) = samples.get_mut(sample.runner.0 as usize) {
            *samples += sample.count();
        }
    }
    let texts: Vec<Option<String>> = trace.runners.iter().map(text).collect();
    let there = texts.iter().zip(samples).filter_map(|(text, samples)| Some((text.as_deref()?, samples)));
    let there = added_up(there.filter(|(_, samples)| *samples > 0));
    let mut all: Vec<&(&str, u64)> = there.iter().collect();
    all.sort_by_key(|(name, samples)| (Reverse(*samples), *name));
    if !all.is_empty() {
        return format!("the busiest {what} are {}", first_few(&all));
    }
    let listed: Vec<String> = match what {
        "processes" => trace.processes.iter().map(|one| format!("{} ({})", one.label(), one.pid)).collect(),
        _ => Vec::new(),
    };
    let listed: Vec<(&str, u64)> = listed.iter().map(|text| (text.as_str(), 0)).collect();
    match listed.is_empty() {
        true => format!("the recording has no samples of {what}"),
        false => {
            let listed: Vec<_> = listed.iter().collect();
            format!("the recording has {} (`etwprof info` lists them)", first_few(&listed))
        }
    }
}

/// Names with the samples of all their owners.
pub(super) fn added_up<'n>(names: impl Iterator<Item = (&'n str, u64)>) -> Vec<(&'n str, u64)> {
    let mut samples: FxHashMap<&str, u64> = FxHashMap::default();
    for (name, more) in names {
        *samples.entry(name).or_default() += more;
    }
    samples.into_iter().collect()
}

/// The names that there are: those like what was wanted, else those with the most samples. `whose` and `listed` stand
/// before and behind the latter.
pub(super) fn instead(wanted: &Matcher, there: &[(&str, u64)], whose: &str, listed: &str) -> String {
    let mut all: Vec<&(&str, u64)> = there.iter().collect();
    all.sort_by_key(|(name, samples)| (Reverse(*samples), *name));
    let word = wanted.text().to_lowercase();
    let word = word.trim_matches(['*', '/']).trim_end_matches(".exe");
    let is_like = |name: &str| !word.is_empty() && name.to_lowercase().contains(word);
    let like: Vec<_> = all.iter().copied().filter(|(name, _)| is_like(name)).collect();
    match (like.is_empty(), all.is_empty()) {
        (false, _) => format!("did you mean {}?", first_few(&like)),
        (true, false) => format!("{whose} {}{listed}", first_few(&all)),
        (true, true) => "there is none".to_owned(),
    }
}

/// The first few names, those with the most first.
pub(super) fn most(there: &[(&str, u64)]) -> String {
    let mut all: Vec<&(&str, u64)> = there.iter().collect();
    all.sort_by_key(|(name, number)| (Reverse(*number), *name));
    first_few(&all)
}

/// The first few names, and how many more there are. A name may be of any length.
fn first_few(names: &[&(&str, u64)]) -> String {
    const SHOWN: usize = 5;
    const LONGEST: usize = 100;
    let short = |name: &str| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    };
    let shown: Vec<String> = names.iter().take(SHOWN).map(|(name, _)| short(name)).collect();
    match names.len().saturating_sub(SHOWN) as u64 {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), count(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Matcher, instead};

    #[test]
    fn names_like_the_wanted_one_come_first_and_long_ones_are_cut() {
        let there = [("orders.exe", 5), ("reorder.exe", 9), ("a.exe", 90), ("b.exe", 0)];
        let text = |wanted| instead(&Matcher::parse(wanted).unwrap(), &there, "there are", " (a list)");
        assert_eq!(text("Order"), "did you mean reorder.exe, orders.exe?");
        assert_eq!(text("orders*x"), "there are a.exe, reorder.exe, orders.exe, b.exe (a list)");
        let long = "n".repeat(1 << 16);
        let text = instead(&Matcher::parse("x").unwrap(), &[(long.as_str(), 1)], "there are", "");
        assert_eq!(text, format!("there are {}…", "n".repeat(100)));
        assert_eq!(instead(&Matcher::parse("x").unwrap(), &[], "there are", ""), "there is none");
    }
}
