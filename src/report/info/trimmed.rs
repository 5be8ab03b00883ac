//! What the recording was trimmed to.

use serde::Serialize;

use crate::report::duration;
use crate::report::text::counted;
use crate::trace::Trace;

/// What was kept of a larger recording.
#[derive(Clone, Debug, Serialize)]
pub struct TrimmedInfo {
    /// The ids of the processes; `null` for all.
    pub pids: Option<Vec<u32>>,
    /// From when on, in nanoseconds since the first record; `null` for from the start.
    pub from_ns: Option<i64>,
    /// Until when; `null` for to the end.
    pub to_ns: Option<i64>,
    /// Nothing was left out by its provider.
    pub all_providers: bool,
}

/// Ids that a line has room for.
const IDS: usize = 5;

impl TrimmedInfo {
    pub(super) fn new(trace: &Trace) -> Option<TrimmedInfo> {
        let trimmed = trace.trimmed.as_ref()?;
        let nanoseconds = |time| trace.clock.nanoseconds(time);
        Some(TrimmedInfo {
            pids: trimmed.pids.clone(),
            from_ns: trimmed.from.map(nanoseconds),
            to_ns: trimmed.to.map(nanoseconds),
            all_providers: !trimmed.some_providers,
        })
    }

    /// `process 856, from 3.00 s, to 9.00 s`.
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(pids) = &self.pids {
            let ids: Vec<String> = pids.iter().map(u32::to_string).collect();
            parts.push(match ids.as_slice() {
                [id] => format!("process {id}"),
                few if few.len() <= IDS => format!("processes {}", few.join(", ")),
                many => counted(many.len() as u64, "process", "processes"),
            });
        }
        let seconds = |time: i64| duration(time as f64 / 1e9);
        parts.extend(self.from_ns.map(|from| format!("from {}", seconds(from))));
        parts.extend(self.to_ns.map(|to| format!("to {}", seconds(to))));
        if !self.all_providers {
            parts.push("some providers".to_owned());
        }
        parts.join(", ")
    }
}
