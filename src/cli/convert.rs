//! `etwprof convert`: a recording becomes a picture.

use anyhow::{Result, bail};
use etwprof::profile::{Balance, CallTree, Grouping, Profile};
use etwprof::report::{console, count, duration, flamegraph, folded};

use super::args::{self, Format};
use super::load::{self, Loaded};
use super::{output, symbols};

pub(super) fn run(args: &args::Convert, quiet: bool) -> Result<()> {
    let format = args.output.format()?;
    let loaded = load::trace(&args.files, quiet)?;
    load::warn(&loaded, quiet);
    if loaded.trace.samples.is_empty() {
        bail!(
            "{} has no CPU samples; `etwprof events` tells what it has (record with the kernel's PROFILE flag)",
            args.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    let filter = load::filter(&args.filter);
    let named = symbols::named(&loaded.trace, &filter, &args.symbols, quiet)?;
    let profile = &named.profile;
    if profile.samples.is_empty() && !filter.keeps_all() {
        bail!("no sample is left; {}", why_empty(&profile.balance));
    }
    let grouping = Grouping { by_process: true, by_thread: args.tree.threads };
    let tree = CallTree::new(profile, &loaded.trace, grouping);
    let path = args.output.path.as_deref();
    output::write(path, |mut out| match format {
        Format::Folded => folded::write(&mut out, &tree),
        Format::Svg => flamegraph::write(&mut out, &tree, &titles(args, &loaded, profile)),
        Format::Tree => {
            let width = if path.is_none() { output::terminal_width() } else { None };
            let (min_percent, max_depth) = (args.tree.min_percent, args.tree.max_depth);
            console::write(&mut out, &tree, &console::Options { min_percent, max_depth, width })
        }
    })?;
    if !quiet {
        symbols::closing_lines(&loaded.trace, &named);
        anstream::eprintln!("{}", closing_line(profile));
    }
    Ok(())
}

fn titles(args: &args::Convert, loaded: &Loaded, profile: &Profile) -> flamegraph::Options {
    let name = args.files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
    let mut subtitle = format!("{} samples, {} of CPU", count(profile.balance.kept), cpu(profile));
    if let Some((first, last)) = profile.samples.first().zip(profile.samples.last()) {
        let span = loaded.trace.clock.seconds_between(first.time, last.time);
        subtitle += &format!(" in {}", duration(span));
    }
    flamegraph::Options { title: format!("CPU time: {name}"), subtitle }
}

/// The account of all samples, in one line.
fn closing_line(profile: &Profile) -> String {
    let balance = &profile.balance;
    let mut line = format!(
        "{} samples = {} kept ({} of CPU) + {} idle",
        count(balance.total),
        count(balance.kept),
        cpu(profile),
        count(balance.idle)
    );
    if balance.filtered > 0 {
        line += &format!(" + {} filtered out", count(balance.filtered));
    }
    if balance.stacks.none > 0 {
        line += &format!("; {} without a stack", count(balance.stacks.none));
    }
    line
}

fn cpu(profile: &Profile) -> String {
    duration(profile.weight() as f64 / 1e7)
}

fn why_empty(balance: &Balance) -> String {
    let parts: Vec<String> = [
        (balance.idle, "are idle"),
        (balance.filtered_by_process, "are of other processes (--pid, --name)"),
        (balance.filtered_by_thread, "are of other threads (--tid)"),
        (balance.filtered_by_time, "are of other times (--from, --to)"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect();
    format!("of {}: {}. `etwprof info` lists the processes", count(balance.total), parts.join(", "))
}
