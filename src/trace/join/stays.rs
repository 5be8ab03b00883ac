//! What waits for its user part while its thread is in the kernel.

use crate::event::Ticks;

use crate::trace::awaiting::{Awaiting, Named, Owner, Part};
use crate::trace::pieces::Pieces;

/// A thread's stay in the kernel.
#[derive(Debug)]
pub(super) struct InKernel {
    pub(super) samples: Waiting,
    pub(super) others: Waiting,
    /// The time of the last user fragment.
    pub(super) left: Ticks,
    /// The event that it named.
    pub(super) named: Ticks,
}

/// What waits for its user part, by its index.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) list: Vec<u32>,
    /// The time of the last sample in user mode while something waited.
    pub(super) in_user_mode: Ticks,
}

impl Waiting {
    /// Its thread is in user mode.
    pub(super) fn left_at(&mut self, time: Ticks) {
        if !self.list.is_empty() {
            self.in_user_mode = time;
        }
    }
}

/// Those that take a user fragment.
pub(super) struct Takers {
    pub(super) list: Vec<u32>,
    /// What waited before this is of a former stay in the kernel.
    pub(super) since: Option<Ticks>,
}

impl Waiting {
    pub(super) fn take(&mut self, named: Named) -> Takers {
        // At one tick of a coarse clock nobody knows which came first.
        let is_over = self.in_user_mode < named.written || self.in_user_mode <= named.time;
        Takers { list: std::mem::take(&mut self.list), since: is_over.then_some(self.in_user_mode) }
    }
}

impl Takers {
    /// Drops those of a former stay.
    pub(super) fn stay<F>(&mut self, all: &Pieces<Awaiting<F>>) {
        if let Some(since) = self.since {
            self.list.retain(|index| all.get(*index as usize).is_some_and(|one| one.time >= since));
        }
    }

    pub(super) fn claim<F: Owner>(&mut self, all: &mut Pieces<Awaiting<F>>, index: u32, named: Named) {
        if let Some(one) = all.get_mut(index as usize) {
            one.name(named);
            self.list.push(index);
        }
    }

    pub(super) fn give<F>(&self, all: &mut Pieces<Awaiting<F>>, part: Part) {
        for index in &self.list {
            if let Some(one) = all.get_mut(*index as usize) {
                one.user = part;
            }
        }
    }

    /// The list, for its memory.
    pub(super) fn emptied(mut self) -> Vec<u32> {
        self.list.clear();
        self.list
    }
}
