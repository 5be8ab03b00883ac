//! `etwprof counters` at the command line.

use std::path::PathBuf;

use etwprof::counters::Dump;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::{Output, etwprof};
use crate::synth::counters::{Block, Object, eight, instance, names};

/// Processor time of two processors: idle times in units of 100 ns, one second apart.
fn block(second: i64, idle: [u64; 2]) -> Vec<u8> {
    let value = |name, idle| instance(name, vec![eight(idle)]);
    let instances = Some(vec![value("0", idle[0]), value("_Total", idle[1])]);
    let object = Object { name: 238, counters: vec![(6, 0x2151_0500, 8)], instances, ..Default::default() };
    Block { time_100ns: second * 10_000_000, objects: vec![object], ..Default::default() }.bytes()
}

fn saved(blocks: &[Vec<u8>]) -> (TempDir, PathBuf) {
    let mut file = Vec::new();
    Dump::begin(&mut file, &names(&[(238, "Processor"), (6, "% Processor Time")])).unwrap();
    blocks.iter().for_each(|block| Dump::add(&mut file, block).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.counters");
    std::fs::write(&path, file).unwrap();
    (folder, path)
}

fn run(blocks: &[Vec<u8>], args: &[&str]) -> Output {
    let (_folder, path) = saved(blocks);
    etwprof([&["counters", path.to_str().unwrap()], args].concat())
}

const TIME: &str = r"Processor(_Total)\% Processor Time";

#[test]
fn without_a_counter_it_lists_what_is_there() {
    let listed = run(&[block(0, [0, 0])], &[]).success();
    assert!(listed.text().contains("Processor: % Processor Time"), "{}", listed.text());
    let json: Value =
        serde_json::from_slice(&run(&[block(0, [0, 0])], &["--json"]).success().stdout).unwrap();
    assert_eq!(json["objects"][0]["instances"], 2);
    let csv = run(&[block(0, [0, 0])], &["--csv"]).success();
    assert_eq!(csv.text(), "object,index,instances,counter\nProcessor,238,2,% Processor Time\n");
}

#[test]
fn two_samples_give_a_rate_in_whatever_order_they_are_saved() {
    // Idle for three quarters of a second.
    let blocks = [block(1, [0, 8_500_000]), block(0, [0, 1_000_000])];
    let shown = run(&blocks, &[TIME]).success();
    let line = shown.text().lines().last().unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>()[..2], ["25.0", "%"], "{line}");
    let csv = run(&blocks, &[TIME, "--csv"]).success();
    let row = csv.text().lines().nth(1).unwrap();
    assert_eq!(row, "2026-11-23 09:00:14.250,1.0,Processor,_Total,% Processor Time,25.0,%,");
}

#[test]
fn several_samples_have_mean_and_extremes() {
    let blocks = [block(0, [0, 0]), block(1, [0, 2_500_000]), block(2, [0, 10_000_000])];
    let shown = run(&blocks, &[TIME]).success();
    let line = shown.text().lines().last().unwrap();
    // 75 % in the first second, 25 % in the next.
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>()[..5],
        ["25.0", "50.0", "25.0", "75.0", "%"],
        "{line}"
    );
    let json: Value = serde_json::from_slice(&run(&blocks, &[TIME, "--json"]).success().stdout).unwrap();
    assert_eq!(json["moments"][0]["counters"][0]["value"], 75.0);
    assert_eq!(json["moments"].as_array().unwrap().len(), 2);
}

#[test]
fn one_sample_says_why_there_is_no_rate() {
    let shown = run(&[block(0, [0, 0])], &[TIME]).success();
    assert!(shown.text().contains("[needs two samples]"), "{}", shown.text());
}

#[test]
fn wrong_lines_say_what_is_wrong() {
    let one = || vec![block(0, [0, 0])];
    for (path, reason) in [
        (r"Disk(*)\x", "no object \"Disk\""),
        (r"Processor(*)\x", "Processor has no counter \"x\""),
        (r"Processor(7)\% Processor Time", "Processor has no instance \"7\""),
        (r"Processor\% Processor Time", "Processor has instances"),
        ("other.counters", "there is no such file"),
    ] {
        let output = run(&one(), &[path]);
        assert_eq!(output.code, 2, "{path}: {}", output.stderr);
        assert!(output.stderr.contains(reason), "{path}: {}", output.stderr);
    }
    let none = etwprof(["counters", TIME, "--count", "1"]);
    // Windows has counters of its own, and Wine none of them.
    let reason = if cfg!(windows) { "no object \"Processor\"" } else { "name a file of saved counters" };
    assert!(
        cfg!(windows) && none.code == 0 || none.code == 2 && none.stderr.contains(reason),
        "{}",
        none.stderr
    );
    if !cfg!(windows) {
        let framework = etwprof(["counters", r".NET CLR Memory\*", "--pid", "1"]);
        let reason = ".NET CLR Memory: .NET Framework counts that, on Windows only";
        assert!(framework.code == 2 && framework.stderr.contains(reason), "{}", framework.stderr);
    }
    let other = etwprof(["counters", "Cargo.toml"]);
    assert!(other.code == 1 && other.stderr.contains("no performance counters"), "{}", other.stderr);
}
