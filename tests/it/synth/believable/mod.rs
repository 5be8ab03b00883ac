//! Recordings of any size that are shaped as real ones are, and what is in them to the last sample.
//!
//! How deep stacks are, what they share and which of them are frequent is drawn from distributions of real recordings
//! ([`shapes`]). A recording is simulated in steps of a sampling interval: threads run on processors, leave them for
//! others, and are found by the timer in one of the stacks of their process. Records of all processors lie close in
//! time, as in real recordings, so that whoever orders them changes processors at three of four records.
//!
//! The same options and seed give the same file. Memory depends on the number of different stacks and on the
//! processors, not on the size of the file.

mod keys;
mod population;
mod random;
mod recorder;
mod rundown;
mod scheduler;
pub mod shapes;
mod space;
mod stacks;
mod templates;

use std::fmt;
use std::io::{self, Seek, Write};

use super::{Clock, xpress};
use shapes::Shape;

/// What to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file's size in bytes, at least about.
    pub size: u64,
    pub seed: u64,
    pub shape: Shape,
    pub processors: u16,
    /// Programs, System and Idle not among them.
    pub processes: u32,
    /// Of all programs together; drawn from the shape otherwise. The busiest can always fill all processors.
    pub threads: Option<u32>,
    /// The idle share of all samples.
    pub idle: f64,
    /// Different stacks that there are. Which of them have samples is left to chance.
    pub stacks: u32,
    /// Stacks are so many times as deep as the shape's.
    pub depth: f64,
    /// A new stack has so many times as many frames that it does not share with others as the shape's.
    pub fresh: f64,
    /// Stacks by keys that are defined later, and not frame by frame.
    pub stack_keys: bool,
    pub compressed: bool,
    /// For each sample; none at 0.
    pub switches: f64,
    /// A ready thread before each switch to a thread.
    pub ready: bool,
    /// Switches and ready threads have stacks.
    pub wait_stacks: bool,
    /// Interrupts and deferred procedure calls for each sample.
    pub isrs: f64,
    pub dpcs: f64,
    /// Processes with .NET, their methods at any time, and how many of them are replaced in a second.
    pub managed: u32,
    pub methods: u32,
    pub churn: f64,
    /// Processes that end in a second, each followed by one of the same program.
    pub starts: f64,
    pub clock: Clock,
    pub buffer_size: u32,
    /// 4 or 8.
    pub pointer_size: usize,
}

impl Options {
    /// Like a real recording, but for its length.
    pub fn like(shape: Shape, size: u64, seed: u64) -> Self {
        Options {
            size,
            seed,
            shape,
            processors: 8,
            processes: 80,
            threads: None,
            idle: shape.idle,
            stacks: 20_000,
            depth: 1.0,
            fresh: 1.0,
            stack_keys: shape.stack_keys,
            compressed: shape.compressed,
            switches: shape.switches,
            ready: false,
            wait_stacks: false,
            isrs: shape.isrs,
            dpcs: shape.dpcs,
            managed: shape.managed,
            methods: 2_000,
            churn: shape.churn,
            starts: 0.5,
            clock: Clock::Qpc { freq: 10_000_000 },
            buffer_size: 1 << 20,
            pointer_size: 8,
        }
    }
}

/// What is in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub bytes: u64,
    pub buffers: u64,
    pub records: u64,
    /// All, the idle ones with them.
    pub samples: u64,
    pub idle: u64,
    /// Of the idle thread, in a DPC: no idle samples.
    pub idle_in_dpc: u64,
    /// The parts of the stacks of samples that are not idle.
    pub user_only: u64,
    pub both: u64,
    pub kernel_only: u64,
    /// Different stacks of samples that are not idle; the same one in two programs counts twice.
    pub stacks: u64,
    /// Samples whose leaf is a compiled method.
    pub in_methods: u64,
    /// Idle and System are among them.
    pub processes: u64,
    pub threads: u64,
    /// Mappings of images, the kernel's with them.
    pub images: u64,
    pub methods_loaded: u64,
    pub methods_unloaded: u64,
    pub switches: u64,
    pub ready: u64,
    /// Stacks of switches and ready threads, each part counted.
    pub wait_parts: u64,
    pub interrupts: u64,
    pub key_definitions: u64,
    pub milliseconds: u64,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("bytes", self.bytes),
            ("buffers", self.buffers),
            ("milliseconds", self.milliseconds),
            ("records", self.records),
            ("samples", self.samples),
            ("idle", self.idle),
            ("idle in DPCs", self.idle_in_dpc),
            ("user only", self.user_only),
            ("kernel and user", self.both),
            ("kernel only", self.kernel_only),
            ("stacks", self.stacks),
            ("in methods", self.in_methods),
            ("processes", self.processes),
            ("threads", self.threads),
            ("images", self.images),
            ("methods loaded", self.methods_loaded),
            ("methods unloaded", self.methods_unloaded),
            ("switches", self.switches),
            ("ready threads", self.ready),
            ("parts of their stacks", self.wait_parts),
            ("interrupts", self.interrupts),
            ("key definitions", self.key_definitions),
        ];
        rows.iter().try_for_each(|(name, count)| writeln!(f, "{name:<22}{count:>16}"))
    }
}

/// Writes a recording, and says what is in it.
pub fn generate<W: Write + Seek>(options: &Options, out: W) -> io::Result<Contents> {
    recorder::Recorder::new(options, out)?.record()
}
