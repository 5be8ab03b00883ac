//! `--strict`, `--quiet` and the order of what is printed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::{Output, etwprof};
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo::mark;
use crate::synth::{Etl, Image, Process, START};

const A: u64 = 0x40_0000;
const NTDLL: u64 = 0x7ff8_0000_0000;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl")
}

/// A recording of this many whole and so many broken stacks, at once an Etl.
fn stacks(whole: i64, broken: i64) -> Etl {
    let etl = machine().event(0, START + 2, Image::dc_start(40, NTDLL, 0x1000, "ntdll.dll"));
    let etl = (0..whole).fold(etl, |etl, number| {
        etl.sampled(0, START + 1000 + number * 100, 40, 41, &[A + 0x10, NTDLL + 0x20])
    });
    (0..broken).fold(etl, |etl, number| etl.sampled(0, START + 90_000 + number * 100, 40, 41, &[A + 0x10]))
}

/// Runs a command on such a file, without symbols.
fn run(etl: Vec<u8>, name: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::write(&path, etl).unwrap();
    etwprof([OsStr::new(name), path.as_os_str()].into_iter().chain(args.iter().map(OsStr::new)))
}

/// The reasons that `--strict` gives. The result is there all the same, and the same as without it.
fn reasons(etl: &[u8], name: &str, args: &[&str]) -> Vec<String> {
    let plain = run(etl.to_vec(), name, args);
    let strict = run(etl.to_vec(), name, &[args, &["--strict"]].concat());
    assert!(!strict.stdout.is_empty(), "{name} {args:?}");
    assert_eq!(strict.stdout.len(), plain.stdout.len(), "{name} {args:?}");
    let prefix = "error: --strict: ";
    let reasons: Vec<String> =
        strict.stderr.lines().filter_map(|line| Some(line.strip_prefix(prefix)?.to_owned())).collect();
    assert_eq!(strict.code, i32::from(!reasons.is_empty()), "{name} {args:?}: {}", strict.stderr);
    assert_eq!(plain.code, 0, "{name} {args:?}: {}", plain.stderr);
    reasons
}

#[test]
fn a_good_recording_is_good_enough() {
    let etl = stacks(9, 1).finish();
    for (name, args) in [
        ("convert", &["--no-symbols"][..]),
        ("info", &["--no-symbols"]),
        ("symbols", &["--no-symbols"]),
        ("events", &[]),
    ] {
        assert_eq!(reasons(&etl, name, args), [] as [&str; 0], "{name}");
    }
    let demo = demo();
    for name in ["convert", "info", "symbols", "events"] {
        etwprof([OsStr::new(name), demo.as_os_str(), OsStr::new("--strict")]).success();
    }
}

#[test]
fn what_is_lost_or_damaged_is_a_reason() {
    let etl = machine().lost(7, 0).sampled(0, START + 9, 40, 41, &[0xa]);
    let mut bytes = etl.event(0, START + 99, mark(&"long ".repeat(1_000))).finish();
    bytes.truncate(64 * 1024 + 2_000); // inside of the mark
    for (name, args) in [
        ("convert", &["--no-symbols"][..]),
        ("info", &["--no-symbols"]),
        ("symbols", &["--no-symbols"]),
        ("events", &[]),
    ] {
        let reasons = reasons(&bytes, name, args);
        assert!(reasons[0].contains("7 events lost"), "{name}: {reasons:?}");
        assert!(reasons[1].contains("a.etl at byte"), "{name}: {reasons:?}");
        assert_eq!(reasons.len(), 2, "{name}: {reasons:?}");
        // Both are also warnings, quiet or not, where the result does not show them.
        let quiet = run(bytes.clone(), name, &["-q"]);
        let shown = quiet.stderr + std::str::from_utf8(&quiet.stdout).unwrap();
        assert!(shown.contains("7 events") && shown.contains("a.etl at byte"), "{name}: {shown}");
    }
}

