//! Real files of every kind: each opens and reads to its end, alone, beside others, and inside a zip.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use etwprof::etl::Recording;
use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::data;
use crate::support::reading::{self, info, json, number};
use crate::synth::Etl;

/// Files below `etl` with what is known of them: events, buffers, processors, build, pointer size, clock frequency.
/// Counted from the bytes by other means than this library.
const FILES: [(&str, [u64; 6]); 13] = [
    ("perfview/net.4.5.2.x64.etl", [179_474, 360, 8, 9_200, 8, 10_000_000]),
    ("perfview/gcevents/PerfViewData.etl", [71, 5, 8, 19_045, 8, 10_000_000]),
    ("perfview/gcrundownevents/PerfViewData.clrRundown.etl", [112, 2, 8, 19_045, 8, 10_000_000]),
    (
        "perfview/diaghub-dotnetcore3.1-win-x64-diagsession/diaghub.etl",
        [62_379, 103, 4, 19_041, 8, 10_000_000],
    ),
    (
        "perfview/diaghub-dotnetcore3.1-win-x64-diagsession/diaghub.kernel.1.etl",
        [1_035 + 15_299 + 1, 59, 4, 19_041, 8, 10_000_000],
    ),
    (
        "perfview/diaghub-dotnetcore3.1-win-x64-diagsession/diaghub.user_paged.1.etl",
        [22_035, 139, 4, 19_041, 8, 10_000_000],
    ),
    (
        "perfview/diaghub-dotnetcore3.1-win-x64-diagsession/diaghub.user_injected.1.etl",
        [4, 2, 4, 19_041, 8, 10_000_000],
    ),
    ("airbus/AMSITrace.etl", [21, 6, 8, 18_362, 8, 10_000_000]),
    ("airbus/lxcore_kernel.etl", [4, 3, 6, 19_041, 8, 10_000_000]),
    ("perfview/primitive-types.etl", [7, 2, 8, 19_043, 8, 10_000_000]),
    ("perfview/SelfDescribingSingleEvent.etl", [22, 3, 12, 22_000, 8, 10_000_000]),
    ("perfview/PerfViewData.etl", [185_961, 405, 4, 7_601, 8, 10_000_000]),
    ("perfview/smallEtlFile.etl", [2, 2, 4, 10_586, 4, 3_117_777]),
];

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn known_files_are_what_they_are() {
    for (path, expected) in FILES {
        let file = data::file(&format!("etl/{path}"));
        let info = info(&file);
        let found = [
            number(&info, "/events/total"),
            number(&info, "/files/0/buffers"),
            number(&info, "/machine/cpus"),
            number(&info, "/machine/os_build"),
            number(&info, "/machine/pointer_size"),
            number(&info, "/clock/frequency"),
        ];
        assert_eq!(found, expected, "{path}");
        assert_eq!(info["clock"]["kind"], "qpc", "{path}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_header_of_the_x64_trace() {
    let file = data::file("etl/perfview/net.4.5.2.x64.etl");
    let recording = Recording::open(&[&file]).unwrap();
    let header = recording.header();
    assert_eq!((header.buffer_size, header.mode, header.platform.cpu_mhz), (65_536, 0x0401_0001, 3_592));
    assert_eq!((header.buffers_written, header.session.as_str()), (360, "Relogger"));
    let info = info(&file);
    assert_eq!(info["start_utc"], "2020-07-29T00:07:00.623616Z");
    assert_eq!(info["machine"]["architecture"], "x64");
    assert_eq!(info["machine"]["name"], "BRIANROB-W8");
    assert_eq!(info["machine"]["os_name"], "Windows 8 Pro");
    assert_eq!(info["processes"].as_array().unwrap().len(), 32 + 1 + 2, "rundown, started, defunct");
    assert_eq!(info["modules"].as_array().unwrap().len(), 1_763 + 35, "rundown, loaded");
}

/// No file in the real data is damaged. Losses are what the files themselves tell.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_file_reads_to_its_end() {
    let files = data::traces();
    for file in files {
        let info = info(&file);
        let name = file.display();
        assert_eq!(info["damaged"], Value::Array(Vec::new()), "{name}");
        assert_eq!(number(&info, "/lost/malformed_events"), 0, "{name}");
        assert_eq!(number(&info, "/lost/orphan_stacks"), 0, "{name}");
        let events = json([OsStr::new("events"), OsStr::new("--json"), file.as_os_str()]);
        let counted: u64 = events.as_array().unwrap().iter().map(|row| number(row, "/count")).sum();
        assert_eq!(counted, number(&info, "/events/total"), "{name}");
        assert!(counted > 0, "{name}");
        let unknown =
            |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with("unknown header"));
        assert_eq!(events.as_array().unwrap().iter().find(unknown), None, "{name}");

        let losses =
            ["events", "buffers", "sequence_gaps"].map(|loss| number(&info, &format!("/lost/{loss}")));
        let expected = match file.file_name().and_then(OsStr::to_str).unwrap() {
            "AMSITrace.etl" => [3, 0, 0],
            "Traces_Process.etl" => [0, 0, 2],
            _ => [0, 0, 0],
        };
        assert_eq!(losses, expected, "{name}");
    }
}

