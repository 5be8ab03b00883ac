//! GUIDs, and those of the records that this builder makes.

/// A GUID as it lies in a file: the first three numbers little-endian, then eight bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guid(pub [u8; 16]);

/// The GUID of the printed form `68fdd900-4a3e-11d1-84f4-0000f80464e3`.
pub fn guid(text: &str) -> Guid {
    let digits: String = text.chars().filter(|&c| c != '-').collect();
    assert!(digits.len() == 32 && text.len() == 36, "{text:?} is not a GUID");
    let mut bytes = u128::from_str_radix(&digits, 16).expect("hexadecimal").to_be_bytes();
    bytes[0..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    Guid(bytes)
}

/// The task that a kernel event group stands for. Image load is the exception: it is logged in the group of
/// processes (3) as type 10.
pub(super) fn task_of_hook(group: u8, kind: u8) -> Guid {
    guid(match (group, kind) {
        (0x03, 10) | (0x14, _) => "2cb15d1d-5fc1-11d2-abe1-00a0c911f518", // Image
        (0x00, _) => "68fdd900-4a3e-11d1-84f4-0000f80464e3",              // EventTrace
        (0x01, _) => "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c",              // DiskIo
        (0x02, _) => "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c",              // PageFault
        (0x03, _) => "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",              // Process
        (0x05, _) => "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c",              // Thread
        (0x0B, _) => "01853a65-418f-4f36-aefc-dc0f1d2fd235",              // SystemConfig
        (0x0F, _) => "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc",              // PerfInfo
        (0x18, _) => "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3",              // StackWalk
        _ => panic!("no task GUID typed in for event group {group:#04x}"),
    })
}
