//! Payloads of kernel, image-id and CLR events.

use super::assert_bytes;
use crate::synth::kernel::{image, perfinfo, process, system, thread};
use crate::synth::{Event, Image, Process, Sample, Thread, clr, guid, image_id, stack_walk};

/// A kernel event's payload: behind the 16 or 32 bytes of its header.
fn payload(event: impl Into<Event>, pointer_size: usize) -> Vec<u8> {
    let record = event.into().record(0, pointer_size);
    let header = match record[2] {
        0x10 | 0x11 => 16,
        0x01 | 0x02 => 32,
        0x0A | 0x14 => 48,
        _ => 80,
    };
    record[header..].to_vec()
}

fn a_process() -> Process {
    Process::dc_start(0x2A, "a.exe")
        .key(0xA1A1)
        .parent(4)
        .session(1)
        .directory_table(0xD7D7)
        .flags(2)
        .sid(5, &[21, 7])
        .command_line("a")
        .package("P", "Q")
        .exit_time(0x55)
}

#[test]
fn process_versions() {
    assert_bytes(
        &payload(a_process(), 8),
        "a1 a1 00 00 00 00 00 00  ; key
         2a 00 00 00 04 00 00 00  ; process, parent
         01 00 00 00 03 01 00 00  ; session, exit status 259
         d7 d7 00 00 00 00 00 00  ; directory table
         02 00 00 00              ; flags: WOW64
         00 10 00 90 00 00 00 00 00 00 00 00 00 00 00 00 ; token: two pointers
         01 02 00 00 00 00 00 05 15 00 00 00 07 00 00 00 ; S-1-5-21-7
         61 2e 65 78 65 00        ; a.exe
         61 00 00 00              ; command line
         50 00 00 00 51 00 00 00  ; package, application",
    );
    assert_bytes(
        &payload(a_process().version(5), 4)[44..],
        "15 00 00 00 07 00 00 00 61 2e 65 78 65 00 61 00 00 00 50 00 00 00 51 00 00 00
         55 00 00 00 00 00 00 00  ; exit time",
    );
    assert_bytes(
        &payload(a_process().version(3).no_sid(), 4),
        "a1 a1 00 00 2a 00 00 00 04 00 00 00 01 00 00 00 03 01 00 00
         d7 d7 00 00              ; directory table
         00 00 00 00              ; no SID
         61 2e 65 78 65 00 61 00 00 00",
    );
    assert_bytes(
        &payload(a_process().version(2).no_sid(), 4),
        "a1 a1 00 00 2a 00 00 00 04 00 00 00 01 00 00 00 03 01 00 00
         00 00 00 00 61 2e 65 78 65 00 61 00 00 00",
    );
    assert_bytes(
        &payload(a_process().version(1).no_sid(), 4),
        "a1 a1 00 00 2a 00 00 00 04 00 00 00 01 00 00 00 03 01 00 00
         00 00 00 00 61 2e 65 78 65 00",
    );
    assert_bytes(
        &payload(a_process().version(0).no_sid(), 8),
        "2a 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00  ; process, parent: pointers wide
         00 00 00 00 61 2e 65 78 65 00",
    );
    assert_bytes(
        &payload(a_process().version(1).sid_behind_null(5, &[18]), 4)[20..],
        "00 00 00 00 00 00 00 00 01 01 00 00 00 00 00 05 12 00 00 00 61 2e 65 78 65 00",
    );
    assert_bytes(&payload(process::terminate(0x2A), 8), "2a 00 00 00");
    assert_eq!(payload(process::counters(32, 1), 8).len(), 16 + 11 * 8);
}

#[test]
fn who_writes_process_events() {
    let ids = |event: Process| Event::from(event).record(0, 8)[8..16].to_vec();
    assert_bytes(&ids(Process::start(8, "a").parent(4)), "08 00 00 00 04 00 00 00");
    assert_bytes(&ids(Process::end(8, "a")), "0c 00 00 00 08 00 00 00");
    assert_eq!(Event::from(Process::dc_start(8, "a")).record(0, 8)[2], 0x11, "the rundown has no ids");
}

fn a_thread() -> Thread {
    Thread::dc_start(0x2A, 0x2B)
        .kernel_stack(0x11, 0x12)
        .user_stack(0x13, 0x14)
        .affinity(0x0F)
        .start_address(0x15)
        .win32_start(0x16)
        .teb(0x17)
        .service(0x18)
        .priorities(9, 5, 2)
}

