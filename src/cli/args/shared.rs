//! Arguments that several commands take, each declared once.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use etwprof::report::format::{self, Format};

use super::Filter;
use crate::cli::time;

/// Where the result goes and in which form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Write to this file, or to stdout for `-`; its extension picks the format
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub(crate) path: Option<PathBuf>,

    /// Output format (overrides the file extension) [default: tree]
    #[arg(short, long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<&'static Format>,
}

/// Reads the name of a format; help has all of them.
fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let named = format::ALL.iter().map(|format| {
        let mut help = format.about.to_owned();
        if !format.viewers.is_empty() {
            help += &format!(", for {}", format.viewers);
        }
        PossibleValue::new(format.name).help(format!("{help} ({})", format.endings.join(", ")))
    });
    PossibleValuesParser::new(named).try_map(|name| Format::by_name(&name).ok_or("no such format"))
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

/// How the samples of a recording are chosen and named: what every report on them takes.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) symbols: Symbols,

    #[command(flatten)]
    pub(crate) names: Names,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// What is shown of a call tree.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Call tree")]
pub(crate) struct Tree {
    /// Hide nodes below this share of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub(crate) min_percent: f64,

    /// Hide nodes deeper than this many frames
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) max_depth: Option<usize>,

    /// Show every frame of long chains of single calls
    #[arg(long)]
    pub(crate) all_frames: bool,

    /// Show the heaviest branch only: the heaviest process, its heaviest callee, and so on
    #[arg(long)]
    pub(crate) hot: bool,

    /// Fit lines into this many columns [default: the width of the terminal; no limit in a pipe or a file]
    #[arg(long, value_name = "COLUMNS", value_parser = columns)]
    pub(crate) width: Option<usize>,

    /// Explain columns, marks and colours below the tree
    #[arg(long)]
    pub(crate) legend: bool,
}

fn columns(text: &str) -> Result<usize, String> {
    let least = 20;
    let columns = text.parse().ok().filter(|columns| *columns >= least);
    columns.ok_or_else(|| format!("expected a number of columns, at least {least}"))
}

/// Where names come from: the same for every command that names functions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct Symbols {
    /// Look here before _NT_ALT_SYMBOL_PATH and _NT_SYMBOL_PATH, in their syntax: a folder, srv*CACHE*URL, ... (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) symbols: Vec<String>,

    /// Look in this folder and below for images (.dll, .exe) and their PDBs (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Vec<PathBuf>,

    /// Do not resolve symbols
    #[arg(long)]
    pub(crate) no_symbols: bool,

    /// Contact no symbol server; use caches and folders only
    #[arg(long)]
    pub(crate) offline: bool,

    /// Send a header such as a token to one symbol server: HOST=NAME: VALUE (repeatable)
    ///
    /// Others may see the arguments of a program. The variable ETWPROF_SYMBOL_HEADERS takes the same, one header in
    /// each line.
    #[arg(long, value_name = "HEADER")]
    pub(crate) symbol_header: Vec<String>,

    /// Retry downloads that failed recently
    #[arg(long)]
    pub(crate) retry_failed: bool,

    /// Wait for symbol servers no longer than this in all; `none` is no limit
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = symbol_time)]
    pub(crate) symbol_timeout: SymbolTime,
}

/// How long servers may be waited for; `None` without a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolTime(pub(crate) Option<Duration>);

fn symbol_time(text: &str) -> Result<SymbolTime, String> {
    if text == "none" {
        return Ok(SymbolTime(None));
    }
    match time::parse(text)? {
        Duration::ZERO => Err("no time at all; --offline contacts no server".to_owned()),
        time => Ok(SymbolTime(Some(time))),
    }
}

/// How names read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names")]
pub(crate) struct Names {
    /// Show source files and lines
    #[arg(long)]
    pub(crate) lines: bool,

    /// Count inlined functions as part of their caller
    #[arg(long)]
    pub(crate) no_inline: bool,

    /// Mark .NET methods with their tier: [Tier0], [Tier1], [OSR], [R2R], [PreJIT], ...
    #[arg(long)]
    pub(crate) tiers: bool,

    /// Show the parameters of all .NET methods, not only of overloads
    #[arg(long, conflicts_with = "raw_names")]
    pub(crate) parameters: bool,

    /// Show names exactly as the symbols and the .NET runtime spell them: all template arguments, signatures, generated
    /// types
    #[arg(long)]
    pub(crate) raw_names: bool,

    /// Show unnamed code by address, one node for each address
    #[arg(long, conflicts_with = "merge_unnamed")]
    pub(crate) addresses: bool,

    /// Show the unnamed code of a module as one node, module!?, below each caller [default]
    #[arg(long)]
    pub(crate) merge_unnamed: bool,
}

/// How much work a recording may cause.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Skip symbol lookup for modules hit by less than this share of samples
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) min_module_share: f64,

    /// Show every frame, even if that takes far more memory than the recording's size suggests
    ///
    /// A damaged or malicious recording can ask for more memory than the machine has. Use this only for recordings
    /// that you trust.
    #[arg(long)]
    pub(crate) no_limit: bool,

    /// Read with N threads; the output is the same for any number [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Let samples take about this much memory: 500M, 2G
    ///
    /// If they need more, samples of one stack, thread and processor become one: first within 10 ms, then 100 ms, 1 s, 10 s
    /// and 100 s, then whenever they were taken; at last those of one stack and process. Counts and CPU time stay exact; a
    /// warning says what was given up. Stacks, methods and symbols take what they need.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_memory: Option<u64>,

    /// Complete isolated broken stacks by what the stacks before and after them share, marked as [repaired stack]
    #[arg(long, help_heading = "Broken stacks")]
    pub(crate) repair_stacks: bool,

    /// Exit with 1 if the data is damaged, lost or poor, or has no samples; the result is printed all the same
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

pub(super) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

/// A number of bytes: `500M`, `1.5G`, `512MiB`. As in other tools, units are powers of 1,024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let bare = text.trim_end_matches(['b', 'B']).trim_end_matches('i');
    let unit = bare.chars().last().map(|unit| unit.to_ascii_uppercase());
    let unit = UNITS.into_iter().find(|(name, _)| Some(*name) == unit);
    let number = if unit.is_some() { bare.get(..bare.len() - 1) } else { Some(text) };
    let scale = f64::from(2_u32).powi(unit.map_or(0, |(_, bits)| bits as i32));
    match number.unwrap_or_default().trim_end().parse::<f64>() {
        Ok(number) if number > 0.0 && number * scale < 1e18 => Ok((number * scale) as u64),
        _ => Err("expected a size such as 500M or 2G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{percent, size};

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("500M", 500 << 20), ("1.5G", 3 << 29), ("2gb", 2 << 30), ("64KiB", 64 << 10), ("4096", 4096)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1G", "0", "x", "1X", "nan", "1e30G", "5 iB", "é", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_at_most_all() {
        assert_eq!(percent("5%"), Ok(5.0));
        assert_eq!(percent("0.5"), Ok(0.5));
        for text in ["500", "-1", "NaN", "5%%", "", "%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
