//! The recording itself, in steps of a sampling interval: plan what happens, put it in order, write it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Seek, Write};

use crate::synth::{Clock, Etl, Event, Stream};

use super::keys::{Defined, Keys};
use super::population::{Population, SYSTEM};
use super::random::Random;
use super::rundown::{self, Method};
use super::scheduler::{Of, Scheduler, Turn};
use super::space::Space;
use super::stacks::Node;
use super::templates::{Frequent, Templates};
use super::{Contents, Options, xpress};

/// Samples in the kernel whose thread sleeps there before the user part of its stack is written: 7 of 458 in
/// perfview/net.4.5.2.x64.etl had it written on another processor.
const LATE: f64 = 0.015;
/// Samples of the idle thread that are in a DPC: 507 of 125,873 in xperf/slow-ppt.etl.
const IDLE_IN_DPC: f64 = 0.004;

/// Something that happens in a step.
#[derive(Debug)]
struct Planned {
    time: i64,
    processor: u16,
    what: What,
}

#[derive(Debug)]
enum What {
    Frequent(Frequent),
    Part { of: Of, pid: u32, thread: u32, part: Defined, is_kernel: bool },
    Rare(Event),
}

pub(super) struct Recorder<'a, W> {
    options: &'a Options,
    random: Random,
    space: Space,
    population: Population,
    scheduler: Scheduler,
    templates: Templates,
    stream: Stream<W>,
    /// Of user parts and of kernel parts.
    keys: [Keys; 2],
    /// How often each method of each process with .NET was replaced.
    generations: Vec<(usize, Vec<u32>)>,
    used: Vec<bool>,
    idle_in_dpc_used: bool,
    /// Ticks in a step.
    step: i64,
    begin: i64,
    now: i64,
    plan: Vec<Planned>,
    /// The times at which what was planned came to be written.
    written_at: Vec<i64>,
    last: i64,
    record: Vec<u8>,
    contents: Contents,
}

impl<'a, W: Write + Seek> Recorder<'a, W> {
    pub(super) fn new(options: &'a Options, out: W) -> io::Result<Self> {
        let mut random = Random::new(options.seed);
        let space = Space::new(options.pointer_size);
        let population = Population::new(options, &space, &mut random);
        let scheduler = Scheduler::new(options, &population);
        let mut etl = Etl::new()
            .pointer_size(options.pointer_size)
            .cpus(options.processors.into())
            .clock(options.clock)
            .buffer_size(options.buffer_size)
            .names("NT Kernel Logger", r"C:\traces\believable.etl");
        if options.compressed {
            etl = etl.compressed_by(xpress::compress_quickly);
        }
        let frequency = match options.clock {
            Clock::Raw { freq } | Clock::Qpc { freq } => freq,
            Clock::SystemTime => 10_000_000,
            Clock::CpuCycles { mhz } => i64::from(mhz) * 1_000_000,
        };
        let begin = etl.start_ticks();
        let managed = population.processes.iter().enumerate().filter(|(_, process)| process.methods > 0);
        Ok(Recorder {
            generations: managed.map(|(at, process)| (at, vec![0; process.methods as usize])).collect(),
            used: vec![false; population.stacks],
            idle_in_dpc_used: false,
            step: frequency / 1_000,
            begin,
            now: begin,
            plan: Vec::new(),
            written_at: Vec::new(),
            last: begin,
            record: Vec::new(),
            contents: Contents::default(),
            templates: Templates::new(options.pointer_size),
            keys: [Keys::new(space.keys), Keys::new(space.keys)],
            stream: etl.stream(out)?,
            options,
            random,
            space,
            population,
            scheduler,
        })
    }

    pub(super) fn record(mut self) -> io::Result<Contents> {
        self.start_rundown()?;
        self.first_threads();
        let reserve = self.size_of_end();
        while self.stream.size() + reserve < self.options.size {
            self.now += self.step;
            self.step()?;
        }
        self.now += self.step;
        self.plan_owed();
        self.write_plan()?;
        self.now += self.step;
        self.end_rundown()?;
        self.contents.milliseconds = ((self.last - self.begin) / self.step) as u64;
        self.contents.stacks =
            self.used.iter().filter(|used| **used).count() as u64 + u64::from(self.idle_in_dpc_used);
        let (mut out, buffers) = self.stream.finish()?;
        self.contents.buffers = buffers;
        self.contents.bytes = out.seek(io::SeekFrom::End(0))?;
        Ok(self.contents)
    }

