//! `etwprof diff`: what changed between two recordings, and whether a build should refuse it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use etwprof::compare::{
    Comparison, Names, Run, Scale, ScaleError, Shaped, Side, Together, Verdict, read_saved,
};
use etwprof::profile::{Metric, Unit};
use etwprof::report::diff::{self, Checked, Diff, Tree};
use etwprof::report::format::Content;
use etwprof::report::tree_data::Made;
use etwprof::report::{Spelling, one_line};

use super::args::DiffFormat;
use super::usage::Usage;
use super::{args, output, samples, say};

/// Conditions that do not hold; one reason in each line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(super) struct Refused(pub(super) Vec<String>);

/// Conditions of which nobody can say whether they hold; one reason in each line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(super) struct Undecided(pub(super) Vec<String>);

const NO_TIME: &str = "diff compares time; for events and allocations, compare the tables of `top --csv`";

pub(super) fn run(args: &args::Diff, quiet: bool) -> Result<()> {
    args.shaping.check()?;
    if args.metric.is_of_events() {
        bail!(Usage(NO_TIME.to_owned()));
    }
    if args.scale == Scale::Samples && args.fail_if.iter().any(|condition| condition.functions.is_none()) {
        bail!(Usage("--fail-if total: with --scale samples, all samples are as many on both sides; use another --scale".to_owned()));
    }
    if args.tree && args.form() == DiffFormat::Csv {
        bail!(Usage("--tree: CSV has rows and no tree; use -f json".to_owned()));
    }
    let mut names = Names::default();
    let [before, after] = args.sides();
    let files: Vec<PathBuf> = before.iter().chain(&after).cloned().collect();
    let graph = args::Output { path: args.graph.clone(), format: None };
    graph.check(&files)?;
    args.check_saved(&files)?;
    let before = side(&before, args, &mut names, quiet)?;
    let after = side(&after, args, &mut names, quiet)?;
    let sides = (&before, &after);
    check_shapes(&files, sides)?;
    warn_of_lengths(sides, &args.scale, quiet);
    let (by, measure) = (args.by.by(), args.sort.measure());
    let comparison =
        Comparison::new(&names, sides, &args.scale, measure, by.key_of(&names)).map_err(explained)?;
    let outcomes = args.fail_if.iter().map(|condition| {
        let outcome = condition.check(&names, sides, &args.scale).map_err(explained)?;
        Ok((outcome.verdict, Checked::new(&names, condition, &outcome)))
    });
    let (verdicts, checked): (Vec<Verdict>, Vec<Checked>) =
        outcomes.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let metric = metric(sides);
    let mut table = Diff::new(&names, &comparison, metric, by, (before.runs.len(), after.runs.len()));
    let is_for_programs = matches!(args.form(), DiffFormat::Json | DiffFormat::Csv);
    if !args.noise && args.sort != args::DiffSort::Overweight && !is_for_programs {
        table = table.without_noise();
    }
    let together = (args.tree || graph.file().is_some()).then(|| Together::new(&names, &before, &after));
    if graph.file().is_some() && after.ns() == 0 {
        say::warning("-o: the second side has no samples, so there is nothing to draw");
    } else if let (Some(path), Some(together)) = (graph.file(), &together) {
        let title = args.sides().map(|files| file_names(&files)).join(" → ");
        output::write(Some(path), Content::Plain, |out| {
            diff::write_graph(out, &names, together, metric, comparison.factor.time, &title)
        })?;
    }
    let most = if args.rows == 0 { usize::MAX } else { args.rows };
    let table = table.first(most);
    let tree = together.as_ref().filter(|_| args.tree).map(|together| {
        let nodes = Comparison::of_nodes(&names, sides, &args.scale, together).map_err(explained)?;
        let noise = args.noise || is_for_programs;
        anyhow::Ok(Tree::new(&names, together, &nodes, noise, most))
    });
    let tree = tree.transpose()?;
    let tree = tree.as_ref();
    output::print(|mut out| match args.form() {
        DiffFormat::Text => diff::write(&mut out, &table, tree, output::terminal_width()),
        DiffFormat::Json => diff::write_json(&mut out, &table, &checked, tree),
        DiffFormat::Csv => diff::write_csv(&mut out, &table),
        DiffFormat::Markdown => diff::write_markdown(&mut out, &table, &checked, tree),
    })?;
    decide(&verdicts, &checked, quiet)
}