/// The header may be wrong about the buffers' size: 41 buffers of 1 MiB are read by their own.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_wrong_buffer_size_in_the_header_costs_nothing() {
    let file = data::file("etl/etwanalyzer/TraceLoggingTester.etl");
    let bytes = fs::read(file).unwrap();
    for size in [131_072u32, 65_536, 16_384] {
        let mut bytes = bytes.clone();
        bytes[0x68..0x6c].copy_from_slice(&size.to_le_bytes());
        let recording = Recording::from_bytes("patched.etl", bytes).unwrap();
        let mut events = 0;
        reading::events(&recording, |_| events += 1);
        assert_eq!(events, 172_714, "{size}");
    }
}

/// Every file begins with a record about itself, and that is an event as all others are.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_header_record_of_each_file_counts() {
    let files = data::traces();
    let headers = |files: &[PathBuf]| {
        let args = ["events", "--json"].map(OsString::from);
        let rows = json(args.into_iter().chain(files.iter().map(OsString::from)));
        let is_header = |row: &&Value| row["name"] == "EventTrace/Header";
        rows.as_array().unwrap().iter().filter(is_header).map(|row| number(row, "/count")).sum::<u64>()
    };
    for file in &files {
        assert_eq!(headers(std::slice::from_ref(file)), 1, "{}", file.display());
    }
    assert_eq!(headers(&session()), 4);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_file_given_twice_is_refused() {
    let file = data::file("etl/perfview/gcevents/PerfViewData.etl");
    let folder = tempfile::tempdir().unwrap();
    let (copy, zip) = (folder.path().join("copy.etl"), folder.path().join("gc.etl.zip"));
    fs::copy(&file, &copy).unwrap();
    zipped(&zip, std::slice::from_ref(&file));
    for second in [&file, &copy, &zip] {
        let error = Recording::open(&[&file, second]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} and ", file.display())), "{error}");
        assert!(error.ends_with(" are the same recording; name it only once"), "{error}");
        assert!(error.contains(second.to_str().unwrap()), "{error}");
    }
}

/// Parts of one recording agree in what their headers say of the machine and its start.
#[test]
fn recordings_of_two_machines_are_refused() {
    let one = || Etl::new().cpus(8).build(19_045);
    let hour = 36_000_000_000;
    let booted = |before: i64| one().boot_time(133_916_868_000_000_000 - before);
    let folder = tempfile::tempdir().unwrap();
    let open = |second: Etl| {
        let paths = ["a.etl", "b.etl"].map(|name| folder.path().join(name));
        for (path, etl) in paths.iter().zip([one(), second.names("other", "b.etl")]) {
            fs::write(path, etl.finish()).unwrap();
        }
        Recording::open(&paths).map(drop).map_err(|error| error.to_string())
    };
    for (second, difference) in [
        (one().cpus(4), "their machines have 8 and 4 processors"),
        (one().build(26_100), "their machines run Windows builds 19045 and 26100"),
        (booted(2 * hour), "they were recorded after different boots"),
    ] {
        let error = open(second).unwrap_err();
        assert!(error.contains("a.etl and ") && error.contains("b.etl are not parts"), "{error}");
        assert!(error.contains(difference), "{error}");
    }
    // The clock was set, or the writer left its fields at 0.
    for second in [one(), one().cpus(0), one().build(0), booted(hour + hour / 60), one().boot_time(0)] {
        assert_eq!(open(second), Ok(()));
    }
}

const SESSION: [&str; 4] =
    ["diaghub.etl", "diaghub.kernel.1.etl", "diaghub.user_paged.1.etl", "diaghub.user_injected.1.etl"];

fn session() -> Vec<PathBuf> {
    let folder = data::file("etl/perfview/diaghub-dotnetcore3.1-win-x64-diagsession");
    SESSION.iter().map(|name| folder.join(name)).collect()
}

/// `info` and `events` of these files, without what depends on where they lie: an archive may have symbols too.
fn told(files: &[PathBuf]) -> (Value, Value) {
    let args = |command: &'static str| {
        [command, "--json"].map(OsString::from).into_iter().chain(files.iter().map(OsString::from))
    };
    let mut info = json(args("info"));
    info.as_object_mut().unwrap().remove("files");
    for (list, field) in [("modules", "symbols"), ("processes", "frames")] {
        for entry in info[list].as_array_mut().unwrap() {
            entry.as_object_mut().unwrap().remove(field).unwrap();
        }
    }
    (info, json(args("events")))
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn parts_of_a_session_make_one_trace_in_any_order() {
    let files = session();
    let expected = told(&files);
    assert_eq!(number(&expected.0, "/events/total"), 62_379 + 16_335 + 22_035 + 4);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        let reordered: Vec<PathBuf> = order.iter().map(|index| files[*index].clone()).collect();
        assert!(told(&reordered) == expected, "in the order {order:?}");
    }
}

