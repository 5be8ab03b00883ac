//! Which stacks are broken, and why.

use std::collections::BTreeMap;

use etwprof::profile::{Break, Filter, Profile, Remark};
use etwprof::symbols::Unnamed;
use etwprof::trace::{Context, Trace};

use crate::support::data;
use crate::support::reading;
use crate::support::stacks::{machine, stacks};
use crate::synth::{Etl, Image, START, Sample, stack_walk};

const KERNEL: u64 = 0xffff_8000_0000_0000;
const DRIVER: u64 = 0xffff_8000_0010_0000;
const A: u64 = 0x40_0000;
const NTDLL_32: u64 = 0x7700_0000;
const WOW64CPU: u64 = 0x7800_0000;
const NTDLL: u64 = 0x7ff8_0000_0000;

/// The images of process 40 and of the kernel; those of process 50 are not known.
fn with_images() -> Etl {
    machine()
        .event(0, START + 2, Image::dc_start(0, KERNEL, 0x1000, r"\SystemRoot\system32\ntoskrnl.exe"))
        .event(0, START + 2, Image::dc_start(0, DRIVER, 0x1000, r"\SystemRoot\System32\drivers\disk.sys"))
        .event(0, START + 2, Image::dc_start(40, A, 0x1000, r"\Device\HarddiskVolume3\a.exe"))
        .event(0, START + 2, ntdll())
}

