//! Counters beside the samples of a recording, at the command line.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::command::{Output, etwprof};
use crate::support::reading;
use crate::support::stacks::machine;
use crate::synth::START;
use crate::synth::counters::recorded;

const SECOND: i64 = 10_000_000;

/// Ten seconds: a sample of each of two programs in every tenth of a second, and each second their heaps and the processors.
fn recording() -> (TempDir, PathBuf) {
    let mut etl = machine();
    for tenth in 0..100 {
        let time = START + SECOND / 20 + tenth * SECOND / 10;
        etl = etl.sampled(0, time, 40, 41, &[0x1000 + tenth as u64, 0x2000]);
        etl = etl.sampled(1, time + 3, 50, 51, &[0x8000, 0x9000]);
    }
    for (second, heap) in (1..).zip([5.0, 5.0, 50.0, 70.0, 60.0, 5.0, 5.0, 5.0, 5.0]) {
        let time = START + second * SECOND;
        let value = |counter| ["System.Runtime", "", counter, "MB"];
        etl = etl.event(
            0,
            time,
            recorded(0, ["Processor", "_Total", "% Processor Time", "%"], 10.0 * second as f64),
        );
        etl = etl.event(0, time + 1, recorded(40, value("gc-heap-size"), heap));
        etl = etl.event(0, time + 2, recorded(50, value("gc-heap-size"), 1.0));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    (folder, path)
}

fn run(command: &str, args: &[&str]) -> Output {
    let (_folder, path) = recording();
    etwprof([&[command, path.to_str().unwrap()], args].concat())
}

#[test]
fn counters_shows_what_was_recorded() {
    let shown = run("counters", &[]).success();
    let rows: Vec<Vec<&str>> = shown.text().lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |name: &str| {
        rows.iter().find(|row| row.join(" ").contains(name)).unwrap_or_else(|| panic!("{rows:?}"))
    };
    // Last, mean, least, greatest.
    assert_eq!(row("Processor(_Total)")[..5], ["90.0", "50.0", "10.0", "90.0", "%"]);
    assert_eq!(row("System.Runtime(a.exe (40))")[..5], ["5.0", "23.3", "5.0", "70.0", "MB"]);
    let csv = run("counters", &[r"System.Runtime\gc-heap-size", "--csv"]).success();
    assert_eq!(csv.text().lines().count(), 1 + 18, "{}", csv.text());
    assert!(csv.text().contains(",System.Runtime,b.exe (50),gc-heap-size,1.0,MB,"), "{}", csv.text());
    let none = run("counters", &[r"Memory\x"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains(r"there are Processor(_Total)\% Processor Time, System.Runtime\gc-heap-size"),
        "{}",
        none.stderr
    );
}

#[test]
fn the_time_of_the_highest_values_is_chosen() {
    let kept = |args: &[&str]| {
        let top = run("top", &[args, &["--json", "--no-symbols"]].concat()).success();
        (serde_json::from_str::<Value>(top.text()).unwrap()["kept"].clone(), top.stderr)
    };
    // Each value stands for the second before it: 2 to 5.
    let (samples, said) = kept(&["--highest", r"System.Runtime\gc-heap-size=3s"]);
    assert_eq!(samples, json!(60));
    let line =
        r"System.Runtime(a.exe (40))\gc-heap-size was highest from 2.000 s to 5.000 s: 60.0 MB on average";
    assert!(said.contains(line), "{said}");
    let (same, _) = kept(&["--from", "2s", "--to", "5s"]);
    assert_eq!(samples, same);
    // All of it, where it is shorter.
    assert_eq!(kept(&["--highest", r"Processor(*)\% Processor Time"]).0, json!(180));
    for (args, reason) in [
        (["--highest", r"Memory\x"].as_slice(), "no such counter was recorded; there are Processor"),
        (&["--highest", "x"], "is no counter"),
        (&["--highest", r"A\b", "--from", "1"], "cannot be used with"),
    ] {
        let output = run("top", args);
        assert!(output.code == 2 && output.stderr.contains(reason), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn info_and_the_firefox_profiler_have_them() {
    let (folder, path) = recording();
    let info = reading::info(&path);
    assert_eq!(info["counters"].as_array().unwrap().len(), 3);
    assert_eq!(info["counters"][1]["pid"], 40);
    assert_eq!(info["counters"][1]["max"], 70.0);
    assert_eq!(info["counters"][0]["pid"], Value::Null);
    let out = folder.path().join("a.json.gz");
    etwprof(["convert", path.to_str().unwrap(), "--no-symbols", "-o", out.to_str().unwrap()]).success();
    let packed = std::fs::read(&out).unwrap();
    let profile: Value = serde_json::from_reader(flate2::read::GzDecoder::new(packed.as_slice())).unwrap();
    let heap = profile["counters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["pid"] == "40" && c["name"] == r"System.Runtime\gc-heap-size (MB)");
    let samples = &heap.unwrap()["samples"];
    assert_eq!(samples["length"], 9);
    // Differences; the first moment is a second after the first record.
    assert_eq!(samples["count"].to_string(), "[5,0,45,20,-10,-55,0,0,0]");
    assert_eq!(samples["time"][0].as_f64().unwrap().round(), 1000.0);
}

#[test]
fn trim_keeps_those_of_the_machine_and_of_kept_processes() {
    let (folder, path) = recording();
    let part = folder.path().join("part.etl");
    let trim = |args: &[&str]| {
        etwprof([&["trim", path.to_str().unwrap(), "-o", part.to_str().unwrap(), "-q"], args].concat())
            .success();
        let info = reading::info(&part);
        let of = |one: &Value| (one["pid"].clone(), one["values"].clone());
        info["counters"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let null = Value::Null;
    assert_eq!(trim(&[]), [(null.clone(), json!(9)), (json!(40), json!(9)), (json!(50), json!(9))]);
    assert_eq!(trim(&["--pid", "50"]), [(null.clone(), json!(9)), (json!(50), json!(9))]);
    assert_eq!(trim(&["--to", "2500ms", "--pid", "50"]), [(null, json!(2)), (json!(50), json!(2))]);
    // The instance may be a name of somebody.
    trim(&["--anonymize"]);
    let written = std::fs::read(&part).unwrap();
    let total: Vec<u8> = "_Total".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(!written.windows(total.len()).any(|bytes| bytes == total));
    assert_eq!(reading::info(&part)["counters"][1]["max"], 70.0);
}