    /// What the processors run when the session begins.
    fn first_threads(&mut self) {
        for processor in 0..self.scheduler.running.len() {
            if !self.random.chance(self.options.idle) {
                let thread = self.scheduler.free(&self.population, &mut self.random);
                self.scheduler.run(processor, thread);
            }
        }
    }

    /// A moment of the present step, in thousandths of it: from `from` to below `to`.
    fn moment(&mut self, from: i64, to: i64) -> i64 {
        self.now + from * self.step / 1_000 + self.random.ticks((to - from) * self.step / 1_000)
    }

    fn plan(&mut self, time: i64, processor: usize, what: What) -> Of {
        let processor = u16::try_from(processor).expect("few processors");
        self.plan.push(Planned { time, processor, what });
        Of::Planned(self.plan.len() - 1)
    }

    fn frequent(&mut self, time: i64, processor: usize, what: Frequent) -> Of {
        self.plan(time, processor, What::Frequent(what))
    }

    fn step(&mut self) -> io::Result<()> {
        for processor in 0..self.scheduler.running.len() {
            self.interrupt(processor);
        }
        self.churn();
        self.processes_come_and_go();
        self.switch();
        self.write_plan()
    }

    /// The timer interrupts a processor.
    fn interrupt(&mut self, processor: usize) {
        let time = self.moment(0, 20);
        match self.scheduler.running[processor] {
            None => self.idle_sample(time, processor),
            Some(thread) => self.sample(time, processor, thread),
        }
        let (isrs, dpcs) = (self.random.about(self.options.isrs), self.random.about(self.options.dpcs));
        let routine = self.space.idle();
        for _ in 0..isrs {
            let ended = time + 1 + self.random.ticks(self.step / 500);
            self.frequent(ended, processor, Frequent::Isr { began: time, routine });
        }
        for _ in 0..dpcs {
            let ended = self.moment(60, 90);
            self.frequent(ended, processor, Frequent::Dpc { began: time, routine });
        }
        self.contents.interrupts += (isrs + dpcs) as u64;
        self.contents.samples += 1;
    }

    fn idle_sample(&mut self, time: i64, processor: usize) {
        let address = self.space.idle();
        let in_dpc = self.random.chance(IDLE_IN_DPC);
        let what = if in_dpc { Frequent::DpcSample { address } } else { Frequent::Idle { address } };
        let of = self.frequent(time, processor, what);
        if in_dpc {
            self.contents.idle_in_dpc += 1;
            self.idle_in_dpc_used = true;
        } else {
            self.contents.idle += 1;
        }
        if in_dpc || self.options.shape.idle_stacks {
            let node = self.population.idle;
            let time = self.moment(30, 50);
            self.plan(
                time,
                processor,
                What::Part { of, pid: 0, thread: 0, part: (SYSTEM, node), is_kernel: true },
            );
        }
    }

    fn sample(&mut self, time: i64, processor: usize, thread: usize) {
        let number = self.scheduler.threads[thread].process;
        let process = &self.population.processes[number];
        let rank = self.options.shape.rank(self.random.unit());
        let place = ((rank * process.stacks.len() as f64) as usize).min(process.stacks.len() - 1);
        let found = process.stacks[place];
        self.used[process.first_stack + place] = true;
        let (leaf, is_kernel) = match (found.kernel, found.user) {
            (Some(kernel), _) => (kernel, true),
            (None, user) => (user.expect("a stack has a part"), false),
        };
        let address = self.population.part(number, is_kernel).address(leaf);
        let tid = process.tid(thread);
        match found {
            _ if found.kernel.is_none() => self.contents.user_only += 1,
            _ if found.user.is_none() => self.contents.kernel_only += 1,
            _ => self.contents.both += 1,
        }
        self.contents.in_methods += u64::from(!is_kernel && self.space.is_method(address));
        let of = self.frequent(time, processor, Frequent::Sample { address, thread: tid });
        if let Some(node) = found.kernel {
            let time = self.moment(30, 50);
            self.part(time, processor, of, thread, node, true);
        }
        match found.user {
            Some(node) if found.kernel.is_some() && self.random.chance(LATE) => {
                self.scheduler.threads[thread].owes = Some((of, node));
            }
            Some(node) => {
                let time = self.moment(60, 100);
                self.part(time, processor, of, thread, node, false);
            }
            None => {}
        }
    }

