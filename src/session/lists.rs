//! The lists that .NET runtimes give of their code when they are asked at the start.
//!
//! A runtime writes its list from inside the profiled process, at the expense of that process. So samples are switched on
//! after it, or a short profile would show little else.

use std::time::{Duration, Instant};

use super::pipeline::Counters;
use super::{console, etw, process};

/// No longer than this: a runtime that is suspended does not finish.
const LIMIT: Duration = Duration::from_secs(5);
/// Runtimes are asked all at once, and one that has not begun after this time is not there.
const QUIET: Duration = Duration::from_millis(200);

/// Waits until every runtime that began a list has ended it, it takes too long, or somebody presses Ctrl-C. `session` is
/// the one that they write to.
pub(super) fn wait_at_start(counters: &Counters, session: &str) {
    let start = Instant::now();
    let (mut last, mut since) = (counters.start_lists().clone(), start);
    while start.elapsed() < LIMIT && !console::asked_to_stop() {
        // Without this the session would keep the last events for a second.
        let _ = etw::flush(session);
        std::thread::sleep(Duration::from_millis(10));
        let now = counters.start_lists().clone();
        let is_open = now.iter().any(|(pid, list)| list.done < list.begun && process::watch(*pid).is_some());
        if !is_open && now == last && since.elapsed() > QUIET {
            return;
        }
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}
