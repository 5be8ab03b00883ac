//! What is measured: the same for every command that shows a profile.

use clap::{Args, ValueEnum};
use etwprof::profile::{self, Matcher, Measured};

/// What is measured.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Metric")]
pub(crate) struct Measure {
    /// Show this: CPU time, the time in which threads were blocked, ready but without a processor, all of their time, or
    /// what .NET programs allocated
    ///
    /// Blocked, ready and wall need a recording with context switches (`wpr -start CPU` has them, as have PerfView's Thread
    /// Time and `xperf -on CSWITCH+DISPATCHER`). The stack of a wait is where the thread went to sleep. What was allocated
    /// is in bytes, by the runtime's AllocationTick, or AllocationSampled from .NET 10 on: one event stands for about 100 KB.
    #[arg(long, value_name = "METRIC", default_value = "cpu")]
    pub(crate) metric: MetricWord,

    /// Show the stacks of these events instead, each event for one (repeatable): 'DiskIo/ReadInit', 'PageFault/*'
    ///
    /// PROVIDER/NAME as `etwprof events` lists them; a provider may be a GUID, and a name a number. * and ? stand for any
    /// characters. Case does not matter.
    #[arg(long, value_name = "PROVIDER/NAME", value_parser = Matcher::parse, conflicts_with = "metric")]
    pub(crate) event: Vec<Matcher>,

    /// Show blocked time by why threads blocked: [UserRequest], [WrQueue], ...
    #[arg(long)]
    pub(crate) by_reason: bool,

    /// Show what was allocated by its type: [System.String], [System.Byte[]], ...
    #[arg(long)]
    pub(crate) by_type: bool,

    /// Show who ended each wait: the stack of the thread that made the waiting one ready stands below [readied by NAME]
    #[arg(long)]
    pub(crate) with_wakers: bool,
}

/// What samples are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricWord {
    #[default]
    Cpu,
    Blocked,
    Ready,
    Wall,
    Allocated,
}

impl MetricWord {
    pub(crate) fn measured(self) -> Measured {
        match self {
            MetricWord::Cpu => Measured::Cpu,
            MetricWord::Blocked => Measured::Blocked,
            MetricWord::Ready => Measured::Ready,
            MetricWord::Wall => Measured::Wall,
            MetricWord::Allocated => Measured::Allocated,
        }
    }
}

impl Measure {
    pub(crate) fn measure(&self) -> profile::Measure {
        let Measure { metric, by_reason, by_type, with_wakers, .. } = *self;
        let what = if self.event.is_empty() { metric.measured() } else { Measured::Events };
        profile::Measure { what, by_reason, by_type, wakers: with_wakers }
    }

    /// True for events that are no samples and no waits.
    pub(crate) fn is_of_events(&self) -> bool {
        !self.event.is_empty() || self.metric == MetricWord::Allocated
    }
}
