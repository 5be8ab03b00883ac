//! Samples that differ in nothing but their time become one, so that a recording of any length fits in the memory that it
//! may take.
//!
//! First the time of samples gets coarser, step by step, until each distinct stack of a thread on a processor is kept
//! with its counts; then threads and processors go, and each distinct stack of a process is left. Which code lies at an
//! address, and whose an id is, does not change within what is merged. A sample may still await its stack for a while, so
//! the latest stay as they are.

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::clock::{Clock, Ticks};

/// How far apart samples may be that become one, in seconds: the steps before any may.
const STEPS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];

/// What a sample takes until it is in a profile, in bytes: while it awaits its stack, in the trace and in the profile,
/// and in the list of those that others may be merged with.
const SAMPLE: u64 = 128;

/// The least number of samples that is worth a search.
const LEAST: usize = 1 << 6;

/// How long after a sample its stack may come, in seconds; 0.4 s have been seen.
const SETTLED: f64 = 2.0;

/// What a trace gave up to take no more memory than it may ([`Builder::hold`](super::Builder::hold)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Merged {
    /// Samples of one stack, thread and processor within the same so many seconds are one, with the time of the first;
    /// `None` if they are, whenever they were taken.
    pub within_seconds: Option<f64>,
    /// Samples have no thread and no processor any more.
    pub stacks_only: bool,
    /// Even so they take more than they may.
    pub is_too_much: bool,
}

/// Says when samples are merged, and which.
#[derive(Debug)]
pub(super) struct Merging {
    /// So many samples are too many.
    pub(super) most: usize,
    /// In ticks.
    steps: [i64; STEPS.len()],
    /// The number of the step in force. The next after those of time is for samples without a time, the last for those
    /// without a thread and a processor.
    step: Option<usize>,
    settled: i64,
    is_too_much: bool,
    /// When what lies at the addresses of a process may have changed; of the kernel's under process 0.
    changes: FxHashMap<u32, Vec<Ticks>>,
}

/// Times of a process between which samples may become one: the step of time, and how much had changed.
pub(super) type Section = (i64, usize, usize);

impl Merging {
    pub(super) fn new(memory: u64, clock: Clock) -> Merging {
        Merging {
            most: usize::try_from(memory / SAMPLE).unwrap_or(usize::MAX).max(LEAST),
            steps: STEPS.map(|seconds| clock.ticks(seconds).max(1)),
            step: (memory == 0).then_some(STEPS.len() + 1),
            settled: clock.ticks(SETTLED),
            is_too_much: false,
            changes: FxHashMap::default(),
        }
    }

    /// An image of a process was loaded or unloaded, other code of it was unloaded, or its id is another's from now on.
    pub(super) fn change(&mut self, pid: u32, time: Ticks) {
        let changes = self.changes.entry(pid).or_default();
        // A live session gives some events late.
        let later = changes.iter().rev().take_while(|change| **change > time).count();
        let place = changes.len() - later;
        if place == 0 || changes.get(place - 1) != Some(&time) {
            changes.insert(place, time);
        }
    }

    /// Samples from then on may await their stacks.
    pub(super) fn settled_before(&self, now: Ticks) -> Ticks {
        Ticks(now.0.saturating_sub(self.settled))
    }

    /// Samples are merged from now on.
    pub(super) fn begin(&mut self) {
        self.step.get_or_insert(0);
    }

    /// There are `left` samples after those of the present step were merged; of these, so many await their stacks and
    /// cannot be merged yet. True if the others are still too many, and a coarser step is in force now.
    pub(super) fn is_coarser(&mut self, left: usize, waiting: usize) -> bool {
        let is_coarsest = self.step.is_some_and(|step| step > self.steps.len());
        let is_coarser = left.saturating_sub(waiting) > self.most / 2 && !is_coarsest;
        if is_coarser {
            self.step = Some(self.step.map_or(0, |step| step + 1));
        } else {
            self.is_too_much |= left > self.most;
        }
        is_coarser
    }

    /// How many samples there may be next, now that there are so many.
    pub(super) fn next(&self, left: usize) -> usize {
        self.most.max(left.saturating_add(left.max(self.most) / 2))
    }

    /// The part of the time of a process that a moment is in; `None` if nothing is merged yet.
    pub(super) fn section(&self, pid: u32, time: Ticks) -> Option<Section> {
        let step = self.steps.get(self.step?);
        let changes = |pid| {
            let of_process = self.changes.get(&pid).map_or(&[][..], Vec::as_slice);
            of_process.partition_point(|change| *change <= time)
        };
        Some((step.map_or(0, |step| time.0.div_euclid(*step)), changes(pid), changes(0)))
    }

    /// True if samples lose their threads and processors.
    pub(super) fn is_stacks_only(&self) -> bool {
        self.step.is_some_and(|step| step > self.steps.len())
    }

    pub(super) fn given_up(&self) -> Option<Merged> {
        let within_seconds = STEPS.get(self.step?).copied();
        Some(Merged { within_seconds, stacks_only: self.is_stacks_only(), is_too_much: self.is_too_much })
    }
}

/// Finds the sample that another one is merged with, by what makes them alike. They come in order of time.
#[derive(Debug, Default)]
pub(super) struct Merger {
    /// The hashes of what makes samples alike, and their places.
    places: HashTable<(u64, u32)>,
    epoch: (i64, usize),
}

impl Merger {
    /// The next sample is of this step of time, and of this sampling interval: nothing of an earlier one is alike.
    pub(super) fn enter(&mut self, epoch: (i64, usize)) {
        if self.epoch != epoch {
            self.epoch = epoch;
            // To clear a large table takes as long as to fill it.
            match self.places.capacity() > 4 * self.places.len() + 64 {
                true => self.places = HashTable::new(),
                false => self.places.clear(),
            }
        }
    }

    /// The place of an earlier one with this hash for which `is_alike` holds.
    pub(super) fn find(&self, hash: u64, is_alike: impl Fn(usize) -> bool) -> Option<u32> {
        let known = self.places.find(hash, |(known, place)| *known == hash && is_alike(*place as usize));
        known.map(|(_, place)| *place)
    }

    /// The one at `place` is for those to come, instead of one that is full.
    pub(super) fn put(&mut self, hash: u64, place: usize, full: Option<u32>) {
        let place = place as u32;
        let known = self.places.find_mut(hash, |(_, known)| Some(*known) == full);
        match known {
            Some(known) => known.1 = place,
            None => {
                self.places.insert_unique(hash, (hash, place), |(hash, _)| *hash);
            }
        }
    }
}
