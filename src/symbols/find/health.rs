//! How a server does, as all searches of a run know it together.
//!
//! A server is *up*, *pausing* or *given up*. When it does not take a connection, drops it before it answers or is too
//! busy to answer, it pauses: nobody asks, and when the pause is over one search asks on behalf of all. Any other answer,
//! be it an error, makes it up again; another failure doubles the pause, until the outage has lasted too long. What a
//! server cannot mend by itself, such as a name that nobody knows or a certificate that is not accepted, ends it at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::budget::{Budget, Waiting};
use super::lookup::Outcome;

/// So many files in a row that failed for its sake, and a server that answers is given up too.
const MAX_STRIKES: u32 = 8;
/// Pauses do not become longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// One server's state in one run.
pub(super) struct Health {
    state: Mutex<State>,
    changed: Condvar,
    first_pause: Duration,
    longest_outage: Duration,
}

struct State {
    now: Now,
    /// Changes with `now`: what was begun in an earlier turn says nothing about the present one.
    turn: u64,
    strikes: u32,
    heard: Option<Instant>,
    /// Neither heard of nor given up.
    stranger: bool,
}

enum Now {
    Up,
    Pausing {
        /// When it must be over.
        end: Instant,
        until: Instant,
        pause: Duration,
        /// A search asks, to see whether it is up again.
        probed: bool,
    },
    /// With what all further files are answered.
    GivenUp(Outcome),
}

/// One file asked of one server.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) budget: &'a Budget,
    pub(super) health: &'a Health,
    pub(super) server: &'a str,
    pub(super) file: &'a str,
}

/// The leave to ask.
#[derive(Clone, Copy)]
pub(super) struct Leave {
    turn: u64,
    /// It is not known yet whether the server is up again.
    pub(super) is_probe: bool,
}

impl Health {
    /// The first pause of an outage, and how long one may last.
    pub(super) fn new(first_pause: Duration, longest_outage: Duration) -> Health {
        let state = State { now: Now::Up, turn: 0, strikes: 0, heard: None, stranger: true };
        Health { state: Mutex::new(state), changed: Condvar::new(), first_pause, longest_outage }
    }

