//! What the values of a metric are called and counted in.

use crate::profile::{Metric, Unit};
use crate::report::format::Picture;
use crate::report::text::nanoseconds;

use super::remarks::interval;

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

    /// The interval at which samples were taken, in that unit; `None` for what happens at any time.
    pub(super) fn period(&self, picture: &Picture<'_>) -> Option<i64> {
        (self.metric == Metric::CPU).then(|| self.value(interval(picture)))
    }
}