#[test]
fn thread_versions() {
    assert_bytes(
        &payload(a_thread().name("n"), 8),
        "2a 00 00 00 2b 00 00 00  ; process, thread
         11 00 00 00 00 00 00 00 12 00 00 00 00 00 00 00 ; kernel stack: base, limit
         13 00 00 00 00 00 00 00 14 00 00 00 00 00 00 00 ; user stack
         0f 00 00 00 00 00 00 00  ; affinity
         16 00 00 00 00 00 00 00  ; Win32 start address
         17 00 00 00 00 00 00 00  ; TEB
         18 00 00 00              ; sub-process tag
         09 05 02 00              ; base, page, I/O priority; flags
         6e 00 00 00              ; name",
    );
    assert_eq!(payload(a_thread(), 8).len(), 74, "an empty name");
    assert_eq!(payload(a_thread().without_name(), 8).len(), 72);
    assert_bytes(
        &payload(a_thread().version(2), 4),
        "2a 00 00 00 2b 00 00 00 11 00 00 00 12 00 00 00 13 00 00 00 14 00 00 00
         15 00 00 00 16 00 00 00 17 00 00 00 18 00 00 00",
    );
    assert_eq!(payload(a_thread().version(2), 8).len(), 68);
    assert_bytes(
        &payload(a_thread().version(1), 4),
        "2a 00 00 00 2b 00 00 00 11 00 00 00 12 00 00 00 13 00 00 00 14 00 00 00
         15 00 00 00 16 00 00 00 ff 00 00 00 ; wait mode, padding",
    );
    assert_bytes(&payload(Thread::end(0x2A, 0x2B).version(1), 8), "2a 00 00 00 2b 00 00 00");
    assert_bytes(&payload(a_thread().version(0), 8), "2b 00 00 00 2a 00 00 00 ; thread, process");
    assert_bytes(&payload(thread::set_name(0x2A, 0x2B, "n"), 8), "2a 00 00 00 2b 00 00 00 6e 00 00 00");
}

#[test]
fn switches() {
    let switch = thread::CSwitch::new(0x0A, 0x0B).priorities(8, 9).reason(30, 1).waited(3);
    assert_bytes(
        &payload(switch, 8),
        "0b 00 00 00 0a 00 00 00  ; new, old
         09 08 00 00              ; priorities new, old; C-state, spare
         1e 01 01 00              ; reason, mode, state, ideal processor
         03 00 00 00 00 00 00 00  ; waited, reserved",
    );
    assert_bytes(&payload(thread::ready(0x0B, true), 8), "0b 00 00 00 01 00 01 00");
}

#[test]
fn image_versions() {
    let image = Image::load(0x2A, 0x4000, 0x1000, "a")
        .checksum(0xC5)
        .time_date_stamp(0x75)
        .signature(4, 3)
        .default_base(0x5000);
    assert_bytes(
        &payload(image.clone(), 8),
        "00 40 00 00 00 00 00 00  ; base
         00 10 00 00 00 00 00 00  ; size
         2a 00 00 00              ; process
         c5 00 00 00              ; checksum
         75 00 00 00              ; time stamp
         04 03 00 00              ; signature level and type
         00 50 00 00 00 00 00 00  ; default base
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; reserved
         61 00 00 00",
    );
    assert_bytes(
        &payload(image.clone().version(2), 4),
        "00 40 00 00 00 10 00 00 2a 00 00 00 c5 00 00 00 75 00 00 00 00 00 00 00 00 50 00 00
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 61 00 00 00",
    );
    assert_bytes(&payload(image.clone().version(1), 4), "00 40 00 00 00 10 00 00 2a 00 00 00 61 00 00 00");
    assert_bytes(
        &payload(image.clone().version(0), 8),
        "00 40 00 00 00 00 00 00 00 10 00 00 61 00 00 00 ; a 32-bit size",
    );
    let hook = |image: Image| Event::from(image).record(0, 8)[6..8].to_vec();
    assert_eq!(hook(image), [10, 0x03], "a load is of the process group");
    assert_eq!(hook(Image::unload(1, 0, 0, "")), [2, 0x14]);
    assert_eq!(hook(Image::dc_end(1, 0, 0, "")), [4, 0x14]);
    assert_bytes(&payload(image::kernel_base(0x99), 4), "99 00 00 00");
}

