//! How long a run waits for its servers: in silence, and in all.
//!
//! A search along a path with dead servers would wait for one after the other, file by file. So all searches of a run
//! share one budget of *silence*: time in which somebody waits and nothing arrives. Any answer gives all of it back. A
//! server that has answered before may use up what is left; the others share it, so that each is asked once. The second
//! budget is the time in which anybody waits, whether something arrives or not, and nothing gives it back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lookup::Outcome;

/// What all servers of a run may still cost.
pub(super) struct Budget {
    silence: Duration,
    /// In all; `None` without a limit.
    time: Option<Duration>,
    /// Servers that never answered and are not given up.
    strangers: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waits: Vec<Wait>,
    /// The present silence, and all waiting, up to `since`.
    silent: Duration,
    spent: Duration,
    /// Somebody has waited since then; `None` while nobody waits.
    since: Option<Instant>,
    heard: Option<Instant>,
    number: u64,
}

struct Wait {
    number: u64,
    server: String,
    file: String,
}

/// Ends the wait when it is dropped.
pub(super) struct Waiting<'a> {
    budget: &'a Budget,
    number: u64,
}

impl Budget {
    pub(super) fn new(silence: Duration, time: Option<Duration>, servers: usize) -> Budget {
        Budget { silence, time, strangers: AtomicUsize::new(servers), state: Mutex::default() }
    }

    /// How long it has been silent, with the server and the file that are waited for longest; `None` while nobody waits.
    pub(super) fn longest_wait(&self) -> Option<(Duration, String, String)> {
        let state = self.state();
        let wait = state.waits.first()?;
        Some((state.silent, wait.server.clone(), wait.file.clone()))
    }

    /// How long a server may be waited for; zero when the time is up.
    pub(super) fn patience(&self, stranger: bool) -> Duration {
        let silence = self.silence.saturating_sub(self.state().silent);
        let sharers = if stranger { self.strangers.load(Ordering::Relaxed).clamp(1, 1 << 16) } else { 1 };
        let share = silence / sharers as u32;
        self.time_left().map_or(share, |left| share.min(left))
    }

    /// What is left of the time in all.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.time.map(|time| time.saturating_sub(self.state().spent))
    }

    /// Why nobody is waited for any more, once that is so.
    pub(super) fn used_up(&self) -> Option<Outcome> {
        let state = self.state();
        match self.time {
            Some(time) if state.spent >= time => Some(self.time_up()),
            _ if state.silent >= self.silence => Some(Outcome::NoTime),
            _ => None,
        }
    }

    /// That the time in all is over.
    pub(super) fn time_up(&self) -> Outcome {
        Outcome::TimeUp { after: self.time.unwrap_or_default() }
    }

    /// A stranger answered, or is not asked again.
    pub(super) fn one_stranger_less(&self) {
        self.strangers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Begins to wait.
    pub(super) fn wait(&self, server: &str, file: &str) -> Waiting<'_> {
        let mut state = self.state();
        state.number += 1;
        let number = state.number;
        state.waits.push(Wait { number, server: server.to_owned(), file: file.to_owned() });
        state.since.get_or_insert_with(Instant::now);
        Waiting { budget: self, number }
    }

    /// Something came from a server.
    pub(super) fn heard(&self) {
        let mut state = self.state();
        state.silent = Duration::ZERO;
        state.heard = Some(Instant::now());
    }

    /// Whether something came since then, from any server.
    pub(super) fn heard_since(&self, begun: Instant) -> bool {
        self.state().heard.is_some_and(|heard| heard >= begun)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = state.since {
            let now = Instant::now();
            let more = now.saturating_duration_since(since);
            state.silent += more;
            state.spent += more;
            state.since = Some(now);
        }
        state
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.waits.retain(|wait| wait.number != self.number);
        if state.waits.is_empty() {
            state.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(3600);

    /// Lets time pass while somebody waits. An `Instant` cannot go back to before the machine was started.
    fn shift(budget: &Budget, by: u64) {
        let mut state = budget.state();
        if state.since.is_some() {
            let more = Duration::from_secs(by);
            (state.silent, state.spent) = (state.silent + more, state.spent + more);
        }
    }

    #[test]
    fn strangers_share_what_is_left_and_an_acquaintance_has_it_all() {
        let budget = Budget::new(SILENCE, None, 2);
        assert_eq!(budget.patience(true), SILENCE / 2);
        assert_eq!(budget.patience(false), SILENCE);
        budget.one_stranger_less();
        assert_eq!(budget.patience(true), SILENCE, "the only one left");
        budget.one_stranger_less();
        assert_eq!(budget.patience(true), SILENCE);
    }

    #[test]
    fn only_waiting_is_silence_and_an_answer_ends_it() {
        let budget = Budget::new(SILENCE, None, 1);
        assert!(budget.longest_wait().is_none());
        let (one, two) = (budget.wait("http://a", "x.pdb"), budget.wait("http://a", "y.pdb"));
        drop(one);
        shift(&budget, 100);
        let (silent, server, file) = budget.longest_wait().unwrap();
        assert!(silent >= Duration::from_secs(100), "{silent:?}");
        assert_eq!((server.as_str(), file.as_str()), ("http://a", "y.pdb"));
        drop(two);
        shift(&budget, 1000);
        assert!(
            budget.patience(false) <= SILENCE - Duration::from_secs(100),
            "not forgotten between two waits"
        );
        assert!(budget.patience(false) > SILENCE - Duration::from_secs(1000), "nobody waited");
        let three = budget.wait("http://a", "z.pdb");
        shift(&budget, 50);
        assert!(budget.patience(false) <= SILENCE - Duration::from_secs(150));
        budget.heard();
        assert!(budget.patience(false) > SILENCE - Duration::from_secs(50));
        shift(&budget, 3601);
        assert_eq!(budget.used_up(), Some(Outcome::NoTime));
        drop(three);
    }

    #[test]
    fn no_answer_gives_the_time_in_all_back() {
        let time = Duration::from_secs(500);
        let budget = Budget::new(SILENCE, Some(time), 1);
        let wait = budget.wait("http://a", "x.pdb");
        shift(&budget, 400);
        budget.heard();
        assert!(budget.patience(false) <= Duration::from_secs(100));
        assert_eq!(budget.used_up(), None);
        drop(wait);
        shift(&budget, 400);
        assert_eq!(budget.used_up(), None, "nobody waited");
        let wait = budget.wait("http://a", "x.pdb");
        shift(&budget, 100);
        budget.heard();
        assert_eq!(budget.used_up(), Some(Outcome::TimeUp { after: time }));
        assert_eq!(budget.patience(false), Duration::ZERO);
        drop(wait);
    }
}
