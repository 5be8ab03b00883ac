//! `etwprof diff`, as a user and a build run it.

mod saved;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::{Output, etwprof};
use crate::synth::kernel::perfinfo;
use crate::synth::{Etl, Process, START, Thread, clr};

const MS: i64 = 10_000;

fn demo() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl").display().to_string()
}

/// A folder with files of these names.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

fn diff(args: &[&str]) -> Output {
    etwprof(["diff", "--no-symbols"].iter().chain(args))
}

fn json(args: &[&str]) -> Value {
    let output = diff(&[args, &["--json", "-n", "0"]].concat()).success();
    serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else")
}

/// A call tree as `convert -f json` writes it: `Main` calls `Submit`, which calls `Orders.Load`; and so on, each with so many
/// samples of a millisecond.
fn tree(load: i64, part: i64) -> String {
    let node = |parent: &str, name: &str, samples: i64| {
        let ns = samples / part * 1_000_000;
        format!(
            r#"{{"parent":{parent},"name":"app!{name}","key":"app!{name}","module":"app","category":"native","exclusive":{},"exclusive_ns":{ns}}}"#,
            samples / part
        )
    };
    let nodes = [
        node("null", "Main", 80_000),
        node("0", "Submit", 0),
        node("1", "Orders.Load", load),
        node("0", "Save", 10_000),
    ];
    format!(r#"{{"kept":0,"seconds":10.0,"nodes":[{}]}}"#, nodes.join(","))
}

/// A build of a program: where its code is, the ids of this run, and how often each method runs.
fn build(code: u64, pid: u32, closure: u32, samples: [i64; 3]) -> Vec<u8> {
    sampled_every(MS, code, pid, closure, samples)
}

/// The same, sampled at this interval in 100 ns.
fn sampled_every(interval: i64, code: u64, pid: u32, closure: u32, samples: [i64; 3]) -> Vec<u8> {
    let (load, save, local) = ("Load", "Save", format!("<Main>b__{closure}_1"));
    let types = ["App.Orders", "App.Orders", &format!("App.Orders+<>c__DisplayClass{closure}_0")];
    let methods = [load, save, &local];
    let start = |number: usize| code + 0x1000 * number as u64;
    let mut etl = Etl::new()
        .event(0, START, perfinfo::collection_start(interval as u32))
        .event(0, START + 1, Process::dc_start(pid, "app.exe"))
        .event(0, START + 1, Thread::dc_start(pid, pid + 1));
    for (number, (of, method)) in types.into_iter().zip(methods).enumerate() {
        let name = [of, method, "void (int32)"];
        etl =
            etl.event(0, START + 2, clr::Method::load(pid, start(number), 0x800, name).id(number as u64 + 1));
    }
    let mut time = START + MS;
    for (number, samples) in samples.into_iter().enumerate() {
        for _ in 0..samples {
            etl =
                etl.sampled(0, time, pid, pid + 1, &[start(number) + 0x10 + code % 0x100, start(0) + 0x700]);
            time += interval;
        }
    }
    etl.finish()
}

#[test]
fn a_recording_beside_itself_has_not_changed() {
    let output = diff(&[&demo(), &demo(), "-q"]).success();
    let lines: Vec<&str> = output.text().lines().skip(2).collect();
    assert_eq!(lines, ["total:  +0.0%", "", "no function changed"]);
    let json = json(&[&demo(), &demo()]);
    assert_eq!((json["scale"].as_f64(), json["significant"].as_bool()), (Some(1.0), Some(false)));
    assert!(json["before"].as_i64() > Some(1_000) && json["before"] == json["after"]);
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() > 30 && rows.iter().all(|row| row["delta"] == 0.0 && row["significant"] == false));
}

