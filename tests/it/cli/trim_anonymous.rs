//! `etwprof trim --anonymize`: no byte of a record is kept that nobody accounts for.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::command::{Output, etwprof};
use crate::support::data;
use crate::support::stacks::machine;
use crate::synth::kernel::disk_io::{DiskIo, request};
use crate::synth::kernel::file_io::{created, deleted, rundown};
use crate::synth::kernel::page_fault::{fault, hard_fault};
use crate::synth::kernel::perfinfo::{
    collection_start, counter_sample, dpc, interval_without_name, isr, msi_isr, source_interval,
};
use crate::synth::kernel::system::{cpu_config, extension, lost, partition_info, rundown_complete};
use crate::synth::kernel::thread::{CSwitch, ready, set_name};
use crate::synth::{
    Etl, Event, Image, IntoEvent, Item, Process, START, Sample, Thread, clr, guid, image_id, stack_walk,
};

/// Words that are in nothing else; no part of one may be left.
const WIDE: &str = "AliceTyrellSecret";
const NARROW: &str = "BobDeckardHidden";

fn anonymized(whole: &Path, part: &Path) -> Output {
    let line = ["trim", "--json", "--anonymize", "--no-compress"].map(OsStr::new).into_iter();
    etwprof(line.chain([whole.as_os_str(), OsStr::new("-o"), part.as_os_str()])).success()
}

/// What became of a recording made by hand, and the bytes before and after.
fn anonymized_events(events: impl IntoIterator<Item = Event>) -> (Value, Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let times = (1_i64..).map(|step| START + 1_000 * step);
    let etl = times.zip(events).fold(machine(), |etl: Etl, (time, event)| etl.event(0, time, event));
    std::fs::write(&whole, etl.finish()).unwrap();
    let output = anonymized(&whole, &part);
    let done = serde_json::from_str(output.text()).unwrap();
    (done, std::fs::read(&whole).unwrap(), std::fs::read(&part).unwrap())
}

/// True if a file has a word, in single bytes or UTF-16, in any case.
fn has(file: &[u8], word: &str) -> bool {
    let wide: Vec<u8> = word.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let is_in = |word: &[u8]| file.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    is_in(word.as_bytes()) || is_in(&wide)
}

/// Four letters in a row of a word that a file has.
fn rest_of<'w>(file: &[u8], word: &'w str) -> Option<&'w str> {
    let parts = (0..=word.len() - 4).map(|at| &word[at..at + 4]);
    parts.into_iter().find(|part| has(file, part))
}

fn script(id: u16, url: &'static str) -> Event {
    Event::manifest(guid("57277741-3638-4a4b-bdba-0ac6e45da56c"), id, 0, move |bytes| match id {
        // A function: context, start, size, numbers, script, line, column, name.
        9 => bytes.ptr(0x1000).ptr(0x2000).u64(16).u32(1).u32(0).u64(7).u32(3).u32(5).utf16z("f"),
        // A script: id, context, flags, where it is from.
        _ => bytes.u64(7).ptr(0x1000).u32(0).utf16z(url),
    })
    .by(40, 41)
}

