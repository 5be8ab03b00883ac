//! What can be typed. Help, completions and the man page are made from it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default())
    .error(ERROR);

const EXAMPLES: &str = "\
Examples:
  etwprof convert trace.etl                   the call tree of a recording, on any system
  etwprof convert trace.etl -o flame.svg      its flame graph
  etwprof info trace.etl                      what is in it, and what was lost
  etwprof --pid 1234 --duration 10s           profile a running process (Windows)
  etwprof -- app.exe args                     run a program and profile it (Windows)

Exit codes: 0 done, 1 the work failed, 2 the command line is wrong.";

/// Where did the CPU time go? A sampling profiler for Windows and .NET, built on ETW.
///
/// Profiles live on Windows, and opens .etl recordings on any system.
#[derive(Debug, Parser)]
#[command(
    name = "etwprof",
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

    /// Say nothing but errors
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn a recording into a call tree, a flame graph or folded stacks
    Convert(Convert),
    /// Tell what is in a recording: machine, processes, samples, modules, losses
    Info(Info),
    /// Count the events of a recording by provider, event and version
    Events(Events),
    /// Tell for each module of a recording where its symbols are, or why there are none
    Symbols(SymbolsCommand),
    /// Name addresses of an image: function, inlined calls, file and line
    Symbolize(super::symbolize::Symbolize),
    /// List the sessions that record on this machine, and stop those that were left behind (Windows)
    Sessions(Sessions),
    /// Let an account profile without being administrator; done once, by an administrator (Windows)
    Grant(Grant),
    /// Take back what grant gave, and leave the rest as it was found (Windows)
    Revoke(Revoke),
    /// Tell what an account may do, and what it lacks for which feature (Windows)
    Permissions(Permissions),
    /// Print the completions of a shell
    #[command(after_help = "Example:\n  etwprof completions bash > /etc/bash_completion.d/etwprof")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of the program, or of one of its commands
    #[command(after_help = "Examples:\n  etwprof man > etwprof.1\n  etwprof man convert > etwprof-convert.1")]
    Man {
        /// The command
        command: Option<String>,
    },
}

/// Profiling live.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Live profiling (Windows)")]
pub(crate) struct Live {
    /// Profile the process with this id (repeatable)
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub(crate) pid: Vec<u32>,

    /// Profile the processes of this executable, also those that start later
    #[arg(long, value_name = "EXE", conflicts_with_all = ["all", "pid"])]
    pub(crate) name: Option<String>,

    /// Profile all processes
    #[arg(long)]
    pub(crate) all: bool,

    /// Profile what the targets start, too
    #[arg(long)]
    pub(crate) children: bool,

    /// Stop after this time, for instance 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Start after this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) delay: Option<Duration>,

    /// Samples per second and processor
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=8000))]
    pub(crate) frequency: u32,

    /// Exit with the exit code of the program
    #[arg(long, requires = "run")]
    pub(crate) forward_exit_code: bool,

    /// Write every call, time and count of the recording to this file, for a report of a fault
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnose: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) tree: Tree,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    /// Run this program and profile it; without -o its stdout goes to stderr, for stdout has the result
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["all", "pid", "name"])]
    pub(crate) run: Vec<OsString>,
}

const SESSIONS_EXAMPLES: &str = "\
Examples:
  etwprof sessions                                      what runs
  etwprof sessions --stop etwprof-4210-1dc5-10000-clr   stop what a crashed run left";

/// The trace sessions that run on this machine.
#[derive(Debug, ClapArgs)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(crate) struct Sessions {
    /// Stop the session of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) stop: Vec<String>,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  etwprof convert trace.etl                               all processes, on the console
  etwprof convert trace.etl --name orders -o flame.svg    one program, as a flame graph
  etwprof convert trace.etl --pid 4210 --from 2s --to 5s  one process, three seconds
  etwprof convert trace.etl -f folded | grep ntdll        stacks for other tools
  etwprof convert x.etl x.kernel.etl x.clrRundown.etl     parts of one recording
  etwprof convert PerfViewData.etl.zip                    archives open directly";

#[derive(Debug, ClapArgs)]
#[command(after_help = CONVERT_EXAMPLES)]
pub(crate) struct Convert {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) tree: Tree,
}

