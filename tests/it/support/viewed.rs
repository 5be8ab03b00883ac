//! A recording that is known to the last sample, and the files that the program writes of it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::command::{command, output};
use super::stacks::machine;
use crate::synth::{Image, START, Thread, kernel::perfinfo};

/// An image of a.exe, whose name does its worst in JSON, in HTML, on a terminal and for a reader of UTF-8.
pub const HOSTILE: &str = "C:\\x\\q\"uo<b>te\u{1b}[31m\u{202e}\u{fffe}.dll";
/// Its name in frames.
pub const SHOWN: &str = "q\"uo<b>te?[31m??";
pub const BASE: u64 = 0x7ff6_0000_0000;

/// The program's output in this format.
#[track_caller]
pub fn converted(recording: &Path, format: &str, args: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result");
    let words = ["-f", format, "--no-symbols", "--addresses", "-o"].map(OsStr::new);
    let args = args.iter().map(OsStr::new);
    let words = [OsStr::new("convert"), recording.as_os_str()].into_iter().chain(words);
    output(command().args(words.chain([file.as_os_str()]).chain(args))).success();
    fs::read(file).unwrap()
}

/// Ten samples, one for each millisecond, in order of time:
///
/// | process | thread | root | leaf |
/// |---|---|---|---|
/// | a.exe | 41 | +0x20 | +0x10 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
/// | a.exe | 41 | +0x20 | +0x10 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
/// | a.exe | 41 | +0x20 | +0x20 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
/// | a.exe | 42 | +0x20 | +0x20 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
/// | b.exe | 51 | 0x7000 | 0x7000 |
///
/// +0x10 and +0x20 are in the image with the hostile name. Thread 42 is called `wörker"`.
pub fn ten_samples(interval: u32, then: impl FnOnce(&Path)) {
    let mut etl = machine()
        .event(0, START + 1, perfinfo::collection_start(interval))
        .event(0, START + 2, Image::dc_start(40, BASE, 0x1000, HOSTILE))
        .event(0, START + 3, Thread::dc_start(40, 42).name("wörker\""));
    let a = [(41, &[BASE + 0x10, BASE + 0x20][..]), (41, &[BASE + 0x10, BASE + 0x20]), (41, &[BASE + 0x20])];
    let a = a.into_iter().chain([(42, &[BASE + 0x20][..])]).map(Some).chain([None, None]);
    let mut time = START;
    for a in a {
        if let Some((thread, stack)) = a {
            time += 10_000;
            etl = etl.sampled(0, time, 40, thread, stack);
        }
        time += 10_000;
        etl = etl.sampled(0, time, 50, 51, &[0x7000]);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ten.etl");
    fs::write(&file, etl.finish()).unwrap();
    then(&file);
}
