//! What the values of a metric are called and counted in.

use crate::profile::{Metric, Unit};
use crate::report::format::Picture;
use crate::report::text::nanoseconds;

/// The values of a picture's samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    /// `cpu`, `blocked`, `allocated`.
    pub(super) kind: String,
    /// As pprof and OpenTelemetry spell it.
    pub(super) unit: &'static str,
    metric: Metric,
}

impl Values {
    pub(super) fn of(picture: &Picture<'_>) -> Values {
        let metric = picture.profile().metric;
        let unit = match metric.unit {
            Unit::Time => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
        };
        Values { kind: metric.name.trim_end_matches(" time").to_lowercase(), unit, metric }
    }

    /// A value in that unit.
    pub(super) fn value(&self, value: i64) -> i64 {
        match self.metric.unit {
            Unit::Time => nanoseconds(value),
            Unit::Bytes | Unit::Count => value,
        }
    }

    /// True for samples that were taken at intervals.
    pub(super) fn are_sampled(&self) -> bool {
        self.metric == Metric::CPU
    }
}
