//! Buffers and whole files.

use super::{assert_bytes, hex};
use crate::synth::{Buffer, Clock, Etl, Event, IntoEvent, Process, START, Sample, stack_walk};

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_buffer() {
    let buffer = Buffer::new(0x0103).size(96).time(0x55).sequence(7).flags(2).kind(1).record(&[1, 2, 3]);
    assert_bytes(
        &buffer.clone().finish(),
        "60 00 00 00              ; size
         50 00 00 00 50 00 00 00  ; saved and current offset
         00 00 00 00              ; references
         55 00 00 00 00 00 00 00  ; time
         07 00 00 00 00 00 00 00  ; sequence number
         00 00 00 00 00 00 00 00  ; clock
         03 01 07 00              ; processor, session
         03 00 00 00 50 00 00 00  ; state, offset
         22 00 01 00              ; flags: 16-bit processor, events lost; type
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         01 02 03 00 00 00 00 00  ; the record and its padding
         ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff",
    );
    assert_eq!(u32_at(&buffer.clone().with_size_field(5).finish(), 0), 5);
    assert_eq!(u32_at(&buffer.with_saved_offset(5).finish(), 4), 5);
    let narrow = Buffer::new(3).size(72).narrow_cpu(8).finish();
    assert_eq!((&narrow[0x28..0x2A], &narrow[0x34..0x36]), (&[3, 8][..], &[0, 0][..]));
}

#[test]
fn a_compressed_buffer() {
    let buffer = Buffer::new(0).record(&[9; 16]).compressed().finish();
    assert_eq!(u32_at(&buffer, 0), 72 + 8, "its own length in the file");
    assert_eq!(u32_at(&buffer, 4), 72 + 16, "the length unpacked");
    assert_eq!(buffer[0x34], 0x60);
    assert_bytes(&buffer[72..], "ff ff ff 7f 09 07 00 05 ; a literal and a match of 15");
}

/// The first record of a file of one CPU type.
fn header_record(etl: Etl) -> Vec<u8> {
    let file = etl.finish();
    let size = usize::from(file[76]) | usize::from(file[77]) << 8;
    file[72..72 + size].to_vec()
}

#[test]
fn the_header_of_a_64_bit_file() {
    let record = header_record(
        Etl::new().cpus(4).lost(5, 6).names("s", "f").boot_time(0x77).start_time(0x1_0000).event(
            0,
            START + 10,
            Sample::new(1, 2),
        ),
    );
    assert_bytes(
        &record[..104],
        "02 00 02 c0 40 01 00 00  ; version 2, SYSTEM 64, size 320, type and group 0
         08 00 00 00 04 00 00 00  ; thread, process
         40 42 0f 00 00 00 00 00  ; time
         00 00 00 00 00 00 00 00  ; kernel and user time
         00 00 01 00              ; buffer size 64 KiB
         0a 00 01 05              ; version
         f4 65 00 00              ; build 26100
         04 00 00 00              ; processors
         0a 00 01 00 00 00 00 00  ; end: ten ticks of 100 ns after the start
         5a 62 02 00              ; timer resolution
         00 00 00 00              ; maximum size
         01 00 00 00              ; mode: sequential
         02 00 00 00              ; buffers written
         01 00 00 00              ; start buffers
         08 00 00 00              ; pointer size
         05 00 00 00              ; events lost
         b3 0b 00 00              ; MHz
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; name pointers",
    );
    assert_eq!(i64_at(&record, 104 + 172 + 4), 0x77, "boot time");
    assert_bytes(
        &record[104 + 172 + 4 + 8..],
        "80 96 98 00 00 00 00 00  ; 10 MHz
         00 00 01 00 00 00 00 00  ; start
         01 00 00 00              ; QPC
         06 00 00 00              ; buffers lost
         73 00 00 00 66 00 00 00  ; names",
    );
}

#[test]
fn the_header_of_a_32_bit_file() {
    let record = header_record(Etl::new().pointer_size(4).boot_time(0x77));
    assert_eq!(record[2], 0x01, "SYSTEM 32");
    assert_eq!(u32_at(&record, 32 + 44), 4, "pointer size");
    assert_eq!(i64_at(&record, 32 + 240), 0x77, "boot time");
    assert_eq!(u32_at(&record, 32 + 264), 1, "clock");
}

