//! The clock of a recording: its moments, and how they become seconds and dates.

mod zone;

pub use zone::{Change, Zone};

/// A moment on the recording's own clock, in that clock's units ([`Clock`] converts).
///
/// Signed, because rundown of stale buffers may lie before the recording's first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub i64);

/// Which clock a recording's times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// QueryPerformanceCounter.
    Qpc,
    /// System time: times are FILETIMEs, 100 ns units since 1601.
    SystemTime,
    /// The processor's cycle counter, at its nominal speed.
    CpuCycle,
}

/// Converts a recording's times.
///
/// The base is the time of the first record, which belongs to StartTime. The boot time in the header is *not* a base:
/// converted with it, times are wrong by 0.1 to 14 s in real files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kind of clock.
    pub kind: ClockKind,
    /// Units in a second; never 0.
    pub frequency: u64,
    /// The time of the first record.
    pub base: Ticks,
    /// The FILETIME that belongs to `base`.
    pub base_utc: i64,
    /// What the wall clocks of its machine showed at `base`, in minutes east of UTC, where that is known.
    pub utc_offset: Option<i32>,
}

/// 100 ns units in a second.
const FILETIME_PER_SECOND: i128 = 10_000_000;

/// A second, a minute and a day in 100 ns.
const SECOND: i64 = 10_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 1440 * MINUTE;

/// The FILETIME of 1970-01-01, where Unix time begins.
pub const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

impl Clock {
    /// Seconds since the recording's first record; negative before it.
    pub fn seconds(&self, time: Ticks) -> f64 {
        self.seconds_between(self.base, time)
    }

    /// Seconds from `from` to `to`.
    pub fn seconds_between(&self, from: Ticks, to: Ticks) -> f64 {
        (i128::from(to.0) - i128::from(from.0)) as f64 / self.frequency as f64
    }

    /// Nanoseconds since the recording's first record; negative before it.
    pub fn nanoseconds(&self, time: Ticks) -> i64 {
        let since = i128::from(time.0) - i128::from(self.base.0);
        let nanoseconds = since * 1_000_000_000 / i128::from(self.frequency);
        i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
    }

    /// How many nanoseconds so many units of this clock are, to the nearest.
    pub fn nanoseconds_in(&self, ticks: i64) -> i64 {
        let frequency = i128::from(self.frequency).max(1);
        let nanoseconds = (i128::from(ticks) * 1_000_000_000 + frequency / 2).div_euclid(frequency);
        i64::try_from(nanoseconds).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }

    /// The FILETIME of a moment: UTC, in 100 ns units since 1601.
    pub fn filetime(&self, time: Ticks) -> i64 {
        let since = i128::from(time.0) - i128::from(self.base.0);
        let filetime = i128::from(self.base_utc) + since * FILETIME_PER_SECOND / i128::from(self.frequency);
        i64::try_from(filetime).unwrap_or(if filetime < 0 { i64::MIN } else { i64::MAX })
    }

    /// The moment of a FILETIME: the inverse of [`filetime`](Clock::filetime).
    pub fn moment(&self, filetime: i64) -> Ticks {
        let since = i128::from(filetime) - i128::from(self.base_utc);
        let ticks = since.saturating_mul(i128::from(self.frequency)) / FILETIME_PER_SECOND;
        let ticks = ticks.saturating_add(i128::from(self.base.0));
        Ticks(i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX }))
    }

    /// The moment when the wall clocks of its machine (of UTC, where its time zone is not known) show the time that is so
    /// many 100 ns behind midnight, for the first time since the second in which the recording began.
    pub fn at_time_of_day(&self, since_midnight: u64) -> Ticks {
        let offset = i64::from(self.utc_offset.unwrap_or(0)) * MINUTE;
        let second = self.base_utc.saturating_sub(self.base_utc.rem_euclid(SECOND));
        let begin = second.saturating_add(offset);
        let time = i64::try_from(since_midnight).unwrap_or(i64::MAX);
        let wait = (time % DAY - begin.rem_euclid(DAY)).rem_euclid(DAY);
        self.moment(second.saturating_add(wait))
    }

    /// How many units of this clock `seconds` are.
    pub fn ticks(&self, seconds: f64) -> i64 {
        (seconds * self.frequency as f64) as i64
    }

    /// The moment `seconds` after the first record.
    pub fn at(&self, seconds: f64) -> Ticks {
        Ticks(self.base.0.saturating_add(self.ticks(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, ClockKind, DAY, MINUTE, SECOND, Ticks};

    #[test]
    fn times_of_day_are_those_of_the_machine_and_after_the_begin() {
        // 23:59:58.5 UTC on some day, 1:59:58.5 on the machine.
        let base_utc = 150_000 * DAY - 3 * SECOND / 2;
        let clock = |utc_offset| Clock {
            kind: ClockKind::Qpc,
            frequency: 1000,
            base: Ticks(5_000),
            base_utc,
            utc_offset,
        };
        let hour = 60 * MINUTE as u64;
        for (offset, time, ms) in [
            (None, 0, 1_500),
            (None, 24 * hour - 2 * SECOND as u64, -500),
            (None, 24 * hour - 2 * SECOND as u64 - 1, 86_399_499),
            (Some(120), 2 * hour, 1_500),
            (Some(120), 2 * hour + SECOND as u64 / 4, 1_750),
            (Some(-90), 22 * hour + hour / 2, 1_500),
        ] {
            assert_eq!(clock(offset).at_time_of_day(time), Ticks(5_000 + ms), "{offset:?} {time}");
        }
        let far = Clock { base_utc: i64::MIN, base: Ticks(i64::MAX), ..clock(Some(i32::MIN)) };
        far.at_time_of_day(u64::MAX);
    }
}
