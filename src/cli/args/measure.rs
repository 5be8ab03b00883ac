//! What is measured: the same for every command that shows a profile.

use clap::{Args, ValueEnum};
use etwprof::profile::{self, Measured};

/// What is measured.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Metric")]
pub(crate) struct Measure {
    /// Show this time of threads: on a processor, blocked, ready but without a processor, or all of it
    ///
    /// All but cpu need a recording with context switches (`wpr -start CPU` has them, as have PerfView's Thread Time and
    /// `xperf -on CSWITCH+DISPATCHER`). The stack of a wait is where the thread went to sleep.
    #[arg(long, value_name = "TIME", default_value = "cpu")]
    pub(crate) metric: MetricWord,

    /// Show blocked time by why threads left their processors: [UserRequest], [WrQueue], ...
    #[arg(long)]
    pub(crate) by_reason: bool,

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
}

impl MetricWord {
    pub(crate) fn measured(self) -> Measured {
        match self {
            MetricWord::Cpu => Measured::Cpu,
            MetricWord::Blocked => Measured::Blocked,
            MetricWord::Ready => Measured::Ready,
            MetricWord::Wall => Measured::Wall,
        }
    }
}

impl Measure {
    pub(crate) fn measure(&self) -> profile::Measure {
        let Measure { metric, by_reason, with_wakers } = *self;
        profile::Measure { what: metric.measured(), by_reason, wakers: with_wakers }
    }
}