/// The images are in one file of the session and their identities in another.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn identities_reach_images_of_another_file() {
    let files = session();
    let (info, _) = told(&files);
    let modules = info["modules"].as_array().unwrap();
    let known = modules.iter().filter(|module| module["pdb_guid"].is_string()).count();
    // 15,076 of the 15,423 identities name a PDB.
    assert!(known * 100 > modules.len() * 96, "{known} of {} modules have a PDB", modules.len());
    let (alone, _) = told(&files[1..2]);
    let pdbs =
        alone["modules"].as_array().unwrap().iter().filter(|module| module["pdb_guid"].is_string()).count();
    assert_eq!(pdbs, 0, "the kernel's file alone has none");

    // The identity of a reproducible build has the link time 0: what the kernel said of it stays.
    let dated = |info: &Value| -> BTreeSet<String> {
        let modules =
            info["modules"].as_array().unwrap().iter().filter(|module| module["timestamp"].is_u64());
        modules
            .map(|module| format!("{} {} {}", module["pid"], module["base"], module["timestamp"]))
            .collect()
    };
    let (by_kernel, by_both) = (dated(&alone), dated(&info));
    assert!(by_kernel.len() > 300 && by_kernel.is_subset(&by_both));
    // 15,423 - 13,054 identities have one.
    assert!(by_both.len() > 2_369, "{}", by_both.len());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_zip_is_the_files_in_it() {
    let files = session();
    let folder = tempfile::tempdir().unwrap();
    let diagsession = folder.path().join("session.diagsession");
    zipped(&diagsession, &files);
    assert!(told(&[diagsession]) == told(&files));

    let gc = data::file("etl/perfview/gcevents/PerfViewData.etl");
    let etl_zip = folder.path().join("gc.ETL.ZIP");
    zipped(&etl_zip, std::slice::from_ref(&gc));
    assert!(told(&[etl_zip]) == told(&[gc]));
}

/// A zip with folders and other files beside the recordings, as the real ones have.
fn zipped(path: &Path, files: &[PathBuf]) {
    let mut zip = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default();
    zip.start_file("metadata.xml", options).unwrap();
    zip.write_all(b"<Package/>").unwrap();
    zip.add_directory("sc.user_aux.etl/", options).unwrap();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        zip.start_file(format!("sc.user_aux.etl/{name}"), options).unwrap();
        zip.write_all(&fs::read(file).unwrap()).unwrap();
    }
    zip.finish().unwrap();
}

/// The archives as PerfView and Visual Studio wrote them.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn archives_of_other_tools_open() {
    let folder = "etl/perfview";
    for (archive, unpacked) in [
        ("net.4.5.2.x64.etl.zip", vec!["net.4.5.2.x64.etl"]),
        ("net.4.5.x86-2016.etl.zip", vec!["PerfViewData.etl"]),
        ("gcrundownevents.etl.zip", vec!["gcrundownevents/PerfViewData.clrRundown.etl"]),
    ] {
        let archive = data::packed(&format!("{folder}/{archive}"));
        let files: Vec<PathBuf> =
            unpacked.iter().map(|file| data::file(&format!("{folder}/{file}"))).collect();
        assert!(told(std::slice::from_ref(&archive)) == told(&files), "{}", archive.display());
    }
    let archive = data::packed(&format!("{folder}/diaghub-dotnetcore3.1-win-x64-diagsession.zip"));
    let files = session();
    assert!(told(&[archive]) == told(&files));
}

/// One recording on a QPC of another frequency than 10 MHz, beside the manifest time of its first events.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn clocks_of_other_frequencies() {
    for (file, frequency) in [
        ("etl/tx/Traces_Process.etl", 2_109_960),
        ("etl/tx/Traces_KernelNetwork.etl", 2_994_853),
        ("etl/tx/Traces_BondEtwSample.etl", 2_630_627),
        ("etl/sawbuck/image_data_32_v0.etl", 2_337_949),
        ("etl/sawbuck/test_data_64_v2.etl", 14_318_180),
    ] {
        let file = data::file(file);
        let recording = Recording::open(&[&file]).unwrap();
        let (clock, header) = (recording.clock(), recording.header());
        assert_eq!(clock.frequency, frequency);
        let trace = reading::trace(&recording);
        let (first, last) = trace.span.unwrap();
        assert!(clock.seconds(first) >= 0.0);
        // The log was closed within moments of its last event, by another clock.
        let closed = (header.end - clock.base_utc) as f64 / 1e7;
        let quiet = closed - clock.seconds(last);
        assert!((-1.0..60.0).contains(&quiet), "{}: closed {quiet} s after its last event", file.display());
    }
}
