//! DiskIo events (group 01): what disks read and wrote, and when each request was made.

use crate::event::Event;

/// What a disk was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DiskIoKind {
    /// To read (10; requested with 12).
    Read,
    /// To write (11; requested with 13).
    Write,
    /// To write what it still holds in its cache (14; requested with 15).
    Flush,
}

/// A disk has done what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskIo {
    /// What that was.
    pub kind: DiskIoKind,
    /// The number of the disk.
    pub disk: u32,
    /// The flags of the request, as `IRP_*` of the kernel.
    pub flags: u32,
    /// Bytes that were transferred; 0 of a flush.
    pub bytes: u32,
    /// Where they are on the disk, in bytes.
    pub offset: u64,
    /// The key of the file ([`FileName::key`](super::FileName::key)); `None` of a flush.
    pub file: Option<u64>,
    /// The address of the request, which the system uses again for others.
    pub irp: u64,
    /// How long it took, in ticks of the recording's clock.
    pub elapsed: u64,
    /// The thread that asked, where the payload says so.
    pub tid: Option<u32>,
}

/// A disk is asked for something. Its stack is that of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskIoInit {
    /// What for.
    pub kind: DiskIoKind,
    /// The address of the request.
    pub irp: u64,
    /// The thread that asks, where the payload says so.
    pub tid: Option<u32>,
}

/// The opcodes of requests.
fn requested(opcode: u8) -> Option<DiskIoKind> {
    match opcode {
        12 => Some(DiskIoKind::Read),
        13 => Some(DiskIoKind::Write),
        15 => Some(DiskIoKind::Flush),
        _ => None,
    }
}

/// A request: IRP P; from version 3 on the thread u32.
///
/// Verified on PerfViewData.etl (version 2) and net.4.5.2.x64.etl (version 3).
pub(super) fn decode_init(event: &Event<'_>) -> Option<Option<DiskIoInit>> {
    let Some(kind) = requested(event.opcode) else { return Some(None) };
    let mut r = event.reader();
    let irp = event.pointer.read(&mut r)?;
    Some(Some(DiskIoInit { kind, irp, tid: thread(event, &mut r) }))
}

/// Read and write: disk u32, flags u32, bytes u32, reserved u32, offset u64, file P, IRP P, elapsed u64; flush: disk u32,
/// flags u32, elapsed u64, IRP P. From version 3 on the thread u32 behind both. Older versions have no elapsed time and
/// are of no use.
///
/// Verified on slow-ppt.etl and PerfViewData.etl (version 2) and net.4.5.2.x64.etl (version 3).
pub(super) fn decode(event: &Event<'_>) -> Option<Option<DiskIo>> {
    if event.version < 2 {
        return Some(None);
    }
    let kind = match event.opcode {
        10 => DiskIoKind::Read,
        11 => DiskIoKind::Write,
        14 => DiskIoKind::Flush,
        _ => return Some(None),
    };
    let (mut r, p) = (event.reader(), event.pointer);
    let (disk, flags) = (r.u32()?, r.u32()?);
    if kind == DiskIoKind::Flush {
        let (elapsed, irp) = (r.u64()?, p.read(&mut r)?);
        let tid = thread(event, &mut r);
        return Some(Some(DiskIo { kind, disk, flags, bytes: 0, offset: 0, file: None, irp, elapsed, tid }));
    }
    let bytes = r.u32()?;
    r.skip(4)?;
    let (offset, file, irp, elapsed) = (r.u64()?, Some(p.read(&mut r)?), p.read(&mut r)?, r.u64()?);
    let tid = thread(event, &mut r);
    Some(Some(DiskIo { kind, disk, flags, bytes, offset, file, irp, elapsed, tid }))
}

/// The thread at the end of a payload.
fn thread(event: &Event<'_>, r: &mut crate::bytes::Reader<'_>) -> Option<u32> {
    if event.version < 3 { None } else { r.u32() }
}
