//! Odd buffers, and what must be read beside them.

use etwprof::etl::DamageKind;

use super::{CODE, read_all};
use crate::synth::{Buffer, Etl, Event, IntoEvent, Process, START, Sample, Thread};

const SIZE: usize = 1024;

/// A buffer of `count` samples, 10 apart from `time` on.
fn samples(cpu: u16, time: i64, count: i64) -> Buffer {
    (0..count).fold(Buffer::new(cpu).size(SIZE), |buffer, index| {
        buffer.event(time + 10 * index, Sample::new(CODE + index as u64, 44))
    })
}

fn etl() -> Etl {
    Etl::new().buffer_size(SIZE as u32)
}

/// Samples and damage of a file.
#[track_caller]
fn read(etl: Etl) -> (usize, Vec<(u64, DamageKind)>) {
    let outcome = read_all(&etl.finish()).unwrap();
    let damage = outcome.damage.into_iter().map(|damage| (damage.offset, damage.kind)).collect();
    (outcome.trace.samples.len(), damage)
}

/// Whatever is wrong with the buffer in the middle, the others are read.
#[test]
fn one_bad_buffer_costs_that_buffer() {
    let middle = samples(0, START + 1_000, 5);
    for (what, bad) in [
        ("size 0", middle.clone().with_size_field(0)),
        ("a small size", middle.clone().with_size_field(100)),
        ("a large size", middle.clone().with_size_field(2 * SIZE as u32)),
        ("an odd size", middle.clone().with_size_field(SIZE as u32 + 13)),
        ("16 MiB", middle.clone().with_size_field(16 << 20)),
        ("the largest size", middle.clone().with_size_field(u32::MAX)),
        ("no records", middle.clone().with_saved_offset(71)),
        ("records beyond its end", middle.clone().with_saved_offset(5_000)),
        ("another logger", middle.clone().patch(0x2A, &[0xEE, 0xEE])),
        ("unknown flags", middle.clone().patch(0x34, &[0xFF, 0xFF])),
        ("an unknown type", middle.clone().patch(0x36, &[0xFF, 0xFF])),
        ("compressed, it says", middle.clone().patch(0x34, &[0x60, 0])),
        ("a broken record", middle.clone().patch(72, &[0xFF; 8])),
        ("a record of size 0", middle.clone().patch(72 + 4, &[0, 0])),
        ("a record of 64 KiB", middle.clone().patch(72 + 4, &[0xFF, 0xFF])),
    ] {
        for position in 0..3 {
            let mut buffers = vec![samples(0, START + 500, 5), samples(0, START + 2_000, 5)];
            buffers.insert(position, bad.clone());
            let etl = buffers.into_iter().fold(etl(), Etl::buffer);
            let (samples, damage) = read(etl);
            assert!((10..=15).contains(&samples), "{what}, place {position}: {samples} samples, {damage:?}");
            // At the end of a file, a buffer of another logger has nobody to contradict it.
            if (what, position) == ("another logger", 2) {
                continue;
            }
            let at = ((position + 1) * SIZE) as u64;
            assert!(
                damage.iter().any(|(offset, _)| (at..at + SIZE as u64).contains(offset)),
                "{what}, place {position}: {damage:?}"
            );
        }
    }
}

/// Buffers larger than the header says, as a file may have them whose header is wrong: each is read by its own size. In
/// files of the logger 0 much of what lies inside looks like a header.
#[test]
fn buffers_larger_than_the_header_says() {
    let lookalike = |size: u32| {
        let mut bytes = vec![0; 1024];
        bytes[..4].copy_from_slice(&size.to_le_bytes());
        bytes[4..8].copy_from_slice(&72u32.to_le_bytes());
        bytes
    };
    for fake in [None, Some(72), Some(1024), Some(4096)] {
        let etl = (0..4).fold(etl(), |etl, index| {
            // Behind its samples, where an aligned place looks for a header, stands one.
            let mut buffer = samples(0, START + 1_000 * index, 9).size(16 * SIZE).patch(0x2A, &[0, 0]);
            for place in (SIZE..16 * SIZE).step_by(SIZE) {
                buffer = fake.iter().fold(buffer, |buffer, size| buffer.patch(place, &lookalike(*size)));
            }
            etl.buffer(buffer)
        });
        let etl = etl.patch_first_buffer(0x2A, &[0, 0]);
        let (samples, damage) = read(etl.clone());
        match fake {
            // These cannot be known from buffers of the session's size.
            Some(1024) => assert!(samples == 36 && !damage.is_empty(), "{samples}, {damage:?}"),
            _ => assert_eq!((samples, damage), (36, vec![]), "{fake:?}"),
        }
    }
}

