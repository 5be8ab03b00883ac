//! Events, one after another, into a [`Trace`].

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::clock::{Clock, Ticks};
use crate::etl::digest::{BufferAt, InOrder, RecordAt};
use crate::event::{Event, NO_ID, Pointer};
use crate::events::clr::{self, Clr};
use crate::events::kernel::{self, Kernel, Phase, StackWalk, SysConfig};
use crate::events::trimmed::Trimmed;
use crate::events::{Decoded, decode};
use crate::guids::{CLR, KERNEL_EVENT_TRACING};
use crate::interned::Interned;
use crate::origin::{KernelSpace, Machine, Missing, Origin};
use crate::sink::{Inventory, Sink};

use super::Trace;
use super::accounting::Lost;
use super::awaiting::{Fact, Keep};
use super::chosen::{AllocatedType, ChosenEvent, EventSet};
use super::code::Collector;
use super::counters;
use super::digest::{Buffers, Digest, Item, Worker, may_own_stack};
use super::disk;
use super::gc;
use super::images::Images;
use super::interrupts;
use super::inventory::Before;
use super::join::Join;
use super::kept::{CounterSource, Kept};
use super::lifetimes::EARLY_SECONDS;
use super::mappings::Mappings;
use super::merging::{Merger, Merging};
use super::paths::Paths;
use super::processes::{Process, ProcessId, Processes, Threads};
use super::resolver::Resolver;
use super::sample::{ANY_PROCESSOR, Context, Runner, RunnerId, Sample, StackId};
use super::texts::Texts;

/// Takes events in order of time and makes a [`Trace`] of them.
#[derive(Debug)]
pub struct Builder {
    clock: Clock,
    machine: Machine,
    paths: Paths,
    pub(super) processes: Processes,
    pub(super) threads: Threads,
    pub(super) images: Images,
    code: Collector,
    managed: gc::Collector,
    counters: counters::Collector,
    disk: disk::Collector,
    interrupts: interrupts::Collector,
    keep: Keep,
    chosen: Arc<EventSet>,
    types: Texts,
    join: Join,
    /// Each sampling interval in 100 ns, with the number of samples before it.
    intervals: Vec<(usize, u32)>,
    /// What is counted beside the timer, by the source's number.
    sources: BTreeMap<u32, CounterSource>,
    counter_samples: u64,
    events: u64,
    bytes: u64,
    lost: Lost,
    missing: Vec<Missing>,
    pub(super) before: Before,
    trimmed: Option<Trimmed>,
    span: Option<(Ticks, Ticks)>,
    kernel: KernelSpace,
}

impl InOrder<Buffers> for Builder {
    fn buffer(&mut self, buffer: &BufferAt, digest: &mut Digest) {
        self.count(digest.events, digest.bytes, buffer.span);
        self.join.begin(buffer, digest, self.intervals.len());
    }

    #[inline]
    fn item(&mut self, item: Item, record: &RecordAt<'_>) {
        self.join.at(record.place);
        let at = (record.place.time, record.processor);
        match item {
            Item::Sample(sample, pointer) => self.sample(sample, pointer, at),
            Item::Fragment(fragment) => self.join.digested(&fragment, at, || match decode(&record.event()) {
                Ok(Decoded::Kernel(Kernel::StackWalk(StackWalk::Stack { frames, .. }))) => Some(frames),
                _ => None,
            }),
            Item::Record => self.take(&record.event()),
        }
    }
}

impl Sink for Builder {
    fn event(&mut self, event: &Event<'_>) {
        Builder::event(self, event);
    }

    fn inventory(&mut self, inventory: Inventory) {
        self.take_inventory(&inventory);
    }
}

/// In 100 ns; what Windows samples at if nobody says otherwise.
const DEFAULT_INTERVAL: u32 = 10_000;

/// The System process.
const SYSTEM_PID: u32 = 4;

/// The opcode of a change of the sampling interval.
const SET_INTERVAL: u8 = 72;