/// One record of each kind and layout whose end is known. The frames of stacks go on to the end of a record.
fn every_kind() -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for version in 0..=5 {
        events.push(Process::dc_start(40, "a.exe").version(version).into());
        events.push(Process::dc_start(40, "a.exe").no_sid().version(version).into());
    }
    for version in 0..=3 {
        events.push(Thread::dc_start(40, 41).version(version).into());
        events.push(Image::load(40, 0x7ff6_0000_0000, 0x1_0000, r"\Windows\a.exe").version(version).into());
    }
    let id = guid("11111111-2222-3333-4444-555555555555");
    events.extend([
        Process::end(40, "a.exe").into(),
        Process::defunct(40, "a.exe").into(),
        Thread::dc_start(40, 41).without_name().into(),
        Thread::start(40, 41).into(),
        Thread::end(40, 41).version(1).into(),
        set_name(40, 41, "worker"),
        CSwitch::new(41, 51).into(),
        ready(41, false).by(50, 51),
        Sample::new(0x1000, 41).into(),
        counter_sample(0x1000, 41, 4),
        collection_start(10_000),
        source_interval(4, 1_000, "CacheMisses"),
        interval_without_name(72, 0, 10_000, 5_000),
        dpc(START, 0x1000),
        isr(START, 0x1000, 7),
        msi_isr(START, 0x1000, 7, 1),
        fault(10, 0x1000, 0x2000),
        hard_fault(START, 0x1000, 41, 4096),
        request(12, 3, 0x1000, 40, 41),
        request(12, 2, 0x2000, 40, 41),
        DiskIo::read(0x1000, 100).asked_by(40, 41).into(),
        DiskIo::read(0x2000, 100).version(2).asked_by(40, 41).into(),
        DiskIo::flush(0x3000, 100).asked_by(40, 41).into(),
        created(0xffff_e000_0000_1000, r"\Device\a.txt"),
        deleted(0x1000, r"\Device\a.txt"),
        rundown(0x1000, r"\Device\a.txt"),
        stack_walk::kernel_key(START, 40, 41, 0x1000),
        cpu_config(3_000, 4, "WOPR", 9),
        extension([7, 2, 0, 0, 0, 0, 0, 0]),
        rundown_complete(),
        partition_info(),
        lost(32),
        image_id::image_id(40, 0x7ff6_0000_0000, 0x1_0000, 7, "a.exe"),
        image_id::dbg_id_none(40, 0x7ff6_0000_0000),
        image_id::dbg_id_rsds(40, 0x7ff6_0000_0000, id, 1, "a.pdb"),
        image_id::dbg_id_il_rsds(40, 0x7ff6_0000_0000, id, 1, "a.pdb"),
        image_id::portable_pdb(40, 0x7ff6_0000_0000, 7),
        image_id::deterministic(40, 0x7ff6_0000_0000),
        image_id::build_info(1, "lab", "Windows"),
        image_id::system_paths(r"C:\Windows\system32", r"C:\Windows\"),
        image_id::volume_mapping(r"\Device\HarddiskVolume3\", r"C:\"),
        clr::Method::load(40, 0x1000, 0x10, ["T", "M", "void ()"]).into(),
        clr::Method::load(40, 0x1000, 0x10, ["T", "M", "void ()"]).nameless().into(),
        clr::il_to_native_map(40, 1, 0, &[(0, 0), (1, 4)]),
        clr::jitting_started(40, 1, 2, 3, ["T", "M", "void ()"]),
        clr::r2r_entry_point(40, 1, 0x1000, ["T", "M", "void ()"]),
        clr::Module::load(40, 1, r"C:\Windows\a.dll").into(),
        clr::Module::load(40, 1, r"C:\Windows\a.dll").version(1).into(),
        clr::Module::load(40, 1, r"C:\Windows\a.dll").version(0).into(),
        clr::domain_module_load(40, 1, 2, r"C:\Windows\a.dll"),
        clr::assembly_load(40, 1, 2, "System"),
        clr::app_domain_load(40, 2, "a.exe", 1),
        clr::runtime_start(40, "a.exe", r"C:\Windows\coreclr.dll"),
        clr::dc_end_init(40),
        clr::dc_end_complete(40),
        clr::stack_walk(40, &[0x1000, 0x2000]),
        clr::gc_start(40, 1, 0, 0, 0),
        clr::gc_end(40, 1, 0),
        clr::suspend(40, 1),
        clr::resume(40),
        clr::exception(40, "System.Exception", "no"),
        clr::contention(40, 2, false, 41),
        clr::contention_end(40, 1.0),
        clr::pool_thread(40, 4),
        clr::pool_adjustment(40, 4, 0),
        clr::heap_stats(40, 2, [1, 2, 3, 4]),
        clr::allocation_tick(40, 4, 100, "T"),
        clr::allocation_sampled(40, 100, "T"),
        script(9, ""),
        script(41, "file"),
    ]);
    events
}

#[test]
fn text_behind_the_known_fields_goes() {
    let wide: Vec<u8> = WIDE.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let appended = |event: Event| [event.clone().extra(&wide), event.extra(NARROW.as_bytes()).extra(&[0])];
    let image = Image::load(40, 0x7ff6_0000_0000, 0x1_0000, r"\Windows\a.exe");
    // A version that nobody knows has the fields of the last that is known.
    let newer = [Process::defunct(40, "a.exe").into(), Thread::dc_start(40, 41).into(), image.into()];
    let newer: Vec<Event> = newer.into_iter().map(|event: Event| event.header_version(9)).collect();
    for events in [every_kind(), newer] {
        let (done, before, after) = anonymized_events(events.into_iter().flat_map(appended));
        assert_eq!(done["dropped"], json!({}));
        for word in [WIDE, NARROW] {
            assert!(has(&before, word));
            assert_eq!(rest_of(&after, word), None);
        }
    }
}

/// A header of the other pointer width, before a payload that stays as it is.
fn other_width(event: Event, bytes: usize) -> Event {
    let event = event.pointer_size(bytes);
    let code = match event.record(0, bytes)[2] {
        0x11 => 0x10,
        0x10 => 0x11,
        0x02 => 0x01,
        0x01 => 0x02,
        0x14 => 0x0A,
        0x0A => 0x14,
        0x13 => 0x12,
        0x12 => 0x13,
        other => panic!("no header {other:x}"),
    };
    event.patch(2, &[code])
}

#[test]
fn payloads_of_the_other_pointer_width_are_left_out() {
    let id = guid("11111111-2222-3333-4444-555555555555");
    let path = r"AliceTyrellSecret\AliceTyrellSecret.txt";
    let mut events: Vec<Event> = Vec::new();
    for version in 0..=3 {
        events.push(Image::dc_start(42, 0x1000_0000, 0x10_0000, path).version(version).into());
        events.push(Image::load(42, 0x1000_0000, 0x10_0000, path).version(version).into());
    }
    for version in 0..=5 {
        let process = Process::dc_start(42, "a.exe").version(version).command_line(path);
        let process = process.sid(5, &[21, 111_111_111, 222_222_222, 333_333_333, 1001]);
        events.extend([process.clone().into(), process.clone().no_sid().into()]);
        events.push(process.by(4, 8));
    }
    events.extend([
        Thread::dc_start(42, 43).name("AliceTyrellSecret's thread").into(),
        Thread::dc_start(42, 43).name("AliceTyrell").into(),
        created(0x1000, path),
        image_id::image_id(42, 0x1000_0000, 0x10_0000, 7, path),
        image_id::dbg_id_rsds(42, 0x1000_0000, id, 1, path),
        script(41, path),
    ]);
    let count = events.len();
    for bytes in [4, 8] {
        let events = events.iter().map(|event| other_width(event.clone(), bytes));
        let (done, before, after) = anonymized_events(events);
        assert!(has(&before, WIDE));
        assert_eq!(rest_of(&after, WIDE), None, "{bytes}");
        let sid = 222_222_222_u32.to_le_bytes();
        let has_sid = |file: &[u8]| file.windows(4).any(|part| part == sid);
        assert!(has_sid(&before) && !has_sid(&after), "{bytes}");
        assert_eq!(done["dropped"]["unknown_layout"], count, "{bytes}");
    }
    // Payloads of their headers' width are not.
    for bytes in [4, 8] {
        let events = events.iter().map(|event| event.clone().pointer_size(bytes));
        let (done, before, after) = anonymized_events(events);
        assert!(has(&before, WIDE));
        assert_eq!(rest_of(&after, WIDE), None, "{bytes}");
        assert_eq!(done["dropped"], json!({}), "{bytes}");
    }
}

#[test]
fn a_path_of_a_pdb_without_an_id_goes() {
    let none = guid("00000000-0000-0000-0000-000000000000");
    let module = clr::Module::load(42, 1, r"C:\Windows\a.dll").managed_pdb(none, 0, WIDE);
    let (done, before, after) = anonymized_events([module.into()]);
    assert!(has(&before, WIDE));
    assert_eq!(rest_of(&after, WIDE), None);
    assert_eq!(done["dropped"], json!({}));
}

/// What is between two items of an event, or behind the last, is nobody's.
#[test]
fn text_in_the_padding_of_items_goes() {
    let event = clr::by_thread(clr::gc_start(40, 1, 0, 0, 0), 40, 41)
        .item(Item::sid(5, &[18]))
        .item(Item::sid(5, &[18]));
    let before = event.record(0, 8);
    // Header of 80 bytes; each item has a head of 8 and a SID of 12, and 4 bytes to the next multiple of eight.
    assert_eq!(before[100..104], [0; 4]);
    let (done, before, after) = anonymized_events([event.patch(100, b"Dave").patch(124, b"Hall")]);
    assert!(has(&before, "Dave") && has(&before, "Hall"));
    assert!(!has(&after, "Dave") && !has(&after, "Hall"));
    assert_eq!(done["dropped"], json!({}));
}

#[test]
fn a_note_says_that_most_events_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let unknown = |etl: Etl, step: i64| {
        let event = Event::manifest(guid("11111111-2222-3333-4444-555555555555"), 7, 0, |bytes| bytes.u32(1));
        etl.event(0, START + 1_000 * step, event.by(40, 41))
    };
    let note = "most events were left out: etwprof does not know the layout of ";
    let said = |events: i64| {
        std::fs::write(&whole, (1..=events).fold(machine(), unknown).finish()).unwrap();
        anonymized(&whole, &part).stderr
    };
    let many = said(100);
    assert!(many.contains(&format!("{note}100 of ")), "{many}");
    let few = said(2);
    assert!(!few.contains(note), "{few}");
}

