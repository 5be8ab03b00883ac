//! Disk I/O, hard faults, DPCs and interrupts at the command line: `disk`, `interrupts`, and what `info` and `waits` say of
//! them.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::command::{self, etwprof};
use crate::support::stacks::machine;
use crate::synth::kernel::disk_io::{DiskIo, request};
use crate::synth::kernel::file_io::rundown;
use crate::synth::kernel::page_fault::{self, hard_fault};
use crate::synth::kernel::perfinfo::{dpc, isr};
use crate::synth::kernel::thread::CSwitch;
use crate::synth::{Image, START, Sample};

const ORDERS: u64 = 0xffff_e000_0000_2000;
const DRIVER: u64 = 0xffff_f800_1000_0000;

/// Ticks of 100 ns in a millisecond.
const MS: i64 = 10_000;

/// A moment in milliseconds.
fn at(ms: i64) -> i64 {
    START + ms * MS
}

fn ticks(ms: i64) -> u64 {
    (ms * MS) as u64
}

/// Thread 41 of a.exe reads orders.db from 10 to 30 ms and waits for it; 51 of b.exe writes it from 20 to 40 ms, and the
/// other disk is flushed for System. 41 touches a page at 50 ms that is there at 60 ms. A driver has an interrupt of 1 ms
/// in a DPC of 3 ms.
fn recording() -> (TempDir, PathBuf) {
    let etl = machine()
        .event(
            0,
            START + 2,
            Image::dc_start(0, DRIVER, 0x1_0000, r"\SystemRoot\system32\drivers\storage.sys"),
        )
        .event(0, at(1), CSwitch::new(0, 41))
        .event(0, at(5), Sample::new(0x1100, 41))
        .event(0, at(10), request(12, 3, 0x10, 40, 41))
        .event(0, at(10) + 5, CSwitch::new(41, 0).reason(0, 5))
        .event(1, at(20), request(13, 3, 0x20, 50, 51))
        .event(0, at(30), DiskIo::read(0x10, ticks(20)).file(ORDERS).bytes(65_536).asked_by(40, 41))
        .event(0, at(30) + 50, CSwitch::new(0, 41))
        .event(1, at(40), DiskIo::write(0x20, ticks(20)).file(ORDERS).bytes(8_192).asked_by(50, 51))
        .event(1, at(45), DiskIo::flush(0x30, ticks(3)).disk(1).asked_by(4, 5))
        .event(0, at(50) + 5, CSwitch::new(41, 0).reason(2, 5))
        .event(0, at(59), CSwitch::new(0, 41))
        .event(0, at(60), hard_fault(at(50), 0x7000, 41, 16_384))
        .event(0, at(72), isr(at(71), DRIVER + 0x200, 0xb1))
        .event(0, at(73), dpc(at(70), DRIVER + 0x100))
        .event(1, at(81), dpc(at(80), DRIVER + 0x100))
        .event(0, at(101), CSwitch::new(41, 0))
        .event(0, at(101), rundown(ORDERS, r"\Device\HarddiskVolume2\orders.db"))
        .event(0, at(101), rundown(page_fault::FILE, r"\Device\HarddiskVolume2\pages.dll"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    (folder, path)
}

fn run(args: &[&str]) -> command::Output {
    let (_folder, path) = recording();
    let mut line = vec![args[0], path.to_str().unwrap()];
    line.extend(&args[1..]);
    etwprof(line)
}

fn text(args: &[&str]) -> Vec<String> {
    let output = run(args).success();
    output.text().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn parsed(args: &[&str]) -> Value {
    serde_json::from_str(run(&[args, &["--json"]].concat()).success().text()).unwrap()
}

const MILLION: i64 = 1_000_000;

#[test]
fn disk_io_by_file() {
    let lines = text(&["disk"]);
    assert_eq!(
        lines,
        [
            "1 read of 64.0 KiB, 1 write of 8.0 KiB, 1 flush, 1 hard fault of 16.0 KiB in 101.0 ms",
            "disk 0 worked for 30.0 ms (29.7%)",
            "disk 1 worked for 3.0 ms (3.0%)",
            "",
            r"reads      read  writes  written  flushes  disk ms  I/O ms  longest ms  file",
            r"    1  64.0 KiB       1  8.0 KiB        0   30.000  40.000      20.000  \Device\HarddiskVolume2\orders.db",
            r"    0       0 B       0      0 B        1    3.000   3.000       3.000  (no file)",
            "",
            r"hard faults      read  fault ms  longest ms  file",
            r"          1  16.0 KiB    10.000      10.000  \Device\HarddiskVolume2\pages.dll",
        ]
    );
    let json = parsed(&["disk"]);
    assert_eq!(json["by"], "file");
    assert_eq!(
        json["disks"],
        json!([{"disk": 0, "busy_ns": 30 * MILLION}, {"disk": 1, "busy_ns": 3 * MILLION}])
    );
    assert_eq!(
        json["rows"][0],
        json!({
            "name": r"\Device\HarddiskVolume2\orders.db", "pid": null, "tid": null,
            "reads": 1, "read_bytes": 65_536, "writes": 1, "written_bytes": 8_192, "flushes": 0,
            "service_ns": 30 * MILLION, "io_ns": 40 * MILLION,
            "longest_ns": 20 * MILLION, "longest_start_ns": 10 * MILLION,
            "hard_faults": 0, "hard_fault_bytes": 0, "hard_fault_ns": 0, "longest_hard_fault_ns": null
        })
    );
    assert_eq!(json["total"]["hard_fault_ns"], 10 * MILLION);
    let names = |json: &Value| -> Vec<String> {
        json["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let orders = r"\Device\HarddiskVolume2\orders.db";
    let pages = r"\Device\HarddiskVolume2\pages.dll";
    assert_eq!(names(&json), [orders, "(no file)", pages]);
    assert_eq!(names(&parsed(&["disk", "--sort", "faults"]))[0], pages);
    let first = parsed(&["disk", "-n", "1"]);
    assert_eq!((names(&first), &first["left_out"]), (vec![orders.to_owned()], &json!(2)));
}

#[test]
fn disk_io_by_other_things_and_in_part() {
    let rows = |args: &[&str]| -> Vec<Value> {
        let json = parsed(&[&["disk"], args].concat());
        let row =
            |row: &Value| json!([row["name"], row["pid"], row["tid"], row["io_ns"], row["hard_faults"]]);
        json["rows"].as_array().unwrap().iter().map(row).collect()
    };
    assert_eq!(
        rows(&["--by", "process"]),
        [
            json!(["a.exe", 40, null, 20 * MILLION, 1]),
            json!(["b.exe", 50, null, 20 * MILLION, 0]),
            json!(["System", 4, null, 3 * MILLION, 0]),
        ]
    );
    assert_eq!(rows(&["--by", "thread", "--name", "b"]), [json!(["b.exe", 50, 51, 20 * MILLION, 0])]);
    assert_eq!(rows(&["--by", "process", "--tid", "51"]), [json!(["b.exe", 50, null, 20 * MILLION, 0])]);
    let both = rows(&["--by", "process", "--tid", "41", "--tid", "51", "--name", "a"]);
    assert_eq!(both, [json!(["a.exe", 40, null, 20 * MILLION, 1])]);
    let output = run(&["disk", "--tid", "77"]);
    assert!(
        output.code == 1 && output.stderr.contains("--tid 77: no thread has this id"),
        "{}",
        output.stderr
    );
    assert_eq!(
        rows(&["--by", "disk", "--sort", "count"]),
        [
            json!(["disk 0", null, null, 40 * MILLION, 0]),
            json!(["disk 1", null, null, 3 * MILLION, 0]),
            json!(["(any disk)", null, null, 0, 1]),
        ]
    );
    assert_eq!(
        rows(&["--by", "kind", "--from", "35ms", "--to", "50ms"]),
        [json!(["write", null, null, 20 * MILLION, 0]), json!(["flush", null, null, 3 * MILLION, 0])]
    );
    let csv = text(&["disk", "--csv", "--pid", "4"]);
    assert_eq!(csv[1], "(no file),,,0,0,0,0,1,3000000,3000000,3000000,42000000,0,0,0,");
    assert_eq!(csv[0].split(',').count(), csv[1].split(',').count());
}

#[test]
fn dpcs_and_interrupts() {
    let lines = text(&["interrupts"]);
    assert_eq!(
        lines,
        [
            "3 DPCs and interrupts in 101.0 ms: 4.0 ms together, 3.96% of one processor",
            "",
            "count  total ms  nested ms  longest ms  % of a CPU  routine",
            "    2     4.000      1.000       3.000       2.97%  storage!0x100 (DPC)",
            "    1     1.000      0.000       1.000       0.99%  storage!0x200 (ISR)",
        ]
    );
    let json = parsed(&["interrupts"]);
    let mut row = json["rows"][0].clone();
    assert!((row["processor_percent"].as_f64().unwrap() - 300.0 / 101.0).abs() < 1e-3);
    row.as_object_mut().unwrap().remove("processor_percent");
    assert_eq!(
        row,
        json!({
            "name": "storage!0x100", "kind": "dpc", "count": 2, "total_ns": 4 * MILLION, "nested_ns": MILLION,
            "longest_ns": 3 * MILLION, "longest_start_ns": 70 * MILLION
        })
    );
    let rows = |args: &[&str]| -> Vec<Value> {
        let json = parsed(&[&["interrupts"], args].concat());
        json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| json!([row["name"], row["kind"], row["count"]]))
            .collect()
    };
    assert_eq!(rows(&["--by", "module"]), [json!(["storage", null, 3])]);
    assert_eq!(
        rows(&["--by", "processor", "--sort", "count"]),
        [json!(["processor 0", null, 2]), json!(["processor 1", "dpc", 1])]
    );
    assert_eq!(rows(&["--by", "kind"]), [json!(["DPC", "dpc", 2]), json!(["ISR", "isr", 1])]);
    assert_eq!(rows(&["--cpu", "1"]), [json!(["storage!0x100", "dpc", 1])]);
    assert_eq!(rows(&["--to", "72.5ms"]), [json!(["storage!0x200", "isr", 1])]);
    assert!(
        text(&["interrupts", "--csv"])[1]
            .starts_with("storage!0x100,dpc,2,4000000,1000000,3000000,70000000,2.9")
    );
}

#[test]
fn what_is_not_there_is_an_error_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.etl");
    std::fs::write(&path, machine().event(0, at(5), Sample::new(0x1100, 41)).finish()).unwrap();
    let path = path.to_str().unwrap();
    for (command, why) in
        [("disk", "no disk I/O in this recording"), ("interrupts", "no DPC and no interrupt")]
    {
        let output = etwprof([command, path]);
        assert_eq!(output.code, 1);
        assert!(output.stderr.contains(why) && output.stderr.contains("record"), "{}", output.stderr);
    }
    let output = run(&["disk", "--name", "orders"]);
    assert!(output.code == 1 && output.stderr.contains("--name orders"), "{}", output.stderr);
    for command in ["disk", "interrupts"] {
        let output = run(&[command, "--from", "90ms"]);
        assert!(output.code == 1 && output.stderr.contains("is left after filtering"), "{}", output.stderr);
    }
}

#[test]
fn info_counts_them() {
    let lines = text(&["info"]);
    let line = |name: &str| lines.iter().find(|line| line.starts_with(name)).unwrap().as_str();
    assert_eq!(
        line("disk "),
        "disk        1 read of 64.0 KiB, 1 write of 8.0 KiB, 1 flush, 1 hard fault of 16.0 KiB (`etwprof disk` lists them)"
    );
    assert_eq!(line("DPCs, ISRs"), "DPCs, ISRs  1 ISR, 2 DPCs: 4.0 ms, 4.0% of one processor");
    let json = parsed(&["info"]);
    assert_eq!((&json["disk"]["reads"], &json["disk"]["io_ns"]), (&json!(1), &json!(43 * MILLION)));
    assert_eq!(json["interrupts"][1]["kind"], "dpc");
}

#[test]
fn waits_have_their_causes() {
    let json = parsed(&["waits", "--tid", "41"]);
    let causes: Vec<&Value> = json["waits"].as_array().unwrap().iter().map(|wait| &wait["cause"]).collect();
    assert_eq!(
        causes,
        [
            &json!({
                "kind": "disk_read", "file": r"\Device\HarddiskVolume2\orders.db", "bytes": 65_536, "disk": 0,
                "start_ns": 10 * MILLION, "duration_ns": 20 * MILLION, "service_ns": 20 * MILLION
            }),
            &json!({
                "kind": "hard_fault", "file": r"\Device\HarddiskVolume2\pages.dll", "bytes": 16_384, "disk": null,
                "start_ns": 50 * MILLION, "duration_ns": 10 * MILLION, "service_ns": null
            }),
        ]
    );
    let lines = text(&["waits", "--tid", "41"]);
    for line in [
        r"  for a disk read of 64.0 KiB, \Device\HarddiskVolume2\orders.db: 20.0 ms",
        r"  for a hard fault, 16.0 KiB from disk, \Device\HarddiskVolume2\pages.dll: 10.0 ms",
    ] {
        assert!(lines.iter().any(|is| is == line), "{lines:#?}");
    }
}