    fn part(&mut self, time: i64, processor: usize, of: Of, thread: usize, node: Node, is_kernel: bool) {
        let number = self.scheduler.threads[thread].process;
        let process = &self.population.processes[number];
        let part = (if is_kernel { SYSTEM } else { number }, node);
        let (pid, thread) = (process.pid, process.tid(thread));
        self.plan(time, processor, What::Part { of, pid, thread, part, is_kernel });
    }

    /// Methods give way to others in the same places.
    fn churn(&mut self) {
        let mut events = Vec::new();
        for (number, generations) in &mut self.generations {
            let process = &self.population.processes[*number];
            for _ in 0..self.random.about(self.options.churn / 1_000.0) {
                let place = self.random.index(generations.len());
                let old = Method { place: place as u32, generation: generations[place] };
                let new = Method { generation: old.generation + 1, ..old };
                generations[place] = new.generation;
                events.extend([old.unload(process, &self.space), new.load(process, &self.space)]);
                self.contents.methods_loaded += 1;
                self.contents.methods_unloaded += 1;
            }
        }
        self.rare(110, events);
    }

    /// Events in a row on one processor, some time after so many thousandths of the step.
    fn rare(&mut self, from: i64, events: Vec<Event>) {
        let processor = self.random.index(self.scheduler.running.len());
        let time = self.moment(from, from + 20);
        for (later, event) in (0..).zip(events) {
            self.plan(time + later, processor, What::Rare(event));
        }
    }

    fn processes_come_and_go(&mut self) {
        for _ in 0..self.random.about(self.options.starts / 1_000.0) {
            let processes = &self.population.processes;
            let first = self.random.index(processes.len());
            let mut numbers = (0..processes.len()).map(|next| (first + next) % processes.len());
            let quiet = numbers.find(|&number| {
                processes[number].is_short_lived && self.scheduler.is_quiet(&self.population, number)
            });
            let Some(number) = quiet else { continue };
            let mut events = rundown::process_end(&self.population, number);
            self.population.follow(number);
            events.extend(rundown::process_start(&self.population, number));
            self.rare(130, events);
            let process = &self.population.processes[number];
            self.contents.processes += 1;
            self.contents.threads += process.threads as u64;
            self.contents.images += process.images.len() as u64;
        }
    }

    /// Threads change on the processors.
    fn switch(&mut self) {
        let mut turns = BinaryHeap::new();
        for processor in 0..self.scheduler.running.len() {
            let mut wanted = Vec::new();
            self.scheduler.turns(processor, &mut self.random, |turn| wanted.push(turn));
            turns.extend(wanted.iter().map(|turn| Reverse((self.moment(250, 920), processor, *turn))));
        }
        while let Some(Reverse((time, processor, turn))) = turns.pop() {
            let old = self.scheduler.running[processor];
            let goes_idle =
                turn == Turn::Sleep || turn == Turn::Leave && self.scheduler.goes_idle(&mut self.random);
            let next = if goes_idle { None } else { self.scheduler.free(&self.population, &mut self.random) };
            if next.is_none() && turn == Turn::Exchange {
                continue;
            }
            self.change(time, processor, next);
            if turn == Turn::Brief && old.is_none() {
                let stay = self.moment(30, 60) - self.now;
                turns.push(Reverse((time + stay, processor, Turn::Sleep)));
            }
        }
    }