#[test]
fn samples_and_intervals() {
    assert_bytes(
        &payload(Sample::new(0x11, 0x22).count(3).dpc().priority(16), 8),
        "11 00 00 00 00 00 00 00 22 00 00 00 03 00 81 00 ; address, thread, count, flags, rank",
    );
    assert_bytes(&payload(Sample::new(0x11, 0x22).isr(), 4), "11 00 00 00 22 00 00 00 01 00 42 00");
    assert_bytes(
        &payload(perfinfo::set_interval(0, 10_000, 1_221), 8),
        "00 00 00 00 c5 04 00 00 10 27 00 00 ; source, new, old
         54 00 69 00 6d 00 65 00 72 00 00 00",
    );
    assert_bytes(
        &payload(perfinfo::interval_without_name(73, 0, 10_000, 10_000), 4),
        "00 00 00 00 10 27 00 00 10 27 00 00",
    );
    assert_eq!(payload(perfinfo::collection_start(10_000), 8).len(), 24);
}

#[test]
fn interrupts() {
    let began = 0x0807_0605_0403_0201;
    assert_bytes(&payload(perfinfo::dpc(began, 0x99), 4), "01 02 03 04 05 06 07 08 99 00 00 00");
    assert_bytes(
        &payload(perfinfo::isr(began, 0x99, 0x81), 8),
        "01 02 03 04 05 06 07 08 99 00 00 00 00 00 00 00 01 81 00 00 ; return, vector, reserved",
    );
    assert_bytes(
        &payload(perfinfo::msi_isr(began, 0x99, 0x81, 7), 4),
        "01 02 03 04 05 06 07 08 99 00 00 00 01 81 00 00 07 00 00 00",
    );
    let kind = |event: Event| event.record(0, 8)[6];
    assert_eq!(
        [
            perfinfo::threaded_dpc(0, 0),
            perfinfo::isr(0, 0, 0),
            perfinfo::dpc(0, 0),
            perfinfo::timer_dpc(0, 0)
        ]
        .map(kind),
        [66, 67, 68, 69]
    );
}

#[test]
fn stacks() {
    let of = 0x0807_0605_0403_0201;
    let head = "01 02 03 04 05 06 07 08 2a 00 00 00 2b 00 00 00 ; time, process, thread\n";
    assert_bytes(
        &payload(stack_walk::full(of, 0x2A, 0x2B, &[0x11, 0x12]), 8),
        &format!("{head} 11 00 00 00 00 00 00 00 12 00 00 00 00 00 00 00"),
    );
    assert_bytes(
        &payload(stack_walk::full(of, 0x2A, 0x2B, &[0x11, 0x12]), 4),
        &format!("{head} 11 00 00 00 12 00 00 00"),
    );
    assert_bytes(
        &payload(stack_walk::kernel_key(of, 0x2A, 0x2B, 0x77), 8),
        &format!("{head} 77 00 00 00 00 00 00 00"),
    );
    assert_bytes(&payload(stack_walk::user_key(of, 0x2A, 0x2B, 0x77), 4), &format!("{head} 77 00 00 00"));
    assert_bytes(&payload(stack_walk::key_delete(0x77, &[0x11]), 4), "77 00 00 00 11 00 00 00");
    let kind = |event: Event| event.record(0, 8)[6..8].to_vec();
    assert_eq!(kind(stack_walk::full(0, 0, 0, &[])), [32, 0x18]);
    assert_eq!(kind(stack_walk::key_create(0, &[])), [34, 0x18]);
    assert_eq!(kind(stack_walk::key_delete(0, &[])), [35, 0x18]);
    assert_eq!(kind(stack_walk::key_rundown(0, &[])), [36, 0x18]);
    assert_eq!(kind(stack_walk::kernel_key(0, 0, 0, 0)), [37, 0x18]);
    assert_eq!(kind(stack_walk::user_key(0, 0, 0, 0)), [38, 0x18]);
}

