//! Repairs of broken stacks.

use std::collections::HashMap;
use std::sync::Arc;

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::profile::{Detail, Filter, Moment, Profile, Remark, Site};
use etwprof::symbols::{Evidence, Function, FunctionName, Names, Unnamed};
use etwprof::trace::{Context, ModuleId, Stack, StackId};

use crate::support::data;
use crate::support::reading;
use crate::support::stacks::{exact, machine, texts};
use crate::synth::{Etl, Image, START};

const KERNEL: u64 = 0xffff_8000_0000_0000;
const A: u64 = 0x40_0000;
const NTDLL: u64 = 0x7ff8_0000_0000;
/// The clock's units.
const MILLISECOND: i64 = 10_000;

fn with_images() -> Etl {
    machine()
        .event(0, START + 2, Image::dc_start(0, KERNEL, 0x1000, "ntoskrnl.exe"))
        .event(0, START + 2, Image::dc_start(40, A, 0x1000, "a.exe"))
        .event(0, START + 2, Image::dc_start(40, NTDLL, 0x1000, "ntdll.dll"))
}

/// Samples of thread 41, one each millisecond: each a stack as a call tree has it, the root first. 0 is ntdll, 0x1000
/// and above the kernel.
fn each_millisecond(stacks: &[&[u64]]) -> Etl {
    let address = |frame: &u64| match *frame {
        0 => NTDLL + 0x10,
        kernel if kernel >= 0x1000 => KERNEL + kernel - 0x1000,
        offset => A + offset,
    };
    let times = (1..).map(|number| START + number * MILLISECOND);
    times.zip(stacks).fold(with_images(), |etl, (time, stack)| {
        let frames: Vec<u64> = stack.iter().rev().map(address).collect();
        etl.sampled(0, time, 40, 41, &frames)
    })
}

fn repaired(etl: Etl, names: &dyn Names) -> Profile {
    let mut profile = Profile::new(&reading::synthetic(etl), &Filter::default(), names);
    let before = profile.balance;
    profile.repair();
    let after = profile.balance;
    assert_eq!(after.stacks.broken + after.stacks.repaired, before.stacks.broken);
    let mut unchanged = after;
    unchanged.stacks = before.stacks;
    assert_eq!(unchanged, before);
    profile
}

/// The second of these stacks, repaired or not.
#[track_caller]
fn second(stacks: &[&[u64]]) -> String {
    text(&repaired(each_millisecond(stacks), &Unnamed), 1)
}

fn text(profile: &Profile, sample: usize) -> String {
    let mut texts = texts(profile, profile.samples[sample].stack, Detail::default());
    texts.reverse();
    texts.join(" ")
}

const BEFORE: &[u64] = &[0, 0x100, 0x200, 0x300, 0x900];
const AFTER: &[u64] = &[0, 0x100, 0x200, 0x300, 0x400, 0x910];

/// The broken stack begins with a call that both others are in.
#[test]
fn by_overlap() {
    let expected = "[repaired stack] ntdll!0x10 a!0x100 a!0x200 a!0x300 a!0x920";
    assert_eq!(second(&[BEFORE, &[0x300, 0x920], AFTER]), expected);
    assert_eq!(second(&[BEFORE, &[0x200, 0x300, 0x920], AFTER]), expected);
    // However little they share.
    let (before, after) = (&[0, 0x100, 0x900], &[0, 0x100, 0x910]);
    assert_eq!(
        second(&[before, &[0x100, 0x500, 0x920], after]),
        "[repaired stack] ntdll!0x10 a!0x100 a!0x500 a!0x920"
    );
}

/// Both are in the function, at different calls.
#[test]
fn by_overlap_of_a_function() {
    struct Work([Function; 1]);
    impl Names for Work {
        fn functions(&self, _: ModuleId, rva: u64) -> Vec<&Function> {
            // Return addresses are looked up one byte before.
            if (0x2ff..0x400).contains(&rva) { self.0.iter().collect() } else { Vec::new() }
        }
    }
    let work = Work([exact(FunctionName::Text("work".into()), Evidence::Pdb)]);
    let etl = each_millisecond(&[
        &[0, 0x100, 0x310, 0x900],
        &[0x320, 0x920],
        &[0, 0x100, 0x330, 0x910],
        &[0x320, 0x920],
        &[0, 0x100, 0x500, 0x910],
    ]);
    let profile = repaired(etl, &work);
    assert_eq!(text(&profile, 1), "[repaired stack] ntdll!0x10 a!0x100 a!work a!0x920");
    // The last one is in another function.
    assert_eq!(text(&profile, 3), "[broken stack] a!work a!0x920");
}

