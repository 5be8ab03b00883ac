//! The sampling interval, which is the machine's: it outlives every program, and runs that go on at once share it.
//!
//! The names of a run's sessions keep the interval that was the machine's own before the first run. A run that finds
//! others, alive or dead, takes it from them. So the last one knows what to put back: the last run to end, the next one
//! after a kill, or `sessions --stop`. While one run samples no other changes its rate.

use super::error::SessionError;
use super::etw;
use super::missing::Missing;
use super::running::{self, Sampler};
use super::undo::{Guard, Undo};

/// What Windows starts with, for where it does not say.
const USUAL: u32 = 10_000;

/// The interval at the start of a run, in 100 ns.
#[derive(Debug)]
pub(super) struct Found {
    in_force: Result<u32, SessionError>,
    sampler: Option<Sampler>,
    /// The machine's own.
    pub(super) own: Option<u32>,
}

/// What samples are taken at.
#[derive(Debug)]
pub(super) struct InForce {
    /// In 100 ns.
    pub(super) interval: u32,
    /// Puts the machine's own back.
    pub(super) guard: Option<Guard>,
    /// Why it is another interval than was asked for.
    pub(super) missing: Option<Missing>,
}

/// Looks for it; `left` is what runs that crashed say.
pub(super) fn find(left: Option<u32>) -> Found {
    const TRIES: u32 = 3;
    let mut in_force = etw::sampling_interval();
    let mut sampler = None;
    for _ in 0..TRIES {
        sampler = running::other_sampler();
        let now = etw::sampling_interval();
        // Otherwise a run began or ended in between, and this may be its interval.
        if std::mem::replace(&mut in_force, now.clone()) == now {
            break;
        }
    }
    let kept = sampler.and_then(|sampler| sampler.interval).or(left);
    Found { own: kept.or_else(|| in_force.as_ref().ok().copied()), in_force, sampler }
}

impl Found {
    /// Asks for an interval, in 100 ns.
    pub(super) fn change(self, asked: u32) -> InForce {
        let before = match self.in_force {
            Ok(before) => before,
            Err(error) => {
                return InForce { interval: USUAL, guard: None, missing: Some(Missing::Rate(error)) };
            }
        };
        let mut missing = None;
        let set = || match self.sampler {
            _ if before == asked => Ok(()),
            None => etw::set_sampling_interval(asked),
            Some(Sampler { pid, .. }) => {
                missing = Some(Missing::RateOfAnother(pid));
                Ok(())
            }
        };
        let guard = match Guard::new(Undo::Interval(self.own.unwrap_or(before)), set) {
            Ok((guard, ())) => Some(guard),
            Err(error) => {
                missing = Some(Missing::Rate(error));
                None
            }
        };
        // A rate that the machine cannot do becomes one that it can.
        let interval = etw::sampling_interval().unwrap_or_else(|error| {
            let changed = guard.is_some() && missing.is_none();
            missing.get_or_insert(Missing::Rate(error));
            if changed { asked } else { before }
        });
        InForce { interval, guard, missing }
    }
}

/// Puts the machine's own interval back, in 100 ns; false if nothing was to be done: it is in force, or another run
/// samples, which will put it back.
pub(super) fn put_back(own: u32) -> Result<bool, SessionError> {
    if etw::sampling_interval().is_ok_and(|now| now == own) || running::other_sampler().is_some() {
        return Ok(false);
    }
    etw::set_sampling_interval(own).map(|()| true)
}
