//! What was mapped at an address of a process at a moment: one test for each rule.

use etwprof::debug_id::DebugId;
use etwprof::trace::{Module, PdbId};
use serde_json::Value;

use crate::support::reading;
use crate::support::stacks::{machine, stacks};
use crate::synth::{Etl, Image, IntoEvent, Process, START, Thread, guid, image_id};

const T: i64 = START + 1_000_000;
const MS: i64 = 10_000;
const BASE: u64 = 0x7ff6_0000_0000;

/// A sample of process 40 at this offset of the base.
fn at(etl: Etl, time: i64) -> Etl {
    etl.sampled(0, time, 40, 41, &[BASE + 0x10])
}

fn module(etl: Etl, name: &str) -> Module {
    let trace = reading::synthetic(etl);
    let mut of_name = trace.modules.iter().filter(|module| module.file_name() == name);
    let module = of_name.next().expect("a module of that name").clone();
    assert_eq!(of_name.next(), None, "one module of that name");
    module
}

fn load(name: &str) -> Image {
    Image::load(40, BASE, 0x1000, name)
}

fn unload(name: &str) -> Image {
    Image::unload(40, BASE, 0x1000, name)
}

#[test]
fn loaded_and_unloaded() {
    let etl = at(machine(), T).event(0, T + MS, load("x.dll"));
    let etl = at(etl, T + 2 * MS).event(0, T + 3 * MS, unload("x.dll"));
    assert_eq!(
        stacks(at(etl, T + 4 * MS)),
        ["a.exe: 0x7ff600000010", "a.exe: x!0x10", "a.exe: 0x7ff600000010"]
    );
}

#[test]
fn another_file_at_the_same_base() {
    let etl = machine().event(0, T, load("x.dll"));
    let etl = at(etl, T + MS).event(0, T + 2 * MS, unload("x.dll")).event(0, T + 3 * MS, load("y.dll"));
    let etl = at(etl, T + 4 * MS).event(0, T + 5 * MS, unload("y.dll")).event(0, T + 6 * MS, load("x.dll"));
    assert_eq!(stacks(at(etl, T + 7 * MS)), ["a.exe: x!0x10", "a.exe: y!0x10", "a.exe: x!0x10"]);
}

#[test]
fn another_file_at_the_same_base_and_the_unload_was_lost() {
    let etl = at(machine().event(0, T, load("x.dll")), T + MS).event(0, T + 2 * MS, load("y.dll"));
    assert_eq!(stacks(at(etl, T + 3 * MS)), ["a.exe: x!0x10", "a.exe: y!0x10"]);
}

#[test]
fn the_end_rundown_may_be_all_there_is() {
    let etl = at(machine(), T).event(0, T + MS, Image::dc_end(40, BASE, 0x1000, "x.dll"));
    assert_eq!(stacks(etl), ["a.exe: x!0x10"], "as it was there from the beginning");
}

#[test]
fn an_unload_may_be_all_there_is() {
    let etl = at(machine(), T).event(0, T + MS, unload("x.dll"));
    assert_eq!(stacks(at(etl, T + 2 * MS)), ["a.exe: x!0x10", "a.exe: 0x7ff600000010"]);
}

#[test]
fn an_unload_and_an_end_rundown_of_another_file() {
    let etl = at(machine(), T).event(0, T + MS, unload("x.dll"));
    let etl = at(etl, T + 2 * MS).event(0, T + 3 * MS, Image::dc_end(40, BASE, 0x1000, "y.dll"));
    assert_eq!(stacks(etl), ["a.exe: x!0x10", "a.exe: y!0x10"]);
}

#[test]
fn rundowns_and_loads_tell_of_one_mapping() {
    let path = r"\Device\HarddiskVolume2\x.dll";
    let etl = machine().event(0, T, Image::dc_start(40, BASE, 0x1000, path)).event(
        0,
        T + MS,
        Image::dc_end(40, BASE, 0x1000, path),
    );
    assert_eq!(reading::synthetic(etl).mappings.iter().count(), 1);
    // A load has the short form of the path, the rundown the long one.
    let etl = machine().event(0, T, load(r"\x.dll")).event(0, T + MS, Image::dc_end(40, BASE, 0x1000, path));
    let trace = reading::synthetic(etl);
    assert_eq!(trace.mappings.iter().count(), 1);
    assert_eq!(trace.modules[0].path, path, "the whole path");
}

