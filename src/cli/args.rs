//! Command-line arguments, from which help, completions and the man page are made.

mod counters;
mod diff;
mod disk;
mod filter;
mod findings;
#[cfg(feature = "mcp")]
mod mcp;
mod measure;
mod rights;
mod runtimes;
mod shaping;
mod shared;
mod stop;
mod tables;
mod trim;
mod view;
mod waits;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Args as ClapArgs, Parser, Subcommand};
use etwprof::profile::Matcher;

use super::time;
pub(crate) use counters::Counters;
pub(crate) use diff::{Diff, DiffFormat, DiffSort};
pub(crate) use disk::{Disk, Interrupts, Period};
pub(crate) use filter::{Category, During, Filter, Processes, Samples};
pub(crate) use findings::Findings;
#[cfg(feature = "mcp")]
pub(crate) use mcp::Mcp;
pub(crate) use measure::{Measure, MetricWord};
pub(crate) use rights::{Grant, Permissions, Revoke};
pub(crate) use runtimes::{Gc, Jit, Runtimes};
pub(crate) use shaping::{GroupBy, Shaping};
pub(crate) use shared::{Color, Limits, Names, Output, Reading, Symbols, Tree};
#[cfg(windows)]
pub(crate) use stop::CounterLimit;
pub(crate) use stop::StopWhen;
pub(crate) use tables::{Callees, Callers, Calls, Lines, Table, Top};
pub(crate) use trim::{Provider, Trim};
pub(crate) use view::View;
pub(crate) use waits::{Threads, Timeline, TimelineBy, Which, WorstWaits};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default())
    .error(ERROR);

const EXAMPLES: &str = "\
Examples:
  etwprof trace.etl                       show the call tree of a recording
  etwprof trace.etl -o flame.svg          draw its flame graph
  etwprof view trace.etl                  look at it in the browser
  etwprof top trace.etl                   list its hottest functions
  etwprof diff before.etl after.etl       show what changed from one to the other
  etwprof info trace.etl                  show what is in it, and what was lost
  etwprof --pid 1234 --duration 10s       profile a running process (Windows)
  etwprof -- app.exe args                 run a program and profile it (Windows)

Times: 10 (seconds), 1.5s, 200ms, 1m30s, 2h.
Exit codes: 0 success, 1 failure, 2 wrong command line, 3 (diff) too little evidence.";

/// Show where the CPU time goes: a sampling profiler for Windows and .NET, built on ETW
///
/// Profiles live on Windows, and opens .etl recordings on any system.
#[derive(Debug, Parser)]
#[command(
    name = "etwprof",
    // On Windows too, without .exe.
    bin_name = "etwprof",
    version,
    styles = STYLES,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) live: Live,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = "Output")]
    pub(crate) color: Color,

    /// Print only errors, and warnings about lost or damaged data
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn a recording into a call tree, a flame graph, a report page, or a file for another viewer
    Convert(Box<Convert>),
    /// Look at a recording in the browser
    View(Box<View>),
    /// List the functions, modules, threads, ... with the most samples
    Top(Box<Top>),
    /// List what called a function, by samples
    Callers(Box<Callers>),
    /// List what a function called, by samples
    Callees(Box<Callees>),
    /// Show the source lines of a function, with their samples
    Lines(Box<Lines>),
    /// List threads by the time that they ran, were ready, and were blocked
    Threads(Box<Threads>),
    /// Show the longest waits: where threads slept, who made them ready, and what the waking thread had been waiting for
    Waits(Box<WorstWaits>),
    /// Show what threads did over time: ran, were ready, were blocked, paused for a collection
    Timeline(Box<Timeline>),
    /// Show disk I/O and hard faults by file, process, thread or disk: how often, how much, how long
    Disk(Box<Disk>),
    /// Show which drivers interrupted the processors, how often and for how long: ISRs and DPCs
    Interrupts(Box<Interrupts>),
    /// Show what changed between two recordings; fail if functions got slower
    Diff(Box<Diff>),
    /// Show what stands out in a recording, with evidence and advice
    Findings(Box<Findings>),
    /// Show the garbage collections of .NET programs: how many, why, and how long threads waited
    Gc(Gc),
    /// Show the methods that .NET compiled at run time, and how long that took
    Jit(Jit),
    /// Show what is in a recording: machine, processes, samples, modules, losses
    Info(Info),
    /// Count the events of a recording by provider, event and version
    Events(Events),
    /// Record to an .etl file, without a profile (Windows)
    #[command(after_help = RECORD_EXAMPLES)]
    Record(Box<Live>),
    /// Write a smaller recording: some processes, a time, or several parts as one file
    Trim(Trim),
    /// Show performance counters: those of a saved file
    Counters(Box<Counters>),
    /// Show where each module's symbols come from, or why there are none
    Symbols(SymbolsCommand),
    /// Name addresses of an image: function, inlined calls, file and line
    Symbolize(Symbolize),
    /// Answer an assistant's questions about recordings, over stdin and stdout (Model Context Protocol)
    #[cfg(feature = "mcp")]
    Mcp(Mcp),
    /// List the trace sessions on this machine, and stop those that a crash left behind (Windows)
    Sessions(Sessions),
    /// Let an account profile without administrator rights; run once, as administrator (Windows)
    Grant(Grant),
    /// Revoke what `grant` granted, and leave everything else as it was (Windows)
    Revoke(Revoke),
    /// Show which rights an account has and what each missing one disables (Windows)
    Permissions(Permissions),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  etwprof completions bash > /etc/bash_completion.d/etwprof")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of etwprof, or of one of its commands
    #[command(after_help = "Examples:\n  etwprof man > etwprof.1\n  etwprof man convert > etwprof-convert.1")]
    Man {
        /// The command
        command: Option<String>,
    },
}

