//! `etwprof counters --pid` asks a runtime in the right words and shows what it answers. This test is the runtime: it listens where one
//! would.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use serde_json::Value;

use crate::support::command::{Output, command, output};
use crate::synth::Bytes;
use crate::synth::counters::utf16;
use crate::synth::nettrace::{MEAN, SUM, Stream, event, kind, mean, sum};

/// Runs `etwprof counters` while a runtime of this process answers so; gives what it was asked.
fn run(answer: &[u8], args: &[&str]) -> (Output, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let pid = std::process::id().to_string();
    // What another process of the same id left when it crashed: nobody listens there.
    drop(UnixListener::bind(folder.path().join(format!("dotnet-diagnostic-{pid}-1-socket"))).unwrap());
    let listener =
        UnixListener::bind(folder.path().join(format!("dotnet-diagnostic-{pid}-2-socket"))).unwrap();
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let (mut connection, _) = listener.accept().unwrap();
            let mut head = [0; 20];
            connection.read_exact(&mut head).unwrap();
            let mut rest = vec![0; usize::from(u16::from_le_bytes([head[14], head[15]])) - 20];
            connection.read_exact(&mut rest).unwrap();
            // It may have left in the middle.
            let _left = connection.write_all(answer);
            [&head[..], &rest].concat()
        });
        let output =
            output(command().env("TMPDIR", folder.path()).args(["counters", "--pid", &pid]).args(args));
        (output, asked.join().unwrap())
    })
}

/// "OK", and a session.
fn accepted(stream: Vec<u8>) -> Vec<u8> {
    [&b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0"[..], &[1; 8], &stream].concat()
}

/// Two intervals.
fn stream() -> Vec<u8> {
    let interval = |heap, thrown| {
        [
            event(7, 10, &mean("gc-heap-size", heap, 0.5, "MB")),
            event(8, 9, &sum("exception-count", thrown, 0.5, "")),
        ]
    };
    Stream::begin()
        .kinds(&[
            kind(7, "System.Runtime", "EventCounters", MEAN),
            kind(8, "System.Runtime", "EventCounters", SUM),
        ])
        .events("EventBlock", true, &interval(1.5, 4.0))
        .events("EventBlock", true, &interval(2.5, 5.0))
        .end()
}

#[test]
fn a_runtime_is_asked_for_the_providers_of_the_counters() {
    let args = [r"System.Runtime\gc-heap-size", r"Mine\*", "--every", "500ms", "--csv"];
    let (shown, asked) = run(&accepted(stream()), &args);
    // Collect tracing: 10 MB, the format, two providers with all keywords, level 4, name, and argument.
    let text = |bytes: Bytes, text: &str| bytes.u32(text.len() as u32 + 1).raw(&utf16(text));
    let mut wanted = Bytes::new(8).u32(10).u32(1).u32(2);
    for provider in ["Mine", "System.Runtime"] {
        wanted = text(text(wanted.u64(u64::MAX).u32(4), provider), "EventCounterIntervalSec=0.5");
    }
    let wanted = wanted.finish();
    let head =
        Bytes::new(8).raw(b"DOTNET_IPC_V1\0").u16(20 + wanted.len() as u16).raw(&[2, 2, 0, 0]).finish();
    assert_eq!(asked, [head, wanted].concat());
    let lines: Vec<&str> = shown.text().lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?} {}", shown.stderr);
    assert!(lines[1].ends_with(",0.5,System.Runtime,,gc-heap-size,1.5,MB,"), "{lines:?}");
    assert!(lines[2].ends_with(",0.5,System.Runtime,,gc-heap-size,2.5,MB,"), "{lines:?}");
}

#[test]
fn intervals_that_come_at_once_are_two_moments() {
    let (shown, _) = run(&accepted(stream()), &["--json", "--count", "2"]);
    let json: Value = serde_json::from_slice(&shown.success().stdout).unwrap();
    let values: Vec<_> = (0..2)
        .map(|at| {
            (&json["moments"][at]["counters"][0]["value"], &json["moments"][at]["counters"][1]["value"])
        })
        .collect();
    assert_eq!(values, [(&Value::from(1.5), &Value::from(8.0)), (&Value::from(2.5), &Value::from(10.0))]);
}

#[test]
fn what_goes_wrong_is_said() {
    let refused = [&b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0"[..], &[0x84, 0x13, 0x13, 0x80]].concat();
    let other = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let damaged = accepted([&stream()[..400], &[0xee; 4_000]].concat());
    let silent = accepted(Stream::begin().end());
    for (answer, code, reason) in [
        (refused, 1, "refuses to send events: error 0x80131384"),
        (other, 1, "answers in a way that is not understood"),
        (damaged, 1, "damaged stream of events"),
        (accepted(b"something else entirely, and long".to_vec()), 1, "does not begin with \"Nettrace\""),
        // It ended before it sent any.
        (silent, 0, "has ended"),
    ] {
        let (shown, _) = run(&answer, &[]);
        assert!(shown.code == code && shown.stderr.contains(reason), "{}: {}", shown.code, shown.stderr);
    }
    let (shown, _) = run(&accepted(stream()), &[r"System.Runtime\threads"]);
    let reason = "System.Runtime has no counter \"threads\"; it has gc-heap-size, exception-count";
    assert!(shown.code == 2 && shown.stderr.contains(reason), "{}", shown.stderr);
}
