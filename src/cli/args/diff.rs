//! The arguments of `diff`.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};
use etwprof::compare::{Condition, Measure, Scale};
use etwprof::profile::Matcher;
use etwprof::report::diff::By;

use super::shaping::Shaping;
use super::shared::{Reading, number};

const EXAMPLES: &str = "\
Examples:
  etwprof diff before.etl after.etl                      what changed, by function
  etwprof diff before.etl after.etl --by module          by module
  etwprof diff before.etl after.etl --tree               which calls lead there
  etwprof diff before.etl after.etl -o diff.svg          draw it, too
  etwprof diff before.etl after.etl --sort overweight    as PerfView's overweight report
  etwprof diff --before a1.etl --before a2.etl --after b1.etl --after b2.etl
  etwprof diff main.json pr.etl --fail-if 'Orders.*: +5%' --fail-if 'total: +2%'
  etwprof diff main.json pr.json -f markdown >> \"$GITHUB_STEP_SUMMARY\"

A saved tree (`etwprof convert trace.etl -o main.json`) is compared as it was
saved; options that choose samples and shape stacks apply to recordings only.

Exit codes: 0 all conditions hold, 1 one does not (or the work failed), 2 wrong
command line, 3 there is too little evidence to decide.";

const USAGE: &str = "etwprof diff [OPTIONS] BEFORE AFTER
       etwprof diff [OPTIONS] --before FILE... --after FILE...";

/// Two recordings beside each other.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = USAGE,
    mut_arg("metric", of_time),
    mut_arg("event", hidden),
    mut_arg("by_type", hidden)
)]
pub(crate) struct Diff {
    /// The two recordings, or call trees saved by `convert -f json`
    #[arg(value_names = ["BEFORE", "AFTER"], num_args = 2, required_unless_present_all = ["before", "after"])]
    pub(crate) files: Vec<PathBuf>,

    /// Also draw a differential flame graph: red grew, blue shrank
    #[cfg(feature = "flamegraph")]
    #[arg(short = 'o', long = "output", value_name = "SVG", help_heading = "Output")]
    pub(crate) graph: Option<PathBuf>,

    /// Another run of the first side (repeatable); what runs of one side differ by is noise
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) before: Vec<PathBuf>,

    /// Another run of the second side (repeatable)
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) after: Vec<PathBuf>,

    /// What makes both sides comparable: runs, samples, time, or a function
    ///
    /// runs: every run did the same work, and CPU time is compared as it is. samples: shares of all samples. time: CPU
    /// time per second of the recording. A function: CPU time for each sample with that function in its stack.
    #[arg(long, value_name = "WHAT", default_value = "runs", value_parser = scale, help_heading = "Comparison")]
    pub(crate) scale: Scale,

    /// Fail if these functions together grew by this much, as 'Orders.*: +5%' (repeatable)
    ///
    /// The samples with one of them in their stack are compared. 'total: +2%' is for all samples, 'app!Parse: +1pp' for a
    /// growth by one percent of all samples. It must be more than chance explains; if there are too few samples to decide,
    /// the exit code is 3.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse, help_heading = "Comparison")]
    pub(crate) fail_if: Vec<Condition>,

    /// What a row is
    #[arg(long, value_name = "WHAT", default_value = "function", help_heading = "Table")]
    pub(crate) by: DiffBy,

    /// Judge a row by the samples in it, by those in it and in what it called, or as PerfView's overweight report
    #[arg(long, value_name = "COUNT", default_value = "exclusive", help_heading = "Table")]
    pub(crate) sort: DiffSort,

    /// Also show where in the call tree the change lies; -n limits its branches, too
    #[arg(long, help_heading = "Table")]
    pub(crate) tree: bool,

    /// Also show changes that chance explains, marked with ~
    #[arg(long, help_heading = "Table")]
    pub(crate) noise: bool,

    /// Show this many rows; 0 shows all
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 30, value_parser = number::<usize>, help_heading = "Table")]
    pub(crate) rows: usize,

    /// How to print the table
    #[arg(short, long, value_name = "FORMAT", default_value = "text", help_heading = "Table")]
    pub(crate) format: DiffFormat,

    /// Print JSON: -f json
    #[arg(long, conflicts_with = "format", help_heading = "Table")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) metric: super::measure::Measure,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// What a row of the table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffBy {
    Function,
    Module,
    Category,
}

impl DiffBy {
    pub(crate) fn by(self) -> By {
        match self {
            DiffBy::Function => By::Function,
            DiffBy::Module => By::Module,
            DiffBy::Category => By::Category,
        }
    }
}

/// What rows are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffSort {
    Exclusive,
    Inclusive,
    Overweight,
}

impl DiffSort {
    pub(crate) fn measure(self) -> Measure {
        match self {
            DiffSort::Exclusive => Measure::Exclusive,
            DiffSort::Inclusive => Measure::Inclusive,
            DiffSort::Overweight => Measure::Overweight,
        }
    }
}

/// How a table of changes is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    Text,
    Json,
    Csv,
    /// For the summary of a build
    Markdown,
}

/// `--metric` without what is no time, which is refused with the reason.
fn of_time(metric: Arg) -> Arg {
    const HELP: &str = "Compare this: cpu, blocked, ready or wall time";
    const NEEDS: &str = "Blocked, ready and wall need recordings with context switches (`wpr -start CPU` has them, as have \
                         PerfView's Thread Time and `xperf -on CSWITCH+DISPATCHER`).";
    metric.help(HELP).long_help(format!("{HELP}\n\n{NEEDS}")).hide_possible_values(true)
}

fn hidden(arg: Arg) -> Arg {
    arg.hide(true)
}

fn scale(text: &str) -> Result<Scale, String> {
    Ok(match text {
        "runs" => Scale::Runs,
        "samples" => Scale::Samples,
        "time" => Scale::Time,
        function => Scale::Function(Matcher::parse(function).map_err(|error| error.to_string())?),
    })
}
