//! Records made of fields: a header of each kind that a writer needs, and the events that make a trace portable.

use crate::debug_id::DebugId;
use crate::event::{ExtendedItems, Pointer, Ticks};
use crate::guid::Guid;
use crate::guids::{IMAGE_ID, SYS_CONFIG};

/// Bit 7 marks a record, bit 6 an event.
const MARKER: u8 = 0xC0;
/// What stands in its place in messages of WPP.
const MESSAGE: u8 = 0x90;

/// A record of the kernel's, named by a group and an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooked {
    /// The group, which stands for a task: see [`group_task`](crate::guids::group_task).
    pub group: u8,
    /// The opcode.
    pub opcode: u8,
    /// The version of the payload's layout.
    pub version: u8,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// When it was written.
    pub time: Ticks,
}

impl Hooked {
    /// With a SYSTEM header: process and thread, and CPU times, which are 0.
    pub fn system(&self, pid: u32, tid: u32, payload: &[u8]) -> Vec<u8> {
        let mut record = self.head([1, 2], 32 + payload.len());
        push_ids(&mut record, pid, tid);
        record.extend_from_slice(&self.time.0.to_le_bytes());
        record.extend_from_slice(&[0; 8]);
        record.extend_from_slice(payload);
        record
    }

    /// With a COMPACT header: process and thread.
    pub fn compact(&self, pid: u32, tid: u32, payload: &[u8]) -> Vec<u8> {
        let mut record = self.head([3, 4], 24 + payload.len());
        push_ids(&mut record, pid, tid);
        record.extend_from_slice(&self.time.0.to_le_bytes());
        record.extend_from_slice(payload);
        record
    }

    /// With a PERFINFO header: neither process nor thread.
    pub fn perf_info(&self, payload: &[u8]) -> Vec<u8> {
        let mut record = self.head([0x10, 0x11], 16 + payload.len());
        record.extend_from_slice(&self.time.0.to_le_bytes());
        record.extend_from_slice(payload);
        record
    }

    /// Version, type by pointer width, marker, size, opcode, group.
    fn head(&self, kinds: [u8; 2], size: usize) -> Vec<u8> {
        let [narrow, wide] = kinds;
        let kind = if self.pointer == Pointer::Bits32 { narrow } else { wide };
        let [a, b] = size_field(size);
        let mut record = Vec::with_capacity(size.next_multiple_of(8));
        record.extend_from_slice(&[self.version, 0, kind, MARKER, a, b, self.opcode, self.group]);
        record
    }
}

/// A record of a classic provider, with a FULL header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classic {
    /// The task (class) GUID.
    pub task: Guid,
    /// The opcode.
    pub opcode: u8,
    /// The level.
    pub level: u8,
    /// The version of the payload's layout.
    pub version: u16,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// The process and the thread that wrote it.
    pub writer: (u32, u32),
    /// When it was written.
    pub time: Ticks,
}

impl Classic {
    /// The record with this payload; CPU times are 0.
    pub fn record(&self, payload: &[u8]) -> Vec<u8> {
        self.headed([0x0A, 0x14], &[], payload)
    }

    /// The record of an instance of something, and the instance and class of what that is a part of: with an INSTANCE header.
    pub fn instance(&self, instance: u32, parent: (u32, Guid), payload: &[u8]) -> Vec<u8> {
        let mut ids = [instance, parent.0].map(u32::to_le_bytes).concat();
        ids.extend_from_slice(&parent.1.to_bytes());
        self.headed([0x0B, 0x15], &ids, payload)
    }

    fn headed(&self, kinds: [u8; 2], ids: &[u8], payload: &[u8]) -> Vec<u8> {
        let [narrow, wide] = kinds;
        let kind = if self.pointer == Pointer::Bits32 { narrow } else { wide };
        let [a, b] = size_field(48 + ids.len() + payload.len());
        let [c, d] = self.version.to_le_bytes();
        let mut record = vec![a, b, kind, MARKER, self.opcode, self.level, c, d];
        push_ids(&mut record, self.writer.0, self.writer.1);
        record.extend_from_slice(&self.time.0.to_le_bytes());
        record.extend_from_slice(&self.task.to_bytes());
        record.extend_from_slice(&[0; 8]);
        record.extend_from_slice(ids);
        record.extend_from_slice(payload);
        record
    }
}

