//! What the commands print, on recordings whose samples are counted by hand.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::in_project;
use crate::support::command::{Output, etwprof};
use crate::support::stacks::machine;
use crate::synth::{Image, START};

const CODE: u64 = 0x7ff6_0000_0000;

/// Unnamed functions of a module `f`, each its own address: `f!0x100` and so on. Stacks are given from the leaf on.
fn written(stacks: &[(u32, &[u64])]) -> (TempDir, PathBuf) {
    let mut etl = machine().event(0, START + 2, Image::dc_start(40, CODE, 0x10000, r"C:\x\f.dll"));
    for (number, (tid, stack)) in (0i64..).zip(stacks) {
        let frames: Vec<u64> = stack.iter().map(|frame| CODE + frame).collect();
        etl = etl.sampled(0, START + 10 * (1 + number), 40, *tid, &frames);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::write(&path, etl.finish()).unwrap();
    (folder, path)
}

const MAIN: u64 = 0x100;
const F: u64 = 0x200;
const G: u64 = 0x300;

fn recursion() -> (TempDir, PathBuf) {
    written(&[
        // main calls f, which calls itself twice: three frames of one function.
        (41, &[F, F, F, MAIN]),
        // f calls g, which calls f again.
        (41, &[F, G, F, MAIN]),
        (42, &[G, F, MAIN]),
        (42, &[MAIN]),
    ])
}

fn run(verb: &str, path: &Path, args: &[&str]) -> Output {
    let path = path.to_str().unwrap();
    etwprof([&[verb, path], args, &["--addresses", "--no-symbols", "-q"]].concat())
}

fn rows(verb: &str, path: &Path, args: &[&str]) -> (Value, Vec<(String, i64)>) {
    let output = run(verb, path, &[args, &["--json"]].concat()).success();
    let json: Value = serde_json::from_str(output.text()).unwrap();
    let row = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["samples"].as_i64().unwrap());
    let rows = json["rows"].as_array().unwrap().iter().map(row).collect();
    (json, rows)
}

fn pairs(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(name, samples)| ((*name).to_owned(), *samples)).collect()
}

#[test]
fn a_function_that_calls_itself_is_its_own_caller_and_counts_once() {
    let (_folder, path) = recursion();
    let (json, callers) = rows("callers", &path, &["f!0x200"]);
    assert_eq!(callers, pairs(&[("f!0x100", 3), ("f!0x200", 1), ("f!0x300", 1)]));
    assert_eq!((&json["inclusive"], &json["exclusive"]), (&json!(3), &json!(2)));
    assert_eq!(json["functions"], json!(["f!0x200"]));
    assert_eq!(json["rows"][0]["module"], "f");
    let (_, callees) = rows("callees", &path, &["f!0x200"]);
    assert_eq!(callees, pairs(&[("f!0x300", 2), ("f!0x200", 1)]));
}

#[test]
fn a_process_or_a_thread_is_the_caller_of_the_first_frame() {
    let (_folder, path) = recursion();
    let (_, callers) = rows("callers", &path, &["f!0x100"]);
    assert_eq!(callers, pairs(&[("a.exe (40)", 4)]));
    let (_, callers) = rows("callers", &path, &["f!0x100", "--threads"]);
    assert_eq!(callers, pairs(&[("thread 41", 2), ("thread 42", 2)]));
    let (json, callees) = rows("callees", &path, &["a.exe (40)"]);
    assert_eq!(callees, pairs(&[("f!0x100", 4)]));
    assert_eq!(json["exclusive"], 0);
}

#[test]
fn functions_that_match_together_count_together() {
    let (_folder, path) = recursion();
    for name in ["f!0x[23]00", "*x?00", "/^f!0x[23]00$/"] {
        let output = run("callers", &path, &[name, "--json"]);
        let Ok(json) = serde_json::from_slice::<Value>(&output.stdout) else {
            // Brackets mean something in regular expressions only.
            assert!(name.starts_with("f!") && output.code == 1, "{name}: {}", output.stderr);
            continue;
        };
        assert_eq!(json["function"], name);
        if name.starts_with('/') {
            assert_eq!(json["functions"], json!(["f!0x200", "f!0x300"]));
            assert_eq!((&json["inclusive"], &json["exclusive"]), (&json!(3), &json!(3)));
            let row =
                |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["samples"].as_i64().unwrap());
            let rows: Vec<_> = json["rows"].as_array().unwrap().iter().map(row).collect();
            // g is called by f in two stacks; f by main in three, by itself in one and by g in one.
            assert_eq!(rows, pairs(&[("f!0x100", 3), ("f!0x200", 3), ("f!0x300", 1)]));
        } else {
            assert_eq!(json["functions"], json!(["f!0x100", "f!0x200", "f!0x300"]));
            assert_eq!(json["inclusive"], 4);
        }
    }
    let text = run("callers", &path, &["/00$/"]).success();
    assert!(text.text().starts_with("callers of 3 functions: 4 samples"), "{}", text.text());
    assert!(text.text().contains("\n  f!0x300\n"), "{}", text.text());
}

