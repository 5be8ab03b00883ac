//! Files in which a little is shown often: one deep stack in many processes, below many others, in many threads; and
//! code in which every address holds hundreds of inlined functions.
//!
//! What is made of them stays in proportion to what was read, no sample is lost, and what was left out is counted.

use std::sync::Arc;

use etwprof::profile::{Cut, Detail, Entry, Filter, Grouping, Limit, Located, Profile, Remark};
use etwprof::symbols::{Certainty, Evidence, Function, FunctionName, Names, Unnamed};
use etwprof::trace::{ModuleId, Trace};

use super::CODE;
use crate::support::reading;
use crate::support::shown::Shown;
use crate::support::stacks::texts;
use crate::synth::{Etl, Image, Process, START, Thread};

const IN_PROCESSES: Shown =
    Shown { processes: 200, threads: 1, depth: 2_000, leaves: 0, tops: 0, samples: 400 };

fn profile(trace: &Arc<Trace>, names: &dyn Names) -> Profile {
    Profile::new(trace, &Filter::default(), names)
}

/// Kept samples, whole or cut, and the nodes of the profile and of its tree.
#[track_caller]
fn assert_bounded(trace: &Arc<Trace>, names: &dyn Names, by_thread: bool) -> Cut {
    // What the smallest recording may ask for, and what these files add to it.
    const NODES: usize = 100_000;
    let profile = profile(trace, names);
    assert_eq!(profile.balance.kept, trace.samples.len() as u64);
    assert_eq!(profile.balance.total, profile.balance.kept);
    assert!(profile.stacks.len() < NODES, "{} nodes", profile.stacks.len());
    let (tree, cut) =
        profile.tree(if by_thread { Grouping::Thread } else { Grouping::Process }, Detail::default());
    assert_eq!(tree.total() as u64, profile.balance.kept, "no sample is lost");
    assert!(tree.nodes().count() < NODES, "{} nodes", tree.nodes().count());
    assert!(cut.samples > 0 && cut.samples < profile.balance.kept, "{cut:?}");
    let remark = tree.nodes().any(|(_, node)| matches!(node.entry, Entry::Remark(Remark::Cut(_))));
    assert!(remark, "the tree shows what was cut");
    cut
}

/// Frames that the samples have, in the tree.
fn frames(trace: &Arc<Trace>, limit: Limit) -> (u64, Cut) {
    let profile = Located::new(trace, &Filter::default(), limit).named(trace.clone(), &Unnamed);
    let (tree, cut) = profile.tree(Grouping::default(), Detail::default());
    let of_code = |id| tree.path(id).filter(|node| matches!(node.entry, Entry::Frame(_))).count() as u64;
    let leaves = tree.nodes().filter(|(_, node)| node.leaf > 0);
    (leaves.map(|(id, node)| node.leaf as u64 * of_code(id)).sum(), cut)
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
            evidence: Evidence::Pdb,
            certainty: Certainty::Exact,
            assembly: None,
            file: None,
            line: None,
            start: None,
            inlined: number > 0,
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
    let leaf = &texts(&profile, profile.samples[0].stack, Detail::default())[0];
    assert_eq!(leaf, "a!f500", "the innermost function is kept");
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