/// A message of WPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message GUID.
    pub provider: Guid,
    /// The number of the message.
    pub number: u16,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// The process and the thread that wrote it.
    pub writer: (u32, u32),
    /// When it was written.
    pub time: Ticks,
}

impl Message {
    /// The record with this payload: with a GUID (0x2), the time (0x8) of the log's clock (0x10), and the writer (0x20).
    pub fn record(&self, payload: &[u8]) -> Vec<u8> {
        let narrow = if self.pointer == Pointer::Bits32 { 0x80_u16 } else { 0 };
        let options = 0x2 | 0x8 | 0x10 | 0x20 | narrow;
        let [a, b] = size_field(40 + payload.len());
        let mut record = vec![a, b, 0, MESSAGE];
        record.extend_from_slice(&self.number.to_le_bytes());
        record.extend_from_slice(&options.to_le_bytes());
        record.extend_from_slice(&self.provider.to_bytes());
        record.extend_from_slice(&self.time.0.to_le_bytes());
        push_ids(&mut record, self.writer.0, self.writer.1);
        record.extend_from_slice(payload);
        record
    }
}

/// A record of a manifest, EventSource or TraceLogging provider, with an EVENT_HEADER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The provider.
    pub provider: Guid,
    /// The event's id.
    pub id: u16,
    /// The version of the payload's layout.
    pub version: u8,
    /// The channel; 11 for TraceLogging.
    pub channel: u8,
    /// The level, 1 critical to 5 verbose.
    pub level: u8,
    /// The opcode.
    pub opcode: u8,
    /// The task.
    pub task: u16,
    /// The keywords.
    pub keyword: u64,
    /// The activity.
    pub activity: Guid,
    /// The width of pointers in the payload.
    pub pointer: Pointer,
    /// The process and the thread that wrote it.
    pub writer: (u32, u32),
    /// When it was written.
    pub time: Ticks,
}

impl Manifest {
    /// The record with these extended items, each a type and data, and this payload; CPU times are 0.
    pub fn record(&self, items: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
        self.record_with(&ExtendedItems::lay(items), payload)
    }

    /// The same with items as they lie in a file.
    pub(super) fn record_with(&self, extended: &[u8], payload: &[u8]) -> Vec<u8> {
        let kind = if self.pointer == Pointer::Bits32 { 0x12 } else { 0x13 };
        let [a, b] = size_field(80 + extended.len() + payload.len());
        let mut record = vec![a, b, kind, MARKER, u8::from(!extended.is_empty()), 0, 0, 0];
        push_ids(&mut record, self.writer.0, self.writer.1);
        record.extend_from_slice(&self.time.0.to_le_bytes());
        record.extend_from_slice(&self.provider.to_bytes());
        record.extend_from_slice(&self.id.to_le_bytes());
        record.extend_from_slice(&[self.version, self.channel, self.level, self.opcode]);
        record.extend_from_slice(&self.task.to_le_bytes());
        record.extend_from_slice(&self.keyword.to_le_bytes());
        record.extend_from_slice(&[0; 8]);
        record.extend_from_slice(&self.activity.to_bytes());
        record.extend_from_slice(extended);
        record.extend_from_slice(payload);
        record
    }
}

/// An image whose identity a trace is to carry. Its records stand before the image's own, at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageIdentity<'a> {
    /// Where it is mapped.
    pub base: u64,
    /// The size of its mapping in bytes.
    pub size: u64,
    /// The process; 0 for kernel modules.
    pub pid: u32,
    /// The link time in its header.
    pub timestamp: u32,
    /// Its file name, as its resources have it.
    pub name: &'a str,
}