const RECORD_EXAMPLES: &str = "\
Examples:
  etwprof record --pid 4711 -o trace.etl --duration 10s
  etwprof record -o trace.etl --waits -- app.exe --input big.xml
  etwprof record --all -o trace.etl
  etwprof record --name web.exe -o trace.etl --ring 500M --stop-when gc:200ms
  etwprof convert trace.etl                 on this or any other system

Targets and options are those of live profiling; options of tables and pictures
have no effect. Without --whole-system the file has the events of the targets and
what a profile of them needs.";

/// Profiling live.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Live profiling (Windows)")]
pub(crate) struct Live {
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

    /// Also record when threads waited, and show their times and longest waits after the profile
    ///
    /// Records the context switches of all processes: 10 to 50 times the events, with as much more memory and a slower
    /// machine. --metric blocked, ready or wall implies it.
    #[arg(long)]
    pub(crate) waits: bool,

    /// Also record these counters, beside the samples and on their clock: System.Runtime, Memory, 'Processor(_Total)\*'
    ///
    /// A name is that of an object of Windows' performance counters, or of a provider of .NET counters (EventCounters), which
    /// are read of each target. A backslash and a counter choose one of them: 'System.Runtime\gc-heap-size'.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) counters: Vec<String>,

    /// Time between two values of a counter
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time::parse)]
    pub(crate) counters_every: Duration,

    /// Also write the recording to this file, as it goes: an .etl that etwprof opens on any system
    ///
    /// It has the events of the targets and what a profile of them needs, in the end; until then FILE.part has the events
    /// of all processes, and opens too if the recording is cut short.
    #[arg(long, value_name = "FILE")]
    pub(crate) record_to: Option<PathBuf>,

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

    /// Run this program and profile it
    ///
    /// Without -o the result goes to stdout, and what the program prints to stdout goes to stderr.
    #[arg(last = true, value_name = "COMMAND", help_heading = "Arguments", conflicts_with_all = ["all", "pid", "name"])]
    pub(crate) run: Vec<OsString>,
}

fn frequency(text: &str) -> Result<u32, String> {
    let range = 1..=8000;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
}

const SESSIONS_EXAMPLES: &str = "\
Examples:
  etwprof sessions                                     list sessions
  etwprof sessions --stop etwprof-4210-1dc5-10000-clr  stop a leftover";

/// The trace sessions that run on this machine.
#[derive(Debug, ClapArgs)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(crate) struct Sessions {
    /// Stop the session with this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) stop: Vec<String>,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  etwprof convert trace.etl                            the call tree
  etwprof convert trace.etl --name orders -o a.svg     flame graph of one program
  etwprof convert trace.etl --pid 42 --from 2 --to 5s  one process, three seconds
  etwprof convert trace.etl --function 'Order*.Save'   only stacks with such a function
  etwprof convert trace.etl -f folded | grep ntdll     stacks for other tools
  etwprof convert x.etl x.kernel.etl x.clrRundown.etl  parts of one recording
  etwprof convert PerfViewData.etl.zip                 archives open directly";

