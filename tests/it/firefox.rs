//! Profiles for the Firefox Profiler, read back as JSON: samples and times worked out by hand, and tables that agree with
//! each other. `scripts/check-firefox` opens them in the viewer's own loader.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::command::etwprof;
use crate::support::data;
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo;
use crate::synth::{Etl, Image, Process, START, Sample, Thread, clr, stack_walk};

/// What `convert` makes of a recording.
#[track_caller]
fn profile(etl: Etl, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("made.etl"), folder.path().join("out.json.gz"));
    fs::write(&file, etl.finish()).unwrap();
    etwprof(
        [file.as_os_str(), "--no-symbols".as_ref(), "-o".as_ref(), out.as_os_str()]
            .into_iter()
            .chain(arguments.iter().map(AsRef::as_ref)),
    )
    .success();
    unpacked(&fs::read(out).unwrap())
}

#[track_caller]
fn unpacked(bytes: &[u8]) -> Value {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn column<'v>(table: &'v Value, name: &str) -> &'v Vec<Value> {
    let column = table[name].as_array().unwrap_or_else(|| panic!("no column {name}"));
    assert_eq!(table["length"], column.len(), "{name}");
    column
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn string<'v>(profile: &'v Value, number: &Value) -> &'v str {
    profile["shared"]["stringArray"][index(number)].as_str().unwrap()
}

/// The functions of a stack, from its root on.
fn stack(profile: &Value, leaf: &Value) -> String {
    let shared = &profile["shared"];
    let mut names = Vec::new();
    let mut next = leaf.clone();
    while !next.is_null() {
        let frame = index(&column(&shared["stackTable"], "frame")[index(&next)]);
        let func = index(&column(&shared["frameTable"], "func")[frame]);
        let name = string(profile, &column(&shared["funcTable"], "name")[func]);
        let module = match column(&shared["funcTable"], "resource")[func].as_i64().unwrap() {
            -1 => "",
            resource => {
                string(profile, &column(&shared["resourceTable"], "name")[usize::try_from(resource).unwrap()])
            }
        };
        names.push(format!("{module}!{name}"));
        next = column(&shared["stackTable"], "prefix")[index(&next)].clone();
    }
    names.reverse();
    names.join(" ")
}

const CODE: u64 = 0x40_0000;
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// Samples of 0.5 ms, and one of 2 ms.
fn recording() -> Etl {
    let at = |ms: i64| START + ms * 10_000;
    let name = ["Shop.Order", "Total", "instance int32  ()"];
    machine()
        .event(0, START + 1, perfinfo::collection_start(5_000))
        .event(0, START + 2, Image::dc_start(40, CODE, 0x1000, r"C:\app\a.exe"))
        .event(0, START + 2, Image::dc_start(0, KERNEL, 0x1000, r"\SystemRoot\system32\ntoskrnl.exe"))
        .sampled(0, at(1), 40, 41, &[CODE + 0x20, CODE + 0x10])
        .sampled(1, at(2), 40, 42, &[CODE + 0x30, CODE + 0x10])
        .event(0, at(3), Image::load(40, CODE + 0x10_0000, 0x2000, r"C:\app\late.dll"))
        .event(0, at(3), Thread::start(40, 43).name("late"))
        .event(0, at(3) + 1, clr::Method::load(40, 0x7000_0000, 0x40, name))
        .sampled(0, at(4), 40, 42, &[0x7000_0010, CODE + 0x10])
        .sampled(0, at(5), 50, 52, &[0x9000])
        .event(0, at(6), Sample::new(KERNEL + 0x40, 42).dpc())
        .event(0, at(6) + 2, stack_walk::full(at(6), 40, 42, &[KERNEL + 0x40]))
        .event(0, at(7), perfinfo::set_interval(0, 5_000, 20_000))
        .sampled(0, at(8), 40, 42, &[CODE + 0x30, CODE + 0x10])
        .event(0, at(9), Process::end(50, "b.exe"))
}