/// Writes the events that a merge adds (the task and its layouts verified on net.4.5.2.x64.etl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The width of pointers.
    pub pointer: Pointer,
    /// The time of all its events: the header's, or that of an image's event.
    pub time: Ticks,
}

impl Merged {
    /// ImageID: base, size, process, link time, file name.
    pub fn image(&self, image: &ImageIdentity<'_>) -> Vec<u8> {
        let mut payload = Vec::new();
        self.push_pointer(&mut payload, image.base);
        self.push_pointer(&mut payload, image.size);
        payload.extend_from_slice(&image.pid.to_le_bytes());
        payload.extend_from_slice(&image.timestamp.to_le_bytes());
        push_text(&mut payload, image.name);
        self.event(IMAGE_ID, 0, 2, &payload)
    }

    /// DbgID_RSDS: base, process, GUID and age of the PDB, and its path in single bytes.
    pub fn pdb(&self, image: &ImageIdentity<'_>, id: DebugId, path: &str) -> Vec<u8> {
        self.debug_id(36, image, id, path)
    }

    /// DbgID_ILRSDS: the same of the managed PDB that an image has beside the one of its native code.
    pub fn managed_pdb(&self, image: &ImageIdentity<'_>, id: DebugId, path: &str) -> Vec<u8> {
        self.debug_id(37, image, id, path)
    }

    fn debug_id(&self, opcode: u8, image: &ImageIdentity<'_>, id: DebugId, path: &str) -> Vec<u8> {
        let mut payload = Vec::new();
        self.push_pointer(&mut payload, image.base);
        payload.extend_from_slice(&image.pid.to_le_bytes());
        payload.extend_from_slice(&id.guid.to_bytes());
        payload.extend_from_slice(&id.age.to_le_bytes());
        payload.extend_from_slice(path.as_bytes());
        payload.push(0);
        self.event(IMAGE_ID, opcode, 2, &payload)
    }

    /// BuildInfo: when Windows was installed (FILETIME), the build's name and the product's.
    pub fn build(&self, installed: i64, build: &str, product: &str) -> Vec<u8> {
        let mut payload = installed.to_le_bytes().to_vec();
        push_text(&mut payload, build);
        push_text(&mut payload, product);
        self.event(SYS_CONFIG, 32, 0, &payload)
    }

    /// SystemPaths: the system folder and the Windows folder.
    pub fn system_paths(&self, system: &str, windows: &str) -> Vec<u8> {
        let mut payload = Vec::new();
        push_text(&mut payload, system);
        push_text(&mut payload, windows);
        self.event(SYS_CONFIG, 33, 0, &payload)
    }

    /// VolumeMapping: a device (`\Device\HarddiskVolume2\`) and its drive (`C:\`).
    pub fn volume(&self, device: &str, drive: &str) -> Vec<u8> {
        let mut payload = Vec::new();
        push_text(&mut payload, device);
        push_text(&mut payload, drive);
        self.event(SYS_CONFIG, 35, 0, &payload)
    }

    fn event(&self, task: Guid, opcode: u8, version: u16, payload: &[u8]) -> Vec<u8> {
        let Merged { pointer, time } = *self;
        Classic { task, opcode, level: 0, version, pointer, writer: (0, 0), time }.record(payload)
    }

    fn push_pointer(&self, payload: &mut Vec<u8>, value: u64) {
        payload.extend_from_slice(value.to_le_bytes().get(..self.pointer.bytes()).unwrap_or_default());
    }
}

/// A record's size. What is longer than any record can be is cut by whoever reads it.
fn size_field(size: usize) -> [u8; 2] {
    u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes()
}

/// Thread, then process.
fn push_ids(record: &mut Vec<u8>, pid: u32, tid: u32) {
    record.extend_from_slice(&tid.to_le_bytes());
    record.extend_from_slice(&pid.to_le_bytes());
}

fn push_text(payload: &mut Vec<u8>, text: &str) {
    payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
}
