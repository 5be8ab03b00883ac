//! Processes and those that they started.

use rustc_hash::FxHashMap;

use crate::event::{NO_ID, Ticks};

use super::Trace;
use super::processes::Process;

impl Trace {
    /// Adds to `chosen` (by [`ProcessId`](super::ProcessId)) the processes that the chosen ones started, and those that
    /// these started in turn.
    ///
    /// A process is its parent's by the parent's id, which may have had several owners: it began while the parent was
    /// there. Of two that were there before the recording the id decides, unless the system said when each was created.
    pub fn families(&self, mut chosen: Vec<bool>) -> Vec<bool> {
        chosen.resize(self.processes.len(), false);
        let mut children: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, process) in self.processes.iter().enumerate() {
            children.entry(process.parent_pid).or_default().push(index);
        }
        for of_one in children.values_mut() {
            of_one.sort_by_key(|index| self.processes.get(*index).map(begin));
        }
        let mut parents: Vec<usize> =
            (0..chosen.len()).filter(|index| chosen.get(*index) == Some(&true)).collect();
        while let Some(parent) = parents.pop().and_then(|index| self.processes.get(index)) {
            // 0 is the parent of whatever has none.
            let born = children.get(&parent.pid).filter(|_| !matches!(parent.pid, 0 | NO_ID));
            let born = born.map_or(&[][..], Vec::as_slice);
            let began = |index: &usize| self.processes.get(*index).map(begin);
            let first = born.partition_point(|index| began(index) < Some(begin(parent)));
            for index in born.iter().skip(first).take_while(|index| began(index) <= Some(end(parent))) {
                let is_child = self.processes.get(*index).is_some_and(|child| may_be_child(child, parent));
                if let Some(known) = chosen.get_mut(*index).filter(|known| is_child && !**known) {
                    *known = true;
                    parents.push(*index);
                }
            }
        }
        chosen
    }
}

fn begin(process: &Process) -> Ticks {
    process.life.start.unwrap_or(Ticks(i64::MIN))
}

fn end(process: &Process) -> Ticks {
    process.life.end.unwrap_or(Ticks(i64::MAX))
}

/// What is known beside the times of the trace of a process with the id of its parent.
fn may_be_child(child: &Process, parent: &Process) -> bool {
    let older = child.created.zip(parent.created).is_some_and(|(child, parent)| child < parent);
    child.pid != parent.pid && !older
}
