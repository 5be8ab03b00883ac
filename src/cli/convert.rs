//! `etwprof convert`: a recording becomes a picture.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use etwprof::profile::{Balance, CallTree, Filter, Grouping, Profile, Resolution, Unresolved};
use etwprof::report::{console, count, cut_stacks, duration, flamegraph, folded};
use etwprof::trace::Trace;

use super::args::{self, Format};
use super::{load, output, say, symbols};

pub(super) fn run(args: &args::Convert, quiet: bool) -> Result<()> {
    let format = args.output.format()?;
    args.output.check(&args.files)?;
    symbols::check(&args.symbols)?;
    let loaded = load::trace(&args.files, quiet)?;
    load::warn(&loaded, quiet);
    if loaded.trace.sample_count() == 0 {
        bail!(
            "{} has no CPU samples; `etwprof events` tells what it has (record with the kernel's PROFILE flag)",
            args.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    let name = args.files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
    let view = View {
        files: &args.files,
        format,
        path: args.output.path.as_deref(),
        fallback: None,
        filter: &load::filter(&args.filter),
        tree: &args.tree,
        symbols: &args.symbols,
        title: &name,
        nothing_left: &|balance| format!("no sample is left; {}", why_empty(balance)),
    };
    view.show(&loaded.trace, quiet)
}

/// What is wanted of a trace, recorded or live.
pub(super) struct View<'a> {
    /// The files of a recording; none, live.
    pub(super) files: &'a [PathBuf],
    pub(super) format: Format,
    pub(super) path: Option<&'a Path>,
    /// Where it is kept if it cannot be written there, of a recording that is nowhere else.
    pub(super) fallback: Option<PathBuf>,
    pub(super) filter: &'a Filter,
    pub(super) tree: &'a args::Tree,
    pub(super) symbols: &'a args::Symbols,
    /// What was recorded, for the head of a picture.
    pub(super) title: &'a str,
    /// Why the filter kept no sample.
    pub(super) nothing_left: &'a dyn Fn(&Balance) -> String,
}

impl View<'_> {
    /// Names the frames, writes the result, and closes with the account of all samples.
    pub(super) fn show(&self, trace: &Trace, quiet: bool) -> Result<()> {
        let limit = load::limit(trace, self.tree.no_limit);
        let named = symbols::named(trace, self.files, self.filter, limit, self.symbols, quiet)?;
        let profile = &named.profile;
        if profile.samples.is_empty() && !self.filter.keeps_all() {
            bail!((self.nothing_left)(&profile.balance));
        }
        let grouping = Grouping { by_process: true, by_thread: self.tree.threads };
        let tree = CallTree::new(profile, trace, grouping);
        let write = |path: Option<&Path>| {
            output::write(path, |mut out| match self.format {
                Format::Folded => folded::write(&mut out, &tree),
                Format::Svg => flamegraph::write(&mut out, &tree, &self.titles(trace, profile)),
                Format::Tree => {
                    let width = if path.is_none() { output::terminal_width() } else { None };
                    let (min_percent, max_depth) = (self.tree.min_percent, self.tree.max_depth);
                    console::write(&mut out, &tree, &console::Options { min_percent, max_depth, width })
                }
            })
        };
        match (write(self.path), &self.fallback) {
            (Err(error), Some(second)) if self.path.is_some() => {
                return Err(match write(Some(second)) {
                    Ok(()) => error.context(format!("the result is kept in {}", second.display())),
                    Err(_) => error,
                });
            }
            (written, _) => written?,
        }
        if !quiet {
            symbols::closing_lines(trace, &named, self.files.is_empty());
            if tree.cut().samples > 0 {
                say::warning(cut_stacks(&tree.cut()));
            }
            if let Some(line) = managed_line(profile) {
                say::note(line);
            }
            say::note(closing_line(profile));
        }
        Ok(())
    }

    fn titles(&self, trace: &Trace, profile: &Profile) -> flamegraph::Options {
        let mut subtitle = format!("{} samples, {} of CPU", count(profile.balance.kept), cpu(profile));
        if let Some((first, last)) = profile.samples.first().zip(profile.samples.last()) {
            let span = trace.clock.seconds_between(first.time, last.time);
            subtitle += &format!(" in {}", duration(span));
        }
        flamegraph::Options { title: format!("CPU time: {}", self.title), subtitle }
    }
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

/// How much of the code is managed, and how much of it has no name and why; nothing where neither matters.
fn managed_line(profile: &Profile) -> Option<String> {
    let mut all = Resolution::default();
    profile.resolution().values().for_each(|resolution| all.merge(resolution));
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
