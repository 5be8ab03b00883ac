//! `etwprof trim`: smaller recordings, and parts as one.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::command::etwprof;
use crate::support::data;
use crate::support::reading::number;
use crate::support::stacks::machine;
use crate::synth::kernel::system::cpu_config;
use crate::synth::{Etl, START};

fn two_programs() -> Etl {
    let mut etl = machine();
    for number in 0..50 {
        let time = START + 10_000 * (10 + number);
        etl = etl.sampled(0, time, 40, 41, &[0x1000 + number as u64 % 3, 0x2000]);
        etl = etl.sampled(1, time + 3, 50, 51, &[0x8000, 0x9000]);
    }
    etl
}

fn trim(args: &[&OsStr]) -> Value {
    let line =
        [OsStr::new("trim"), OsStr::new("--json"), OsStr::new("-q")].into_iter().chain(args.iter().copied());
    let output = etwprof(line).success();
    serde_json::from_str(output.text()).unwrap()
}

fn folded(file: &Path, args: &[&str]) -> String {
    let line = ["convert", "-q", "-f", "folded", "--no-symbols", "--addresses", "--raw-names"];
    let line = line.iter().chain(args).map(OsStr::new).chain([file.as_os_str()]);
    etwprof(line).success().text().to_owned()
}

#[test]
fn one_program_of_two() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    std::fs::write(&whole, two_programs().finish()).unwrap();
    let to = [whole.as_os_str(), OsStr::new("-o"), part.as_os_str()];
    let done = trim(&[&to[..], &["--pid", "40"].map(OsStr::new)].concat());
    assert_eq!(done["dropped"]["samples"], 50);
    assert_eq!(done["dropped"]["stacks"], 50);
    assert_eq!(done["damaged"], 0);
    assert_eq!(number(&done, "/bytes_out"), part.metadata().unwrap().len());
    assert!(folded(&part, &[]).contains("(40)"));
    assert_eq!(folded(&part, &[]), folded(&whole, &["--pid", "40"]));

    let done = trim(&[&to[..], &["--from", "20ms", "--to", "30ms"].map(OsStr::new)].concat());
    assert_eq!(done["dropped"]["samples"], 80);
    assert_eq!(folded(&part, &[]), folded(&whole, &["--from", "20ms", "--to", "30ms"]));

    let done = trim(&[&to[..], &["--provider", "perfinfo"].map(OsStr::new)].concat());
    assert_eq!(done["dropped"].get("samples"), None);
    assert_eq!(folded(&part, &[]), folded(&whole, &[]));

    let done = trim(&to);
    assert_eq!(done["dropped"], json!({}));
    assert_eq!(done["events_in"], done["events_out"]);
}

#[test]
fn what_cannot_be_written_leaves_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.etl");
    std::fs::write(&whole, two_programs().finish()).unwrap();
    let refused = |out: &Path, more: &[&str], text: &str| {
        let line = [OsStr::new("trim"), whole.as_os_str(), OsStr::new("-o"), out.as_os_str()];
        let output = etwprof(line.into_iter().chain(more.iter().map(OsStr::new)));
        assert_ne!(output.code, 0);
        assert!(output.stderr.contains(text), "{}", output.stderr);
    };
    let before = std::fs::read(&whole).unwrap();
    refused(&whole, &[], "would overwrite");
    refused(Path::new("-"), &[], "-o");
    refused(&folder.path().join("no/folder.etl"), &[], "there is no folder");
    let out = folder.path().join("out.etl");
    refused(&out, &["--pid", "4711"], "4711");
    refused(&out, &["--from", "3s", "--to", "2s"], "--from");
    assert_eq!(std::fs::read(&whole).unwrap(), before);
    let there: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(there, ["whole.etl"], "nothing half written stays");
}

#[test]
fn filters_of_which_there_is_nothing_fail_and_say_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let run = |more: &[&str]| {
        let line = [OsStr::new("trim"), whole.as_os_str(), OsStr::new("-o"), part.as_os_str()];
        etwprof(line.into_iter().chain(more.iter().map(OsStr::new)))
    };
    let refused = |more: &[&str], text: &str| {
        let output = run(more);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains(text), "{}", output.stderr);
        assert!(!part.exists());
    };
    std::fs::write(&whole, two_programs().finish()).unwrap();
    let no_such = "--provider nosuch: the recording has no such provider; ";
    refused(
        &["--provider", "nosuch"],
        &format!("{no_such}the recording has PerfInfo, StackWalk, Thread, Process"),
    );
    refused(&["--provider", "Perf"], "did you mean PerfInfo?");
    let guid = "11111111-2222-3333-4444-555555555555";
    refused(&["--provider", guid], &format!("--provider {guid}: the recording has no such provider"));
    refused(&["--from", "10s"], "--from: nothing was recorded from this time on; the recording lasts ");
    refused(&["--to", "0"], "--to: nothing was recorded before this time");
    refused(&["--pid", "999"], "--pid 999: no process has this id; the recording has ");
    refused(&["--pid", "999"], "a.exe (40), b.exe (50)");
    std::fs::write(&whole, Etl::new().event(0, START + 1, cpu_config(3_000, 4, "WOPR", 9)).finish()).unwrap();
    refused(&["--name", "nope"], "--name nope: the recording lists no processes");
    refused(&["--pid", "999"], "--pid 999: the recording lists no processes");

    // One of two is there.
    std::fs::write(&whole, two_programs().finish()).unwrap();
    let output = run(&["--json", "--provider", "nosuch", "--provider", "Perf*"]).success();
    assert!(output.stderr.contains(no_such), "{}", output.stderr);
    let done: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!(done["dropped"].get("samples"), None);
}

