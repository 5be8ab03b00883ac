//! Disk I/O, hard faults and the names of files: by hand for what may happen, and against independent counts of real
//! recordings.

use std::collections::BTreeMap;

use etwprof::etl::Recording;
use etwprof::event::NO_ID;
use etwprof::events::kernel::DiskIoKind;
use etwprof::trace::waits::{Cause, Causes, Waits};
use etwprof::trace::{DiskOperation, Keep, Trace};

use crate::support::data;
use crate::support::reading::every_way;
use crate::support::stacks::machine;
use crate::synth::kernel::disk_io::{DiskIo, request};
use crate::synth::kernel::file_io::{created, deleted, rundown};
use crate::synth::kernel::page_fault::{self, hard_fault};
use crate::synth::kernel::thread::CSwitch;
use crate::synth::{Etl, Event, IntoEvent, START, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;
const T: i64 = START + 1_000_000;
const FILE: u64 = 0xffff_e000_0000_1000;

fn keep() -> Keep {
    Keep { disk: true, ..Keep::default() }
}

fn read(etl: Etl, keep: Keep) -> Trace {
    let recording = Recording::from_bytes("disk.etl", etl.finish()).unwrap();
    every_way(&recording, |builder| builder.keep(keep)).value
}

/// `read 4096 of C:\a by 41 of a.exe, 100+50 (50)`: start, length, service.
fn text(trace: &Trace, one: &DiskOperation) -> String {
    let kind = match one.kind {
        DiskIoKind::Read => "read",
        DiskIoKind::Write => "write",
        _ => "flush",
    };
    let process = trace.process(one.process).map_or("?", |process| process.label());
    let file = trace.disk.path(one.file).unwrap_or("-");
    let (tid, start) = (one.tid as i32, one.start.0 - T);
    format!("{kind} {} of {file} by {tid} of {process}, {start}+{} ({})", one.bytes, one.ticks(), one.service)
}

fn texts(trace: &Trace) -> Vec<String> {
    trace.disk.operations.iter().map(|one| text(trace, one)).collect()
}

#[test]
fn both_versions_and_both_widths_say_the_same() {
    for width in [4, 8] {
        for version in [2, 3] {
            let file = if width == 4 { 0x8000_1000 } else { FILE };
            let io = |io: DiskIo| io.version(version).file(file).asked_by(40, 41);
            let etl = machine()
                .pointer_size(width)
                .event(0, T, request(12, version, 0x10, 40, 41))
                .event(1, T + 50, io(DiskIo::read(0x10, 50)))
                .event(0, T + 60, request(13, version, 0x20, 40, 41))
                .event(1, T + 100, io(DiskIo::write(0x20, 40).bytes(512).disk(1)))
                .event(0, T + 110, request(15, version, 0x10, 40, 41))
                .event(1, T + 120, io(DiskIo::flush(0x10, 10)))
                .event(0, T + 900, rundown(file, r"\Device\HarddiskVolume2\a"));
            let trace = read(etl, keep());
            let file = r"\Device\HarddiskVolume2\a";
            let expected = [
                format!("read 4096 of {file} by 41 of a.exe, 0+50 (50)"),
                format!("write 512 of {file} by 41 of a.exe, 60+40 (40)"),
                "flush 0 of - by 41 of a.exe, 110+10 (10)".to_owned(),
            ];
            assert_eq!(texts(&trace), expected, "{width} {version}");
            let disks: Vec<u32> = trace.disk.operations.iter().map(|one| one.disk).collect();
            let requests: Vec<_> = trace.disk.operations.iter().map(|one| one.request).collect();
            assert_eq!((disks, requests), (vec![0, 1, 0], vec![Some(0), Some(1), Some(2)]));
            assert_eq!(trace.lost.malformed_events, 0);
        }
    }
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for_and_stacks_have_an_owner_all_the_same() {
    let etl = machine()
        .event(0, T, request(12, 3, 0x10, 40, 41))
        .event(0, T + 1, stack_walk::full(T, 40, 41, &[K + 1]))
        .event(0, T + 2, stack_walk::full(T, 40, 41, &[0xa, 0xb]))
        .event(1, T + 50, DiskIo::read(0x10, 50).asked_by(40, 41))
        .event(1, T + 60, hard_fault(T, 0x7000, 41, 4096))
        .event(1, T + 90, rundown(page_fault::FILE, "a"));
    let none = read(etl.clone(), Keep::default());
    assert!(none.disk == Default::default() && none.kept == Default::default());
    assert_eq!((none.lost.orphan_stacks, none.stacks.len()), (0, 0));
    let trace = read(etl, keep());
    let [request] = trace.kept.disk_requests[..] else { panic!("{:?}", trace.kept) };
    let stack = trace.stack(request.stack);
    let leaf = |part| trace.addresses.path(part).collect::<Vec<_>>();
    assert_eq!((stack.kernel.map(leaf), stack.user.map(leaf)), (Some(vec![K + 1]), Some(vec![0xa, 0xb])));
    assert_eq!(trace.runner(request.runner).tid, 41);
    assert!(trace.kept.faults.is_empty(), "the stacks of faults are asked for apart");
    let [fault] = trace.disk.hard_faults[..] else { panic!("{:?}", trace.disk) };
    assert_eq!((fault.start.0 - T, fault.ticks(), fault.bytes, fault.tid), (0, 60, 4096, 41));
    assert_eq!((trace.disk.path(fault.file), fault.offset), (Some("a"), 0x1_0000));
}

#[test]
fn requests_are_used_again_and_may_be_missing() {
    let etl = machine()
        // The end of the first was lost.
        .event(0, T, request(12, 2, 0x10, 40, 41))
        .event(0, T + 10, request(12, 2, 0x10, 50, 51))
        .event(0, T + 30, DiskIo::read(0x10, 20))
        // Its request was lost; that of another kind is not its own.
        .event(0, T + 40, request(13, 2, 0x20, 50, 51))
        .event(0, T + 50, DiskIo::read(0x20, 5))
        // It ends in the tick in which it begins, after one with the same address.
        .event(0, T + 60, request(12, 2, 0x30, 50, 51))
        .event(0, T + 70, DiskIo::read(0x30, 10))
        .event(0, T + 70, request(12, 2, 0x30, 40, 42))
        .event(0, T + 70, DiskIo::read(0x30, 0));
    let trace = read(etl, keep());
    let by: Vec<_> =
        trace.disk.operations.iter().map(|one| (one.tid as i32, one.request, one.ticks())).collect();
    assert_eq!(by, [(51, Some(1), 20), (-1, None, 5), (51, Some(3), 10), (42, Some(4), 0)]);
    let unknown = &trace.disk.operations[1];
    assert_eq!(trace.process(unknown.process).unwrap().pid, NO_ID);
}

#[test]
fn the_payload_names_who_asked_better_than_headers() {
    let etl = machine()
        // System asks for thread 41, in the time of 5.
        .event(0, T, request(13, 3, 0x10, 4, 5))
        .event(0, T + 10, DiskIo::write(0x10, 10).asked_by(40, 41))
        // A thread that nobody listed: its process is in the header.
        .event(0, T + 20, DiskIo::write(0x20, 10).version(2).asked_by(50, 777))
        .event(0, T + 30, DiskIo::write(0x30, 10).asked_by(0, 0));
    let whose = |trace: &Trace| -> Vec<String> {
        trace
            .disk
            .operations
            .iter()
            .map(|one| format!("{} of {}", one.tid, trace.process(one.process).unwrap().label()))
            .collect()
    };
    assert_eq!(whose(&read(etl, keep())), ["41 of a.exe", "777 of b.exe", "0 of Idle"]);
}

#[test]
fn a_disk_serves_one_after_the_other() {
    let io = |etl: Etl, disk: u32, start: i64, end: i64| {
        etl.event(0, T + end, DiskIo::read(end as u64, (end - start) as u64).disk(disk).asked_by(40, 41))
    };
    let etl = io(machine(), 0, 0, 100);
    let etl = io(etl, 1, 50, 110);
    let etl = io(etl, 0, 10, 120);
    let etl = io(etl, 0, 115, 130);
    let trace = read(io(etl, 0, 200, 210), keep());
    let service: Vec<i64> = trace.disk.operations.iter().map(|one| one.service).collect();
    assert_eq!(service, [100, 60, 20, 10, 10]);
}

#[test]
fn keys_of_files_are_used_again() {
    let io = |etl: Etl, at: i64| etl.event(0, T + at, DiskIo::read(1, 1).file(FILE).asked_by(40, 41));
    let etl = io(machine(), 10).event(0, T + 20, deleted(FILE, "first"));
    // Between two files it is none of them.
    let etl = io(etl, 30).event(0, T + 40, created(FILE, "second"));
    let etl = io(etl, 50).event(0, T + 60, deleted(FILE, "second"));
    let etl = io(etl, 70).event(0, T + 80, rundown(FILE, "third"));
    let etl = io(etl, 90).event(0, T + 95, DiskIo::read(2, 1).file(FILE + 8).asked_by(40, 41)).event(
        0,
        T + 98,
        rundown(FILE + 8, r"\FI_UNKNOWN"),
    );
    let trace = read(etl, keep());
    let files: Vec<_> = trace.disk.operations.iter().map(|one| trace.disk.path(one.file)).collect();
    assert_eq!(files, [Some("first"), None, Some("second"), Some("third"), Some("third"), None]);
    assert_eq!(trace.disk.files, ["first", "second", "third"]);
}

#[test]
fn cut_payloads_are_counted_and_old_ones_are_of_no_use() {
    // The header and the least payload of each: bytes, and pointers.
    type Least = (fn() -> Event, usize, usize, usize);
    let whole: [Least; 8] = [
        (|| DiskIo::read(1, 1).file(1).into(), 16, 32, 2),
        (|| DiskIo::write(1, 1).file(1).version(2).into(), 16, 32, 2),
        (|| DiskIo::flush(1, 1).into(), 16, 16, 1),
        (|| request(12, 3, 1, 40, 41), 32, 0, 1),
        (|| request(13, 2, 1, 40, 41), 32, 0, 1),
        (|| request(15, 2, 1, 40, 41), 32, 0, 1),
        (|| rundown(1, "a"), 16, 0, 1),
        (|| hard_fault(T, 1, 41, 1), 16, 24, 2),
    ];
    for width in [4, 8] {
        for (at, (whole, header, bytes, pointers)) in whole.iter().enumerate() {
            let least = header + bytes + pointers * width;
            for (length, malformed) in [(least, 0), (least - 1, 1), (*header, 1)] {
                for kept in [Keep::default(), keep()] {
                    let event = whole().record_length(length);
                    let etl =
                        machine().pointer_size(width).event(0, T, event).event(0, T + 9, rundown(1, "b"));
                    let is = read(etl, kept).lost.malformed_events;
                    assert_eq!(is, malformed, "{at}, {length} with pointers of {width} bytes");
                }
            }
        }
    }
    let etl =
        machine().event(0, T, DiskIo::read(1, 1).version(1)).event(0, T + 1, DiskIo::flush(1, 1).version(0));
    let trace = read(etl, keep());
    assert_eq!((trace.disk.operations.len(), trace.lost.malformed_events), (0, 0));
}

#[test]
fn hostile_values_are_bounded() {
    let etl = machine()
        .event(0, T, DiskIo::read(1, u64::MAX).bytes(u32::MAX).asked_by(u32::MAX, u32::MAX))
        .event(0, T + 1, DiskIo::write(1, i64::MAX as u64).disk(u32::MAX).asked_by(40, 41))
        .event(0, T + 2, hard_fault(i64::MAX, u64::MAX, u32::MAX, u32::MAX))
        .event(0, T + 3, hard_fault(i64::MIN, u64::MAX, 41, u32::MAX));
    let trace = read(etl, keep());
    let ticks: Vec<i64> = trace.disk.operations.iter().map(DiskOperation::ticks).collect();
    assert_eq!(ticks, [i64::MAX, i64::MAX]);
    let faults: Vec<i64> = trace.disk.hard_faults.iter().map(|fault| fault.ticks()).collect();
    assert_eq!(faults, [0, i64::MAX]);
}

/// Thread 41 runs, blocks at 100, and runs again at 1,100, in units of 100 ticks: 10 us.
fn cause(etl: Etl) -> (Trace, Option<Cause>) {
    let etl = etl.event(0, T, CSwitch::new(0, 41)).event(0, T + 10_000, CSwitch::new(41, 0));
    let etl = etl.event(0, T + 110_000, CSwitch::new(0, 41)).event(0, T + 200_000, CSwitch::new(41, 0));
    let trace = read(etl, Keep { switches: true, readied: true, ..keep() });
    let waits = Waits::new(&trace).unwrap();
    let thread = waits.threads.iter().find(|thread| thread.tid == 41).unwrap();
    let wait = thread.waits().find(|wait| wait.blocked.came.is_some()).unwrap();
    let cause = Causes::new(&trace).of(thread, &wait);
    (trace, cause)
}

/// A read by a thread from a moment to another, in ticks.
fn reads(etl: Etl, tid: u32, from: i64, to: i64) -> Etl {
    etl.event(1, T + to, DiskIo::read(to as u64, (to - from) as u64).asked_by(40, tid))
}

#[test]
fn a_wait_is_for_the_disk_io_that_ended_it() {
    let of = |etl: Etl| cause(etl).1;
    assert_eq!(of(machine()), None);
    let whole = |etl: Etl| reads(etl, 41, 9_000, 109_000);
    assert_eq!(of(whole(machine())), Some(Cause::DiskIo(0)));
    assert_eq!(of(reads(machine(), 42, 9_000, 109_000)), None, "another thread's");
    assert_eq!(of(reads(machine(), 41, 11_000, 109_000)), None, "asked for after it blocked");
    assert_eq!(of(reads(machine(), 41, 9_000, 80_000)), None, "it went on waiting for long");
    assert_eq!(of(reads(machine(), 41, 9_000, 9_900)), None, "over before it blocked");
    assert_eq!(of(reads(machine(), 41, 9_000, 110_100)), None, "it did not wait for its end");
    // The last of two ends the wait.
    assert_eq!(of(reads(reads(machine(), 41, 9_000, 60_000), 41, 9_100, 109_000)), Some(Cause::DiskIo(1)));
}

#[test]
fn a_wait_within_a_hard_fault_is_for_it() {
    let fault = |etl: Etl, from: i64, to: i64| etl.event(1, T + to, hard_fault(T + from, 0x7000, 41, 8192));
    let of = |etl: Etl| cause(etl).1;
    let alone = Some(Cause::HardFault { fault: 0, operation: None });
    assert_eq!(of(fault(machine(), 9_000, 110_500)), alone);
    let both = fault(reads(machine(), 41, 9_500, 109_900), 9_000, 110_500);
    assert_eq!(of(both), Some(Cause::HardFault { fault: 0, operation: Some(0) }));
    assert_eq!(of(fault(machine(), 9_000, 100_000)), None, "it was over before the thread ran");
    assert_eq!(of(fault(machine(), 20_000, 110_500)), None, "it began after the thread blocked");
    assert_eq!(
        of(fault(fault(machine(), 1_000, 5_000), 9_000, 110_500)),
        Some(Cause::HardFault { fault: 1, operation: None })
    );
}

/// Reads, writes, flushes; bytes read and written; sums of elapsed and of service time; hard faults, their bytes, their
/// time. Times in ticks.
type Sums = ([u64; 3], [u64; 2], [i64; 2], (u64, u64, i64));

fn sums(trace: &Trace) -> Sums {
    let of = |kind| trace.disk.operations.iter().filter(move |one| one.kind == kind);
    let bytes = |kind| of(kind).map(|one| u64::from(one.bytes)).sum();
    use DiskIoKind::{Flush, Read, Write};
    let all = &trace.disk.operations;
    let faults = &trace.disk.hard_faults;
    (
        [Read, Write, Flush].map(|kind| of(kind).count() as u64),
        [bytes(Read), bytes(Write)],
        [all.iter().map(DiskOperation::ticks).sum(), all.iter().map(|one| one.service).sum()],
        (
            faults.len() as u64,
            faults.iter().map(|one| u64::from(one.bytes)).sum(),
            faults.iter().map(|one| one.ticks()).sum(),
        ),
    )
}

fn real(path: &str) -> Trace {
    let recording = Recording::open(&[data::file(path)]).unwrap();
    every_way(&recording, |builder| builder.keep(keep())).value
}

/// By a script that reads the records of the files by itself; the counts stand in TraceEvent's dumps, too.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_recordings_have_the_sums_of_another_reader() {
    for (path, expected) in [
        (
            "etl/xperf/slow-ppt.etl",
            ([23, 330, 8], [2_392_064, 23_934_976], [4_789_236, 2_405_517], (1, 4096, 12)),
        ),
        (
            "etl/perfview/PerfViewData.etl",
            ([65, 471, 6], [2_060_288, 26_077_184], [8_358_809, 6_808_508], (35, 474_112, 2_181_764)),
        ),
        (
            "etl/perfview/net.4.5.2.x64.etl",
            ([1_208, 21, 2], [19_564_544, 286_720], [23_731_850, 17_967_155], (153, 2_722_816, 9_643_852)),
        ),
    ] {
        assert_eq!(sums(&real(path)), expected, "{path}");
    }
}

/// The files that took longest, by the same script.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_operations_have_the_files_of_another_reader() {
    // Operations, their time in ticks, hard faults.
    for (path, file, expected) in [
        ("etl/xperf/slow-ppt.etl", r"C:\kernel.etl", (29, 1_637_330, 0)),
        ("etl/xperf/slow-ppt.etl", r"C:\$BitMap", (91, 259_074, 0)),
        ("etl/perfview/PerfViewData.etl", r"C:\temp\PerfViewData.etl", (324, 4_321_339, 0)),
        ("etl/perfview/PerfViewData.etl", r"C:\Windows\System32\wmp.dll", (9, 431_682, 9)),
        (
            "etl/perfview/net.4.5.2.x64.etl",
            r"C:\Windows\Microsoft.NET\Framework64\v4.0.30319\clr.dll",
            (670, 7_852_642, 74),
        ),
    ] {
        let trace = real(path);
        let is_it = |of: Option<u32>| trace.disk.path(of) == Some(file);
        let operations: Vec<_> = trace.disk.operations.iter().filter(|one| is_it(one.file)).collect();
        let faults = trace.disk.hard_faults.iter().filter(|one| is_it(one.file)).count();
        let ticks: i64 = operations.iter().map(|one| one.ticks()).sum();
        assert_eq!((operations.len(), ticks, faults), expected, "{path}: {file}");
    }
}

/// How many waits a disk I/O explains, by the same rule in a script that reads the switches by itself; it found three
/// sleeping threads more.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_waits_have_the_causes_of_another_reader() {
    let recording = Recording::open(&[data::file("etl/xperf/slow-ppt.etl")]).unwrap();
    let all = Keep { switches: true, readied: true, ..keep() };
    let trace = every_way(&recording, |builder| builder.keep(all)).value;
    let (waits, causes) = (Waits::new(&trace).unwrap(), Causes::new(&trace));
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for thread in &waits.threads {
        for wait in thread.waits().filter(|wait| wait.blocked.came.is_some()) {
            let key = match causes.of(thread, &wait) {
                Some(Cause::DiskIo(index)) => format!("{:?}", trace.disk.operations[index as usize].kind),
                Some(Cause::HardFault { .. }) => "fault".to_owned(),
                None => continue,
            };
            *counts.entry(key).or_default() += 1;
        }
    }
    assert_eq!(counts, BTreeMap::from([("Read".to_owned(), 8), ("Write".to_owned(), 250)]));
}
