//! The `EVENT` lines of a dump against the decoded events.
//!
//! `EVENT 28.493: Windows Kernel/Process/DCStart PID=0; TID=-1; ...; ProceNum=7; DataLen=75; ProcessID=0; ...`:
//! milliseconds, name, then fields. Numbers have commas, texts over 20 characters are cut.

use std::collections::BTreeMap;
use std::path::Path;

use etwprof::etl::{LogHeader, Recording};
use etwprof::event::{Event, Kind};
use etwprof::events::kernel::{DiskIo, DiskIoKind, Image, ImageId, Kernel, Phase, Process, SysConfig};
use etwprof::events::{Decoded, decode};
use etwprof::trace::{DiskOperation, HardFault, Keep, Trace};

use super::is_helper_stub;
use super::names::{Key, name_of};
use crate::support::reading;

/// What one event says, in TraceEvent's words.
struct Seen {
    milliseconds: f64,
    fields: Vec<(&'static str, Text)>,
}

enum Text {
    Exactly(String),
    /// One of these: an image's path is known only when all records of it have been read.
    OneOf(Vec<String>),
}

/// As many as a dump has of each kind.
const LISTED: usize = 5;

pub fn compare(file: &Path, dump: &str) {
    let recording = Recording::open(&[file]).unwrap();
    let keep = Keep { disk: true, ..Keep::default() };
    let trace = reading::every_way(&recording, |builder| builder.keep(keep)).value;
    let mut seen: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    reading::events(&recording, |event| {
        let Some(name) = name(event) else { return };
        let of_name = seen.entry(name).or_default();
        if of_name.len() < LISTED
            && let Some(fields) = fields(event, &trace, recording.header())
        {
            of_name.push(Seen { milliseconds: trace.clock.seconds(event.time) * 1e3, fields });
        }
    });

    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut compared = 0;
    for line in dump.lines().filter_map(|line| line.strip_prefix("EVENT ")) {
        let (time, rest) = line.split_once(": ").unwrap();
        let (name, fields) = rest.split_once(" PID=").unwrap();
        let place = places.entry(super::one_name(name)).or_default();
        let at = format!("{}, {name}, number {place}", file.display());
        let ours = &seen.get(&super::one_name(name)).unwrap_or_else(|| panic!("{at}: none"))[*place];
        *place += 1;

        let milliseconds: f64 = time.replace(',', "").parse().unwrap();
        // Printed to the microsecond.
        assert!((ours.milliseconds - milliseconds).abs() < 0.000_501, "{at}: {} {time}", ours.milliseconds);
        let theirs: BTreeMap<&str, &str> = format_fields(fields);
        for (field, text) in &ours.fields {
            let printed = theirs.get(field).unwrap_or_else(|| panic!("{at}: no {field} in {fields}"));
            assert!(text.agrees(printed), "{at}: {field} is {text}, the baseline has {printed}");
            compared += 1;
        }
    }
    assert!(compared > places.len() * 3, "hardly anything was compared");
}

fn format_fields(fields: &str) -> BTreeMap<&str, &str> {
    let fields = fields.trim_end_matches("; ");
    let pairs = fields.split("; ").filter_map(|pair| pair.split_once('='));
    // The cut has taken the name of the first.
    let pid = fields.split("; ").next().unwrap();
    pairs.chain([("PID", pid)]).collect()
}

/// TraceEvent's name; `None` for what it does not list.
fn name(event: &Event<'_>) -> Option<String> {
    let key = match event.kind {
        Kind::Classic => Key::Opcode(event.opcode),
        Kind::Manifest(id) => Key::Id(id),
        Kind::Message(_) | Kind::Unknown(_) => return None,
    };
    let name = name_of(&event.provider.to_string(), key);
    name.or_else(|| Some(format!("{}/{}", event.provider_name()?, event.tracelogging_name()?)))
}

/// `None` for events that TraceEvent leaves out.
fn fields(event: &Event<'_>, trace: &Trace, header: &LogHeader) -> Option<Vec<(&'static str, Text)>> {
    let mut fields = vec![("ProceNum", number(event.processor)), ("DataLen", number(event.payload.len()))];
    let Decoded::Kernel(kernel) = decode(event).expect("a whole payload") else {
        match event.kind {
            Kind::Manifest(_) if is_helper_stub(event) => return None,
            Kind::Manifest(_) => fields.extend([("PID", number(event.pid)), ("TID", number(event.tid))]),
            _ if event.opcode == 0 && name(event).as_deref() == Some("Windows Kernel/EventTrace") => {
                fields.extend(of_header(header));
            }
            _ => {}
        }
        return Some(fields);
    };
    match kernel {
        Kernel::Sample(sample) if sample.is_idle() => return None,
        Kernel::Sample(sample) => {
            let of = {
                let tid = |s: &etwprof::trace::Sample| trace.runner(s.runner).tid;
                trace.samples.iter().find(|s| (s.time, tid(s)) == (event.time, sample.tid)).unwrap()
            };
            fields.extend([
                ("PID", number(trace.process(trace.runner(of.runner).process).unwrap().pid)),
                ("TID", number(sample.tid)),
                ("InstructionPointer", address(sample.address)),
                ("ProcessorNumber", number(event.processor)),
                ("ExecutingDPC", truth(sample.in_dpc)),
                ("ExecutingISR", truth(sample.in_isr)),
                ("Priority", number(sample.priority)),
                ("Count", number(sample.count)),
            ]);
        }
        Kernel::ProfileInterval(interval) => fields.extend([
            ("SampleSource", number(interval.source)),
            ("NewInterval", number(interval.interval)),
            ("OldInterval", number(interval.old_interval)),
        ]),
        Kernel::PageFault(fault) => fields.extend(
            [
                ("TID", number(fault.tid.unwrap())),
                ("VirtualAddress", address(fault.address)),
                ("ByteCount", number(fault.bytes)),
                ("ReadOffset", number(fault.read.unwrap().offset)),
                ("FileKey", address(fault.read.unwrap().file)),
            ]
            .into_iter()
            .chain(of_hard_fault(event, trace)),
        ),
        Kernel::DiskIoInit(request) => fields.push(("Irp", address(request.irp))),
        Kernel::DiskIo(io) => {
            fields.extend([("DiskNumber", number(io.disk)), ("Irp", address(io.irp))]);
            fields.extend(of_operation(&io, event, trace));
        }
        Kernel::FileName(_) => return None,
        Kernel::Process(process) => fields.extend(of_process(&process)),
        Kernel::Thread(thread) => fields.extend([
            ("PID", number(thread.pid)),
            ("TID", number(thread.tid)),
            ("Win32StartAddr", address(thread.start_address)),
            ("TebBase", address(thread.teb)),
            ("ThreadName", Text::Exactly(thread.name.to_string())),
        ]),
        Kernel::Image(image) => fields.extend(of_image(&image, event, trace)),
        Kernel::ImageId(id) => fields.extend(of_identity(&id)),
        Kernel::SysConfig(config) => fields.extend(match config {
            SysConfig::Build { lab, product } => [("BuildLab", text(lab)), ("ProductName", text(product))],
            SysConfig::Paths { system, windows } => {
                [("SystemDirectory", text(system)), ("SystemWindowsDirectory", text(windows))]
            }
            SysConfig::Volume { nt, dos } => [("NtPath", text(nt)), ("DosPath", text(dos))],
            other => panic!("no fields for {other:?}"),
        }),
        Kernel::Cpu(cpu) => fields.extend([
            ("MHz", number(cpu.mhz)),
            ("NumberOfProcessors", number(cpu.processors)),
            ("MemSize", number(cpu.memory_mb)),
            ("ComputerName", text(cpu.computer)),
        ]),
        other => panic!("no fields for {other:?}"),
    }
    Some(fields)
}

fn of_header(header: &LogHeader) -> Vec<(&'static str, Text)> {
    vec![
        ("BufferSize", number(header.buffer_size)),
        ("ProviderVersion", number(header.os_build)),
        ("NumberOfProcessors", number(header.processors)),
        ("LogFileMode", number(header.mode)),
        ("BuffersWritten", number(header.buffers_written)),
        ("PointerSize", number(header.pointer.bytes())),
        ("EventsLost", number(header.events_lost)),
        ("BuffersLost", number(header.buffers_lost)),
        ("CPUSpeed", number(header.platform.cpu_mhz)),
        ("PerfFreq", number(header.clock.frequency)),
        ("SessionName", Text::Exactly(header.session.clone())),
    ]
}

fn of_process(process: &Process<'_>) -> Vec<(&'static str, Text)> {
    vec![
        ("PID", number(process.pid)),
        ("ProcessID", number(process.pid)),
        ("ParentID", number(process.parent_pid)),
        ("ImageFileName", text(process.image_file_name)),
        ("SessionID", number(process.session as i32)),
        ("ExitStatus", number(process.exit_status)),
        ("UniqueProcessKey", address(process.key)),
        ("CommandLine", text(process.command_line)),
    ]
}

fn of_image(image: &Image<'_>, event: &Event<'_>, trace: &Trace) -> Vec<(&'static str, Text)> {
    let at = trace.mappings.iter().filter(|mapping| {
        let moment = match image.phase {
            Phase::End => mapping.end == Some(event.time),
            _ => mapping.covers(event.time),
        };
        let module = trace.module(mapping.module).unwrap();
        let pid = if module.kernel { 0 } else { trace.process(mapping.process).unwrap().pid };
        mapping.base == image.base && pid == image.pid && moment
    });
    let paths = at.map(|mapping| trace.module(mapping.module).unwrap().path.clone()).collect();
    vec![
        ("PID", number(image.pid)),
        ("ImageBase", address(image.base)),
        ("ImageSize", number(image.size)),
        ("ImageChecksum", number(image.checksum)),
        ("TimeDateStamp", number(image.timestamp as i32)),
        ("FileName", Text::OneOf(paths)),
    ]
}

fn of_hard_fault(event: &Event<'_>, trace: &Trace) -> Vec<(&'static str, Text)> {
    let is_it = |fault: &&HardFault| fault.end == event.time;
    let fault = trace.disk.hard_faults.iter().find(is_it).unwrap();
    let mut fields = vec![
        ("PID", number(trace.process(fault.process).unwrap().pid)),
        ("ElapsedTimeMSec", milliseconds(trace, fault.ticks())),
    ];
    fields.extend(trace.disk.path(fault.file).map(|path| ("FileName", text(path))));
    fields
}

fn of_operation(io: &DiskIo, event: &Event<'_>, trace: &Trace) -> Vec<(&'static str, Text)> {
    let is_it = |one: &&DiskOperation| (one.end, one.disk, one.kind) == (event.time, io.disk, io.kind);
    let one = trace.disk.operations.iter().find(is_it).unwrap();
    let mut fields = vec![("ElapsedTimeMSec", milliseconds(trace, one.ticks()))];
    if one.kind == DiskIoKind::Flush {
        // It takes the thread of a flush from behind the end of what it reads.
        return fields;
    }
    fields.extend([
        ("PID", number(trace.process(one.process).unwrap().pid)),
        ("TID", number(one.tid)),
        ("TransferSize", number(one.bytes)),
        ("ByteOffset", number(one.offset)),
        ("DiskServiceTimeMSec", milliseconds(trace, one.service)),
        ("FileKey", address(io.file.unwrap())),
        ("FileName", text(trace.disk.path(one.file).unwrap())),
    ]);
    fields
}

/// It rounds to the microsecond in its own way.
fn milliseconds(trace: &Trace, ticks: i64) -> Text {
    let microseconds = trace.clock.nanoseconds_in(ticks) as f64 / 1e3;
    let text = |microseconds: f64| format!("{:.3}", microseconds / 1e3);
    Text::OneOf(vec![text(microseconds.floor()), text(microseconds.ceil())])
}

fn of_identity(id: &ImageId<'_>) -> Vec<(&'static str, Text)> {
    match *id {
        ImageId::File { base, size, timestamp, original_name, .. } => vec![
            ("ImageBase", address(base)),
            ("ImageSize", number(size)),
            ("TimeDateStamp", number(timestamp as i32)),
            ("OriginalFileName", text(original_name)),
        ],
        ImageId::Pdb { base, guid, age, name, .. } => vec![
            ("ImageBase", address(base)),
            ("GuidSig", text(guid)),
            ("Age", number(age)),
            ("PDBFileName", text(name)),
        ],
        ImageId::Version { size, timestamp, original_name, description, version } => vec![
            ("ImageSize", number(size)),
            ("TimeDateStamp", number(timestamp as i32)),
            ("OrigFileName", text(original_name)),
            ("FileDescription", text(description)),
            ("FileVersion", text(version)),
        ],
        ImageId::NoPdb { .. } | ImageId::Mark { .. } => Vec::new(),
        ref other => panic!("no fields for {other:?}"),
    }
}

impl Text {
    fn agrees(&self, printed: &str) -> bool {
        match self {
            Text::Exactly(text) => same(text, printed),
            Text::OneOf(texts) => texts.iter().any(|text| same(text, printed) || same_share(text, printed)),
        }
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Text::Exactly(text) => write!(f, "{text:?}"),
            Text::OneOf(texts) => write!(f, "one of {texts:?}"),
        }
    }
}

fn same(text: &str, printed: &str) -> bool {
    match printed.strip_suffix("...") {
        Some(head) => text.chars().count() > 20 && text.starts_with(head),
        None => text == printed || text == printed.replace(',', ""),
    }
}

/// TraceEvent leaves the redirector's client part (`DfsClient\;Z:...\`) in front of the server; we take it away.
fn same_share(path: &str, printed: &str) -> bool {
    printed.starts_with(r"\\DfsClient\;Z:") && path.starts_with(r"\\") && !path.contains(';')
}

fn text(text: impl ToString) -> Text {
    Text::Exactly(text.to_string())
}

/// Ids that nobody knows are -1 there.
fn number(number: impl TryInto<i128>) -> Text {
    let number: i128 = number.try_into().unwrap_or_default();
    Text::Exactly(if number == i128::from(u32::MAX) { "-1".to_owned() } else { number.to_string() })
}

fn address(address: u64) -> Text {
    Text::Exactly(format!("0x{address:08x}"))
}

fn truth(truth: bool) -> Text {
    Text::Exactly(if truth { "True" } else { "False" }.to_owned())
}