    /// A processor goes from its thread to another, or to none.
    fn change(&mut self, time: i64, processor: usize, next: Option<usize>) {
        let old = self.scheduler.running[processor];
        if old == next {
            return;
        }
        self.scheduler.run(processor, next);
        let (old_tid, new_tid) = (old.map_or(0, |old| self.tid(old)), next.map_or(0, |new| self.tid(new)));
        let (recorded, has_stacks) = (self.options.switches > 0.0, self.options.wait_stacks);
        let small = (self.step / 500).max(1);
        if recorded && self.options.ready && next.is_some() {
            let at = time - 3 * small;
            let of = self.frequent(at, processor, Frequent::Ready { thread: new_tid });
            self.contents.ready += 1;
            // A DPC made it ready.
            if has_stacks {
                let part = (SYSTEM, self.population.idle);
                let what = What::Part { of, pid: 0, thread: 0, part, is_kernel: true };
                self.plan(at + small, processor, what);
                self.contents.wait_parts += 1;
            }
        }
        let of = recorded.then(|| {
            self.contents.switches += 1;
            self.frequent(time, processor, Frequent::Switch { old: old_tid, new: new_tid })
        });
        let Some(thread) = next else { return };
        let owed = self.scheduler.threads[thread].owes.take();
        let process = &self.population.processes[self.scheduler.threads[thread].process];
        if let Some(of) = of.filter(|_| has_stacks) {
            let found = process.stacks[self.random.index(process.stacks.len())];
            let kernel = found.kernel.unwrap_or(self.population.kernel_part(&mut self.random));
            self.part(time + small, processor, of, thread, kernel, true);
            self.contents.wait_parts += 1;
            if let Some(user) = owed.map(|(_, node)| node).or(found.user) {
                self.part(time + 3 * small, processor, of, thread, user, false);
                self.contents.wait_parts += 1;
            }
        }
        if let Some((of, node)) = owed {
            self.part(time + 2 * small, processor, of, thread, node, false);
        }
    }

    fn tid(&self, thread: usize) -> u32 {
        self.population.processes[self.scheduler.threads[thread].process].tid(thread)
    }

    /// The session ends: every thread that sleeps in the kernel leaves it.
    fn plan_owed(&mut self) {
        for thread in 0..self.scheduler.threads.len() {
            if let Some((of, node)) = self.scheduler.threads[thread].owes.take() {
                let time = self.moment(0, 900);
                self.part(time, 0, of, thread, node, false);
            }
        }
    }

    /// Writes what was planned for a step, in order of time. With keys no two records have the same time: which
    /// definition a key has is then beyond doubt.
    fn write_plan(&mut self) -> io::Result<()> {
        let mut plan = std::mem::take(&mut self.plan);
        let mut order: Vec<usize> = (0..plan.len()).collect();
        order.sort_by_key(|&index| plan[index].time);
        self.written_at.clear();
        self.written_at.resize(plan.len(), 0);
        for index in order {
            let Planned { time, processor, ref what } = plan[index];
            let time = self.next_time(time);
            match what {
                What::Frequent(what) => {
                    self.written_at[index] = time;
                    self.templates.make(&mut self.record, time, *what, std::iter::empty());
                    self.write(processor, time)?;
                }
                What::Part { of, pid, thread, part, is_kernel } => {
                    let of = match *of {
                        Of::Planned(index) => self.written_at[index],
                        Of::At(time) => time,
                    };
                    self.write_part(processor, time, of, (*pid, *thread), *part, *is_kernel)?;
                }
                What::Rare(event) => {
                    self.record = event.record(time, self.options.pointer_size);
                    self.write(processor, time)?;
                }
            }
        }
        for thread in &mut self.scheduler.threads {
            if let Some((of @ Of::Planned(_), _)) = &mut thread.owes {
                let Of::Planned(index) = *of else { continue };
                *of = Of::At(self.written_at[index]);
            }
        }
        plan.clear();
        self.plan = plan;
        Ok(())
    }

    fn next_time(&mut self, planned: i64) -> i64 {
        let time = if self.options.stack_keys { planned.max(self.last + 1) } else { planned.max(self.last) };
        self.last = time;
        time
    }