/// The same for compressed buffers, which start at any byte.
#[test]
fn one_bad_compressed_buffer_costs_that_buffer() {
    let good = |time| samples(0, time, 5).compressed();
    for (what, bad) in [
        ("a small size", good(START + 1_000).with_size_field(90)),
        ("a large size", good(START + 1_000).with_size_field(400)),
        ("16 MiB", good(START + 1_000).with_size_field(16 << 20)),
        ("the largest size", good(START + 1_000).with_size_field(u32::MAX)),
        ("16 MiB of records", good(START + 1_000).with_saved_offset(16 << 20)),
        ("too much of records", good(START + 1_000).with_saved_offset(u32::MAX)),
        ("a bad distance", good(START + 1_000).patch(72, &[0xFF; 8])),
    ] {
        for position in 0..3 {
            let mut buffers = vec![good(START + 500), good(START + 2_000)];
            buffers.insert(position, bad.clone());
            let (samples, damage) = read(buffers.into_iter().fold(etl().compressed(), Etl::buffer));
            assert!((10..=15).contains(&samples), "{what}, place {position}: {samples} samples, {damage:?}");
            assert!(!damage.is_empty(), "{what}, place {position}");
        }
    }
}

#[test]
fn garbage_between_buffers() {
    for (what, garbage) in
        [("ones", vec![0xFF; 2 * SIZE]), ("zeros", vec![0; SIZE]), ("text", b"text".repeat(256))]
    {
        let etl = etl().buffer(samples(0, START + 500, 5)).bytes(&garbage).buffer(samples(0, START + 900, 5));
        let (samples, damage) = read(etl);
        assert_eq!(samples, 10, "{what}");
        let skipped = garbage.len();
        assert_eq!(damage, [(2 * SIZE as u64, DamageKind::NotABuffer { skipped })], "{what}");
    }
}

/// Buffers of one processor that overlap in time, and of many processors at one time.
#[test]
fn overlapping_buffers_are_merged() {
    let overlapping = (0..8).fold(etl(), |etl, index| etl.buffer(samples(0, START + 100 + index, 9)));
    assert_eq!(read(overlapping), (72, vec![]));
    let same = (0..40).fold(etl(), |etl, cpu| etl.buffer(samples(cpu, START + 100, 9)));
    assert_eq!(read(same), (360, vec![]));
}

#[test]
fn records_out_of_order_inside_a_buffer() {
    let disordered = [50, 10, 40, 20, 30].iter().fold(Buffer::new(0).size(SIZE), |buffer, time| {
        buffer.event(START + time, Sample::new(CODE + *time as u64, 44))
    });
    for compressed in [false, true] {
        let shape = |buffer: Buffer| if compressed { buffer.compressed() } else { buffer };
        let etl = etl().buffer(shape(disordered.clone())).buffer(shape(samples(1, START + 5, 4)));
        let outcome = read_all(&etl.finish()).unwrap();
        assert_eq!(outcome.damage, []);
        let times: Vec<i64> = outcome.trace.samples.iter().map(|sample| sample.time.0 - START).collect();
        assert_eq!(times, [5, 10, 15, 20, 25, 30, 35, 40, 50]);
        assert_eq!(outcome.trace.events, 10, "an attempt that was given up leaves nothing behind");
    }
}

/// Two buffers claim 16 MiB each, and the file may decompress to that much once. The one that begins first has it, also
/// when reading starts again because its records are out of order.
#[test]
fn what_may_be_decompressed_is_the_same_in_every_order() {
    const CLAIM: u32 = 16 << 20;
    let claims = |times: [i64; 2]| {
        let event = |buffer: Buffer, time| buffer.event(START + time, Sample::new(CODE + time as u64, 44));
        let buffer = times.into_iter().fold(Buffer::new(0).size(SIZE), event);
        buffer.compressed().with_saved_offset(CLAIM).patch(0x30, &CLAIM.to_le_bytes())
    };
    let file = etl().compressed().buffer(claims([20, 30])).buffer(claims([10, 5])).finish();
    let outcome = read_all(&file).unwrap();
    let times: Vec<i64> = outcome.trace.samples.iter().map(|sample| sample.time.0 - START).collect();
    assert_eq!(times, [5, 10]);
    let kinds: Vec<DamageKind> = outcome.damage.into_iter().map(|damage| damage.kind).collect();
    assert!(
        matches!(
            kinds.as_slice(),
            [DamageKind::TooLarge, DamageKind::Compression { .. }]
                | [DamageKind::Compression { .. }, DamageKind::TooLarge]
        ),
        "{kinds:?}"
    );
}

