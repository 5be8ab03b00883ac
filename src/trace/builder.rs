//! Events, one after another, into a [`Trace`].

use rustc_hash::FxHashSet;

use crate::etl::{Clock, Recording};
use crate::event::{Event, Kind, NO_ID, Pointer, Ticks};
use crate::events::kernel::{self, Kernel, KernelSpace, Phase, SysConfig};
use crate::events::providers::{
    IMAGE_ID, KERNEL_EVENT_TRACING, META_DATA, STACK_WALK, SYS_CONFIG, SYSTEM_CONFIG, WIN_SAT,
};
use crate::events::{Decoded, decode};
use crate::session::{Host, Inventory, Sink};

use super::accounting::Lost;
use super::code::Collector;
use super::images::Images;
use super::inventory::Before;
use super::join::{Join, RawSample};
use super::lifetimes::EARLY_SECONDS;
use super::mappings::Mappings;
use super::paths::Paths;
use super::processes::{Process, ProcessId, Processes, Threads};
use super::{Context, Sample, Trace};

/// The machine that recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Logical processors.
    pub processors: u32,
    /// The build number of the operating system.
    pub os_build: u32,
    /// The product's name, where the trace was merged on the machine; else empty.
    pub os_name: String,
    /// The pointer width.
    pub pointer: Pointer,
    /// The processor's architecture: 0 x86, 9 x64, 12 ARM64; `None` where nothing tells it.
    pub architecture: Option<u16>,
    /// The machine's name; empty where nothing tells it.
    pub name: String,
}

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
    join: Join,
    /// Each sampling interval in 100 ns, with the number of samples before it.
    intervals: Vec<(usize, u32)>,
    events: u64,
    bytes: u64,
    lost: Lost,
    pub(super) before: Before,
    span: Option<(Ticks, Ticks)>,
    kernel: KernelSpace,
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

/// The event of Kernel-EventTracing whose stack is the user part of what its thread did in the kernel.
const LATE_USER_STACK: Kind = Kind::Manifest(18);

/// The System process.
const SYSTEM_PID: u32 = 4;

/// The opcode of a change of the sampling interval.
const SET_INTERVAL: u8 = 72;

impl Builder {
    /// A builder for a recording with this clock on this machine.
    pub fn new(clock: Clock, machine: Machine) -> Self {
        Builder::with_kernel(clock, machine, KernelSpace::default())
    }

    fn with_kernel(clock: Clock, machine: Machine, kernel: KernelSpace) -> Self {
        let early = clock.ticks(EARLY_SECONDS);
        Builder {
            clock,
            images: Images::new(machine.pointer, kernel),
            machine,
            paths: Paths::default(),
            processes: Processes::new(early),
            threads: Threads::new(early),
            code: Collector::default(),
            join: Join::new(kernel),
            intervals: Vec::new(),
            events: 0,
            bytes: 0,
            lost: Lost::default(),
            before: Before::default(),
            span: None,
            kernel,
        }
    }

    /// A builder for what `recording` says of itself.
    pub fn for_recording(recording: &Recording) -> Self {
        let header = recording.header();
        let machine = Machine {
            processors: header.processors,
            os_build: header.os_build,
            os_name: String::new(),
            pointer: header.pointer,
            architecture: None,
            name: String::new(),
        };
        let kernel = match header.pointer {
            Pointer::Bits32 => kernel_space(recording),
            Pointer::Bits64 => KernelSpace::default(),
        };
        let mut builder = Builder::with_kernel(recording.clock(), machine, kernel);
        for file in recording.files() {
            builder.lost.events += u64::from(file.header().events_lost);
            builder.lost.buffers += u64::from(file.header().buffers_lost);
            builder.lost.sequence_gaps = builder.lost.sequence_gaps.saturating_add(file.sequence_gaps());
        }
        builder
    }

    /// A builder for the events of a live session. What a merge adds to a recording comes from the machine itself.
    pub fn for_session(host: &Host) -> Self {
        let machine = Machine {
            processors: host.processors,
            os_build: host.os_build,
            os_name: String::new(),
            pointer: host.pointer,
            architecture: Some(host.architecture),
            name: host.name.clone(),
        };
        let mut builder = Builder::new(host.clock, machine);
        builder.intervals.push((0, host.interval));
        builder.paths.set_windows(host.windows.clone());
        for (device, drive) in &host.volumes {
            builder.paths.add_volume(device.clone(), drive.clone());
        }
        builder
    }

    /// Keeps the samples of processes with these ids only: others are dropped as soon as their stack names them, and
    /// only counted ([`Trace::unwanted`]). To be called before the first event.
    pub fn keep_only(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.join.keep_only(pids);
    }

