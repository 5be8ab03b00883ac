//! The arguments of `gc` and `jit`.

use std::path::PathBuf;

use clap::Args;

use super::filter::Processes;
use super::shared::number;

const GC_EXAMPLES: &str = "\
Examples:
  etwprof gc trace.etl                all runtimes, and their longest collections
  etwprof gc trace.etl --name orders  one program
  etwprof gc trace.etl --json | jq '.runtimes[] | {process, gcs, pause_ns}'

A pause lasts from the moment when the runtime begins to stop the program's
threads until they run again. CPU is what all threads of the process used in
pauses, by samples.";

/// The collections of a recording.
#[derive(Debug, Args)]
#[command(after_help = GC_EXAMPLES)]
pub(crate) struct Gc {
    #[command(flatten)]
    pub(crate) asked: Runtimes,
}

const JIT_EXAMPLES: &str = "\
Examples:
  etwprof jit trace.etl                     all runtimes, and their slowest methods
  etwprof jit trace.etl --name orders -n 0  every method of one program
  etwprof jit trace.etl --json | jq '.runtimes[] | {process, methods, jit_ns}'

The time of a method includes the methods that were compiled while it was being
compiled, and its thread may have waited; the time of a process counts each
moment once for each thread.";

/// The compilations of a recording.
#[derive(Debug, Args)]
#[command(after_help = JIT_EXAMPLES)]
pub(crate) struct Jit {
    #[command(flatten)]
    pub(crate) asked: Runtimes,
}

/// What both take.
#[derive(Debug, Args)]
pub(crate) struct Runtimes {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Show this many rows of each runtime, those that took longest; 0 shows all [default: 10, and all in JSON and CSV]
    #[arg(short = 'n', long, value_name = "N", value_parser = number::<usize>, help_heading = "Table")]
    pub(crate) rows: Option<usize>,

    /// Print CSV
    #[arg(long, conflicts_with = "json", help_heading = "Table")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long, help_heading = "Table")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) processes: Processes,

    /// Exit with 1 if the data is damaged or lost; the result is printed all the same
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}
