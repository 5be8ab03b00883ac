//! How stacks are shaped: the same for every command that shows functions.

use clap::{Args, ValueEnum};
use etwprof::profile::Matcher;

use super::shared::percent;

/// What stands above the code, what of it is folded, and which part of it is looked at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stacks")]
pub(crate) struct Shaping {
    /// Group samples by process, by process and thread, by the leaf's module or category, or not at all
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "process",
        conflicts_with = "threads",
        hide_possible_values = false
    )]
    pub(crate) group_by: GroupBy,

    /// Show a node for each thread; short for --group-by thread
    #[arg(long)]
    pub(crate) threads: bool,

    /// Fold code from outside the program's own folder into one node for each way in
    #[arg(long)]
    pub(crate) just_my_code: bool,

    /// Fold the kernel into the code that called it
    #[arg(long)]
    pub(crate) no_kernel: bool,

    /// Show functions that call themselves, directly or in a round, once
    #[arg(long)]
    pub(crate) fold_recursion: bool,

    /// Show stubs, thunks and WOW64 glue too, which are folded into their callers
    #[arg(long)]
    pub(crate) no_fold: bool,

    /// Show one function: its callers above, its callees below
    ///
    /// NAME is a function or `module!function`; `*` and `?` stand for other characters; /.../ is a regular expression.
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse, conflicts_with_all = ["from_function", "invert"])]
    pub(crate) focus: Option<Matcher>,

    /// Show stacks from this function on
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) from_function: Option<Matcher>,

    /// Show callees first, their callers below
    #[arg(long)]
    pub(crate) invert: bool,

    /// Group frames by PerfView's GroupPats, or by the preset of a name in brackets: '[group modules]'
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) group_pats: Option<String>,

    /// Fold frames that match PerfView's FoldPats into their callers
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) fold_pats: Option<String>,

    /// Keep samples whose stacks match each of PerfView's IncPats
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) inc_pats: Option<String>,

    /// Leave out samples whose stacks match one of PerfView's ExcPats
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) exc_pats: Option<String>,

    /// Fold nodes below this share of the total into their callers, as PerfView's Fold% does
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fold_percent: Option<f64>,
}

/// What stands above the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    Process,
    Thread,
    Module,
    Category,
    None,
}
