//! Waits at the command line: `threads`, `waits`, and call trees of blocked, ready and wall time.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::etwprof;
use crate::support::data;
use crate::support::stacks::machine;
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::{Etl, IntoEvent, START, Sample, stack_walk};

const K: u64 = 0xffff_8000_0000_0000;

/// Ticks of 100 ns in a millisecond.
const MS: i64 = 10_000;

/// A moment in milliseconds.
fn at(ms: i64) -> i64 {
    START + ms * MS
}

fn stack(etl: Etl, ms: i64, (pid, tid): (u32, u32), kernel: &[u64], user: &[u64]) -> Etl {
    let etl = etl.event(0, at(ms) + 2, stack_walk::full(at(ms), pid, tid, kernel));
    etl.event(0, at(ms) + 4, stack_walk::full(at(ms), pid, tid, user))
}

/// Thread 41 of a.exe runs for 10 ms, waits in 0x1000 until 52 of b.exe makes it ready after 30 ms, gets a processor 5 ms
/// later, and is pre-empted at 60 ms until 80 ms. 52 had run from 30 ms on.
pub fn recording() -> (TempDir, PathBuf) {
    let etl = machine().event(0, at(1), CSwitch::new(0, 41)).event(0, at(5), Sample::new(0x1100, 41));
    let etl = stack(etl, 5, (40, 41), &[K], &[0x1100, 0x2000]);
    let etl = etl.event(0, at(11), CSwitch::new(41, 0).reason(15, 5));
    let etl = stack(etl.event(1, at(31), CSwitch::new(0, 52)), 31, (50, 52), &[K + 16], &[0x8000]);
    let etl = etl.event(1, at(41), ready(41, false).by(50, 52));
    let etl = stack(etl, 41, (50, 52), &[K + 32], &[0x9000]);
    let etl = stack(etl.event(0, at(46), CSwitch::new(0, 41)), 46, (40, 41), &[K + 48], &[0x1000, 0x2000]);
    let etl = etl.event(0, at(61), CSwitch::new(41, 51).reason(32, 1));
    let etl = stack(etl.event(0, at(81), CSwitch::new(51, 41)), 81, (40, 41), &[K + 64], &[0x1200, 0x2000]);
    let etl = etl.event(1, at(101), CSwitch::new(52, 0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    (folder, path)
}

fn run(args: &[&str]) -> (String, String) {
    let (_folder, path) = recording();
    let mut line = vec![args[0], path.to_str().unwrap()];
    line.extend(&args[1..]);
    let output = etwprof(line).success();
    (output.text().to_owned(), output.stderr)
}

fn folded(args: &[&str]) -> Vec<String> {
    let (text, _) = run(&[&["convert", "-f", "folded", "--no-symbols"], args].concat());
    text.lines().map(str::to_owned).collect()
}

#[test]
fn blocked_time_stands_where_the_thread_went_to_sleep() {
    let of_a = folded(&["--metric", "blocked", "--name", "a.exe"]);
    assert_eq!(of_a, ["a.exe (40);0x2000;0x1000;0xffff800000000030 30000"], "30 ms in us");
    let by_reason = folded(&["--metric", "blocked", "--name", "a.exe", "--by-reason"]);
    assert_eq!(by_reason, ["a.exe (40);[WrQueue];0x2000;0x1000;0xffff800000000030 30000"]);
    let with_wakers = folded(&["--metric", "blocked", "--name", "a.exe", "--with-wakers"]);
    assert_eq!(
        with_wakers,
        ["a.exe (40);0x2000;0x1000;0xffff800000000030;[readied by b.exe];0x9000;0xffff800000000020 30000"]
    );
}

/// Thread 41 of a.exe waits in 0x1000 from 10 to 40 ms. 52 of b.exe runs on processor 1 from 20 to 30 ms, then nobody.
fn woken(ready: impl FnOnce(Etl) -> Etl) -> (TempDir, String) {
    let etl = machine().event(0, at(1), CSwitch::new(0, 41));
    let etl = etl.event(0, at(10), CSwitch::new(41, 0).reason(15, 5));
    let etl = etl.event(1, at(20), CSwitch::new(0, 52)).event(1, at(30), CSwitch::new(52, 0));
    let etl = stack(ready(etl).event(0, at(40), CSwitch::new(0, 41)), 40, (40, 41), &[K], &[0x1000]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("woken.etl");
    std::fs::write(&path, etl.event(0, at(50), CSwitch::new(41, 0)).finish()).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn who_ended_a_wait_is_known_by_a_record_without_a_thread_too() {
    // The record of a thread that is made ready names nobody: it was whoever ran on its processor.
    let by_52 = |etl: Etl| etl.event(1, at(25), ready(41, false));
    let by_dpc = |etl: Etl| etl.event(1, at(25), ready(41, true));
    let while_idle = |etl: Etl| etl.event(1, at(35), ready(41, false));
    let elsewhere = |etl: Etl| etl.event(2, at(35), ready(41, false));
    type Case<'a> = (&'a dyn Fn(Etl) -> Etl, &'a str, &'a str, Option<u64>, bool, &'a str);
    let cases: [Case<'_>; 4] = [
        (&by_52, "b.exe", "b.exe (50) thread 52", Some(52), false, "filled"),
        (&by_dpc, "an interrupt", "an interrupt", None, true, "interrupt"),
        (&while_idle, "an interrupt", "an interrupt", None, true, "interrupt"),
        (&elsewhere, "an unknown process", "a thread that is not known", None, false, "no_event"),
    ];
    for (ready, process, thread, tid, interrupt, end) in cases {
        let (_folder, path) = woken(ready);
        let args = ["convert", "-f", "folded", "--no-symbols", "--metric", "blocked", "--with-wakers"];
        let output = etwprof([&args[..], &["--tid", "41", &path]].concat()).success();
        let folded = output.text();
        assert!(folded.starts_with(&format!("a.exe (40);0x1000;{K:#x};[readied by {process}] ")), "{folded}");
        let output = etwprof(["waits", "--no-symbols", "--tid", "41", &path]).success();
        assert!(output.text().contains(&format!("\n  readied by {thread}\n")), "{}", output.text());
        let output = etwprof(["waits", "--no-symbols", "--tid", "41", "--json", &path]).success();
        let worst: Value = serde_json::from_str(output.text()).unwrap();
        let readied_by = &worst["waits"][0]["readied_by"];
        assert_eq!(readied_by["thread"]["tid"].as_u64(), tid, "{worst}");
        assert_eq!(readied_by["interrupt"], interrupt, "{worst}");
        assert_eq!(worst["waits"][0]["chain_end"], end, "{worst}");
    }
}

#[test]
fn tables_have_reasons_and_kinds_of_time() {
    let rows = |args: &[&str]| {
        let (text, _) = run(&[&["top", "--name", "a.exe", "--no-symbols", "--json"], args].concat());
        let top: Value = serde_json::from_str(&text).unwrap();
        let rows = top["rows"].as_array().unwrap();
        let exclusive: i64 = rows.iter().map(|row| row["exclusive"].as_i64().unwrap()).sum();
        assert_eq!(top["kept"], exclusive, "{top}");
        let row =
            |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["inclusive"].as_i64().unwrap());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let blocked = ["--metric", "blocked", "--by-reason"];
    for sort in ["exclusive", "inclusive"] {
        let rows = rows(&[&blocked[..], &["--sort", sort]].concat());
        assert_eq!(rows[0], ("[WrQueue]".to_owned(), 30_000));
        assert_eq!(rows.len(), 4, "and three functions: {rows:?}");
    }
    let wall = rows(&["--metric", "wall"]);
    assert_eq!(wall[..2], [("[blocked]".to_owned(), 30_000), ("[ready]".to_owned(), 25_000)]);
    let top = |form: &[&str]| {
        run(&[&["top", "--name", "a.exe", "--no-symbols", "-n", "1"], &blocked[..], form].concat()).0
    };
    let text = top(&[]);
    assert!(text.lines().nth(1).unwrap().ends_with("  [WrQueue]"), "{text}");
    let csv = top(&["--csv"]);
    assert_eq!(csv.lines().nth(1), Some("[WrQueue],,heading,,,0,30000,0,30000000"));
}

#[test]
fn ready_time_is_what_came_after_and_pre_emption() {
    let ready = folded(&["--metric", "ready", "--name", "a.exe"]);
    assert_eq!(
        ready,
        [
            "a.exe (40);0x2000;0x1000;0xffff800000000030 5000",
            "a.exe (40);0x2000;0x1200;0xffff800000000040 20000"
        ]
    );
}

#[test]
fn wall_time_has_samples_and_waits() {
    let mut wall = folded(&["--metric", "wall", "--name", "a.exe"]);
    wall.sort();
    assert_eq!(
        wall,
        [
            "a.exe (40);0x2000;0x1100;0xffff800000000000 1000",
            "a.exe (40);[blocked];0x2000;0x1000;0xffff800000000030 30000",
            "a.exe (40);[ready];0x2000;0x1000;0xffff800000000030 5000",
            "a.exe (40);[ready];0x2000;0x1200;0xffff800000000040 20000",
        ]
    );
}

#[test]
fn a_range_of_time_cuts_waits() {
    let part = folded(&["--metric", "blocked", "--name", "a.exe", "--from", "0.02", "--to", "0.03"]);
    assert_eq!(part, ["a.exe (40);0x2000;0x1000;0xffff800000000030 10000"]);
}

#[test]
fn the_tree_says_what_it_measures() {
    let (text, said) = run(&["convert", "--metric", "blocked", "--name", "a.exe", "--no-symbols"]);
    assert!(text.starts_with("30.0 ms blocked time: 1 wait of 1 thread\n"), "{text}");
    assert!(!text.contains("CPU"), "{text}");
    assert!(said.contains("1 kept (30.0 ms blocked time)"), "{said}");
    let (svg, _) = run(&["convert", "--metric", "blocked", "--name", "a.exe", "-f", "svg", "--no-symbols"]);
    assert!(svg.contains("<title>Blocked time: a.exe (40) in waits.etl</title>"), "{svg}");
    assert!(svg.contains(">1 wait, 30.0 ms in ") && !svg.contains("1 sample"), "{svg}");
}

#[test]
fn threads_add_up() {
    let (text, _) = run(&["threads", "--json", "-n", "0"]);
    let table: Value = serde_json::from_str(&text).unwrap();
    let threads = table["threads"].as_array().unwrap();
    let of = |tid: u64| threads.iter().find(|thread| thread["tid"] == tid).expect("a thread");
    for thread in threads {
        let number = |name: &str| thread[name].as_i64().unwrap();
        let states = ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"].map(number);
        assert_eq!(states.iter().sum::<i64>(), number("end_ns") - number("start_ns"), "{thread}");
        assert_eq!(number("wall_ns"), number("end_ns") - number("start_ns"), "{thread}");
    }
    let facts = |tid, names: &[&str]| names.iter().map(|name| of(tid)[name].clone()).collect::<Vec<_>>();
    let names = ["pid", "process", "running_ns", "ready_ns", "blocked_ns", "sampled_ns", "switches"];
    // It ran from 1 to 11, 46 to 61, and 81 to 101 ms.
    let of_41: Vec<Value> =
        serde_json::from_str(r#"[40,"a.exe",45000000,25000000,30000000,1000000,3]"#).unwrap();
    assert_eq!(facts(41, &names), of_41);
    // 52 ran from 31 to 101 ms: nobody made it ready after the begin, so it was that.
    assert_eq!(facts(52, &["running_ns", "ready_ns"]), [70_000_000, 30_000_000]);
    assert_eq!(facts(41, &["longest_wait_ns", "longest_wait_start_ns"]), [35_000_000, 11_000_000]);
    let (text, _) = run(&["threads", "--sort", "longest-wait", "-n", "1"]);
    assert!(text.lines().nth(3).unwrap().ends_with("a.exe (40) thread 41"), "{text}");
    let (csv, _) = run(&["threads", "--csv", "--tid", "41"]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let widths: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(widths, [15, 15], "{csv}");
    // All threads live as long: by their ids.
    let (text, _) = run(&["threads", "--sort", "wall", "--json"]);
    let table: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&table["threads"][0]["wall_ns"], &table["threads"][0]["tid"]),
        (&100_000_000.into(), &5.into())
    );
}

#[test]
fn the_worst_wait_has_its_stack_its_waker_and_what_that_did() {
    let (text, _) = run(&["waits", "--json", "--no-symbols", "--name", "a.exe"]);
    let worst: Value = serde_json::from_str(&text).unwrap();
    let [wait] = worst["waits"].as_array().unwrap().as_slice() else { panic!("{text}") };
    let expected: Value = serde_json::from_str(
        r#"{
            "pid": 40, "process": "a.exe", "tid": 41, "name": "",
            "start_ns": 11000000, "duration_ns": 35000000, "reason": "WrQueue",
            "stack": ["0xffff800000000030", "0x1000", "0x2000"],
            "ready_ns": 5000000,
            "readied_by": {
                "thread": {"pid": 50, "process": "b.exe", "tid": 52, "name": ""},
                "interrupt": false,
                "stack": ["0xffff800000000020", "0x9000"]
            },
            "chain": [
                {"pid": 50, "process": "b.exe", "tid": 52, "name": "", "state": "running",
                 "start_ns": 31000000, "end_ns": 41000000},
                {"pid": 50, "process": "b.exe", "tid": 52, "name": "", "state": "ready",
                 "start_ns": 11000000, "end_ns": 31000000}
            ],
            "chain_end": "filled",
            "cause": null
        }"#,
    )
    .unwrap();
    assert_eq!(*wait, expected);
    let (text, _) = run(&["waits", "--no-symbols", "--name", "a.exe"]);
    assert_eq!(
        text,
        "35.0 ms at 0.011 s, WrQueue, 5.0 ms of it ready: a.exe (40) thread 41\n\
         \x20 waited in 0xffff800000000030\n\
         \x20           0x1000\n\
         \x20           0x2000\n\
         \x20 readied by b.exe (50) thread 52\n\
         \x20 in 0xffff800000000020\n\
         \x20    0x9000\n\
         \x20 meanwhile, the last first\n\
         \x20   b.exe (50) thread 52 ran for 10.0 ms\n\
         \x20   b.exe (50) thread 52 was ready for 20.0 ms\n\n"
    );
}

#[test]
fn the_worst_waits_as_rows() {
    let (csv, _) = run(&["waits", "--csv", "--no-symbols", "--name", "a.exe"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines,
        [
            "pid,process,tid,name,start_ns,duration_ns,ready_ns,reason,readied_by_pid,readied_by_process,\
             readied_by_tid,readied_by_interrupt,function",
            "40,a.exe,41,,11000000,35000000,5000000,WrQueue,50,b.exe,52,false,0xffff800000000030",
        ]
    );
    let (_folder, path) = woken(|etl| etl.event(1, at(25), ready(41, true)));
    let output = etwprof(["waits", "--csv", "--no-symbols", "--tid", "41", &path]).success();
    let line = output.text().lines().nth(1).unwrap();
    assert_eq!(line, "40,a.exe,41,,10000000,30000000,15000000,WrQueue,,,,true,0xffff800000000000");
    let output = etwprof(["waits", "--csv", "--json", &path]);
    assert_eq!(output.code, 2, "{}", output.stderr);
}

#[test]
fn a_range_of_time_is_looked_at_alone() {
    // From 15 to 50 ms thread 41 is blocked until 41, ready until 46, and runs.
    let range = ["--from", "0.015", "--to", "0.05"];
    let (text, _) = run(&[&["threads", "--json", "--tid", "41"], &range[..]].concat());
    let table: Value = serde_json::from_str(&text).unwrap();
    let row = &table["threads"][0];
    let names = ["start_ns", "end_ns", "running_ns", "ready_ns", "blocked_ns", "switches"];
    let facts: Vec<i64> = names.iter().map(|name| row[name].as_i64().unwrap()).collect();
    assert_eq!(facts, [15_000_000, 50_000_000, 4_000_000, 5_000_000, 26_000_000, 1]);
    // A wait is whole, and in each range that has a part of it.
    for (range, waits) in [(["0.02", "0.03"], 1), (["0.047", "0.1"], 0), (["0", "0.011"], 0)] {
        let (text, _) = run(&["waits", "--json", "--tid", "41", "--from", range[0], "--to", range[1]]);
        let worst: Value = serde_json::from_str(&text).unwrap();
        let lengths: Vec<&Value> =
            worst["waits"].as_array().unwrap().iter().map(|wait| &wait["duration_ns"]).collect();
        assert_eq!(lengths, vec![35_000_000; waits], "{range:?}");
    }
    let (_folder, path) = recording();
    let output = etwprof(["threads", path.to_str().unwrap(), "--from", "5"]);
    assert!(output.code == 1 && output.stderr.contains("in this range"), "{}", output.stderr);
}

#[test]
fn a_sample_counts_on_one_side_of_a_moment() {
    // It was taken at 5 ms. The recording ends with a switch, and a sample at that moment.
    let etl = machine().event(0, at(1), CSwitch::new(0, 41)).event(0, at(5), Sample::new(0x1100, 41));
    let etl = etl.event(0, at(10), Sample::new(0x1100, 41)).event(0, at(10), CSwitch::new(41, 0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let path = path.display().to_string();
    let json = |args: &[&str]| -> Value {
        let output = etwprof([args, &["--json", "--tid", "41", &path]].concat()).success();
        serde_json::from_str(output.text()).unwrap()
    };
    let cases: [(&[&str], i64); 5] = [
        (&[], 2_000_000),
        (&["--to", "5ms"], 0),
        (&["--from", "5ms"], 2_000_000),
        (&["--from", "5ms", "--to", "10ms"], 1_000_000),
        (&["--to", "1s"], 2_000_000),
    ];
    for (range, sampled) in cases {
        let threads = json(&[&["threads"], range].concat());
        assert_eq!(threads["threads"][0]["sampled_ns"], sampled, "{range:?}: {threads}");
        let timeline = json(&[&["timeline"], range].concat());
        let rows = timeline["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "cpu");
        let cpu: i64 = rows.map(|row| row["total_ns"].as_i64().unwrap()).sum();
        assert_eq!(cpu, sampled, "{range:?}: {timeline}");
    }
}

/// Thread 41 waits in 0x1000 so many times for so many milliseconds, and runs for one between.
fn waiting(times: i64, each: i64) -> (TempDir, String) {
    let mut etl = machine().event(0, at(1), CSwitch::new(0, 41));
    let mut now = 2;
    for _ in 0..times {
        etl = etl.event(0, at(now), CSwitch::new(41, 0).reason(6, 5));
        now += each;
        etl = etl.event(0, at(now), ready(41, false));
        etl = stack(etl.event(0, at(now), CSwitch::new(0, 41)), now, (40, 41), &[K], &[0x1000, 0x2000]);
        now += 1;
    }
    let etl = etl.event(0, at(now), CSwitch::new(41, 0).reason(6, 5));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn strict_asks_for_no_samples_where_none_are_shown() {
    // No CPU samples, and the last wait has no stack.
    let (_folder, path) = waiting(1, 10);
    for command in ["threads", "waits", "timeline"] {
        etwprof([command, &path, "--strict"]).success();
    }
}

#[test]
fn diff_compares_waits() {
    let ((_a, many), (_b, longer)) = (waiting(200, 5), waiting(200, 8));
    let ((_c, one), (_d, another)) = (waiting(1, 1_000), waiting(1, 1_600));
    let compare = |before: &str, after: &str| -> Value {
        let args =
            ["diff", before, after, "--metric", "blocked", "--name", "a.exe", "--no-symbols", "--json"];
        serde_json::from_slice(&etwprof(args).success().stdout).unwrap()
    };
    // 200 waits that each became longer are no chance; one may be as long or longer the next time.
    let table = compare(&many, &longer);
    assert_eq!((&table["metric"], &table["before_ns"]), (&"blocked time".into(), &1_000_000_000.into()));
    let row = &table["rows"][0];
    assert_eq!((&row["delta_ns"], &row["significant"]), (&600_000_000.0.into(), &true.into()), "{table}");
    let table = compare(&one, &another);
    assert_eq!(table["rows"][0]["significant"], false, "{table}");
    // Saved trees are compared the same way, and never with those of another metric.
    let folder = tempfile::tempdir().unwrap();
    let save = |from: &str, name: &str, metric: &str| {
        let to = folder.path().join(name).display().to_string();
        etwprof([
            "convert",
            from,
            "--metric",
            metric,
            "--name",
            "a.exe",
            "--no-symbols",
            "-f",
            "json",
            "-o",
            &to,
        ])
        .success();
        to
    };
    let (before, after) = (save(&one, "a.json", "blocked"), save(&another, "b.json", "blocked"));
    let saved: Value =
        serde_json::from_slice(&etwprof(["diff", &before, &after, "--json"]).success().stdout).unwrap();
    assert_eq!(saved["rows"][0]["significant"], false, "{saved}");
    let output = etwprof(["diff", &before, &save(&one, "c.json", "wall")]);
    assert!(output.code == 2 && output.stderr.contains("--metric wall"), "{}", output.stderr);
    let output = etwprof(["diff", &before, &after, "--fail-if", "total: +5%"]);
    assert!(output.code == 3 && output.stderr.contains("more runs of each side"), "{}", output.stderr);
}

#[test]
fn a_timeline_shows_what_threads_did_and_when() {
    let (text, _) = run(&["timeline", "--json", "--tid", "41", "--slot", "20ms"]);
    let table: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&table["start_ns"], &table["slot_ns"]), (&1_000_000.into(), &20_000_000.into()));
    let rows: Vec<(String, Vec<i64>)> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!((&row["pid"], &row["tid"]), (&40.into(), &41.into()));
            let ms: Vec<i64> =
                row["values"].as_array().unwrap().iter().map(|ns| ns.as_i64().unwrap() / 1_000_000).collect();
            assert_eq!(row["total_ns"].as_i64().unwrap() / 1_000_000, ms.iter().sum::<i64>());
            (row["kind"].as_str().unwrap().to_owned(), ms)
        })
        .collect();
    // It runs from 1 to 11, blocks to 41, is ready to 46, runs to 61, is ready to 81, and runs to 101 ms.
    let expected = [
        ("cpu", vec![1, 0, 0, 0, 0]),
        ("running", vec![10, 0, 15, 0, 20]),
        ("ready", vec![0, 0, 5, 20, 0]),
        ("blocked", vec![10, 20, 0, 0, 0]),
    ];
    assert_eq!(rows, expected.map(|(kind, values)| (kind.to_owned(), values)));
    let (csv, _) = run(&["timeline", "--csv", "--tid", "41", "--slot", "50ms"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "pid,process,tid,name,kind,total_ns,0.001000,0.051000");
    assert_eq!(lines[2], "40,a.exe,41,,running,45000000,15000000,30000000");
    let (text, _) = run(&["timeline", "--slot", "20ms", "--tid", "41"]);
    assert!(text.starts_with("100.0 ms from 0.001 s on, in slots of 20.0 ms\n"), "{text}");
    assert!(text.contains("a.exe (40) thread 41  cpu               1.0  │▁    │\n"), "{text}");
    assert!(text.contains("                      running          45.0  │▄ ▆ █│\n"), "{text}");
    // All of a process's threads together.
    let (text, _) = run(&["timeline", "--by", "process", "--json", "--name", "a.exe", "--slot", "1s"]);
    let table: Value = serde_json::from_str(&text).unwrap();
    assert!(table["rows"].as_array().unwrap().iter().all(|row| row["tid"].is_null()), "{text}");
    let (_folder, path) = recording();
    for (slot, code) in [("0", 2), ("1us", 0)] {
        let output = etwprof(["timeline", path.to_str().unwrap(), "--slot", slot]);
        assert_eq!(output.code, code, "{}", output.stderr);
    }
    let output = etwprof(["timeline", path.to_str().unwrap(), "--name", "nobody"]);
    assert_eq!(output.code, 1);
}

#[test]
fn info_counts_context_switches() {
    let (text, _) = run(&["info", "--no-symbols"]);
    let line = "switches    7 context switches (`etwprof threads` and `waits` show who waited)";
    assert!(text.lines().any(|one| one == line), "{text}");
    let (text, _) = run(&["info", "--no-symbols", "--json", "--name", "b.exe"]);
    let info: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(info["context_switches"], 7);
    let output = etwprof(["info", "examples/demo.etl", "--no-symbols"]).success();
    assert!(!output.text().contains("context switch"), "{}", output.text());
}

#[test]
fn what_cannot_be_shown_says_why() {
    let demo = "examples/demo.etl";
    for args in [
        vec!["convert", demo, "--metric", "blocked"],
        vec!["threads", demo],
        vec!["waits", demo],
        vec!["top", demo, "--metric", "wall"],
    ] {
        let output = etwprof(&args);
        assert_eq!(output.code, 1, "{args:?}");
        assert!(output.stderr.contains("the recording has no context switches"), "{}", output.stderr);
    }
    for (args, why) in [
        (vec!["convert", demo, "--by-reason"], "--by-reason: only blocked time has reasons"),
        (vec!["convert", demo, "--with-wakers"], "--with-wakers: only waits have wakers"),
        (vec!["convert", demo, "--metric", "ready", "-f", "firefox", "-o", "-"], "shows CPU time only"),
    ] {
        let output = etwprof(&args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
    let (_folder, path) = recording();
    let output = etwprof(["threads", path.to_str().unwrap(), "--name", "nobody"]);
    assert_eq!(output.code, 1);
}

/// CPU time by switches and by samples are measured apart. A sample stands for a millisecond, so n samples are off by the
/// square root of n, and at the ends by one.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn switches_and_samples_of_a_real_recording_agree() {
    let path = data::packed("etl/xperf/slow-ppt.zip");
    let output = etwprof(["threads", path.to_str().unwrap(), "--json", "-n", "0"]).success();
    let table: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!(table["contradictions"], 0);
    let mut compared = 0;
    for thread in table["threads"].as_array().unwrap() {
        let ms = |name: &str| thread[name].as_i64().unwrap() as f64 / 1e6;
        let (running, sampled) = (ms("running_ns"), ms("sampled_ns"));
        if sampled < 50.0 {
            continue;
        }
        compared += 1;
        // Running time has the interrupts on the thread's back, which samples count apart.
        let off = running - sampled;
        assert!(off.abs() < 3.0 * sampled.sqrt() + 1.0, "{thread}");
    }
    assert!(compared >= 8, "{compared}");
}
