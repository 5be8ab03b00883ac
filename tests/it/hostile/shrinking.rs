//! Files that become shorter while they are read.
#![cfg(unix)]

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use etwprof::etl::{DamageKind, Recording};
use etwprof::mmap::{Mapped, survive_shrinking};

use crate::support::command;
use crate::synth::{Buffer, Etl, Event, START, Sample};

/// Some megabytes of samples.
fn long_file() -> Vec<u8> {
    let mut file = Etl::new().finish();
    for buffer in 0..100 {
        let mut records = Vec::new();
        for number in 0..1_000 {
            let event = Event::from(Sample::new(super::CODE, 44));
            records.extend(event.record(START + 10 + 1_000 * buffer + number, 8));
        }
        file.extend(Buffer::new(0).record(&records).finish());
    }
    file
}

#[test]
fn what_is_gone_reads_as_zeros_and_is_told() {
    survive_shrinking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let map = Mapped::open(&path).unwrap();
    assert_eq!((map[0], map.shrunk_at()), (7, None));
    File::options().write(true).open(&path).unwrap().set_len(1 << 16).unwrap();
    assert_eq!(map[(1 << 16) - 1], 7);
    assert_eq!((map[(1 << 20) - 1], map[1 << 19]), (0, 0));
    assert_eq!(map.shrunk_at(), Some(1 << 19), "the earliest byte that was asked for");
    assert!(map[1 << 16..].iter().all(|byte| *byte == 0));
    assert_eq!(map.shrunk_at(), Some(1 << 16));
}

#[test]
fn a_recording_that_shrinks_is_damaged_there() {
    survive_shrinking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::write(&path, long_file()).unwrap();
    let recording = Recording::open(&[&path]).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let reading = recording.fold(NonZeroUsize::MIN, &mut |_| (), || 0u64, |events, _| *events += 1);
    assert!(reading.value > 1_000, "what was there was read");
    let shrunk = reading.damage.iter().find(|damage| damage.kind == DamageKind::Shrunk).unwrap();
    assert_eq!(shrunk.offset, 1 << 20);
}

/// At which moment of the run the file shrinks is luck; none may end the program by a signal.
#[test]
fn the_program_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    let file = long_file();
    for round in 0..10 {
        fs::write(&path, &file).unwrap();
        let child = command::command()
            .args(["info".as_ref(), path.as_os_str()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(4 * round));
        File::options().write(true).open(&path).unwrap().set_len(1 << 17).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) => assert!(stderr.contains("a.etl"), "{stderr}"),
            _ => panic!("ended with {}: {stderr}", output.status),
        }
    }
}