#[test]
fn a_name_that_is_nowhere_lists_what_there_is() {
    let (_folder, path) = recursion();
    for verb in ["callers", "callees", "lines"] {
        let output = run(verb, &path, &["nothing"]);
        assert_eq!((output.code, output.stdout.len()), (1, 0), "{}", output.stderr);
        assert!(
            output.stderr.contains("no function matches nothing; the hottest are f!0x200"),
            "{}",
            output.stderr
        );
        let output = run(verb, &path, &["F!0x"]);
        assert!(output.stderr.contains("did you mean f!0x100, f!0x200, f!0x300?"), "{}", output.stderr);
        let output = run(verb, &path, &["/(/"]);
        assert_eq!(output.code, 2, "{}", output.stderr);
    }
}

#[test]
fn rows_are_sorted_by_the_count_and_then_by_name() {
    let (_folder, path) = recursion();
    let names = |args: &[&str]| {
        let output = run("top", &path, &[args, &["--csv"]].concat()).success();
        let lines = output.text().lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["f!0x200", "f!0x100", "f!0x300"]);
    assert_eq!(names(&["--sort", "inclusive"]), ["f!0x100", "f!0x200", "f!0x300"]);
    assert_eq!(names(&["--by", "module"]), ["f"]);
    assert_eq!(names(&["--by", "process"]), ["a.exe (40)"]);
    assert_eq!(names(&["--by", "thread"]), ["a.exe (40) thread 41", "a.exe (40) thread 42"]);
    assert_eq!(names(&["--by", "line"]), ["[no line]"]);
    assert_eq!(names(&["-n", "1"]), ["f!0x200"]);
}

#[test]
fn what_was_left_out_is_counted() {
    let (_folder, path) = recursion();
    let output = run("top", &path, &["-n", "1"]).success();
    assert!(output.text().ends_with("… 2 more rows (-n 0 shows all)\n"), "{}", output.text());
    let output = run("top", &path, &["-n", "2", "--json"]).success();
    let json: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!((&json["left_out"], json["rows"].as_array().unwrap().len()), (&json!(1), 2));
    let output = run("top", &path, &["-n", "0"]).success();
    assert!(!output.text().contains('…'), "{}", output.text());
}

#[test]
fn times_are_nanoseconds() {
    let (_folder, path) = recursion();
    let output = run("top", &path, &["--json", "--by", "process"]).success();
    let json: Value = serde_json::from_str(output.text()).unwrap();
    // A sample stands for 1 ms where the recording does not say otherwise.
    assert_eq!(json["rows"][0]["inclusive"], 4);
    assert_eq!(json["rows"][0]["inclusive_ns"], 4_000_000);
    assert_eq!(
        (&json["kept"], &json["by"], &json["sort"]),
        (&json!(4), &json!("process"), &json!("exclusive"))
    );
}

#[test]
fn a_plain_name_is_found_behind_types_and_namespaces() {
    let name = |args: &[&str]| {
        let output =
            in_project(&[&["callers", "examples/demo.etl"], args, &["--json", "--offline", "-q"]].concat());
        let json: Value = serde_json::from_str(output.success().text()).unwrap();
        json["functions"].clone()
    };
    let encode = json!(["Orders.Core!Orders.Journal.TradeCodec.Encode"]);
    for written in [
        "Orders.Core!Orders.Journal.TradeCodec.Encode",
        "Orders.Journal.TradeCodec.Encode",
        "TradeCodec.Encode",
        "*TradeCodec.Enc*",
        "/Codec.Encode$/",
    ] {
        assert_eq!(name(&[written]), encode, "{written}");
    }
    assert_eq!(name(&["interpolate"]), json!(["pricing!Surface::interpolate"]));
}

#[test]
fn the_endings_of_files_pick_json_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["json", "csv"] {
        let path = folder.path().join(format!("tree.{format}"));
        let base = ["convert", "examples/demo.etl", "--offline", "-q"];
        in_project(&[&base[..], &["-o", path.to_str().unwrap()]].concat()).success();
        let direct = in_project(&[&base[..], &["-f", format]].concat()).success();
        assert_eq!(fs::read(&path).unwrap(), direct.stdout);
    }
}

/// Whatever shapes the stacks: a table is made of what the call tree shows.
#[test]
fn the_sums_hold_in_every_shape() {
    for shape in [
        &["--threads"][..],
        &["--group-by", "none"],
        &["--group-by", "module", "--invert"],
        &["--no-kernel", "--fold-recursion"],
        &["--just-my-code"],
        &["--focus", "RtlCopyMemory"],
        &["--from-function", "*OrderBook.Match"],
        &["--group-pats", "[group modules]", "--fold-percent", "5"],
        &["--exc-pats", "ntoskrnl"],
    ] {
        for by in ["function", "module", "process", "thread", "category", "line"] {
            let base = ["top", "examples/demo.etl", "--offline", "-q", "--json", "-n", "0", "--by", by];
            let output = in_project(&[&base[..], shape].concat()).success();
            let json: Value = serde_json::from_str(output.text()).unwrap();
            let rows = json["rows"].as_array().unwrap();
            let sum: i64 = rows.iter().map(|row| row["exclusive"].as_i64().unwrap()).sum();
            assert_eq!(Some(sum), json["kept"].as_i64(), "{shape:?} by {by}");
            assert!(sum > 0, "{shape:?} by {by}");
        }
    }
}
