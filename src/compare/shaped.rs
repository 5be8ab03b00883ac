//! How a call tree was made: two that were made differently say different things.

use serde::{Deserialize, Serialize};

use crate::profile::{Grouping, Metric, Shape};

fn cpu_time() -> String {
    Metric::CPU.name.to_owned()
}

/// How a call tree was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shaped {
    /// What stands above the code: `process`, `thread`, `module`, `category` or `none`.
    pub grouping: String,
    /// It begins with the leaves: what a function called is above it.
    pub inverted: bool,
    /// It has a part of each stack only, by one function.
    pub focused: bool,
    /// What was measured: the name of the [`Metric`]. Trees of older versions are of CPU time.
    #[serde(default = "cpu_time")]
    pub metric: String,
    /// What else was chosen, in words, but for times; empty for the whole recording.
    pub chosen: String,
}

impl Shaped {
    /// That of a tree of `metric` in this `shape`, of what was `chosen`.
    pub fn new(metric: Metric, shape: &Shape, chosen: &str) -> Shaped {
        let grouping = match shape.grouping {
            Grouping::Process => "process",
            Grouping::Thread => "thread",
            Grouping::Module => "module",
            Grouping::Category => "category",
            Grouping::None => "none",
        };
        Shaped {
            grouping: grouping.to_owned(),
            inverted: shape.inverted,
            focused: shape.focus.is_some(),
            metric: metric.name.to_owned(),
            chosen: chosen.to_owned(),
        }
    }

    /// The samples below a node of the one are something else than those below a node of the other.
    pub fn contradicts(&self, other: &Shaped) -> bool {
        self.inverted != other.inverted || self.focused != other.focused || self.metric != other.metric
    }
}
