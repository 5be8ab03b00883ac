//! Files on this machine: hints, plain folders, stores as symstore and real servers lay them out.

use std::fs;
use std::path::{Path, PathBuf};

use etwprof::guid::Guid;
use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::{Checked, Lookup, Outcome, Place};
use tempfile::tempdir;

use crate::support::data;
use crate::support::store::{
    Packing, cabinet, check, check_real, files, options, pdb_key, pdb_of_image, store, symbol_file,
};

const INDEX: &str = "ABABABABABABABABABABABABABABABAB2";

fn key() -> FileKey {
    pdb_key(r"D:\build\Foo.pdb", [0xAB; 16], 2)
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn find(path: &str, hints: &[PathBuf]) -> Lookup {
    let unused = tempdir().unwrap();
    store(path, options(unused.path())).find(&key(), hints, &check(&key()))
}

#[test]
fn hints_come_first_and_only_a_match_counts() {
    let folder = tempdir().unwrap();
    let [wrong, right, none] = ["wrong", "right", "none"].map(|d| folder.path().join(d).join("Foo.pdb"));
    write(&wrong, &symbol_file("1234", 1000));
    write(&right, &symbol_file(INDEX, 1000));
    let lookup = find("/nowhere", &[none, wrong, right.clone()]);
    assert_eq!(lookup.found.unwrap().path, right);
    let outcomes: Vec<_> = lookup.attempts.iter().map(|a| a.outcome.to_string()).collect();
    let wrong = format!("wrong file: found 1234, need {INDEX}");
    assert_eq!(outcomes, ["not there", wrong.as_str(), "found"]);
}

#[test]
fn hints_that_are_no_plain_local_files_are_not_opened() {
    let folder = tempdir().unwrap();
    let lookup = find("", &[PathBuf::from("Foo.pdb"), folder.path().to_owned()]);
    assert!(matches!(lookup.attempts[0].outcome, Outcome::RefusedHint(_)));
    assert_eq!(lookup.attempts[1].outcome, Outcome::NotThere);
    let network = find("", &[PathBuf::from(r"\\host\share\Foo.pdb"), PathBuf::from(r"\\.\pipe\x")]);
    for attempt in network.attempts {
        assert!(matches!(attempt.outcome, Outcome::RefusedHint(_) | Outcome::OtherSystem), "{attempt}");
    }
    // A name that is refused may still lie where the user says.
    let file = folder.path().join("odd");
    write(&file, &symbol_file(INDEX, 1000));
    let odd = pdb_key("nul.pdb", [0xAB; 16], 2);
    let unused = tempdir().unwrap();
    assert!(store("", options(unused.path())).find(&odd, &[file], &check(&odd)).found.is_some());
}

#[cfg(unix)]
#[test]
fn a_pipe_does_not_hang_and_a_windows_path_creates_nothing() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("Foo.pdb");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let lookup = find(folder.path().to_str().unwrap(), &[pipe]);
    assert_eq!(lookup.found, None);

    let lookup = find(r"C:\sym;srv*D:\cache*\\host\share;srv*D:\cache*http://127.0.0.1:1", &[]);
    assert!(lookup.attempts.iter().filter(|a| a.outcome == Outcome::OtherSystem).count() >= 3, "{lookup:?}");
    assert!(fs::read_dir(".").unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().contains(":\\")));
}

#[test]
fn a_plain_folder_in_each_of_its_forms() {
    for inside in ["Foo.pdb", "pdb/Foo.pdb", "symbols/pdb/Foo.pdb", &format!("Foo.pdb/{INDEX}/Foo.pdb")] {
        let folder = tempdir().unwrap();
        let file = folder.path().join(inside);
        write(&file, &symbol_file(INDEX, 1000));
        let lookup = find(folder.path().to_str().unwrap(), &[]);
        assert_eq!(lookup.found.unwrap().path, file, "{inside}");
    }
    // What debuggers sort by is the ending of the image, which a PDB's name does not have.
    for inside in ["dll/Foo.pdb", "exe/Foo.pdb", "sys/Foo.pdb", "symbols/dll/Foo.pdb", "symbols/sys/Foo.pdb"]
    {
        let folder = tempdir().unwrap();
        write(&folder.path().join(inside), &symbol_file(INDEX, 1000));
        assert!(find(folder.path().to_str().unwrap(), &[]).found.is_some(), "{inside}");
    }
    let empty = tempdir().unwrap();
    let lookup = find(empty.path().to_str().unwrap(), &[]);
    assert_eq!(lookup.attempts.len(), 1);
    assert_eq!(lookup.attempts[0].outcome, Outcome::NotThere);
    assert_eq!(lookup.attempts[0].place, Place::Path(empty.path().join("Foo.pdb")));
}

