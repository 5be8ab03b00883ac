//! The arguments of live profiling and of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use etwprof::profile::Matcher;

use super::{Limits, Measure, Names, Output, Samples, Shaping, StopWhen, Symbols, Tree, shared};
use crate::cli::time;

/// What is recorded, and for how long.
#[derive(Debug, ClapArgs)]
pub(crate) struct Recording {
    /// Profile the process with this id (repeatable)
    #[arg(long, value_name = "N", value_parser = shared::number::<u32>, conflicts_with = "all")]
    pub(crate) pid: Vec<u32>,

    /// Profile the processes of this executable, including those that start later
    #[arg(long, value_name = "EXE", value_parser = Matcher::parse, conflicts_with_all = ["all", "pid"])]
    pub(crate) name: Option<Matcher>,

    /// Profile all processes
    #[arg(long)]
    pub(crate) all: bool,

    /// Also profile the processes that the targets start
    #[arg(long)]
    pub(crate) children: bool,

    /// Stop after this time: 10, 1.5s, 200ms, 1m30s
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub(crate) duration: Option<Duration>,

    /// Start after this time
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub(crate) delay: Option<Duration>,

    /// Samples per second on each processor
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = frequency)]
    pub(crate) frequency: u32,

    /// Also record these counters, beside the samples and on their clock: System.Runtime, Memory, 'Processor(_Total)\*'
    ///
    /// A name is that of an object of Windows' performance counters, or of a provider of .NET counters (EventCounters), which
    /// are read of each target. A backslash and a counter choose one of them: 'System.Runtime\gc-heap-size'.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) counters: Vec<String>,

    /// Time between two values of a counter
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time::parse)]
    pub(crate) counters_every: Duration,

    /// Stop when this happens: cpu:80%, gc:200ms, file:PATH, exit:NAME, counter:NAME>VALUE (repeatable)
    ///
    /// cpu: the targets use that much of all processors for a second. gc: threads of a target stand still that long for a
    /// collection. file: the file is there. exit: a process of this name or id ends, be it a target or not. counter: a
    /// counter, named as in --counters, is above (or, with <, below) a value.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) stop_when: Vec<StopWhen>,

    /// Exit with the exit code of the program
    #[arg(long, requires = "run")]
    pub(crate) forward_exit_code: bool,

    /// Run this program and profile it
    ///
    /// Without -o the result goes to stdout, and what the program prints to stdout goes to stderr.
    #[arg(last = true, value_name = "COMMAND", help_heading = "Arguments", conflicts_with_all = ["all", "pid", "name"])]
    pub(crate) run: Vec<OsString>,
}

/// How a recording is kept in a file.
#[derive(Debug, ClapArgs)]
pub(crate) struct RecordedFile {
    /// Keep the events of all processes in the recorded file
    #[arg(long)]
    pub(crate) whole_system: bool,

    /// Compress the recorded file
    #[arg(long)]
    pub(crate) compress: bool,

    /// Keep only the newest of the recorded file, about this much: 500M, 2G
    ///
    /// What later events are about is kept however old it is: processes, modules, compiled code. To record until something
    /// happens, add --stop-when.
    #[arg(long, value_name = "SIZE", value_parser = shared::size)]
    pub(crate) ring: Option<u64>,
}

/// Profiling live.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Live profiling (Windows)")]
pub(crate) struct Live {
    #[command(flatten)]
    pub(crate) recording: Recording,

    /// Also record when threads waited, and show their times and longest waits after the profile
    ///
    /// Records the context switches of all processes: 10 to 50 times the events, with as much more memory and a slower
    /// machine. --metric blocked, ready or wall implies it.
    #[arg(long)]
    pub(crate) waits: bool,

    /// Also write the recording to this file, as it goes: an .etl that etwprof opens on any system
    ///
    /// It has the events of the targets and what a profile of them needs, in the end; until then FILE.part has the events
    /// of all processes, and opens too if the recording is cut short.
    #[arg(long, value_name = "FILE")]
    pub(crate) record_to: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: RecordedFile,

    /// Write every call, time and count of the recording to this file, for a bug report
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnose: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) samples: Samples,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) tree: Tree,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) names: Names,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

const RECORD_EXAMPLES: &str = "\
Examples:
  etwprof record --pid 4711 -o trace.etl --duration 10s
  etwprof record -o trace.etl --waits -- app.exe --input big.xml
  etwprof record --all -o trace.etl
  etwprof record --name web.exe -o trace.etl --ring 500M --stop-when gc:200ms
  etwprof convert trace.etl                 on this or any other system

Without --whole-system the file has the events of the targets and what a profile of
them needs; until the end FILE.part has those of all processes, and opens too.";

/// Recording to a file.
#[derive(Debug, ClapArgs)]
#[command(after_help = RECORD_EXAMPLES)]
pub(crate) struct Record {
    /// Write the recording to this file: an .etl that etwprof opens on any system
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) recording: Recording,

    /// Also record when threads waited
    ///
    /// Records the context switches of all processes: 10 to 50 times the events, and a slower machine.
    #[arg(long)]
    pub(crate) waits: bool,

    #[command(flatten)]
    pub(crate) file: RecordedFile,
}

fn frequency(text: &str) -> Result<u32, String> {
    let range = 1..=8000;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
}
