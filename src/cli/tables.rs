//! `etwprof top`, `callers`, `callees` and `lines`: tables of the samples of a recording.

use anyhow::{Result, anyhow};
use etwprof::profile::{Arranged, Detail, Grouping, Profile, Shape};
use etwprof::report::calls::{self, Calls, NotFound, Side};
use etwprof::report::lines::{self, Lines};
use etwprof::report::table::{self, By, Top};
use etwprof::report::{Spelling, narrow};

use super::source::Sources;
use super::{args, output, samples, say};

/// What a table is printed as.
enum Form {
    Text,
    Json,
    Csv,
}

impl args::Table {
    fn form(&self) -> Form {
        match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Text,
        }
    }

    /// How many rows are shown at most.
    pub(super) fn most(&self) -> usize {
        if self.rows == 0 { usize::MAX } else { self.rows }
    }
}

pub(super) fn top(args: &args::Top, quiet: bool) -> Result<()> {
    args.shaping.check()?;
    let by = args.by.by();
    let detail = args.reading.names.options();
    let detail = Detail { lines: detail.lines || by == By::Line, ..detail };
    let analysis = samples::open(&args.files, &args.reading, &args.measure, detail, quiet)?;
    let spelling = Spelling::new(&analysis.profile, detail);
    let mut shape = Shape { inverted: false, ..args.shaping.shape(&analysis.profile, detail)? };
    match by {
        By::Process => shape.grouping = Grouping::Process,
        By::Thread => shape.grouping = Grouping::Thread,
        _ => {}
    }
    let arranged = args.shaping.arranged(&analysis.profile, &shape, &spelling);
    let spelling = spelling.with_groups(&arranged.groups);
    let top = Top::new(&arranged, &spelling, by, args.sort.sort())
        .in_unit(analysis.profile.metric.unit)
        .first(args.table.most());
    samples::report(&args.reading, &args.shaping, &analysis, &arranged, quiet, || {
        output::print(|mut out| match args.table.form() {
            Form::Text => table::write(&mut out, &top, output::terminal_width()),
            Form::Json => table::write_json(&mut out, &top),
            Form::Csv => table::write_csv(&mut out, &top),
        })
    })
}

pub(super) fn calls(args: &args::Calls, side: Side, quiet: bool) -> Result<()> {
    args.shaping.check()?;
    let detail = args.reading.names.options();
    let analysis = samples::open(&args.asked.files, &args.reading, &args.measure, detail, quiet)?;
    let find = |arranged: &Arranged, plain: &Spelling<'_>| {
        let spelling = plain.clone().with_groups(&arranged.groups);
        Calls::new(arranged, &spelling, &args.asked.wanted, side)
    };
    let (arranged, calls) = found(&args.shaping, &analysis.profile, detail, find)?;
    let calls = calls.in_unit(analysis.profile.metric.unit).first(args.table.most());
    samples::report(&args.reading, &args.shaping, &analysis, &arranged, quiet, || {
        output::print(|mut out| match args.table.form() {
            Form::Text => calls::write(&mut out, &calls, output::terminal_width()),
            Form::Json => calls::write_json(&mut out, &calls),
            Form::Csv => calls::write_csv(&mut out, &calls),
        })
    })
}

/// What `find` finds in the tree of `profile`. Whoever asks for what is folded because it is glue gets to see it.
fn found<T>(
    shaping: &args::Shaping,
    profile: &Profile,
    detail: Detail,
    find: impl Fn(&Arranged, &Spelling<'_>) -> Result<T, Box<NotFound>>,
) -> Result<(Arranged, T)> {
    let plain = Spelling::new(profile, detail);
    // A table is the same from both ends of the stacks.
    let shape = Shape { inverted: false, ..shaping.shape(profile, detail)? };
    let arranged = shaping.arranged(profile, &shape, &plain);
    match find(&arranged, &plain) {
        Ok(found) => Ok((arranged, found)),
        Err(_) if shape.fold_glue => {
            let arranged = shaping.arranged(profile, &Shape { fold_glue: false, ..shape }, &plain);
            let found = find(&arranged, &plain).map_err(|missing| with_names(&missing))?;
            Ok((arranged, found))
        }
        Err(missing) => Err(with_names(&missing)),
    }
}

pub(super) fn lines(args: &args::Lines, quiet: bool) -> Result<()> {
    args.shaping.check()?;
    let sources = Sources::new(&args.source)?;
    let detail = Detail { lines: true, ..args.reading.names.options() };
    let analysis = samples::open(&args.asked.files, &args.reading, &args::Measure::default(), detail, quiet)?;
    let without = Spelling::new(&analysis.profile, Detail { lines: false, ..detail });
    let find = |arranged: &Arranged, plain: &Spelling<'_>| {
        let with_lines = plain.clone().with_groups(&arranged.groups);
        let without = without.clone().with_groups(&arranged.groups);
        Lines::new(arranged, &without, &with_lines, &args.asked.wanted)
    };
    let (arranged, lines) = found(&args.shaping, &analysis.profile, detail, find)?;
    let lines = lines.first(args.table.most());
    let sources = sources.of(&lines.of.functions, &analysis.symbols.il_pdbs);
    let lines = lines.with_sources(|file| sources.find(file));
    let print = || {
        output::print(|mut out| match args.table.form() {
            Form::Text => lines::write(&mut out, &lines, output::terminal_width()),
            Form::Json => lines::write_json(&mut out, &lines),
            Form::Csv => lines::write_csv(&mut out, &lines),
        })
    };
    let printed = samples::report(&args.reading, &args.shaping, &analysis, &arranged, quiet, print);
    if let Some(file) = lines.files_without_text().first().filter(|_| !quiet) {
        say::note(format_args!("the source {file} is not here; --source DIR names a folder that has it"));
    }
    printed
}

/// Columns of a name in a message.
const LONGEST: usize = 100;

/// What there is instead of a function that is not there.
fn with_names(missing: &NotFound) -> anyhow::Error {
    let names = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| narrow(name, LONGEST)).collect();
        names.join(", ")
    };
    match (missing.like.as_slice(), missing.hottest.as_slice()) {
        ([], hottest) => anyhow!("{missing}; the hottest are {} (`etwprof top` lists them)", names(hottest)),
        (like, _) => anyhow!("{missing}; did you mean {}?", names(like)),
    }
}
