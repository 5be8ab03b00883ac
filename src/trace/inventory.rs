//! What the system's own lists say of the time before the recording, merged under the events.
//!
//! An event of the same process, thread or image is always believed first: the lists were made in a moment, and
//! after the events had begun to come.

use crate::sink::Inventory;

use super::builder::Builder;

/// From where it is known what ran already when the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Records of processes, threads and images in the kernel's list at the start.
    pub listed_at_start: u64,
    /// The same in its list at the end.
    pub listed_at_end: u64,
    /// Mappings of images that only the system's own list has, which a live recording takes at its start.
    pub only_in_inventory: u64,
    /// Processes that the system did not let a live recording look into.
    pub closed: u32,
    /// True if the system did not say where kernel modules are.
    pub kernel_is_hidden: bool,
}

impl Builder {
    /// Fills with the inventory what no event reported.
    pub(super) fn take_inventory(&mut self, inventory: &Inventory) {
        let (from, until) = (inventory.from, inventory.until);
        for process in &inventory.processes {
            self.processes.there(process, from, until);
        }
        for (tid, pid) in &inventory.threads {
            self.threads.there(*tid, *pid, from, until);
        }
        self.before.only_in_inventory +=
            self.images.there(&inventory.modules, from, until, &mut self.processes);
        self.before.closed = inventory.closed;
        self.before.kernel_is_hidden = inventory.kernel_is_hidden;
    }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
