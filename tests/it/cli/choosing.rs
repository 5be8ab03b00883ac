//! Options that choose samples, through the program: what they keep and leave out is always the whole.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::support::command::{self, Output};
use crate::support::data;
use crate::support::reading::{json, number};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl")
}

fn run(name: &str, file: &Path, args: &[&str]) -> Output {
    let args = args.iter().map(OsStr::new);
    command::etwprof([OsStr::new(name), file.as_os_str()].into_iter().chain(args))
}

/// The samples that are kept, after a look at the account of all.
#[track_caller]
fn kept(file: &Path, args: &[&str]) -> u64 {
    let args_of = args.iter().map(OsStr::new);
    let info = json([OsStr::new("info"), OsStr::new("--json"), file.as_os_str()].into_iter().chain(args_of));
    let [total, idle, kept, filtered] =
        ["total", "idle", "kept", "filtered"].map(|name| number(&info, &format!("/samples/{name}")));
    assert_eq!(kept + idle + filtered, total, "{args:?}");
    let sum = |pointer: &str| -> u64 {
        info.pointer(pointer).unwrap().as_object().unwrap().values().filter_map(|n| n.as_u64()).sum()
    };
    assert_eq!(sum("/samples/filtered_by"), filtered, "{args:?}");
    assert_eq!(sum("/samples/categories"), kept, "{args:?}");
    let of_processes: u64 = info["processes"].as_array().unwrap().iter().map(|p| number(p, "/samples")).sum();
    assert_eq!(of_processes, kept, "{args:?}");
    kept
}

/// Samples by whole folded stack.
#[track_caller]
fn folded(file: &Path, args: &[&str]) -> BTreeMap<String, u64> {
    let args = [&["-f", "folded", "--offline", "-q"], args].concat();
    let output = run("convert", file, &args).success();
    let lines = output.text().lines().map(|line| line.rsplit_once(' ').unwrap());
    lines.map(|(stack, samples)| (stack.to_owned(), samples.parse().unwrap())).collect()
}

/// Stacks with a frame, of all there are, and those without.
fn split(all: &BTreeMap<String, u64>, is: impl Fn(&str) -> bool) -> [BTreeMap<String, u64>; 2] {
    // The first is the process.
    let (with, without): (BTreeMap<_, _>, _) =
        all.clone().into_iter().partition(|(stack, _)| stack.split(';').skip(1).any(&is));
    [with, without]
}

#[track_caller]
fn assert_split(file: &Path, name: &str, option: &str, is: impl Fn(&str) -> bool) {
    let [with, without] = split(&folded(file, &[]), is);
    assert!(!with.is_empty() && !without.is_empty(), "{name}");
    assert!(folded(file, &[option, name]) == with, "{option} {name}");
    assert!(folded(file, &["--exclude", name]) == without, "--exclude {name}");
}

#[test]
fn functions_and_modules_are_those_of_the_folded_stacks() {
    let demo = demo();
    let compare = "Orders.Core!Orders.Matching.PriceLevel.CompareTo";
    for name in
        [compare, "orders.matching.pricelevel.compareto", "*PriceLevel.Compare??", "/PriceLevel\\.CompareTo/"]
    {
        assert_split(&demo, name, "--function", |frame| frame == compare);
    }
    assert_split(&demo, "/^ntoskrnl!Rtl/", "--function", |frame| frame.starts_with("ntoskrnl!Rtl"));
    for name in ["coreclr", "CORECLR.dll", "*\\coreclr.dll"] {
        assert_split(&demo, name, "--module", |frame| frame.starts_with("coreclr!"));
    }
    // The module of methods that were compiled at run time is no image.
    for name in ["Orders.Core", "orders.core.dll", "Orders.C*"] {
        assert_split(&demo, name, "--module", |frame| frame.starts_with("Orders.Core!"));
    }
    // Its name has a point and no ending.
    assert_split(&demo, "orders", "--module", |frame| frame.starts_with("orders!"));

    let two = folded(&demo, &["--function", compare, "--function", "ntoskrnl!RtlCopyMemory"]);
    let either = |frame: &str| frame == compare || frame == "ntoskrnl!RtlCopyMemory";
    assert!(two == split(&folded(&demo, &[]), either)[0], "several add up");
    let both = folded(&demo, &["--module", "coreclr", "--function", compare]);
    let [clr, _] = split(&folded(&demo, &[]), |frame| frame.starts_with("coreclr!"));
    assert!(both == split(&clr, |frame| frame == compare)[0], "different kinds narrow down");
}