    /// Takes one event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.bytes += event.payload.len() as u64;
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), last.max(event.time)));
        match decode(event) {
            Ok(Decoded::Kernel(kernel)) => self.kernel(&kernel, event),
            Ok(Decoded::Clr(clr)) => {
                self.code.clr(&clr, event);
                self.join.note(event.time, event.tid);
            }
            Ok(Decoded::JavaScript(javascript)) => {
                self.code.javascript(&javascript, event);
                self.join.note(event.time, event.tid);
            }
            Ok(Decoded::Other) => {
                if event.provider == KERNEL_EVENT_TRACING
                    && event.kind == LATE_USER_STACK
                    && let Some(frames) = kernel::own_stack(event)
                {
                    self.join.late_user_stack(event, frames);
                }
                if may_own_stack(event) {
                    self.join.note(event.time, event.tid);
                }
            }
            Err(_) => self.lost.malformed_events += 1,
        }
    }

    fn kernel(&mut self, decoded: &Kernel<'_>, event: &Event<'_>) {
        match decoded {
            Kernel::Sample(sample) => {
                self.join.sample(*sample, event, self.intervals.len());
                if self.join.is_sweep_due() {
                    let before = self.join.sweep();
                    let left = self.join.samples.len();
                    for (samples, _) in &mut self.intervals {
                        *samples = before.get(*samples).map_or(left, |before| *before as usize);
                    }
                }
            }
            Kernel::StackWalk(walk) => self.join.stack_walk(walk, event),
            Kernel::ContextSwitch(switch) => self.join.note(event.time, switch.new_tid),
            Kernel::Process(process) => {
                self.listed(process.phase);
                if process.phase == Phase::Start {
                    self.images.process_began(process.pid, event.time);
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
                self.join.note(event.time, event.tid);
            }
            Kernel::ImageId(id) => self.images.identity(id, event.time),
            Kernel::ProfileInterval(interval) if interval.source == 0 && interval.interval > 0 => {
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
            Kernel::Lost(lost) => match lost {
                kernel::Lost::Event => self.lost.events += 1,
                kernel::Lost::Buffer | kernel::Lost::File => self.lost.buffers += 1,
            },
            Kernel::ReadyThread(_) | Kernel::Interrupt(_) | Kernel::ProfileInterval(_) => {
                self.join.note(event.time, event.tid);
            }
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
        let idle = std::mem::take(&mut self.join.idle).finish(|records| interval.after(records));
        if let Some((first, _)) = idle.span {
            self.processes.at(0, first);
        }
        let mut samples = Vec::with_capacity(self.join.samples.len());
        let mut unwanted = 0;
        let mut in_user_mode = FxHashSet::default();
        for (index, raw) in std::mem::take(&mut self.join.samples).into_elements().enumerate() {
            let thread = if raw.sample.tid == 0 { None } else { self.threads.at(raw.sample.tid, raw.time) };
            let of_thread = thread.and_then(|thread| self.threads.pid(thread));
            let pid = pid_of(&raw, of_thread);
            if self.join.is_unwanted(pid) {
                unwanted += 1;
                continue;
            }
            let process = self.processes.at(pid, raw.time);
            let (kernel, user) =
                (self.join.kernel_stack(&raw, self.machine.pointer), self.join.resolved(raw.user));
            let sample = Sample {
                time: raw.time,
                address: raw.sample.address,
                process,
                tid: raw.sample.tid,
                thread,
                processor: raw.processor,
                weight: u64::from(interval.at(index)) * u64::from(raw.sample.count),
                context: context(&raw.sample),
                kernel,
                user,
            };
            if user.is_some() || !self.kernel.contains(sample.address, self.machine.pointer) {
                in_user_mode.insert(process);
            }
            samples.push(sample);
        }
        let lost = Lost {
            orphan_stacks: self.join.orphans,
            undefined_stack_keys: self.join.undefined_keys(),
            ..self.lost
        };
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
            stacks: self.join.stacks,
            samples,
            idle,
            unwanted: self.join.unwanted + unwanted,
            events: self.events,
            bytes: self.bytes,
            lost,
            before: self.before,
            span: self.span,
            kernel: self.kernel,
            kernel_only,
        }
    }
}

/// The process that the stack names; else that of the thread; the idle thread is of process 0.
fn pid_of(raw: &RawSample, of_thread: Option<u32>) -> u32 {
    match raw.pid {
        NO_ID if raw.sample.tid == 0 => 0,
        NO_ID => of_thread.unwrap_or(NO_ID),
        pid => pid,
    }
}

fn context(sample: &kernel::Sample) -> Context {
    match sample {
        kernel::Sample { in_isr: true, .. } => Context::Isr,
        kernel::Sample { in_dpc: true, .. } => Context::Dpc,
        _ => Context::Thread,
    }
}

/// Stacks, and what a merge adds, never own a stack.
fn may_own_stack(event: &Event<'_>) -> bool {
    !matches!(event.provider, STACK_WALK | IMAGE_ID | SYS_CONFIG | META_DATA | WIN_SAT)
}

/// Where the kernel begins on a 32-bit system. The record that says so comes at the end, and stacks are joined before.
fn kernel_space(recording: &Recording) -> KernelSpace {
    let step = |kernel: &mut KernelSpace, event: &Event<'_>| {
        if event.provider == SYSTEM_CONFIG
            && let Ok(Decoded::Kernel(Kernel::Cpu(cpu))) = decode(event)
        {
            *kernel = KernelSpace::above(cpu.highest_user_address);
        }
    };
    recording.fold(&mut |_| (), KernelSpace::default, step).value
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