/// Nothing of the broken stack is in the others.
#[test]
fn by_place() {
    let expected = "[repaired stack] ntdll!0x10 a!0x100 a!0x200 a!0x300 a!0x800 a!0x920";
    assert_eq!(second(&[BEFORE, &[0x800, 0x920], AFTER]), expected);
    // The kernel was called from there: that is no place for user code.
    let before: &[u64] = &[0, 0x100, 0x200, 0x300, 0x1100, 0x1200, 0x1300];
    let after: &[u64] = &[0, 0x100, 0x200, 0x300, 0x1100, 0x1200, 0x1400];
    // What interrupts for the kernel is no call.
    assert_eq!(second(&[before, &[0x800, 0x920], after]), "[broken stack] a!0x800 a!0x920");
    let before: &[u64] = &[0, 0x100, 0x200, 0x300, 0x400, 0x1100, 0x1300];
    let after: &[u64] = &[0, 0x100, 0x200, 0x300, 0x400, 0x1100, 0x1400];
    assert!(second(&[before, &[0x800, 0x920], after]).starts_with("[repaired stack] ntdll!0x10 a!0x100"));
    assert!(!second(&[before, &[0x800, 0x920], after]).contains("ntoskrnl"));
}

#[test]
fn what_is_not_known_stays_broken() {
    let broken: &[u64] = &[0x800, 0x920];
    let stays = |stacks: &[&[u64]]| {
        assert!(second(stacks).starts_with("[broken stack]"), "{stacks:?}");
    };
    // They share the start of a thread, and no more.
    stays(&[&[0, 0x100, 0x200, 0x900], broken, &[0, 0x100, 0x200, 0x910]]);
    // Nothing is whole on one side.
    stays(&[broken, broken, AFTER]);
    stays(&[BEFORE, broken]);
    // The function calls itself.
    stays(&[&[0, 0x100, 0x200, 0x200, 0x900], &[0x200, 0x920], &[0, 0x100, 0x200, 0x200, 0x910]]);
    // Whoever is at the leaf has called nobody.
    stays(&[&[0, 0x100, 0x200, 0x300], broken, &[0, 0x100, 0x200, 0x300]]);
}

#[test]
fn only_neighbours_count() {
    // Of other threads.
    let frames = |stack: &[u64]| {
        stack.iter().rev().map(|frame| if *frame == 0 { NTDLL + 0x10 } else { A + frame }).collect::<Vec<_>>()
    };
    let at = |etl: Etl, milliseconds: i64, thread, stack: &[u64]| {
        etl.sampled(0, START + milliseconds * MILLISECOND, 40, thread, &frames(stack))
    };
    let broken: &[u64] = &[0x300, 0x920];
    let etl = at(with_images(), 1, 42, BEFORE);
    let etl = at(at(etl, 2, 41, broken), 3, 42, AFTER);
    assert_eq!(text(&repaired(etl, &Unnamed), 1), "[broken stack] a!0x300 a!0x920");
    // Of other times: 10 ms are near enough, on both sides.
    for (before, after, is_repaired) in [(10, 10, true), (11, 10, false), (10, 11, false)] {
        let etl = at(with_images(), 50 - before, 41, BEFORE);
        let etl = at(at(etl, 50, 41, broken), 50 + after, 41, AFTER);
        let profile = repaired(etl, &Unnamed);
        assert_eq!(profile.balance.stacks.repaired, u64::from(is_repaired), "{before} {after}");
    }
}

