//! Command-line arguments, from which help, completions and the man page are made.

mod counters;
mod diff;
mod disk;
mod filter;
mod findings;
mod live;
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

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Args as ClapArgs, Parser, Subcommand};

pub(crate) use counters::Counters;
pub(crate) use diff::{Diff, DiffFormat, DiffSort};
pub(crate) use disk::{Disk, Interrupts, Period};
pub(crate) use filter::{Category, During, Filter, Processes, Samples};
pub(crate) use findings::Findings;
pub(crate) use live::{Live, Record};
#[cfg(windows)]
pub(crate) use live::{RecordedFile, Recording};
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
    Record(Box<Record>),
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
        assert_eq!(args.live.recording.run, ["app.exe", "--pid", "7"]);
        assert!(args.live.recording.pid.is_empty());
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