/// Texts of four and more characters in UTF-16, wherever they begin.
fn wide_texts(file: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    for start in [0, 1] {
        let (units, _) = file[start..].as_chunks::<2>();
        let is_text = |unit: &[u8; 2]| unit[1] == 0 && (b' '..=b'~').contains(&unit[0]);
        let runs = units.split(|unit| !is_text(unit)).filter(|run| run.len() >= 4);
        texts.extend(runs.map(|run| run.iter().map(|unit| char::from(unit[0])).collect::<String>()));
    }
    texts
}

/// The same in single bytes.
fn narrow_texts(file: &[u8]) -> Vec<String> {
    let runs = file.split(|byte| !(b' '..=b'~').contains(byte)).filter(|run| run.len() >= 4);
    runs.map(|run| String::from_utf8(run.to_vec()).unwrap()).collect()
}

/// Words of four and more letters, in lower case.
fn words<'t>(texts: impl IntoIterator<Item = &'t str>) -> BTreeSet<String> {
    let words =
        texts.into_iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let is_long = |word: &&str| word.chars().filter(char::is_ascii_alphabetic).count() >= 4;
    words.filter(is_long).map(str::to_lowercase).collect()
}

/// What paths of every Windows have.
const STAY: [&str; 8] = ["windows", "system32", "systemroot", "debug", "data", "common", "tzres", "winsxs"];

