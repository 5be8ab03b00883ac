//! Files made to take time or memory.
//!
//! Each goes to the built program, in a process of its own with a limit on its address space and on its time. The
//! limits are far above what the program takes, and far below what each file took before it was made harmless.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{CODE, KERNEL};
use crate::synth::{
    Buffer, Etl, Event, Image, IntoEvent, Process, START, Sample, Thread, guid, image_id, stack_walk,
};

/// For an unoptimised program on a busy machine. What is quadratic takes hours.
const PATIENCE: Duration = Duration::from_secs(120);

/// Address space besides what the file accounts for: the program itself, its libraries and its threads' stacks.
const BASE: usize = 256 << 20;

/// Gives `file` to each command; none may take more memory than `times` the file, or fail in another way than with a
/// message. Gives what the commands said on stderr.
#[track_caller]
fn survives(what: &str, file: &[u8], times: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.etl");
    fs::write(&path, file).unwrap();
    let mut said = String::new();
    for command in ["info", "events", "convert --threads", "convert -f folded", "info --json"] {
        let kilobytes = (BASE + times * file.len()) / 1024;
        let script = format!("ulimit -v {kilobytes} && exec \"$0\" {command} \"$1\" > /dev/null");
        let start = Instant::now();
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_etwprof")])
            .arg(&path)
            .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("{what}: {command} takes more than {} s", PATIENCE.as_secs());
            }
            sleep(Duration::from_millis(10));
        };
        let stderr = fs::read_to_string(folder.path().join("stderr")).unwrap();
        let clean = matches!(status.code(), Some(0 | 1)) && !stderr.contains("panicked");
        let beginning: String = stderr.chars().take(2_000).collect();
        assert!(clean, "{what}: {command} ended with {status} at {kilobytes} KiB: {beginning}");
        said += &stderr;
    }
    said
}

/// A file of about `megabytes`: `record` makes the records, by their number, in buffers of 64 KiB.
fn filled(megabytes: usize, mut record: impl FnMut(u64) -> (i64, Event)) -> Vec<u8> {
    let mut file = Etl::new().finish();
    let mut buffer = vec![];
    let mut number = 0;
    while file.len() < megabytes << 20 {
        let (time, event) = record(number);
        number += 1;
        let mut bytes = event.record(time, 8);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        if buffer.len() + bytes.len() > (64 << 10) - 72 {
            file.extend(raw_buffer(&buffer));
            buffer.clear();
        }
        buffer.extend(bytes);
    }
    file.extend(raw_buffer(&buffer));
    file
}

fn raw_buffer(records: &[u8]) -> Vec<u8> {
    Buffer::new(0).record(records).finish()
}

/// Buffers of 100 bytes that claim 16 MiB: of nothing, and of a million records.
#[test]
fn compressed_buffers_that_claim_16_mib() {
    let zeros = bomb(&[0; 8]);
    let sample = Event::from(Sample::new(CODE, 44)).record(START + 10, 8);
    let samples = bomb(&sample);
    assert!(zeros.len() < 150 && samples.len() < 150);
    for (what, bomb, events) in [("zeros", zeros, false), ("samples", samples, true)] {
        let mut file = Etl::new().compressed().finish();
        (0..20_000).for_each(|_| file.extend(&bomb));
        let said = survives(what, &file, 40);
        assert!(said.contains("plausible ratio") || !events, "{what}: {said}");
    }
}

/// A compressed buffer: `pattern`, then a match that repeats it up to 16 MiB.
fn bomb(pattern: &[u8]) -> Vec<u8> {
    let length = (16 << 20) - 72;
    // A flag bit for each literal, then one for the match, which may stand in the next word.
    let flags = (u64::MAX >> pattern.len()).to_be_bytes();
    let word = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    let mut stream = word(&flags[..4]);
    stream.extend(pattern);
    if pattern.len() == 32 {
        stream.extend(word(&flags[4..]));
    }
    stream.extend(((pattern.len() as u16 - 1) << 3 | 7).to_le_bytes());
    stream.extend([15, 255, 0, 0]);
    stream.extend((length as u32).to_le_bytes());
    let size = 72 + stream.len() as u32;
    let mut buffer =
        Buffer::new(0).with_saved_offset(16 << 20).with_size_field(size).patch(0x34, &[0x60, 0]).finish();
    buffer.truncate(72);
    buffer[0x30..0x34].copy_from_slice(&(16u32 << 20).to_le_bytes());
    buffer.extend(stream);
    buffer
}

/// Buffer headers over and over, which lead nowhere or to each other.
#[test]
fn garbage_that_looks_like_buffers() {
    let header = &Buffer::new(0).size(72).finish();
    let sized = |size: u32, flags: u8, gap: usize| {
        let mut part = header.clone();
        part[0..4].copy_from_slice(&size.to_le_bytes());
        part[4..8].copy_from_slice(&72u32.to_le_bytes());
        part[0x34] = flags;
        part.resize(72 + gap, 0xAB);
        part
    };
    for (what, part, compressed) in [
        ("empty buffers", sized(72, 0x20, 0), false),
        ("buffers and a byte", sized(72, 0x20, 1), false),
        ("buffers that lead nowhere", sized(16 << 20, 0x20, 3), false),
        ("compressed buffers and a byte", sized(72, 0x60, 1), true),
        ("compressed buffers that lead nowhere", sized(1 << 20, 0x60, 5), true),
        ("compressed buffers in plain ones", sized(150, 0x60, 440), false),
    ] {
        let etl = if compressed { Etl::new().compressed() } else { Etl::new().buffer_size(512) };
        let mut file = etl.finish();
        while file.len() < 12 << 20 {
            file.extend(&part);
        }
        survives(what, &file, 12);
    }
}

