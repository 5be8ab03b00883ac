//! Which thread each processor runs, and when that changes.

use super::Options;
use super::population::Population;
use super::random::Random;
use super::stacks::Node;

/// Of the switches from a thread, those to the idle thread: 13,987 of 15,546 in xperf/slow-ppt.etl.
const TO_IDLE: f64 = 0.9;
/// Changes for each sample where no switch is recorded.
const UNSEEN: f64 = 0.2;

/// A thread among all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) process: usize,
    pub(super) is_running: bool,
    /// It went to sleep in the kernel before the user part of its stack was written: of this sample, this part.
    pub(super) owes: Option<(Of, Node)>,
}

/// The event that a stack belongs to: one of the present step, or one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Planned(usize),
    At(i64),
}

/// What a processor does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Its thread goes, for another or for nothing.
    Leave,
    /// Its thread goes for another.
    Exchange,
    /// A thread comes to an idle processor.
    Wake,
    /// A thread comes to an idle processor and is gone before the next sample.
    Brief,
    /// Its thread goes for nothing.
    Sleep,
}

#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    pub(super) threads: Vec<Thread>,
    pub(super) running: Vec<Option<usize>>,
    /// How often each turn comes in a step: the first two on a busy processor, the others on an idle one.
    leave: f64,
    exchange: f64,
    wake: f64,
    brief: f64,
    to_idle: f64,
}

impl Scheduler {
    pub(super) fn new(options: &Options, population: &Population) -> Self {
        let (idle, busy) = (options.idle, 1.0 - options.idle);
        let switches = if options.switches > 0.0 { options.switches } else { UNSEEN };
        let to_idle = if idle > 0.0 { TO_IDLE } else { 0.0 };
        // As many go to idle as come from it, and both together are the switches.
        let leave = if busy > 0.0 { (switches / (busy * (1.0 + to_idle))).min(1.0) } else { 0.0 };
        let wake = if idle > 0.0 { (busy * leave * to_idle / idle).min(1.0) } else { 1.0 };
        let missing = (switches - busy * leave * (1.0 + to_idle)).max(0.0);
        let (brief, exchange) = if idle > 0.0 { (missing / 2.0 / idle, 0.0) } else { (0.0, missing) };
        let threads = population.processes.iter().enumerate().flat_map(|(process, of)| {
            std::iter::repeat_n(Thread { process, is_running: false, owes: None }, of.threads)
        });
        Scheduler {
            threads: threads.collect(),
            running: vec![None; options.processors.into()],
            leave,
            exchange,
            wake,
            brief,
            to_idle,
        }
    }

    /// The turns of a processor in a step.
    pub(super) fn turns(&self, processor: usize, random: &mut Random, mut turn: impl FnMut(Turn)) {
        let Some(thread) = self.running[processor] else {
            return match random.chance(self.wake) {
                true => turn(Turn::Wake),
                false => (0..random.about(self.brief)).for_each(|_| turn(Turn::Brief)),
            };
        };
        (0..random.about(self.exchange)).for_each(|_| turn(Turn::Exchange));
        if random.chance(self.leave) || self.threads[thread].owes.is_some() {
            turn(Turn::Leave);
        }
    }

    /// Whether the thread that leaves is followed by nothing.
    pub(super) fn goes_idle(&self, random: &mut Random) -> bool {
        random.chance(self.to_idle)
    }

    /// A thread that does not run, of a process drawn by its share.
    pub(super) fn free(&self, population: &Population, random: &mut Random) -> Option<usize> {
        const TRIES: usize = 4;
        (0..TRIES).find_map(|_| {
            let process = &population.processes[population.by_share(random.unit())];
            let first = random.index(process.threads);
            let mut threads = (0..process.threads).map(|next| (first + next) % process.threads);
            let free = threads.find(|thread| !self.threads[process.first_thread + thread].is_running)?;
            Some(process.first_thread + free)
        })
    }

    /// Puts a thread, or none, on a processor.
    pub(super) fn run(&mut self, processor: usize, thread: Option<usize>) {
        if let Some(old) = std::mem::replace(&mut self.running[processor], thread) {
            self.threads[old].is_running = false;
        }
        if let Some(new) = thread {
            self.threads[new].is_running = true;
        }
    }

    /// No thread of a process runs or owes a part.
    pub(super) fn is_quiet(&self, population: &Population, process: usize) -> bool {
        let of = &population.processes[process];
        let threads = &self.threads[of.first_thread..of.first_thread + of.threads];
        threads.iter().all(|thread| !thread.is_running && thread.owes.is_none())
    }
}
