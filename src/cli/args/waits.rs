//! The arguments of `threads` and `waits`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use etwprof::profile::{Matcher, Moment};
use etwprof::report::thread_times::Sort;

use super::filter::Processes;
use super::shared::{Limits, Names, Symbols, number};
use super::tables::Table;
use crate::cli::time;

const THREADS_EXAMPLES: &str = "\
Examples:
  etwprof threads trace.etl                          who ran, who waited, for how long
  etwprof threads trace.etl --name orders --sort longest-wait
  etwprof threads trace.etl --json -n 0 | jq .threads

The recording needs context switches: `wpr -start CPU` has them, as has
PerfView's Thread Time. Running time includes interrupts that ran on the thread;
sampled time does not.";

/// The times of threads.
#[derive(Debug, Args)]
#[command(after_help = THREADS_EXAMPLES)]
pub(crate) struct Threads {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Sort by this, the greatest first
    #[arg(long, value_name = "WHAT", default_value = "running", help_heading = "Table")]
    pub(crate) sort: ThreadSort,

    #[command(flatten)]
    pub(crate) table: Table,

    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// What threads are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThreadSort {
    Running,
    Ready,
    Blocked,
    LongestWait,
    Switches,
    Wall,
}

impl ThreadSort {
    pub(crate) fn sort(self) -> Sort {
        match self {
            ThreadSort::Running => Sort::Running,
            ThreadSort::Ready => Sort::Ready,
            ThreadSort::Blocked => Sort::Blocked,
            ThreadSort::LongestWait => Sort::Longest,
            ThreadSort::Switches => Sort::Switches,
            ThreadSort::Wall => Sort::Wall,
        }
    }
}

/// Which threads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Which {
    #[command(flatten)]
    pub(crate) processes: Processes,

    /// Keep the thread with this id (repeatable)
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) tid: Vec<u32>,

    /// Keep the threads with this name (repeatable): 'Worker*'
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) thread: Vec<Matcher>,

    /// Look at the time from here on: 10, 1.5s, 200ms, 1m30s from the start, or a time of day, 09:00:14.5
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) from: Option<Moment>,

    /// Look at the time before this
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) to: Option<Moment>,
}

const TIMELINE_EXAMPLES: &str = "\
Examples:
  etwprof timeline trace.etl               the busiest threads
  etwprof timeline trace.etl --slot 10ms --from 2 --to 3s
  etwprof timeline trace.etl --by process  processes and their collections
  etwprof timeline trace.etl --json | jq '.rows[] | select(.kind == \"gc\")'

Rows: cpu (by samples, those of DPCs and interrupts on the thread included);
running, ready and blocked (by context switches, if the recording has them); gc
(threads of a .NET process paused for a collection). A full block is a whole
slot on one processor.";

/// What threads did over time.
#[derive(Debug, Args)]
#[command(after_help = TIMELINE_EXAMPLES)]
pub(crate) struct Timeline {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How long a slot is: 10ms, 1s [default: a 120th of the time, or as the terminal is wide]
    #[arg(long, value_name = "TIME", value_parser = time::parse, help_heading = "Table")]
    pub(crate) slot: Option<Duration>,

    /// What a row is of
    #[arg(long, value_name = "WHAT", default_value = "thread", help_heading = "Table")]
    pub(crate) by: TimelineBy,

    /// Show this many threads or processes; 0 shows all [default: 10, or all with --json and --csv]
    #[arg(short = 'n', long = "rows", value_name = "N", value_parser = number::<usize>, help_heading = "Table")]
    pub(crate) rows: Option<usize>,

    /// Print CSV
    #[arg(long, conflicts_with = "json", help_heading = "Table")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long, help_heading = "Table")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// What a row of a timeline is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimelineBy {
    Thread,
    Process,
}

const WAITS_EXAMPLES: &str = "\
Examples:
  etwprof waits trace.etl --name orders       its ten longest waits, and who ended them
  etwprof waits trace.etl --tid 4711 -n 3     those of one thread
  etwprof waits trace.etl --json | jq '.waits[] | {tid, duration_ns, reason}'

A wait ends when its thread runs again. Threads that sleep to the end of the
recording are not listed: `etwprof threads --sort blocked` shows them.";

/// The worst waits.
#[derive(Debug, Args)]
#[command(after_help = WAITS_EXAMPLES)]
pub(crate) struct WorstWaits {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Show at most this many waits; 0 shows all
    #[arg(
        short = 'n',
        long = "rows",
        value_name = "N",
        default_value_t = 10,
        value_parser = number::<usize>,
        help_heading = "Table"
    )]
    pub(crate) rows: usize,

    /// Print CSV
    #[arg(long, conflicts_with = "json", help_heading = "Table")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long, help_heading = "Table")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) names: Names,

    #[command(flatten)]
    pub(crate) limits: Limits,
}
