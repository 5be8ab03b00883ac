//! The arguments of `counters`.

use clap::Args;

const EXAMPLES: &str = r"Examples:
  etwprof counters day.counters                           what is in a file
  etwprof counters a.counters b.counters 'Memory\*'       values between two
  etwprof counters day.counters 'Process(*)\Working Set'  one of each process

A counter is Object\Counter or Object(Instance)\Counter, as perfmon spells it; *
stands for any instance or part of its name, and for all counters. Numbers may
stand for names: '238(_Total)\6'.";

/// Counters, and where they come from.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Counters {
    /// Files of saved counters, and the counters to show; without a counter, the list of what is there
    ///
    /// Rates need two samples: two files, or one file with several. Samples are put in order of time.
    #[arg(value_name = "FILE|COUNTER", required = true)]
    pub(crate) what: Vec<String>,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