/// Everything at one moment: samples and stacks, images and their identities.
#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn all_at_one_moment() {
    let (time, id) = (START + 5, guid("01020304-0506-0708-090a-0b0c0d0e0f10"));
    let samples = filled(8, |number| match number % 2 {
        0 => (time, Sample::new(CODE, number as u32).into()),
        _ => (time, stack_walk::full(time, 40, (1 << 30) + number as u32, &[KERNEL, KERNEL + number])),
    });
    survives("samples and stacks", &samples, 40);
    let waiting = filled(8, |number| match number % 3 {
        0 => (START + number as i64, Sample::new(CODE, 44).into()),
        1 => (START + number as i64, stack_walk::full(START + number as i64 - 1, 40, 44, &[KERNEL])),
        _ => (START + number as i64, Event::message(7, |bytes| bytes)),
    });
    survives("samples that wait for their user part", &waiting, 40);
    let images = filled(8, |number| match number % 2 {
        0 => (time, Image::load(40, CODE + number / 4 * 0x1000, 0x1000, "a.dll").into()),
        _ => (time, image_id::dbg_id_rsds(40, CODE + number / 4 * 0x1000, id, 1, "a.pdb")),
    });
    survives("images and identities", &images, 40);
    let buffers = (0..6_000).fold(Etl::new().buffer_size(1024), |etl, cpu| {
        etl.buffer(Buffer::new(cpu % 2_000).size(1024).event(time, Sample::new(CODE, 44)))
    });
    survives("buffers", &buffers.finish(), 40);
}

/// Ids, bases and names used again and again, and mappings that overlap.
#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn the_same_again_and_again() {
    let at = |number: u64| START + 10 * number as i64;
    let lives = filled(8, |number| {
        let process = match number % 4 {
            0 => Process::start(40, "a"),
            1 => Process::defunct(40, "a").key(number).exit_time(number as i64 + 1),
            2 => Process::dc_end(40, "a"),
            _ => return (at(number), Sample::new(CODE, 44).into()),
        };
        (at(number), process.no_sid().into())
    });
    survives("one process id", &lives, 40);
    let threads = filled(8, |number| {
        let event = match number % 3 {
            0 => Thread::start(40, 44).version(1).into(),
            1 => Thread::end(40, 44).version(1).by(40, 44),
            _ => Sample::new(CODE, 44).into(),
        };
        (at(number), event)
    });
    survives("one thread id", &threads, 40);
    let many_threads = filled(8, |number| match number % 2 {
        0 => (at(number), Thread::dc_start(40, 1_000 + number as u32).name("n").into()),
        _ => (at(number), Sample::new(CODE, 999 + number as u32).into()),
    });
    survives("many threads", &many_threads, 60);
    let nested = filled(8, |number| match number % 2 {
        0 => (at(number), Image::load(4, CODE + number, (1 << 40) - 2 * number, "a.dll").version(1).into()),
        _ => (at(number), Sample::new(CODE + (1 << 30) + number * 16, 44).into()),
    });
    survives("nested mappings", &nested, 80);
    let same_base = filled(8, |number| match number % 2 {
        0 => (at(number), Image::load(4, KERNEL, 0x1000_0000, &format!("{number}.sys")).version(1).into()),
        _ => (at(number), Sample::new(KERNEL + number * 16, 44).into()),
    });
    survives("one base", &same_base, 80);
    let volumes = filled(8, |number| match number % 2 {
        0 => (at(number), image_id::volume_mapping(&format!(r"\Device\Volume{number}\"), r"C:\")),
        _ => {
            (at(number), Image::load(4, CODE + number * 0x1000, 0x1000, r"\Device\x\a.dll").version(1).into())
        }
    });
    survives("volumes", &volumes, 60);
}

/// Long names before many paths and frames, deep stacks in many processes.
#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn one_long_thing_shown_often() {
    let at = |number: u64| START + 10 * number as i64;
    let long = "n".repeat(20_000);
    let names = filled(4, |number| match number {
        0 => (at(0), image_id::volume_mapping(r"\Device\V\", &long)),
        1 => (at(1), image_id::system_paths("C:", &long)),
        2 => (at(2), Image::load(0, KERNEL, 1 << 40, &long).version(1).into()),
        _ if number % 2 == 0 => {
            (at(number), Image::load(40, number << 16, 0x1000, r"\Device\V\a").version(1).into())
        }
        _ => (at(number), Sample::new(KERNEL + number * 64, 44).into()),
    });
    survives("a long name", &names, 200);
    let deep: Vec<u64> = (0..7_000).map(|frame| CODE + 16 * frame).collect();
    let stacks = filled(4, |number| {
        let depth = 1 + (number as usize / 2 * 37) % deep.len();
        match number % 2 {
            0 => (at(number), Sample::new(CODE, 44).into()),
            _ => (at(number), stack_walk::full(at(number - 1), 40, 44, &deep[deep.len() - depth..])),
        }
    });
    survives("deep stacks", &stacks, 100);
}