#[test]
fn every_thread_has_its_samples_with_their_times() {
    let profile = profile(recording(), &[]);
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 65);
    assert_eq!(profile["meta"]["interval"], json!(0.5));
    let threads = profile["threads"].as_array().unwrap();
    let text = |thread: &Value| {
        let samples = &thread["samples"];
        let numbers =
            |name: &str| column(samples, name).iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        let main = if thread["isMainThread"] == true { "main " } else { "" };
        let (pid, tid) = (thread["pid"].as_str().unwrap(), &thread["tid"]);
        assert_eq!(samples["weightType"], "tracing-ms");
        // What a sample stands for, in nanoseconds.
        let used: Vec<f64> =
            column(samples, "threadCPUDelta").iter().map(|used| used.as_f64().unwrap() / 1e6).collect();
        let weights: Vec<f64> =
            column(samples, "weight").iter().map(|weight| weight.as_f64().unwrap()).collect();
        assert_eq!(used, weights);
        format!("{main}{pid} {tid}: at {} for {}", numbers("time"), numbers("weight"))
    };
    assert_eq!(
        threads.iter().map(text).collect::<Vec<_>>(),
        [
            // The main thread first, then the one that ran most.
            "main 40 41: at 1 for 0.5",
            "40 42: at 2 4 6 8 for 0.5 0.5 0.5 2",
            // It did not run, and has the name of its process.
            "main 50 51: at  for ",
            "50 52: at 5 for 0.5",
        ]
    );
    assert_eq!(profile["meta"]["initialSelectedThreads"], json!([1]));
    let stacks: Vec<String> =
        column(&threads[1]["samples"], "stack").iter().map(|leaf| stack(&profile, leaf)).collect();
    assert_eq!(stacks[0], "a!?");
    assert_eq!(stacks[1], "a!? !Shop.Order.Total");
    assert_eq!(stacks[2], "![DPC] ntoskrnl!?");
    assert_eq!(threads[3]["processShutdownTime"], 9);
    assert_eq!(threads[0]["processShutdownTime"], Value::Null);
    assert_eq!(threads[0]["processName"], "a.exe");
}

#[test]
fn markers_say_what_came_and_went() {
    let profile = profile(recording(), &[]);
    let markers = &profile["threads"][0]["markers"];
    let of = |number: usize| {
        let data = &column(markers, "data")[number];
        format!(
            "{} at {}: {data}",
            string(&profile, &column(markers, "name")[number]),
            column(markers, "startTime")[number]
        )
    };
    let all: Vec<String> = (0..column(markers, "name").len()).map(of).collect();
    assert_eq!(
        all[1..],
        [
            r#"Image load at 3: {"base":"0x500000","path":"C:\\app\\late.dll","size":8192,"type":"Image load"}"#,
            r#"Thread start at 3: {"name":"late","startAddress":"0x401000","thread":43,"type":"Thread start"}"#,
            r#"JIT at 3.0001: {"address":"0x70000000","method":"Shop.Order.Total","size":64,"tier":"Tier1","type":"JIT"}"#,
        ]
    );
    assert!(all[0].starts_with("Process at "), "{all:?}");
    assert_eq!(column(markers, "phase")[0], 1, "a process takes time");
    // Each field is in the schema of its kind.
    let schemas = profile["meta"]["markerSchema"].as_array().unwrap();
    for data in column(markers, "data") {
        let schema = schemas.iter().find(|schema| schema["name"] == data["type"]).unwrap();
        let keys: BTreeSet<&str> =
            schema["fields"].as_array().unwrap().iter().map(|field| field["key"].as_str().unwrap()).collect();
        assert!(data.as_object().unwrap().keys().all(|key| key == "type" || keys.contains(key.as_str())));
    }
}

#[test]
fn options_leave_out_samples_and_the_account_has_them() {
    let profile = profile(recording(), &["--tid", "42", "--from", "3ms"]);
    let lengths =
        |thread: &Value| (thread["tid"].as_u64().unwrap(), thread["samples"]["length"].as_u64().unwrap());
    let threads = profile["threads"].as_array().unwrap();
    assert_eq!(threads.iter().map(lengths).collect::<Vec<_>>(), [(41, 0), (42, 3)]);
    let entries = profile["meta"]["extra"][0]["entries"].as_array().unwrap();
    let value = |label: &str| entries.iter().find(|entry| entry["label"] == label).unwrap()["value"].clone();
    assert_eq!((value("All"), value("Kept"), value("Left out by options")), (json!(6), json!(3), json!(3)));
    assert_eq!((value("CPU time of the kept"), value("Kept, in DPCs")), (json!(3), json!(1)));
}

#[test]
fn a_name_is_text_whatever_is_in_it() {
    let evil = "</script><img src=x onerror=alert(1)>\u{1}\u{1b}[31m\"\\\n\u{202e}\u{fffe}\u{2028}";
    let long = format!("{evil}{}", "n".repeat(25_000));
    let etl = Etl::new()
        .event(0, START + 1, Process::dc_start(40, "a\u{1b}<b>.exe").command_line(&long))
        .event(0, START + 1, Thread::dc_start(40, 41).name(&long))
        .event(0, START + 2, Image::dc_start(40, CODE, 0x1000, &format!(r"C:\{evil}.dll")))
        .sampled(0, START + 10, 40, 41, &[CODE + 5]);
    let profile = profile(etl, &[]);
    assert_eq!(profile["threads"][0]["name"], format!("thread 41 {long}"));
    assert_eq!(profile["threads"][0]["markers"]["data"][0]["commandLine"], *long);
    assert_eq!(profile["libs"][0]["path"], format!(r"C:\{evil}.dll"));
}

