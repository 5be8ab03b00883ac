//! Reads recordings, through the library and through the program's JSON.

use std::ffi::OsStr;
use std::path::Path;

use etwprof::etl::Recording;
use etwprof::event::Event;
use etwprof::trace::{Builder, Trace};
use serde_json::Value;

use super::command;
use crate::synth::Etl;

/// Every event of `recording` in order of time. Damage fails the test.
#[track_caller]
pub fn events(recording: &Recording, mut step: impl FnMut(&Event<'_>)) {
    let reading = recording.fold(&mut |_| (), || (), |(), event| step(event));
    assert_eq!(reading.damage, [], "a whole file was read with damage");
}

/// The trace of a file.
#[track_caller]
pub fn file(path: &Path) -> Trace {
    trace(&Recording::open(&[path]).unwrap())
}

/// The trace of a recording. Damage fails the test.
#[track_caller]
pub fn trace(recording: &Recording) -> Trace {
    let start = || Builder::for_recording(recording);
    let reading = recording.fold(&mut |_| (), start, |builder, event| builder.event(event));
    assert_eq!(reading.damage, [], "a whole file was read with damage");
    reading.value.finish()
}

/// The trace of a file made by hand.
#[track_caller]
pub fn synthetic(etl: Etl) -> Trace {
    trace(&Recording::from_bytes("synthetic.etl", etl.finish()).unwrap())
}

/// What the program prints as JSON for these arguments.
#[track_caller]
pub fn json<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Value {
    let output = command::etwprof(args).success();
    serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else")
}

/// `etwprof info --json` of one file.
#[track_caller]
pub fn info(path: &Path) -> Value {
    json([OsStr::new("info"), OsStr::new("--json"), path.as_os_str()])
}

/// A number of a JSON document, by its pointer: `number(&info, "/samples/kept")`.
#[track_caller]
pub fn number(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number at {pointer}"))
}
