//! `etwprof counters --diagnose` on registry files at the command line.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::command::{Output, etwprof};

const HEALTHY: &str = include_str!("../counters/healthy.reg");

/// Contoso's counters are switched off, and Fabrikam has its indices, without names.
const CHANGES: &str = r#"Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Contoso Orders\Performance]
"Disable Performance Counters"=dword:00000004
"Collect Timeout"=dword:0000ea60

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Fabrikam\Performance]
"First Counter"=dword:000008d8
"Last Counter"=dword:000008dc
"First Help"=dword:000008d9
"Last Help"=dword:000008dd
"#;

/// The folder with `healthy.reg`, and `changes.reg` if there are some.
fn folder(changes: Option<&str>) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![folder.path().join("healthy.reg")];
    fs::write(&files[0], HEALTHY).unwrap();
    if let Some(changes) = changes {
        files.push(folder.path().join("changes.reg"));
        fs::write(&files[1], changes).unwrap();
    }
    (folder, files)
}

fn run(changes: Option<&str>, args: &[&str]) -> Output {
    let (_folder, files) = folder(changes);
    let files = files.iter().map(|file| file.to_str().unwrap());
    etwprof(["counters"].into_iter().chain(args.iter().copied()).chain(files))
}

#[test]
fn a_healthy_machine() {
    let output = run(None, &["--diagnose"]).success();
    let lines: Vec<_> = output.text().lines().collect();
    assert_eq!(lines.len(), 2, "{}", output.text());
    assert!(
        lines[0].starts_with("not checked: the DLLs, which are on the machine of the export; the event log")
    );
    assert_eq!(lines[1], "no findings in 12 services");
    assert_eq!(output.stderr, "");
}

#[test]
fn findings_have_a_cause_and_a_cure_and_the_worst_is_first() {
    let output = run(Some(CHANGES), &["--diagnose"]);
    assert_eq!((output.code, &*output.stderr), (1, ""), "{}", output.text());
    let lines: Vec<_> = output.text().lines().map(str::trim_end).collect();
    assert_eq!(
        lines[0],
        "error    Contoso Orders  its counters are switched off: Disable Performance Counters is 4"
    );
    assert!(
        lines[1].starts_with("                         cause  Windows switched them off"),
        "{}",
        lines[1]
    );
    assert!(lines[2].ends_with("then `lodctr /E:\"Contoso Orders\"`"), "{}", lines[2]);
    assert!(lines[3].starts_with("error    Fabrikam        1 of its 3 indices, 2264 to 2268, have no name"));
    assert!(
        lines[6].contains("2264 to 2268, are also those of Contoso Orders, 2262 to 2266"),
        "{}",
        lines[6]
    );
    assert!(lines[8].contains("cure   `lodctr /R`"), "{}", lines[8]);
    assert!(lines[9].starts_with("note     Contoso Orders  Collect Timeout is 60000; usual is 10000"));
    assert_eq!(lines.last(), Some(&"4 findings in 13 services"));
}

#[test]
fn a_note_alone_is_no_failure() {
    let changes = CHANGES
        .split("\n\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Fabrikam")
        .next()
        .unwrap();
    let changes = changes.replace("dword:00000004", "dword:00000000");
    let output = run(Some(&changes), &["--diagnose"]).success();
    assert!(output.text().ends_with("1 finding in 12 services\n"), "{}", output.text());
}

#[test]
fn one_service() {
    // In any case, and with what another has of its indices.
    let output = run(Some(CHANGES), &["--diagnose", "contoso ORDERS"]);
    assert_eq!(output.code, 1);
    assert!(output.text().contains("also those of Contoso Orders"), "{}", output.text());
    assert!(!output.text().contains("have no name"), "{}", output.text());
    assert!(output.text().ends_with("3 findings in 1 service\n"), "{}", output.text());
    let healthy = run(Some(CHANGES), &["--diagnose", "Spooler"]).success();
    assert!(healthy.text().ends_with("no findings in 1 service\n"));
}

