//! `etwprof trim` for recordings that go elsewhere: without names of people and places, and with the ids of PDBs.

use std::ffi::OsStr;
use std::path::Path;

use etwprof::trace::PdbId;
use serde_json::Value;

use crate::support::command::etwprof;
use crate::support::data;
use crate::support::image::{Pe, words};
use crate::support::reading::{self, info};
use crate::support::stacks::machine;
use crate::synth::kernel::file_io::created;
use crate::synth::kernel::system::cpu_config;
use crate::synth::kernel::thread::set_name;
use crate::synth::{Etl, Event, Image, IntoEvent, Item, Process, START, clr, guid};

fn trim(whole: &Path, part: &Path, more: &[&OsStr]) -> Value {
    let line = ["trim", "--json", "-q"].map(OsStr::new).into_iter();
    let line =
        line.chain([whole.as_os_str(), OsStr::new("-o"), part.as_os_str()]).chain(more.iter().copied());
    serde_json::from_str(etwprof(line).success().text()).unwrap()
}

fn folded(file: &Path) -> Vec<String> {
    let line = ["convert", "-q", "-f", "folded", "--offline"].map(OsStr::new).into_iter();
    let output = etwprof(line.chain([file.as_os_str()])).success();
    let mut lines: Vec<String> = output.text().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// True if a file has a word, in UTF-8 or UTF-16, in any case.
fn has(file: &[u8], word: &str) -> bool {
    let wide: Vec<u8> = word.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let is_in = |word: &[u8]| file.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    is_in(word.as_bytes()) || is_in(&wide)
}

const APP: u64 = 0x7ff6_1000_0000;

/// A program of Alice on the machine WOPR, whose names are in every place that has names.
fn of_alice() -> Etl {
    let t = |step: i64| START + 10_000 * step;
    let start = Process::dc_start(42, "Orders.exe")
        .sid(5, &[21, 111_111_111, 222_222_222, 333_333_333, 1001])
        .command_line(r#""C:\Users\Alice\bin\Orders.exe" --customer Tyrell"#);
    let manifest = Event::manifest(guid("11111111-2222-3333-4444-555555555555"), 7, 0, |bytes| {
        bytes.utf16z("mail from alice")
    });
    let session = Event::manifest(guid("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"), 12, 0, |bytes| {
        bytes.utf16z("a session").utf16z(r"C:\Users\Alice\kernel.etl")
    });
    let module = clr::Module::load(42, 1, r"C:\Users\Alice\bin\Orders.dll");
    let method = clr::Method::load(42, 0x7ffa_1000_0000, 0x100, ["N.T", "Run", "void  ()"]);
    let image = |base, name: &str| Image::dc_start(42, base, 0x10_0000, name);
    let mut etl = machine()
        .event(0, t(0), cpu_config(3000, 4, "WOPR", 9))
        .event(0, t(1), start)
        .event(0, t(2), set_name(42, 43, "Alice's thread"))
        .event(0, t(3), image(APP, r"\Device\HarddiskVolume3\Users\Alice\bin\Orders.exe"))
        .event(0, t(4), image(0x7ff8_0000_0000, r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll"))
        .event(0, t(5), clr::runtime_start(42, r"Orders.exe --customer Tyrell", r"D:\Alice\net\coreclr.dll"))
        .event(0, t(6), module)
        .event(0, t(7), method.module(1).id(9))
        .event(0, t(8), clr::exception(42, "System.IO.IOException", "no file C:\\Alice\\Tyrell.txt"))
        .event(0, t(9), created(0x1000, r"\Device\HarddiskVolume3\Users\Alice\Tyrell.docx"))
        .event(0, t(10), manifest.by(42, 43))
        .event(0, t(10), session.by(42, 43))
        .event(
            0,
            t(11),
            clr::by_thread(clr::gc_start(42, 1, 0, 0, 0), 42, 43)
                .item(Item::sid(5, &[21, 111_111_111, 9, 9, 1001])),
        );
    for step in 0..20 {
        etl = etl.sampled(0, t(20 + step), 42, 43, &[0x7ffa_1000_0010, APP + 0x1000, 0x7ff8_0000_1000]);
    }
    etl
}

#[test]
fn nothing_names_people_machines_or_folders() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    std::fs::write(&whole, of_alice().finish()).unwrap();
    let before = std::fs::read(&whole).unwrap();
    let sid = 111_111_111_u32.to_le_bytes();
    for filter in [&[][..], &["--pid", "42"]] {
        let mut more = vec![OsStr::new("--anonymize")];
        more.extend(filter.iter().map(OsStr::new));
        let done = trim(&whole, &part, &more);
        let after = std::fs::read(&part).unwrap();
        for word in ["alice", "wopr", "tyrell", "customer", "mail from"] {
            assert!(has(&before, word), "{word}");
            assert!(!has(&after, word), "{word}");
        }
        let has_sid = |file: &[u8]| file.windows(4).any(|part| part == sid);
        assert!(has_sid(&before) && !has_sid(&after));
        assert_eq!(done["dropped"]["unknown_layout"], 2);
        // What profiles and symbols need is there.
        for word in ["Orders.exe", "Orders.dll", r"\Windows\System32\ntdll.dll", "System.IO.IOException"] {
            assert!(has(&after, word), "{word}");
        }
        assert_eq!(folded(&part), folded(&whole));
    }
    let processes = info(&part)["processes"].clone();
    let orders = processes.as_array().unwrap().iter().find(|process| process["pid"] == 42).unwrap();
    let line = orders["command_line"].as_str().unwrap();
    assert!(line.starts_with(r#""C:\Users\"#) && line.contains(r#".exe" --"#), "{line}");
}

/// A user's name, the folder of his share, and a folder of his sources.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_recordings_have_the_same_tree_and_no_user() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, part) = (folder.path().join("plain.etl"), folder.path().join("part.etl"));
    for (file, words) in [
        ("etl/perfview/net.4.5.2.x64.etl", &["brianrob", "clrmain", "PerfInvestigations"][..]),
        ("etl/xperf/slow-ppt.etl", &["bruce"]),
    ] {
        let whole = data::file(file);
        let uncompressed = OsStr::new("--no-compress");
        trim(&whole, &plain, &[uncompressed]);
        trim(&whole, &part, &[uncompressed, OsStr::new("--anonymize")]);
        let (before, after) = (std::fs::read(&plain).unwrap(), std::fs::read(&part).unwrap());
        for word in words {
            assert!(has(&before, word) && !has(&after, word), "{word} in {file}");
        }
        assert_eq!(folded(&part), folded(&whole), "{file}");
    }
}

const ID: &str = "12345678-9abc-def0-1122-334455667788";
const OTHER_ID: &str = "22345678-9abc-def0-1122-334455667788";

/// An image with a link time, whose debug directory names PDBs: each an id, a path, and whether it is a portable one.
fn pe(timestamp: u32, size: u32, pdbs: &[(&str, &str, bool)]) -> Vec<u8> {
    let mut pe = Pe::new(0x8664).with_identity([timestamp, size, 0]);
    let mut entries = Vec::new();
    for (id, path, is_portable) in pdbs {
        let mut rsds = b"RSDS".to_vec();
        rsds.extend_from_slice(&guid(id).0);
        rsds.extend_from_slice(&3_u32.to_le_bytes());
        rsds.extend_from_slice(path.as_bytes());
        rsds.push(0);
        let at = pe.put(&rsds);
        // Characteristics, time, versions (0x504D marks a portable one), type 2 (CodeView), size, address, place in the file.
        let versions = if *is_portable { 0x504d_0100 } else { 0 };
        entries.extend(words(&[0, timestamp, versions, 2, rsds.len() as u32, at, at - 0x1000 + 0x400]));
    }
    let directory = pe.put(&entries);
    pe.with_directory(6, directory, entries.len() as u32).finish()
}

/// Precompiled code has a PDB of its own beside that of the IL; IL alone has one.
#[test]
fn both_pdbs_of_precompiled_images_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let images = folder.path().join("images");
    std::fs::create_dir_all(&images).unwrap();
    let (native, portable, windows) =
        ((ID, "x.ni.pdb", false), (OTHER_ID, r"D:\x.pdb", true), (OTHER_ID, r"D:\x.pdb", false));
    let files = [
        ("R2r.dll", &[native, portable][..]),
        ("Ngen.dll", &[windows, native]),
        ("Il.dll", &[portable]),
        ("Native.dll", &[windows]),
    ];
    let mut etl = machine();
    for ((step, base), (name, pdbs)) in (5..).zip((0..).map(|step| APP + step * 0x100_0000)).zip(files) {
        std::fs::write(images.join(name), pe(0x5f00_0001, 0x10_0000, pdbs)).unwrap();
        let image = Image::load(40, base, 0x10_0000, &format!(r"\Device\HarddiskVolume3\app\{name}"));
        etl = etl.event(0, START + step, image.time_date_stamp(0x5f00_0001));
    }
    std::fs::write(&whole, etl.sampled(0, START + 20, 40, 41, &[APP + 0x1000]).finish()).unwrap();
    trim(&whole, &part, &[OsStr::new("--images"), images.as_os_str()]);
    let trace = reading::file(&part);
    let text = |pdb: &PdbId| format!("{} {}", pdb.name, pdb.id.guid);
    let known = |name: &str| {
        let module = trace.modules.iter().find(|module| module.file_name() == name).unwrap();
        (module.pdb.as_ref().map(text), module.managed_pdb.as_ref().map(text))
    };
    let native = Some(format!("x.ni.pdb {ID}"));
    let il = Some(format!(r"D:\x.pdb {OTHER_ID}"));
    assert_eq!(known("R2r.dll"), (native.clone(), il.clone()));
    assert_eq!(known("Ngen.dll"), (native, il.clone()));
    assert_eq!(known("Il.dll"), (il.clone(), None));
    assert_eq!(known("Native.dll"), (il, None));
}

#[test]
fn ids_of_pdbs_come_from_image_files() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let images = folder.path().join("images");
    std::fs::create_dir_all(images.join("below")).unwrap();
    std::fs::write(
        images.join("below").join("Orders.exe"),
        pe(0x5f00_0001, 0x10_0000, &[(ID, r"D:\Alice\Orders.pdb", false)]),
    )
    .unwrap();
    // The name of another build.
    let other = pe(0x5f00_0009, 0x10_0000, &[(ID, "Other.pdb", false)]);
    std::fs::write(images.join("Other.dll"), other).unwrap();
    let image = |base, name: &str| Image::load(40, base, 0x10_0000, name).time_date_stamp(0x5f00_0001);
    let etl = machine()
        .event(0, START + 5, image(APP, r"\Device\HarddiskVolume3\app\Orders.exe"))
        .event(0, START + 6, image(APP + 0x100_0000, r"\Device\HarddiskVolume3\app\Other.dll"))
        .sampled(0, START + 9, 40, 41, &[APP + 0x1000]);
    std::fs::write(&whole, etl.finish()).unwrap();
    let pdbs = |file: &Path| -> Vec<(String, Value, Value)> {
        let info = info(file);
        let modules = info["modules"].as_array().unwrap().clone();
        let name = |module: &Value| module["path"].as_str().unwrap().rsplit('\\').next().unwrap().to_owned();
        let mut rows: Vec<_> = modules
            .iter()
            .map(|module| (name(module), module["pdb_name"].clone(), module["pdb_guid"].clone()))
            .collect();
        rows.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        rows
    };
    let none = |name: &str| (name.to_owned(), Value::Null, Value::Null);
    let is_ours = |row: &(String, Value, Value)| ["Orders.exe", "Other.dll"].contains(&row.0.as_str());
    let of = |file: &Path| pdbs(file).into_iter().filter(is_ours).collect::<Vec<_>>();
    assert_eq!(of(&whole), [none("Orders.exe"), none("Other.dll")]);
    let done = trim(&whole, &part, &[OsStr::new("--images"), images.as_os_str()]);
    let found = |pdb: &str| ("Orders.exe".to_owned(), Value::from(pdb), Value::from(ID));
    assert_eq!(of(&part), [found(r"D:\Alice\Orders.pdb"), none("Other.dll")]);
    assert_eq!(done["events_out"].as_u64().unwrap(), done["events_in"].as_u64().unwrap() + 2);
    trim(&whole, &part, &["--images".as_ref(), images.as_os_str(), "--anonymize".as_ref()]);
    assert_eq!(of(&part), [found("Orders.pdb"), none("Other.dll")]);
    let output =
        etwprof(["trim", whole.to_str().unwrap(), "-o", part.to_str().unwrap(), "--images", "nowhere"]);
    assert!(
        output.code == 2 && output.stderr.contains("--images: there is no folder nowhere"),
        "{}",
        output.stderr
    );
}
