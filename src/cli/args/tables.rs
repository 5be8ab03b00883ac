//! The arguments of `top`, `callers`, `callees` and `lines`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use etwprof::profile::Matcher;
use etwprof::report::table::{By, Sort};

use super::measure::Measure;
use super::shaping::Shaping;
use super::shared::{Reading, number};

const TOP_EXAMPLES: &str = "\
Examples:
  etwprof top trace.etl                            the hottest functions
  etwprof top trace.etl --sort inclusive -n 50     with what they called
  etwprof top trace.etl --by module --name orders  the modules of one program
  etwprof top trace.etl --by thread                the busiest threads
  etwprof top trace.etl --json -n 0 | jq .rows     all functions, for scripts";

/// Functions, modules, ... by their samples.
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub(crate) struct Top {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What a row is
    #[arg(long, value_name = "WHAT", default_value = "function", help_heading = "Table")]
    pub(crate) by: ByWord,

    /// Sort by the samples in the row itself, or by those in it and in what it called
    #[arg(long, value_name = "COUNT", default_value = "exclusive", help_heading = "Table")]
    pub(crate) sort: SortWord,

    #[command(flatten)]
    pub(crate) table: Table,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// What a row of a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByWord {
    Function,
    Module,
    Process,
    Thread,
    Category,
    /// Source line
    Line,
}

impl ByWord {
    pub(crate) fn by(self) -> By {
        match self {
            ByWord::Function => By::Function,
            ByWord::Module => By::Module,
            ByWord::Process => By::Process,
            ByWord::Thread => By::Thread,
            ByWord::Category => By::Category,
            ByWord::Line => By::Line,
        }
    }
}

/// What a table is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortWord {
    Exclusive,
    Inclusive,
}

impl SortWord {
    pub(crate) fn sort(self) -> Sort {
        match self {
            SortWord::Exclusive => Sort::Exclusive,
            SortWord::Inclusive => Sort::Inclusive,
        }
    }
}

/// How a table is printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct Table {
    /// Show this many rows; 0 shows all
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 30, value_parser = number::<usize>)]
    pub(crate) rows: usize,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CALLERS_EXAMPLES: &str = "\
Examples:
  etwprof callers trace.etl 'ntdll!NtWriteFile'  who writes files
  etwprof callers trace.etl memcpy               in whatever module
  etwprof callers trace.etl '*::push_back*'      several, counted together
  etwprof callers trace.etl '/^clr!.*Alloc/'     by a regular expression
  etwprof callers a.etl a.kernel.etl memcpy      a recording in parts

A sample counts once in each row, however often its stack has the call. The
caller of a first frame is the process, thread or remark above it.";

const CALLEES_EXAMPLES: &str = "\
Examples:
  etwprof callees trace.etl 'orders!Submit'    what it spends its time on
  etwprof callees trace.etl '*.Dispose' --csv  several, counted together
  etwprof callees a.etl a.kernel.etl Submit    a recording in parts

A sample counts once in each row, however often its stack has the call.";

/// What called a function.
#[derive(Debug, Args)]
#[command(after_help = CALLERS_EXAMPLES)]
pub(crate) struct Callers {
    #[command(flatten)]
    pub(crate) calls: Calls,
}

/// What a function called.
#[derive(Debug, Args)]
#[command(after_help = CALLEES_EXAMPLES)]
pub(crate) struct Callees {
    #[command(flatten)]
    pub(crate) calls: Calls,
}

/// What both take.
#[derive(Debug, Args)]
pub(crate) struct Calls {
    #[command(flatten)]
    pub(crate) asked: Asked,

    #[command(flatten)]
    pub(crate) table: Table,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// A recording and functions in it.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// A function, as the call tree shows it or without its module; `*` and `?` are wildcards, `/x/` is a regular
    /// expression
    #[arg(required = true, value_name = "NAME", value_parser = matcher)]
    pub(crate) wanted: Matcher,
}

fn matcher(text: &str) -> Result<Matcher, String> {
    Matcher::parse(text).map_err(|error| error.to_string())
}

const LINES_EXAMPLES: &str = "\
Examples:
  etwprof lines trace.etl 'orders!Book::match'     which lines are hot
  etwprof lines trace.etl Parse --source ~/orders  with the source beside them
  etwprof lines trace.etl Parse --symbols ~/pdbs --json

The source is read where the symbols say that it was compiled, or below --source.
Shares are of the samples with the function.";

/// A function by source line.
#[derive(Debug, Args)]
#[command(after_help = LINES_EXAMPLES)]
pub(crate) struct Lines {
    #[command(flatten)]
    pub(crate) asked: Asked,

    #[command(flatten)]
    pub(crate) table: Table,

    /// Look for source files in this folder and below, by the end of their paths (repeatable)
    #[arg(long, value_name = "DIR", help_heading = "Table")]
    pub(crate) source: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) reading: Reading,
}
