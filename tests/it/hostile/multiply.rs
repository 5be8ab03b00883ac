//! Files in which a little is shown often: one deep stack in many processes, below many others, in many threads; and
//! code in which every address holds hundreds of inlined functions.
//!
//! What is made of them stays in proportion to what was read, no sample is lost, and what was left out is counted.

use etwprof::profile::{CallTree, Cut, Filter, Grouping, Limit, Naming, Profile};
use etwprof::symbols::{Function, FunctionName, Names, Unnamed};
use etwprof::trace::{ModuleId, Trace};

use super::{CODE, KERNEL};
use crate::support::reading;
use crate::synth::{Etl, Image, Process, START, Sample, Thread, stack_walk};

/// Samples that all show one user stack, told once by a key.
pub struct Shown {
    pub processes: u32,
    /// In each process.
    pub threads: u32,
    /// Addresses of the one stack.
    pub depth: u64,
    /// Distinct kernel stacks of one address below it; 0 for none.
    pub leaves: u64,
    /// Distinct addresses of a stack of their own above it, in the kernel's half; 0 for none.
    pub tops: u64,
    pub samples: u32,
}

const KEY: u64 = 0x77;
const DEEP_KERNEL: u64 = 0x78;

impl Shown {
    pub fn file(&self) -> Etl {
        let mut etl = Etl::new().cpus(1);
        let pid = |process: u32| 1_000 + 4 * process;
        let tid = |process: u32, thread: u32| 1_000_000 + 4 * (process * self.threads + thread);
        for process in 0..self.processes {
            etl = etl.event(0, START + 1, Process::dc_start(pid(process), "a.exe"));
            for thread in 0..self.threads {
                let (pid, tid) = (pid(process), tid(process, thread));
                etl = etl.event(0, START + 1, Thread::dc_start(pid, tid));
            }
        }
        for number in 0..self.samples {
            let (process, thread) = (number % self.processes, number / self.processes % self.threads);
            let (pid, tid) = (pid(process), tid(process, thread));
            let time = START + 10 + 10 * i64::from(number);
            let number = u64::from(number);
            etl = etl.event(0, time, Sample::new(if self.leaves > 0 { KERNEL } else { CODE }, tid));
            if self.tops > 0 {
                // The stack that is told once is the kernel's, and stands below a user stack that is always another one.
                etl = etl.event(0, time + 1, stack_walk::kernel_key(time, pid, tid, DEEP_KERNEL));
                let top = CODE + 0x10 * (number % self.tops);
                etl = etl.event(0, time + 2, stack_walk::full(time, pid, tid, &[top]));
                continue;
            }
            if self.leaves > 0 {
                let leaf = KERNEL + 0x10 * (number % self.leaves);
                etl = etl.event(0, time + 1, stack_walk::full(time, pid, tid, &[leaf]));
            }
            etl = etl.event(0, time + 2, stack_walk::user_key(time, pid, tid, KEY));
        }
        let end = START + 100 + 10 * i64::from(self.samples);
        let (key, base) = if self.tops > 0 { (DEEP_KERNEL, KERNEL) } else { (KEY, CODE) };
        let frames: Vec<u64> = (0..self.depth).map(|frame| base + 0x100_0000 + 0x10 * frame).collect();
        etl.event(0, end, stack_walk::key_rundown(key, &frames))
    }

    fn trace(&self) -> Trace {
        reading::synthetic(self.file())
    }
}

const IN_PROCESSES: Shown =
    Shown { processes: 200, threads: 1, depth: 2_000, leaves: 0, tops: 0, samples: 400 };

fn profile(trace: &Trace, names: &dyn Names) -> Profile {
    Profile::new(trace, &Filter::default(), names, Naming::default())
}

/// Kept samples, whole or cut, and the nodes of the profile and of its tree.
#[track_caller]
fn assert_bounded(trace: &Trace, names: &dyn Names, by_thread: bool) -> Cut {
    // What the smallest recording may ask for, and what these files add to it.
    const NODES: usize = 100_000;
    let profile = profile(trace, names);
    assert_eq!(profile.balance.kept, trace.samples.len() as u64);
    assert_eq!(profile.balance.total, profile.balance.kept);
    assert!(profile.stacks.len() < NODES, "{} nodes", profile.stacks.len());
    let tree = CallTree::new(&profile, trace, Grouping { by_process: true, by_thread });
    assert_eq!(tree.total(), profile.balance.kept, "no sample is lost");
    assert!(tree.nodes().count() < NODES, "{} nodes", tree.nodes().count());
    assert!(tree.cut().samples > 0 && tree.cut().samples < tree.total(), "{:?}", tree.cut());
    let heading = tree.nodes().any(|(_, node)| tree.frame(node).unwrap().text == "[stack cut]");
    assert!(heading, "what was cut is said in the tree");
    tree.cut()
}