#[test]
fn a_saved_tree_is_its_recording() {
    let files = Files::new();
    let saved = files.put("demo.json", "");
    etwprof(["convert", &demo(), "--no-symbols", "-o", &saved]).success();
    let rows = json(&[&saved, &demo()]);
    assert!(rows["rows"].as_array().unwrap().iter().all(|row| row["delta"] == 0.0));
    assert_eq!(rows["before_ns"], rows["after_ns"]);
    let text = diff(&[&saved, &demo(), "--scale", "time", "-q"]).success();
    assert!(text.text().contains("total:  +0.0%\n"), "{}", text.text());
}

/// Other addresses, other ids, another number in the name of a closure.
#[test]
fn methods_meet_across_builds() {
    let files = Files::new();
    let before = files.put("before.etl", build(0x7ff8_1000_0000, 40, 3, [500, 300, 200]));
    let after = files.put("after.etl", build(0x7ff9_8765_4000, 96, 12, [500, 300, 400]));
    let json = json(&[&before, &after]);
    let rows: Vec<(&str, i64, i64, f64, bool)> = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |field: &str| row[field].as_i64().unwrap();
            let (delta, significant) =
                (row["delta"].as_f64().unwrap(), row["significant"].as_bool().unwrap());
            (row["name"].as_str().unwrap(), number("before"), number("after"), delta, significant)
        })
        .collect();
    let [closure, one, other] = rows.as_slice() else { panic!("{rows:?}") };
    assert!(closure.0.contains("__DisplayClass12_0") || closure.0.contains("Main"), "{closure:?}");
    assert_eq!((closure.1, closure.2, closure.3, closure.4), (200, 400, 200.0, true));
    let mut rest = [(one.1, one.2), (other.1, other.2)];
    rest.sort_unstable();
    assert_eq!(rest, [(300, 300), (500, 500)]);
    let text = diff(&[&before, &after, "-q"]).success();
    assert!(text.text().contains("+200.0  +100.0%      200.0     400.0  "), "{}", text.text());
}

