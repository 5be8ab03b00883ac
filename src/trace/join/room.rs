//! Room for samples: those that nobody wants are dropped, and those that are alike become one.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::event::{NO_ID, Ticks};
use crate::events::kernel;

use super::Join;
use crate::trace::awaiting::{Awaiting, Part, Swept, sweep};
use crate::trace::merging::{Merger, Merging, Section};
use crate::trace::processes::{ThreadId, Threads};
use crate::trace::sample::ANY_PROCESSOR;

/// Longer than any sampling interval that has been seen, in 100 ns.
const LONGEST_INTERVAL: u32 = 10_000_000;

/// Below so many samples, dropping some is not worth it.
pub(super) const FEW: usize = 1 << 16;

impl Join {
    /// Merges samples once they take more memory than they may.
    pub(in crate::trace) fn merge(&mut self, merging: Merging) {
        self.merge_at = merging.most;
        self.merging = Some(merging);
    }

    /// True when it is time to [`sweep`](Join::sweep).
    #[inline]
    pub(in crate::trace) fn is_sweep_due(&self) -> bool {
        let samples = self.samples.len();
        samples >= self.merge_at || samples + self.others.len() >= self.sweep_at
    }

    /// Drops the samples that are known to be unwanted, and merges others if they are too many. `intervals` follow them:
    /// each sampling interval, with the number of samples before it.
    pub(in crate::trace) fn sweep(&mut self, now: Ticks, threads: &Threads, intervals: &mut [(usize, u32)]) {
        let wanted = self.wanted.as_ref();
        let is_unwanted = |pid: u32| pid != NO_ID && wanted.is_some_and(|wanted| !wanted.contains(&pid));
        if wanted.is_some() {
            let mut unwanted = 0;
            let samples = sweep(&mut self.samples, |_, _, one| {
                let is_unwanted = is_unwanted(one.pid);
                unwanted += u64::from(one.count) * u64::from(is_unwanted);
                !is_unwanted
            });
            let others = sweep(&mut self.others, |_, _, one| !is_unwanted(one.pid));
            self.unwanted += unwanted;
            self.moved(&samples, Some(&others), intervals);
            self.sweep_at = FEW.max(2 * (self.samples.len() + self.others.len()));
        }
        let Some(mut merging) = self.merging.take() else { return };
        if self.samples.len() >= self.merge_at {
            merging.begin();
            loop {
                let (swept, waiting) = self.merge_samples(&merging, now, threads, intervals);
                self.moved(&swept, None, intervals);
                if !merging.is_coarser(self.samples.len(), waiting) {
                    break;
                }
            }
            // What else is gone through each time must not be more than what is gained.
            let beside = self.threads.len() + self.others.len() + intervals.len();
            self.merge_at = merging.next(self.samples.len()).max(self.samples.len() + beside / 2);
        }
        self.merging = Some(merging);
    }

    /// Follows samples, and perhaps others, to where they are now.
    fn moved(&mut self, samples: &Swept, others: Option<&Swept>, intervals: &mut [(usize, u32)]) {
        for thread in self.threads.values_mut() {
            let waiting = [(&mut thread.samples, Some(samples)), (&mut thread.others, others)];
            for (waiting, swept) in waiting {
                let Some(swept) = swept else { continue };
                waiting.list.retain_mut(|index| match swept.place(*index) {
                    Some(place) => {
                        *index = place;
                        true
                    }
                    None => false,
                });
            }
        }
        for (before, _) in intervals {
            *before = samples.before(*before).unwrap_or(self.samples.len());
        }
    }

    /// Merges samples that nothing more can come for, and that differ in their time only. Also returns how many more may
    /// come for.
    fn merge_samples(
        &mut self,
        merging: &Merging,
        now: Ticks,
        threads: &Threads,
        intervals: &[(usize, u32)],
    ) -> (Swept, usize) {
        let waiting: FxHashSet<u32> =
            self.threads.values().flat_map(|thread| thread.samples.list.iter().copied()).collect();
        let settled = merging.settled_before(now);
        let (references, stacks_only) = (&self.references, merging.is_stacks_only());
        let alike = |one: &Awaiting<kernel::Sample>| {
            let thread = threads.at(one.fact.tid, one.time);
            let pid = if one.pid == NO_ID { thread.and_then(|of| threads.pid(of)) } else { Some(one.pid) };
            let pid = pid.unwrap_or(NO_ID);
            Some(Alike {
                section: merging.section(pid, one.time)?,
                thread: if stacks_only { None } else { thread },
                // Without one, only its thread will tell the process.
                ids: (
                    if stacks_only && one.fact.tid != 0 && pid != NO_ID { NO_ID } else { one.fact.tid },
                    pid,
                ),
                each: one.fact.count / u16::from(one.count).max(1),
                address: one.fact.address,
                parts: [told(references, one.kernel)?, told(references, one.user)?],
                processor: if stacks_only { ANY_PROCESSOR } else { one.processor },
                interrupt: (one.fact.in_dpc, one.fact.in_isr),
            })
        };
        let mut merger = Merger::default();
        let (mut interval, mut unsettled, mut last) = (0, 0, self.last_merged);
        let swept = sweep(&mut self.samples, |kept, index, one| {
            while intervals.get(interval).is_some_and(|(before, _)| *before <= index as usize) {
                interval += 1;
            }
            let is_settled = one.time < settled && !waiting.contains(&index);
            let Some(key) = is_settled.then(|| alike(one)).flatten() else {
                unsettled += 1;
                return true;
            };
            merger.enter((key.section.0, interval));
            let hash = FxBuildHasher.hash_one(key);
            let known = merger.find(hash, |place| kept.get(place).and_then(alike) == Some(key));
            // A sample's weight has 32 bits; the interval may be told later.
            let each = intervals.get(interval.saturating_sub(1));
            let most = u32::MAX / each.map_or(LONGEST_INTERVAL, |(_, each)| *each).max(1);
            let of = known.and_then(|place| kept.get_mut(place as usize));
            if of.is_some_and(|known| known.add(one, most)) {
                last = last.max(Some(one.time));
                return false;
            }
            merger.put(hash, kept.len(), known);
            if stacks_only {
                ((one.fact.tid, one.pid), one.processor) = (key.ids, key.processor);
            }
            true
        });
        self.last_merged = last;
        (swept, unsettled)
    }
}

/// What makes two samples one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    section: Section,
    thread: Option<ThreadId>,
    /// Of its thread and its process.
    ids: (u32, u32),
    /// Sampling intervals that each stands for.
    each: u16,
    address: u64,
    parts: [Part; 2],
    processor: u16,
    interrupt: (bool, bool),
}

impl Awaiting<kernel::Sample> {
    /// Adds a later one that is alike. False if one sample cannot be so many, or of more than `most` intervals.
    fn add(&mut self, later: &Self, most: u32) -> bool {
        let intervals = self.fact.count.checked_add(later.fact.count);
        let intervals = intervals.filter(|intervals| u32::from(*intervals) <= most);
        let sums = self.count.checked_add(later.count).zip(intervals);
        sums.map(|sums| (self.count, self.fact.count) = sums).is_some()
    }
}

/// A part that will not change any more; `None` if a key is still to be defined.
fn told(references: &[Part], part: Part) -> Option<Part> {
    match part {
        Part::Referred(reference) => {
            references.get(reference as usize).copied().filter(|part| *part != Part::Missing)
        }
        part => Some(part),
    }
}
