//! What the machine did beside the programs, threads, and what the recording lacks.

use etwprof::findings::{Evidence, Quality, Reason};

use super::built::{Built, MS, PID, TID, finding, ids, native, own, parts};
use crate::synth::{Process, START, Sample, Thread, stack_walk};

const OTHER: u32 = 60;

/// Samples of an idle processor, one in each millisecond of `of`, from the first sample on.
fn idle(mut built: Built, cpu: u16, from: i64, of: i64) -> Built {
    for number in 0..of {
        built = built.event(cpu, from + number * MS, Sample::idle(0xffff_f801_0000_1000));
    }
    built
}

#[test]
fn one_thread_that_runs_all_the_time() {
    let dense = |count| Built::new().samples_of(PID, TID, count, MS, &[own("Main")]);
    let findings = dense(1_001).findings();
    assert_eq!(ids(&findings), ["one-thread"]);
    let [Evidence::Thread { pid, tid, of_process, busy, .. }] =
        &finding(&findings, "one-thread").evidence[..]
    else {
        panic!()
    };
    assert_eq!((*pid, *tid, *of_process, *busy), (PID, TID, 1.0, 1.0));
    // Less than a second, half of the time, another thread beside it, and a machine with one processor.
    assert_eq!(ids(&dense(990).findings()), Vec::<&str>::new());
    assert_eq!(ids(&Built::new().samples(1_001, &[own("Main")]).findings()), Vec::<&str>::new());
    let two = dense(1_001).event(0, START + 1, Thread::dc_start(PID, TID + 1));
    let two = two.samples_of(PID, TID + 1, 200, MS, &[own("Main")]);
    assert_eq!(ids(&two.findings()), Vec::<&str>::new());
    let mut alone = dense(1_001);
    alone.etl = alone.etl.cpus(1);
    assert_eq!(ids(&alone.findings()), Vec::<&str>::new());
}

#[test]
fn processors_that_were_not_sampled_often_enough() {
    // Processor 0 is busy, and has one sample in 2 ms; processor 1 is idle, and has all.
    let built = Built::new();
    let from = built.now;
    let starved = idle(built, 1, from, 400).samples(200, &[own("Main")]);
    let findings = starved.findings();
    assert_eq!(ids(&findings), ["samples-missing"]);
    let [Evidence::Sampled { processors, interval }] = &finding(&findings, "samples-missing").evidence[..]
    else {
        panic!()
    };
    assert_eq!((processors.len(), processors[0].0, *interval), (1, 0, 10_000));
    assert!((processors[0].1 - 0.5).abs() < 0.01, "{processors:?}");
    assert!(findings.doubts.iter().any(|doubt| matches!(doubt.reason, Reason::Starved(_))));

    // A processor that sleeps is left alone, and one that is sampled as asked for is no finding.
    let built = Built::new();
    let from = built.now;
    let sleepy = idle(built, 1, from, 100).samples_of(PID, TID, 400, MS, &[own("Main")]);
    assert_eq!(ids(&sleepy.findings()), Vec::<&str>::new());
}

#[test]
fn interrupts_are_a_finding_from_a_twentieth_of_all_time_on() {
    let storm = |count: i64| {
        let mut built = Built::new();
        let driver = built.address(&native("hal", "HalRequestIpi"));
        let from = built.now;
        built = idle(built, 1, from, 600).samples_of(PID, TID, 600, MS, &[own("Main")]);
        (0..count).fold(built, |built, number| {
            let at = from + number * MS + 7;
            let stack = stack_walk::full(at, 0, 0, &[driver]);
            built.event(2, at, Sample::new(driver, 0).dpc()).event(2, at + 2, stack)
        })
    };
    // Of 1,790 samples on three processors, and 10 % of those of the third.
    let some = idle(storm(60), 2, START + 100 * MS, 530).findings();
    assert_eq!(ids(&some), Vec::<&str>::new());
    let findings = idle(storm(120), 2, START + 220 * MS, 480).findings();
    assert_eq!(ids(&findings), ["interrupts"]);
    let found = finding(&findings, "interrupts");
    assert_eq!(found.evidence[0], Evidence::Interrupts { dpc: 120, isr: 0, busiest: Some((2, 0.2)) });
    assert!((found.share - 120.0 / 1_800.0).abs() < 1e-9, "{}", found.share);
}