impl args::Diff {
    /// The files of both sides.
    fn sides(&self) -> [Vec<PathBuf>; 2] {
        let side = |place: usize, more: &[PathBuf]| -> Vec<PathBuf> {
            self.files.get(place).into_iter().chain(more).cloned().collect()
        };
        [side(0, &self.before), side(1, &self.after)]
    }

    /// The flags that choose samples and shape stacks, as they may be typed.
    fn chosen(&self) -> Vec<String> {
        [self.metric.chosen(), self.reading.filter.chosen(), self.shaping.chosen()].concat()
    }

    /// Fails if there are such flags and nothing that they apply to.
    fn check_saved(&self, files: &[PathBuf]) -> Result<()> {
        let samples = &self.reading.filter.samples;
        let times = [("--from", samples.from.is_some()), ("--to", samples.to.is_some())];
        let times = times.iter().filter(|(_, given)| *given).map(|(flag, _)| (*flag).to_owned());
        let flags: Vec<String> = self.chosen().into_iter().chain(times).collect();
        if !flags.is_empty() && files.iter().all(|file| is_saved(file)) {
            let flags = flags.join(" ");
            bail!(Usage(format!(
                "{flags}: saved call trees are compared as they were saved; give it to `convert`"
            )));
        }
        Ok(())
    }

    fn form(&self) -> DiffFormat {
        if self.json { DiffFormat::Json } else { self.format }
    }
}

fn side(files: &[PathBuf], args: &args::Diff, names: &mut Names, quiet: bool) -> Result<Side> {
    let runs = files.iter().map(|file| read(file, args, names, quiet)).collect::<Result<Vec<Run>>>()?;
    Ok(Side { runs })
}

/// The names of files without their folders.
fn file_names(files: &[PathBuf]) -> String {
    let names = files.iter().map(|file| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy());
    names.collect::<Vec<_>>().join(", ")
}

/// A recording, or a call tree that was saved.
fn read(path: &Path, args: &args::Diff, names: &mut Names, quiet: bool) -> Result<Run> {
    let shown = path.display();
    if is_saved(path) {
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        return read_saved(BufReader::new(file), names).with_context(|| format!("{shown}"));
    }
    if !quiet {
        say::note(format_args!("{shown}:"));
    }
    let detail = args.reading.names.options();
    let analysis = samples::open(&[path.to_owned()], &args.reading, &args.metric, detail, quiet)?;
    let spelling = Spelling::new(&analysis.profile, detail);
    let shape = args.shaping.shape(&analysis.profile, detail)?;
    let arranged = args.shaping.arranged(&analysis.profile, &shape, &spelling);
    let spelling = spelling.with_groups(&arranged.groups);
    let filter = args.reading.filter.options()?;
    let seconds = analysis.profile.seconds((filter.from, filter.to));
    let shaped = Shaped::new(analysis.profile.metric, &shape, &args.chosen().join(" "));
    let made = Made { seconds, dispersion: analysis.profile.dispersion(), shaped, unit: Unit::Time };
    let run = diff::run(&arranged, &spelling, made, names);
    samples::report(&args.reading, &args.shaping, &analysis, &arranged, quiet, || Ok(()))?;
    Ok(run)
}

/// True for a file that begins as JSON does. What cannot be read says so where it is read for good.
fn is_saved(path: &Path) -> bool {
    let mut start = [0; 1];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"{"
}

