//! Writes down what a live recording does and sees, for a report of a fault. Off until [`start`]: then a call costs one
//! look at a flag.
//!
//! One journal for the process, as with `undo`, because calls are made in many places, one of them the thread of
//! Ctrl-C. A call is in it from its beginning, so a journal that is read while it hangs names it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

use crate::event::Ticks;

use super::diagnosis::{Call, Diagnosis, Fact, Observer, Phase};
use super::error::SessionError;
use super::status::Status;
use super::system;

static ON: AtomicBool = AtomicBool::new(false);
static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

struct Journal {
    began: Instant,
    kept: Diagnosis,
    observers: Vec<Observer>,
}

/// The same call is written down so many times; further ones are counted.
const ALIKE: usize = 3;
/// Looks at how it goes that are kept: ten minutes of them, the first and the last.
const HEALTH: usize = 1200;

fn journal() -> MutexGuard<'static, Option<Journal>> {
    JOURNAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on everything is written down.
pub fn start() {
    let kept = Diagnosis { start: ticks(), frequency: frequency(), ..Diagnosis::default() };
    *journal() = Some(Journal { began: Instant::now(), kept, observers: Vec::new() });
    ON.store(true, SeqCst);
    for (name, value) in system::facts() {
        fact(name, || value);
    }
}

/// True after [`start`].
pub(super) fn is_on() -> bool {
    ON.load(SeqCst)
}

/// What has been written down up to now, also while calls go on.
pub fn so_far() -> Diagnosis {
    let (mut kept, observers) = match &*journal() {
        Some(journal) => (journal.kept.clone(), journal.observers.clone()),
        None => return Diagnosis::default(),
    };
    kept.sessions = observers.iter().map(Observer::seen).collect();
    kept
}

/// How a call ended.
pub(super) trait Ended {
    /// 0, or the code of the failure.
    fn code(&self) -> u32;
}

impl Ended for u32 {
    fn code(&self) -> u32 {
        *self
    }
}

impl<T> Ended for Result<T, SessionError> {
    fn code(&self) -> u32 {
        self.as_ref().err().map_or(0, |error| error.code().unwrap_or(u32::MAX))
    }
}

/// Makes a call, and writes it down with its arguments, its time and its code.
pub(super) fn call<T: Ended>(
    name: &'static str,
    arguments: impl FnOnce() -> String,
    act: impl FnOnce() -> T,
) -> T {
    if !is_on() {
        return act();
    }
    let began = Instant::now();
    let place = journal().as_mut().map(|journal| {
        let at = began.duration_since(journal.began);
        let calls = &mut journal.kept.calls;
        calls.push(Call { at, name, arguments: arguments(), end: None, repeats: 0, longest: Duration::ZERO });
        calls.len() - 1
    });
    let ended = act();
    let end = (began.elapsed(), ended.code());
    if let (Some(place), Some(journal)) = (place, journal().as_mut()) {
        returned(&mut journal.kept.calls, place, end);
    }
    ended
}

/// Notes the end of the call at `place`, which becomes a count of an earlier one if there are enough like it.
fn returned(calls: &mut Vec<Call>, place: usize, end: (Duration, u32)) {
    let Some(call) = calls.get_mut(place) else { return };
    call.end = Some(end);
    let call = call.clone();
    let is_alike = |other: &&mut Call| {
        other.name == call.name
            && other.arguments == call.arguments
            && other.end.is_some_and(|(_, code)| code == end.1)
    };
    // Calls that began later stay where they are: their threads know their places.
    let is_last = place + 1 == calls.len();
    let mut alike = calls.iter_mut().take(place).filter(is_alike);
    if is_last && let Some(third) = alike.nth(ALIKE - 1) {
        third.repeats += 1;
        third.longest = third.longest.max(end.0);
        calls.pop();
    }
}

/// Writes down something found out.
pub(super) fn fact(name: &str, value: impl FnOnce() -> String) {
    if is_on()
        && let Some(journal) = journal().as_mut()
    {
        let at = journal.began.elapsed();
        journal.kept.facts.push(Fact { at, name: name.to_owned(), value: value() });
    }
}

/// Writes down how it goes.
pub(super) fn health(status: &Status) {
    if is_on()
        && let Some(journal) = journal().as_mut()
    {
        let now = (journal.began.elapsed(), status.clone());
        let health = &mut journal.kept.health;
        if health.len() == HEALTH {
            health.pop();
        }
        health.push(now);
    }
}

/// The phase as a number, and the clock when the kernel's events were switched on.
static PHASE: AtomicU8 = AtomicU8::new(0);
static SWITCHED_ON: AtomicI64 = AtomicI64::new(0);

/// A phase begins.
pub(super) fn phase(phase: Phase) {
    if !is_on() {
        return;
    }
    if phase == Phase::FirstSecond {
        SWITCHED_ON.store(ticks().0, SeqCst);
    }
    PHASE.store(phase as u8, SeqCst);
    if let Some(journal) = journal().as_mut() {
        journal.kept.phases.push((journal.began.elapsed(), phase));
    }
}

/// An observer for the records of a session, if the journal is on.
pub(super) fn observer(session: &'static str, frequency: u64) -> Option<Observer> {
    let mut journal = journal();
    let journal = journal.as_mut()?;
    let observer = Observer::new(session, frequency, now);
    journal.observers.push(observer.clone());
    Some(observer)
}

fn now() -> (Ticks, Phase) {
    const ALL: [Phase; 5] = [Phase::Before, Phase::FirstSecond, Phase::Sampling, Phase::Off, Phase::Stopped];
    let now = ticks();
    let phase = ALL.get(usize::from(PHASE.load(SeqCst))).copied().unwrap_or_default();
    let since = now.0.saturating_sub(SWITCHED_ON.load(SeqCst));
    let is_later = phase == Phase::FirstSecond && since > i64::try_from(frequency()).unwrap_or(i64::MAX);
    (now, if is_later { Phase::Sampling } else { phase })
}

fn ticks() -> Ticks {
    let mut ticks = 0;
    // SAFETY: the place lives through the call.
    unsafe { QueryPerformanceCounter(&mut ticks) };
    Ticks(ticks)
}

fn frequency() -> u64 {
    let mut ticks = 0;
    // SAFETY: the place lives through the call.
    unsafe { QueryPerformanceFrequency(&mut ticks) };
    u64::try_from(ticks).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &'static str) -> Call {
        let at = Duration::ZERO;
        Call { at, name, arguments: String::new(), end: None, repeats: 0, longest: Duration::ZERO }
    }

    #[test]
    fn calls_that_are_alike_are_counted_from_the_fourth_on() {
        let mut calls = Vec::new();
        for took in 1..=10 {
            calls.push(call("query"));
            let place = calls.len() - 1;
            returned(&mut calls, place, (Duration::from_millis(took), 0));
        }
        assert_eq!(calls.len(), 3);
        assert_eq!(
            calls.last().map(|last| (last.repeats, last.longest)),
            Some((7, Duration::from_millis(10)))
        );
        calls.push(call("query"));
        returned(&mut calls, 3, (Duration::ZERO, 5));
        assert_eq!(calls.len(), 4, "another code is another call");
    }
}
