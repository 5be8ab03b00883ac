//! What is written is read again: records of fields, whole recordings, damaged ones.

use std::io::Cursor;
use std::num::NonZeroUsize;

use etwprof::clock::{ClockKind, Ticks};
use etwprof::debug_id::DebugId;
use etwprof::etl::writer::{
    Classic, Copied, Ending, FileHeader, Hooked, ImageIdentity, KeepAll, Layout, Manifest, Merged, Message,
    Writer, copy,
};
use etwprof::etl::{LogHeader, Reading, Recording};
use etwprof::event::{Event, Kind, Pointer};
use etwprof::events::kernel::{ImageId, Kernel, SysConfig};
use etwprof::events::{Decoded, decode};
use etwprof::guid::Guid;
use etwprof::guids::{CLR, IMAGE, PERF_INFO};
use etwprof::origin::Platform;

use crate::hostile::{everything, small};
use crate::support::data;
use crate::support::reading;
use crate::synth::{Clock, Etl, START};

/// All fields of an event, as text.
fn text(event: &Event<'_>) -> String {
    let items: Vec<_> = event.extended().collect();
    format!("{event:?} {items:?}")
}

fn is_header(text: &str) -> bool {
    text.contains("provider: 68fdd900-4a3e-11d1-84f4-0000f80464e3") && text.contains("opcode: 0,")
}

fn texts(recording: &Recording) -> Vec<String> {
    let mut all = Vec::new();
    reading::events(recording, |event| all.push(text(event)));
    all
}

fn copied(recording: &Recording, compress: bool) -> (Recording, Copied, usize) {
    let mut out = Cursor::new(Vec::new());
    let Reading { value, damage } =
        copy(recording, &KeepAll, compress, NonZeroUsize::MIN, &mut |_| (), &mut out).unwrap();
    assert_eq!(value.bytes, out.get_ref().len() as u64);
    (Recording::from_bytes("copy.etl", out.into_inner()).unwrap(), value, damage.len())
}

/// The header of a copy, with the mode of the original.
fn with_mode(header: &LogHeader, mode: u32) -> LogHeader {
    LogHeader { mode, ..header.clone() }
}

