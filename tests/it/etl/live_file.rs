//! What a live session gives, written to a file as it comes, is read as the session itself.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use etwprof::clock::ClockKind;
use etwprof::debug_id::DebugId;
use etwprof::etl::Recording;
use etwprof::etl::writer::{Ending, Output, Tee};
use etwprof::event::{Event, Pointer, Ticks};
use etwprof::sink::{Inventory, Loaded, Running, Sink};

use crate::support::command::etwprof;
use crate::support::stacks::machine;
use crate::support::{data, reading};
use crate::synth::{START, guid};

/// Takes events and forgets them.
pub struct Nobody(pub u64);

impl Sink for Nobody {
    fn event(&mut self, _event: &Event<'_>) {
        self.0 += 1;
    }
}

/// A file that others can look at, with so much room.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Cursor<Vec<u8>>>>, usize);

impl Shared {
    pub fn new(room: usize) -> Shared {
        Shared(Arc::default(), room)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().get_ref().clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap();
        match file.position() as usize + bytes.len() > self.1 {
            true => Err(io::Error::new(io::ErrorKind::StorageFull, "full")),
            false => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.lock().unwrap().seek(to)
    }
}

impl Output for Shared {
    fn clear(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().clear()
    }
}

pub fn folded(files: &[&Path], more: &[&str]) -> Vec<String> {
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let args = ["convert", "-q", "-f", "folded", "--no-symbols", "--addresses", "--raw-names"];
    let mut lines: Vec<String> = etwprof([&args, files.as_slice(), more].concat())
        .success()
        .text()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// Plays a recording to a tee, and gives its file.
fn written(recording: &Recording, out: Shared) -> (io::Result<u64>, u64) {
    let mut tee = Tee::with_file(Nobody(0), &recording.origin(), "live.etl", out);
    reading::events(recording, |event| tee.event(event));
    let (nobody, file) = tee.split();
    let written = file.unwrap().finish(Ending::default(), |_, _| None);
    assert!(nobody.0 >= written.events);
    (written.size, written.events)
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_events_have_the_same_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.etl");
    for file in ["etl/perfview/net.4.5.2.x64.etl", "etl/xperf/slow-ppt.etl", "etl/perfview/PerfViewData.etl"]
    {
        let whole = data::file(file);
        let out = Shared::new(usize::MAX);
        let (size, events) = written(&Recording::open(std::slice::from_ref(&whole)).unwrap(), out.clone());
        let bytes = out.bytes();
        assert_eq!(size.unwrap(), bytes.len() as u64);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(folded(&[&path], &[]), folded(&[&whole], &[]), "{file}");
        // The head of the log is the new one's, and facts of the machine stand behind it.
        let read = reading::info(&path);
        assert!(read["events"]["total"].as_u64().unwrap() >= events, "{file}");
        assert_eq!(read["machine"]["cpus"], reading::info(&whole)["machine"]["cpus"]);
        let waits = |path: &Path| {
            etwprof(["threads", path.to_str().unwrap(), "--json", "-n", "0", "-q"]).text().to_owned()
        };
        if file.contains("slow-ppt") {
            assert_eq!(waits(&path), waits(&whole));
        }
    }
}

/// The payload of the first record of a file.
fn header(recording: &Recording) -> Vec<u8> {
    let mut payload = None;
    reading::events(recording, |event| payload = payload.take().or_else(|| Some(event.payload.to_vec())));
    payload.unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn headers_say_what_those_of_real_files_say() {
    let mut seen = 0;
    for path in data::traces() {
        let Ok(recording) = Recording::open(std::slice::from_ref(&path)) else { continue };
        let origin = recording.origin();
        // As much as a live session has: QueryPerformanceCounter.
        if origin.clock.kind != ClockKind::Qpc {
            continue;
        }
        let out = Shared::new(usize::MAX);
        let (_, file) = Tee::with_file(Nobody(0), &origin, "live.etl", out.clone()).split();
        let ending = Ending { end: 133_900_000_000_000_000, events_lost: 7, buffers_lost: 8 };
        file.unwrap().finish(ending, |_, _| None).size.unwrap();
        let ours = Recording::from_bytes("live.etl", out.bytes()).unwrap();
        let buffers = ours.files()[0].buffer_count() as u32;
        let (theirs, ours) = (header(&recording), header(&ours));
        let wide = origin.machine.pointer == Pointer::Bits64;
        let names = if wide { 280 } else { 272 };
        let differ: Vec<usize> = (0..names).filter(|at| theirs[*at] != ours[*at]).collect();
        // What belongs to the session and the file: BufferSize; EndTime; MaximumFileSize, LogFileMode, BuffersWritten,
        // StartBuffers; EventsLost; two stale addresses; padding of the time zone; clock 0 for 1; BuffersLost.
        let own = |at: &usize| match wide {
            true => matches!(at, 0..4 | 16..24 | 28..44 | 48..52 | 56..72 | 244..248 | 272..280),
            false => matches!(at, 0..4 | 16..24 | 28..44 | 48..52 | 56..64 | 236..240 | 264..272),
        };
        let other: Vec<&usize> = differ.iter().filter(|at| !own(at)).collect();
        assert!(other.is_empty(), "{}: other fields at {other:?}", path.display());
        let number = |at: usize| u32::from_le_bytes(ours[at..at + 4].try_into().unwrap());
        let counts = [number(0), number(28), number(32), number(36), number(40)];
        assert_eq!(counts, [65_536, 0, 1, buffers, 1]);
        assert_eq!(ours[16..24], ending.end.to_le_bytes());
        assert_eq!((number(48), number(names - 8), number(names - 4)), (7, 1, 8));
        let text: Vec<u16> = "etwprof\0live.etl\0".encode_utf16().collect();
        assert_eq!(ours[names..], text.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>());
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

/// Two and a half seconds of samples.
fn samples() -> crate::synth::Etl {
    (0..250).fold(machine(), |etl, number| {
        etl.sampled(0, START + 100_000 * (1 + number), 40, 41, &[0x1000 + number as u64 % 3, 0x2000])
    })
}

#[test]
fn a_file_that_is_cut_short_has_all_but_the_last_second() {
    let recording = Recording::from_bytes("a.etl", samples().finish()).unwrap();
    let out = Shared::new(usize::MAX);
    let mut tee = Tee::with_file(Nobody(0), &recording.origin(), "live.etl", out.clone());
    // Nothing has come yet.
    assert_eq!(Recording::from_bytes("b.etl", out.bytes()).unwrap().files()[0].buffer_count(), 1);
    reading::events(&recording, |event| tee.event(event));
    // The power goes off.
    let trace = reading::trace(&Recording::from_bytes("b.etl", out.bytes()).unwrap());
    assert!((100..250).contains(&trace.samples.len()), "{}", trace.samples.len());
    drop(tee);
}

#[test]
fn a_full_disk_ends_the_file_and_not_the_recording() {
    let recording = Recording::from_bytes("a.etl", samples().finish()).unwrap();
    let out = Shared::new(150_000);
    let (size, events) = written(&recording, out.clone());
    assert_eq!(size.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(events > 200);
    let trace = reading::trace(&Recording::from_bytes("b.etl", out.bytes()).unwrap());
    assert!((1..250).contains(&trace.samples.len()), "{}", trace.samples.len());
}

#[test]
fn what_ran_before_is_in_the_file_with_its_pdbs() {
    let recording = Recording::from_bytes("a.etl", samples().finish()).unwrap();
    let out = Shared::new(usize::MAX);
    let mut tee = Tee::with_file(Nobody(0), &recording.origin(), "live.etl", out.clone());
    reading::events(&recording, |event| tee.event(event));
    let image = |pid, base, path: &str| Loaded { pid, base, size: 0x10_0000, path: path.into() };
    tee.inventory(Inventory {
        from: Ticks(START + 10),
        until: Ticks(START + 20),
        processes: vec![Running { pid: 77, parent: 4, name: "early.exe".into(), created: None, wow64: true }],
        threads: vec![(78, 77)],
        modules: vec![
            image(77, 0x40_0000, r"C:\app\early.exe"),
            image(0, 0xffff_f800_0000_0000, r"C:\Windows\k.sys"),
        ],
        ..Inventory::default()
    });
    let id = DebugId {
        guid: etwprof::guid::Guid::from_bytes(&guid("12345678-9abc-def0-1122-334455667788").0),
        age: 3,
    };
    let pdb = |pid, base| (pid == 77 && base == 0x40_0000).then(|| (0x5f00_0001, "early.pdb".to_owned(), id));
    let (_, file) = tee.split();
    file.unwrap().finish(Ending { end: 9, events_lost: 7, buffers_lost: 0 }, pdb).size.unwrap();
    let trace = reading::trace(&Recording::from_bytes("b.etl", out.bytes()).unwrap());
    let early = trace.processes.iter().position(|process| process.pid == 77).unwrap();
    assert_eq!(trace.processes[early].label(), "early.exe");
    assert!(trace.processes[early].wow64 && trace.processes[early].life.start.is_none());
    assert!(trace.threads.iter().any(|thread| (thread.pid, thread.tid) == (77, 78)));
    let module = trace.modules.iter().find(|module| module.path.ends_with("early.exe")).unwrap();
    assert_eq!((module.timestamp, module.pdb.as_ref().unwrap().id), (0x5f00_0001, id));
    assert!(trace.modules.iter().any(|module| module.kernel && module.path.ends_with("k.sys")));
    assert_eq!(trace.lost.events, 7);
}