#[test]
fn every_pair_of_options_loses_no_sample() {
    let options: [&[&str]; 13] = [
        &["--name", "o*"],
        &["--name", "orders", "--children"],
        &["--pid", "4"],
        &["--thread", "Matcher*"],
        &["--module", "coreclr"],
        &["--function", "*Matching*"],
        &["--exclude", "ntoskrnl"],
        &["--category", "managed,kernel"],
        &["--cpu", "0,2-3"],
        &["--from", "1"],
        &["--to", "11:00:14"],
        &["--include-idle"],
        &["--no-symbols"],
    ];
    // Programs start slowly under Wine.
    const EACH: usize = if cfg!(windows) { 7 } else { 1 };
    let demo = demo();
    let mut counts = Vec::new();
    for (index, one) in options.iter().enumerate() {
        for other in options[index..].iter().step_by(EACH) {
            let together = if one == other { one.to_vec() } else { [*one, *other].concat() };
            // Without symbols there may be no such function.
            let output = run("info", &demo, &[&["--json", "--quiet"], &together[..]].concat());
            if output.code == 0 {
                counts.push(kept(&demo, &together));
            }
        }
    }
    assert!(counts.len() > 80 / EACH, "{}", counts.len());
    counts.sort_unstable();
    counts.dedup();
    assert!(counts.len() > 30 / EACH, "options that choose nothing: {counts:?}");
}

/// What is split by an option adds up to the whole.
#[track_caller]
fn assert_slices(file: &Path, processors: u32, times: &[&str], categories: &[&str]) {
    let all = kept(file, &[]);
    let of_cpus = (0..processors).map(|cpu| kept(file, &["--cpu", &cpu.to_string()]));
    assert_eq!(of_cpus.sum::<u64>(), all);
    let half = processors / 2;
    let [low, high] = [format!("0-{}", half - 1), format!("{half},{}-{}", half + 1, processors - 1)];
    assert_eq!(kept(file, &["--cpu", &low]) + kept(file, &["--cpu", &high]), all);

    let mut sum = kept(file, &["--to", times[0]]) + kept(file, &["--from", times[times.len() - 1]]);
    for slice in times.windows(2) {
        sum += kept(file, &["--from", slice[0], "--to", slice[1]]);
    }
    assert_eq!(sum, all);
    let of_categories: u64 = categories.iter().map(|kind| kept(file, &["--category", kind])).sum();
    assert_eq!(of_categories, all);

    let info = json([OsStr::new("info"), OsStr::new("--json"), file.as_os_str()]);
    assert_eq!(kept(file, &["--include-idle"]), number(&info, "/samples/total"));
    let idle = kept(file, &["--include-idle", "--pid", "0"]) - kept_or_none(file, &["--pid", "0"]);
    assert_eq!(idle, number(&info, "/samples/idle"));
}

/// The same where there may be no sample.
fn kept_or_none(file: &Path, args: &[&str]) -> u64 {
    let output = run("info", file, &[&["--json"], args].concat());
    if output.code == 0 { kept(file, args) } else { 0 }
}

