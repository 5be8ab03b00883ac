//! The scheduler and the sampler.

use std::collections::HashMap;

use super::code::{Code, Stack};
use super::machine::{LENGTH, Machine, SYSTEM};
use super::random::{Random, hash};
use super::rundown::{BEGIN, TICKS_PER_MS, Tape, at};
use super::stories::Stories;
use crate::synth::{Clock, Etl, Sample, stack_walk};

const CPUS: u16 = 4;
const SEED: u64 = 0x0E_7B_40_F1;
/// Milliseconds before the sampler runs.
const FIRST_SAMPLE: i64 = 1;
/// How strongly a processor wants to be idle, against the weights of the threads.
const IDLE_WEIGHT: u64 = 75;

/// The file.
pub(super) fn record(machine: Machine) -> Vec<u8> {
    let code = Code::new(machine);
    let mut tape = Tape::new(machine);
    tape.system();
    tape.begin();
    tape.comings_and_goings();
    tape.compilations(&code);
    let mut sampler = Sampler {
        tape: &mut tape,
        code: &code,
        stories: Stories::new(),
        random: Random::new(SEED),
        threads: threads(machine),
        cpus: (0..CPUS).map(|_| Cpu::default()).collect(),
        fragments: Vec::new(),
    };
    sampler.run();
    let fragments = sampler.fragments;
    let keys_at = at(LENGTH) + 4_000;
    put_stacks(&mut tape, fragments, keys_at);
    let ended = tape.end(keys_at + 2_000);
    tape.clr_rundown(&code, ended + 120 * TICKS_PER_MS);

    let start_time = 133_916_868_123_456_789;
    let etl = Etl::new()
        .merged()
        .compressed()
        .cpus(CPUS.into())
        .clock(Clock::Qpc { freq: 10_000_000 })
        .start(BEGIN)
        .start_time(start_time)
        .boot_time(start_time - BEGIN)
        .end_time(start_time + ended - BEGIN);
    tape.events.into_iter().fold(etl, |etl, (cpu, time, event)| etl.event(cpu, time, event)).finish()
}

/// A thread that can run.
struct Runnable {
    process: u32,
    thread: u32,
    priority: u8,
    weight: u64,
    busy: (i64, i64),
    story: &'static str,
}

fn threads(machine: Machine) -> Vec<Runnable> {
    let with_process = machine
        .processes
        .iter()
        .flat_map(|process| process.threads.iter().map(move |thread| (process, thread)));
    with_process
        .map(|(process, thread)| Runnable {
            process: process.id,
            thread: thread.id,
            priority: thread.priority,
            weight: thread.weight,
            busy: (thread.busy.0.max(process.alive.0), thread.busy.1.min(process.alive.1)),
            story: thread.story,
        })
        .collect()
}

/// What a processor does.
#[derive(Default)]
struct Cpu {
    /// An index of the threads; none is idle.
    thread: Option<usize>,
    /// Samples until it may do something else.
    slice: u64,
    visit: Option<Visit>,
}

/// A thread's stay in the kernel, for one sample or more.
struct Visit {
    path: Vec<&'static str>,
    /// The time of its first sample: the one that the user part will name.
    first: i64,
    left: u64,
}

/// One record of a stack.
struct Fragment {
    cpu: u16,
    time: i64,
    /// The time of the sample.
    of: i64,
    process: u32,
    thread: u32,
    is_kernel: bool,
    frames: Vec<u64>,
}

struct Sampler<'a> {
    tape: &'a mut Tape,
    code: &'a Code,
    stories: Stories,
    random: Random,
    threads: Vec<Runnable>,
    cpus: Vec<Cpu>,
    fragments: Vec<Fragment>,
}

