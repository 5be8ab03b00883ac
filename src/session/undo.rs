//! What must be undone whatever happens: sessions outlive the process that started them, the sampling interval belongs
//! to the machine, and a program that was started suspended waits for ever.
//!
//! A [`Guard`] undoes a thing when it is dropped, so errors and panics are covered; the list of all guards lets a second
//! Ctrl-C undo everything from its own thread before the process ends.

use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};

use super::error::{NO_SUCH_SESSION, SessionError, Step};
use super::{etw, interval, process};

/// One thing to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Stop the session of this name.
    Session(String),
    /// Set the sampling interval back to this, in 100 ns.
    Interval(u32),
    /// End the program of this id, which was started suspended and has not run yet.
    Program(u32),
}

/// Held while something is done or undone, so that nothing is done behind the back of [`everything`].
static ACTING: Mutex<()> = Mutex::new(());
/// What is to be undone, in the order in which it was done. Never held during a call of the system.
static PENDING: Mutex<Vec<Undo>> = Mutex::new(Vec::new());

static REPORT: OnceLock<fn(&Undo, &SessionError)> = OnceLock::new();

/// From now on `report` is called with whatever cannot be undone, and why: on any thread, perhaps the last thing that
/// happens in this process. Only the first one counts.
pub fn on_failure(report: fn(&Undo, &SessionError)) {
    let _ = REPORT.set(report);
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True for a program that was started suspended and has not run yet.
pub(super) fn is_suspended(pid: u32) -> bool {
    lock(&PENDING).contains(&Undo::Program(pid))
}

fn forget(undo: &Undo) {
    lock(&PENDING).retain(|pending| pending != undo);
}

/// Undoes when dropped.
#[derive(Debug)]
pub struct Guard(Undo);

impl Guard {
    /// Does what `undo` undoes. [`everything`] does not come in between.
    pub(super) fn new<T>(
        undo: Undo,
        act: impl FnOnce() -> Result<T, SessionError>,
    ) -> Result<(Guard, T), SessionError> {
        let _acting = lock(&ACTING);
        // Before it is done: where the call never returns, `everything` still undoes it.
        lock(&PENDING).push(undo.clone());
        match act() {
            Ok(value) => Ok((Guard(undo), value)),
            Err(error) => {
                // A start that fails half-way leaves its session; an interval that is refused is not set.
                if let Undo::Session(_) = undo
                    && let Err(second) = run_within(&undo, PATIENCE)
                {
                    report(&undo, &second);
                }
                forget(&undo);
                Err(error)
            }
        }
    }

    /// Starts a program that is ended if the guard is dropped; `pid` tells its id.
    pub(super) fn program<T>(
        start: impl FnOnce() -> std::io::Result<T>,
        pid: impl FnOnce(&T) -> u32,
    ) -> std::io::Result<(Guard, T)> {
        let _acting = lock(&ACTING);
        let program = start()?;
        let undo = Undo::Program(pid(&program));
        lock(&PENDING).push(undo.clone());
        Ok((Guard(undo), program))
    }

    /// There is nothing to undo any more.
    pub(super) fn disarm(&mut self) {
        forget(&self.0);
    }

    /// Undoes it now. After an error it is tried once more when the guard is dropped.
    pub(super) fn undo(&mut self) -> Result<(), SessionError> {
        let _acting = lock(&ACTING);
        if lock(&PENDING).contains(&self.0) {
            run_within(&self.0, PATIENCE)?;
            forget(&self.0);
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            report(&self.0, &error);
            forget(&self.0);
        }
    }
}

fn report(undo: &Undo, why: &SessionError) {
    if let Some(report) = REPORT.get() {
        report(undo, why);
    }
}

fn run(undo: &Undo) -> Result<(), SessionError> {
    match undo {
        Undo::Session(name) => match etw::stop(name) {
            Err(error) if error.code() == Some(NO_SUCH_SESSION) => Ok(()),
            other => other.map(drop),
        },
        Undo::Interval(own) => interval::put_back(*own).map(drop),
        Undo::Program(pid) => process::end(*pid),
    }
}

/// What `run` does, for the case that it does not come back.
fn step(undo: &Undo) -> Step {
    match undo {
        Undo::Session(_) => Step::Stop,
        Undo::Interval(_) => Step::SetInterval,
        Undo::Program(_) => Step::End,
    }
}

/// Any of these calls may hang. This is for a thread that waits for it in any case.
const PATIENCE: Duration = Duration::from_secs(10);

fn run_within(undo: &Undo, patience: Duration) -> Result<(), SessionError> {
    run_all(vec![undo.clone()], patience).pop().map_or(Ok(()), |(_, error)| Err(error))
}

/// Undoes all of these at once, each on a thread of its own so that none holds up another, and waits for them no longer
/// than `patience`. Gives back those that failed or have not returned.
fn run_all(all: Vec<Undo>, patience: Duration) -> Vec<(Undo, SessionError)> {
    let until = Instant::now() + patience;
    let (done, results) = mpsc::channel();
    for undo in &all {
        let work = {
            let (undo, done) = (undo.clone(), done.clone());
            move || {
                let result = run(&undo);
                let _ = done.send((undo, result));
            }
        };
        // Without a thread it is done here, and may hang.
        if std::thread::Builder::new().name("undo".to_owned()).spawn(work.clone()).is_err() {
            work();
        }
    }
    drop(done);
    let mut open = all;
    let mut failed = Vec::new();
    while let Ok((undo, result)) = results.recv_timeout(until.saturating_duration_since(Instant::now())) {
        open.retain(|other| *other != undo);
        failed.extend(result.err().map(|error| (undo, error)));
    }
    failed.extend(open.into_iter().map(|undo| {
        let step = step(&undo);
        (undo, SessionError::NoAnswer { step })
    }));
    failed
}

/// What each step of [`everything`] may take; Windows gives a program five seconds when its window is closed.
const STEP: Duration = Duration::from_millis(700);

/// Undoes everything that is still to be undone, and lets no thread do anything more that would have to be undone. For
/// the way out that runs no destructors. Takes some two seconds at most, whatever hangs.
pub(super) fn everything() {
    let until = Instant::now() + STEP;
    let acting = loop {
        match ACTING.try_lock() {
            Ok(guard) => break Some(guard),
            Err(TryLockError::Poisoned(error)) => break Some(error.into_inner()),
            // That call hangs; what it does is in the list, too.
            Err(TryLockError::WouldBlock) if Instant::now() > until => break None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut all = mem::take(&mut *lock(&PENDING));
    // The interval is the whole machine's, and comes first.
    all.sort_by_key(|undo| !matches!(undo, Undo::Interval(_)));
    let interval = all.iter().find(|undo| matches!(undo, Undo::Interval(_))).cloned();
    let mut again: Vec<Undo> = run_all(all, STEP).into_iter().map(|(undo, _)| undo).collect();
    // It is looked at again, for another run that samples may have ended in the meantime and left it to this one.
    if let Some(interval) = interval.filter(|interval| !again.contains(interval)) {
        again.push(interval);
    }
    for (undo, error) in run_all(again, STEP) {
        report(&undo, &error);
    }
    mem::forget(acting);
}
