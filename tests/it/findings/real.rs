//! What the real recordings show, and the demo. docs/findings.md says why each is there.

use serde_json::Value;

use crate::support::command::etwprof;
use crate::support::{data, reading};

fn findings(file: &std::path::Path) -> Value {
    reading::json(["findings", "--json", "--offline", "-q", file.to_str().unwrap()])
}

fn ids(findings: &Value) -> Vec<&str> {
    findings["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

fn of<'f>(findings: &'f Value, id: &str) -> &'f Value {
    findings["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).unwrap()
}

/// The number of a fact of a finding.
fn number(finding: &Value, about: &str, name: &str) -> f64 {
    let fact = finding["evidence"].as_array().unwrap().iter().find(|fact| fact["about"] == about).unwrap();
    fact["numbers"][name].as_f64().unwrap()
}

/// The samples with a function in their stacks, a process above them and none of these modules below, counted in folded
/// stacks.
fn folded(file: &std::path::Path, process: &str, function: &str, without: &[&str]) -> u64 {
    let args = ["convert", "-f", "folded", "-o", "-", "--offline", "-q", file.to_str().unwrap()];
    let output = etwprof(args).success();
    let is_meant = |line: &&str| {
        let below = line.rsplit_once(function).map(|(_, below)| below);
        line.starts_with(process)
            && below.is_some_and(|below| !without.iter().any(|module| below.contains(module)))
    };
    let lines = output.text().lines().filter(is_meant);
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn of_net_4_5_2() {
    let file = data::file("etl/perfview/net.4.5.2.x64.etl");
    let found = findings(&file);
    assert_eq!(ids(&found), ["one-thread", "datetime-now", "missing-symbols"]);
    assert_eq!(found["quality"], "usable");
    let now = of(&found, "datetime-now");
    let samples = folded(&file, "Test.x64.exe", ";mscorlib!System.DateTime.Now.get", &[]);
    assert!(samples > 4_000);
    assert_eq!(number(now, "CPU", "samples") as u64, samples);
    assert_eq!(number(now, "CPU", "ns") as u64, samples * 1_000_000);
    assert_eq!(now["program"], "Test.x64.exe");
    let callers = &now["evidence"].as_array().unwrap()[2];
    assert_eq!(callers["rows"][0]["name"], "Test.x64!Test.Program.Main");
    let thread = of(&found, "one-thread");
    assert_eq!(number(thread, "thread", "pid"), 3676.0);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn of_2016() {
    let file = data::file("etl/perfview/PerfViewData.etl");
    let found = findings(&file);
    assert_eq!(
        ids(&found),
        ["missing-symbols", "one-thread", "broken-stacks", "jit", "no-stacks", "induced-gc"]
    );
    assert_eq!(found["quality"], "poor");
    // Counted by an independent reader: 950 of generation 0, 100 that the program asked for.
    let gc = of(&found, "induced-gc");
    assert_eq!(number(gc, "collections", "collections"), 1_050.0);
    assert!(gc["evidence"][0]["text"].as_str().unwrap().contains("100 for GC.Collect"), "{gc}");
    let jit = of(&found, "jit");
    assert_eq!(jit["program"], "PerfView.exe (2 processes)");
    // PerfView is asked for assemblies while its methods are compiled; that is no compilation.
    let own = [";PerfView!", ";Microsoft.Diagnostics."];
    assert_eq!(number(jit, "CPU", "samples") as u64, folded(&file, "PerfView.exe", ";clrjit!", &own));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn of_slow_ppt() {
    let found = findings(&data::file("etl/xperf/slow-ppt.etl"));
    assert_eq!(ids(&found), ["missing-symbols"]);
    assert_eq!(found["quality"], "poor");
}

#[test]
fn of_the_demo() {
    let found = findings(std::path::Path::new("examples/demo.etl"));
    assert_eq!(ids(&found), ["lock-spinning"]);
    assert_eq!(found["quality"], "good");
    assert_eq!(found["reasons"], serde_json::json!([]));
}

#[test]
fn info_has_them_too() {
    let info = reading::json(["info", "--json", "--offline", "-q", "examples/demo.etl"]);
    assert_eq!(info["quality"], "good");
    assert_eq!(ids(&info), ["lock-spinning"]);
}