impl Builder {
    /// A builder for the events of this origin.
    pub fn new(origin: &Origin) -> Self {
        let early = origin.clock.ticks(EARLY_SECONDS);
        let losses = origin.losses;
        let lost = Lost {
            events: losses.events,
            buffers: losses.buffers,
            sequence_gaps: losses.sequence_gaps,
            ..Lost::default()
        };
        let mut paths = Paths::default();
        paths.set_windows(origin.windows.clone());
        for (device, drive) in &origin.volumes {
            paths.add_volume(device.clone(), drive.clone());
        }
        Builder {
            clock: origin.clock,
            images: Images::new(origin.machine.pointer, origin.kernel),
            machine: origin.machine.clone(),
            paths,
            processes: Processes::new(early),
            threads: Threads::new(early),
            code: Collector::default(),
            managed: gc::Collector::default(),
            counters: counters::Collector::default(),
            disk: disk::Collector::default(),
            interrupts: interrupts::Collector::default(),
            keep: Keep::default(),
            chosen: Arc::default(),
            types: Texts::default(),
            join: Join::new(origin.kernel),
            intervals: origin.interval.map(|interval| (0, interval)).into_iter().collect(),
            sources: BTreeMap::new(),
            counter_samples: 0,
            events: 0,
            bytes: 0,
            lost,
            missing: origin.missing.clone(),
            before: Before::default(),
            trimmed: None,
            span: None,
            kernel: origin.kernel,
        }
    }

    /// Keeps the samples of processes with these ids only: others are dropped as soon as their stack names them, and
    /// only counted ([`Trace::unwanted`]). To be called before the first event.
    pub fn keep_only(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.join.keep_only(pids);
    }

    /// Keeps idle samples with their stacks too, like any others, and counts none as idle. To be called before the first
    /// event.
    pub fn keep_idle(&mut self) {
        self.join.keep_idle();
    }

    /// Keeps these events with their stacks, too. To be called before the first event.
    pub fn keep(&mut self, keep: Keep) {
        self.keep = keep;
        self.join.keep(keep);
    }

    /// Keeps these events with their stacks, too: those that they carry themselves, those of the kernel, and those that the
    /// CLR walks. To be called before the first event.
    pub fn keep_events(&mut self, events: EventSet) {
        self.chosen = Arc::new(events);
        self.join.keep_events(Arc::clone(&self.chosen));
    }

    /// Lets samples take about so many bytes of memory; 0 for as little as can be. If they need more, those that differ in little but their time
    /// become one ([`Trace::merged`]). What else there is in a recording counts for nothing here: stacks, methods, images.
    /// To be called before the first event.
    pub fn hold(&mut self, memory: u64) {
        self.join.merge(Merging::new(memory, self.clock));
    }