/// Where the result goes and in which form.
#[derive(Debug, ClapArgs)]
pub(crate) struct Output {
    /// Write to this file; its ending picks the format
    #[arg(short = 'o', long = "output", value_name = "OUT", help_heading = "Output")]
    pub(crate) path: Option<PathBuf>,

    /// The format, whatever the ending [default: tree]
    #[arg(short, long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<Format>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filter {
    /// Keep the process with this id (repeatable)
    #[arg(long, value_name = "N")]
    pub(crate) pid: Vec<u32>,

    /// Keep the processes of this executable, with or without .exe (repeatable)
    #[arg(long, value_name = "EXE")]
    pub(crate) name: Vec<String>,

    /// Keep the thread with this id (repeatable)
    #[arg(long, value_name = "N")]
    pub(crate) tid: Vec<u32>,

    /// Keep samples from this time on, since the recording's start, for instance 1.5s or 200ms
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) from: Option<f64>,

    /// Keep samples before this time
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) to: Option<f64>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Call tree")]
pub(crate) struct Tree {
    /// Show a node for each thread
    #[arg(long)]
    pub(crate) threads: bool,

    /// Hide nodes below this share of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub(crate) min_percent: f64,

    /// Hide nodes deeper than this many frames
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<usize>,

    /// Show every frame, also of a recording that asks for far more memory than its size; only if you trust it
    #[arg(long)]
    pub(crate) no_limit: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  etwprof info trace.etl\n  etwprof info trace.etl --json | jq .samples")]
pub(crate) struct Info {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Look here for symbols, before _NT_SYMBOL_PATH and in its syntax (repeatable); no server is asked
    #[arg(long, value_name = "PATH")]
    pub(crate) symbols: Vec<String>,

    /// Look here for images (.dll, .exe) and their PDBs, at any depth: a copied application or .NET runtime (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Vec<PathBuf>,

    /// Show every frame, also of a recording that asks for far more memory than its size; only if you trust it
    #[arg(long)]
    pub(crate) no_limit: bool,

    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  etwprof events trace.etl\n  etwprof events trace.etl --json | jq 'map(.count) | add'"
)]
pub(crate) struct Events {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where names come from.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct Symbols {
    /// Look here for symbols, before _NT_SYMBOL_PATH and in its syntax: a folder, srv*CACHE*URL, ... (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) symbols: Vec<String>,

    /// Look here for images (.dll, .exe) and their PDBs, at any depth: a copied application or .NET runtime (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Vec<PathBuf>,

    /// Name no functions
    #[arg(long)]
    pub(crate) no_symbols: bool,

    /// Ask no symbol server; caches and folders are still looked into
    #[arg(long)]
    pub(crate) offline: bool,

    /// Ask servers again for what they did not have lately
    #[arg(long)]
    pub(crate) retry_failed: bool,

    /// Leave modules without symbols that fewer samples hit
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) min_module_share: f64,

    /// Show inlined functions as part of their caller
    #[arg(long)]
    pub(crate) no_inline: bool,

    /// Show source files and lines
    #[arg(long)]
    pub(crate) lines: bool,

    /// Put the tier before .NET methods: [Tier0], [Tier1], [OSR], [R2R], [PreJIT] ...
    #[arg(long)]
    pub(crate) tiers: bool,

    /// Show the parameters of .NET methods, not only where overloads would read alike
    #[arg(long, conflicts_with = "raw_names")]
    pub(crate) parameters: bool,

    /// Name .NET methods as their runtime does, with signatures and generated types
    #[arg(long)]
    pub(crate) raw_names: bool,
}

impl Symbols {
    /// Symbols that are on this machine, and in these places.
    pub(crate) fn offline(places: &[String], images: &[PathBuf]) -> Symbols {
        Symbols {
            symbols: places.to_vec(),
            images: images.to_vec(),
            no_symbols: false,
            offline: true,
            retry_failed: false,
            min_module_share: 0.0,
            no_inline: false,
            lines: false,
            tiers: false,
            parameters: false,
            raw_names: false,
        }
    }
}

