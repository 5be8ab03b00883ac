//! Moments of a recording, as people give them.

use crate::clock::Clock;
use crate::event::Ticks;
use crate::trace::Trace;

/// A moment of a recording, as people give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Seconds since the recording's start.
    Seconds(f64),
    /// When the wall clocks of the machine show this time: 100 ns since midnight ([`Clock::at_time_of_day`]). One that is
    /// not in the recording by these clocks, but by those of UTC, is of UTC.
    TimeOfDay(u64),
    /// The same by the clocks of UTC.
    UtcTimeOfDay(u64),
}

impl Moment {
    /// The moment on the recording's own clock.
    pub fn at(self, trace: &Trace) -> Ticks {
        self.on_clock(trace).0
    }

    /// The same, with the clock that shows it: one of UTC for a time of UTC.
    pub fn on_clock(self, trace: &Trace) -> (Ticks, Clock) {
        let utc = Clock { utc_offset: Some(0), ..trace.clock };
        let end = trace.span.map_or(trace.clock.base, |(_, last)| last.max(trace.clock.base));
        match self {
            Moment::Seconds(seconds) => (trace.clock.at(seconds), trace.clock),
            Moment::UtcTimeOfDay(time) => (utc.at_time_of_day(time), utc),
            Moment::TimeOfDay(time) => [trace.clock, utc]
                .into_iter()
                .map(|clock| (clock.at_time_of_day(time), clock))
                .find(|(at, _)| *at <= end)
                .unwrap_or_else(|| (trace.clock.at_time_of_day(time), trace.clock)),
        }
    }
}