impl Sampler<'_> {
    fn run(&mut self) {
        for ms in FIRST_SAMPLE..LENGTH {
            for cpu in 0..CPUS {
                let phase = i64::from(cpu) * 1_250;
                let jitter = self.random.below(60) as i64;
                self.schedule(cpu, ms);
                self.sample(cpu, ms, at(ms) + phase + jitter);
            }
        }
    }

    /// Perhaps another thread, when the slice is over or the thread has nothing more to do.
    fn schedule(&mut self, cpu: u16, ms: i64) {
        let now = &self.cpus[usize::from(cpu)];
        let is_busy = |thread: &Runnable| (thread.busy.0..thread.busy.1).contains(&ms);
        let must_stop = now.thread.is_some_and(|index| !is_busy(&self.threads[index]));
        if now.slice > 0 && !must_stop {
            self.cpus[usize::from(cpu)].slice -= 1;
            return;
        }
        let weight = |(index, thread): (usize, &Runnable)| {
            let runs_elsewhere = self.cpus.iter().any(|cpu| cpu.thread == Some(index));
            if is_busy(thread) && !runs_elsewhere { thread.weight } else { 0 }
        };
        let weights: Vec<u64> = self.threads.iter().enumerate().map(weight).chain([IDLE_WEIGHT]).collect();
        let chosen = self.random.weighted(weights.iter().copied());
        let slice = self.random.below(9);
        let thread = (chosen < self.threads.len()).then_some(chosen);
        self.cpus[usize::from(cpu)] = Cpu { thread, slice, visit: None };
    }

    fn sample(&mut self, cpu: u16, ms: i64, time: i64) {
        let thread = self.cpus[usize::from(cpu)].thread;
        if self.random.chance(2) {
            return self.interrupt(cpu, ms, time, thread);
        }
        let Some(index) = thread else {
            let path = self.stories.path("idle", &mut self.random);
            let stack = self.code.stack(&path, ms, &mut self.random).expect("the kernel is there");
            return self.tape.put(cpu, time, Sample::idle(stack.leaf()));
        };
        let slot = &mut self.cpus[usize::from(cpu)].visit;
        let (path, first, left) = match slot.take() {
            Some(visit) => (visit.path, visit.first, visit.left - 1),
            None => {
                let path = self.new_path(index, ms);
                let more = if self.random.chance(20) { self.random.between(1, 2) } else { 0 };
                (path, time, more)
            }
        };
        let stack = self.code.stack(&path, ms, &mut self.random).expect("the path was possible before");
        let Runnable { process, thread, priority, .. } = self.threads[index];
        self.tape.put(cpu, time, Sample::new(stack.leaf(), thread).priority(priority));
        let Stack { kernel, user } = stack;
        let fragment =
            |cpu, time, of, is_kernel, frames| Fragment { cpu, time, of, process, thread, is_kernel, frames };
        let is_in_kernel = !kernel.is_empty();
        if is_in_kernel {
            let delay = self.random.between(60, 110) as i64;
            self.fragments.push(fragment(cpu, time + delay, time, true, kernel));
        }
        let here = &mut self.cpus[usize::from(cpu)];
        let stays = is_in_kernel && process != SYSTEM && left > 0 && here.slice > 0;
        if stays {
            here.visit = Some(Visit { path, first, left });
        } else if !user.is_empty() {
            // The way back to user mode; of a visit it names the first sample only. A few never come back.
            if is_in_kernel && self.random.chance(4) {
                return;
            }
            let delay = self.random.between(110, if is_in_kernel { 4_000 } else { 180 }) as i64;
            let moves = is_in_kernel && self.random.chance(5);
            let cpu = if moves { (cpu + 1) % CPUS } else { cpu };
            let is_doubled = self.code.machine.doubled.is_some_and(|doubled| path.last() == Some(&doubled));
            if is_doubled && !is_in_kernel {
                let leaf = user.first().copied().expect("it has frames");
                self.tape.put(cpu, time + 40, Sample::new(leaf, thread).priority(priority));
                self.fragments.push(fragment(cpu, time + 40 + delay, time + 40, false, user.clone()));
            }
            self.fragments.push(fragment(
                cpu,
                time + delay,
                if is_in_kernel { first } else { time },
                false,
                user,
            ));
        }
    }

    /// A path of the thread's story whose methods have a body already.
    fn new_path(&mut self, index: usize, ms: i64) -> Vec<&'static str> {
        for _ in 0..1_000 {
            let path = self.stories.path(self.threads[index].story, &mut self.random);
            if self.code.stack(&path, ms, &mut self.random).is_some() {
                return path;
            }
        }
        panic!("nothing of {} can run at {ms} ms", self.threads[index].story)
    }

    /// The sampler found the processor in an interrupt or a deferred call, whatever its thread.
    fn interrupt(&mut self, cpu: u16, ms: i64, time: i64, thread: Option<usize>) {
        let is_dpc = self.random.chance(70);
        let path = self.stories.path(if is_dpc { "dpc" } else { "isr" }, &mut self.random);
        let stack = self.code.stack(&path, ms, &mut self.random).expect("the kernel is there");
        let (process, thread, priority) = thread.map_or((0, 0, 16), |index| {
            let thread = &self.threads[index];
            (thread.process, thread.thread, thread.priority)
        });
        let sample = Sample::new(stack.leaf(), thread).priority(priority);
        self.tape.put(cpu, time, if is_dpc { sample.dpc() } else { sample.isr() });
        let frames = stack.kernel;
        self.fragments.push(Fragment {
            cpu,
            time: time + 70,
            of: time,
            process,
            thread,
            is_kernel: true,
            frames,
        });
    }
}

