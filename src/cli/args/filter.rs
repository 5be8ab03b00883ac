//! Which samples are kept: the same for every command.

use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use etwprof::profile::{self, Matcher, Moment};

use super::shared::number;
use crate::cli::highest::Highest;
use crate::cli::time;

/// Which samples are kept.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    #[command(flatten)]
    pub(crate) processes: Processes,

    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Whose samples.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Processes {
    /// Keep the process with this id (repeatable)
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) pid: Vec<u32>,

    /// Keep the processes of this executable, with or without .exe (repeatable)
    ///
    /// NAME and EXE are a whole name, a pattern with * and ?, or a /regular expression/ that is found anywhere in a name.
    /// Case does not matter.
    #[arg(long, value_name = "EXE", value_parser = Matcher::parse)]
    pub(crate) name: Vec<Matcher>,

    /// Also keep the processes that the kept ones started, and those started in turn
    #[arg(long)]
    pub(crate) children: bool,
}

/// Which of their samples.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Samples {
    /// Keep the thread with this id (repeatable)
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) tid: Vec<u32>,

    /// Keep the threads with this name (repeatable): 'Worker*'
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) thread: Vec<Matcher>,

    /// Keep stacks that contain code of this module (repeatable): clr, ntdll.dll, 'C:\app\*'
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) module: Vec<Matcher>,

    /// Keep stacks that contain this function (repeatable): main, app!main, 'Order*', /Save(Async)?$/
    ///
    /// A name is that of the function, as the call tree shows it, with or without its module and its parameters.
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) function: Vec<Matcher>,

    /// Drop stacks that contain this function or module (repeatable)
    #[arg(long, value_name = "NAME", value_parser = Matcher::parse)]
    pub(crate) exclude: Vec<Matcher>,

    /// Keep samples that are in code of this kind (repeatable)
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) category: Vec<Category>,

    /// Keep samples of these processors (repeatable): 0, 0-3,7
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = processors)]
    pub(crate) cpu: Vec<RangeInclusive<u16>>,

    /// Keep samples from this time on: 10, 1.5s, 200ms, 1m30s from the start, or a time of day, 09:00:14.5
    ///
    /// A time of day is in the time zone in which the recording was made, as `etwprof info` prints it. It is in UTC if it
    /// ends in Z (09:00:14Z), if the recording names no time zone, or if it would be outside the recording otherwise.
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) from: Option<Moment>,

    /// Keep samples before this time
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    pub(crate) to: Option<Moment>,

    /// Keep the time in which this recorded counter was highest: 'System.Runtime\gc-heap-size', or with =TIME, which is
    /// 10s otherwise
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub(crate) highest: Option<Highest>,

    /// Keep samples while the .NET runtime of their process does this
    #[arg(long, value_name = "WHAT")]
    pub(crate) during: Option<During>,

    /// Keep samples of idle processors too, with their stacks
    #[arg(long)]
    pub(crate) include_idle: bool,
}

/// What a .NET runtime does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum During {
    /// The threads of the process wait for a garbage collection
    Gc,
    /// They do not
    OutsideGc,
    /// The thread compiles a method
    Jit,
}

impl During {
    pub(crate) fn during(self) -> profile::During {
        match self {
            During::Gc => profile::During::Gc,
            During::OutsideGc => profile::During::OutsideGc,
            During::Jit => profile::During::Jit,
        }
    }
}

/// Kinds of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Category {
    /// The kernel and its drivers
    Kernel,
    /// Compiled code in user mode
    Native,
    /// .NET methods, however they were compiled
    Managed,
    /// .NET methods that were compiled at run time
    #[value(alias = "managed_jit")]
    ManagedJit,
    /// .NET methods from NGEN and ReadyToRun images
    #[value(alias = "managed_precompiled")]
    ManagedPrecompiled,
    /// The .NET runtime
    Runtime,
    /// The garbage collector of .NET
    Gc,
    /// The JIT compiler of .NET
    #[value(aliases = ["jit-compiler", "jit_compiler"])]
    Jit,
    /// What the .NET runtime generates between other code
    Stub,
    /// Functions of scripts
    #[value(name = "javascript")]
    JavaScript,
    /// Code in no known image
    Unresolved,
}

impl Category {
    /// What it covers.
    pub(crate) fn covers(self) -> &'static [profile::Category] {
        match self {
            Category::Kernel => &[profile::Category::Kernel],
            Category::Native => &[profile::Category::Native],
            Category::Managed => &[profile::Category::ManagedJit, profile::Category::ManagedPrecompiled],
            Category::ManagedJit => &[profile::Category::ManagedJit],
            Category::ManagedPrecompiled => &[profile::Category::ManagedPrecompiled],
            Category::Runtime => &[profile::Category::Runtime],
            Category::Gc => &[profile::Category::Gc],
            Category::Jit => &[profile::Category::JitCompiler],
            Category::Stub => &[profile::Category::Stub],
            Category::JavaScript => &[profile::Category::JavaScript],
            Category::Unresolved => &[profile::Category::Unresolved],
        }
    }
}

/// `3` or `0-3`.
pub(super) fn processors(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok()).map(|(first, last)| first..=last);
    range.filter(|range| !range.is_empty()).ok_or_else(|| "expected processors such as 0 or 0-3,7".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use etwprof::profile;

    use super::{Category, processors};

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(processors("7"), Ok(7..=7));
        assert_eq!(processors("0-3"), Ok(0..=3));
        for text in ["", "-", "3-", "-3", "3-1", "a", "1-2-3", "65536", "+1-2 "] {
            assert!(processors(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_kinds_cover_all_code_and_have_the_names_of_the_json() {
        for category in profile::Category::CODE {
            let name = serde_json::to_string(&category).unwrap();
            let kind = Category::from_str(name.trim_matches('"'), false).unwrap();
            assert_eq!(kind.covers(), [category], "{name}");
        }
        assert!(Category::Managed.covers().iter().all(|category| category.is_managed()));
    }
}