fn explained(error: ScaleError) -> anyhow::Error {
    match error {
        ScaleError::NoDuration => anyhow!("--scale time: {error}; save it again, or use --scale samples"),
        ScaleError::NoFunction(_) => {
            Undecided(vec![format!("--scale: {error}; name a function that both sides call")]).into()
        }
        ScaleError::NoSamples => Undecided(vec![format!("--scale: {error}")]).into(),
        error => anyhow!("{error}"),
    }
}

/// Fails if trees cannot be compared for how they were made, and warns if they are of other samples or names.
fn check_shapes(files: &[PathBuf], (before, after): (&Side, &Side)) -> Result<()> {
    // `files` has those of each side, in the same order.
    let runs = || files.iter().zip(before.runs.iter().chain(&after.runs));
    for (file, _) in runs().filter(|(_, run)| !run.has_keys) {
        say::warning(format_args!(
            "{}: an older version saved it, without keys; functions are matched by how they read. Save it again",
            file.display()
        ));
    }
    let mut shapes = runs().filter_map(|(file, run)| Some((file.display(), run.shaped.as_ref()?)));
    let is_time = |(_, shaped): &(_, &Shaped)| Metric::of_time(&shaped.metric).is_some();
    if let Some((file, _)) = shapes.clone().find(|shaped| !is_time(shaped)) {
        bail!(Usage(format!("{file}: {NO_TIME}")));
    }
    let Some((first, one)) = shapes.next() else { return Ok(()) };
    for (file, other) in shapes.filter(|(_, other)| *other != one) {
        let text = |shaped: &Shaped| {
            let chosen = if shaped.chosen.is_empty() { "all samples" } else { &shaped.chosen };
            format!("{chosen}, grouped by {}", shaped.grouping)
        };
        let differ = format!("{first} has {}, but {file} has {}", text(one), text(other));
        if one.contradicts(other) {
            bail!(Usage(format!("{differ}; make both trees with the same options")));
        }
        say::warning(differ);
    }
    Ok(())
}

/// What both sides measure; it is the same on both.
fn metric((before, after): (&Side, &Side)) -> Metric {
    let shaped = before.runs.iter().chain(&after.runs).find_map(|run| run.shaped.as_ref());
    shaped.and_then(|shaped| Metric::of_time(&shaped.metric)).unwrap_or(Metric::CPU)
}

/// Recordings of different lengths seldom did the same work.
fn warn_of_lengths((before, after): (&Side, &Side), scale: &Scale, quiet: bool) {
    const ALIKE: f64 = 0.1;
    let each = |side: &Side| Some(side.seconds()? / side.runs.len() as f64);
    let (Some(before), Some(after), false) = (each(before), each(after), quiet) else { return };
    if *scale == Scale::Runs && (after - before).abs() > ALIKE * before.max(after) {
        say::warning(format_args!(
            "the recordings last {before:.1} s and {after:.1} s; if they did not do the same work, compare them with \
             --scale time or --scale samples"
        ));
    }
}

/// Fails where a condition does.
fn decide(verdicts: &[Verdict], checked: &[Checked], quiet: bool) -> Result<()> {
    let lines = |of: &dyn Fn(&Verdict) -> bool| -> Vec<String> {
        let wanted = verdicts.iter().zip(checked).filter(|(verdict, _)| of(verdict));
        wanted.map(|(_, checked)| format!("--fail-if '{}': {}", checked.condition, checked.reason)).collect()
    };
    if !quiet {
        lines(&|verdict| *verdict == Verdict::Passed).iter().for_each(|line| say::note(one_line(line)));
    }
    let undecided = lines(&|verdict| matches!(verdict, Verdict::TooLittle(_) | Verdict::NotFound));
    let failed = lines(&|verdict| *verdict == Verdict::Failed);
    if !failed.is_empty() {
        return Err(Refused(failed.into_iter().chain(undecided).collect()).into());
    }
    if !undecided.is_empty() {
        return Err(Undecided(undecided).into());
    }
    Ok(())
}
