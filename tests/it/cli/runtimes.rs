//! `gc`, `jit` and `--during`, where there is nothing to show.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::etwprof;
use crate::support::reading::json;
use crate::support::stacks::machine;
use crate::synth::{Etl, Process, START, clr};

/// A moment in milliseconds.
fn at(ms: i64) -> i64 {
    START + ms * 10_000
}

fn saved(etl: Etl) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtimes.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

/// A collection of a process in a pause of 2 ms.
fn collection(etl: Etl, ms: i64, process: u32, number: u32) -> Etl {
    etl.event(0, at(ms), clr::suspend(process, 1))
        .event(0, at(ms), clr::gc_start(process, number, 0, 0, 0))
        .event(0, at(ms + 1), clr::gc_end(process, number, 0))
        .event(0, at(ms + 2), clr::resume(process))
}

#[test]
fn what_the_chosen_processes_lack_others_may_have() {
    let etl = machine().sampled(0, at(1), 40, 41, &[0x1000]);
    let etl = collection(collection(collection(etl, 10, 50, 1), 20, 40, 1), 30, 40, 2);
    let name = ["N.T", "M", "void ()"];
    let begun = clr::by_thread(clr::jitting_started(50, 0x7ff8, 1, 0x0600_0001, name), 50, 51);
    let (_folder, path) = saved(etl.event(0, at(40), begun));
    for (args, why) in [
        (
            ["gc", "--pid", "4"],
            "the chosen processes had no garbage collections; those that had some: a.exe (40), b.exe (50)",
        ),
        (["jit", "--name", "a.exe"], "the chosen processes compiled no methods; those that did: b.exe (50)"),
    ] {
        let output = etwprof([args[0], &path, args[1], args[2]]);
        assert_eq!(output.code, 1, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
    let (_folder, path) = saved(machine().sampled(0, at(1), 40, 41, &[0x1000]));
    for (command, why) in [
        ("gc", "no garbage collections in this recording; record the GC keyword"),
        ("jit", "no method was compiled in this recording; record the JIT keyword"),
    ] {
        let output = etwprof([command, &path]);
        assert!(output.code == 1 && output.stderr.contains(why), "{}", output.stderr);
    }
}

#[test]
fn one_row_is_the_longest() {
    let etl = collection(collection(machine(), 10, 50, 1), 20, 50, 2);
    let (_folder, path) = saved(etl);
    let output = etwprof(["gc", &path, "-n", "1"]).success();
    assert!(output.text().contains("b.exe (50), the longest of 2 collections\n"), "{}", output.text());
}

#[test]
fn how_long_it_takes_to_stop_the_threads() {
    // Of 40 ms, c.exe stands still from 30 to 32 and from 40 to 42 ms; that was reached at 31 and at 40.5 ms.
    let etl = machine().event(0, at(20), Process::start(60, "c.exe"));
    let etl = collection(etl, 30, 60, 1).event(0, at(31), clr::suspended(60));
    let etl = collection(etl, 40, 60, 2).event(0, at(40) + 5_000, clr::suspended(60));
    // One that does not end counts for nothing, and neither does one for something else.
    let etl = etl.event(0, at(50), clr::suspend(60, 5)).event(0, at(51), clr::suspended(60));
    let etl = etl.event(0, at(52), clr::resume(60));
    let etl = etl.event(0, at(53), clr::suspend(60, 1)).event(0, at(54), clr::suspended(60));
    let etl = etl.event(0, at(60), Process::end(60, "c.exe")).sampled(0, at(99), 40, 41, &[0x1000]);
    let (_folder, path) = saved(etl);
    let gc: Value = json(["gc", &path, "--json"]);
    let runtime = &gc["runtimes"][0];
    assert_eq!((&runtime["process"], &runtime["pauses"]), (&"c.exe".into(), &3.into()));
    assert_eq!((&runtime["pause_ns"], &runtime["suspend_ns"]), (&4_000_000.into(), &1_500_000.into()));
    assert_eq!(runtime["paused_percent"], 10.0);
    let output = etwprof(["gc", &path]).success();
    let line = "paused for 10.0% of its time; of 4.0 ms, 1.5 ms passed until its threads stood still";
    assert!(output.text().lines().any(|one| one == line), "{}", output.text());
    // A recording without such events does not say.
    let (_folder, path) = saved(collection(machine(), 10, 50, 1));
    let gc: Value = json(["gc", &path, "--json"]);
    assert_eq!(gc["runtimes"][0]["suspend_ns"], Value::Null);
}

#[test]
fn samples_during_what_was_not_recorded() {
    let (_folder, path) = saved(machine().sampled(0, at(1), 40, 41, &[0x1000]));
    for (during, code, why) in [
        (
            "gc",
            1,
            "error: --during gc: the recording has no pauses for garbage collections; record the GC keyword",
        ),
        (
            "jit",
            1,
            "error: --during jit: the recording does not say when methods were compiled; record the JIT",
        ),
        (
            "outside-gc",
            0,
            "warning: --during outside-gc: the recording has no pauses for garbage collections, so",
        ),
    ] {
        let output = etwprof(["convert", &path, "--no-symbols", "--during", during]);
        assert_eq!(output.code, code, "{during}: {}", output.stderr);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
    // Where it was recorded, no sample at such a moment is another matter.
    let etl = collection(machine().sampled(0, at(1), 40, 41, &[0x1000]), 10, 50, 1);
    let (_folder, path) = saved(etl);
    let output = etwprof(["convert", &path, "--no-symbols", "--during", "gc"]);
    assert!(output.stderr.contains("no samples left after filtering"), "{}", output.stderr);
    let output = etwprof(["convert", &path, "--no-symbols", "--during", "outside-gc"]).success();
    assert!(!output.stderr.contains("no pauses"), "{}", output.stderr);
}
