//! Recorded counters on a page: each a line over time.

use serde::Serialize;

use crate::profile::Profile;
use crate::report::text::one_line;

use super::threads::Threads;

/// Lines that a page has at most; the first in the recording, which are those that were named first.
const MOST: usize = 60;
/// Points of a line at most: more than a screen draws.
const POINTS: usize = 600;

/// A counter over time.
#[derive(Serialize)]
pub(super) struct Counter<'a> {
    /// An index into the processes of the page; `None` for the whole machine.
    process: Option<usize>,
    name: String,
    unit: &'a str,
    least: f64,
    most: f64,
    last: f64,
    /// When, in 100 ns since the begin of the page's time, and the value.
    points: Vec<(i64, f64)>,
}

/// The counters of the machine, and of the processes that the page has, within its time.
pub(super) fn counters<'a>(profile: &'a Profile, threads: &Threads) -> Vec<Counter<'a>> {
    let trace = &profile.trace;
    let counter = |track: &'a crate::trace::CounterTrack| {
        let process = match track.process {
            None => None,
            Some(id) => {
                let mut of = threads.ids.iter().zip(&threads.threads);
                Some(of.find(|((process, _), _)| *process == id)?.1.process)
            }
        };
        let since = |time| trace.clock.filetime(time) - trace.clock.base_utc - threads.start;
        let points = track.values.iter().map(|(time, value)| (since(*time), *value));
        let mut points: Vec<(i64, f64)> =
            points.filter(|(at, _)| (0..=threads.length).contains(at)).collect();
        let last = points.last()?.1;
        let least = points.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        let step = points.len().div_ceil(POINTS).max(1);
        if step > 1 {
            // Of several the greatest: a peak is what one looks for.
            let greatest = |some: &[(i64, f64)]| some.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
            points = points.chunks(step).filter_map(greatest).collect();
        }
        let (name, unit) = (one_line(&track.path()).into_owned(), track.unit.as_str());
        Some(Counter { process, name, unit, least, most, last, points })
    };
    trace.counters.iter().filter_map(counter).take(MOST).collect()
}
