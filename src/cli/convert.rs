//! `etwprof convert`: a recording becomes a picture.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use etwprof::Analysis;
use etwprof::profile::{Detail, Grouping, Measured, Moment, Shape};
use etwprof::report::format::{self, Content, Format, Picture};
use etwprof::report::{Spelling, console};
use etwprof::trace::Keep;

use super::usage::Usage;
use super::{args, output, samples, say, strict};

pub(super) fn run(args: &args::Convert, quiet: bool) -> Result<()> {
    let mut view = View::new(&args.output, &args.shaping, &args.tree, &args.reading.names)?;
    args.output.check(&args.files)?;
    view.check_metric(&args.measure)?;
    let filter = &args.reading.filter.samples;
    view.range = (filter.from, filter.to);
    view.chosen = [args.measure.chosen(), args.reading.filter.chosen()].concat();
    let keep = view.keep();
    let analysis =
        samples::open_keeping(keep, &args.files, &args.reading, &args.measure, view.detail, quiet)?;
    let name = args.files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
    let printed = view.show(&analysis, &name, quiet);
    let reading = &args.reading;
    strict::checked(reading.limits.strict, printed, || {
        strict::reasons(&analysis, !reading.symbols.no_symbols)
    })
}

/// How a profile is shown, recorded or live.
pub(super) struct View<'a> {
    format: &'static Format,
    path: Option<&'a Path>,
    /// Where it is kept if it cannot be written there, of a recording that is nowhere else.
    pub(super) fallback: Option<PathBuf>,
    shaping: &'a args::Shaping,
    /// The range of time that was chosen.
    pub(super) range: (Option<Moment>, Option<Moment>),
    /// What else was chosen: flags.
    pub(super) chosen: Vec<String>,
    tree: &'a args::Tree,
    /// What the format needs to know of frames.
    pub(super) detail: Detail,
    /// What labels show of it.
    spelled: Detail,
}

impl<'a> View<'a> {
    pub(super) fn new(
        output: &'a args::Output,
        shaping: &'a args::Shaping,
        tree: &'a args::Tree,
        names: &args::Names,
    ) -> Result<View<'a>> {
        let (format, path) = (output.format()?, output.file());
        if format.content == Content::Binary && path.is_none() && io::stdout().is_terminal() {
            let (name, ending) = (format.name, format.endings.first().unwrap_or(&""));
            bail!(Usage(format!("-f {name}: this format is binary; write it to a file: -o profile{ending}")));
        }
        View::of(format, path, shaping, tree, names)
    }

    /// The events that the format needs beside samples.
    fn keep(&self) -> Keep {
        let waits = self.format.needs.waits;
        Keep { switches: waits, readied: waits, ..Keep::default() }
    }

    /// The same for a format that is written to `path`, or to where [`View::draw`] says.
    pub(super) fn of(
        format: &'static Format,
        path: Option<&'a Path>,
        shaping: &'a args::Shaping,
        tree: &'a args::Tree,
        names: &args::Names,
    ) -> Result<View<'a>> {
        shaping.check()?;
        let (spelled, range) = (names.options(), (None, None));
        let detail = Detail {
            lines: spelled.lines || format.needs.lines,
            tiers: spelled.tiers || format.needs.code,
            addresses: format.needs.code,
            ..spelled
        };
        // A format that has a place of its own for lines has none in its names.
        let spelled = Detail { lines: spelled.lines && !format.needs.lines, ..spelled };
        Ok(View { format, path, fallback: None, shaping, range, chosen: Vec::new(), tree, detail, spelled })
    }

    /// Fails for a format of which the readers take all for CPU time.
    pub(super) fn check_metric(&self, measure: &args::Measure) -> Result<()> {
        if measure.measure().what != Measured::Cpu && self.format.needs.cpu_time {
            let others = format::ALL.iter().filter(|format| !format.needs.cpu_time).map(|format| format.name);
            let others = others.collect::<Vec<_>>().join(", ");
            bail!(Usage(format!(
                "-f {} shows CPU time only; --metric and --event take these formats: {others}",
                self.format.name
            )));
        }
        Ok(())
    }

    /// The result is text on stdout, for a reader.
    #[cfg(windows)]
    pub(super) fn is_read_here(&self) -> bool {
        self.path.is_none() && self.format.content == Content::Styled
    }

    /// The format of the result.
    #[cfg(windows)]
    pub(super) fn format(&self) -> &'static Format {
        self.format
    }

    /// Writes the result, and closes with the account of all samples. `title` says what was recorded.
    pub(super) fn show(&self, analysis: &Analysis, title: &str, quiet: bool) -> Result<()> {
        self.draw(analysis, title, quiet, |picture| {
            let write =
                |path| output::write(path, self.format.content, |out| (self.format.write)(out, picture));
            match (write(self.path), &self.fallback) {
                (Err(error), Some(second)) if self.path.is_some() => {
                    return Err(match write(Some(second)) {
                        Ok(()) => {
                            error.context(format!("the result was saved to {} instead", second.display()))
                        }
                        Err(_) => error,
                    });
                }
                (written, _) => written?,
            }
            if let Some(path) = self.path.filter(|path| path.is_file() && !quiet) {
                say::note(format_args!("wrote {}", path.display()));
            }
            Ok(())
        })
    }

    /// Gives the picture to `write`, between the warnings and the account of all samples.
    pub(super) fn draw(
        &self,
        analysis: &Analysis,
        title: &str,
        quiet: bool,
        write: impl FnOnce(&Picture<'_>) -> Result<()>,
    ) -> Result<()> {
        let profile = &analysis.profile;
        let spelling = Spelling::new(profile, self.spelled);
        let (tops, keep_ends) = (self.format.tops, self.format.needs.ends);
        let shaped = self.shaping.shape(profile, self.detail).and_then(|shape| {
            let shape = Shape { grouping: tops.grouping(shape.grouping), keep_ends, ..shape };
            let arranged = self.shaping.arranged(profile, &shape, &spelling);
            samples::check_some_are_left(profile, &arranged)?;
            Ok((shape, arranged))
        });
        let (shape, arranged) = match shaped {
            Err(error) if analysis.recording.is_none() => {
                say::all_is_shown(&error);
                let (grouping, detail) = (tops.grouping(Grouping::Process), self.detail);
                let shape = Shape { grouping, detail, keep_ends, fold_glue: true, ..Shape::default() };
                let arranged = profile.arrange(&shape);
                (shape, arranged)
            }
            shaped => shaped?,
        };
        let labels = spelling.clone().with_groups(&arranged.groups);
        samples::warn(analysis, self.shaping, &arranged, quiet);
        let chosen = [self.chosen.clone(), self.shaping.chosen()].concat().join(" ");
        let picture = Picture {
            analysis,
            shape: &shape,
            arranged: &arranged,
            labels: &labels,
            title,
            range: self.range,
            chosen: &chosen,
            console: console::Options {
                min_percent: self.tree.min_percent,
                max_depth: self.tree.max_depth,
                all_frames: self.tree.all_frames,
                width: self.tree.width.or_else(|| self.path.is_none().then(output::terminal_width)?),
                metric: profile.metric,
                inverted: shape.inverted,
                // The top of a tree of callees is these.
                hottest: !shape.inverted && !self.tree.hot,
                hot: self.tree.hot,
                legend: self.tree.legend,
                ..console::Options::default()
            },
            arrange: &|shape: &Shape| self.shaping.arranged(profile, shape, &labels),
        };
        write(&picture)?;
        samples::close(analysis, &arranged, quiet);
        Ok(())
    }
}