    fn write(&mut self, processor: u16, time: i64) -> io::Result<()> {
        self.contents.records += 1;
        self.stream.record(processor, time, &self.record)
    }

    fn write_part(
        &mut self,
        processor: u16,
        time: i64,
        of: i64,
        (process, thread): (u32, u32),
        part: Defined,
        is_kernel: bool,
    ) -> io::Result<()> {
        if !self.options.stack_keys {
            let frames = self.population.part(part.0, is_kernel).walk(part.1);
            self.templates.make(&mut self.record, time, Frequent::Stack { of, process, thread }, frames);
            return self.write(processor, time);
        }
        let (key, before) = self.keys[usize::from(is_kernel)].key(part);
        let mut time = time;
        if let Some(before) = before {
            self.define(processor, time, Frequent::Deleted { key }, before, is_kernel)?;
            time = self.next_time(time);
        }
        let what = match is_kernel {
            true => Frequent::KernelKey { of, process, thread, key },
            false => Frequent::UserKey { of, process, thread, key },
        };
        self.templates.make(&mut self.record, time, what, std::iter::empty());
        self.write(processor, time)
    }

    fn define(
        &mut self,
        processor: u16,
        time: i64,
        what: Frequent,
        part: Defined,
        is_kernel: bool,
    ) -> io::Result<()> {
        let frames = self.population.part(part.0, is_kernel).walk(part.1);
        self.templates.make(&mut self.record, time, what, frames);
        self.contents.key_definitions += 1;
        self.write(processor, time)
    }

    fn start_rundown(&mut self) -> io::Result<()> {
        self.write_rare(rundown::start(self.options, &self.population))?;
        let processes = &self.population.processes;
        let threads: usize = processes.iter().map(|process| process.threads).sum();
        let images: usize = processes.iter().map(|process| process.images.len()).sum();
        self.contents.processes = 1 + processes.len() as u64;
        self.contents.threads = 1 + threads as u64;
        self.contents.images = (images + self.population.drivers.len()) as u64;
        let mut events = Vec::new();
        for (number, generations) in &self.generations {
            let process = &self.population.processes[*number];
            events.push(rundown::runtime(process));
            let methods = (0..generations.len() as u32).map(|place| Method { place, generation: 0 });
            events.extend(methods.map(|method| vec![method.load(process, &self.space)]));
            self.contents.methods_loaded += generations.len() as u64;
        }
        self.write_rare(events)?;
        self.now = self.last;
        Ok(())
    }

    fn end_rundown(&mut self) -> io::Result<()> {
        self.last = self.last.max(self.now);
        for (is_kernel, keys) in [(false, self.keys[0].rundown()), (true, self.keys[1].rundown())] {
            for (key, part) in keys {
                let time = self.next_time(self.now);
                self.define(0, time, Frequent::Rundown { key }, part, is_kernel)?;
            }
        }
        self.write_rare(self.end())
    }

    fn end(&self) -> Vec<Vec<Event>> {
        let mut moments = Vec::new();
        for (number, generations) in &self.generations {
            let process = &self.population.processes[*number];
            let methods = (0..).zip(generations).map(|(place, &generation)| Method { place, generation });
            moments.extend(methods.map(|method| vec![method.rundown(process, &self.space)]));
        }
        moments.extend(rundown::end(&self.population));
        moments
    }

    /// The bytes that the end rundown takes in the file, about: the paths in it make it a fifth when it is compressed.
    fn size_of_end(&self) -> u64 {
        let size =
            |event: &Event| event.record(0, self.options.pointer_size).len().next_multiple_of(8) as u64;
        let size = self.end().iter().flatten().map(size).sum::<u64>();
        if self.options.compressed { size / 5 } else { size }
    }

    /// Events of a rundown: those of each list have one time.
    fn write_rare(&mut self, moments: impl IntoIterator<Item = Vec<Event>>) -> io::Result<()> {
        for events in moments {
            self.last += 1;
            for event in events {
                self.record = event.record(self.last, self.options.pointer_size);
                self.write(0, self.last)?;
            }
        }
        Ok(())
    }
}