#[test]
fn slices_of_the_demo_are_the_whole() {
    // 09:00:12.345 UTC is its start.
    let times = ["0.5", "11:00:13", "09:00:13.345Z", "9:00:14", "2.5s"];
    let categories = ["kernel", "native", "managed", "runtime", "gc,jit", "stub,javascript,unresolved"];
    let demo = demo();
    let categories: Vec<&str> =
        categories.into_iter().filter(|kind| run("info", &demo, &["--category", kind]).code == 0).collect();
    assert_slices(&demo, 4, &times, &categories);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn slices_of_real_recordings_are_the_whole() {
    // The starts are 17:07:00.62 and 21:56:58.41 in the recordings' time zone.
    let x64 = data::file("etl/perfview/net.4.5.2.x64.etl");
    assert_slices(
        &x64,
        8,
        &["2", "17:07:04", "00:07:06.5Z", "9s"],
        &["kernel,native", "managed", "runtime,jit,stub", "unresolved"],
    );
    // TraceEvent's count of the hottest method's samples, exclusive ones, which calls nothing.
    assert_eq!(kept(&x64, &["--function", "*DateTime.GetDatePart"]), 1_856);
    let ppt = data::traces().into_iter().find(|path| path.ends_with("slow-ppt.etl")).unwrap();
    assert_slices(
        &ppt,
        8,
        &["21:57:00", "4", "04:57:05Z"],
        &["kernel", "native", "managed-precompiled,runtime,unresolved"],
    );
}

#[test]
fn what_is_not_there_is_an_error_that_lists_what_is() {
    for (args, code, parts) in [
        (&["--thread", "nobody"][..], 1, &["--thread nobody", "Matcher 0"][..]),
        (&["--thread", "match"], 1, &["did you mean Matcher 0, Matcher 1?"]),
        (&["--module", "nothing"], 1, &["--module nothing", "ntoskrnl.exe"]),
        (&["--module", "core"], 1, &["did you mean", "coreclr.dll"]),
        (&["--function", "nothing"], 1, &["--function nothing", "PriceLevel.CompareTo"]),
        (&["--function", "CompareT"], 1, &["did you mean", "PriceLevel.CompareTo"]),
        (&["--category", "javascript"], 1, &["--category javascript", "kernel", "managed"]),
        (&["--category", "nothing"], 2, &["possible values: kernel, native, managed"]),
        (&["--cpu", "4"], 1, &["--cpu 4", "processors 0 to 3"]),
        (&["--cpu", "3-1"], 2, &["0-3,7"]),
        (&["--tid", "1"], 1, &["--tid 1: no thread has this id"]),
        (&["--from", "11:00:16"], 1, &["--from 11:00:16.000", "11:00:12.345", "11:00:15.467", "UTC+02:00"]),
        (&["--to", "11:00:12Z"], 1, &["--to 11:00:12.000", "09:00:12.345", "(UTC)"]),
        (&["--from", "11:00:14", "--to", "1"], 2, &["--from must be before --to"]),
        (&["--function", "/(/"], 2, &["--function", "malformed"]),
        (&["--name", ""], 2, &["--name", "empty"]),
    ] {
        for command in ["convert", "info", "symbols"] {
            let output = run(command, &demo(), args);
            assert_eq!(output.code, code, "{command} {args:?}: {}", output.stderr);
            for part in parts {
                assert!(output.stderr.contains(part), "{command} {args:?}: no {part} in {}", output.stderr);
            }
        }
    }
}

#[test]
fn what_is_missing_beside_what_is_there_is_a_warning() {
    let options =
        ["--min-percent", "50", "--thread", "Matcher 0", "--thread", "nobody", "--exclude", "nothing"];
    let output = run("convert", &demo(), &options).success();
    for part in ["warning: --thread nobody:", "warning: --exclude nothing: no sample has this"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let quiet = run("convert", &demo(), &[&options[..], &["--quiet"]].concat()).success();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_account_lists_what_several_options_left_out() {
    let last = |args: &[&str]| {
        let output = run("convert", &demo(), args).success();
        output.stderr.lines().last().unwrap().to_owned()
    };
    let line = last(&["--name", "orders"]);
    assert!(line.ends_with(" filtered out"), "{line}");
    let line = last(&["--name", "orders", "--function", "*CompareTo", "--to", "9:00:14"]);
    for part in [" filtered out (", " --pid/--name, ", " --from/--to, ", " --function)"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let output = run("convert", &demo(), &["--name", "indexer", "--function", "*PriceLevel.CompareTo"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("--function *PriceLevel.CompareTo: no sample has this function"),
        "{}",
        output.stderr
    );
    let output = run("convert", &demo(), &["--module", "coreclr", "--exclude", "ntdll"]);
    for part in ["have no code of such a module (--module)", "have what is excluded (--exclude)"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
}

#[test]
fn the_zone_of_a_time_of_day_is_shown() {
    let note = |time: &str| {
        let output = run("convert", &demo(), &["--from", time, "--min-percent", "50"]).success();
        output.stderr.lines().find(|line| line.starts_with("--from")).unwrap_or_default().to_owned()
    };
    assert_eq!(note("11:00:14"), "--from 11:00:14.000 (UTC+02:00) is 1.654 s after the start");
    assert_eq!(note("09:00:14"), "--from 09:00:14.000 (UTC) is 1.654 s after the start");
    assert_eq!(note("9:00:14.5Z"), "--from 09:00:14.500 (UTC) is 2.154 s after the start");
}
