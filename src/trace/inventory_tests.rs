use crate::clock::{Clock, ClockKind, Ticks};
use crate::event::{Event, Kind, NO_ID, Pointer};
use crate::guid::Guid;
use crate::guids::{IMAGE, PERF_INFO, PROCESS, STACK_WALK, THREAD};
use crate::origin::{Machine, Origin};
use crate::sink::{Inventory, Loaded, Running, Sink};
use crate::trace::{Builder, Trace};

/// This machine as the system describes itself: devices and drives without a backslash at their end.
fn here() -> Origin {
    let machine = Machine {
        processors: 4,
        os_build: 26100,
        os_name: String::new(),
        pointer: Pointer::Bits64,
        architecture: Some(9),
        name: "HERE".to_owned(),
    };
    let clock =
        Clock { kind: ClockKind::Qpc, frequency: 10_000_000, base: Ticks(0), base_utc: 0, utc_offset: None };
    Origin {
        interval: Some(10_000),
        windows: r"C:\Windows".to_owned(),
        volumes: vec![
            (r"\Device\HarddiskVolume3".to_owned(), "C:".to_owned()),
            (r"\Device\HarddiskVolume30".to_owned(), "F:".to_owned()),
        ],
        ..Origin::new(clock, machine)
    }
}

/// Payloads typed by hand, of 64-bit Windows 10.
#[derive(Default)]
struct Payload(Vec<u8>);

impl Payload {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn ansi(mut self, text: &str) -> Self {
        self.0.extend(text.bytes().chain([0]));
        self
    }

    fn wide(mut self, text: &str) -> Self {
        self.0.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        self
    }
}

const LOAD: u8 = 10;
const START: u8 = 1;
const END: u8 = 2;
const LISTED_AT_START: u8 = 3;
const LISTED_AT_END: u8 = 4;

struct Live(Builder);

impl Live {
    fn new() -> Live {
        Live(Builder::new(&here()))
    }

    fn event(&mut self, time: i64, provider: Guid, opcode: u8, version: u8, payload: Payload) {
        self.0.event(&Event {
            time: Ticks(time),
            provider,
            kind: Kind::Classic,
            opcode,
            version,
            pointer: Pointer::Bits64,
            processor: 0,
            pid: NO_ID,
            tid: NO_ID,
            items: &[],
            payload: &payload.0,
        });
    }

    fn process(&mut self, time: i64, opcode: u8, pid: u32, name: &str) {
        // Key, id, parent, session, exit status, page directory, flags; no SID; names.
        let start = Payload::default().u64(0xffff_8000_0000_0000 + u64::from(pid)).u32(pid).u32(8);
        let payload = start.u32(1).u32(259).u64(0).u32(0).u32(0).ansi(name).wide("");
        self.event(time, PROCESS, opcode, 4, payload);
    }

    fn thread(&mut self, time: i64, opcode: u8, pid: u32, tid: u32) {
        let payload = Payload::default().u32(pid).u32(tid).u64(0).u64(0).u64(0).u64(0).u64(0x1234);
        self.event(time, THREAD, opcode, 3, payload.u64(0).u32(0).u32(0));
    }

    fn image(&mut self, time: i64, opcode: u8, pid: u32, base: u64, path: &str) {
        let payload = Payload::default().u64(base).u64(0x1_0000).u32(pid).u32(0xc0ffee).u32(0).u32(0);
        self.event(time, IMAGE, opcode, 3, payload.u64(base).u64(0).u64(0).wide(path));
    }

    fn sample(&mut self, time: i64, tid: u32, address: u64) {
        self.event(time, PERF_INFO, 46, 2, Payload::default().u64(address).u32(tid).u32(1));
    }

    fn stack(&mut self, time: i64, pid: u32, tid: u32, frame: u64) {
        self.event(
            time + 1,
            STACK_WALK,
            32,
            2,
            Payload::default().u64(time as u64).u32(pid).u32(tid).u64(frame),
        );
    }

    fn end(mut self, inventory: Inventory) -> Trace {
        Sink::inventory(&mut self.0, inventory);
        self.0.finish()
    }
}

fn running(pid: u32, name: &str) -> Running {
    Running { pid, parent: 8, name: name.to_owned(), created: Some(1234), wow64: false }
}

fn loaded(pid: u32, base: u64, path: &str) -> Loaded {
    Loaded { pid, base, size: 0x1_0000, path: path.to_owned() }
}

/// Made between 100 and 110.
fn inventory(processes: Vec<Running>, threads: &[(u32, u32)], modules: Vec<Loaded>) -> Inventory {
    Inventory {
        from: Ticks(100),
        until: Ticks(110),
        processes,
        threads: threads.to_vec(),
        modules,
        ..Inventory::default()
    }
}

/// The process and the module's path of each sample.
fn where_samples_are(trace: &Trace) -> Vec<(String, String)> {
    let place = |sample: &crate::trace::Sample| {
        let process =
            trace.process(trace.runner(sample.runner).process).map_or("", |process| process.label());
        let kernel = trace.is_kernel_address(sample.address);
        let found =
            trace.mappings.at(trace.runner(sample.runner).process, sample.address, kernel, sample.time);
        let mapping = found.mapping.and_then(|index| trace.mappings.get(index));
        let module = mapping.and_then(|mapping| trace.module(mapping.module));
        (process.to_owned(), module.map_or(String::new(), |module| module.path.clone()))
    };
    trace.samples.iter().map(place).collect()
}

