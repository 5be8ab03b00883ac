//! Every decoder with payloads of every length and of odd contents.

use etwprof::event::{Event, Kind, NO_ID, Pointer, Ticks};
use etwprof::events::{Decoded, decode};
use etwprof::guid::Guid;
use etwprof::guids::*;

use super::everything;

fn event(provider: Guid, kind: Kind, opcode: u8, version: u8, pointer: Pointer, payload: &[u8]) -> Event<'_> {
    let (items, tid) = (payload, NO_ID);
    Event {
        time: Ticks(1),
        provider,
        kind,
        opcode,
        version,
        pointer,
        processor: 0,
        pid: 0,
        tid,
        items,
        payload,
    }
}

/// All tasks with decoders, all opcodes, versions and pointer widths; short payloads give no event, and what is
/// given can be shown.
#[test]
fn of_every_kind() {
    let classic = [
        PROCESS,
        THREAD,
        IMAGE,
        PERF_INFO,
        STACK_WALK,
        IMAGE_ID,
        SYSTEM_CONFIG,
        SYS_CONFIG,
        LOST_EVENT,
        EVENT_TRACE,
    ];
    let manifest = [CLR, CLR_RUNDOWN, CLR_PRIVATE, KERNEL_EVENT_TRACING, KERNEL_PROCESS, JSCRIPT];
    let mixed: Vec<u8> = (0..1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let contents = [vec![0; 1024], vec![0xFF; 1024], mixed];
    let lengths = || (0..64).chain([72, 80, 96, 128, 256, 820, 828, 1024]);
    let (mut decoded, mut malformed) = (0, 0);
    for content in &contents {
        for pointer in [Pointer::Bits32, Pointer::Bits64] {
            for version in [0, 1, 2, 3, 4, 5, 200] {
                for number in 0..=255 {
                    for length in lengths() {
                        let payload = &content[..length];
                        let tasks = classic.iter().map(|task| (*task, Kind::Classic));
                        let ids = manifest.iter().map(|provider| (*provider, Kind::Manifest(number.into())));
                        for (provider, kind) in tasks.chain(ids) {
                            match decode(&event(provider, kind, number, version, pointer, payload)) {
                                Ok(Decoded::Other) => {}
                                Ok(_) => decoded += 1,
                                Err(_) => malformed += 1,
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(decoded > 10_000 && malformed > 10_000, "{decoded} decoded, {malformed} malformed");
}

/// What the decoders give can be shown, whatever texts are in it.
#[test]
fn texts_of_odd_bytes() {
    for (number, content) in [(0u8, [0xFF; 400]), (1, [0xD8; 400]), (2, [0x80; 400])] {
        let event = event(PROCESS, Kind::Classic, 3, 4, Pointer::Bits64, &content);
        let shown = format!("{:?} {:?}", decode(&event), event.tracelogging_name());
        assert!(!shown.is_empty(), "{number}");
    }
}

/// Real payloads of every kind, cut at every byte: an event or none, never another panic than the assertion's.
#[test]
fn cut_at_every_byte() {
    let mut cut = 0;
    for made in everything() {
        let record = made.record(1, 8);
        for length in 0..record.len() {
            let mut short = record[..length].to_vec();
            // Both places where a record tells its size.
            for at in [0, 4] {
                if let Some(size) = short.get_mut(at..at + 2) {
                    size.copy_from_slice(&(length as u16).to_le_bytes());
                }
            }
            let file = crate::synth::Etl::new().buffer_size(4096);
            let buffer = crate::synth::Buffer::new(0).size(4096).record(&short);
            cut += u64::from(super::read_all(&file.buffer(buffer).finish()).is_ok());
        }
    }
    assert!(cut > 1_000);
}