const SYMBOLS_EXAMPLES: &str = "\
Examples:
  etwprof symbols trace.etl                                what is here, and what is missing
  etwprof symbols trace.etl --places                       with every place that was asked
  etwprof symbols trace.etl --fetch                        fill the cache from the symbol servers
  etwprof symbols trace.etl --fetch --symbols srv*/mnt/cache*https://symbols.example.com";

#[derive(Debug, ClapArgs)]
#[command(after_help = SYMBOLS_EXAMPLES)]
pub(crate) struct SymbolsCommand {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Ask the symbol servers for what is missing
    #[arg(long)]
    pub(crate) fetch: bool,

    /// Look here for symbols, before _NT_SYMBOL_PATH and in its syntax (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) symbols: Vec<String>,

    /// Look here for images (.dll, .exe) and their PDBs, at any depth: a copied application or .NET runtime (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Vec<PathBuf>,

    /// Ask servers again for what they did not have lately
    #[arg(long)]
    pub(crate) retry_failed: bool,

    /// List every place that was asked, with its answer
    #[arg(long)]
    pub(crate) places: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Show every frame, also of a recording that asks for far more memory than its size; only if you trust it
    #[arg(long)]
    pub(crate) no_limit: bool,

    #[command(flatten)]
    pub(crate) filter: Filter,
}

const GRANT_EXAMPLES: &str = "\
Examples:
  etwprof grant DOMAIN\\jo --dry-run      every right with its reason; changes nothing
  etwprof grant DOMAIN\\jo                give them; jo logs off and on again, then profiles
  etwprof grant --me                      to the account that runs this, in an elevated console
  etwprof grant Developers                to a group
  etwprof grant S-1-5-21-1-2-3-1001       by SID; `etwprof permissions` prints yours
  etwprof grant CORP\\ann --via-group     through Performance Log Users, as far as that goes

Needs an administrator, once. docs/permissions.md says what each right lets an account see.";

#[derive(Debug, ClapArgs)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct Grant {
    /// A user or group (DOMAIN\user, user, group), or a SID
    #[arg(required_unless_present = "me", conflicts_with = "me")]
    pub(crate) account: Option<String>,

    /// The account that runs this command
    #[arg(long)]
    pub(crate) me: bool,

    /// Make it a member of Performance Log Users, for the sessions: simpler to see, and more than is needed
    #[arg(long)]
    pub(crate) via_group: bool,

    /// Explain what would be given, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  etwprof revoke CORP\\ann                what was granted to ann\n  etwprof revoke                         everything that was ever granted on this machine\n  etwprof revoke Developers --json"
)]
pub(crate) struct Revoke {
    /// Take back from this account only [default: from all]
    #[arg(conflicts_with = "me")]
    pub(crate) account: Option<String>,

    /// The account that runs this command
    #[arg(long)]
    pub(crate) me: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  etwprof permissions                     what you have and what is missing\n  etwprof permissions CORP\\ann --json"
)]
pub(crate) struct Permissions {
    /// The account [default: the one that runs this command]
    pub(crate) account: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The call tree, for a console (.tree.txt)
    Tree,
    /// Folded stacks, for flame graph tools (.folded, .txt)
    Folded,
    /// A flame graph (.svg)
    Svg,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// A time with a unit (`200ms`, `1.5s`, `2m`), or a bare number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let text = text.trim();
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number * unit),
        _ => Err("not a time; write 1.5s, 200ms or 2m".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("not a share between 0 and 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, percent, seconds};
    use clap::{CommandFactory, Parser};

    #[test]
    fn definitions_are_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(seconds("1.5s"), Ok(1.5));
        assert_eq!(seconds("200ms"), Ok(0.2));
        assert_eq!(seconds("2m"), Ok(120.0));
        assert_eq!(seconds("3"), Ok(3.0));
        assert!(seconds("-1s").is_err());
        assert!(seconds("soon").is_err());
        assert_eq!(percent("5%"), Ok(5.0));
        assert!(percent("500").is_err());
    }

    #[test]
    fn what_follows_two_dashes_belongs_to_the_command() {
        let args = Args::parse_from(["etwprof", "--duration", "2s", "--", "app.exe", "--pid", "7"]);
        assert_eq!(args.live.run, ["app.exe", "--pid", "7"]);
        assert!(args.live.pid.is_empty());
    }
}