/// `docs/json.md` lists the kinds of events that are left out.
#[test]
fn kinds_of_dropped_events_have_names_for_programs() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md");
    let documents = std::fs::read_to_string(documents).unwrap();
    let row = documents.lines().find(|line| line.starts_with("| `dropped` |")).unwrap();
    for kind in etwprof::trim::KINDS {
        assert!(kind.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()), "{kind}");
        assert!(row.contains(&format!("`{kind}`")), "{kind}");
    }
}

#[test]
fn one_damaged_place_is_no_two() {
    let trimmed = |damaged| {
        let mut text = Vec::new();
        etwprof::report::trim::write(
            &mut text,
            &etwprof::report::trim::Trimmed::new(1, &etwprof::etl::writer::Copied::default(), damaged),
        )
        .unwrap();
        String::from_utf8(text).unwrap()
    };
    assert!(trimmed(1).ends_with("\n1 damaged place left out\n"), "{}", trimmed(1));
    assert!(trimmed(2).ends_with("\n2 damaged places left out\n"), "{}", trimmed(2));
}

/// The process of the test program has the same stacks, names included, in a fifth of the bytes.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn one_program_of_a_real_recording() {
    let whole = data::file("etl/perfview/net.4.5.2.x64.etl");
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let done =
        trim(&[whole.as_os_str(), "-o".as_ref(), part.as_os_str(), "--name".as_ref(), "Test.x64".as_ref()]);
    // 79,528 samples, of which TraceEvent's dump gives 5,129 to the process.
    assert_eq!(number(&done, "/dropped/samples"), 79_528 - 5_129);
    assert!(number(&done, "/bytes_out") * 4 < number(&done, "/bytes_in"));
    assert_eq!(folded(&part, &[]), folded(&whole, &["--name", "Test.x64"]));
    let named = |file: &Path, more: &[&str]| {
        let line = ["convert", "-q", "-f", "folded", "--offline"];
        let line = line.iter().chain(more).map(OsStr::new).chain([file.as_os_str()]);
        etwprof(line).success().text().to_owned()
    };
    assert_eq!(named(&part, &[]), named(&whole, &["--name", "Test.x64"]));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn waits_of_a_program_stay() {
    let whole = data::file("etl/xperf/slow-ppt.etl");
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    trim(&[whole.as_os_str(), "-o".as_ref(), part.as_os_str(), "--pid".as_ref(), "5100".as_ref()]);
    let waits = |file: &Path| {
        let line = ["waits", "-q", "--no-symbols", "--pid", "5100", "-n", "50"].map(OsStr::new);
        etwprof(line.into_iter().chain([file.as_os_str()])).success().text().to_owned()
    };
    assert_eq!(waits(&part), waits(&whole));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn disk_io_of_a_program_stays() {
    let whole = data::file("etl/perfview/net.4.5.2.x64.etl");
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    trim(&[whole.as_os_str(), "-o".as_ref(), part.as_os_str(), "--pid".as_ref(), "3676".as_ref()]);
    let disk = |file: &Path| -> Value {
        let line = ["disk", "-q", "--json", "--pid", "3676", "-n", "0"].map(OsStr::new);
        let output = etwprof(line.into_iter().chain([file.as_os_str()])).success();
        let mut disk: Value = serde_json::from_str(output.text()).unwrap();
        // How long the disk worked depends on the I/O of others before it, which is gone.
        let rows = disk["rows"].as_array_mut().unwrap().iter_mut();
        rows.for_each(|row| row["service_ns"] = Value::Null);
        disk["rows"].take()
    };
    assert_eq!(disk(&part).as_array().unwrap().len(), 11);
    let by_name = |rows: Value| {
        let mut rows = rows.as_array().unwrap().clone();
        rows.sort_by_key(|row| row["name"].to_string());
        rows
    };
    assert_eq!(by_name(disk(&part)), by_name(disk(&whole)));
}

/// Windows and PerfView compress with the same method; a file is no more than a tenth larger than theirs.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_compressed_file_is_as_small_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.etl");
    let files =
        ["perfview/net.4.5.2.x64.etl", "msbuild/PerfViewData.etl", "dotnet-performance/tmp0qw4cn.tmp.etl"];
    for file in files {
        let whole = data::file(&format!("etl/{file}"));
        let done = trim(&[whole.as_os_str(), "-o".as_ref(), copy.as_os_str()]);
        assert!(number(&done, "/bytes_out") * 10 <= number(&done, "/bytes_in") * 11, "{file}: {done}");
        assert!(etwprof::etl::Recording::open(&[&copy]).unwrap().files()[0].header().is_compressed());
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_diagsession_becomes_one_file() {
    let folder = data::file("etl/perfview/diaghub-dotnetcore3.1-win-x64-diagsession");
    let mut parts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.sort();
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one.etl");
    let parts: Vec<&OsStr> = parts.iter().map(|part| part.as_os_str()).collect();
    let done = trim(&[&parts[..], &["-o".as_ref(), one.as_os_str(), "--compress".as_ref()]].concat());
    assert_eq!(done["dropped"], json!({ "headers_of_other_parts": 3 }));
    let jit = |files: &[&OsStr]| {
        let line = ["jit", "--json"].map(OsStr::new).into_iter().chain(files.iter().copied());
        etwprof(line).success().text().to_owned()
    };
    assert_eq!(jit(&[one.as_os_str()]), jit(&parts));
}