/// Frames that the samples have, in the tree.
fn frames(trace: &Trace, limit: Limit) -> (u64, Cut) {
    let profile = Profile::within(limit, trace, &Filter::default(), &Unnamed, Naming::default());
    let tree = CallTree::new(&profile, trace, Grouping { by_process: false, by_thread: false });
    let of_code = |id| tree.path(id).filter(|frame| !frame.text.starts_with('[')).count() as u64;
    let leaves = tree.nodes().filter(|(_, node)| node.leaf > 0);
    (leaves.map(|(id, node)| node.leaf * of_code(id)).sum(), tree.cut())
}

#[test]
fn one_stack_in_many_processes() {
    let trace = IN_PROCESSES.trace();
    let cut = assert_bounded(&trace, &Unnamed, false);
    assert!(cut.frames > 100_000, "{cut:?}");
}

#[test]
fn one_stack_below_many_others() {
    let shown = Shown { processes: 1, threads: 1, depth: 2_000, leaves: 0, tops: 300, samples: 600 };
    assert_bounded(&shown.trace(), &Unnamed, false);
}

#[test]
fn one_stack_above_many_others_makes_few_nodes_and_long_lines() {
    let shown = Shown { processes: 1, threads: 1, depth: 4_000, leaves: 4_000, tops: 0, samples: 4_000 };
    assert_bounded(&shown.trace(), &Unnamed, false);
}

/// The profile has one stack; the tree would have it for each thread.
#[test]
fn one_stack_in_many_threads() {
    let shown = Shown { processes: 1, threads: 200, depth: 2_000, leaves: 0, tops: 0, samples: 400 };
    let trace = shown.trace();
    assert_eq!(profile(&trace, &Unnamed).cut(), Cut::default());
    assert_bounded(&trace, &Unnamed, true);
}

#[test]
fn what_is_cut_is_counted_and_a_trusted_file_is_shown_whole() {
    let trace = Shown { processes: 1, threads: 1, depth: 2_000, leaves: 0, tops: 300, samples: 600 }.trace();
    let (all, nothing) = frames(&trace, Limit::NONE);
    assert!(all >= 600 * 2_001, "{all}");
    assert_eq!(nothing, Cut::default());
    let (shown, cut) = frames(&trace, Limit::of(&trace));
    assert_eq!(shown + cut.frames, all);
}

/// Each address is in the innermost of so many functions.
struct Inlined(Vec<Function>);

impl Inlined {
    fn new(depth: usize) -> Inlined {
        let function = |number: usize| Function {
            name: FunctionName::Text(format!("f{number}").into()),
            file: None,
            line: None,
            inlined: number > 0,
            approximate: false,
        };
        Inlined((0..=depth).map(function).collect())
    }
}

impl Names for Inlined {
    fn functions(&self, _: ModuleId, _: u64) -> Vec<&Function> {
        self.0.iter().collect()
    }
}

#[test]
fn inlined_functions_are_paid_for_too() {
    let deep: Vec<u64> = (0..2_000).map(|frame| CODE + 0x10 * frame).collect();
    let etl = Etl::new()
        .event(0, START + 1, Process::dc_start(40, "a.exe"))
        .event(0, START + 1, Thread::dc_start(40, 44))
        .event(0, START + 2, Image::dc_start(40, CODE, 0x10_0000, r"\Device\HarddiskVolume3\a.dll"))
        .sampled(0, START + 10, 40, 44, &[CODE])
        .sampled(0, START + 20, 40, 44, &deep);
    let trace = reading::synthetic(etl);
    let names = Inlined::new(500);
    let cut = assert_bounded(&trace, &names, false);
    assert_eq!(cut.samples, 1, "the second, of 1,002,000 frames");
    let profile = profile(&trace, &names);
    let leaf = profile.stacks.value(profile.samples[0].stack).unwrap();
    assert_eq!(profile.frame(leaf).unwrap().text, "a!f500", "the innermost function is kept");
}

/// Files for `scripts/check-hostile`, which measures the program on each: `cargo test --test it hostile_traces -- --ignored`.
#[test]
#[ignore = "writes some 500 files"]
fn hostile_traces() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/hostile/traces");
    std::fs::create_dir_all(&folder).unwrap();
    let mut written = 0;
    for depth in [100, 1_000, 4_000, 8_000] {
        for samples in [100, 1_000, 4_000] {
            for processes in [1, 10, 100, 1_000] {
                for threads in [1, 20] {
                    for (leaves, tops) in [(0, 0), (10, 0), (4_000, 0), (0, 10), (0, 4_000)] {
                        let shown = Shown { processes, threads, depth, leaves, tops, samples };
                        let name =
                            format!("d{depth}-s{samples}-p{processes}-t{threads}-l{leaves}-u{tops}.etl");
                        std::fs::write(folder.join(name), shown.file().finish()).unwrap();
                        written += 1;
                    }
                }
            }
        }
    }
    assert_eq!(written, 480);
}
