//! What a sample's value measures.

/// What a sample's value measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Its name: `CPU time`.
    pub name: &'static str,
    /// The unit of a value.
    pub unit: Unit,
    /// What its samples are called.
    pub samples: &'static str,
    /// What a call tree of it counts ([`Arranged::counts`](super::Arranged::counts)).
    pub counted: Counted,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// 100 nanoseconds.
    #[default]
    Time,
    /// Bytes.
    Bytes,
    /// Things: samples, events, faults.
    Count,
}

/// What a call tree counts, so that its shares are those of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counted {
    /// Samples, each of which stands for about as much.
    Samples,
    /// Microseconds of samples that differ in length.
    Microseconds,
    /// Bytes of samples that stand for different amounts.
    Bytes,
}

impl Metric {
    /// The CPU time that samples stand for.
    pub const CPU: Metric =
        Metric { name: "CPU time", unit: Unit::Time, samples: "samples", counted: Counted::Samples };

    /// The time in which threads waited for something.
    pub const BLOCKED: Metric = Metric::time("blocked time", "waits");

    /// The time in which threads could run, and had no processor.
    pub const READY: Metric = Metric::time("ready time", "waits");

    /// All time of threads: CPU time, blocked and ready time.
    pub const WALL: Metric = Metric::time("wall time", "samples and waits");

    /// The time in which DPCs and interrupts ran.
    pub const INTERRUPTS: Metric = Metric::time("interrupt time", "interrupts");

    /// Events of any kind.
    pub const EVENTS: Metric =
        Metric { name: "events", unit: Unit::Count, samples: "events", counted: Counted::Samples };

    /// What was allocated.
    pub const ALLOCATED: Metric =
        Metric { name: "allocated", unit: Unit::Bytes, samples: "events", counted: Counted::Bytes };

    /// The metric of time with this name.
    pub fn of_time(name: &str) -> Option<Metric> {
        [Metric::CPU, Metric::BLOCKED, Metric::READY, Metric::WALL]
            .into_iter()
            .find(|metric| metric.name == name)
    }

    const fn time(name: &'static str, samples: &'static str) -> Metric {
        Metric { name, unit: Unit::Time, samples, counted: Counted::Microseconds }
    }

    /// What so many samples with this sum of values count for in a call tree.
    pub(super) fn weight(self, samples: i64, value: i64) -> i64 {
        match self.counted {
            Counted::Samples => samples,
            Counted::Microseconds => value.saturating_add(5) / 10,
            Counted::Bytes => value,
        }
    }
}