#[test]
fn clocks() {
    let clock = |clock: Clock| {
        let start = if matches!(clock, Clock::SystemTime) { 133_916_868_000_000_000 } else { START };
        let record = header_record(Etl::new().clock(clock).event(0, start + 3_000, Sample::new(1, 2)));
        let run = i64_at(&record, 32 + 16) - i64_at(&record, 32 + 264);
        (u32_at(&record, 32 + 272), i64_at(&record, 32 + 256), u32_at(&record, 32 + 52), run)
    };
    // Kind, counter frequency, MHz, and the 100 ns units between start and end.
    assert_eq!(clock(Clock::Raw { freq: 1_000_000 }), (0, 1_000_000, 2995, 30_000));
    assert_eq!(clock(Clock::Qpc { freq: 3_000_000 }), (1, 3_000_000, 2995, 10_000));
    assert_eq!(clock(Clock::SystemTime), (2, 10_000_000, 2995, 3_000));
    assert_eq!(clock(Clock::CpuCycles { mhz: 3_000 }), (3, 10_000_000, 3_000, 10));
}

/// Processor, sequence number, flags and the times of the samples of each buffer after the first.
fn buffers(file: &[u8]) -> Vec<(u8, i64, u8, Vec<i64>)> {
    let mut list = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let saved = u32_at(file, at + 4) as usize;
        let times = file[at + 72..at + saved].chunks(32).map(|sample| i64_at(sample, 8)).collect();
        list.push((file[at + 0x28], i64_at(file, at + 0x18), file[at + 0x34], times));
        at += u32_at(file, at) as usize;
    }
    assert_eq!(at, file.len());
    list.split_off(1)
}

#[test]
fn events_go_to_buffers_of_their_processor_in_time_order() {
    let samples = (0..30).map(|n| (n % 3 != 0, n)).map(|(one, n)| (u16::from(one), START + n));
    let etl = samples.fold(Etl::new().cpus(2).buffer_size(512), |etl, (cpu, time)| {
        etl.event(cpu, time, Sample::new(1, 2))
    });
    let range = |skip, count, cpu: u16| {
        let mine = (0..30).filter(move |n| (n % 3 != 0) == (cpu == 1)).map(|n| START + n);
        mine.skip(skip).take(count).collect::<Vec<_>>()
    };
    assert_eq!(
        buffers(&etl.finish()),
        [
            (1, 1, 0x20, range(0, 13, 1)), // full first: 13 samples of 32 bytes
            (0, 2, 0x20, range(0, 10, 0)),
            (1, 3, 0x21, range(13, 7, 1)), // the last, with the flush mark
        ]
    );
}

#[test]
fn exact_buffers_follow_as_they_are() {
    let sample = Sample::new(1, 2);
    let file = Etl::new()
        .buffer_size(512)
        .event(0, START, sample)
        .buffer(Buffer::new(0).size(512).event(START + 9, sample).event(START + 3, sample))
        .buffer(Buffer::new(1).size(512).sequence(9).event(START + 1, sample))
        .finish();
    assert_eq!(
        buffers(&file),
        [(0, 1, 0x21, vec![START]), (0, 2, 0x20, vec![START + 9, START + 3]), (1, 9, 0x20, vec![START + 1]),]
    );
    assert_eq!(Etl::new().buffer_size(512).bytes(&hex("01 02")).finish().len(), 514);
}

#[test]
fn a_sample_with_its_stack() {
    let (time, frames) = (START + 10, [0xFFFF_8000_0000_0011, 0x22, 0x33]);
    let made = Etl::new().sampled(0, time, 8, 12, &frames).finish();
    let by_hand = Etl::new()
        .event(0, time, Sample::new(frames[0], 12))
        .event(0, time + 2, stack_walk::full(time, 8, 12, &frames[..1]))
        .event(0, time + 4, stack_walk::full(time, 8, 12, &frames[1..]))
        .finish();
    assert!(made == by_hand);
}

#[test]
fn a_merged_file_has_a_small_first_buffer() {
    let file = Etl::new().merged().compressed().event(0, START, Process::dc_start(4, "System")).finish();
    assert_eq!(u32_at(&file, 0), 0x400);
    assert_eq!(file[0x34], 0x01, "the processor is one byte");
    assert_eq!(u32_at(&file, 72 + 32 + 32), 0x0401_0001, "mode: compressed, relogged, sequential");
    assert_eq!(file[0x400 + 0x34], 0x61);
    assert_eq!(u32_at(&Etl::new().patch_first_buffer(4, &[0; 4]).finish(), 4), 0);
}

#[test]
fn records_of_a_32_bit_file_are_32_bit_unless_told_otherwise() {
    let file = Etl::new()
        .pointer_size(4)
        .buffer_size(512)
        .event(0, START, Sample::new(1, 2))
        .event(0, START + 1, Sample::new(1, 2).pointer_size(8))
        .finish();
    assert_eq!([file[512 + 72 + 2], file[512 + 72 + 32 + 2]], [0x10, 0x11]);
    assert_eq!(Event::from(Sample::new(1, 2)).record(0, 4).len(), 28);
}