/// As a build would use it, by recordings: a steady program passes, and one that got slower by 10 % does not.
#[test]
fn recordings_pass_or_fail_a_gate() {
    let files = Files::new();
    let main = files.put("main.etl", build(0x7ff8_1000_0000, 40, 3, [9_000, 5_000, 2_000]));
    let steady = files.put("steady.etl", build(0x7ff9_8765_4000, 96, 12, [9_050, 4_940, 2_030]));
    let slower = files.put("slower.etl", build(0x7ff9_8765_4000, 96, 12, [9_900, 5_000, 2_000]));
    let few = files.put("few.etl", build(0x7ff9_8765_4000, 96, 12, [905, 494, 203]));
    let gate = |after: &str, more: &[&str]| {
        diff(&[&[main.as_str(), after, "-q", "--fail-if", "*.Load: +5%"], more].concat())
    };
    let passed = gate(&steady, &[]);
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    assert!(
        passed.text().contains("no function changed by more than chance explains\n"),
        "{}",
        passed.text()
    );
    // All stacks begin with `Load`, so that all samples are below it.
    let failed = gate(&slower, &["--fail-if", "total: +5%", "--tree"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("--fail-if 'total: +5%': +5.6%: 16,000.0 ms to 16,900.0 ms"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.contains("; grew: ") && failed.stderr.contains("Load +900.0 ms; called by: "));
    assert!(failed.text().contains("   +900.0  +10.0%    9,000.0   9,900.0  "), "{}", failed.text());
    let undecided = gate(&few, &["--scale", "time"]);
    assert_eq!(undecided.code, 3, "{}", undecided.stderr);
    assert!(undecided.stderr.contains("too few samples to tell +5%"), "{}", undecided.stderr);
}

/// The same program, with four times as many samples of a quarter of the time.
#[test]
fn another_interval_is_no_change() {
    let files = Files::new();
    let coarse = files.put("coarse.etl", build(0x7ff8_1000_0000, 40, 3, [500, 300, 200]));
    let fine = sampled_every(MS / 4, 0x7ff8_1000_0000, 40, 3, [2_000, 1_200, 800]);
    let fine = files.put("fine.etl", fine);
    let output = diff(&[&coarse, &fine, "-q"]).success();
    let expected = "before: 1,000 samples, 1,000.0 ms\nafter:  4,000 samples, 1,000.0 ms\ntotal:  +0.0%\n";
    assert!(output.text().starts_with(expected), "{}", output.text());
    let json = json(&[&coarse, &fine]);
    assert_eq!((json["scale"].as_f64(), json["scale_ns"].as_f64()), (Some(4.0), Some(1.0)));
    assert!(json["rows"].as_array().unwrap().iter().all(|row| row["delta"] == 0.0 && row["delta_ns"] == 0.0));
}

#[test]
fn a_build_is_refused_for_a_reason() {
    let files = Files::new();
    let main = files.put("main.json", tree(20_000, 1));
    let same = files.put("same.json", tree(20_000, 1));
    let slower = files.put("slower.json", tree(22_000, 1));
    let few = files.put("few.json", tree(20_000, 10));
    let gate = ["--fail-if", "Orders.*: +5%"];
    let passed = diff(&[&[main.as_str(), &same], &gate[..]].concat());
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    assert!(
        passed.stderr.contains("--fail-if 'Orders.*: +5%': +0.0%: 20,000.0 ms to 20,000.0 ms"),
        "{}",
        passed.stderr
    );
    let failed = diff(&[&[main.as_str(), &slower], &gate[..]].concat());
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("+10.0%: 20,000.0 ms to 22,000.0 ms")
            && failed.stderr.contains("grew: app!Orders.Load +2,000.0 ms; called by: app!Submit +2,000.0 ms"),
        "{}",
        failed.stderr
    );
    let undecided = diff(&[&[main.as_str(), &few], &gate[..], &["--scale", "samples"]].concat());
    assert_eq!(undecided.code, 3, "{}", undecided.stderr);
    assert!(
        undecided.stderr.contains("too few samples to tell +5%: 2,000 on the smaller side"),
        "{}",
        undecided.stderr
    );
    let unknown = diff(&[&main, &same, "--fail-if", "Nothing: +5%"]);
    assert_eq!(
        (unknown.code, unknown.stderr.contains("no function matches")),
        (3, true),
        "{}",
        unknown.stderr
    );
    let gone = files.put("gone.json", tree(20_000, 1).replace("Orders.Load", "?"));
    let lost = diff(&[&[main.as_str(), &gone], &gate[..]].concat());
    assert_eq!(
        (lost.code, lost.stderr.contains("the second side has none of it")),
        (3, true),
        "{}",
        lost.stderr
    );
    let empty = files.put("empty.json", r#"{"nodes":[]}"#);
    assert_ne!(diff(&[&main, &empty, "--fail-if", "total: +2%"]).code, 0);
    let equal = diff(&[&main, &slower, "--scale", "samples", "--fail-if", "total: +2%"]);
    assert_eq!(equal.code, 2, "{}", equal.stderr);
    let wrong = diff(&[&main, &same, "--fail-if", "Orders: 5%"]);
    assert_eq!((wrong.code, wrong.stderr.contains("expected FUNCTION: +N%")), (2, true), "{}", wrong.stderr);
    // The table is there in any case, and the reason is in every form.
    assert!(failed.text().contains("app!Orders.Load"), "{}", failed.text());
    let markdown = diff(&[&[main.as_str(), &slower, "-f", "markdown"], &gate[..]].concat());
    assert!(
        markdown.text().starts_with("### CPU time: 1 of 1 conditions do not hold\n"),
        "{}",
        markdown.text()
    );
    assert!(markdown.text().contains("| `Orders.*: +5%` | failed | `+10.0%"), "{}", markdown.text());
    let json = diff(&[&[main.as_str(), &slower, "--json"], &gate[..]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (json["conditions"][0]["verdict"].as_str(), json["rows"][0]["delta"].as_f64()),
        (Some("failed"), Some(2_000.0))
    );
}

#[test]
fn several_runs_of_each_side() {
    let files = Files::new();
    let runs = [19_000, 20_000, 21_000].map(|load| files.put(&format!("{load}.json"), tree(load, 1)));
    let sides = ["--before", &runs[0], "--before", &runs[1], "--after", &runs[1], "--after", &runs[2]];
    let json = json(&sides);
    assert_eq!((json["before_runs"].as_u64(), json["after_runs"].as_u64()), (Some(2), Some(2)));
    let load = json["rows"].as_array().unwrap().iter().find(|row| row["name"] == "app!Orders.Load").unwrap();
    assert_eq!((load["before"].as_i64(), load["after"].as_i64()), (Some(39_000), Some(41_000)));
    assert_eq!(load["significant"], false, "runs of one side differ as much");
    let alone = diff(&["--before", &runs[0]]);
    assert_eq!(alone.code, 2, "{}", alone.stderr);
}

/// What grew is red, what shrank is blue, and what is gone is not there.
#[test]
fn a_differential_flame_graph() {
    let files = Files::new();
    let (before, after) = (files.put("a.json", tree(9_000, 1)), files.put("b.json", tree(18_000, 1)));
    let svg = files.0.path().join("diff.svg");
    diff(&[&before, &after, "-q", "-o", &svg.display().to_string()]).success();
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains(">a.json → b.json<"), "{drawn}");
    let box_of =
        |name: &str| drawn.split("<g>").find(|part| part.contains(name)).unwrap_or_default().to_owned();
    let load = box_of("<title>app!Orders.Load (");
    assert!(load.contains("18,000,000 µs") && load.contains("+8.33%") && load.contains("rgb(255,"), "{load}");
    let save = box_of("<title>app!Save (");
    assert!(save.contains("10,000,000 µs") && save.contains("0.00%"), "{save}");
    let refused = diff(&[&before, &after, "-o", &before]);
    assert_eq!((refused.code, refused.stderr.contains("would overwrite")), (2, true), "{}", refused.stderr);
}

#[test]
fn what_is_no_tree_is_refused() {
    let files = Files::new();
    for (content, reason) in [
        ("{}", "not a call tree"),
        ("{\"nodes\":[{\"parent\":0}]}", "not a call tree"),
        (
            &tree(1, 1).replace("\"parent\":null", "\"parent\":3"),
            "node 0 of the call tree stands below node 3",
        ),
        ("{\"profile\":1}", "not a call tree"),
        (&tree(1, 1).replace("80000", "-8"), "node 0 of the call tree has -8 samples"),
        (
            &tree(1, 1).replace("80000,", "9223372036854775807,"),
            "node 0 of the call tree has 9223372036854775807",
        ),
    ] {
        let file = files.put("x.json", content);
        let output = diff(&[&file, &demo()]);
        assert_eq!((output.code, output.stderr.contains(reason)), (1, true), "{}", output.stderr);
    }
    let missing = diff(&["no-such.etl", &demo()]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
}

/// Names come from files, and may hold anything.
#[test]
fn hostile_names_stay_in_their_cells() {
    let files = Files::new();
    let hostile = tree(9_000, 1).replace("Orders.Load", "a|b`c\\u001b[31m<img>\\n=1+1");
    let (before, after) = (files.put("a.json", tree(9_000, 1)), files.put("b.json", hostile));
    for form in ["text", "markdown", "csv", "json"] {
        let output = diff(&[&before, &after, "-f", form]).success();
        let text = output.text();
        assert!(!text.contains('\u{1b}'), "{form}: {text}");
    }
    let output = diff(&[&before, &after, "-f", "markdown"]).success();
    assert!(output.text().contains("`app!a\\|b'c?[31m<img>?=1+1` |\n"), "{}", output.text());
}