    /// Takes one event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.count(1, event.payload.len() as u64, (event.time, event.time));
        self.take(event);
    }

    /// What digests the buffers of a recording: the builder is then an [`InOrder`] of it. Call this after
    /// `keep`, `keep_idle` and `keep_only`.
    pub fn buffers(&self) -> Buffers {
        self.join.buffers()
    }

    /// Takes over the stacks of the threads that digested buffers.
    pub fn graft(&mut self, workers: Vec<Worker>) {
        self.join.graft(workers);
    }

    fn count(&mut self, events: u64, bytes: u64, span: (Ticks, Ticks)) {
        self.events += events;
        self.bytes += bytes;
        let (first, last) = self.span.unwrap_or(span);
        self.span = Some((first.min(span.0), last.max(span.1)));
    }

    fn take(&mut self, event: &Event<'_>) {
        let decoded = decode(event);
        if !self.chosen.is_empty() {
            self.choose(decoded.as_ref().ok(), event);
        }
        match decoded {
            Ok(Decoded::Kernel(kernel)) => self.kernel(&kernel, event),
            Ok(Decoded::Clr(clr)) => {
                self.code.clr(&clr, event);
                self.managed.take(&clr, event);
                self.join.note(event.time, event.tid);
                if let Clr::Method(clr::Method { phase: clr::Phase::Unload, .. }) = clr {
                    self.code_changes(event.pid, event.time);
                }
            }
            Ok(Decoded::JavaScript(javascript)) => {
                self.code.javascript(&javascript, event);
                // Its collector moves code without a word.
                self.code_changes(event.pid, event.time);
                self.join.note(event.time, event.tid);
            }
            Ok(Decoded::Counter(value)) => {
                self.counters.take(&value, event.time);
                self.join.note(event.time, event.tid);
            }
            Ok(Decoded::Trimmed(event)) => {
                let part = event.trimmed();
                self.trimmed = Some(match self.trimmed.take() {
                    Some(trimmed) => trimmed.with(part),
                    None => part,
                });
            }
            Ok(Decoded::Other) => {
                if event.provider == KERNEL_EVENT_TRACING
                    && event.kind == kernel::LATE_USER_STACK
                    && let Some(frames) = kernel::own_stack(event)
                {
                    self.join.late_user_stack(event, frames);
                }
                if may_own_stack(event.provider) {
                    self.join.note(event.time, event.tid);
                }
            }
            Err(_) => self.lost.malformed_events += 1,
        }
    }

    /// Few events are chosen, and every event passes here.
    #[inline(never)]
    fn keep_chosen(&mut self, decoded: Option<&Decoded<'_>>, event: &Event<'_>) {
        let (mut fact, mut tid) = (ChosenEvent::default(), event.tid);
        match decoded {
            Some(Decoded::Clr(Clr::AllocationTick(tick))) => {
                let name = tick.type_name.map(|name| self.types.intern(name).index() as u32);
                let of = name.map(|name| AllocatedType { name, is_sampled: false });
                fact = ChosenEvent { bytes: tick.bytes, of };
            }
            Some(Decoded::Clr(Clr::AllocationSampled(sampled))) => {
                let name = self.types.intern(sampled.type_name).index() as u32;
                let of = Some(AllocatedType { name, is_sampled: true });
                fact = ChosenEvent { bytes: sampled.bytes(), of };
            }
            // Their payloads name the thread.
            Some(Decoded::Kernel(Kernel::ContextSwitch(switch))) => tid = switch.new_tid,
            Some(Decoded::Kernel(Kernel::CounterSample(sample))) => tid = sample.tid,
            Some(Decoded::Kernel(Kernel::PageFault(fault))) => tid = fault.tid.unwrap_or(tid),
            _ => {}
        }
        self.join.chosen(fact, tid, event);
    }

    /// Keeps a chosen event. A stack that the CLR walks belongs to its event before it on the thread, chosen or not.
    fn choose(&mut self, decoded: Option<&Decoded<'_>>, event: &Event<'_>) {
        let is_chosen = may_own_stack(event.provider) && self.chosen.has(event);
        if is_chosen {
            self.keep_chosen(decoded, event);
        }
        if event.provider == CLR {
            match decoded {
                Some(Decoded::Clr(Clr::StackWalk(walk))) => self.join.clr_stack(event, walk.frames),
                _ => self.join.clr_event(event, is_chosen),
            }
        }
    }

    #[inline]
    fn sample(&mut self, sample: kernel::Sample, pointer: Pointer, at: (Ticks, u16)) {
        self.join.sample(sample, pointer, at, self.intervals.len());
        if self.join.is_sweep_due() {
            self.join.sweep(at.0, &self.threads, &mut self.intervals);
        }
    }

    fn kernel(&mut self, decoded: &Kernel<'_>, event: &Event<'_>) {
        match decoded {
            Kernel::Sample(sample) => self.sample(*sample, event.pointer, (event.time, event.processor)),
            Kernel::StackWalk(walk) => self.join.stack_walk(walk, event),
            Kernel::ContextSwitch(switch) => self.join.other(Fact::Switch(*switch), event),
            Kernel::ReadyThread(ready) => self.join.other(Fact::Ready(*ready), event),
            Kernel::PageFault(fault) => {
                if self.keep.disk {
                    self.disk.fault(*fault, event);
                }
                self.join.other(Fact::Fault(*fault), event);
            }
            Kernel::DiskIoInit(request) => self.join.other(Fact::Disk(*request), event),
            Kernel::DiskIo(io) => {
                if self.keep.disk {
                    self.disk.operation(*io, event);
                }
                self.join.note(event.time, event.tid);
            }
            Kernel::FileName(name) => {
                if self.keep.disk {
                    self.disk.name(name, event.time);
                }
                self.join.note(event.time, event.tid);
            }
            Kernel::CounterSample(sample) => {
                self.counter_samples += 1;
                self.join.other(Fact::Counter(*sample), event);
            }
            Kernel::Process(process) => {
                self.listed(process.phase);
                if process.phase == Phase::Start {
                    self.images.process_began(process.pid, event.time);
                    self.managed.process_began(process.pid);
                }
                if matches!(process.phase, Phase::Start | Phase::End | Phase::Defunct) {
                    self.code_changes(process.pid, event.time);
                }
                let exit = process
                    .exit_time
                    .filter(|exit| *exit > 0)
                    .map(|exit| self.clock.moment(exit).min(event.time));
                self.processes.record(process, event.time, exit);
                self.join.note(event.time, event.tid);
            }
            Kernel::Thread(thread) => {
                self.listed(thread.phase);
                if thread.phase == Phase::Start {
                    self.join.thread_began(thread.tid);
                }
                self.threads.record(thread, event.time);
                self.join.note(event.time, event.tid);
            }
            Kernel::ThreadName(name) => self.threads.name(name),
            Kernel::Image(image) => {
                self.listed(image.phase);
                self.images.record(image, event.time);
                if matches!(image.phase, Phase::Start | Phase::End | Phase::Defunct) {
                    // The kernel's are everybody's, whatever process a record names.
                    let is_kernel = self.kernel.contains(image.base, event.pointer);
                    self.code_changes(if is_kernel { 0 } else { image.pid }, event.time);
                }
                self.join.note(event.time, event.tid);
            }
            Kernel::ImageId(id) => self.images.identity(id, event.time),
            Kernel::ProfileInterval(interval) if interval.source == 0 && interval.interval > 0 => {
                self.join.interval_changes(self.intervals.len());
                // A change tells what was in force before it; the rundown tells what is.
                if self.intervals.is_empty() && event.opcode == SET_INTERVAL && interval.old_interval > 0 {
                    self.intervals.push((0, interval.old_interval));
                }
                self.intervals.push((self.join.samples.len(), interval.interval));
            }
            Kernel::Cpu(cpu) => {
                self.machine.architecture = cpu.architecture;
                self.machine.name = cpu.computer.to_string();
            }
            Kernel::SysConfig(config) => match config {
                SysConfig::Build { product, .. } => self.machine.os_name = product.to_string(),
                SysConfig::Paths { windows, .. } => self.paths.set_windows(windows.to_string()),
                SysConfig::Volume { nt, dos } => self.paths.add_volume(nt.to_string(), dos.to_string()),
            },
            Kernel::Lost(lost) => {
                match lost {
                    kernel::Lost::Event => self.lost.events += 1,
                    kernel::Lost::Buffer | kernel::Lost::File => self.lost.buffers += 1,
                }
                self.missing.push(Missing { processor: None, until: event.time });
            }
            Kernel::ProfileInterval(interval) if interval.source != 0 => {
                let source = self.sources.entry(interval.source).or_default();
                source.interval = interval.interval;
                if !interval.name.is_empty() {
                    source.name = interval.name.to_string();
                }
                self.join.note(event.time, event.tid);
            }
            Kernel::Interrupt(interrupt) => {
                if self.keep.interrupts {
                    self.interrupts.take(*interrupt, event.time, event.processor);
                }
                self.join.note(event.time, event.tid);
            }
            Kernel::ProfileInterval(_) => self.join.note(event.time, event.tid),
        }
    }

    /// From now on, other code may lie where code of a process was, or its id is another's.
    fn code_changes(&mut self, pid: u32, time: Ticks) {
        if let Some(merging) = &mut self.join.merging {
            merging.change(pid, time);
        }
    }

    /// Counts the records of the kernel's lists.
    fn listed(&mut self, phase: Phase) {
        match phase {
            Phase::RundownStart => self.before.listed_at_start += 1,
            Phase::RundownEnd => self.before.listed_at_end += 1,
            Phase::Start | Phase::End | Phase::Defunct => {}
        }
    }

    /// Resolves what had to wait for the end.
    pub fn finish(mut self) -> Trace {
        let system = if self.images.has_kernel_modules() {
            self.processes.at(4, Ticks(i64::MIN))
        } else {
            ProcessId(u32::MAX) // nobody looks for it
        };
        let (modules, mappings) = self.images.finish(&self.paths, &mut self.processes, system);
        let code = self.code.finish(&mut self.processes, self.clock.ticks(EARLY_SECONDS));
        let interval = Intervals(&self.intervals);
        let idle = std::mem::take(&mut self.join.idle);
        let idle = idle.finish(self.intervals.len(), |records| interval.after(records));
        if let Some((first, _)) = idle.span {
            self.processes.at(0, first);
        }
        let mut samples: Vec<Sample> = Vec::with_capacity(self.join.samples.len());
        let mut unwanted = 0;
        let mut in_user_mode = FxHashSet::default();
        let (mut runners, mut stacks) = (Interned::default(), Interned::default());
        let (raw_samples, others) =
            (std::mem::take(&mut self.join.samples), std::mem::take(&mut self.join.others));
        let (merging, mut last_merged) = (self.join.merging.take(), self.join.last_merged);
        let mut merger = Merger::default();
        let mut resolver = Resolver {
            join: &mut self.join,
            threads: &self.threads,
            processes: &mut self.processes,
            pointer: self.machine.pointer,
        };
        for (index, raw) in raw_samples.into_elements().enumerate() {
            let Some((pid, mut runner, stack)) = resolver.resolve(&raw) else {
                unwanted += u64::from(raw.count);
                continue;
            };
            let mut processor = raw.processor;
            if merging.as_ref().is_some_and(Merging::is_stacks_only) {
                processor = ANY_PROCESSOR;
                if runner.tid != 0 {
                    runner = Runner { tid: NO_ID, thread: None, ..runner };
                }
            }
            let sample = Sample {
                time: raw.time,
                address: raw.fact.address,
                runner: RunnerId(runners.number(runner)),
                stack: StackId(stacks.number(stack)),
                weight: interval.at(index).saturating_mul(u32::from(raw.fact.count)),
                processor,
                context: context(&raw.fact),
                count: raw.count,
            };
            if stack.user.is_some() || !self.kernel.contains(sample.address, self.machine.pointer) {
                in_user_mode.insert(runner.process);
            }
            // Stacks that keys told are known only now.
            if let Some(merging) = &merging
                && let Some(section) = merging.section(pid, raw.time)
            {
                merger.enter((section.0, 0));
                let hash = FxBuildHasher.hash_one((section, sample.alike()));
                let is_alike = |known: &Sample| {
                    known.alike() == sample.alike() && merging.section(pid, known.time) == Some(section)
                };
                let known = merger.find(hash, |place| samples.get(place).is_some_and(is_alike));
                if known
                    .and_then(|place| samples.get_mut(place as usize))
                    .is_some_and(|known| known.add(&sample))
                {
                    last_merged = last_merged.max(Some(sample.time));
                    continue;
                }
                merger.put(hash, samples.len(), known);
            }
            samples.push(sample);
        }
        let merged = merging.as_ref().and_then(Merging::given_up);
        // After the samples, so that these have the same numbers whatever is kept beside them.
        let mut kept = Kept::default();
        for raw in others.into_elements() {
            if let Some((_, runner, stack)) = resolver.resolve(&raw) {
                let runner = RunnerId(runners.number(runner));
                let other = raw.fact.other().map(|tid| resolver.runner(tid, raw.time));
                let other = other.map(|other| RunnerId(runners.number(other)));
                kept.take(&raw, runner, other, StackId(stacks.number(stack)));
            }
        }
        if !kept.events.is_empty() {
            kept.types = self.types.iter().map(str::to_owned).collect();
        }
        let disk = self.disk.finish(
            &kept.disk_requests,
            &self.paths,
            &mut disk::Owners { threads: &self.threads, processes: &mut self.processes, runners: &runners },
        );
        let lost = Lost {
            orphan_stacks: self.join.orphans,
            undefined_stack_keys: self.join.undefined_keys(),
            ..self.lost
        };
        let managed = self.managed.finish(&mut self.processes);
        let counters = self.counters.finish(&mut self.processes);
        let processes = self.processes.finish();
        let kernel_only = kernel_only(&processes, &mappings, &in_user_mode);
        Trace {
            clock: self.clock,
            machine: self.machine,
            processes,
            threads: self.threads.finish(),
            modules,
            mappings,
            code,
            managed,
            counters,
            addresses: self.join.stacks,
            stacks: stacks.into_things(),
            runners: runners.into_things(),
            samples,
            merged,
            kept,
            disk,
            interrupts: self.interrupts.finish(),
            counter_samples: self.counter_samples,
            counter_sources: self.sources,
            idle,
            unwanted: self.join.unwanted + unwanted,
            events: self.events,
            bytes: self.bytes,
            lost,
            missing: self.missing,
            before: self.before,
            trimmed: self.trimmed,
            span: self.span,
            last_merged,
            kernel: self.kernel,
            kernel_only,
        }
    }
}