fn ntdll() -> Image {
    Image::dc_start(40, NTDLL, 0x1000, r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll")
}

fn with_wow64() -> Etl {
    let folder = r"\Device\HarddiskVolume3\Windows";
    with_images()
        .event(0, START + 2, Image::dc_start(40, NTDLL_32, 0x1000, &format!(r"{folder}\SysWOW64\ntdll.dll")))
        .event(
            0,
            START + 2,
            Image::dc_start(40, WOW64CPU, 0x1000, &format!(r"{folder}\System32\wow64cpu.dll")),
        )
}

#[test]
fn a_thread_of_a_program_starts_in_ntdll() {
    let etl = with_images()
        .sampled(0, START + 100, 40, 41, &[A + 0x10, A + 0x20, NTDLL + 0x30])
        .sampled(0, START + 200, 40, 41, &[A + 0x10, A + 0x20])
        .sampled(0, START + 300, 40, 41, &[KERNEL + 0x10, A + 0x10, A + 0x20])
        .sampled(0, START + 400, 40, 41, &[0x1234])
        // The start of a thread inside of a stack is none.
        .sampled(0, START + 500, 40, 41, &[NTDLL + 0x10, A + 0x20])
        // These have been said to be incomplete.
        .sampled(0, START + 600, 40, 41, &[KERNEL + 0x10])
        .event(0, START + 700, Sample::new(A + 0x10, 41));
    assert_eq!(
        stacks(etl),
        [
            "a.exe: ntdll!0x30 a!0x20 a!0x10",
            "a.exe: [broken stack] a!0x20 a!0x10",
            "a.exe: [broken stack] a!0x20 a!0x10 ntoskrnl!0x10",
            "a.exe: [broken stack] 0x1234",
            "a.exe: [broken stack] a!0x20 ntdll!0x10",
            "a.exe: [user stack missing] ntoskrnl!0x10",
            "a.exe: [no stack] a!0x10",
        ]
    );
}

#[test]
fn a_thread_of_the_kernel_starts_in_the_kernel() {
    let etl = with_images()
        .sampled(0, START + 100, 4, 5, &[DRIVER + 0x10, KERNEL + 0x20])
        .sampled(0, START + 200, 4, 5, &[DRIVER + 0x10])
        // An image that is not listed may be any.
        .sampled(0, START + 300, 4, 5, &[DRIVER + 0x10, KERNEL - 0x20]);
    assert_eq!(
        stacks(etl),
        [
            "System: ntoskrnl!0x20 disk!0x10",
            "System: [broken stack] disk!0x10",
            "System: 0xffff7fffffffffe0 disk!0x10",
        ]
    );
}

/// What interrupts a thread has its own stack, or that of the thread.
#[test]
fn interrupts_are_never_broken() {
    let interrupt = |etl: Etl, time: i64, sample: Sample| {
        etl.event(0, time, sample).event(0, time + 2, stack_walk::full(time, 4, 5, &[DRIVER + 0x10]))
    };
    let etl = interrupt(with_images(), START + 100, Sample::new(DRIVER + 0x10, 5).dpc());
    let etl = interrupt(etl, START + 200, Sample::new(DRIVER + 0x10, 5).isr());
    assert_eq!(stacks(etl), ["System: [DPC] disk!0x10", "System: [ISR] disk!0x10"]);
}

#[test]
fn where_threads_start_must_be_known() {
    // A process without images, as those of WSL.
    let etl = with_images().sampled(0, START + 100, 50, 51, &[A + 0x10, A + 0x20]);
    assert_eq!(stacks(etl), ["b.exe: 0x400020 0x400010"]);
    // A recording without events of images.
    let etl = machine().sampled(0, START + 100, 40, 41, &[A + 0x10, A + 0x20]).sampled(
        0,
        START + 200,
        4,
        5,
        &[DRIVER + 0x10],
    );
    assert_eq!(stacks(etl), ["a.exe: 0x400020 0x400010", "System: 0xffff800000100010"]);
    // One without the kernel's own image.
    let disk = Image::dc_start(0, DRIVER, 0x1000, "disk.sys");
    let etl = machine().event(0, START + 2, disk).sampled(0, START + 200, 4, 5, &[DRIVER + 0x10]);
    assert_eq!(stacks(etl), ["System: disk!0x10"]);
}

/// Its own stack follows on that of the layer that runs its code.
#[test]
fn a_32_bit_program_starts_in_the_ntdll_of_32_bits() {
    let layer = [NTDLL + 0x10, WOW64CPU + 0x20, NTDLL + 0x30];
    let whole = [layer.as_slice(), &[A + 0x40, NTDLL_32 + 0x50]].concat();
    let etl = with_wow64()
        .sampled(0, START + 100, 40, 41, &[A + 0x10, NTDLL_32 + 0x20])
        .sampled(0, START + 200, 40, 41, &whole)
        .sampled(0, START + 300, 40, 41, &layer)
        // Its code has not run yet.
        .sampled(0, START + 400, 40, 41, &[NTDLL + 0x10, NTDLL + 0x30]);
    assert_eq!(
        stacks(etl),
        [
            "a.exe: ntdll!0x20 a!0x10",
            "a.exe: ntdll!0x50 a!0x40 ntdll!0x30 wow64cpu!0x20 ntdll!0x10",
            "a.exe: [broken stack] ntdll!0x30 wow64cpu!0x20 ntdll!0x10",
            "a.exe: ntdll!0x30 ntdll!0x10",
        ]
    );
}

/// The image of a process may be listed after its samples, at the end of the recording.
#[test]
fn rundown_at_the_end_counts() {
    let etl = machine().sampled(0, START + 100, 40, 41, &[A + 0x10, NTDLL + 0x20]).event(
        0,
        START + 900,
        Image::dc_end(40, NTDLL, 0x1000, "ntdll.dll"),
    );
    assert_eq!(stacks(etl), ["a.exe: ntdll!0x20 0x400010"]);
}

#[test]
fn the_balance_counts_broken_stacks_with_every_filter() {
    let etl = with_images()
        .sampled(0, START + 100, 40, 41, &[A + 0x10, NTDLL + 0x30])
        .sampled(0, START + 200, 40, 41, &[A + 0x10])
        .sampled(0, START + 300, 40, 42, &[A + 0x10])
        .sampled(0, START + 400, 40, 42, &[A + 0x20]);
    let trace = reading::synthetic(etl);
    let broken = |filter: &Filter| {
        let all = Profile::new(&trace, &Filter::default(), &Unnamed).filtered(filter).balance.stacks;
        let alone = Profile::new(&trace, filter, &Unnamed).balance.stacks;
        assert_eq!(all, alone, "{filter:?}");
        (all.user_only, all.broken, all.repaired)
    };
    assert_eq!(broken(&Filter::default()), (4, 3, 0));
    assert_eq!(broken(&Filter { tids: vec![41], ..Filter::default() }), (2, 1, 0));
    assert_eq!(broken(&Filter { tids: vec![42], ..Filter::default() }), (2, 2, 0));
}

#[test]
fn a_break_has_a_likely_cause() {
    let cause = |etl: Etl, process: u32, thread: u32, frames: &[u64]| {
        let trace = reading::synthetic(etl.sampled(0, START + 100, process, thread, frames));
        let breaks = Profile::new(&trace, &Filter::default(), &Unnamed).breaks();
        assert_eq!(breaks.values().sum::<u64>(), 1, "{breaks:?}");
        breaks.into_keys().next().unwrap()
    };
    const WINDOWS_7: u32 = 7601;
    let deep: Vec<u64> = vec![A + 0x10; 192];
    assert_eq!(cause(with_images(), 40, 41, &deep), Break::TooDeep);
    assert_eq!(cause(with_images(), 40, 41, &deep[1..]), Break::Native);
    assert_eq!(cause(with_images(), 4, 5, &[DRIVER + 0x10]), Break::Kernel);
    assert_eq!(cause(with_images(), 40, 41, &[A + 0x10, 0x9999]), Break::GeneratedCode);
    assert_eq!(cause(with_images().build(WINDOWS_7), 40, 41, &[0x9999]), Break::JitBeforeWindows8);
    assert_eq!(cause(with_wow64(), 40, 41, &[A + 0x10]), Break::NoFramePointer);
    assert_eq!(cause(with_wow64().build(WINDOWS_7), 40, 41, &[A + 0x10]), Break::Wow64BeforeWindows8);
}

/// The same rule, looked up the slow way.
fn is_broken(trace: &Trace, sample: &etwprof::trace::Sample) -> bool {
    let process = trace.runner(sample.runner).process;
    let stack = trace.stack(sample.stack);
    let Some(part) = stack.user.or(stack.kernel.filter(|_| trace.is_kernel_only(process))) else {
        return false;
    };
    let file_at = |address: u64| {
        let is_kernel = trace.is_kernel_address(address);
        let there = trace.mappings.iter().filter(|mapping| {
            let module = trace.module(mapping.module).unwrap();
            let whose = if is_kernel { module.kernel } else { mapping.process == process };
            whose
                && (mapping.base..mapping.base + mapping.size).contains(&address)
                && mapping.covers(sample.time)
        });
        let latest = there.max_by_key(|mapping| mapping.start);
        latest.map(|mapping| trace.module(mapping.module).unwrap().path.to_lowercase()).unwrap_or_default()
    };
    // The byte before a return address is what counts; here no module ends in a call.
    let files: Vec<String> = trace.addresses.path(part).map(file_at).collect();
    let root = files.last().unwrap();
    let runs_32_bit = files.iter().any(|file| file.ends_with("wow64cpu.dll"));
    match trace.is_kernel_only(process) {
        true => !root.is_empty() && !root.ends_with("ntoskrnl.exe") && !root.ends_with("ntkrnlpa.exe"),
        false => !root.ends_with("ntdll.dll") || runs_32_bit && root.contains("system32"),
    }
}

/// How many stacks are broken in real recordings, and why. All of them have the events of images.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn broken_stacks_of_real_recordings() {
    for name in ["perfview/net.4.5.2.x64.etl", "perfview/PerfViewData.etl", "xperf/slow-ppt.etl"] {
        let trace = reading::file(&data::file(&format!("etl/{name}")));
        let profile = Profile::new(&trace, &Filter::default(), &Unnamed);
        let (mut broken, mut ordinary) = (0, 0);
        for (sample, raw) in profile.samples.iter().zip(&trace.samples) {
            let is_thread = raw.context == Context::Thread;
            let expected = is_thread && is_broken(&trace, raw);
            let remarks: Vec<Remark> = profile.stacks.remarks(sample.stack).collect();
            assert_eq!(remarks.contains(&Remark::Broken), expected, "{name}: {sample:?} {remarks:?}");
            assert!(remarks.len() <= 1, "{name}: {remarks:?}");
            broken += u64::from(expected);
            ordinary += u64::from(remarks.is_empty());
        }
        assert_eq!(profile.balance.stacks.broken, broken, "{name}");
        let breaks: BTreeMap<Break, u64> = profile.breaks();
        assert_eq!(breaks.values().sum::<u64>(), broken, "{name}");
        // In two of the three hardly any is broken; Windows 7 seldom walks the stacks of 32-bit .NET programs.
        let most = if name.contains("PerfViewData") { 4 } else { 50 };
        assert!(broken > 0 && broken * most < ordinary, "{name}: {broken} of {ordinary}");
        println!("{name}: {broken} broken, {ordinary} ordinary: {breaks:?}");
    }
}