#[track_caller]
fn comes_back(recording: &Recording, name: &str) {
    for compress in [false, true] {
        let (copy, counts, damaged) = copied(recording, compress);
        let (before, after) = (texts(recording), texts(&copy));
        // The header says how the file is laid out. It need not come first by time.
        let others =
            |all: &[String]| -> Vec<String> { all.iter().filter(|one| !is_header(one)).cloned().collect() };
        assert!(others(&before) == others(&after), "{name}: other events, compressed {compress}");
        assert_eq!(
            (counts.events_in, counts.events_out),
            (before.len() as u64, before.len() as u64),
            "{name}"
        );
        assert_eq!((damaged, counts.headers), (0, 0), "{name}");
        let (old, new) = (recording.header(), copy.header());
        assert_eq!(new.is_compressed(), compress, "{name}");
        // Buffers without records are left out.
        let expected = LogHeader { buffers_written: new.buffers_written, ..old.clone() };
        assert_eq!(with_mode(new, old.mode), expected, "{name}");
        assert_eq!(new.buffers_written as usize, copy.files()[0].buffer_count(), "{name}");
        assert_eq!(copy.origin().losses, recording.origin().losses, "{name}");
        assert_eq!(copy.origin().missing, recording.origin().missing, "{name}");
        let reading = copy.fold(NonZeroUsize::MIN, &mut |_| (), || (), |(), _| ());
        assert_eq!(reading.damage, Vec::new(), "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_real_recording_comes_back() {
    for file in data::traces() {
        comes_back(&Recording::open(&[&file]).unwrap(), &file.display().to_string());
    }
}

/// What the headers of buffers with records say, but for sizes and places, by offsets from the facts: flush time, processor,
/// logger, the flags of losses, type.
fn marks(file: &[u8]) -> Vec<[u64; 5]> {
    let number = |at: usize, width: usize| {
        file[at..at + width].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (mut at, mut all) = (0, Vec::new());
    while at < file.len() {
        // Of the header buffer only the records are kept.
        if at > 0 && number(at + 4, 4) > 72 {
            let flags = number(at + 0x34, 2);
            let wide = if flags & 0x20 != 0 { 0x7ff } else { 0xff };
            let processor = number(at + 0x28, 2) & wide;
            all.push([
                number(at + 0x10, 8),
                processor,
                number(at + 0x2a, 2),
                flags & 6,
                number(at + 0x36, 2),
            ]);
        }
        at += number(at, 4) as usize;
    }
    // Circular files are written in the order of their buffers' numbers, which is not that of their places.
    all.sort_unstable();
    all
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn buffers_keep_what_their_headers_say() {
    for file in data::traces() {
        let recording = Recording::open(&[&file]).unwrap();
        let before = marks(&std::fs::read(&file).unwrap());
        for compress in [false, true] {
            let mut out = Cursor::new(Vec::new());
            copy(&recording, &KeepAll, compress, NonZeroUsize::MIN, &mut |_| (), &mut out).unwrap();
            assert!(marks(out.get_ref()) == before, "{}, compressed {compress}", file.display());
        }
    }
}

/// None of the real ones has flags of losses, or another type than 0.
#[test]
fn buffers_keep_their_losses_and_their_type() {
    let mut bytes = small(false);
    let second = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    bytes[second + 0x34] |= 0x06;
    bytes[second + 0x36] = 5;
    let before = marks(&bytes);
    assert!(before.iter().any(|row| row[3..] == [6, 5]), "{before:?}");
    let recording = Recording::from_bytes("x.etl", bytes).unwrap();
    let mut out = Cursor::new(Vec::new());
    copy(&recording, &KeepAll, false, NonZeroUsize::MIN, &mut |_| (), &mut out).unwrap();
    assert_eq!(marks(out.get_ref()), before);
}

#[test]
fn every_clock_and_pointer_size_comes_back() {
    for clock in [
        Clock::Raw { freq: 3_000_000 },
        Clock::Qpc { freq: 10_000_000 },
        Clock::SystemTime,
        Clock::CpuCycles { mhz: 2_000 },
    ] {
        for pointer in [4, 8] {
            let mut etl = Etl::new().clock(clock).pointer_size(pointer).cpus(3).lost(5, 7).buffer_size(2048);
            // Most of these have addresses of 64 bits.
            let events = everything().into_iter().filter(|_| pointer == 8);
            for (number, event) in (0..).zip(events) {
                etl = etl.event((number % 3) as u16, START + number, event);
            }
            for number in 100..300 {
                etl = etl.sampled((number % 3) as u16, START + number, 40, 41, &[0x1000 + number as u64]);
            }
            let bytes = etl.finish();
            comes_back(&Recording::from_bytes("x.etl", bytes).unwrap(), &format!("{clock:?} {pointer}"));
        }
    }
}

/// Parts go into one file, by time.
#[test]
fn parts_become_one() {
    let part = |start: i64, step: i64| {
        let mut etl = Etl::new().cpus(2).buffer_size(1024);
        for number in 0..200 {
            let (cpu, time) = ((number % 2) as u16, START + start + number * step);
            etl = etl.sampled(cpu, time, 40, 41, &[0x1000 + number as u64]);
        }
        etl.finish()
    };
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a.etl"), folder.path().join("b.etl")];
    std::fs::write(&paths[0], part(10, 50)).unwrap();
    std::fs::write(&paths[1], part(7_013, 70)).unwrap();
    let parts = Recording::open(&paths).unwrap();
    let (copy, counts, _) = copied(&parts, false);
    assert_eq!(counts.headers, 1);
    let mut before = texts(&parts);
    before.retain(|event| !is_header(event));
    let mut after = texts(&copy);
    assert!(is_header(&after.remove(0)));
    assert!(before == after, "other events");
}

#[test]
fn records_of_fields_are_read_as_such() {
    let header = FileHeader {
        base: Ticks(5_000),
        writer: (10, 11),
        pointer: Pointer::Bits64,
        os_build: 26_100,
        processors: 12,
        maximum_size: 100,
        mode: 0x1,
        platform: Platform {
            version: [10, 0, 1, 5],
            timer_resolution: 156_250,
            cpu_mhz: 2_995,
            boot: 133_000_000_000_000_000,
            time_zone: std::array::from_fn(|at| at as u8),
        },
        frequency: 10_000_000,
        start: 133_900_000_000_000_000,
        clock: ClockKind::Qpc,
        session: "etwprof".into(),
        file: r"C:\trace.etl".into(),
    };
    for pointer in [Pointer::Bits32, Pointer::Bits64] {
        let header = FileHeader { pointer, ..header.clone() };
        let record = header.record();
        let clock = Recording::from_bytes("x.etl", {
            let mut out = Cursor::new(Vec::new());
            let clock = Recording::from_bytes("x", Etl::new().finish()).unwrap().clock();
            let layout = Layout { buffer_size: 4096, compress: false, logger: 3, clock };
            Writer::new(&mut out, layout, &record, &[]).unwrap().finish(Ending::default()).unwrap();
            out.into_inner()
        })
        .unwrap()
        .clock();
        for compress in [false, true] {
            let mut out = Cursor::new(Vec::new());
            let layout = Layout { buffer_size: 4096, compress, logger: 3, clock };
            let mut writer = Writer::new(&mut out, layout, &record, &[]).unwrap();
            let time = Ticks(6_000);
            let hooked = Hooked { group: 0x0F, opcode: 46, version: 2, pointer, time };
            let classic =
                Classic { task: IMAGE, opcode: 3, level: 0, version: 2, pointer, writer: (40, 41), time };
            let message = Message { provider: CLR, number: 12, pointer, writer: (40, 41), time };
            let manifest = Manifest {
                provider: CLR,
                id: 143,
                version: 2,
                channel: 0,
                level: 4,
                opcode: 37,
                task: 9,
                keyword: 0x30,
                activity: Guid::ZERO,
                pointer,
                writer: (40, 41),
                time,
            };
            let records = [
                hooked.perf_info(&[1; 16]),
                hooked.system(40, 41, &[2; 20]),
                hooked.compact(40, 41, &[3; 7]),
                classic.record(&[4; 9]),
                classic.instance(70, (71, CLR), &[9; 5]),
                message.record(&[10; 6]),
                manifest.record(&[], &[5; 3]),
                manifest.record(&[(10, &[1; 8]), (6, &[2; 24])], &[6; 11]),
            ];
            for record in &records {
                writer.record(300, time, record).unwrap();
            }
            // Longer than a buffer.
            let later = Hooked { time: Ticks(7_000), ..hooked };
            writer.record(1, later.time, &later.perf_info(&vec![7; 60_000])).unwrap();
            writer.skip(4).unwrap();
            let last = Hooked { time: Ticks(8_000), ..hooked };
            writer.record(2, last.time, &last.perf_info(&[8; 16])).unwrap();
            let ending = Ending { end: 133_900_000_100_000_000, events_lost: 3, buffers_lost: 4 };
            let size = writer.finish(ending).unwrap();
            let bytes = out.into_inner();
            assert_eq!(size, bytes.len() as u64);
            let recording = Recording::from_bytes("x.etl", bytes).unwrap();
            let read = recording.header();
            assert_eq!((read.buffer_size, read.os_build, read.processors), (4096, 26_100, 12));
            assert_eq!((read.pointer, read.platform, read.end), (pointer, header.platform, ending.end));
            assert_eq!((read.events_lost, read.buffers_lost, read.buffers_written), (3, 4, 4));
            assert_eq!((read.session.as_str(), read.is_compressed()), ("etwprof", compress));
            assert_eq!(recording.origin().losses.sequence_gaps, 4);
            let mut events = Vec::new();
            reading::events(&recording, |event| {
                let items: Vec<(u16, Vec<u8>)> =
                    event.extended().map(|(kind, data)| (kind, data.to_vec())).collect();
                events.push((
                    event.provider,
                    event.kind,
                    event.processor,
                    event.pid,
                    event.payload.to_vec(),
                    items,
                ));
            });
            let none = u32::MAX;
            let row =
                |provider, kind, cpu, pid, payload: Vec<u8>| (provider, kind, cpu, pid, payload, Vec::new());
            let mut expected = vec![
                row(PERF_INFO, Kind::Classic, 300, none, vec![1; 16]),
                row(PERF_INFO, Kind::Classic, 300, 40, vec![2; 20]),
                row(PERF_INFO, Kind::Classic, 300, 40, vec![3; 7]),
                row(IMAGE, Kind::Classic, 300, 40, vec![4; 9]),
                row(IMAGE, Kind::Classic, 300, 40, vec![9; 5]),
                row(CLR, Kind::Message(12), 300, 40, vec![10; 6]),
                row(CLR, Kind::Manifest(143), 300, 40, vec![5; 3]),
                row(CLR, Kind::Manifest(143), 300, 40, vec![6; 11]),
                row(PERF_INFO, Kind::Classic, 1, none, vec![7; 60_000]),
                row(PERF_INFO, Kind::Classic, 2, none, vec![8; 16]),
            ];
            expected[7].5 = vec![(10, vec![1; 8]), (6, vec![2; 24])];
            assert!(events[1..] == expected, "{pointer:?}, compressed {compress}");
        }
    }
}

#[test]
fn what_a_merge_adds_is_read_as_such() {
    let merged = Merged { pointer: Pointer::Bits64, time: Ticks(START) };
    let image = ImageIdentity { base: 0x7000, size: 0x3000, pid: 40, timestamp: 0x1234, name: "a.dll" };
    let id = DebugId { guid: Guid::from_u128(7 << 90), age: 2 };
    let records = [
        merged.image(&image),
        merged.pdb(&image, id, r"C:\build\a.pdb"),
        merged.build(133_000_000_000_000_000, "26100.1.amd64fre", "Windows 11 Pro"),
        merged.system_paths(r"C:\Windows\system32", r"C:\Windows\"),
        merged.volume(r"\Device\HarddiskVolume2\", r"C:\"),
    ];
    let source = Recording::from_bytes("x.etl", Etl::new().finish()).unwrap();
    let mut out = Cursor::new(Vec::new());
    let layout = Layout { buffer_size: 4096, compress: true, logger: 0, clock: source.clock() };
    let header = Etl::new().finish();
    // The header record stands behind the header of the first buffer, and has its size at its byte 4.
    let length = usize::from(u16::from_le_bytes([header[76], header[77]]));
    let mut writer = Writer::new(&mut out, layout, &header[72..72 + length], &[]).unwrap();
    records.iter().for_each(|record| writer.record(0, Ticks(START), record).unwrap());
    writer.finish(Ending::default()).unwrap();
    let recording = Recording::from_bytes("x.etl", out.into_inner()).unwrap();
    let mut seen = Vec::new();
    reading::events(&recording, |event| {
        seen.push(match decode(event) {
            Ok(Decoded::Kernel(Kernel::ImageId(ImageId::File {
                base,
                size,
                pid,
                timestamp,
                original_name,
            }))) => {
                format!("{base:x} {size:x} {pid} {timestamp:x} {original_name}")
            }
            Ok(Decoded::Kernel(Kernel::ImageId(ImageId::Pdb { base, pid, guid, age, name, managed }))) => {
                format!("{base:x} {pid} {} {name} {managed}", DebugId { guid, age }.digits())
            }
            Ok(Decoded::Kernel(Kernel::SysConfig(SysConfig::Build { product, .. }))) => product.to_string(),
            Ok(Decoded::Kernel(Kernel::SysConfig(SysConfig::Paths { windows, .. }))) => windows.to_string(),
            Ok(Decoded::Kernel(Kernel::SysConfig(SysConfig::Volume { nt, dos }))) => format!("{nt} {dos}"),
            _ => String::new(),
        });
    });
    let pdb = format!(r"7000 40 {} C:\build\a.pdb false", id.digits());
    let expected = [
        "",
        "7000 3000 40 1234 a.dll",
        &pdb,
        "Windows 11 Pro",
        r"C:\Windows\",
        r"\Device\HarddiskVolume2\ C:\",
    ];
    assert_eq!(seen, expected);
}

/// Whatever was read of a damaged recording is in its copy, which is not damaged.
#[test]
fn damage_is_left_behind() {
    for compressed in [false, true] {
        let whole = small(compressed);
        let mut state = 12_345_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for round in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(6) {
                let at = 72 + random(bytes.len() - 72);
                bytes[at] ^= 1 << random(8);
            }
            if round % 5 == 0 {
                bytes.truncate(1_000 + random(whole.len() - 1_000));
            }
            let Ok(damaged) = Recording::from_bytes("x.etl", bytes) else { continue };
            for compress in [false, true] {
                let mut out = Cursor::new(Vec::new());
                copy(&damaged, &KeepAll, compress, NonZeroUsize::MIN, &mut |_| (), &mut out).unwrap();
                let copy = Recording::from_bytes("y.etl", out.into_inner()).unwrap();
                let count = |recording: &Recording| {
                    recording.fold(NonZeroUsize::MIN, &mut |_| (), || 0, |events, _| *events += 1)
                };
                let (before, after) = (count(&damaged), count(&copy));
                assert_eq!(after.value, before.value, "round {round}");
                assert_eq!(after.damage, Vec::new(), "round {round}");
            }
        }
    }
}
