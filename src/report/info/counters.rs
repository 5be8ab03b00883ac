//! The counters that were recorded beside samples.

use serde::Serialize;

use crate::trace::{CounterTrack, Trace};

/// A recorded counter.
#[derive(Clone, Debug, Serialize)]
pub struct CounterInfo {
    /// The id of its process; `null` for one of the whole machine.
    pub pid: Option<u32>,
    /// The object, or the provider of an EventCounter.
    pub object: String,
    /// Of which thing; `null` where there is only one.
    pub instance: Option<String>,
    /// The counter.
    pub counter: String,
    /// What its values are in; empty for plain numbers.
    pub unit: String,
    /// How many values there are.
    pub values: usize,
    /// The least of them.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// The greatest.
    pub max: f64,
    /// The last.
    pub last: f64,
}

/// Those of a recording.
pub(super) fn counters(trace: &Trace) -> Vec<CounterInfo> {
    let counter = |track: &CounterTrack| {
        let values = || track.values.iter().map(|(_, value)| *value);
        Some(CounterInfo {
            pid: track.process.and_then(|process| trace.process(process)).map(|process| process.pid),
            object: track.object.clone(),
            instance: track.instance.clone(),
            counter: track.counter.clone(),
            unit: track.unit.clone(),
            values: track.values.len(),
            min: values().reduce(f64::min)?,
            // Divided first, so that no sum is too large for a number.
            mean: values().map(|value| value / track.values.len() as f64).sum(),
            max: values().reduce(f64::max)?,
            last: values().next_back()?,
        })
    };
    trace.counters.iter().filter_map(counter).collect()
}
