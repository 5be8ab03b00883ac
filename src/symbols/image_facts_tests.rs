use std::time::{Duration, SystemTime};

use crate::clock::{Clock, ClockKind, Ticks, UNIX_EPOCH};
use crate::event::Pointer;
use crate::origin::{Machine, Origin};
use crate::sink::{Inventory, Loaded, Running, Sink};
use crate::symbols::find::lookup::Checked;
use crate::symbols::image_facts::{at_its_path, system_time};
use crate::trace::{Builder, ModuleId};

const SIZE: u32 = 0x3000;

/// The headers of an x64 image without sections, typed by hand from the PE format.
fn image() -> Vec<u8> {
    let mut bytes = vec![0; 0x200];
    let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
    put(0, b"MZ");
    put(0x3c, &0x40u32.to_le_bytes());
    put(0x40, b"PE\0\0");
    put(0x44, &0x8664u16.to_le_bytes()); // machine
    put(0x48, &0x1122_3344u32.to_le_bytes()); // time stamp
    put(0x54, &240u16.to_le_bytes()); // size of the optional header
    put(0x58, &0x20bu16.to_le_bytes()); // PE32+
    put(0x58 + 32, &0x1000u32.to_le_bytes()); // section alignment
    put(0x58 + 36, &0x200u32.to_le_bytes()); // file alignment
    put(0x58 + 56, &SIZE.to_le_bytes()); // size of the image
    put(0x58 + 60, &0x200u32.to_le_bytes()); // size of the headers
    put(0x58 + 108, &16u32.to_le_bytes()); // data directories
    bytes
}

fn filetime(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    UNIX_EPOCH + (since.as_nanos() / 100) as i64
}

/// A recording that begins in a minute, of a process that was created `created` and has the file at `path`.
fn is_the_one(path: &str, created: SystemTime) -> bool {
    let begin = filetime(SystemTime::now() + Duration::from_secs(60));
    let machine = Machine {
        processors: 1,
        os_build: 26100,
        os_name: String::new(),
        pointer: Pointer::Bits64,
        architecture: Some(9),
        name: String::new(),
    };
    let clock = Clock {
        kind: ClockKind::Qpc,
        frequency: 10_000_000,
        base: Ticks(0),
        base_utc: begin,
        utc_offset: None,
    };
    let mut builder = Builder::new(&Origin::new(clock, machine));
    let process = Running {
        pid: 8,
        parent: 4,
        name: "app.exe".to_owned(),
        created: Some(filetime(created)),
        wow64: false,
    };
    let module = Loaded { pid: 8, base: 0x7ff6_0000_0000, size: u64::from(SIZE), path: path.to_owned() };
    builder.inventory(Inventory { processes: vec![process], modules: vec![module], ..Inventory::default() });
    let trace = builder.finish();
    assert_eq!(trace.modules[0].path, path);
    matches!(at_its_path(&trace, ModuleId(0)), Some(Checked::Matches))
}

#[test]
fn a_file_that_replaced_a_running_program_is_not_taken_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.exe");
    std::fs::write(&path, image()).unwrap();
    let (path, now) = (path.to_str().unwrap(), SystemTime::now());
    assert!(is_the_one(path, now + Duration::from_secs(30)), "it was there before the process");
    assert!(!is_the_one(path, now - Duration::from_secs(30)), "it was written after the process had begun");
}

#[test]
fn file_times_become_system_times() {
    let second = Duration::from_secs(1);
    assert_eq!(system_time(116_444_736_010_000_000), Some(SystemTime::UNIX_EPOCH + second));
    assert_eq!(system_time(0), None);
    assert_eq!(system_time(i64::MIN), None);
    assert!(system_time(i64::MAX).is_some());
}
