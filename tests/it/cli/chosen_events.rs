//! Any event with a stack as the metric, and what .NET programs allocate.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::etwprof;
use crate::support::stacks::machine;
use crate::synth::kernel::page_fault;
use crate::synth::{Etl, IntoEvent, Item, START, Sample, clr, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;

/// A moment in milliseconds.
fn at(ms: i64) -> i64 {
    START + ms * 10_000
}

fn stack(etl: Etl, ms: i64, (pid, tid): (u32, u32), kernel: &[u64], user: &[u64]) -> Etl {
    let etl = etl.event(0, at(ms) + 2, stack_walk::full(at(ms), pid, tid, kernel));
    etl.event(0, at(ms) + 4, stack_walk::full(at(ms), pid, tid, user))
}

#[test]
fn what_was_allocated_by_its_type() {
    let stack =
        |event: crate::synth::Event| clr::by_thread(event, 40, 41).item(Item::stack64(0, &[0x1000, 0x2000]));
    let etl = machine()
        .event(0, at(1), stack(clr::allocation_tick(40, 3, 1 << 10, "System.String")))
        .event(0, at(2), stack(clr::allocation_tick(40, 3, 2 << 10, "System.Byte[]")))
        .event(0, at(3), stack(clr::allocation_tick(40, 1, 3 << 10, "")));
    let folded = |etl: crate::synth::Etl| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.etl");
        std::fs::write(&path, etl.finish()).unwrap();
        let path = path.display().to_string();
        let args = ["convert", &path, "--metric", "allocated", "--by-type", "-f", "folded", "--no-symbols"];
        let output = etwprof(args).success();
        let mut lines: Vec<String> = output.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let ticks = [
        "a.exe (40);0x2000;0x1000 3072",
        "a.exe (40);[System.Byte[]];0x2000;0x1000 2048",
        "a.exe (40);[System.String];0x2000;0x1000 1024",
    ];
    assert_eq!(folded(etl.clone()), ticks);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    std::fs::write(&path, etl.clone().finish()).unwrap();
    let path = path.display().to_string();
    let args = ["top", &path, "--metric", "allocated", "--by-type", "--no-symbols", "--csv"];
    let output = etwprof(args).success();
    let rows: Vec<&str> = output.text().lines().skip(1).take(2).collect();
    assert_eq!(rows, ["[System.Byte[]],,heading,,,0,2048,0,0", "[System.String],,heading,,,0,1024,0,0"]);
    // Of a process with objects that were chosen by chance, these alone.
    let etl = etl.event(0, at(4), stack(clr::allocation_sampled(40, 1, "N.T")));
    assert_eq!(folded(etl), ["a.exe (40);[N.T];0x2000;0x1000 102400"]);
    let output = etwprof(["top", "examples/demo.etl", "--by-type"]);
    assert!(output.code == 2 && output.stderr.contains("--metric allocated"), "{}", output.stderr);
}

/// Two hard faults of thread 41 in 0x1000 and in 0x1200, and one without a stack.
fn faults() -> (TempDir, String) {
    let fault = |ms| page_fault::hard_fault(at(ms), 0x8000, 41, 4096);
    let etl = stack(machine().event(0, at(1), fault(0)), 1, (40, 41), &[K], &[0x1000, 0x2000]);
    let etl = stack(etl.event(0, at(3), fault(2)), 3, (40, 41), &[K], &[0x1200, 0x2000]);
    let tick = clr::by_thread(clr::allocation_tick(40, 3, 150 << 10, "System.String"), 40, 41);
    let etl = etl.event(0, at(5), fault(4)).event(0, at(7), tick.item(Item::stack64(0, &[0x1000, 0x2000])));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn any_event_with_a_stack_can_be_the_metric() {
    let (_folder, path) = faults();
    let folded = |event: &str| {
        let output = etwprof(["convert", &path, "--event", event, "-f", "folded", "--no-symbols"]).success();
        let mut lines: Vec<String> = output.text().lines().map(str::to_owned).collect();
        lines.sort();
        (lines, output.stderr)
    };
    let expected = [
        "a.exe (40);0x2000;0x1000;0xffff800000000000 1",
        "a.exe (40);0x2000;0x1200;0xffff800000000000 1",
        "a.exe (40);[no stack] 1",
    ];
    let guid = "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c";
    for event in ["PageFault/HardFault", "pagefault/*", &format!("{guid}/32"), "PageFault/32"] {
        let (lines, said) = folded(event);
        assert_eq!(lines, expected, "{event}");
        assert!(said.contains("1 of the 3 chosen events have no stack"), "{said}");
        assert!(said.contains("3 events = 3 kept"), "{said}");
    }
    let output = etwprof(["convert", &path, "--metric", "allocated", "--no-symbols"]).success();
    assert!(output.text().starts_with("150.0 KiB allocated: 1 event of 1 thread\n"), "{}", output.text());
    let output = etwprof(["top", &path, "--metric", "allocated", "--no-symbols", "--json"]).success();
    let top: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!((&top["kept"], &top["rows"][0]["exclusive"]), (&(150 << 10).into(), &(150 << 10).into()));
    assert_eq!(top["rows"][0]["exclusive_ns"], 0);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("a.json").display().to_string();
    etwprof(["convert", &path, "--metric", "allocated", "--no-symbols", "-o", &saved]).success();
    for (args, code, why) in [
        (vec!["convert", &path, "--event", "PageFault/Nothing"], 1, "the recording has no such event; "),
        (vec!["convert", &path, "--event", "Process/DCStart"], 1, "without stacks"),
        (vec!["convert", &path, "--event", "a/b", "--metric", "blocked"], 2, "cannot be used with"),
        (vec!["diff", &path, &path, "--metric", "allocated"], 2, "diff compares time"),
        (vec!["diff", &saved, &saved], 2, "a.json: diff compares time"),
        (vec!["convert", "examples/demo.etl", "--metric", "allocated"], 1, "no allocation events"),
    ] {
        let output = etwprof(&args);
        assert_eq!(output.code, code, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
}

#[test]
fn events_on_the_idle_thread_are_not_idle() {
    let fault = |ms, tid| page_fault::hard_fault(at(ms), 0x8000, tid, 4096);
    let etl = stack(machine().event(0, at(1), fault(0, 41)), 1, (40, 41), &[K], &[0x1000]);
    let etl = etl.event(0, at(3), fault(2, 0)).event(0, at(5), Sample::new(K, 0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("idle.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let path = path.display().to_string();
    let rows = |more: &[&str]| {
        let args = ["top", &path, "--by", "process", "--no-symbols", "--json"];
        let output = etwprof([&args[..], more].concat()).success();
        let top: Value = serde_json::from_str(output.text()).unwrap();
        let row =
            |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["exclusive"].as_i64().unwrap());
        let mut rows: Vec<_> = top["rows"].as_array().unwrap().iter().map(row).collect();
        rows.sort();
        rows
    };
    let both = [("Idle (0)".to_owned(), 1), ("a.exe (40)".to_owned(), 1)];
    assert_eq!(rows(&["--event", "PageFault/HardFault"]), both);
    assert_eq!(rows(&["--event", "PageFault/HardFault", "--pid", "40"]), both[1..]);
}
