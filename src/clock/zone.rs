//! Time zones, as TIME_ZONE_INFORMATION describes them.

/// What a machine's clocks show beside UTC, in standard and in daylight saving time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Minutes to add to the local time for UTC, in both halves of the year.
    pub bias: i32,
    /// When standard time begins.
    pub standard: Change,
    /// When daylight saving time begins.
    pub daylight: Change,
}

/// When one half of the year begins, by the clocks before the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// From 1; 0 in a zone without daylight saving time.
    pub month: u16,
    /// 0 for Sunday.
    pub weekday: u16,
    /// Which such day of the month, from 1; 5 for the last one.
    pub week: u16,
    /// The hour.
    pub hour: u16,
    /// The minute.
    pub minute: u16,
    /// Minutes to add to those of the zone.
    pub bias: i32,
}

/// 100 ns units in a minute and in a day.
const MINUTE: i64 = 600_000_000;
const DAY: i64 = 1440 * MINUTE;

/// The FILETIMEs that are dates: from 1601 until 3000.
const DATES: std::ops::Range<i64> = 0..441_481_536_000_000_000;

impl Zone {
    /// Minutes east of UTC at a FILETIME; `None` where that cannot be.
    pub fn offset(&self, utc: i64) -> Option<i32> {
        if !DATES.contains(&utc) {
            return None;
        }
        let bias = |change: Change| self.bias.checked_add(change.bias);
        let bias = if self.is_daylight(utc)? { bias(self.daylight) } else { bias(self.standard) };
        // No clock on Earth is a day away from UTC's.
        bias.filter(|bias| bias.unsigned_abs() < 1440).map(|bias| -bias)
    }

    fn is_daylight(&self, utc: i64) -> Option<bool> {
        if self.standard.month == 0 || self.daylight.month == 0 {
            return Some(false);
        }
        let year = year(utc - i64::from(self.bias) * MINUTE);
        let begin = |change: &Change, before: i32| {
            Some(change.in_year(year)? + i64::from(self.bias.checked_add(before)?) * MINUTE)
        };
        let daylight = begin(&self.daylight, self.standard.bias)?;
        let standard = begin(&self.standard, self.daylight.bias)?;
        Some(if daylight < standard {
            (daylight..standard).contains(&utc)
        } else {
            // South of the equator.
            !(standard..daylight).contains(&utc)
        })
    }
}

impl Change {
    /// The local time at which it comes, like a FILETIME.
    fn in_year(&self, year: i64) -> Option<i64> {
        let days = days_in_months(year);
        let month = usize::from(self.month).checked_sub(1)?;
        let length = i64::from(*days.get(month)?);
        let first = days_before(year) + days.iter().take(month).map(|days| i64::from(*days)).sum::<i64>();
        let to_weekday = (i64::from(self.weekday) - weekday(first)).rem_euclid(7);
        let day =
            (1..i64::from(self.week)).fold(to_weekday, |day, _| if day + 7 < length { day + 7 } else { day });
        Some((first + day) * DAY + (i64::from(self.hour) * 60 + i64::from(self.minute)) * MINUTE)
    }
}

/// Days from 1601-01-01 to the first of a year: 1601 begins a cycle of leap years.
fn days_before(year: i64) -> i64 {
    let years = year - 1601;
    365 * years + years / 4 - years / 100 + years / 400
}

/// The year of a local time.
fn year(local: i64) -> i64 {
    let days = local.div_euclid(DAY);
    let year = 1601 + days * 400 / 146_097;
    // That is off by one around New Year.
    (year - 1..=year + 1).rev().find(|year| days_before(*year) <= days).unwrap_or(year)
}

fn days_in_months(year: i64) -> [u8; 12] {
    let leap = days_before(year + 1) - days_before(year) == 366;
    [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// 0 for Sunday. 1601 began on a Monday.
fn weekday(days: i64) -> i64 {
    (days + 1).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::{Change, Zone};
    use crate::clock::UNIX_EPOCH;

    fn change(month: u16, week: u16, hour: u16, bias: i32) -> Change {
        Change { month, weekday: 0, week, hour, minute: 0, bias }
    }

    #[track_caller]
    fn assert_offset(zone: Zone, unix_seconds: i64, minutes: i32) {
        assert_eq!(zone.offset(UNIX_EPOCH + unix_seconds * 10_000_000), Some(minutes), "{unix_seconds}");
    }

    /// The moments of the changes are those of the IANA database (`zdump -v`).
    #[test]
    fn changes_of_real_zones() {
        let berlin = Zone { bias: -60, standard: change(10, 5, 3, 0), daylight: change(3, 5, 2, -60) };
        for (change, before, after) in [(1_743_296_400, 60, 120), (1_761_440_400, 120, 60)] {
            assert_offset(berlin, change - 1, before);
            assert_offset(berlin, change, after);
        }
        let los_angeles = Zone { bias: 480, standard: change(11, 1, 2, 0), daylight: change(3, 2, 2, -60) };
        for (change, before, after) in [(1_331_460_000, -480, -420), (1_352_019_600, -420, -480)] {
            assert_offset(los_angeles, change - 1, before);
            assert_offset(los_angeles, change, after);
        }
        // The year ends in daylight saving time, and changes elsewhere than in UTC.
        let sydney = Zone { bias: -600, standard: change(4, 1, 3, 0), daylight: change(10, 1, 2, -60) };
        for (change, before, after) in [(1_743_868_800, 660, 600), (1_759_593_600, 600, 660)] {
            assert_offset(sydney, change - 1, before);
            assert_offset(sydney, change, after);
        }
        assert_offset(sydney, 1_735_689_600 - 3600, 660);
        let shanghai = Zone { bias: -480, daylight: change(0, 0, 0, -60), ..Zone::default() };
        assert_offset(shanghai, 1_743_296_400, 480);
    }

    #[test]
    fn what_cannot_be_is_no_offset() {
        let now = UNIX_EPOCH + 1_743_296_400 * 10_000_000;
        for zone in [
            Zone { bias: i32::MAX, ..Zone::default() },
            Zone { bias: 1440, ..Zone::default() },
            Zone { bias: 0, standard: change(13, 1, 2, 0), daylight: change(3, 1, 2, 0) },
            Zone { bias: i32::MIN, standard: change(10, 1, 2, -1), daylight: change(3, 1, 2, -1) },
        ] {
            assert_eq!(zone.offset(now), None, "{zone:?}");
        }
        for utc in [-1, i64::MIN, i64::MAX] {
            assert_eq!(Zone::default().offset(utc), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_zone_is_taken(bias: i32, fields: [u16; 10], more: [i32; 2], utc: i64) {
            let change = |of: &[u16], bias| Change {
                month: of[0], weekday: of[1], week: of[2], hour: of[3], minute: of[4], bias,
            };
            let zone = Zone { bias, standard: change(&fields[..5], more[0]), daylight: change(&fields[5..], more[1]) };
            zone.offset(utc);
        }
    }
}