    /// What further files are answered, if the server is given up.
    pub(super) fn given_up(&self) -> Option<Outcome> {
        match &self.state().now {
            Now::GivenUp(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Draws the conclusion from what came of a file: a server that failed for one file after the other is given up.
    /// A missing file says nothing against it.
    pub(super) fn judge(&self, budget: &Budget, failure: Option<&Outcome>) {
        let mut state = self.state();
        let end = match failure {
            Some(Outcome::Unreachable(why)) => Some(not_again(why)),
            Some(silent @ Outcome::Silent { .. }) => Some(silent.clone()),
            Some(Outcome::NoTime | Outcome::TimeUp { .. }) => None,
            Some(
                trouble @ (Outcome::ServerError { .. }
                | Outcome::TimedOut { .. }
                | Outcome::CutShort { .. }
                | Outcome::LogIn { .. }),
            ) => {
                state.strikes += 1;
                let end = not_again(&format!("{trouble}, {MAX_STRIKES} files in a row"));
                (state.strikes >= MAX_STRIKES).then_some(end)
            }
            _ => {
                state.strikes = 0;
                None
            }
        };
        if let Some(end) = end {
            self.give_up(&mut state, budget, end);
        }
    }

    fn give_up(&self, state: &mut State, budget: &Budget, end: Outcome) {
        if matches!(state.now, Now::GivenUp(_)) {
            return;
        }
        state.become_known(budget);
        state.turn_to(Now::GivenUp(end));
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turn_to(&mut self, now: Now) {
        self.now = now;
        self.turn += 1;
    }

    fn become_known(&mut self, budget: &Budget) {
        if std::mem::replace(&mut self.stranger, false) {
            budget.one_stranger_less();
        }
    }
}

impl<'a> Call<'a> {
    /// Waits until the server may be asked. Whose probe has just failed, steps `back`, so that another file is asked for
    /// next: one that brings the server down must not speak for all.
    ///
    /// # Errors
    /// It is not asked any more, and why.
    pub(super) fn leave(&self, back: bool) -> Result<Leave, Outcome> {
        let mut waiting: Option<Waiting<'a>> = None;
        let mut state = self.health.state();
        loop {
            if let Some(outcome) = self.budget.used_up() {
                return Err(outcome);
            }
            let patience = self.budget.patience(state.stranger);
            let turn = state.turn;
            let wait = match &mut state.now {
                Now::GivenUp(outcome) => return Err(outcome.clone()),
                Now::Up => return Ok(Leave { turn, is_probe: false }),
                Now::Pausing { probed: true, .. } => patience,
                Now::Pausing { until, pause, probed, .. } => {
                    let until = if back { *until + *pause / 4 } else { *until };
                    let wait = until.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        *probed = true;
                        return Ok(Leave { turn, is_probe: true });
                    }
                    wait.min(patience)
                }
            };
            waiting.get_or_insert_with(|| self.wait());
            // At the end of the patience the budget says why; until then it may round to nothing.
            let wait = wait.max(Duration::from_millis(1));
            state = self.health.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The connection failed before an answer, or the answer is late. Whether this file may be the cause: it began the
    /// outage. Who is `late` begins none, as others may have their answers meanwhile, but a probe that is late has failed.
    /// The server may have `asked` for a longer pause.
    pub(super) fn no_answer(&self, leave: Leave, why: &Outcome, late: bool, asked: Duration) -> bool {
        let why = match why {
            Outcome::Unreachable(why) => why.clone(),
            other => other.to_string(),
        };
        let mut state = self.health.state();
        if state.turn != leave.turn || late && matches!(state.now, Now::Up) {
            return late;
        }
        let (now, first) = (Instant::now(), self.health.first_pause.max(asked));
        let pausing = |end, pause| Now::Pausing { end, until: now + pause, pause, probed: false };
        let began = match state.now {
            Now::Up => {
                // Servers that nobody has heard of yet share the silence, in outages too: each is to be asked.
                let longest = self.health.longest_outage.min(self.budget.patience(state.stranger));
                state.turn_to(pausing(now + longest, first.min(longest)));
                true
            }
            Now::Pausing { end, pause, .. } => {
                let left = end.saturating_duration_since(now);
                if left.is_zero() {
                    self.health.give_up(&mut state, self.budget, not_again(&why));
                } else {
                    state.turn_to(pausing(end, (pause * 2).min(LONGEST_PAUSE).max(asked).min(left)));
                }
                false
            }
            Now::GivenUp(_) => false,
        };
        self.health.changed.notify_all();
        began
    }

    /// Something came.
    pub(super) fn heard(&self) {
        self.budget.heard();
        let mut state = self.health.state();
        state.heard = Some(Instant::now());
        state.become_known(self.budget);
        if matches!(state.now, Now::Pausing { .. }) {
            state.turn_to(Now::Up);
            self.health.changed.notify_all();
        }
    }

    /// It is there, and too busy to answer.
    pub(super) fn refused(&self) {
        self.budget.heard();
        self.health.state().become_known(self.budget);
    }

    /// Whether the server was never heard of.
    pub(super) fn is_stranger(&self) -> bool {
        self.health.state().stranger
    }

    /// How long the server may be waited for; zero when the time is up.
    pub(super) fn patience(&self) -> Duration {
        self.budget.patience(self.is_stranger())
    }

    /// Begins to wait.
    pub(super) fn wait(&self) -> Waiting<'a> {
        self.budget.wait(self.server, self.file)
    }

    /// Whether a wait that began at `begun` and lasted as long as it might says nothing against another try: this server
    /// sent something meanwhile, or the wait was `short` and another one did.
    pub(super) fn may_go_on(&self, begun: Instant, short: bool) -> bool {
        let state = self.health.state();
        !matches!(state.now, Now::GivenUp(_))
            && self.budget.used_up().is_none()
            && (state.heard.is_some_and(|heard| heard >= begun) || short && self.budget.heard_since(begun))
    }
}

fn not_again(why: &str) -> Outcome {
    Outcome::Unreachable(format!("not retried in this run: {why}"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn call<'a>(budget: &'a Budget, health: &'a Health) -> Call<'a> {
        Call { budget, health, server: "http://a", file: "x.pdb" }
    }

    fn refused(health: &Health) -> bool {
        matches!(health.given_up(), Some(Outcome::Unreachable(why)) if why.contains("refused"))
    }

    #[test]
    fn after_a_pause_one_search_asks_for_all() {
        let (budget, health) = (Budget::new(HOUR, None, 1), Health::new(Duration::from_millis(5), HOUR));
        let (call, lost) = (call(&budget, &health), Outcome::Unreachable("refused".to_owned()));
        let (one, two) = (call.leave(false).unwrap(), call.leave(false).unwrap());
        assert!(call.no_answer(one, &lost, false, Duration::ZERO), "it began the outage");
        assert!(!call.no_answer(two, &lost, false, Duration::ZERO), "it was asked before the outage");
        let probe = call.leave(false).unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| call.leave(false).unwrap().turn);
            call.heard();
            assert!(other.join().unwrap() > probe.turn, "it waited for the answer");
        });
        assert!(!call.no_answer(probe, &lost, false, Duration::ZERO), "it was up meanwhile");
        assert_eq!(health.given_up(), None);
    }

    #[test]
    fn an_outage_has_an_end() {
        let (budget, health) = (Budget::new(HOUR, None, 1), Health::new(Duration::ZERO, Duration::ZERO));
        let (call, lost) = (call(&budget, &health), Outcome::Unreachable("refused".to_owned()));
        assert!(call.no_answer(call.leave(false).unwrap(), &lost, false, Duration::ZERO));
        assert!(!refused(&health), "it is asked once more");
        assert!(!call.no_answer(call.leave(true).unwrap(), &lost, false, Duration::ZERO));
        assert!(refused(&health) && call.leave(false).is_err());
        assert_eq!(budget.patience(true), HOUR, "it shares the silence no longer");
    }

    #[test]
    fn whoever_waits_for_a_probe_is_released_when_the_time_is_up() {
        let time = Duration::from_millis(20);
        let (budget, health) = (Budget::new(HOUR, Some(time), 1), Health::new(HOUR, HOUR));
        let (call, lost) = (call(&budget, &health), Outcome::Unreachable("refused".to_owned()));
        assert!(call.no_answer(call.leave(false).unwrap(), &lost, false, Duration::ZERO));
        assert_eq!(call.leave(false).err(), Some(Outcome::TimeUp { after: time }));
    }

    #[test]
    fn files_that_fail_in_a_row_are_counted() {
        let (budget, health) = (Budget::new(HOUR, None, 1), Health::new(HOUR, HOUR));
        let trouble = Outcome::ServerError { status: 500, tries: 1 };
        for failure in [&trouble, &Outcome::NotThere, &trouble, &Outcome::NoTime] {
            for _ in 1..MAX_STRIKES {
                health.judge(&budget, Some(failure));
            }
        }
        assert_eq!(health.given_up(), None);
        health.judge(&budget, Some(&trouble));
        assert!(health.given_up().is_some());
    }

    #[test]
    fn another_try_needs_a_sign_of_life() {
        let budget = Budget::new(HOUR, None, 2);
        let (a, b) = (Health::new(HOUR, HOUR), Health::new(HOUR, HOUR));
        let begun = Instant::now();
        assert!(!call(&budget, &a).may_go_on(begun, true));
        call(&budget, &b).heard();
        assert!(call(&budget, &a).may_go_on(begun, true), "the wait was cut short for a silence that ended");
        assert!(!call(&budget, &a).may_go_on(begun, false));
        call(&budget, &a).heard();
        assert!(call(&budget, &a).may_go_on(begun, false));
        a.judge(&budget, Some(&Outcome::Unreachable("no such host".to_owned())));
        assert!(!call(&budget, &a).may_go_on(begun, true));
    }
}
