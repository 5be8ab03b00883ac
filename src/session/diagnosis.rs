//! What a first report of a fault needs to know of a live recording: the calls, what came of them, and which events
//! came when. Plain data, made by `journal` while it records and shown by
//! [`report::diagnosis`](crate::report::diagnosis).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::event::{Event, Kind, Ticks};
use crate::guid::Guid;
use crate::guids::{CLR, CLR_RUNDOWN, LOST_EVENT, PERF_INFO};

use super::status::Status;

/// Everything that was written down. Times are since the start of the journal.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The performance counter at the start.
    pub start: Ticks,
    /// Its ticks a second.
    pub frequency: u64,
    /// What was found out, in this order.
    pub facts: Vec<Fact>,
    /// Calls of the system, in the order in which they began.
    pub calls: Vec<Call>,
    /// When each phase began.
    pub phases: Vec<(Duration, Phase)>,
    /// How it went, at intervals.
    pub health: Vec<(Duration, Status)>,
    /// What the callbacks of each session saw.
    pub sessions: Vec<Observed>,
}

/// Something found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Duration,
    /// About what.
    pub name: String,
    /// What.
    pub value: String,
}

/// One call of the system, or several that were the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub at: Duration,
    /// The function.
    pub name: &'static str,
    /// What it was given.
    pub arguments: String,
    /// How long it took, and its code (0: it succeeded); `None` as long as it has not returned.
    pub end: Option<(Duration, u32)>,
    /// How many more calls of these arguments and this code came later.
    pub repeats: u32,
    /// The longest of those.
    pub longest: Duration,
}

/// A part of a recording, as far as the calls tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The sessions run, and the kernel's events are not on.
    #[default]
    Before,
    /// The first second after they were switched on.
    FirstSecond,
    /// After that.
    Sampling,
    /// The kernel's events are off again, and its session runs.
    Off,
    /// The kernel session was stopped.
    Stopped,
}

/// An event, by what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct What {
    /// The provider or task.
    pub provider: Guid,
    /// Classic or not, and its id.
    pub kind: Kind,
    /// The opcode.
    pub opcode: u8,
    /// The version.
    pub version: u8,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was written, on the session's clock.
    pub time: Ticks,
    /// When it came.
    pub came: Ticks,
    /// In which phase it came.
    pub phase: Phase,
    /// What it is.
    pub what: What,
    /// The processor that wrote it.
    pub processor: u16,
    /// The process in its header.
    pub pid: u32,
    /// The thread in its header.
    pub tid: u32,
    /// Bytes of its payload.
    pub size: usize,
}

/// Records of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub events: u64,
    /// The earliest time in a header.
    pub first: Ticks,
    /// The latest.
    pub last: Ticks,
}

/// The first records of a kind, and how many there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Few {
    /// The first, at most [`FEW`].
    pub first: Vec<Seen>,
    /// All.
    pub all: u64,
}

/// Records of a kind that are kept whole.
pub const FEW: usize = 50;

/// What came from one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfProcessor {
    /// Records.
    pub events: u64,
    /// CPU samples among them.
    pub samples: u64,
    /// Records with a time near the clock's when they came; only these count below.
    pub on_clock: u64,
    /// The longest time in ticks from the writing of a record to its coming.
    pub latest: i64,
    /// The sum of these times.
    pub late: i64,
}

/// What the callback of one session saw.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Which session.
    pub session: &'static str,
    /// The first records.
    pub first: Few,
    /// By phase and kind.
    pub counts: BTreeMap<(Phase, What), Count>,
    /// Records whose time is more than five seconds from the clock.
    pub off_clock: Few,
    /// Records by which a session says that it lost something.
    pub lost: Few,
    /// By processor.
    pub processors: BTreeMap<u16, OfProcessor>,
    /// Events of the CLR's providers, by process and id.
    pub clr: BTreeMap<(u32, u16), Count>,
}

/// A record is off the clock by more than this.
const OFF_CLOCK_SECONDS: i64 = 5;
const SAMPLED_PROFILE: u8 = 46;