#[test]
fn case_does_not_count_in_a_store() {
    let mixed: String =
        INDEX.chars().enumerate().map(|(i, c)| if i % 3 == 0 { c.to_ascii_lowercase() } else { c }).collect();
    for (name, index, file) in [
        ("foo.pdb", INDEX.to_lowercase(), "foo.pdb"),
        ("FOO.PDB", INDEX.to_owned(), "FOO.PDB"),
        ("fOo.Pdb", mixed.clone(), "FoO.pDb"),
        ("Foo.pdb", mixed, "Foo.pdb"),
    ] {
        let folder = tempdir().unwrap();
        write(&folder.path().join(name).join(index).join(file), &symbol_file(INDEX, 1000));
        assert!(find(&format!("srv*{}", folder.path().display()), &[]).found.is_some(), "{name}");
        assert!(find(folder.path().to_str().unwrap(), &[]).found.is_some(), "{name}");
    }
    // Beside files, and sorted.
    for inside in ["fOO.pdb", "Symbols/DLL/FOO.pdb", "EXE/foo.PDB"] {
        let folder = tempdir().unwrap();
        write(&folder.path().join(inside), &symbol_file(INDEX, 1000));
        assert!(find(folder.path().to_str().unwrap(), &[]).found.is_some(), "{inside}");
    }
}

/// Two tools may have filled one store, each with its own spelling.
#[cfg(not(windows))]
#[test]
fn every_spelling_in_a_store_is_looked_into() {
    let folder = tempdir().unwrap();
    let root = folder.path();
    write(&root.join("Foo.pdb/0123/Foo.pdb"), &symbol_file("0123", 1000));
    write(&root.join("FOO.pdb").join(INDEX.to_lowercase()).join("foo.pdb"), &symbol_file("4567", 1000));
    write(&root.join("foo.PDB").join(INDEX).join("foo.pdb"), &symbol_file(INDEX, 1000));
    let lookup = find(&format!("srv*{}", root.display()), &[]);
    assert_eq!(lookup.found.unwrap().path, root.join("foo.PDB").join(INDEX).join("foo.pdb"));
    let wrong = lookup.attempts.iter().filter(|attempt| attempt.outcome.is_wrong_file()).count();
    assert_eq!((wrong, lookup.attempts.len()), (1, 2));
}

/// SSQP_Key_Conventions: lower-case name and GUID, and `FFFFFFFF` for the age.
#[test]
fn a_portable_pdb_in_each_spelling() {
    let key = FileKey::portable_pdb("/_/obj/My.App.pdb", Guid::from_bytes(&[0xAB; 16]));
    let guid = "ab".repeat(16);
    for place in [
        format!("my.app.pdb/{guid}FFFFFFFF/my.app.pdb"),
        format!("My.App.pdb/{guid}ffffffff/My.App.pdb"),
        format!("My.App.pdb/{}FFFFFFFF/My.App.pdb", guid.to_uppercase()),
        format!("My.App.pdb/{}ffffffff/My.App.pdb", guid.to_uppercase()),
    ] {
        let [folder, unused] = [tempdir().unwrap(), tempdir().unwrap()];
        write(&folder.path().join(&place), &symbol_file(&key.index(), 1000));
        for path in [format!("srv*{}", folder.path().display()), folder.path().display().to_string()] {
            let lookup = store(&path, options(unused.path())).find(&key, &[], &check(&key));
            assert!(lookup.found.is_some(), "{place} by {path}: {:?}", lookup.attempts);
        }
    }
}

/// The folders of a store have the names of its files.
#[test]
fn a_store_with_another_build_as_a_plain_folder_has_no_damaged_file() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("Foo.pdb/0123/Foo.pdb"), &symbol_file("0123", 1000));
    let lookup = find(folder.path().to_str().unwrap(), &[]);
    assert_eq!(lookup.found, None);
    let answers: Vec<_> = lookup.attempts.iter().map(|a| (a.place.clone(), a.outcome.clone())).collect();
    assert_eq!(answers, [(Place::Path(folder.path().join("Foo.pdb")), Outcome::NotThere)]);
}

#[test]
fn two_tiers_on_disk() {
    let all = tempdir().unwrap();
    let (origin, cache) = (all.path().join("origin"), all.path().join("cache"));
    write(&origin.join("index2.txt"), b"");
    write(&origin.join("Fo/Foo.pdb").join(INDEX).join("Foo.pdb"), &symbol_file(INDEX, 1000));
    // A cache may have two tiers as well, and is then filled so.
    write(&cache.join("index2.txt"), b"");
    let lookup = find(&format!("srv*{}*{}", cache.display(), origin.display()), &[]);
    assert_eq!(lookup.found.unwrap().path, cache.join("Fo/Foo.pdb").join(INDEX).join("Foo.pdb"));
    assert_eq!(files(&cache), [format!("Fo/Foo.pdb/{INDEX}/Foo.pdb"), "index2.txt".to_owned()]);
}

#[test]
fn file_ptr_on_disk() {
    let all = tempdir().unwrap();
    let (origin, target) = (all.path().join("origin"), all.path().join("target.bin"));
    let pointer = origin.join("Foo.pdb").join(INDEX).join("file.ptr");
    let path = format!("srv*{}", origin.display());
    write(&target, &symbol_file(INDEX, 1000));
    for text in [format!("PATH:{}", target.display()), target.display().to_string()] {
        write(&pointer, text.as_bytes());
        assert_eq!(find(&path, &[]).found.unwrap().path, target);
    }
    write(&target, &symbol_file("1234", 1000));
    assert!(matches!(find(&path, &[]).attempts[0].outcome, Outcome::WrongFile { .. }));
    for (text, why) in
        [("MSG: gone", "gone"), ("https://host/x", "address"), ("PATH:/nowhere/x", "not there")]
    {
        write(&pointer, text.as_bytes());
        let outcome = find(&path, &[]).attempts[0].outcome.to_string();
        assert!(outcome.contains(why), "{text}: {outcome}");
    }
}

