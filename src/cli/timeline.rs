//! `etwprof timeline`: what threads did, and when.

use std::num::NonZeroI64;
use std::ops::Range;

use anyhow::{Result, bail};
use etwprof::event::Ticks;
use etwprof::profile::{self, Filter};
use etwprof::report::timeline;
use etwprof::trace::waits::{ThreadTimes, Waits};
use etwprof::trace::{Keep, Runner, SlotChoice, Slots};
use etwprof::{Analysis, Options};

use super::usage::Usage;
use super::{args, candidates, load, output, strict};

/// Slots of data, where nothing else is asked for.
const SLOTS: usize = 120;

pub(super) fn run(args: &args::Timeline, quiet: bool) -> Result<()> {
    let filter = args.which.filter()?;
    let options = args.limits.options(Filter::default(), None, Default::default());
    let keep = Keep { switches: true, readied: true, ..Keep::default() };
    let analysis = load::analysis(&args.files, &Options { keep, ..options }, quiet)?;
    load::warn(&analysis);
    candidates::check_processes(&filter, &analysis.profile.trace, quiet)?;
    let is_data = args.json || args.csv;
    let width = output::terminal_width();
    let most_slots = if is_data { SLOTS } else { timeline::slots(width) };
    let slots = slots(args, &filter, &analysis, most_slots)?;
    let most = match args.rows {
        Some(0) => usize::MAX,
        Some(rows) => rows,
        None if is_data => usize::MAX,
        None => 10,
    };
    let table = timeline::Timeline::new(&analysis.profile.trace, &slots, most);
    let printed = output::print(|mut out| match (args.json, args.csv) {
        (true, _) => timeline::write_json(&mut out, &table),
        (_, true) => timeline::write_csv(&mut out, &table),
        _ => timeline::write(&mut out, &table, width),
    });
    strict::checked(args.limits.strict, printed, || {
        strict::of_reading(&analysis.profile.trace.lost, &analysis.damage)
    })
}

fn slots(args: &args::Timeline, filter: &Filter, analysis: &Analysis, most_slots: usize) -> Result<Slots> {
    let trace = &analysis.profile.trace;
    let waits = Waits::new(trace);
    let Some((first, last)) = Slots::range(trace, waits.as_ref()) else {
        bail!(
            "no CPU samples, context switches or garbage collections in this recording (`etwprof events` lists what was \
             recorded)"
        );
    };
    let Range { start, end } = filter.period(trace);
    let from = start.clamp(first, last);
    let to = end.clamp(from, last);
    let length = trace.clock.nanoseconds(to) - trace.clock.nanoseconds(from);
    let default = profile::round_up(length / most_slots as i64 + 1);
    let slot = args.slot.map_or(default, |slot| i64::try_from(slot.as_nanos()).unwrap_or(i64::MAX));
    let Some(slot) = NonZeroI64::new(slot) else {
        bail!(Usage("--slot: a slot cannot be empty; give a time such as 100ms".to_owned()))
    };
    let runner =
        |times: &ThreadTimes| Runner { process: times.process, tid: times.tid, thread: times.thread };
    let of_waits: Vec<Runner> = waits.iter().flat_map(|waits| &waits.threads).map(runner).collect();
    let (runners, threads) = (filter.runners(trace, &trace.runners), filter.runners(trace, &of_waits));
    let processes = filter.processes(trace);
    let chosen = SlotChoice {
        runners: &runners,
        threads: &threads,
        processes: &processes,
        by_thread: args.by == args::TimelineBy::Thread,
        before: (end < Ticks(i64::MAX)).then_some(end),
    };
    let Some(slots) = Slots::new(trace, waits.as_ref(), (from, to), slot.get(), chosen) else {
        bail!(Usage(format!(
            "--slot: too many slots for all these threads; give a longer one than {} us, or choose threads with --name or \
             --tid",
            slot.get() / 1000
        )));
    };
    if slots.rows.is_empty() {
        bail!("no thread is left after filtering; `etwprof threads -n 0` lists all");
    }
    Ok(slots)
}
