//! What a sample's value measures.

/// What a sample's value measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Its name: `CPU time`.
    pub name: &'static str,
    /// The unit of a value.
    pub unit: Unit,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// 100 nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Things: samples, events, faults.
    Count,
}

impl Metric {
    /// The CPU time that samples stand for.
    pub const CPU: Metric = Metric { name: "CPU time", unit: Unit::Time };
}