#[test]
fn session_and_machine() {
    assert_bytes(
        &payload(system::extension([1, 2, 0, 0, 0, 0, 0, 8]), 8),
        "01 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 00 00 00
         2a 00 00 00 ; version",
    );
    assert_eq!(payload(system::rundown_complete(), 8).len(), 0);
    let cpu = payload(system::cpu_config(2_995, 4, "PC", 9), 8);
    assert_eq!(cpu.len(), 828);
    assert_bytes(&cpu[..8], "b3 0b 00 00 04 00 00 00 ; MHz, processors");
    assert_bytes(&cpu[20..26], "50 00 43 00 00 00");
    assert_bytes(
        &cpu[800..],
        "00 00 00 00 00 00 00 00  ; hyper-threading
         ff ff fe ff ff 7f 00 00  ; highest user address
         09 00 06 00 03 9a 01 01  ; architecture, level, revision, NX, PAE
         00 00 00 00",
    );
    assert_bytes(
        &system::lost(33).record(0, 8)[..40],
        "30 00 14 c0 21 00 00 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00
         e0 9a 39 6a c6 4b e9 4d 87 0b 36 57 f8 94 7e 7e",
    );
}

#[test]
fn image_identity() {
    let id = guid("00112233-4455-6677-8899-aabbccddeeff");
    assert_bytes(
        &payload(image_id::image_id(0x2A, 0x4000, 0x1000, 0x75, "a"), 8),
        "00 40 00 00 00 00 00 00 00 10 00 00 00 00 00 00 2a 00 00 00 75 00 00 00 61 00 00 00",
    );
    assert_bytes(
        &payload(image_id::dbg_id_rsds(0x2A, 0x4000, id, 3, "a.pdb"), 8),
        "00 40 00 00 00 00 00 00 2a 00 00 00
         33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff
         03 00 00 00 61 2e 70 64 62 00",
    );
    assert_bytes(&payload(image_id::dbg_id_none(0x2A, 0x4000), 4), "00 40 00 00 2a 00 00 00");
    assert_eq!(payload(image_id::portable_pdb(1, 2, 3), 8).len(), 20);
    assert_eq!(payload(image_id::deterministic(1, 2), 8).len(), 12);
    let kind = |event: Event| (event.record(0, 8)[4], event.record(0, 8)[6]);
    assert_eq!(kind(image_id::image_id(0, 0, 0, 0, "")), (0, 2));
    assert_eq!(kind(image_id::dbg_id_none(0, 0)), (32, 2));
    assert_eq!(kind(image_id::dbg_id_rsds(0, 0, id, 0, "")), (36, 2));
    assert_eq!(kind(image_id::dbg_id_il_rsds(0, 0, id, 0, "")), (37, 2));
    assert_eq!(kind(image_id::portable_pdb(0, 0, 0)), (38, 2));
    assert_eq!(kind(image_id::deterministic(0, 0)), (40, 1));
    assert_eq!(kind(image_id::file_version(0, 0, "", "")), (64, 0));
    assert_bytes(
        &payload(image_id::file_version(0x1000, 0x75, "a", "1"), 8),
        "00 10 00 00 75 00 00 00  ; size, time stamp
         61 00 00 00              ; original name
         00 00                    ; description
         31 00 00 00 31 00 00 00  ; version, twice
         31 00 30 00 33 00 33 00 00 00 ; language
         00 00                    ; product
         53 00 79 00 6e 00 74 00 68 00 00 00 ; company
         31 00 00 00              ; product version
         00 00 00 00              ; file id, program id",
    );
}

#[test]
fn system_configuration() {
    assert_bytes(
        &image_id::volume_mapping("D", "C").record(0, 8)[4..],
        "23 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; type 35, version 0, nobody
         91 ee 79 9b fd b5 c0 41 a2 43 42 48 e2 66 e9 d0
         00 00 00 00 00 00 00 00
         44 00 00 00 43 00 00 00",
    );
    assert_bytes(&payload(image_id::system_paths("S", "W"), 8), "53 00 00 00 57 00 00 00");
    assert_bytes(
        &payload(image_id::build_info(0x55, "L", "P"), 8),
        "55 00 00 00 00 00 00 00 4c 00 00 00 50 00 00 00",
    );
}