/// What a recording says of who made it: the folders of its paths, its command lines, and the names of the session and
/// of its file. Names of programs and DLLs stay.
fn secrets(file: &[u8]) -> BTreeSet<String> {
    let texts = wide_texts(file);
    let is_code = |name: &str| [".dll", ".exe", ".sys"].iter().any(|end| name.to_lowercase().ends_with(end));
    let parts = texts.iter().map(|text| match text.rsplit_once('\\') {
        Some((folders, name)) if !text.contains('"') && is_code(name) => (folders, name),
        _ => (text.as_str(), ""),
    });
    let (secrets, names): (Vec<&str>, Vec<&str>) = parts.unzip();
    let names = words(names);
    let mut secrets = words(secrets);
    secrets.retain(|word| !STAY.contains(&word.as_str()) && !names.contains(word));
    secrets
}

/// Records of 32-bit headers with payloads of both widths, in every old version.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn nothing_is_left_of_old_recordings_of_either_width() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let mut files: Vec<_> = std::fs::read_dir(data::file("etl/sawbuck"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "etl"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 17);
    let mut all = BTreeSet::new();
    for whole in &files {
        anonymized(whole, &part);
        let (before, after) = (std::fs::read(whole).unwrap(), std::fs::read(&part).unwrap());
        let (wide, narrow) = (wide_texts(&after), narrow_texts(&after));
        let (wide, narrow) = [wide, narrow].map(|texts| words(texts.iter().map(String::as_str))).into();
        let secrets = secrets(&before);
        for word in &secrets {
            assert!(!wide.contains(word), "{word} of {}", whole.display());
            // The name of a program stays, which stands in single bytes.
            assert!(word == "notepad" || !narrow.contains(word), "{word} of {}", whole.display());
        }
        // The machine's part of the user's SID, S-1-5-21-.
        let sid = [0x15, 0, 0, 0, 0x96, 0x2c, 0xec, 0x2c];
        assert!(!after.windows(sid.len()).any(|part| part == sid), "{}", whole.display());
        all.extend(secrets);
    }
    for word in ["sawbuck", "trunk", "log_lib", "session", "notepad"] {
        assert!(all.contains(word), "{word} of {all:?}");
    }
}