#[test]
fn the_creator_maps_a_new_executable_for_a_moment() {
    let exe = |pid| Image::load(pid, BASE, 0x1000, "child.exe");
    let etl = machine()
        .event(0, T, exe(40))
        .event(0, T + 1, Process::start(60, "child.exe").parent(40).by(40, 41))
        .event(0, T + 2, unload("child.exe"))
        .event(0, T + 3, exe(60).by(60, 61))
        .sampled(0, T + MS, 60, 61, &[BASE + 0x10]);
    assert_eq!(stacks(at(etl, T + 2 * MS)), ["child.exe: child!0x10", "a.exe: 0x7ff600000010"]);
}

#[test]
fn the_payload_names_the_process() {
    let etl = machine().event(0, T, load("x.dll").by(50, 51));
    assert_eq!(stacks(at(etl, T + MS)), ["a.exe: x!0x10"]);
}

#[test]
fn each_process_has_its_own() {
    let etl = machine()
        .event(0, T, load("x.dll"))
        .event(0, T, Image::load(50, BASE, 0x1000, "y.dll"))
        .sampled(0, T + 5 * MS, 50, 51, &[BASE + 0x10]);
    assert_eq!(stacks(at(etl, T + MS)), ["a.exe: x!0x10", "b.exe: y!0x10"]);
}

#[test]
fn kernel_modules_serve_all_processes() {
    let kernel = 0xffff_f800_0000_0000;
    // Whatever process the record names.
    for pid in [0, 4, 50] {
        let etl = machine()
            .event(0, T, Image::dc_start(pid, kernel, 0x1000, "x.sys"))
            .sampled(0, T + MS, 40, 41, &[kernel + 0x10, 0xa])
            .sampled(0, T + 2 * MS, 4, 5, &[kernel + 0x20]);
        assert_eq!(stacks(etl), ["a.exe: 0xa x!0x10", "System: x!0x20"]);
    }
}

#[test]
fn a_process_id_used_again_has_no_images_of_its_former_owner() {
    let again = |etl: Etl| {
        etl.event(0, T + 10 * MS, Process::end(40, "a.exe"))
            .event(0, T + 90 * MS, Process::start(40, "new.exe"))
            .event(0, T + 90 * MS, Thread::start(40, 41).by(50, 51))
    };
    let etl = again(at(machine().event(0, T, load("x.dll")), T + MS));
    assert_eq!(stacks(at(etl.clone(), T + 91 * MS)), ["a.exe: x!0x10", "new.exe: 0x7ff600000010"]);

    // Its own are at the same places: ntdll is, in every process.
    let loaded = at(etl.clone().event(0, T + 90 * MS + 5, load("x.dll")), T + 91 * MS);
    assert_eq!(stacks(loaded), ["a.exe: x!0x10", "new.exe: x!0x10"]);
    let listed = at(etl, T + 91 * MS).event(0, T + 95 * MS, Image::dc_end(40, BASE, 0x1000, "x.dll"));
    assert_eq!(stacks(listed), ["a.exe: x!0x10", "new.exe: x!0x10"]);
}

#[test]
fn code_of_a_process_that_ended() {
    let etl = at(machine().event(0, T, load("x.dll")), T + MS).event(0, T + 2 * MS, unload("x.dll")).event(
        0,
        T + 3 * MS,
        Process::end(40, "a.exe"),
    );
    assert_eq!(stacks(etl), ["a.exe: x!0x10"]);
}

#[test]
fn a_stack_told_late_is_of_its_own_time() {
    // The user part comes after the unload; its addresses are of the sample's time.
    let etl =
        machine().event(0, T, load("x.dll")).event(0, T + MS, crate::synth::Sample::new(BASE + 0x10, 41));
    let etl = etl.event(0, T + 2 * MS, unload("x.dll")).event(
        0,
        T + 3 * MS,
        crate::synth::stack_walk::full(T + MS, 40, 41, &[BASE + 0x10]),
    );
    assert_eq!(stacks(etl), ["a.exe: x!0x10"]);
}

