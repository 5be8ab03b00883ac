//! Names that would change a terminal: in files, in their names, and in the names of an archive's members.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::command::etwprof;
use crate::synth::{Etl, Image, Process, START, Thread};

/// A colour, a title, C1's CSI, DEL, an override of direction, a line's end, and a character that XML has not.
const EVIL: &str =
    "a\u{1b}[31m\u{1b}]0;x\u{7}\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\nerror: b\u{fffe}";

/// Text that a terminal shows as it is.
#[track_caller]
fn assert_clean(what: &str, text: &str) {
    let odd = |c: char| {
        c != '\n' && c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    assert!(!text.contains(odd), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: b")), "{what}: a line of its own: {text:?}");
}

/// A recording whose every name is evil.
fn evil() -> Vec<u8> {
    Etl::new()
        .names(EVIL, EVIL)
        .event(0, START + 1, Process::dc_start(40, "a\u{1b}[2Jb.exe").command_line(EVIL))
        .event(0, START + 1, Thread::dc_start(40, 44).name(EVIL))
        .event(0, START + 2, Image::dc_start(40, super::CODE, 0x1000, &format!("{EVIL}.dll")))
        .sampled(0, START + 10, 40, 44, &[super::CODE + 5])
        .finish()
}

#[track_caller]
fn all_are_clean(path: &Path) {
    for command in [
        "info",
        "info --json",
        "events",
        "events --json",
        "symbols",
        "symbols --json",
        "convert",
        "convert --threads -f tree",
        "convert --threads -f folded",
        "convert --threads -f svg",
        "convert --threads -f json",
        "convert --threads -f csv",
        "convert --pid 7",
        "top",
        "top --by module",
        "top --by process",
        "top --by thread --csv",
        "top --by category",
        "top --by line --csv",
        "top -n 0 --csv",
        "top -n 0 --json",
        "callers FILE *",
        "callers FILE * --csv",
        "callers FILE * --json",
        "callers FILE a\u{1b}[2Jx",
        "callees FILE *",
        "callees FILE * --csv",
        "callees FILE * --json",
        "lines FILE *",
        "lines FILE * --csv",
        "lines FILE * --json",
        "lines FILE no\u{202e}ne",
    ] {
        let mut words: Vec<&OsStr> = command.split(' ').map(OsStr::new).collect();
        match words.iter_mut().find(|word| **word == "FILE") {
            Some(place) => *place = path.as_os_str(),
            None => words.push(path.as_os_str()),
        }
        let output = etwprof(words);
        assert_clean(command, output.text());
        assert_clean(command, &output.stderr);
        if output.code != 0 {
            let errors = output.stderr.lines().filter(|line| !line.starts_with("warning: "));
            assert_eq!(errors.count(), 1, "{command}: {}", output.stderr);
        }
    }
}

#[test]
fn names_in_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::write(&path, evil()).unwrap();
    all_are_clean(&path);
}

#[cfg(unix)]
#[test]
fn the_name_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [(format!("{EVIL}.etl"), evil()), (format!("bad{EVIL}.etl"), vec![1; 500])] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        all_are_clean(&path);
    }
    all_are_clean(&folder.path().join(EVIL));
}

#[test]
fn names_of_an_archives_members() {
    let folder = tempfile::tempdir().unwrap();
    let mut cut = evil();
    cut.extend([1; 700]);
    for (name, bytes) in [("good.zip", evil()), ("damaged.zip", cut), ("bad.zip", vec![1; 500])] {
        let path = folder.path().join(name);
        let mut archive = ZipWriter::new(fs::File::create(&path).unwrap());
        archive.start_file(format!("{EVIL}.etl"), SimpleFileOptions::default()).unwrap();
        archive.write_all(&bytes).unwrap();
        archive.finish().unwrap();
        all_are_clean(&path);
    }
}