#[test]
fn json() {
    let output = run(Some(CHANGES), &["--json", "--diagnose"]);
    assert_eq!(output.code, 1);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["services"].as_array().unwrap().len(), 13);
    assert_eq!(found["unchecked"], json!(["files", "events", "trials"]));
    let findings = found["findings"].as_array().unwrap();
    let first = &findings[0];
    assert_eq!(
        (&first["service"], &first["kind"], &first["severity"], &first["value"]),
        (&json!("Contoso Orders"), &json!("disabled"), &json!("error"), &json!(4))
    );
    assert!(first["what"].is_string() && first["cause"].is_string() && first["cure"].is_string());
    let overlap = findings.iter().find(|finding| finding["kind"] == "overlap").unwrap();
    assert_eq!((&overlap["first"], &overlap["last"]), (&json!(2264), &json!(2268)));
    assert_eq!(overlap["other_range"], json!({ "first": 2262, "last": 2266 }));
    let healthy = run(None, &["--json", "--diagnose"]).success();
    let found: Value = serde_json::from_slice(&healthy.stdout).unwrap();
    assert_eq!(found["findings"], json!([]));
}

#[test]
fn a_file_as_the_value_of_the_option_is_a_file() {
    let (_folder, files) = folder(Some(CHANGES));
    let [healthy, changes] = [0, 1].map(|at| files[at].to_str().unwrap());
    let behind = etwprof(["counters", healthy, changes, "--diagnose"]);
    for args in [
        vec!["counters", "--diagnose", healthy, changes],
        vec!["counters", "--diagnose", "--", healthy, changes],
        vec!["counters", healthy, changes, "--diagnose"],
    ] {
        let output = etwprof(&args);
        assert_eq!((output.code, output.text()), (1, behind.text()), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn wrong_lines_say_what_is_wrong() {
    let unknown = run(None, &["--diagnose", "contoso"]);
    assert_eq!(unknown.code, 2);
    let near = "no such service counts anything; near it: Contoso Orders\n";
    assert!(unknown.stderr.ends_with(near), "{}", unknown.stderr);
    let unknown = run(None, &["--diagnose", "PerfSO"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("near it: PerfOS"), "{}", unknown.stderr);
    let unknown = run(None, &["--diagnose", "MSSQLSERVER"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("--json lists all that do"), "{}", unknown.stderr);
    let missing = etwprof(["counters", "--diagnose", "no-such.reg"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no-such.reg: there is no such file"), "{}", missing.stderr);
    let missing = run(None, &["no-such", "--diagnose"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no-such: there is no such file"), "{}", missing.stderr);
    for other in ["--pid=1", "--csv", "--count=2", "--dump=x", "--name=x"] {
        let output = etwprof(["counters", "--diagnose", other]);
        assert_eq!(output.code, 2, "{other}");
        assert!(output.stderr.contains("cannot be used with"), "{other}: {}", output.stderr);
    }
    if cfg!(not(windows)) {
        let here = etwprof(["counters", "--diagnose"]);
        assert_eq!(here.code, 2);
        assert!(here.stderr.contains("save its registry with `reg export`"), "{}", here.stderr);
    }
}

#[test]
fn files_that_are_damaged_or_say_nothing() {
    let damaged = run(Some("Windows Registry Editor Version 5.00\n\nnonsense\n"), &["--diagnose"]);
    assert_eq!(damaged.code, 1);
    assert!(damaged.stderr.contains("changes.reg: line 3: neither a key nor a value"), "{}", damaged.stderr);
    let other = run(Some("[HKEY_LOCAL_MACHINE]"), &["--diagnose"]);
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("this is no file of `reg export`"), "{}", other.stderr);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.reg");
    fs::write(&file, "Windows Registry Editor Version 5.00\n").unwrap();
    let empty = etwprof(["counters", "--diagnose", file.to_str().unwrap()]);
    assert_eq!((empty.code, &*empty.stdout), (1, &b""[..]));
    assert!(empty.stderr.contains("there is no service with performance counters"), "{}", empty.stderr);
}

#[test]
fn names_that_are_hostile_stay_on_their_line() {
    let changes = "Windows Registry Editor Version 5.00\n\n\
                   [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\a\u{1b}[2J\u{202e}b\\Performance]\n\
                   \"Library\"=\"x\u{1b}]0;y\"\n";
    let output = run(Some(changes), &["--diagnose"]);
    assert_eq!(output.code, 1);
    assert!(output.text().contains("a?[2J?b") && !output.text().contains('\u{1b}'), "{}", output.text());
}