/// A circular file goes on at its beginning: the oldest buffer may be anywhere.
#[test]
fn the_oldest_buffer_anywhere() {
    for oldest in 0..5 {
        let buffers = (0..5).map(|place| (place + 5 - oldest) % 5).fold(etl().mode(2), |etl, age| {
            etl.buffer(samples(0, START + 100 + 1_000 * age, 3).sequence(900 + age))
        });
        let outcome = read_all(&buffers.finish()).unwrap();
        assert_eq!((outcome.trace.samples.len(), outcome.damage), (15, vec![]));
        assert_eq!(outcome.trace.lost.sequence_gaps, 0);
    }
}

#[test]
fn sequence_gaps_are_counted() {
    for (sequences, missing) in
        [(vec![1, 2, 3], 0), (vec![1, 5], 3), (vec![9, 3], 5), (vec![i64::MIN, i64::MAX], u64::MAX - 1)]
    {
        let etl = sequences
            .iter()
            .fold(etl(), |etl, number| etl.buffer(samples(0, START + 9, 2).sequence(*number)));
        let outcome = read_all(&etl.finish()).unwrap();
        assert_eq!(outcome.trace.lost.sequence_gaps, missing, "{sequences:?}");
    }
}

/// Types that nobody knows are stepped over by their size, whatever stands in them.
#[test]
fn unknown_header_types() {
    let mut count = 0;
    let buffers =
        (0..=255u8).filter(|kind| !matches!(kind, 1..=4 | 10 | 11 | 0x10..=0x15)).fold(etl(), |etl, kind| {
            let unknown = Event::from(Sample::new(1, 2)).patch(2, &[kind]).patch(0, &[32, 0]);
            count += 1;
            let time = START + 100 + i64::from(kind);
            etl.buffer(samples(0, time, 1).event(time + 1, unknown).event(time + 2, Sample::new(CODE, 44)))
        });
    assert_eq!(read(buffers), (2 * count, vec![]));
}

/// WPP records have a time if their writer wanted one; those without stand where the record before them does.
#[test]
fn messages_with_and_without_time() {
    let message = |timed| Event::message(7, |bytes| bytes.u32(1)).message_fields(None, None, timed);
    for compressed in [false, true] {
        let buffer = Buffer::new(0).size(SIZE);
        let first = buffer.event(0, message(false)).event(START + 50, message(true)).event(0, message(false));
        let only = Buffer::new(1).size(SIZE).event(0, message(false));
        let (first, only) = if compressed { (first.compressed(), only.compressed()) } else { (first, only) };
        let outcome = read_all(&etl().buffer(first).buffer(only).finish()).unwrap();
        assert_eq!((outcome.trace.events, outcome.damage), (5, vec![]));
        let (_, last) = outcome.trace.span.unwrap();
        assert_eq!(last.0, START + 50);
    }
}

/// Times at the ends of their range, and a clock of any frequency.
#[test]
fn extreme_times_and_clocks() {
    let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    for kind in [1u32, 2, 3, 77] {
        for frequency in [0u64, 1, 10_000_000, u64::MAX] {
            let events = times.iter().fold(etl(), |etl, time| {
                let defunct = Process::defunct(8, "x").exit_time(*time);
                etl.event(0, *time, Sample::new(CODE, 44))
                    .event(0, *time, Process::start(4, "x"))
                    .event(0, *time, defunct)
                    .event(0, *time, Thread::start(4, 44).by(4, 44))
            });
            let mut file = events.end_time(i64::MIN).start(START).finish();
            // PerfFreq, StartTime, ReservedFlags (the clock) of the header record.
            let header = 72 + 32;
            file[header + 256..header + 264].copy_from_slice(&frequency.to_le_bytes());
            file[header + 272..header + 276].copy_from_slice(&kind.to_le_bytes());
            for start in [0, i64::MIN, i64::MAX] {
                file[header + 264..header + 272].copy_from_slice(&start.to_le_bytes());
                let outcome = read_all(&file).unwrap();
                assert_eq!(outcome.trace.samples.len(), times.len());
            }
        }
    }
}