#[test]
fn scanners_of_malware_by_their_program_and_by_their_driver() {
    let scanner = |built: Built, count| {
        let built = built.event(0, START + 1, Process::dc_start(OTHER, "MsMpEng.exe"));
        built.event(0, START + 1, Thread::dc_start(OTHER, OTHER + 1)).samples_of(
            OTHER,
            OTHER + 1,
            count,
            2 * MS,
            &[native("scan", "Scan")],
        )
    };
    let main = || Built::new().with_driver("WdFilter").samples(920, &[own("Main")]);
    let opens = [own("Main"), native("ntoskrnl", "NtCreateFile"), native("FLTMGR", "FltpDispatch")];
    let scanned = [&opens[..], &[native("WdFilter", "MpPreCreate")]].concat();
    let findings = scanner(main(), 50).samples(30, &scanned).findings();
    assert_eq!(ids(&findings), ["antivirus"]);
    let found = finding(&findings, "antivirus");
    assert!((found.share - 0.08).abs() < 1e-9);
    assert_eq!(parts(found, etwprof::findings::Sort::Programs), [50, 30]);
    assert_eq!(ids(&scanner(main(), 40).findings()), Vec::<&str>::new());
}

#[test]
fn filters_of_the_file_system() {
    let opens = [own("Main"), native("ntoskrnl", "NtCreateFile"), native("FLTMGR", "FltpDispatch")];
    let in_filter =
        [&opens[..], &[native("bindflt", "PreCreate"), native("ntoskrnl", "ExAllocatePool2")]].concat();
    let in_files = [&opens[..], &[native("Ntfs", "NtfsFsdCreate"), native("storport", "Start")]].concat();
    let built = || Built::new().with_driver("bindflt").with_driver("storport").samples(600, &[own("Main")]);
    let findings = built().samples(60, &in_filter).samples(100, &in_files).findings();
    assert_eq!(ids(&findings), ["filter-drivers"]);
    assert_eq!(parts(finding(&findings, "filter-drivers"), etwprof::findings::Sort::Modules), [60]);
    assert_eq!(ids(&built().samples(100, &in_files).findings()), Vec::<&str>::new());
}

#[test]
fn what_the_recording_lacks() {
    let mut lossy = Built::new().samples(1_100, &[own("Main")]);
    lossy.etl = lossy.etl.lost(7, 0);
    let findings = lossy.findings();
    assert_eq!(ids(&findings), ["lost-events"]);
    assert_eq!(findings.quality, Quality::Usable);
    assert_eq!(findings.doubts[0].reason, Reason::Lost { events: 7, buffers: 0 });

    let stackless = (0..100).fold(Built::new().samples(1_100, &[own("Main")]), |mut built, _| {
        let main = built.address(&own("Main"));
        built.now += 2 * MS;
        let now = built.now;
        built.event(0, now, Sample::new(main, TID))
    });
    let findings = stackless.findings();
    assert_eq!(ids(&findings), ["no-stacks"]);
    assert_eq!(findings.quality, Quality::Usable);

    // Every thread of a program with ntdll starts there.
    let starts = native("ntdll", "RtlUserThreadStart");
    let broken = Built::new().samples(1_000, &[starts, own("Main")]).samples(100, &[own("Main")]);
    let findings = broken.findings();
    assert_eq!(ids(&findings), ["broken-stacks"]);
    assert_eq!(findings.quality, Quality::Usable);
}

#[test]
fn the_quality_in_one_word() {
    let samples = |count| Built::new().samples(count, &[own("Main")]).findings();
    assert_eq!(samples(1_000).quality, Quality::Good);
    assert_eq!(samples(1_000).doubts, []);
    assert_eq!(samples(999).quality, Quality::Usable);
    let few = samples(99);
    assert_eq!((few.quality, few.doubts[0].reason), (Quality::Poor, Reason::FewSamples(99)));
    let none = Built::new().findings();
    assert_eq!((none.quality, none.doubts[0].reason), (Quality::Poor, Reason::FewSamples(0)));
}
