//! Which samples are kept, and the account of those that are not.

use serde::Serialize;

use crate::event::Ticks;
use crate::trace::{Context, Parts, Sample, Trace};

/// Keeps samples. Empty fields keep all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Processes by id.
    pub pids: Vec<u32>,
    /// Processes by the executable's name, in any case, with or without `.exe`.
    pub names: Vec<String>,
    /// Threads by id.
    pub tids: Vec<u32>,
    /// Seconds since the recording's start, inclusive.
    pub from: Option<f64>,
    /// Seconds since the recording's start, exclusive.
    pub to: Option<f64>,
}

/// Where every sample went: `total = kept + idle + filtered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Samples in the recording.
    pub total: u64,
    /// Samples of the idle thread outside DPCs and interrupts.
    pub idle: u64,
    /// Samples that the filter left out.
    pub filtered: u64,
    /// Of these, by the process.
    #[serde(skip)]
    pub filtered_by_process: u64,
    /// Of these, by the thread.
    #[serde(skip)]
    pub filtered_by_thread: u64,
    /// Of these, by the time.
    #[serde(skip)]
    pub filtered_by_time: u64,
    /// Samples in the profile.
    pub kept: u64,
    /// Of the kept: in deferred procedure calls.
    pub dpc: u64,
    /// Of the kept: in interrupt service routines.
    pub isr: u64,
    /// Of the kept: by the parts of their stacks.
    pub stacks: StackBalance,
}

/// Kept samples by the parts of their stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackBalance {
    /// User frames only.
    pub user_only: u64,
    /// Kernel and user frames.
    pub kernel_and_user: u64,
    /// Kernel frames only.
    pub kernel_only: u64,
    /// No stack.
    pub none: u64,
}

impl Filter {
    /// True if it keeps every sample.
    pub fn keeps_all(&self) -> bool {
        *self == Filter::default()
    }

    /// The samples to keep, in order of time, and the account of all.
    pub(super) fn apply<'t>(&self, trace: &'t Trace) -> (Vec<&'t Sample>, Balance) {
        let processes: Vec<bool> =
            trace.processes.iter().map(|process| self.keeps_process(process)).collect();
        let from = self.from.map(|seconds| trace.clock.at(seconds));
        let to = self.to.map(|seconds| trace.clock.at(seconds));
        let in_time = |time: Ticks| from.is_none_or(|from| from <= time) && to.is_none_or(|to| time < to);
        let mut balance = Balance {
            total: trace.sample_count(),
            idle: trace.idle.samples,
            filtered_by_process: trace.unwanted,
            ..Balance::default()
        };
        let mut kept = Vec::new();
        for sample in &trace.samples {
            if !processes.get(sample.process.0 as usize).copied().unwrap_or(true) {
                balance.filtered_by_process += 1;
            } else if !self.tids.is_empty() && !self.tids.contains(&sample.tid) {
                balance.filtered_by_thread += 1;
            } else if !in_time(sample.time) {
                balance.filtered_by_time += 1;
            } else {
                balance.keep(sample);
                kept.push(sample);
            }
        }
        balance.filtered =
            balance.filtered_by_process + balance.filtered_by_thread + balance.filtered_by_time;
        (kept, balance)
    }

    /// True if it keeps the samples of this process, as far as the process decides.
    pub fn keeps_process(&self, process: &crate::trace::Process) -> bool {
        let all = self.pids.is_empty() && self.names.is_empty();
        all || self.pids.contains(&process.pid)
            || self.names.iter().any(|name| same_name(name, process.label()))
    }
}

impl Balance {
    fn keep(&mut self, sample: &Sample) {
        self.kept += 1;
        match sample.context {
            Context::Dpc => self.dpc += 1,
            Context::Isr => self.isr += 1,
            Context::Thread => {}
        }
        *match sample.parts() {
            Parts::User => &mut self.stacks.user_only,
            Parts::KernelAndUser => &mut self.stacks.kernel_and_user,
            Parts::Kernel => &mut self.stacks.kernel_only,
            Parts::None => &mut self.stacks.none,
        } += 1;
    }
}

/// Compares executable names in any case; the ending may be left out of `wanted`.
pub fn same_name(wanted: &str, name: &str) -> bool {
    let bare = |name: &str| {
        let lower = name.to_lowercase();
        lower.strip_suffix(".exe").map(str::to_owned).unwrap_or(lower)
    };
    bare(wanted) == bare(name)
}

#[cfg(test)]
mod tests {
    use super::same_name;

    #[test]
    fn names_compare_in_any_case_with_or_without_exe() {
        assert!(same_name("ORDERS", "orders.exe"));
        assert!(same_name("orders.exe", "Orders.EXE"));
        assert!(same_name("System", "System"));
        assert!(!same_name("order", "orders.exe"));
    }
}
