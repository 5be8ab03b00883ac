//! PageFault events (group 02): the faults themselves; what else the group holds is of no use here.

use crate::event::{Event, Ticks};

/// A page that a thread touched was not there, or not as it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageFault {
    /// What the system did about it.
    pub kind: FaultKind,
    /// The address that was touched.
    pub address: u64,
    /// The instruction that touched it; 0 where the record does not say.
    pub instruction: u64,
    /// The thread, where the record says so.
    pub tid: Option<u32>,
    /// Bytes that were read from a file; 0 unless it is [`FaultKind::Read`].
    pub bytes: u32,
    /// The read, of [`FaultKind::Read`].
    pub read: Option<FaultRead>,
}

/// How a page was read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultRead {
    /// When the thread touched the page. The record is written when it is there.
    pub start: Ticks,
    /// Where it is in the file, in bytes.
    pub offset: u64,
    /// The key of the file ([`FileName::key`](super::FileName::key)).
    pub file: u64,
}

/// What the system did about a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The page was in memory (10).
    Transition,
    /// It got a page of zeros (11).
    DemandZero,
    /// It got a copy of its own (12).
    CopyOnWrite,
    /// It touched a guard page (13).
    Guard,
    /// The page has to be read from a file (14).
    Hard,
    /// It may not do that (15).
    AccessViolation,
    /// The page was read from a file; written when that is done (32).
    Read,
}

/// 10 to 15: address P, instruction P. 32: start of the read u64, offset in the file u64, address P, file P, thread u32,
/// bytes u32. As the MOF classes PageFault_TypeGroup1 and PageFault_HardFault of the public reference have them (32
/// verified on net.4.5.2.x64.etl, PerfViewData.etl and slow-ppt.etl, the others not seen in a real file).
pub(super) fn decode(event: &Event<'_>) -> Option<Option<PageFault>> {
    let mut r = event.reader();
    let p = event.pointer;
    let kind = match event.opcode {
        10 => FaultKind::Transition,
        11 => FaultKind::DemandZero,
        12 => FaultKind::CopyOnWrite,
        13 => FaultKind::Guard,
        14 => FaultKind::Hard,
        15 => FaultKind::AccessViolation,
        32 => {
            let (start, offset) = (Ticks(r.i64()?), r.u64()?);
            let (address, file) = (p.read(&mut r)?, p.read(&mut r)?);
            let (tid, bytes) = (Some(r.u32()?), r.u32()?);
            let read = Some(FaultRead { start, offset, file });
            return Some(Some(PageFault {
                kind: FaultKind::Read,
                address,
                instruction: 0,
                tid,
                bytes,
                read,
            }));
        }
        _ => return Some(None),
    };
    let (address, instruction) = (p.read(&mut r)?, p.read(&mut r)?);
    Some(Some(PageFault { kind, address, instruction, tid: None, bytes: 0, read: None }))
}
