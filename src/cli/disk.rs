//! `etwprof disk` and `interrupts`: what devices did, and what it cost.

use anyhow::{Result, bail};
use etwprof::profile::{Filter, Measure, Measured};
use etwprof::report::{Spelling, disk, interrupts};
use etwprof::trace::Keep;
use etwprof::{Analysis, Options};

use super::{args, candidates, load, output, strict, symbols};

pub(super) fn disk(args: &args::Disk, quiet: bool) -> Result<()> {
    let args::Period { from, to } = args.period;
    let filter = Filter { tids: args.tid.clone(), from, to, ..args.processes.options()? };
    let keep = Keep { disk: true, ..Keep::default() };
    // No sample is shown, and no function.
    let options = Options { keep, symbols: None, ..Options::default() };
    let analysis = load::analysis(&args.files, &options, quiet)?;
    load::warn(&analysis);
    let trace = &analysis.profile.trace;
    if trace.disk.is_empty() {
        bail!(
            "no disk I/O in this recording; record the DISK_IO, DISK_IO_INIT and HARD_FAULTS events of the kernel \
             (`wpr -start DiskIO` and PerfView do)"
        );
    }
    candidates::check_processes(&filter, trace, quiet)?;
    candidates::check_facts(&filter, trace, quiet)?;
    let table = disk::Disk::new(trace, &filter, args.by.by(), args.sort.sort());
    if table.is_empty() {
        bail!("no disk I/O is left after filtering; `etwprof disk --by process -n 0` lists all");
    }
    let most = args.table.most();
    let printed = output::print(|mut out| match (args.table.json, args.table.csv) {
        (true, _) => disk::write_json(&mut out, &table.clone().first(most)),
        (_, true) => disk::write_csv(&mut out, &table.clone().first(most)),
        _ => disk::write(&mut out, &table, most, output::terminal_width()),
    });
    checked(args.strict, &analysis, printed)
}

pub(super) fn interrupts(args: &args::Interrupts, quiet: bool) -> Result<()> {
    let args::Period { from, to } = args.period;
    let filter = Filter { cpus: args.cpu.clone(), from, to, ..Filter::default() };
    let detail = args.names.options();
    let options = args.limits.options(filter.clone(), args.symbols.options(quiet)?, detail);
    let measure = Measure { what: Measured::Interrupts, ..Measure::default() };
    let analysis = load::analysis(&args.files, &Options { measure, ..options }, quiet)?;
    load::warn(&analysis);
    let trace = &analysis.profile.trace;
    if trace.interrupts.is_empty() {
        bail!(
            "no DPC and no interrupt in this recording; record the DPC and INTERRUPT events of the kernel \
             (`xperf -on Latency` does)"
        );
    }
    candidates::check_times(&filter, trace, quiet)?;
    if !quiet {
        symbols::warnings(&analysis);
    }
    let spelling = Spelling::new(&analysis.profile, detail);
    let all =
        interrupts::Interrupts::new(&analysis.profile, &spelling, &filter, args.by.by(), args.sort.sort());
    if all.rows.is_empty() {
        bail!("no DPC and no interrupt is left after filtering");
    }
    let table = all.first(args.table.most());
    let printed = output::print(|mut out| match (args.table.json, args.table.csv) {
        (true, _) => interrupts::write_json(&mut out, &table),
        (_, true) => interrupts::write_csv(&mut out, &table),
        _ => interrupts::write(&mut out, &table, output::terminal_width()),
    });
    checked(args.limits.strict, &analysis, printed)
}

fn checked(strict: bool, analysis: &Analysis, printed: Result<()>) -> Result<()> {
    strict::checked(strict, printed, || strict::of_reading(&analysis.profile.trace.lost, &analysis.damage))
}
