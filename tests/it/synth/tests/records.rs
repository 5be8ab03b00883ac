//! Record headers and extended items.

use super::assert_bytes;
use crate::synth::{Event, IntoEvent, Item, Sample, guid};

const TIME: i64 = 0x0807_0605_0403_0201;

#[test]
fn perfinfo() {
    let event = Event::kernel(0x0F, 46, 2, |bytes| bytes.u8(0xAA));
    assert_bytes(
        &event.record(TIME, 8),
        "02 00                    ; version
         11 c0                    ; PERFINFO 64, marker
         11 00                    ; size 17
         2e 0f                    ; type, group
         01 02 03 04 05 06 07 08  ; time
         aa",
    );
    assert_eq!(event.record(TIME, 4)[2], 0x10, "PERFINFO 32");
    assert_eq!(event.by(1, 2).perfinfo().record(TIME, 8).len(), 17, "the ids are dropped");
}

#[test]
fn system() {
    let event = Event::kernel(0x03, 1, 4, |bytes| bytes.ptr(0x11)).by(0x2222, 0x3333).processor_times(5, 6);
    assert_bytes(
        &event.record(TIME, 8),
        "04 00                    ; version
         02 c0                    ; SYSTEM 64, marker
         28 00                    ; size 40
         01 03                    ; type, group
         33 33 00 00              ; thread
         22 22 00 00              ; process
         01 02 03 04 05 06 07 08  ; time
         05 00 00 00              ; kernel time
         06 00 00 00              ; user time
         11 00 00 00 00 00 00 00",
    );
    assert_bytes(
        &event.record(TIME, 4),
        "04 00 01 c0 24 00 01 03  33 33 00 00 22 22 00 00
         01 02 03 04 05 06 07 08  05 00 00 00 06 00 00 00
         11 00 00 00",
    );
}

#[test]
fn compact() {
    let event = Event::kernel(0x05, 36, 2, |bytes| bytes.u32(1)).by(2, 3).compact();
    assert_bytes(
        &event.record(TIME, 8),
        "02 00 04 c0              ; version, COMPACT 64, marker
         1c 00 24 05              ; size 28, type, group
         03 00 00 00 02 00 00 00  ; thread, process
         01 02 03 04 05 06 07 08  ; time
         01 00 00 00",
    );
    assert_eq!(event.record(TIME, 4)[2], 0x03, "COMPACT 32");
}

#[test]
fn full_and_instance() {
    let task = guid("00112233-4455-6677-8899-aabbccddeeff");
    let event = Event::classic(task, 7, 3, |bytes| bytes.u16(0xBBAA)).by(1, 2).level(5);
    assert_bytes(
        &event.record(TIME, 8),
        "32 00                    ; size 50
         14 c0                    ; FULL 64, marker
         07 05 03 00              ; type, level, version
         02 00 00 00 01 00 00 00  ; thread, process
         01 02 03 04 05 06 07 08  ; time
         33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff ; task
         00 00 00 00 00 00 00 00  ; kernel and user time
         aa bb",
    );
    assert_eq!(event.record(TIME, 4)[2], 0x0A, "FULL 32");
    let instance = event.instance(0x10, 0x20, guid("00000001-0000-0000-0000-000000000002"));
    let record = instance.record(TIME, 8);
    assert_bytes(
        &record[..4],
        "4a 00                    ; size 74
         15 c0                    ; INSTANCE 64, marker",
    );
    assert_bytes(
        &record[40..],
        "00 00 00 00 00 00 00 00  ; kernel and user time
         10 00 00 00 20 00 00 00  ; instance, parent instance
         01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 ; parent's task
         aa bb",
    );
    assert_eq!(instance.record(TIME, 4)[2], 0x0B, "INSTANCE 32");
}

#[test]
fn a_kernel_event_in_a_full_header_has_the_task_of_its_group() {
    assert_bytes(
        &Sample::new(0x11, 0x22).full().by(1, 2).record(TIME, 8),
        "40 00 14 c0 2e 00 02 00  ; size 64, FULL 64, type 46, level, version 2
         02 00 00 00 01 00 00 00  ; thread, process
         01 02 03 04 05 06 07 08  ; time
         b4 bf 1d ce 7e 13 a6 4d 87 b0 3f 59 aa 10 2c bc ; PerfInfo
         00 00 00 00 00 00 00 00  ; kernel and user time
         11 00 00 00 00 00 00 00  ; instruction
         22 00 00 00 01 00 40 00  ; thread, count, flags, rank",
    );
}