#[test]
fn a_recording_without_samples_is_a_reason() {
    let etl = Etl::new().event(0, START, Process::dc_start(4, "System")).finish();
    assert!(reasons(&etl, "info", &[])[0].contains("no CPU samples"));
    // It is nothing that `events` is about.
    assert_eq!(reasons(&etl, "events", &[]), [] as [&str; 0]);
    let output = run(etl, "convert", &["--strict"]);
    assert_eq!(output.code, 1);
    let etl = stacks(9, 0).finish();
    assert!(reasons(&etl, "info", &["--no-symbols", "--from", "1h"])[0].contains("no samples"));
}

#[test]
fn a_tenth_of_the_stacks_may_be_broken() {
    let of = |whole, broken| reasons(&stacks(whole, broken).finish(), "convert", &["--no-symbols"]);
    assert_eq!(of(90, 10), [] as [&str; 0]);
    let reasons = of(89, 11);
    assert_eq!(reasons, ["11.0% of the samples have a broken stack or none (more than 10%)"]);
}

#[test]
fn half_of_the_leaves_must_have_names() {
    let etl = stacks(9, 0).finish();
    let reasons = reasons(&etl, "convert", &["--offline"]);
    assert_eq!(reasons, ["0.0% of the samples have a name for their leaf (less than 50%)"]);
}

#[test]
fn broken_stacks_are_warned_of_from_one_percent_on() {
    let warning = |whole, broken, args: &[&str]| {
        let stderr = run(stacks(whole, broken).finish(), "convert", args).stderr;
        stderr.lines().find(|line| line.contains("broken stacks")).map(str::to_owned)
    };
    assert_eq!(warning(99, 1, &[]), None);
    let line = warning(98, 2, &[]).unwrap();
    assert!(line.starts_with("warning: 2 samples (2.0%) have broken stacks"), "{line}");
    assert_eq!(warning(98, 2, &["-q"]), None);
}

#[test]
fn repairs_are_asked_for_and_shown() {
    let deep = [A + 0x10, A + 0x20, A + 0x30, A + 0x40, NTDLL + 0x50];
    let etl = machine()
        .event(0, START + 2, Image::dc_start(40, NTDLL, 0x1000, "ntdll.dll"))
        .sampled(0, START + 1_000, 40, 41, &deep)
        .sampled(0, START + 11_000, 40, 41, &deep[..3])
        .sampled(0, START + 21_000, 40, 41, &deep)
        .finish();
    let folded = |args: &[&str]| {
        let args = [&["--no-symbols", "-f", "folded"], args].concat();
        run(etl.clone(), "convert", &args).success()
    };
    let (plain, repaired) = (folded(&[]), folded(&["--repair-stacks"]));
    assert!(plain.text().contains(";[broken stack];") && !plain.text().contains("repaired"));
    assert!(repaired.text().contains(";[repaired stack];ntdll!") && !repaired.text().contains("broken"));
    assert!(
        plain.stderr.contains("1 with a broken stack") && repaired.stderr.contains("1 with a repaired stack"),
        "{}",
        repaired.stderr
    );
    let json = |args: &[&str]| {
        let output = run(etl.clone(), "info", &[&["--json"], args].concat()).success();
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let stacks = &info["samples"]["stacks"];
        (stacks["broken"].as_u64().unwrap(), stacks["repaired"].as_u64().unwrap())
    };
    assert_eq!(json(&[]), (1, 0));
    assert_eq!(json(&["--repair-stacks"]), (0, 1));
    // A third of the stacks is broken, mended or not.
    assert_eq!(run(etl, "convert", &["--no-symbols", "--strict", "--repair-stacks"]).code, 1);
}

/// Of a reader that stops early the warnings are not lost, nor the verdict.
#[cfg(unix)]
#[test]
fn warnings_come_before_the_result() {
    use std::io::Read;
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::write(&path, stacks(1, 9).lost(7, 0).finish()).unwrap();
    for (strict, code) in [(&[][..], 0), (&["--strict"], 1)] {
        let mut command = crate::support::command::command();
        command.arg("convert").arg(&path).args(["-f", "folded"]).args(strict);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{stderr}");
        assert!(stderr.contains("7 events lost") && stderr.contains("broken stacks"), "{stderr}");
        assert_eq!(stderr.contains("error: --strict: 7 events lost"), code == 1, "{stderr}");
    }
}