/// Writes the stacks, most of them as keys of a small cache.
fn put_stacks(tape: &mut Tape, mut fragments: Vec<Fragment>, rundown_at: i64) {
    fragments.sort_by_key(|fragment| fragment.time);
    let (mut kernel_cache, mut user_cache) = (Cache::default(), Cache::default());
    let mut last = BEGIN;
    for Fragment { cpu, time, of, process, thread, is_kernel, frames } in fragments {
        // Two ticks apart: a key's old meaning is told between its last use and the first one of the new.
        let time = time.max(last + 2);
        last = time;
        let text = format!("{frames:x?}");
        if hash(&text).is_multiple_of(5) {
            tape.put(cpu, time, stack_walk::full(of, process, thread, &frames));
            continue;
        }
        let cache = if is_kernel { &mut kernel_cache } else { &mut user_cache };
        let (key, evicted) = cache.key(frames);
        if let Some(frames) = evicted {
            tape.put(cpu, time - 1, stack_walk::key_delete(key, &frames));
        }
        let refer = if is_kernel { stack_walk::kernel_key } else { stack_walk::user_key };
        tape.put(cpu, time, refer(of, process, thread, key));
    }
    for cache in [kernel_cache, user_cache] {
        for (slot, frames) in cache.slots.iter().enumerate() {
            tape.put(3, rundown_at + slot as i64, stack_walk::key_rundown(Cache::key_of(slot), frames));
        }
    }
}

/// A stack cache of the kernel: a key is told what it stood for when another stack takes its place.
#[derive(Default)]
struct Cache {
    slots: Vec<Vec<u64>>,
    known: HashMap<Vec<u64>, usize>,
    oldest: usize,
}

impl Cache {
    const SLOTS: usize = 300;

    /// The same range for kernel and user stacks: a key is only unique among its kind.
    fn key_of(slot: usize) -> u64 {
        0xFFFF_BE8F_4C21_0010 + slot as u64 * 0x210
    }

    /// The key of a stack, and the stack that had it before.
    fn key(&mut self, frames: Vec<u64>) -> (u64, Option<Vec<u64>>) {
        if let Some(&slot) = self.known.get(&frames) {
            return (Self::key_of(slot), None);
        }
        if self.slots.len() < Self::SLOTS {
            let slot = self.slots.len();
            self.slots.push(frames.clone());
            self.known.insert(frames, slot);
            return (Self::key_of(slot), None);
        }
        let slot = self.oldest;
        self.oldest = (slot + 1) % Self::SLOTS;
        let evicted = std::mem::replace(&mut self.slots[slot], frames.clone());
        self.known.remove(&evicted);
        self.known.insert(frames, slot);
        (Self::key_of(slot), Some(evicted))
    }
}