#[test]
fn methods() {
    let method = clr::Method::load(8, 0x7000, 0x30, ["N.T", "M", "()"])
        .id(0x11)
        .module(0x12)
        .token(0x0600_0005)
        .instance(9)
        .rejit(0x13);
    let head = "
        11 00 00 00 00 00 00 00 12 00 00 00 00 00 00 00 ; method, module
        00 70 00 00 00 00 00 00  ; start
        30 00 00 00              ; size
        05 00 00 06              ; token
        08 02 00 00              ; flags: jitted, tier 1\n";
    let names = "4e 00 2e 00 54 00 00 00 4d 00 00 00 28 00 29 00 00 00\n";
    let rejit = "13 00 00 00 00 00 00 00";
    assert_bytes(&payload(method.clone(), 8), &format!("{head}{names} 09 00 {rejit}"));
    assert_bytes(&payload(method.clone().version(1), 4), &format!("{head}{names} 09 00"));
    assert_bytes(&payload(method.clone().version(0), 8), &format!("{head}{names}"));
    assert_bytes(&payload(method.clone().nameless(), 8), &format!("{head} 09 00 {rejit}"));
    assert_bytes(
        &Event::from(method.clone()).record(0, 4)[8..56],
        "0c 00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 ; thread, process, time
         23 0d 3c e1 bc cc 12 4e 93 1b d9 cc 2e ee 27 e4 ; the runtime
         8f 00 02 00 04 25 09 00 30 00 00 00 00 00 00 00 ; 143 v2, level 4, opcode 37, task 9, keyword",
    );
    let flags = |method: clr::Method| u32::from_le_bytes(payload(method, 8)[32..36].try_into().unwrap());
    assert_eq!(flags(method.clone().tier(3).cold()), 0x1000_0188);
    let id = |method: clr::Method| {
        let record = Event::from(method).record(0, 8);
        (record[24], record[40], record[45])
    };
    let (live, rundown) = (0x23, 0x1c); // first byte of the provider
    assert_eq!(id(method.nameless()), (live, 141, 33));
    assert_eq!(id(clr::Method::unload(1, 0, 0, [""; 3])), (live, 144, 38));
    assert_eq!(id(clr::Method::unload(1, 0, 0, [""; 3]).nameless()), (live, 142, 34));
    assert_eq!(id(clr::Method::dc_start(1, 0, 0, [""; 3])), (rundown, 143, 39));
    assert_eq!(id(clr::Method::dc_end(1, 0, 0, [""; 3])), (rundown, 144, 40));
    assert_eq!(id(clr::Method::dc_end(1, 0, 0, [""; 3]).nameless()), (rundown, 142, 36));
}

#[test]
fn code_maps_and_modules() {
    assert_bytes(
        &payload(clr::il_to_native_map(8, 0x11, 0, &[(-2, 0), (3, 9)]), 8),
        "11 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; method, re-JIT id
         00 02 00                 ; extent, count
         fe ff ff ff 03 00 00 00  ; IL
         00 00 00 00 09 00 00 00  ; native
         09 00",
    );
    let id = guid("00112233-4455-6677-8899-aabbccddeeff");
    let module = clr::Module::load(8, 0x11, "a.dll").assembly(0x12).managed_pdb(id, 1, "a.pdb");
    let head = "
        11 00 00 00 00 00 00 00 12 00 00 00 00 00 00 00 ; module, assembly
        08 00 00 00 00 00 00 00  ; flags, reserved
        61 00 2e 00 64 00 6c 00 6c 00 00 00 00 00       ; IL path, native path\n";
    assert_bytes(&payload(module.clone().version(0), 8), head);
    assert_bytes(&payload(module.clone().version(1), 8), &format!("{head} 09 00"));
    assert_bytes(
        &payload(module, 8),
        &format!(
            "{head} 09 00
             33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff 01 00 00 00 61 00 2e 00 70 00 64 00 62 00 00 00
             00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; no native PDB"
        ),
    );
    assert_bytes(
        &payload(clr::stack_walk(8, &[0x11, 0x12]), 4),
        "09 00 00 00 02 00 00 00 11 00 00 00 12 00 00 00",
    );
    assert_bytes(
        &payload(clr::r2r_entry_point(8, 0x11, 0x7000, ["T", "M", "()"]), 8),
        "11 00 00 00 00 00 00 00 54 00 00 00 4d 00 00 00 28 00 29 00 00 00 00 70 00 00 00 00 00 00 09 00",
    );
}