#[test]
fn the_ends_of_a_mapping() {
    let etl =
        machine().event(0, T, load("x.dll")).event(0, T, Image::load(40, BASE + 0x1000, 0x1000, "y.dll"));
    let frames = [BASE - 1, BASE, BASE + 0xfff, BASE + 0x1000, BASE + 0x1fff, BASE + 0x2000];
    let etl = frames
        .into_iter()
        .zip(1..)
        .fold(etl, |etl, (address, ms)| etl.sampled(0, T + ms * MS, 40, 41, &[address]));
    assert_eq!(
        stacks(etl),
        ["0x7ff5ffffffff", "x!0x0", "x!0xfff", "y!0x0", "y!0xfff", "0x7ff600002000"]
            .map(|f| format!("a.exe: {f}"))
    );
}

mod identities {
    use super::*;

    const GUID: &str = "00112233-4455-6677-8899-aabbccddeeff";

    fn pdb(name: &str, age: u32) -> Option<PdbId> {
        let guid = etwprof::guid::Guid::from_u128(0x00112233_4455_6677_8899_aabbccddeeff);
        Some(PdbId { name: name.to_owned(), id: DebugId { guid, age } })
    }

    #[test]
    fn of_two_of_a_kind_the_later_counts() {
        // Two sessions tell those of two images at one moment, in turns.
        let other = BASE + 0x10_0000;
        let etl = machine()
            .event(0, T, image_id::dbg_id_rsds(40, other, guid(GUID), 7, "y.pdb"))
            .event(0, T, image_id::dbg_id_rsds(40, BASE, guid(GUID), 1, "old.pdb"))
            .event(0, T, image_id::dbg_id_il_rsds(40, other, guid(GUID), 8, "y-il.pdb"))
            .event(0, T, image_id::dbg_id_rsds(40, BASE, guid(GUID), 2, "x.pdb"))
            .event(0, T, load("x.dll"))
            .event(0, T, Image::load(40, other, 0x1000, "y.dll"));
        let (x, y) = (module(etl.clone(), "x.dll"), module(etl, "y.dll"));
        assert_eq!((x.pdb, x.managed_pdb), (pdb("x.pdb", 2), None));
        assert_eq!((y.pdb, y.managed_pdb), (pdb("y.pdb", 7), pdb("y-il.pdb", 8)));
    }

    #[test]
    fn the_time_base_and_process_name_the_image() {
        // Another image is loaded at the same moment.
        let other = BASE + 0x10_0000;
        let etl = machine()
            .event(0, T, image_id::file_version(0x1000, 0x5555, "x.dll", "1.0"))
            .event(0, T, image_id::image_id(40, BASE, 0x1000, 0x5555, "x.dll"))
            .event(0, T, image_id::dbg_id_rsds(40, BASE, guid(GUID), 3, r"d:\build\x.pdb"))
            .event(0, T, image_id::dbg_id_il_rsds(40, BASE, guid(GUID), 4, "x-il.pdb"))
            .event(0, T, load("x.dll"))
            .event(0, T, image_id::image_id(40, other, 0x1000, 0x6666, "y.dll"))
            .event(0, T, image_id::dbg_id_none(40, other))
            .event(0, T, Image::load(40, other, 0x1000, "y.dll"));
        let (x, y) = (module(etl.clone(), "x.dll"), module(etl, "y.dll"));
        assert_eq!(
            (x.timestamp, x.pdb, x.managed_pdb),
            (0x5555, pdb(r"d:\build\x.pdb", 3), pdb("x-il.pdb", 4))
        );
        assert_eq!((y.timestamp, y.pdb), (0x6666, None));
    }

    #[test]
    fn an_identity_of_another_time_is_not_this_images() {
        let etl = machine().event(0, T, image_id::dbg_id_rsds(40, BASE, guid(GUID), 3, "x.pdb")).event(
            0,
            T + 1,
            load("x.dll"),
        );
        assert_eq!(module(etl, "x.dll").pdb, None);
    }

    #[test]
    fn a_rundown_has_no_link_time_and_its_identity_has() {
        let etl = machine().event(0, T, image_id::image_id(40, BASE, 0x1000, 0x5555, "x.dll")).event(
            0,
            T,
            Image::dc_end(40, BASE, 0x1000, "x.dll"),
        );
        assert_eq!(module(etl, "x.dll").timestamp, 0x5555);
    }