const KERNEL: u64 = 0xffff_f803_5a20_0000;
const EXE: u64 = 0x7ff6_0000_0000;
const DLL: u64 = 0x7ffb_0000_0000;

#[test]
fn image_paths_of_a_live_session_get_their_drives() {
    let mut live = Live::new();
    live.process(10, LISTED_AT_START, 50, "app.exe");
    live.image(11, LISTED_AT_START, 50, EXE, r"\Device\HarddiskVolume3\app\app.exe");
    live.image(12, LOAD, 50, DLL, r"\Device\HarddiskVolume30\app\other.dll");
    live.image(13, LOAD, 50, DLL + 0x10_0000, r"\Device\HarddiskVolume31\app\third.dll");
    let trace = live.end(Inventory::default());
    let paths: Vec<&str> = trace.modules.iter().map(|module| module.path.as_str()).collect();
    assert_eq!(paths, [r"C:\app\app.exe", r"F:\app\other.dll", r"\Device\HarddiskVolume31\app\third.dll"]);
}

#[test]
fn without_any_list_of_the_kernel_names_and_modules_come_from_the_system() {
    let mut live = Live::new();
    live.sample(20, 51, EXE + 5);
    live.sample(200, 51, DLL + 5);
    live.sample(210, 61, KERNEL + 5);
    let trace = live.end(inventory(
        vec![running(50, "app.exe"), running(60, "other.exe")],
        &[(51, 50), (61, 60)],
        vec![
            loaded(50, EXE, r"C:\app\app.exe"),
            loaded(50, DLL, r"\Device\HarddiskVolume3\Windows\SysWOW64\x.dll"),
            loaded(0, KERNEL, r"\SystemRoot\system32\ntoskrnl.exe"),
        ],
    ));
    let expected = [
        ("app.exe", r"C:\app\app.exe"),
        ("app.exe", r"C:\Windows\SysWOW64\x.dll"),
        ("other.exe", r"C:\Windows\system32\ntoskrnl.exe"),
    ];
    assert_eq!(where_samples_are(&trace), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!((trace.before.listed_at_start, trace.before.listed_at_end), (0, 0));
    assert_eq!(trace.before.only_in_inventory, 3);
    let app = trace.processes.iter().find(|process| process.pid == 50).unwrap();
    assert_eq!((app.parent_pid, app.created), (8, Some(1234)));
}

#[test]
fn the_kernels_list_is_believed_before_the_systems() {
    for (opcode, time) in [(LISTED_AT_START, 90), (LISTED_AT_END, 900)] {
        let mut live = Live::new();
        live.sample(20, 51, EXE + 5);
        live.process(time, opcode, 50, "kernel-name.exe");
        live.thread(time, opcode, 50, 51);
        live.image(time, opcode, 50, EXE, r"\Device\HarddiskVolume3\kernel\app.exe");
        let trace = live.end(inventory(
            vec![running(50, "other-name.exe")],
            &[(51, 666)],
            vec![loaded(50, EXE, r"C:\other\app.exe"), loaded(50, EXE + 0x8000, r"C:\other\inside.dll")],
        ));
        let expected = ("kernel-name.exe".to_owned(), r"C:\kernel\app.exe".to_owned());
        assert_eq!(where_samples_are(&trace), [expected]);
        assert_eq!(trace.modules.len(), 1, "what overlaps is not added");
        assert_eq!(trace.modules[0].checksum, 0xc0ffee);
        assert_eq!(trace.before.only_in_inventory, 0);
        assert_eq!(trace.before.listed_at_start + trace.before.listed_at_end, 3);
    }
}

#[test]
fn what_ends_or_begins_meanwhile_is_told_apart() {
    let mut live = Live::new();
    // 50 was there and ends; the next one of its id has other files at the same places.
    live.process(300, END, 50, "first.exe");
    live.process(400, START, 50, "second.exe");
    live.thread(400, START, 50, 52);
    live.image(401, LOAD, 50, EXE, r"\Device\HarddiskVolume3\second.exe");
    // 60 begins while the list is made.
    live.process(105, START, 60, "third.exe");
    live.image(106, LOAD, 60, EXE, r"\Device\HarddiskVolume3\third.exe");
    for (time, pid, tid) in [(200, 50, 51), (500, 50, 52), (600, 60, 61)] {
        live.sample(time, tid, EXE + 5);
        live.stack(time, pid, tid, EXE + 5);
    }
    let trace = live.end(inventory(
        vec![running(50, "first.exe"), running(60, "third.exe")],
        &[],
        vec![loaded(50, EXE, r"C:\first.exe"), loaded(60, EXE, r"C:\third.exe")],
    ));
    let expected =
        [("first.exe", r"C:\first.exe"), ("second.exe", r"C:\second.exe"), ("third.exe", r"C:\third.exe")];
    assert_eq!(where_samples_are(&trace), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(trace.processes.iter().filter(|process| process.pid == 60).count(), 1);
}
