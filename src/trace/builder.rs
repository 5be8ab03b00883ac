//! Events, one after another, into a [`Trace`].

use crate::etl::{Clock, Recording};
use crate::event::{Event, Kind, Pointer, Ticks};
use crate::events::kernel::{self, Kernel, Phase, SysConfig};
use crate::events::providers::{IMAGE_ID, KERNEL_EVENT_TRACING, META_DATA, STACK_WALK, SYS_CONFIG, WIN_SAT};
use crate::events::{Decoded, decode};
use crate::session::{Host, Inventory, Sink};

use super::accounting::Lost;
use super::code::Collector;
use super::images::Images;
use super::inventory::Before;
use super::join::{Join, RawSample};
use super::lifetimes::EARLY_SECONDS;
use super::paths::Paths;
use super::processes::{ProcessId, Processes, Threads};
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
    lost: Lost,
    pub(super) before: Before,
    span: Option<(Ticks, Ticks)>,
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

/// The opcode of a change of the sampling interval.
const SET_INTERVAL: u8 = 72;

impl Builder {
    /// A builder for a recording with this clock on this machine.
    pub fn new(clock: Clock, machine: Machine) -> Self {
        let early = clock.ticks(EARLY_SECONDS);
        Builder {
            clock,
            images: Images::new(machine.pointer),
            machine,
            paths: Paths::default(),
            processes: Processes::new(early),
            threads: Threads::new(early),
            code: Collector::default(),
            join: Join::default(),
            intervals: Vec::new(),
            events: 0,
            lost: Lost::default(),
            before: Before::default(),
            span: None,
        }
    }

    /// A builder for what `recording` says of itself.
    pub fn for_recording(recording: &Recording) -> Self {
        let header = recording.header();
        let mut builder = Builder::new(
            recording.clock(),
            Machine {
                processors: header.processors,
                os_build: header.os_build,
                os_name: String::new(),
                pointer: header.pointer,
                architecture: None,
                name: String::new(),
            },
        );
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

    /// Takes one event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
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
                self.join.sample(*sample, event);
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
        let mut samples = Vec::with_capacity(self.join.samples.len());
        let mut intervals = Intervals::new(&self.intervals);
        for (index, raw) in std::mem::take(&mut self.join.samples).iter().enumerate() {
            let thread = if raw.sample.tid == 0 { None } else { self.threads.at(raw.sample.tid, raw.time) };
            let of_thread = thread.and_then(|thread| self.threads.pid(thread));
            samples.push(Sample {
                time: raw.time,
                address: raw.sample.address,
                process: process_of(&mut self.processes, raw, of_thread),
                tid: raw.sample.tid,
                thread,
                processor: raw.processor,
                weight: u64::from(intervals.at(index)) * u64::from(raw.sample.count),
                context: context(&raw.sample),
                kernel: self.join.kernel_stack(raw, self.machine.pointer),
                user: self.join.resolved(raw.user),
            });
        }
        let lost = Lost {
            orphan_stacks: self.join.orphans,
            undefined_stack_keys: self.join.undefined_keys(),
            ..self.lost
        };
        Trace {
            clock: self.clock,
            machine: self.machine,
            processes: self.processes.finish(),
            threads: self.threads.finish(),
            modules,
            mappings,
            code,
            stacks: self.join.stacks,
            samples,
            events: self.events,
            lost,
            before: self.before,
            span: self.span,
        }
    }
}

/// The process that the stack names; else that of the thread; the idle thread is of process 0.
fn process_of(processes: &mut Processes, raw: &RawSample, of_thread: Option<u32>) -> ProcessId {
    use crate::event::NO_ID;
    let pid = match raw.pid {
        NO_ID if raw.sample.tid == 0 => 0,
        NO_ID => of_thread.unwrap_or(NO_ID),
        pid => pid,
    };
    processes.at(pid, raw.time)
}

fn context(sample: &kernel::Sample) -> Context {
    match sample {
        kernel::Sample { in_isr: true, .. } => Context::Isr,
        kernel::Sample { in_dpc: true, .. } => Context::Dpc,
        kernel::Sample { tid: 0, .. } => Context::Idle,
        _ => Context::Thread,
    }
}

/// Stacks, and what a merge adds, never own a stack.
fn may_own_stack(event: &Event<'_>) -> bool {
    !matches!(event.provider, STACK_WALK | IMAGE_ID | SYS_CONFIG | META_DATA | WIN_SAT)
}

/// The interval in force at each sample, asked for in order.
struct Intervals<'a> {
    rest: &'a [(usize, u32)],
    current: u32,
}

impl<'a> Intervals<'a> {
    /// Samples before the first record of an interval ran at it too: the record belongs to the rundown, which may be
    /// late.
    fn new(all: &'a [(usize, u32)]) -> Self {
        Intervals { rest: all, current: all.first().map_or(DEFAULT_INTERVAL, |(_, interval)| *interval) }
    }

    fn at(&mut self, sample: usize) -> u32 {
        while let Some(((from, interval), rest)) = self.rest.split_first()
            && *from <= sample
        {
            (self.current, self.rest) = (*interval, rest);
        }
        self.current
    }
}
