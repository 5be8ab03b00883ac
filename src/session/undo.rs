//! What must be undone whatever happens: sessions outlive the process that started them, and the sampling interval
//! belongs to the machine.
//!
//! A [`Guard`] does a thing and undoes it when it is dropped, so errors and panics are covered; the list of all guards
//! lets a second Ctrl-C undo everything from its own thread before the process ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{NO_SUCH_SESSION, SessionError};
use super::etw;

/// One thing to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Stop the session of this name.
    Session(String),
    /// Set the sampling interval back to this, in 100 ns.
    Interval(u32),
}

static PENDING: Mutex<Vec<Undo>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<Undo>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Undoes when dropped.
#[derive(Debug)]
pub struct Guard(Undo);

impl Guard {
    /// Does what `undo` undoes. [`everything`] cannot come in between.
    pub fn new<T>(
        undo: Undo,
        act: impl FnOnce() -> Result<T, SessionError>,
    ) -> Result<(Guard, T), SessionError> {
        let mut pending = pending();
        match act() {
            Ok(value) => {
                pending.push(undo.clone());
                Ok((Guard(undo), value))
            }
            Err(error) => {
                // A start that fails half-way leaves its session; an interval that is refused is not set.
                if let Undo::Session(_) = undo
                    && let Err(second) = run(&undo)
                {
                    eprintln!("warning: {second}{}", remains(&undo));
                }
                Err(error)
            }
        }
    }

    /// There is nothing to undo any more.
    pub fn disarm(&mut self) {
        pending().retain(|undo| *undo != self.0);
    }

    /// Undoes it now. After an error it is tried once more when the guard is dropped.
    pub fn undo(&mut self) -> Result<(), SessionError> {
        let mut pending = pending();
        if pending.contains(&self.0) {
            run(&self.0)?;
            pending.retain(|undo| *undo != self.0);
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            eprintln!("warning: {error}{}", remains(&self.0));
            pending().retain(|undo| *undo != self.0);
        }
    }
}

fn remains(undo: &Undo) -> String {
    match undo {
        Undo::Session(name) => {
            format!("; the session still runs, and `etwprof sessions --stop {name}` stops it")
        }
        Undo::Interval(_) => "; it stays as it is until the system starts again".to_owned(),
    }
}

fn run(undo: &Undo) -> Result<(), SessionError> {
    match undo {
        Undo::Session(name) => match etw::stop(name) {
            Err(error) if error.code() == Some(NO_SUCH_SESSION) => Ok(()),
            other => other.map(drop),
        },
        Undo::Interval(interval) => etw::set_sampling_interval(*interval),
    }
}

/// Undoes everything that is still to be undone, the newest first, and lets no thread do anything more that would have
/// to be undone. For the way out that runs no destructors.
pub fn everything() {
    let mut all = pending();
    for undo in all.drain(..).rev() {
        if let Err(error) = run(&undo).or_else(|_| run(&undo)) {
            eprintln!("warning: {error}{}", remains(&undo));
        }
    }
    std::mem::forget(all);
}