impl Observed {
    /// Takes a record that came at `came`, on a clock of `frequency` ticks a second.
    pub fn event(&mut self, event: &Event<'_>, came: Ticks, phase: Phase, frequency: u64) {
        let what =
            What { provider: event.provider, kind: event.kind, opcode: event.opcode, version: event.version };
        let seen = Seen {
            time: event.time,
            came,
            phase,
            what,
            processor: event.processor,
            pid: event.pid,
            tid: event.tid,
            size: event.payload.len(),
        };
        self.first.take(seen);
        let late = came.0.saturating_sub(event.time.0);
        let limit = i64::try_from(frequency).unwrap_or(i64::MAX).saturating_mul(OFF_CLOCK_SECONDS);
        let is_off = late.checked_abs().is_none_or(|late| late > limit);
        if is_off {
            self.off_clock.take(seen);
        }
        if event.provider == LOST_EVENT {
            self.lost.take(seen);
        }
        count(&mut self.counts, (phase, what), event.time);
        if let (CLR | CLR_RUNDOWN, Kind::Manifest(id)) = (event.provider, event.kind) {
            count(&mut self.clr, (event.pid, id), event.time);
        }
        let is_sample = event.provider == PERF_INFO && event.opcode == SAMPLED_PROFILE;
        let of = self.processors.entry(event.processor).or_default();
        of.events += 1;
        of.samples += u64::from(is_sample);
        if !is_off {
            of.latest = if of.on_clock == 0 { late } else { of.latest.max(late) };
            of.late = of.late.saturating_add(late);
            of.on_clock += 1;
        }
    }
}

impl Few {
    fn take(&mut self, seen: Seen) {
        self.all += 1;
        if self.first.len() < FEW {
            self.first.push(seen);
        }
    }
}

fn count<K: Ord>(all: &mut BTreeMap<K, Count>, key: K, time: Ticks) {
    let count = all.entry(key).or_insert(Count { events: 0, first: time, last: time });
    count.events += 1;
    (count.first, count.last) = (count.first.min(time), count.last.max(time));
}

/// Watches the records of one session as they come.
#[derive(Clone, Debug)]
pub struct Observer {
    seen: Arc<Mutex<Observed>>,
    frequency: u64,
    now: fn() -> (Ticks, Phase),
}

impl Observer {
    /// An observer of this session; `now` gives the moment on the session's clock.
    pub fn new(session: &'static str, frequency: u64, now: fn() -> (Ticks, Phase)) -> Observer {
        let seen = Observed { session, ..Observed::default() };
        Observer { seen: Arc::new(Mutex::new(seen)), frequency, now }
    }

    /// Takes a record.
    pub fn event(&self, event: &Event<'_>) {
        let (came, phase) = (self.now)();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.event(event, came, phase, self.frequency);
    }

    /// What it has seen up to now.
    pub fn seen(&self) -> Observed {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NO_ID, Pointer};

    fn event(time: i64, provider: Guid, opcode: u8, processor: u16) -> Event<'static> {
        Event {
            time: Ticks(time),
            provider,
            kind: Kind::Classic,
            opcode,
            version: 2,
            pointer: Pointer::Bits64,
            processor,
            pid: NO_ID,
            tid: 7,
            items: &[],
            payload: &[0; 16],
        }
    }

    #[test]
    fn records_are_counted_by_phase_and_kind_with_their_times() {
        let mut seen = Observed::default();
        for (time, phase) in [(10, Phase::Before), (20, Phase::Sampling), (15, Phase::Sampling)] {
            seen.event(&event(time, PERF_INFO, SAMPLED_PROFILE, 3), Ticks(21), phase, 1000);
        }
        let what = What { provider: PERF_INFO, kind: Kind::Classic, opcode: SAMPLED_PROFILE, version: 2 };
        assert_eq!(
            seen.counts.get(&(Phase::Sampling, what)),
            Some(&Count { events: 2, first: Ticks(15), last: Ticks(20) })
        );
        assert_eq!(seen.counts.len(), 2);
        assert_eq!((seen.off_clock.all, seen.lost.all), (0, 0));
        let of = seen.processors.get(&3).unwrap();
        assert_eq!((of.events, of.samples, of.latest, of.late), (3, 3, 11, 18));
    }

    #[test]
    fn what_is_off_the_clock_or_tells_of_losses_is_kept_but_not_without_limit() {
        let mut seen = Observed::default();
        // FILETIME in a session of raw times, one that lags, one that is in time.
        for time in [133_000_000_000_000_000, i64::MIN, 0, 6000] {
            seen.event(&event(time, LOST_EVENT, 32, 0), Ticks(6001), Phase::Sampling, 1000);
        }
        let off: Vec<i64> = seen.off_clock.first.iter().map(|seen| seen.time.0).collect();
        assert_eq!(off, [133_000_000_000_000_000, i64::MIN, 0]);
        assert_eq!(seen.lost.all, 4);
        let of = seen.processors.get(&0).unwrap();
        assert_eq!((of.events, of.on_clock, of.latest, of.late), (4, 1, 1, 1), "a wrong time is not late");
        (0..1000).for_each(|_| seen.event(&event(0, LOST_EVENT, 32, 0), Ticks(9000), Phase::Stopped, 1000));
        assert_eq!(
            (seen.off_clock.all, seen.off_clock.first.len(), seen.first.first.len()),
            (1003, FEW, FEW)
        );
    }
}