/// Repaired or not, every sample is counted, and a filter counts again.
#[test]
fn repairs_are_counted() {
    let etl = each_millisecond(&[BEFORE, &[0x300, 0x920], AFTER, &[0x500], &[0, 0x100, 0x920]]);
    let profile = repaired(etl, &Unnamed);
    let stacks = profile.balance.stacks;
    assert_eq!((stacks.user_only, stacks.broken, stacks.repaired), (5, 1, 1));
    let second_half = profile.filtered(&Filter { from: Some(Moment::Seconds(0.0025)), ..Filter::default() });
    let stacks = second_half.balance.stacks;
    assert_eq!((stacks.user_only, stacks.broken, stacks.repaired), (3, 1, 0));
}

/// The places of each sample's stack, the leaf first.
fn places(profile: &Profile) -> Vec<Vec<Site>> {
    let is_code = |site: &&Site| matches!(site, Site::Code(_));
    let of = |sample: &etwprof::profile::Sample| {
        profile.stacks.sites(sample.stack).filter(is_code).copied().collect()
    };
    profile.samples.iter().map(of).collect()
}

/// Takes the outermost frames of every seventh whole stack away, and counts what a repair gives back.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn stacks_that_were_broken_on_purpose() {
    for name in ["perfview/net.4.5.2.x64.etl", "perfview/PerfViewData.etl", "xperf/slow-ppt.etl"] {
        let recording = Recording::open(&[data::file(&format!("etl/{name}"))]).unwrap();
        let whole = reading::trace(&recording);
        let truth = Profile::new(&whole, &Filter::default(), &Unnamed);
        let expected = places(&truth);
        let mut trace = analysis::trace(&recording, &mut |_| ()).value;
        let mut cut: HashMap<usize, usize> = HashMap::new();
        for (index, sample) in truth.samples.iter().enumerate().step_by(7) {
            let is_whole = truth.stacks.remarks(sample.stack).next().is_none();
            let stack = trace.stack(trace.samples[index].stack);
            let Some(user) = stack.user.filter(|_| is_whole && sample.context == Context::Thread) else {
                continue;
            };
            let mut addresses: Vec<u64> = trace.addresses.path(user).collect();
            if addresses.len() < 4 {
                continue;
            }
            // One frame stays at least; which, no random number says but a multiplication.
            let left = 1 + ((index * 2_654_435_761) >> 7) % (addresses.len() - 1);
            addresses.truncate(left);
            let user = trace.addresses.extend(None, addresses.into_iter().rev());
            trace.stacks.push(Stack { user, ..stack });
            trace.samples[index].stack = StackId(trace.stacks.len() as u32 - 1);
            cut.insert(index, left);
        }
        let mut profile = Profile::new(&Arc::new(trace), &Filter::default(), &Unnamed);
        // A stack may end in ntdll by chance.
        cut.retain(|index, _| profile.stacks.has(profile.samples[*index].stack, Remark::Broken));
        profile.repair();
        let found = places(&profile);
        let (mut repaired, mut exact, mut true_frames) = (0, 0, 0);
        for index in cut.keys() {
            if !profile.stacks.has(profile.samples[*index].stack, Remark::Repaired) {
                assert_eq!(found[*index], expected[*index][..found[*index].len()], "what is left stays");
                continue;
            }
            repaired += 1;
            exact += usize::from(found[*index] == expected[*index]);
            // Every frame is in the truth, in this order.
            let mut truth = expected[*index].iter();
            true_frames += usize::from(found[*index].iter().all(|site| truth.any(|other| other == site)));
        }
        let percent = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        println!(
            "{name}: {} cut, {repaired} repaired ({:.1}%), {exact} as they were ({:.1}%), {true_frames} without a false frame ({:.1}%)",
            cut.len(),
            percent(repaired, cut.len()),
            percent(exact, repaired),
            percent(true_frames, repaired)
        );
        assert!(cut.len() > 100, "{name}");
        // Most can be repaired, what is made is seldom wrong, and mostly complete.
        assert!(repaired * 100 > cut.len() * 75, "{name}: {repaired} of {}", cut.len());
        assert!(true_frames * 100 > repaired * 94, "{name}: {true_frames} of {repaired}");
        assert!(exact * 100 > repaired * 60, "{name}: {exact} of {repaired}");
    }
}