    #[test]
    fn a_link_time_of_0_hides_no_other() {
        let etl = machine().event(0, T, image_id::image_id(40, BASE, 0x1000, 0, "x.dll")).event(
            0,
            T,
            load("x.dll").time_date_stamp(0x5555).checksum(0x77),
        );
        let x = module(etl, "x.dll");
        assert_eq!((x.timestamp, x.checksum), (0x5555, 0x77));
    }
}

/// A module's path by every form that the kernel writes.
#[test]
fn forms_of_paths() {
    let forms = [
        (r"\Device\HarddiskVolume2\d\x.dll", r"C:\d\x.dll"),
        (r"\device\HARDDISKVOLUME2\d\x.dll", r"C:\d\x.dll"),
        (r"\Device\HarddiskVolume22\d\x.dll", r"E:\d\x.dll"),
        (r"\Device\HarddiskVolume7\d\x.dll", r"\Device\HarddiskVolume7\d\x.dll"),
        (r"\Windows\System32\x.dll", r"C:\Windows\System32\x.dll"),
        (r"\SystemRoot\System32\x.sys", r"C:\Windows\System32\x.sys"),
        (r"\??\C:\d\x.sys", r"C:\d\x.sys"),
        (r"\Device\Mup\server\share\x.dll", r"\\server\share\x.dll"),
        (r"\Device\Mup\DfsClient\;Z:0000000000020d40\server\share\x.dll", r"\\server\share\x.dll"),
        (r"\Device\LanmanRedirector\server\share\x.dll", r"\\server\share\x.dll"),
        (r"\Device\vmsmb\VSMB-{dcc079ae}\os\Windows\System32\x.dll", r"C:\Windows\System32\x.dll"),
        ("x.sys", "x.sys"),
        ("", ""),
    ];
    let mut etl = machine();
    for (base, (nt, _)) in (1..).zip(forms) {
        etl = etl.event(0, T + base, Image::dc_start(40, BASE + 0x1000 * base as u64, 0x1000, nt));
    }
    let etl = etl
        .event(0, T + 100, image_id::system_paths(r"C:\Windows\system32", r"C:\Windows\"))
        .event(0, T + 100, image_id::volume_mapping(r"\??\", ""))
        .event(0, T + 100, image_id::volume_mapping(r"\Device\HarddiskVolume2\", r"C:\"))
        .event(0, T + 100, image_id::volume_mapping(r"\Device\HarddiskVolume22\", r"E:\"))
        .event(0, T + 100, image_id::volume_mapping(r"\SystemRoot\", r"C:\Windows\"));
    let trace = reading::synthetic(etl);
    let mut mappings: Vec<_> = trace.mappings.iter().collect();
    mappings.sort_by_key(|mapping| mapping.base);
    let paths: Vec<&str> = mappings.iter().map(|m| trace.module(m.module).unwrap().path.as_str()).collect();
    assert_eq!(paths, forms.map(|(_, dos)| dos));
}

/// Vista's identities of images and processes as `info --json` shows them: pids, bases, sizes.
#[test]
fn modules_in_json() {
    let etl = machine()
        .event(0, T, image_id::image_id(40, BASE, 0x1000, 0x5555, "x.dll"))
        .event(
            0,
            T,
            image_id::dbg_id_rsds(40, BASE, guid("00112233-4455-6677-8899-aabbccddeeff"), 3, "x.pdb"),
        )
        .event(0, T, load("x.dll"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.etl");
    std::fs::write(&path, at(etl, T + MS).finish()).unwrap();
    let info = reading::info(&path);
    let module = &info["modules"][0];
    for (field, expected) in [
        ("pid", Value::from(40)),
        ("path", Value::from("x.dll")),
        ("base", Value::from(BASE)),
        ("size", Value::from(0x1000)),
        ("timestamp", Value::from(0x5555)),
        ("pdb_name", Value::from("x.pdb")),
        ("pdb_guid", Value::from("00112233-4455-6677-8899-aabbccddeeff")),
        ("pdb_age", Value::from(3)),
        ("samples", Value::from(1)),
    ] {
        assert_eq!(module[field], expected, "{field}");
    }
}