#[derive(Debug, ClapArgs)]
#[command(after_help = CONVERT_EXAMPLES)]
pub(crate) struct Convert {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) tree: Tree,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

const INFO_EXAMPLES: &str = "\
Examples:
  etwprof info trace.etl
  etwprof info trace.etl --json | jq .samples

This command never contacts a symbol server; `etwprof symbols --fetch` does.";

#[derive(Debug, ClapArgs)]
#[command(after_help = INFO_EXAMPLES)]
pub(crate) struct Info {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

const EVENTS_EXAMPLES: &str = "\
Examples:
  etwprof events trace.etl
  etwprof events trace.etl --json | jq 'map(.count) | add'";

#[derive(Debug, ClapArgs)]
#[command(after_help = EVENTS_EXAMPLES)]
pub(crate) struct Events {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Exit with 1 if the data is damaged or lost; the result is printed all the same
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

const SYMBOLS_EXAMPLES: &str = "\
Examples:
  etwprof symbols trace.etl               what is here, and what is missing
  etwprof symbols trace.etl --places      every place that was tried
  etwprof symbols trace.etl --fetch       fill the cache from the symbol servers
  etwprof symbols trace.etl --fetch --symbols srv*/cache*https://example.com

This command contacts symbol servers only with --fetch.";

#[derive(Debug, ClapArgs)]
#[command(after_help = SYMBOLS_EXAMPLES)]
pub(crate) struct SymbolsCommand {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Download missing symbols from the symbol servers
    #[arg(long, conflicts_with_all = ["offline", "no_symbols"])]
    pub(crate) fetch: bool,

    /// List every place that was tried, with the result
    #[arg(long)]
    pub(crate) places: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

const SYMBOLIZE_EXAMPLES: &str = "\
Examples:
  etwprof symbolize app.exe 0x1a2b 0x3c4d        names from the PDB of app.exe
  etwprof symbolize Orders.Core.dll 5e1f0        precompiled .NET code
  etwprof symbolize app.exe - --json < rvas.txt  many addresses, for scripts";

#[derive(Debug, ClapArgs)]
#[command(after_help = SYMBOLIZE_EXAMPLES)]
pub(crate) struct Symbolize {
    /// An image (.exe, .dll, .sys, ...), or a PDB without its image
    pub(crate) image: PathBuf,

    /// Addresses as hexadecimal offsets from the load address, with or without 0x; `-` reads them from stdin
    #[arg(value_name = "RVA", required = true)]
    pub(crate) rvas: Vec<String>,

    /// The PDB of the image [default: search beside the image, at the path in the image, then along --symbols]
    #[arg(long, value_name = "FILE")]
    pub(crate) pdb: Option<PathBuf>,

    /// Show names exactly as the symbols have them, those of .NET methods as the runtime spells them
    #[arg(long)]
    pub(crate) raw_names: bool,

    /// Print one JSON array, in the order of the addresses
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) symbols: Symbols,
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::{CommandFactory, Parser};

    #[test]
    fn definitions_are_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_two_dashes_belongs_to_the_command() {
        let args = Args::parse_from(["etwprof", "--duration", "2s", "--", "app.exe", "--pid", "7"]);
        assert_eq!(args.live.run, ["app.exe", "--pid", "7"]);
        assert!(args.live.pid.is_empty());
    }

    #[test]
    fn every_command_that_names_functions_takes_the_same_symbol_options() {
        let flags = ["--symbols", "x", "--images", ".", "--no-symbols", "--offline", "--retry-failed"];
        for line in [
            &["convert", "x.etl"][..],
            &["view", "x.etl"],
            &["top", "x.etl"],
            &["callers", "x.etl", "f"],
            &["callees", "x.etl", "f"],
            &["lines", "x.etl", "f"],
            &["info", "x.etl"],
            &["symbols", "x.etl"],
            &["symbolize", "x.exe", "1"],
            &["--all"],
        ] {
            Args::try_parse_from([&["etwprof"], line, &flags].concat()).unwrap();
        }
    }

    #[test]
    fn every_time_is_read_alike() {
        for time in ["10", "1.5s", "200ms", "1m30s", "2h"] {
            for line in [&["--all", "--duration"][..], &["--all", "--delay"]] {
                Args::try_parse_from([&["etwprof"], line, &[time]].concat()).unwrap();
            }
            for flag in ["--from", "--to"] {
                Args::try_parse_from(["etwprof", "convert", "x.etl", flag, time]).unwrap();
            }
        }
    }
}
