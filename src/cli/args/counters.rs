//! The arguments of `counters`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use etwprof::profile::Matcher;

use super::shared;
use crate::cli::time;

const EXAMPLES: &str = r"Examples:
  etwprof counters                                        .NET processes to read
  etwprof counters --pid 4711                             one of them, each second
  etwprof counters --name web --every 5s --csv            for a table elsewhere
  etwprof counters --pid 4711 'System.Runtime\gc-heap-size' --count 10
  etwprof counters day.counters                           what is in a file
  etwprof counters a.counters b.counters 'Memory\*'       values between two
  etwprof counters day.counters 'Process(*)\Working Set'  one of each process
  etwprof counters --diagnose                             why some are missing
  etwprof counters --diagnose services.reg perflib.reg    on another machine

A counter is Object\Counter or Object(Instance)\Counter, as perfmon spells it; *
stands for any instance or part of its name, and for all counters. Numbers may
stand for names: '238(_Total)\6'. Of a .NET process it is Provider\counter.";

/// Counters, and where they come from.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Counters {
    /// Files of saved counters, and the counters to show; without a counter, the list of what is there
    ///
    /// Rates need two samples: two files, or one file with several. Samples are put in order of time.
    #[arg(value_name = "FILE|COUNTER")]
    pub(crate) what: Vec<String>,

    /// Read the counters of this .NET process, as it runs
    ///
    /// Without a counter, those of System.Runtime: CPU, memory, collections, exceptions, contended locks, thread pool. On Windows,
    /// also of a .NET Framework process: '.NET CLR Memory\*' and the others.
    #[arg(long, value_name = "N", value_parser = shared::number::<u32>)]
    pub(crate) pid: Option<u32>,

    /// Read those of the .NET process with this name
    #[arg(long, value_name = "EXE", value_parser = Matcher::parse, conflicts_with = "pid")]
    pub(crate) name: Option<Matcher>,

    /// Time between two samples of a process: 1s, 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time::parse)]
    pub(crate) every: Duration,

    /// Stop after so many samples; without it, at Ctrl-C or at the end of the process
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<NonZeroU64>,

    /// Save the performance counters of this Windows, for `etwprof counters FILE` on any system
    ///
    /// Those of the objects that are named, or all; with --count several samples, so that there are rates.
    #[arg(long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,

    /// Say why performance counters are missing or wrong: all of them, or those of a service
    ///
    /// Checks the registry, the DLLs of all services and how they do when they are loaded, in a process apart. FILE: registry
    /// files of another machine (`reg export`). Changes nothing; cures are printed. Exit code 1 if something is wrong.
    #[arg(long, value_name = "SERVICE", num_args = 0..=1, conflicts_with_all = ["pid", "name", "count", "dump", "csv"])]
    pub(crate) diagnose: Option<Option<String>>,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