#[test]
fn damaged_cabinets_in_a_store_are_reported() {
    let all = tempdir().unwrap();
    let cab = cabinet(&[("Foo.pdb", &symbol_file(INDEX, 1000))], Packing::MsZip);
    let packed = all.path().join("Foo.pdb").join(INDEX).join("Foo.pd_");
    for cut in [10, 50, cab.len() - 1] {
        write(&packed, &cab[..cut]);
        let lookup = find(&format!("srv*{}", all.path().display()), &[]);
        assert_eq!(lookup.found, None);
        assert!(matches!(&lookup.attempts[0].outcome, Outcome::Unreadable(why) if why.contains("cabinet")));
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_stores() {
    let root = data::file("symbol-server/symbolicator");
    let guid = |digits: &str| -> [u8; 16] {
        let bytes: Vec<u8> =
            (0..16).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect();
        let [a, b, c, d, e, f, g, h, rest @ ..] = <[u8; 16]>::try_from(bytes).unwrap();
        let [i, j, k, l, m, n, o, p] = rest;
        [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
    };
    let crash = guid("3249D99D0C4049318610F4E4FB0B6936");
    let path = format!("srv*{}", root.display());
    let cases = [
        (pdb_key("crash_with_srcsrv.pdb", crash, 1), true),
        (
            FileKey::portable_pdb(
                "integration.pdb",
                Guid::from_bytes(&guid("0C1033F78632492E91C6C314B72E1920")),
            ),
            true,
        ),
        (
            FileKey::portable_pdb(
                "source-links.pdb",
                Guid::from_bytes(&guid("37E9E8A61A8E404EB93C6902E277FF55")),
            ),
            true,
        ),
        (
            FileKey::portable_pdb(
                "portable-embedded.pdb",
                Guid::from_bytes(&guid("B6919861510C48879994943F64F70C37")),
            ),
            true,
        ),
        (pdb_key("crash.pdb", crash, 2), false),
        // This place holds a text of another tool, in a cabinet, under the name of the PDB.
        (pdb_key("crash.pdb", crash, 1), false),
    ];
    for (key, there) in cases {
        let cache = tempdir().unwrap();
        let lookup = store(&path, options(cache.path())).find(&key, &[], &check_real(&key));
        assert_eq!(lookup.found.is_some(), there, "{key}: {:?}", lookup.attempts);
        assert_eq!(files(cache.path()), Vec::<String>::new(), "{key}");
    }
    // Whoever wants that text gets it, expanded.
    let key = pdb_key("crash.pdb", crash, 1);
    let module = format!("MODULE windows x86 {} crash.pdb\n", key.index());
    let cache = tempdir().unwrap();
    let check = |file: &Path| match fs::read(file) {
        Ok(bytes) if bytes.starts_with(module.as_bytes()) => Checked::Matches,
        other => Checked::Unreadable(format!("{other:?}")),
    };
    let found = store(&path, options(cache.path())).find(&key, &[], &check).found.unwrap();
    let index = key.index();
    assert_eq!(found.path, cache.path().join("crash.pdb").join(&index).join("crash.pdb"));
    let original = root.join("crash.pdb").join(&index).join("crash.pdb.original");
    assert_eq!(fs::read(found.path).unwrap(), fs::read(original).unwrap());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_images_and_their_pdbs_beside_them() {
    let root = data::file("pdb");
    for (image, pdb) in [
        ("node-pty/conpty_console_list.node", "node-pty/conpty_console_list.pdb"),
        ("samply/softokn3.dll", "samply/softokn3.pdb"),
        ("dump_syms/basic32-min.dll", "dump_syms/basic32-min.pdb"),
        ("dump_syms/dump_syms_regtest64.exe", "dump_syms/dump_syms_regtest64.pdb"),
    ] {
        let key = pdb_of_image(&root.join(image));
        let beside = root.join(pdb);
        let folder = beside.parent().unwrap().to_str().unwrap();
        let unused = tempdir().unwrap();
        let here = store(folder, options(unused.path()));
        for hints in [vec![beside.clone()], vec![]] {
            let lookup = here.find(&key, &hints, &check_real(&key));
            assert_eq!(lookup.found.as_ref().map(|f| &f.path), Some(&beside), "{key}: {:?}", lookup.attempts);
        }
        // The same name from another build.
        let older = pdb_key(key.recorded(), [7; 16], 1);
        let lookup = here.find(&older, &[], &check_real(&older));
        let wrong = Outcome::WrongFile { found: key.index(), wanted: older.index() };
        assert_eq!(lookup.attempts[0].outcome, wrong);
    }
}
