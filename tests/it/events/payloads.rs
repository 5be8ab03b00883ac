//! Payloads of kernel events in every version and width, as other systems wrote them: each decodes to the values
//! that its bytes hold.

use std::collections::BTreeMap;
use std::fs;

use etwprof::etl::Recording;
use etwprof::event::{Event, Kind, NO_ID, Pointer, Ticks};
use etwprof::events::kernel::{
    ContextSwitch, DiskIo, DiskIoInit, DiskIoKind, FileName, Image, Interrupt, InterruptKind, Kernel, Naming,
    PageFault, Phase, Process, ProfileInterval, ReadyThread, Sample, StackWalk, Thread, sid_text,
};
use etwprof::events::{Decoded, decode};
use etwprof::guid::Guid;

use crate::support::{data, reading};

const PROCESS: Guid = Guid::from_u128(0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c);
const THREAD: Guid = Guid::from_u128(0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c);
const IMAGE: Guid = Guid::from_u128(0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518);
const PERF_INFO: Guid = Guid::from_u128(0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc);
const DISK_IO: Guid = Guid::from_u128(0x3d6fa8d4_fe05_11d0_9dda_00c04fd7ba7c);
const PAGE_FAULT: Guid = Guid::from_u128(0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c);
const FILE_IO: Guid = Guid::from_u128(0x90cbdc39_4a3e_11d1_84f4_0000f80464e3);
const STACK_WALK: Guid = Guid::from_u128(0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3);

/// The payloads of libtrace's tests; a name tells class, event, width and version:
/// `kImageDCStartPayload32bitsV1`.
struct Payloads(BTreeMap<String, Vec<u8>>);

impl Payloads {
    fn read() -> Payloads {
        let text = fs::read_to_string(data::file("etl/payloads/payloads.json")).unwrap();
        let hex: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        Payloads(hex.iter().map(|(name, hex)| (name.clone(), bytes(hex))).collect())
    }

    /// The event with this payload; the header knows no ids.
    #[track_caller]
    fn event(&self, name: &str, provider: Guid, opcode: u8) -> Event<'_> {
        let name = format!("k{name}");
        let (_, layout) = name.split_once("Payload").unwrap();
        let (pointer, version) = match layout.strip_prefix("32bits") {
            Some(version) => (Pointer::Bits32, version),
            None => (Pointer::Bits64, layout),
        };
        Event {
            time: Ticks(1),
            provider,
            kind: Kind::Classic,
            opcode,
            version: version.strip_prefix('V').unwrap().parse().unwrap(),
            pointer,
            processor: 0,
            pid: NO_ID,
            tid: NO_ID,
            items: &[],
            payload: self.0.get(&name).unwrap_or_else(|| panic!("no {name}")),
        }
    }

    #[track_caller]
    fn image(&self, name: &str, opcode: u8) -> Image<'_> {
        match kernel(&self.event(name, IMAGE, opcode)) {
            Kernel::Image(image) => image,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[track_caller]
    fn process(&self, name: &str, opcode: u8) -> Process<'_> {
        match kernel(&self.event(name, PROCESS, opcode)) {
            Kernel::Process(process) => process,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[track_caller]
    fn thread(&self, name: &str, opcode: u8) -> Thread<'_> {
        match kernel(&self.event(name, THREAD, opcode)) {
            Kernel::Thread(thread) => thread,
            other => panic!("{name} is {other:?}"),
        }
    }
}

#[track_caller]
fn kernel<'a>(event: &Event<'a>) -> Kernel<'a> {
    match decode(event) {
        Ok(Decoded::Kernel(kernel)) => kernel,
        other => panic!("{other:?}"),
    }
}

/// Phase, base, size, process, checksum, link time, path.
type ImageFields = (Phase, u64, u64, u32, u32, u32, String);

