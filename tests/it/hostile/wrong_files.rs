//! What is no recording: the program says so, with the file's name and what is wrong there.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::command::etwprof;

/// Gives `path` to each command that reads recordings; each must fail, say one line, and say these words in it.
#[track_caller]
fn refused(path: &Path, words: &[&str]) {
    refused_with(1, path, words);
}

#[track_caller]
fn refused_with(code: i32, path: &Path, words: &[&str]) {
    for command in ["convert", "info", "events"] {
        let output = etwprof([command.as_ref(), path.as_os_str()]);
        assert_eq!(output.code, code, "{command}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{command}");
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        let name = path.file_name().unwrap().to_string_lossy();
        for word in words.iter().chain([&&*name]) {
            assert!(output.stderr.contains(word), "{command}: no {word:?} in {}", output.stderr);
        }
    }
}

fn written(name: &str, bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    folder
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut archive = ZipWriter::new(&mut bytes);
    for (name, content) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
    bytes.into_inner()
}

#[test]
fn files_that_are_no_recordings() {
    for (name, bytes, words) in [
        ("empty.etl", Vec::new(), ["the file is empty", "byte 0"]),
        ("short.etl", vec![0; 71], ["shorter than a buffer header", "byte 0"]),
        ("zeros.etl", vec![0; 5000], ["no event record", "byte 72"]),
        ("ones.etl", vec![0xFF; 5000], ["no event record", "byte 72"]),
        ("text.etl", b"It was a dark and stormy night. ".repeat(40), ["not an .etl file", "byte 72"]),
        ("program.exe", [b"MZ".as_slice(), &[0x90; 4000]].concat(), ["not an .etl file", "byte 72"]),
    ] {
        refused(&written(name, &bytes).path().join(name), &words);
    }
}

#[test]
fn no_file_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    refused_with(2, &folder.path().join("missing.etl"), &["no such file"]);
    fs::create_dir(folder.path().join("folder.etl")).unwrap();
    refused_with(2, &folder.path().join("folder.etl"), &["it is a folder"]);
}

#[test]
fn archives_that_hold_no_recording() {
    let cut = {
        let mut whole = zipped(&[("a.etl", &[7; 4000])]);
        whole.truncate(whole.len() - 30);
        whole
    };
    for (name, bytes, words) in [
        ("other.zip", zipped(&[("readme.txt", b"hello")]), vec!["contains no .etl"]),
        ("nothing.zip", zipped(&[]), vec!["contains no .etl"]),
        (
            "inner.zip",
            zipped(&[("inner.etl", b"no trace at all")]),
            vec!["inner.etl", "shorter than a buffer"],
        ),
        ("cut.zip", cut, vec!["cannot read"]),
        ("head.zip", b"PK\x03\x04".repeat(50), vec!["cannot read"]),
        ("long.zip", zipped(&[(&format!("{}.etl", "n".repeat(5000)), b"x")]), vec!["name is too long"]),
    ] {
        refused(&written(name, &bytes).path().join(name), &words);
    }
}

/// Two members, one of which claims the bytes of the other.
#[test]
fn archives_whose_members_overlap() {
    let mut bytes = zipped(&[("a.etl", &[7; 4000]), ("b.etl", &[7; 4000])]);
    let entries: Vec<usize> =
        (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"PK\x01\x02")).collect();
    // Where its local header is, at byte 42 of an entry of the directory.
    let second = entries[1] + 42;
    bytes[second..second + 4].copy_from_slice(&0u32.to_le_bytes());
    refused(&written("two.zip", &bytes).path().join("two.zip"), &["overlaps", ".etl"]);
}

#[test]
fn the_cause_is_said_once() {
    let whole = zipped(&[("a.etl", &[7; 4000])]);
    let folder = written("cut.zip", &whole[..whole.len() - 30]);
    let output = etwprof(["info".as_ref(), folder.path().join("cut.zip").as_os_str()]);
    let (_, cause) = output.stderr.trim_end().rsplit_once(": ").unwrap();
    assert_eq!(output.stderr.matches(cause).count(), 1, "{}", output.stderr);
    let missing = etwprof(["info", "missing.etl"]).stderr;
    assert!(missing.to_lowercase().matches("no such file").count() == 1, "{missing}");
}

/// Zeros pack a thousand times. The archive is refused by what it claims, and by what it unpacks to if it lies.
#[test]
fn a_zip_bomb() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    archive.start_file("bomb.etl", SimpleFileOptions::default()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..320 {
        archive.write_all(&zeros).unwrap();
    }
    archive.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 400_000);
    refused(&path, &["bomb.etl", "expands to more than"]);

    let mut bytes = fs::read(&path).unwrap();
    let claimed = (320u32 << 20).to_le_bytes();
    let at: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..at + 4] == claimed).collect();
    assert!(!at.is_empty());
    for at in at {
        bytes[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    refused(&path, &[]);
}