#[test]
fn manifest() {
    let event =
        Event::manifest(guid("00112233-4455-6677-8899-aabbccddeeff"), 0x8F, 2, |bytes| bytes.u8(0xEE))
            .opcode(37)
            .task(9)
            .keyword(0x30)
            .channel(16)
            .activity(guid("10000000-0000-0000-0000-000000000001"))
            .by(1, 2)
            .level(5);
    let header = "
         13 c0                    ; EVENT_HEADER 64, marker
         00 00 00 00              ; flags, property
         02 00 00 00 01 00 00 00  ; thread, process
         01 02 03 04 05 06 07 08  ; time
         33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff ; provider
         8f 00 02 10 05 25 09 00  ; id, version, channel, level, opcode, task
         30 00 00 00 00 00 00 00  ; keyword
         00 00 00 00 00 00 00 00  ; kernel and user time
         00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 01 ; activity";
    assert_bytes(&event.record(TIME, 8), &format!("51 00 {header}\n ee"));

    let with_items =
        event.item(Item::stack64(0x77, &[0x1111, 0x2222])).item(Item::sid(5, &[18])).record(TIME, 8);
    let header = header.replace("00 00 00 00              ; flags", "01 00 00 00 ; flags");
    let items = "
         20 00 06 00 01 00 18 00  ; 32 bytes, stack 64, another follows, 24 bytes of data
         77 00 00 00 00 00 00 00  ; match id
         11 11 00 00 00 00 00 00
         22 22 00 00 00 00 00 00
         18 00 02 00 00 00 0c 00  ; 24 bytes, SID, the last, 12 bytes of data
         01 01 00 00 00 00 00 05  ; revision, sub-authorities, authority
         12 00 00 00 00 00 00 00  ; 18, padding
         ee";
    assert_bytes(&with_items, &format!("89 00 {header}\n {items}"));
}

#[test]
fn stack_items() {
    let event = Event::manifest(guid("00112233-4455-6677-8899-aabbccddeeff"), 1, 0, |bytes| bytes);
    let items = |item| event.clone().item(item).record(0, 4)[80..].to_vec();
    assert_bytes(
        &items(Item::stack32(1, &[0x1111, 0x2222, 0x3333])),
        "20 00 05 00 00 00 14 00  ; 32 bytes, stack 32, the last, 20 bytes of data
         01 00 00 00 00 00 00 00  ; match id
         11 11 00 00 22 22 00 00 33 33 00 00
         00 00 00 00              ; padding",
    );
    assert_bytes(
        &items(Item::stack_key32(1, 0x1234)),
        "18 00 11 00 00 00 10 00  01 00 00 00 00 00 00 00  34 12 00 00 00 00 00 00",
    );
    assert_bytes(
        &items(Item::stack_key64(1, 0xffff_8000_0000_1234)),
        "18 00 12 00 00 00 10 00  01 00 00 00 00 00 00 00  34 12 00 00 00 80 ff ff",
    );
    assert_bytes(
        &items(Item::provider_traits("Ab")),
        "10 00 0c 00 00 00 05 00  05 00 41 62 00 00 00 00 ; size, name, padding",
    );
    assert_bytes(
        &items(Item::schema("Ab", &[])),
        "10 00 0b 00 00 00 06 00  06 00 00 41 62 00 00 00 ; size, tag, name, padding",
    );
}

#[test]
fn message() {
    use crate::synth::Origin;
    let event = Event::message(0x1234, |bytes| bytes.u8(0xEE));
    assert_bytes(&event.record(TIME, 8), "09 00 00 90 34 12 00 00 ee ; size, -, marker, number, options");
    let origin = Origin::Message(guid("00112233-4455-6677-8899-aabbccddeeff"));
    assert_bytes(
        &event.message_fields(Some(7), Some(origin), true).by(1, 2).record(TIME, 8),
        "2d 00 00 90 34 12 3b 00  ; size 45; options: sequence, GUID, counter value, ids
         07 00 00 00              ; sequence
         33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff
         01 02 03 04 05 06 07 08  ; time
         02 00 00 00 01 00 00 00  ; thread, process
         ee",
    );
}

#[test]
fn wrong_on_purpose() {
    let sample = Sample::new(0x11, 0x22);
    assert_eq!(
        sample.record_length(20).record(0, 8),
        &Event::from(sample).patch(4, &[20]).record(0, 8)[..20]
    );
    assert_eq!(sample.patch(4, &[0xFF, 0xFF]).record(0, 8)[4..6], [0xFF, 0xFF]);
    assert_eq!(sample.extra(&[9]).record(0, 8).len(), 33);
    assert_eq!(sample.header_version(9).record(0, 8)[0], 9);
    assert_eq!(sample.pointer_size(4).record(0, 8).len(), 28, "the record of a 32-bit writer");
}