fn image_fields(image: &Image<'_>) -> ImageFields {
    let Image { phase, base, size, pid, checksum, timestamp, file_name, .. } = *image;
    (phase, base, size, pid, checksum, timestamp, file_name.to_string())
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn images() {
    let payloads = Payloads::read();
    let program = r"C:\code\sawbuck\src\sawbuck\Debug\test_program.exe";
    let fastprox = r"\Windows\System32\wbem\fastprox.dll";
    let kernel = r"\SystemRoot\system32\ntoskrnl.exe";
    let xperf =
        r"\Device\HarddiskVolume4\Program Files (x86)\Windows Kits\8.0\Windows Performance Toolkit\xperf.exe";
    use Phase::{End, RundownEnd, RundownStart, Start};
    type Row = (&'static str, u8, (Phase, u64, u64, u32, u32, u32, &'static str));
    #[rustfmt::skip]
    let expected: [Row; 12] = [
        ("ImageUnloadPayloadV2", 2, (End, 0x7fe_f778_0000, 0xe_2000, 5_956, 0xe_77a1, 0x4a5b_defe, fastprox)),
        ("ImageUnloadPayloadV3", 2, (End, 0x7ffc_a3f3_0000, 0xe_4000, 2_040, 0xe_2e7b, 0x5215_deb8, fastprox)),
        ("ImageDCStartPayload32bitsV0", 3, (RundownStart, 0x116_0000, 0x19_e000, NO_ID, 0, 0, program)),
        ("ImageDCStartPayload32bitsV1", 3, (RundownStart, 0x116_0000, 0x19_e000, 7_644, 0, 0, program)),
        ("ImageDCStartPayload32bitsV2", 3,
            (RundownStart, 0x116_0000, 0x19_e000, 7_644, 0x4ba2_6867, 0xcafe_babe, program)),
        ("ImageDCStartPayloadV2", 3, (RundownStart, 0xffff_f800_02e0_8000, 0x5e_6000, 0, 0x55_a245, 0, kernel)),
        ("ImageDCStartPayloadV3", 3, (RundownStart, 0x7745_0000, 0x16_8000, 4, 0x16_bf18, 0,
            r"\Device\HarddiskVolume4\Windows\SysWOW64\ntdll.dll")),
        ("ImageDCEndPayloadV2", 4, (RundownEnd, 0xffff_f800_02e1_9000, 0x5e_5000, 0, 0x54_cbb3, 0, kernel)),
        ("ImageDCEndPayloadV3", 4,
            (RundownEnd, 0xffff_f800_7486_f000, 0x78_1000, 0, 0x71_20d6, 0x5271_8d9c, kernel)),
        ("ImageLoadPayloadV0", 10, (Start, 0x116_0000, 0x19_e000, NO_ID, 0, 0, program)),
        ("ImageLoadPayloadV2", 10, (Start, 0x7140_0000, 0x8000, 3_828, 0xfe9a, 0x4a5b_c3e4,
            r"\Windows\SysWOW64\wscisvif.dll")),
        ("ImageLoadPayloadV3", 10, (Start, 0x7ff7_3a49_0000, 0x6_9000, 2_700, 0x7_6e31, 0x5010_9d9d, xperf)),
    ];
    for (name, opcode, (phase, base, size, pid, checksum, timestamp, path)) in expected {
        let expected = (phase, base, size, pid, checksum, timestamp, path.to_owned());
        assert_eq!(image_fields(&payloads.image(name, opcode)), expected, "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn processes() {
    let payloads = Payloads::read();
    let notepad = "S-1-5-21-753675414-103939432-3550797041-1000";
    let quoted = r#""C:\Windows\system32\notepad.exe" "#;
    use Phase::{Defunct, End, RundownEnd, RundownStart, Start};
    // Name, opcode; then phase, pid, parent, session, exit status, flags; SID, executable, command line.
    type Row = (&'static str, u8, (Phase, u32, u32, i32, i32, u32), &'static str, &'static str, &'static str);
    #[rustfmt::skip]
    let expected: [Row; 14] = [
        ("ProcessStartPayload32bitsV1", 1, (Start, 1_776, 988, 1, 259, 0), notepad, "notepad.exe", ""),
        ("ProcessStartPayload32bitsV2", 1, (Start, 1_776, 988, 1, 259, 0), notepad, "notepad.exe", quoted),
        ("ProcessStartPayload32bitsV3", 1, (Start, 1_776, 988, 1, 259, 0), notepad, "notepad.exe", quoted),
        ("ProcessStartPayloadV2", 1, (Start, 1_776, 988, 1, 259, 0), notepad, "notepad.exe", quoted),
        ("ProcessStartPayloadV3", 1, (Start, 6_656, 7_328, 1, 259, 0),
            "S-1-5-21-33620738-100992003-168364039-3083", "xperf.exe", "xperf  -d out.etl"),
        ("ProcessStartPayloadV4", 1, (Start, 2_700, 5_896, 5, 259, 0),
            "S-1-5-21-67305985-134678021-101386761-1001", "xperf.exe", "xperf  -stop"),
        ("ProcessEndPayload32bitsV1", 2, (End, 1_776, 988, 1, 0, 0), notepad, "notepad.exe", ""),
        ("ProcessDCStartPayloadV3", 3, (RundownStart, 0, 0, -1, 0, 0), "S-1-5-16", "Idle", ""),
        ("ProcessDCStartPayloadV4", 3, (RundownStart, 0, 0, -1, 0, 0), "S-1-5-16", "Idle", ""),
        ("ProcessDCEndPayloadV3", 4, (RundownEnd, 0, 0, -1, 0, 0), "S-1-5-18", "Idle", ""),
        ("ProcessDCEndPayloadV4", 4, (RundownEnd, 0, 0, -1, 0, 0), "S-1-5-16", "Idle", ""),
        ("ProcessDefunctPayloadV2", 39, (Defunct, 1_832, 716, 0, 0, 0),
            "S-1-5-21-3634456126-3506768598-1019686479-1004", "cygrunsrv.exe", ""),
        ("ProcessDefunctPayloadV3", 39, (Defunct, 3_684, 2_196, 0, 0, 0), "S-1-5-16", "cmd.exe", ""),
        ("ProcessDefunctPayloadV5", 39, (Defunct, 6_472, 2_064, 1, 0, 0),
            "S-1-5-21-3284320704-3351692740-3553808848-980", "chrome.exe", ""),
    ];
    for (name, opcode, fields, sid, executable, command_line) in expected {
        let p = payloads.process(name, opcode);
        let found = (p.phase, p.pid, p.parent_pid, p.session as i32, p.exit_status, p.flags);
        assert_eq!(found, fields, "{name}");
        assert_eq!(sid_text(p.sid).as_deref(), Some(sid), "{name}");
        assert_eq!(p.image_file_name.to_string(), executable, "{name}");
        assert_eq!(p.command_line.to_string(), command_line, "{name}");
    }
    assert_eq!(payloads.process("ProcessDefunctPayloadV5", 39).exit_time, Some(0x01ce_faec_f9a2_498d));
    assert_eq!(payloads.process("ProcessDefunctPayloadV3", 39).exit_time, None);
    assert_eq!(payloads.process("ProcessStartPayloadV4", 1).key, 0xffff_e000_1afc_4080);
    assert_eq!(payloads.process("ProcessStartPayload32bitsV1", 1).key, 0, "a page directory is no key");
    let end = payloads.process("ProcessEndPayloadV4", 2);
    assert_eq!((end.pid, end.exit_status), (2_040, 0));
    assert!(end.command_line.to_string().starts_with("xperf  -on PROC_THREAD+LOADER+PROFILE+CSWITCH+"));
}

/// A TOKEN_USER may have a null pointer and a SID behind it all the same; a SID block of four zero bytes has none.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn sids_behind_null_pointers() {
    let payloads = Payloads::read();
    let mut payload = payloads.0["kProcessStartPayload32bitsV2"].clone();
    assert_eq!(payload[20..28], [0; 8], "two null pointers");
    // The same process without a SID.
    payload.splice(20..28 + 28, [0; 4]);
    let mut event = payloads.event("ProcessStartPayload32bitsV2", PROCESS, 1);
    event.payload = &payload;
    let Kernel::Process(process) = kernel(&event) else { panic!() };
    assert_eq!((process.sid, process.image_file_name.to_string().as_str()), (&[][..], "notepad.exe"));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn threads() {
    let payloads = Payloads::read();
    use Phase::{End, RundownEnd, RundownStart, Start};
    // Name, opcode; then phase, pid, tid, Win32 start address, TEB.
    type Row = (&'static str, u8, (Phase, u32, u32, u64, u64));
    #[rustfmt::skip]
    let expected: [Row; 9] = [
        ("ThreadStartPayload32bitsV1", 1, (Start, 4, 1_868, 0, 0)),
        ("ThreadStartPayload32bitsV3", 1, (Start, 556, 4_908, 0x77ab_03e9, 0x7ffd_e000)),
        ("ThreadStartPayloadV3", 1, (Start, 8_568, 5_268, 0x5c58_fd2c, 0xff12_c000)),
        ("ThreadEndPayload32bitsV1", 2, (End, 4, 180, 0, 0)),
        ("ThreadEndPayload32bitsV3", 2, (End, 4_804, 4_964, 0x77ab_03e9, 0x7ffd_d000)),
        ("ThreadEndPayloadV3", 2, (End, 2_040, 3_288, 0x7ffc_ae72_8530, 0x7ff7_39b3_8000)),
        ("ThreadDCStartPayloadV2", 3, (RundownStart, 0, 0, 0xffff_f800_01c7_2580, 0)),
        ("ThreadDCStartPayloadV3", 3, (RundownStart, 0, 0, 0xffff_f800_749c_0790, 0)),
        ("ThreadDCEndPayloadV3", 4, (RundownEnd, 0, 0, 0xffff_f800_749c_0790, 0)),
    ];
    for (name, opcode, fields) in expected {
        let t = payloads.thread(name, opcode);
        assert_eq!((t.phase, t.pid, t.tid, t.start_address, t.teb), fields, "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn switches() {
    let payloads = Payloads::read();
    let switch = |name| {
        let decoded = kernel(&payloads.event(name, THREAD, 36));
        let Kernel::ContextSwitch(switch) = decoded else { panic!("{name}: {decoded:?}") };
        let ContextSwitch { new_tid, old_tid, new_priority, old_priority, .. } = switch;
        let ContextSwitch { old_wait_reason, old_wait_mode, old_state, new_wait_time, .. } = switch;
        let (new, old) = ((new_tid, new_priority, new_wait_time), (old_tid, old_priority));
        (new, old, (old_wait_reason, old_wait_mode, old_state))
    };
    assert_eq!(switch("ThreadCSwitchPayload32bitsV2"), ((0, 0, 18), (4_396, 9), (23, 0, 1)));
    assert_eq!(switch("ThreadCSwitchPayloadV2"), ((2_252, 8, 1), (0, 0), (0, 0, 2)));
    let decoded = kernel(&payloads.event("ThreadReadyThreadPayloadV2", THREAD, 50));
    let Kernel::ReadyThread(ReadyThread { tid, adjust_reason, adjust_increment, flags, .. }) = decoded else {
        panic!("{decoded:?}");
    };
    assert_eq!((tid, adjust_reason, adjust_increment, flags), (2_252, 1, 0, 1));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_and_intervals() {
    let payloads = Payloads::read();
    let sample = |name| {
        let decoded = kernel(&payloads.event(name, PERF_INFO, 46));
        let Kernel::Sample(sample) = decoded else { panic!("{name}: {decoded:?}") };
        let Sample { address, tid, count, in_dpc, in_isr, priority, .. } = sample;
        (address, tid, count, (in_dpc, in_isr), priority)
    };
    let expected = (0x82fc_1a45, 3_252, 1, (false, false), 0);
    assert_eq!(sample("PerfInfoSampleProfPayload32bitsV2"), expected);
    let expected = (0xffff_f800_748c_ab4b, 8_048, 1, (false, false), 8);
    assert_eq!(sample("PerfInfoSampleProfPayloadV2"), expected);
    for (name, opcode) in [
        ("PerfInfoCollectionStartPayload32bitsV2", 73),
        ("PerfInfoCollectionStartPayloadV3", 73),
        ("PerfInfoCollectionEndPayload32bitsV2", 74),
        ("PerfInfoCollectionEndPayloadV3", 74),
    ] {
        let decoded = kernel(&payloads.event(name, PERF_INFO, opcode));
        let Kernel::ProfileInterval(ProfileInterval { source, interval, old_interval, name: text, .. }) =
            decoded
        else {
            panic!("{name}: {decoded:?}");
        };
        assert_eq!((source, interval, old_interval), (0, 10_000, 10_000), "{name}");
        // Version 3 has it.
        assert_eq!(text.to_string(), if name.ends_with("V3") { "Timer" } else { "" }, "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn interrupts() {
    let payloads = Payloads::read();
    use InterruptKind::{Dpc, Isr, MessageIsr, ThreadedDpc, TimerDpc};
    #[rustfmt::skip]
    let expected = [
        ("PerfInfoISRMSIPayload32bitsV2", 50, MessageIsr { vector: 0xb0 }, 0x2ab_91de_4ff8, 0x8b8c_a90e),
        ("PerfInfoISRMSIPayloadV2", 50, MessageIsr { vector: 0x91 }, 0x466_a83a_edeb, 0xffff_f800_0093_7e20),
        ("PerfInfoISRPayload32bitsV2", 67, Isr { vector: 0xb2 }, 0x2ab_91b1_c0d4, 0x94dc_ef00),
        ("PerfInfoISRPayloadV2", 67, Isr { vector: 0x81 }, 0x466_a842_4dac, 0xffff_f800_02f9_15c0),
        ("PerfInfoThreadedDPCPayload32bitsV2", 66, ThreadedDpc, 0x2ab_91fd_4d0a, 0x8283_7107),
        ("PerfInfoDPCPayload32bitsV2", 68, Dpc, 0x2ab_91b1_c134, 0x900c_eb1d),
        ("PerfInfoDPCPayloadV2", 68, Dpc, 0x466_a83a_eccd, 0xffff_f800_7496_bce4),
        ("PerfInfoTimerDPCPayload32bitsV2", 69, TimerDpc, 0x2ab_91b1_3bc3, 0x93fe_27b0),
        ("PerfInfoTimerDPCPayloadV2", 69, TimerDpc, 0x466_a83c_2475, 0xffff_f800_0311_04d8),
    ];
    for (name, opcode, kind, start, routine) in expected {
        let decoded = kernel(&payloads.event(name, PERF_INFO, opcode));
        let Kernel::Interrupt(interrupt) = decoded else { panic!("{name}: {decoded:?}") };
        let Interrupt { kind: is, start: began, routine: code, .. } = interrupt;
        assert_eq!((is, began, code), (kind, Ticks(start), routine), "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn disk_io() {
    let payloads = Payloads::read();
    use DiskIoKind::{Flush, Read, Write};
    // Kind, flags, bytes, offset, file, request, elapsed, thread.
    type Row = (&'static str, u8, DiskIoKind, u32, u32, u64, Option<u64>, u64, u64, Option<u32>);
    #[rustfmt::skip]
    let expected: [Row; 6] = [
        ("DiskIOReadPayloadV2", 10, Read, 0x6_0043, 0x8000, 0x43a4_c000, Some(0xffff_f8a0_0822_9c70),
            0xffff_fa80_0245_1510, 0x1_7aa0, None),
        ("DiskIOReadPayloadV3", 10, Read, 0x6_0043, 0x1000, 0x1ac_d610_0000, Some(0xffff_e000_0647_7840),
            0xffff_e000_05e1_4b10, 0x8ead, Some(7056)),
        ("DiskIOWritePayloadV2", 11, Write, 0x6_0043, 0x3200, 0x67f_0000, Some(0xffff_f8a0_02ed_f750),
            0xffff_fa80_024e_cb60, 0x3c9, None),
        ("DiskIOWritePayloadV3", 11, Write, 0x6_0043, 0x2000, 0xf59c_6000, Some(0xffff_e000_02a3_4bf0),
            0xffff_e000_0771_f010, 0x1ad, Some(6896)),
        ("DiskIOFlushBuffersPayloadV2", 14, Flush, 0x6_0000, 0, 0, None, 0xffff_fa80_023a_6880, 0xb0b6, None),
        ("DiskIOFlushBuffersPayloadV3", 14, Flush, 0x6_0000, 0, 0, None, 0xffff_e000_0755_9750, 0x759, Some(6896)),
    ];
    for (name, opcode, kind, flags, bytes, offset, file, irp, elapsed, tid) in expected {
        let decoded = kernel(&payloads.event(name, DISK_IO, opcode));
        let Kernel::DiskIo(io) = decoded else { panic!("{name}: {decoded:?}") };
        let DiskIo {
            disk,
            kind: is,
            flags: f,
            bytes: b,
            offset: o,
            file: key,
            irp: i,
            elapsed: e,
            tid: t,
            ..
        } = io;
        assert_eq!(disk, u32::from(name == "DiskIOReadPayloadV3"), "{name}");
        assert_eq!(
            (is, f, b, o, key, i, e, t),
            (kind, flags, bytes, offset, file, irp, elapsed, tid),
            "{name}"
        );
    }
    let expected = [
        ("DiskIOReadInitPayloadV2", 12, Read, 0xffff_fa80_0245_1510, None),
        ("DiskIOReadInitPayloadV3", 12, Read, 0xffff_e000_05e1_4b10, Some(7056)),
        ("DiskIOWriteInitPayloadV2", 13, Write, 0xffff_fa80_024e_cb60, None),
        ("DiskIOWriteInitPayloadV3", 13, Write, 0xffff_e000_0771_f010, Some(6896)),
        ("DiskIOFlushInitPayloadV2", 15, Flush, 0xffff_fa80_023a_6880, None),
        ("DiskIOFlushInitPayloadV3", 15, Flush, 0xffff_e000_0755_9750, Some(6896)),
    ];
    for (name, opcode, kind, irp, tid) in expected {
        let decoded = kernel(&payloads.event(name, DISK_IO, opcode));
        let Kernel::DiskIoInit(request) = decoded else { panic!("{name}: {decoded:?}") };
        let DiskIoInit { kind: is, irp: i, tid: t, .. } = request;
        assert_eq!((is, i, t), (kind, irp, tid), "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn names_of_files_and_hard_faults() {
    let payloads = Payloads::read();
    for (name, opcode, naming, key) in [
        ("FileIOFileCreatePayload32bitsV2", 32, Naming::Begins, 0xae91_f0f8),
        ("FileIOFileCreatePayloadV2", 32, Naming::Begins, 0xffff_c000_0557_0c30),
        ("FileIOFileDeletePayload32bitsV2", 35, Naming::Ends, 0xb18b_90f8),
        ("FileIOFileDeletePayloadV2", 35, Naming::Ends, 0xffff_c000_15f3_2c30),
        ("FileIOFileRundownPayload32bitsV2", 36, Naming::Listed, 0x89b8_6698),
        ("FileIOFileRundownPayloadV2", 36, Naming::Listed, 0xffff_c000_00f6_75c0),
    ] {
        let decoded = kernel(&payloads.event(name, FILE_IO, opcode));
        let Kernel::FileName(FileName { naming: is, key: of, path, .. }) = decoded else {
            panic!("{name}: {decoded:?}")
        };
        assert_eq!((is, of), (naming, key), "{name}");
        assert!(path.to_string().starts_with("Anonymized string. Dummy"), "{name}: {path}");
    }
    for (name, start, offset, address, file, tid, bytes) in [
        ("PageFaultHardFaultPayload32bitsV2", 0, 0x26b_4000, 0xa55b_4000, 0x85b1_b008, 0x1390, 0x1000),
        (
            "PageFaultHardFaultPayloadV2",
            0x19_1388_a55d,
            0x8fb_5000,
            0x6_3b20,
            0xffff_fa80_11a4_5a00,
            10_012,
            0x4000,
        ),
    ] {
        let decoded = kernel(&payloads.event(name, PAGE_FAULT, 32));
        let Kernel::PageFault(PageFault { address: a, tid: t, bytes: b, read, .. }) = decoded else {
            panic!("{name}: {decoded:?}")
        };
        let read = read.unwrap();
        let is = (read.start, read.offset, a, read.file, t, b);
        assert_eq!(is, (Ticks(start), offset, address, file, Some(tid), bytes), "{name}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_stack() {
    let payloads = Payloads::read();
    let decoded = kernel(&payloads.event("StackWalkStackPayloadV2", STACK_WALK, 32));
    let Kernel::StackWalk(StackWalk::Stack { event_time, pid, tid, frames }) = decoded else { panic!() };
    assert_eq!((event_time, pid, tid), (Ticks(0x117_039d_6ebc), 7_828, 1_404));
    let frames: Vec<u64> = frames.addresses().collect();
    assert_eq!(frames.len(), 21);
    assert_eq!(frames[..2], [0xffff_f801_ed5d_372b, 0x7ffb_78f1_209a], "both parts in one record");
    assert_eq!(frames[20], 0x7ffb_7afb_43d1);
}

/// Every payload of every class, cut at every length: decoded or told to be too short, never a panic.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn cut_payloads() {
    let payloads = Payloads::read();
    for name in payloads.0.keys() {
        let name = name.strip_prefix('k').unwrap();
        for provider in [PROCESS, THREAD, IMAGE, PERF_INFO, STACK_WALK, DISK_IO, PAGE_FAULT, FILE_IO] {
            for opcode in [0, 1, 2, 3, 4, 10, 11, 12, 14, 15, 32, 34, 36, 37, 39, 46, 50, 67, 68, 72, 73] {
                let whole = payloads.event(name, provider, opcode);
                for length in 0..=whole.payload.len() {
                    let _ = decode(&Event { payload: &whole.payload[..length], ..whole });
                }
            }
        }
    }
}

/// Sawbuck's files: a 32-bit program wrote 32- and 64-bit layouts of images and processes alike, always behind
/// 32-bit headers. The width of the payload is in the file's name only.
mod sawbuck {
    use super::*;

    fn decoded<T>(file: &str, mut step: impl FnMut(&Kernel<'_>) -> Option<T>) -> Vec<T> {
        let path = data::file(&format!("etl/sawbuck/{file}.etl"));
        let pointer = if file.contains("_64_") { Pointer::Bits64 } else { Pointer::Bits32 };
        let mut found = Vec::new();
        reading::events(&Recording::open(&[path]).unwrap(), |event| {
            let event = Event { pointer, ..*event };
            let decoded = decode(&event).unwrap_or_else(|error| panic!("{file}: {error}"));
            if let Decoded::Kernel(kernel) = decoded {
                found.extend(step(&kernel));
            }
        });
        found
    }

    fn images(file: &str) -> Vec<ImageFields> {
        decoded(file, |kernel| match kernel {
            Kernel::Image(image) => Some(image_fields(image)),
            _ => None,
        })
    }

    #[test]
    #[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
    fn images_of_every_version() {
        let expected = images("image_data_32_v2");
        assert_eq!(expected.len(), 26);
        let program = r"C:\code\sawbuck\src\sawbuck\Debug\test_program.exe";
        let first = (Phase::RundownStart, 0x116_0000, 0x19_e000, 7_644, 0x4ba2_6867, 0xcafe_babe);
        let (phase, base, size, pid, checksum, timestamp, path) = expected[0].clone();
        assert_eq!((phase, base, size, pid, checksum, timestamp), first);
        assert_eq!(path, program);
        assert_eq!(images("image_data_64_v2"), expected);

        // Versions 0 and 1 have no link time; 0 has the process in its header.
        let places = |images: Vec<ImageFields>| -> Vec<(u64, u64, u32, String)> {
            let mut places: Vec<_> = images.into_iter().map(|i| (i.1, i.2, i.3, i.6)).collect();
            places.sort();
            places
        };
        let expected = places(expected);
        for file in ["image_data_32_v0", "image_data_32_v1", "image_data_64_v0", "image_data_64_v1"] {
            assert_eq!(places(images(file)), expected, "{file}");
        }
    }

    /// Of Vista's files `test_data_64_v1` and `_v2` are left out: their program wrote a size of four bytes, which no
    /// system did.
    #[test]
    #[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
    fn images_of_vista() {
        let expected = images("test_data_32_v2");
        assert_eq!(expected.len(), 26);
        let without_link_time = |images: Vec<ImageFields>| -> Vec<(Phase, u64, u64, u32, String)> {
            images
                .into_iter()
                .map(|(phase, base, size, pid, _, _, path)| (phase, base, size, pid, path))
                .collect()
        };
        let expected = without_link_time(expected);
        assert_eq!(
            expected[1],
            (Phase::RundownStart, 0x76e1_0000, 0x12_7000, 4_192, r"C:\Windows\system32\ntdll.dll".to_owned())
        );
        for file in ["test_data_32_v0", "test_data_32_v1", "test_data_64_v0"] {
            assert_eq!(without_link_time(images(file)), expected, "{file}");
        }
    }

    #[test]
    #[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
    fn processes_of_every_version() {
        for (file, versions_have_rundown) in [
            ("process_data_32_v1", false),
            ("process_data_32_v2", true),
            ("process_data_32_v3", true),
            ("process_data_64_v2", true),
            ("process_data_64_v3", true),
        ] {
            let found = decoded(file, |kernel| match kernel {
                Kernel::Process(p) => {
                    assert!(sid_text(p.sid).is_some_and(|sid| sid.starts_with("S-1-5-")), "{file}");
                    Some((
                        p.phase,
                        p.pid,
                        p.parent_pid,
                        p.image_file_name.to_string(),
                        p.command_line.to_string(),
                    ))
                }
                _ => None,
            });
            let command_line =
                if versions_have_rundown { r#""C:\Windows\system32\notepad.exe" "# } else { "" };
            let of = |phase| found.iter().filter(move |process| process.0 == phase).cloned();
            let notepad = |phase| (phase, 1_776, 988, "notepad.exe".to_owned(), command_line.to_owned());
            assert_eq!(of(Phase::Start).collect::<Vec<_>>(), [notepad(Phase::Start)], "{file}");
            assert_eq!(of(Phase::End).collect::<Vec<_>>(), [notepad(Phase::End)], "{file}");
            for phase in [Phase::RundownStart, Phase::RundownEnd] {
                let mut rundown: Vec<_> = of(phase).map(|p| (p.1, p.2, p.3, p.4)).collect();
                rundown.sort();
                let smss = r"\SystemRoot\System32\smss.exe";
                let expected = [(0, 0, "Idle", ""), (4, 0, "System", ""), (264, 4, "smss.exe", smss)]
                    .map(|(pid, parent, name, line)| (pid, parent, name.to_owned(), line.to_owned()));
                assert_eq!(rundown, expected[..if versions_have_rundown { 3 } else { 0 }], "{file}");
            }
        }
    }
}