#[test]
fn the_demo_has_inlined_functions_at_the_addresses_of_their_callers() {
    let convert = || etwprof(["examples/demo.etl", "-f", "firefox"]).success().stdout;
    let bytes = convert();
    assert_eq!(bytes, convert(), "the same profile is the same bytes");
    let profile = unpacked(&bytes);
    let (shared, mut inlined) = (&profile["shared"], 0);
    let (frames, funcs, natives) = (&shared["frameTable"], &shared["funcTable"], &shared["nativeSymbols"]);
    let of_stack = |stack: usize| index(&column(&shared["stackTable"], "frame")[stack]);
    // A function is one row, wherever its code is.
    let pairs: Vec<(String, String)> = column(funcs, "name")
        .iter()
        .zip(column(funcs, "resource"))
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect();
    assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
    for (stack, prefix) in column(&shared["stackTable"], "prefix").iter().enumerate() {
        let frame = of_stack(stack);
        let depth = column(frames, "inlineDepth")[frame].as_u64().unwrap();
        if depth == 0 {
            continue;
        }
        inlined += 1;
        let above = of_stack(index(prefix));
        for same in ["address", "nativeSymbol"] {
            assert_eq!(column(frames, same)[frame], column(frames, same)[above], "{same} of {frame}");
        }
        assert_eq!(column(frames, "inlineDepth")[above].as_u64().unwrap(), depth - 1);
    }
    assert!(inlined > 0, "the demo has inlined functions");
    // `d1` is part of `black_scholes` in the demo's own PDB.
    let name = |func: usize| string(&profile, &column(funcs, "name")[func]);
    let of_d1: BTreeSet<&str> = (0..column(frames, "func").len())
        .filter(|frame| name(index(&column(frames, "func")[*frame])) == "d1")
        .map(|frame| {
            string(&profile, &column(natives, "name")[index(&column(frames, "nativeSymbol")[frame])])
        })
        .collect();
    assert_eq!(of_d1.into_iter().collect::<Vec<_>>(), ["black_scholes"]);
    // Where there is a line there is a file to look it up in.
    let lines = column(frames, "line").iter().zip(column(frames, "func")).filter(|(line, _)| line.is_u64());
    let sources: Vec<&Value> = lines.map(|(_, func)| &column(funcs, "source")[index(func)]).collect();
    assert!(!sources.is_empty() && sources.iter().all(|source| source.is_u64()));
}

/// 264 collections in two processes, the pauses of one 29.0 ms together and at most 1.4 ms, that of the other 10.9 ms: an
/// independent count in the recording's events.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn collections_are_markers_and_heaps_a_track() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("out.json.gz");
    let recording = data::file("etl/perfview/net.4.5.2.x64.etl");
    etwprof([recording.as_os_str(), "--no-symbols".as_ref(), "-o".as_ref(), path.as_os_str()]).success();
    let profile = unpacked(&fs::read(path).unwrap());
    let of = |pid: &str, kind: &str| -> Vec<f64> {
        let threads = profile["threads"].as_array().unwrap();
        let thread =
            threads.iter().find(|thread| thread["pid"] == pid && thread["isMainThread"] == true).unwrap();
        let markers = &thread["markers"];
        let (names, starts) = (column(markers, "name"), column(markers, "startTime"));
        let ends = column(markers, "endTime");
        let all = (0..names.len()).filter(|place| string(&profile, &names[*place]) == kind);
        all.map(|place| ends[place].as_f64().unwrap() - starts[place].as_f64().unwrap()).collect()
    };
    let (collections, pauses) = (of("3676", "GC"), of("3676", "GC pause"));
    assert_eq!((collections.len() + of("3988", "GC").len(), pauses.len()), (264, 263));
    let longest = pauses.iter().copied().fold(0.0, f64::max);
    assert_eq!(
        (format!("{:.1}", pauses.iter().sum::<f64>()), format!("{longest:.1}")),
        ("29.0".into(), "1.4".into())
    );
    assert_eq!(of("3988", "GC pause").iter().map(|ms| format!("{ms:.1}")).collect::<Vec<_>>(), ["10.9"]);
    let counters = profile["counters"].as_array().unwrap();
    for counter in counters {
        let main = &profile["threads"][index(&counter["mainThreadIndex"])];
        assert_eq!((&main["pid"], &main["isMainThread"]), (&counter["pid"], &json!(true)));
        assert_eq!(column(&counter["samples"], "time").len(), column(&counter["samples"], "count").len());
    }
    // HeapStats of the recording: 58,744 bytes after the first collection of the one, 25,979,308 after that of the other.
    let firsts: Vec<&Value> = counters.iter().map(|counter| &counter["samples"]["count"][0]).collect();
    assert_eq!(firsts, [58_744, 25_979_308]);
}
