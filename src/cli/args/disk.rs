//! The arguments of `disk` and `interrupts`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use etwprof::profile::Moment;
use etwprof::report::{disk, interrupts};

use super::filter::{Processes, processors};
use super::shared::{Limits, Names, Symbols, number};
use super::tables::Table;
use crate::cli::time;

const DISK_EXAMPLES: &str = "\
Examples:
  etwprof disk trace.etl                         which files were read and written
  etwprof disk trace.etl --by process            by whom
  etwprof disk trace.etl --name orders --sort faults
  etwprof disk trace.etl --json -n 0 | jq '.rows[] | {name, read_bytes}'

The time of an I/O runs from the request to its end, and I/Os overlap. Disk time
is the part in which the disk had nothing older to do. A hard fault is a page
that a thread touched and had to wait for; most have a read of their own, which
counts as a read too.

The recording needs disk I/O: `wpr -start DiskIO` has it, as has PerfView. File
names come with the rundown at its end.";

/// Disk I/O and hard faults.
#[derive(Debug, Args)]
#[command(after_help = DISK_EXAMPLES)]
pub(crate) struct Disk {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What a row is
    #[arg(long, value_name = "WHAT", default_value = "file", help_heading = "Table")]
    pub(crate) by: DiskBy,

    /// Sort by this, the greatest first
    #[arg(long, value_name = "WHAT", default_value = "io", help_heading = "Table")]
    pub(crate) sort: DiskSort,

    #[command(flatten)]
    pub(crate) table: Table,

    #[command(flatten)]
    pub(crate) processes: Processes,

    /// Keep the thread with this id (repeatable)
    #[arg(long, value_name = "N", value_parser = number::<u32>, help_heading = "Filters")]
    pub(crate) tid: Vec<u32>,

    #[command(flatten)]
    pub(crate) period: Period,

    /// Exit with 1 if the data is damaged or lost; the result is printed all the same
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskBy {
    File,
    Process,
    Thread,
    Disk,
    /// Reads, writes, flushes, hard faults
    Kind,
}

impl DiskBy {
    pub(crate) fn by(self) -> disk::By {
        match self {
            DiskBy::File => disk::By::File,
            DiskBy::Process => disk::By::Process,
            DiskBy::Thread => disk::By::Thread,
            DiskBy::Disk => disk::By::Disk,
            DiskBy::Kind => disk::By::Kind,
        }
    }
}

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskSort {
    /// The time of the I/Os, from the request to the end of each
    Io,
    /// The time in which the disk worked on them
    Disk,
    /// Bytes read and written
    Bytes,
    /// The number of I/Os
    Count,
    /// The longest I/O
    Longest,
    /// The time of the hard faults
    Faults,
}

impl DiskSort {
    pub(crate) fn sort(self) -> disk::Sort {
        match self {
            DiskSort::Io => disk::Sort::Io,
            DiskSort::Disk => disk::Sort::Disk,
            DiskSort::Bytes => disk::Sort::Bytes,
            DiskSort::Count => disk::Sort::Count,
            DiskSort::Longest => disk::Sort::Longest,
            DiskSort::Faults => disk::Sort::Faults,
        }
    }
}

const INTERRUPTS_EXAMPLES: &str = "\
Examples:
  etwprof interrupts trace.etl                  the driver routines that took longest
  etwprof interrupts trace.etl --by module      the drivers
  etwprof interrupts trace.etl --sort longest   what delays others most
  etwprof interrupts trace.etl --by processor --from 2 --to 3

The total time runs from the start of each interrupt or DPC to its end; nested
time is the part in which another one ran on top of it. The share of a CPU leaves
nested time out, so shares add up. Threaded DPCs may be pre-empted: their time is
an upper bound.

The recording needs the DPC and INTERRUPT events of the kernel: `xperf -on Latency`
records them.";

/// DPCs and interrupts.
#[derive(Debug, Args)]
#[command(after_help = INTERRUPTS_EXAMPLES)]
pub(crate) struct Interrupts {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What a row is
    #[arg(long, value_name = "WHAT", default_value = "routine", help_heading = "Table")]
    pub(crate) by: InterruptsBy,

    /// Sort by this, the greatest first
    #[arg(long, value_name = "WHAT", default_value = "time", help_heading = "Table")]
    pub(crate) sort: InterruptsSort,

    #[command(flatten)]
    pub(crate) table: Table,

    /// Keep what ran on these processors (repeatable): 0, 0-3,7
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        value_parser = processors,
        help_heading = "Filters"
    )]
    pub(crate) cpu: Vec<RangeInclusive<u16>>,

    #[command(flatten)]
    pub(crate) period: Period,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) names: Names,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterruptsBy {
    /// Routine of a driver
    Routine,
    /// Driver
    Module,
    Processor,
    /// ISRs, DPCs, timer DPCs, ...
    Kind,
}

impl InterruptsBy {
    pub(crate) fn by(self) -> interrupts::By {
        match self {
            InterruptsBy::Routine => interrupts::By::Routine,
            InterruptsBy::Module => interrupts::By::Module,
            InterruptsBy::Processor => interrupts::By::Processor,
            InterruptsBy::Kind => interrupts::By::Kind,
        }
    }
}

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterruptsSort {
    /// The time that they ran, without nested ones
    Time,
    /// How many there were
    Count,
    /// The longest, from its begin to its end
    Longest,
}

impl InterruptsSort {
    pub(crate) fn sort(self) -> interrupts::Sort {
        match self {
            InterruptsSort::Time => interrupts::Sort::Time,
            InterruptsSort::Count => interrupts::Sort::Count,
            InterruptsSort::Longest => interrupts::Sort::Longest,
        }
    }
}

/// Which part of a recording.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Period {
    /// Keep what ended at this time or later: 10, 1.5s, 200ms, 1m30s from the start, or a time of day, 09:00:14.5
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) from: Option<Moment>,

    /// Keep what ended before this time
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) to: Option<Moment>,
}
