//! Tables of collections and compilations, and the samples at these moments: against what an independent reader counted.

use std::path::Path;

use serde_json::Value;

use crate::support::data;
use crate::support::reading::{json, number};

/// What a command prints with `--json`.
fn printed(command: &str, file: &Path, more: &[&str]) -> Value {
    let file = file.to_str().unwrap();
    json([&[command, file, "--json"], more].concat())
}

fn of(value: &Value, pid: u64) -> &Value {
    value["runtimes"].as_array().unwrap().iter().find(|runtime| runtime["pid"] == pid).unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn collections_of_2016() {
    let file = data::file("etl/perfview/PerfViewData.etl");
    let gc = printed("gc", &file, &["--pid", "1980"]);
    assert_eq!(gc["runtimes"].as_array().unwrap().len(), 1);
    let test = of(&gc, 1980);
    assert_eq!(number(test, "/gcs"), 1_050);
    assert_eq!((number(test, "/generations/0"), number(test, "/generations/2")), (950, 100));
    assert_eq!((number(test, "/reasons/small_objects"), number(test, "/reasons/induced")), (950, 100));
    assert_eq!((number(test, "/pause_ns") + 50_000) / 100_000, 1_308);
    assert_eq!((number(test, "/longest_ns") + 50_000) / 100_000, 87);
    // By a script that reads the raw records: from GCSuspendEEBegin to GCSuspendEEEnd.
    assert_eq!(number(test, "/suspend_ns"), 10_405_300);
    // Of 3.071 s, from the start of the process to its end.
    assert_eq!(format!("{:.1}", test["paused_percent"].as_f64().unwrap()), "4.3");
    // 119 samples of thread 3720, each of 1 ms.
    assert_eq!(number(test, "/cpu_in_pauses_ns"), 119_000_000);
    let rows = test["collections"].as_array().unwrap();
    assert_eq!(rows.len(), 1_050);
    assert!(rows.iter().all(|row| row["pause_ns"].as_u64().unwrap() >= row["duration_ns"].as_u64().unwrap()));
    // The dump of TraceEvent has it: TotalHeapSize, TotalPromoted.
    let heap = &rows[0]["heap"];
    assert_eq!((number(heap, "/total_bytes"), number(heap, "/promoted_bytes")), (21_744, 3_840));
    let all = printed("gc", &file, &[]);
    let ticks = all["runtimes"].as_array().unwrap().iter();
    let ticks = ticks.flat_map(|runtime| runtime["allocated_types"].as_array().unwrap());
    assert_eq!(ticks.map(|one| number(one, "/ticks")).sum::<u64>(), 52_698);
    let few = printed("gc", &file, &["--pid", "1980", "-n", "3"]);
    assert_eq!(of(&few, 1980)["collections"].as_array().unwrap().len(), 3);
    assert_eq!(number(of(&few, 1980), "/gcs"), 1_050);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn what_a_recording_does_not_say_is_null() {
    let gc = printed("gc", &data::file("etl/dotnet-performance/tmp0qw4cn.tmp.etl"), &[]);
    let runtime = of(&gc, 7_608);
    assert_eq!(number(runtime, "/gcs"), 1_217);
    // It has no allocation ticks of this program, and no samples.
    assert_eq!((&runtime["allocated_bytes"], &runtime["cpu_in_pauses_ns"]), (&Value::Null, &Value::Null));
    // Another program has ticks only.
    let other = of(&gc, 9_424);
    assert_eq!((number(other, "/gcs"), &other["pauses"]), (0, &Value::Null));
    let gc = printed("gc", &data::file("etl/perfview/gcevents/PerfViewData.etl"), &[]);
    assert_eq!(number(of(&gc, 179_596), "/gcs"), 2);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn compilations_of_a_web_program() {
    let file = data::file("etl/perfview/diaghub-dotnetcore3.1-win-x64-diagsession/diaghub.user_paged.1.etl");
    let jit = printed("jit", &file, &["-n", "2"]);
    let runtime = &jit["runtimes"][0];
    assert_eq!(number(runtime, "/methods"), 5_409);
    let tiers = runtime["by_tier"].as_object().unwrap().values();
    assert_eq!(tiers.map(|methods| methods.as_u64().unwrap()).sum::<u64>(), 5_409);
    let slowest = runtime["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 2);
    // What is compiled in the midst of another counts once, so it can be less than their sum.
    let all = printed("jit", &file, &[]);
    let rows = all["runtimes"][0]["slowest"].as_array().unwrap();
    assert!(rows.iter().map(|row| number(row, "/jit_ns")).sum::<u64>() >= number(runtime, "/jit_ns"));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_are_chosen_by_what_the_runtime_does() {
    let file = data::file("etl/perfview/PerfViewData.etl");
    let samples = |more: &[&str]| {
        let info = printed("info", &file, &[&["--pid", "1980"], more].concat());
        let kept = number(&info, "/samples/kept");
        let all = &info["samples"];
        assert_eq!(number(all, "/total"), kept + number(all, "/idle") + number(all, "/filtered"),);
        (kept, number(&info, "/samples/filtered_by/during"))
    };
    let (all, none) = samples(&[]);
    assert_eq!(none, 0);
    let thread = samples(&["--during", "gc", "--tid", "3720"]);
    assert_eq!(thread.0, 119);
    let (inside, outside) = (samples(&["--during", "gc"]), samples(&["--during", "outside-gc"]));
    assert_eq!((inside.1, outside.1), (all - inside.0, inside.0));
    assert_eq!(inside.0 + outside.0, all);
    let jit = samples(&["--during", "jit"]);
    assert!(jit.0 > 0 && jit.0 + jit.1 == all);
}