fn context(sample: &kernel::Sample) -> Context {
    match sample {
        kernel::Sample { in_isr: true, .. } => Context::Isr,
        kernel::Sample { in_dpc: true, .. } => Context::Dpc,
        _ => Context::Thread,
    }
}

/// The processes without user mode: see [`Trace::is_kernel_only`]. Where no process has images, nobody recorded them.
fn kernel_only(
    processes: &[Process],
    mappings: &Mappings,
    in_user_mode: &FxHashSet<ProcessId>,
) -> FxHashSet<ProcessId> {
    let has_images = |id: ProcessId| mappings.of(id).next().is_some();
    let ids = || (0..).map(ProcessId).zip(processes);
    let are_recorded = ids().any(|(id, process)| !matches!(process.pid, 0 | SYSTEM_PID) && has_images(id));
    let is_kernel_only = |id: ProcessId, process: &Process| match process.pid {
        0 | SYSTEM_PID => true,
        // One that is only mentioned may be any.
        _ if process.name.is_empty() => false,
        _ => are_recorded && !in_user_mode.contains(&id) && !has_images(id),
    };
    ids().filter(|(id, process)| is_kernel_only(*id, process)).map(|(id, _)| id).collect()
}

/// Each sampling interval, with the number of samples before it.
///
/// Samples before the first record ran at its interval too: the record belongs to the rundown, which may be late.
#[derive(Clone, Copy)]
struct Intervals<'a>(&'a [(usize, u32)]);

impl Intervals<'_> {
    /// The interval in force at a sample, in 100 ns.
    fn at(self, sample: usize) -> u32 {
        self.after(self.0.partition_point(|(before, _)| *before <= sample))
    }

    /// The interval in force after so many records, in 100 ns.
    fn after(self, records: usize) -> u32 {
        self.0.get(records.saturating_sub(1)).map_or(DEFAULT_INTERVAL, |(_, interval)| *interval)
    }
}
