//! Garbage collections, and when a runtime stands still for them.

use crate::bytes::{Reader, Utf16};
use crate::event::Pointer;

/// A collection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcStart {
    /// Which collection of its runtime; they are counted from 1.
    pub number: u32,
    /// The oldest generation that it collects, where the event has it.
    pub generation: Option<u32>,
    /// Why it began.
    pub reason: GcReason,
    /// Whether it runs beside the program, where the event has it.
    pub kind: Option<GcKind>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// A collection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcEnd {
    /// Which collection of its runtime.
    pub number: u32,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// A runtime begins to stop all threads that run its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspension {
    /// 1 for a collection, 6 to prepare one, else another reason.
    pub reason: u32,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

impl Suspension {
    /// True if it is for a collection.
    pub fn is_for_gc(&self) -> bool {
        matches!(self.reason, 1 | 6)
    }
}

/// Whether a collection runs beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GcKind {
    /// All threads wait for it.
    Blocking,
    /// It runs beside the program, which stands still at its begin and before its end.
    Background,
    /// A short blocking one while a background one runs.
    Foreground,
    /// A number that is not known here.
    Other(u32),
}

impl GcKind {
    /// The kind in a word.
    pub fn text(self) -> &'static str {
        match self {
            GcKind::Blocking => "blocking",
            GcKind::Background => "background",
            GcKind::Foreground => "foreground",
            GcKind::Other(_) => "other",
        }
    }
}

/// Why a collection began: `GCReason` in the runtime's manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GcReason {
    /// The budget for small objects was used up.
    AllocSmall,
    /// The program asked for it (`GC.Collect`).
    Induced,
    /// The system was short of memory.
    LowMemory,
    /// Nothing is left to give.
    Empty,
    /// The budget for large objects was used up.
    AllocLarge,
    /// No room for small objects.
    OutOfSpaceSmall,
    /// No room for large objects.
    OutOfSpaceLarge,
    /// The program asked for it, and did not insist.
    InducedNotForced,
    /// A number that is not known here.
    Other(u32),
}

impl GcReason {
    /// True if the program asked for it.
    pub fn is_induced(self) -> bool {
        // 9 to 11 are induced by low memory, with compaction, and by the host.
        matches!(self, GcReason::Induced | GcReason::InducedNotForced | GcReason::Other(10))
    }

    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            GcReason::AllocSmall => "small objects",
            GcReason::Induced => "GC.Collect",
            GcReason::LowMemory => "low memory",
            GcReason::Empty => "no memory left",
            GcReason::AllocLarge => "large objects",
            GcReason::OutOfSpaceSmall => "no room for small objects",
            GcReason::OutOfSpaceLarge => "no room for large objects",
            GcReason::InducedNotForced => "GC.Collect, not forced",
            GcReason::Other(_) => "other",
        }
    }
}

fn reason(number: u32) -> GcReason {
    match number {
        0 => GcReason::AllocSmall,
        1 => GcReason::Induced,
        2 => GcReason::LowMemory,
        3 => GcReason::Empty,
        4 => GcReason::AllocLarge,
        5 => GcReason::OutOfSpaceSmall,
        6 => GcReason::OutOfSpaceLarge,
        7 => GcReason::InducedNotForced,
        other => GcReason::Other(other),
    }
}

fn kind(number: u32) -> GcKind {
    match number {
        0 => GcKind::Blocking,
        1 => GcKind::Background,
        2 => GcKind::Foreground,
        other => GcKind::Other(other),
    }
}

/// Version 0: count u32, reason u32. Since version 1: count, depth, reason, type u32 each, instance u16; since version 2 a
/// number that the program may set, u64. Verified on net.4.5.2.x64.etl and PerfViewData.etl; version 0 by the manifest only.
pub(super) fn decode_start(r: &mut Reader<'_>, version: u8) -> Option<GcStart> {
    let number = r.u32()?;
    if version == 0 {
        let reason = reason(r.u32()?);
        return Some(GcStart { number, generation: None, reason, kind: None, instance: None });
    }
    let generation = Some(r.u32()?);
    let (reason, kind) = (reason(r.u32()?), Some(kind(r.u32()?)));
    let instance = r.u16();
    if version >= 2 {
        r.skip(8);
    }
    Some(GcStart { number, generation, reason, kind, instance })
}

/// Count u32, depth (u16 in version 0, then u32), instance u16 since version 1. Verified on the same.
pub(super) fn decode_end(r: &mut Reader<'_>, version: u8) -> Option<GcEnd> {
    let number = r.u32()?;
    if version == 0 {
        return Some(GcEnd { number, instance: None });
    }
    r.skip(4)?;
    Some(GcEnd { number, instance: r.u16() })
}

/// Version 0: reason u16. Since version 1: reason u32, count u32, instance u16. Verified on the same.
pub(super) fn decode_suspension(r: &mut Reader<'_>, version: u8) -> Option<Suspension> {
    if version == 0 {
        return Some(Suspension { reason: u32::from(r.u16()?), instance: None });
    }
    let reason = r.u32()?;
    r.skip(4)?;
    Some(Suspension { reason, instance: r.u16() })
}

/// What a runtime's heaps hold after a collection. The event does not name the collection: it follows its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Bytes in generations 0 to 2, and in the heap of large objects.
    pub sizes: [u64; 4],
    /// Bytes in each of them that survived the collection; 0 for what it did not collect.
    pub promoted: [u64; 4],
    /// Bytes that only finalizers still need.
    pub finalization_bytes: u64,
    /// Objects that only finalizers still need.
    pub finalization_objects: u64,
    /// Pinned objects that the collection met.
    pub pinned_objects: u32,
    /// Handles.
    pub handles: u32,
    /// Bytes in the heap of pinned objects, and of them those that survived, where the runtime has one.
    pub pinned_heap: Option<(u64, u64)>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

impl HeapStats {
    /// Bytes in all heaps.
    pub fn bytes(&self) -> u64 {
        let pinned = self.pinned_heap.map_or(0, |(size, _)| size);
        self.sizes.iter().fold(pinned, |sum: u64, size| sum.saturating_add(*size))
    }
}

/// So many bytes were allocated since the event before it: about 100 KB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationTick<'a> {
    /// The bytes.
    pub bytes: u64,
    /// What the last object went to: 0 the heap of small objects, 1 that of large ones, 2 that of pinned ones.
    pub kind: u32,
    /// The type of the last object, where the event has it.
    pub type_name: Option<Utf16<'a>>,
    /// The size of the last object in bytes, where the event has it.
    pub object_size: Option<u64>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Four pairs of size and promoted bytes, finalization bytes and objects, all u64; pinned objects, sink blocks and handles,
/// all u32; instance u16 since version 1; since version 2 size and promoted bytes of the heap of pinned objects, u64.
/// Versions 1 and 2 verified on net.4.5.2.x64.etl (94 bytes) and gcevents.etl (110 bytes); version 0 by the manifest only.
pub(super) fn decode_heap_stats(r: &mut Reader<'_>, version: u8) -> Option<HeapStats> {
    let (mut sizes, mut promoted) = ([0; 4], [0; 4]);
    for (size, promoted) in sizes.iter_mut().zip(&mut promoted) {
        (*size, *promoted) = (r.u64()?, r.u64()?);
    }
    let (finalization_bytes, finalization_objects) = (r.u64()?, r.u64()?);
    let pinned_objects = r.u32()?;
    r.skip(4)?;
    let handles = r.u32()?;
    let instance = if version >= 1 { r.u16() } else { None };
    let pinned_heap = if version >= 2 { r.u64().zip(r.u64()) } else { None };
    Some(HeapStats {
        sizes,
        promoted,
        finalization_bytes,
        finalization_objects,
        pinned_objects,
        handles,
        pinned_heap,
        instance,
    })
}

/// Amount and kind u32; since version 1 instance u16; since version 2 the amount in u64, the type's handle, a pointer, its
/// name, and the heap, u32; since version 3 the address of the object, a pointer; since version 4 its size u64. Versions 2
/// to 4 verified on PerfViewData.etl, net.4.5.2.x64.etl and gcevents.etl; versions 0 and 1 by the manifest only.
pub(super) fn decode_allocation_tick<'a>(
    r: &mut Reader<'a>,
    version: u8,
    pointer: Pointer,
) -> Option<AllocationTick<'a>> {
    let (amount, kind) = (u64::from(r.u32()?), r.u32()?);
    let mut tick = AllocationTick { bytes: amount, kind, type_name: None, object_size: None, instance: None };
    if version >= 1 {
        tick.instance = r.u16();
    }
    if version >= 2 {
        // The first amount ends at 4 GB.
        tick.bytes = r.u64()?;
        pointer.read(r)?;
        tick.type_name = Some(r.utf16());
        r.skip(4);
    }
    if version >= 3 {
        pointer.read(r);
    }
    if version >= 4 {
        tick.object_size = r.u64();
    }
    Some(tick)
}

/// An object that was chosen by chance among those that were allocated, from .NET 10 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationSampled<'a> {
    /// Its type.
    pub type_name: Utf16<'a>,
    /// Its size in bytes.
    pub object_size: u64,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

impl AllocationSampled<'_> {
    /// The bytes that it stands for. Each byte is chosen with a chance of 1 in 102,400, and an object if one of its bytes is
    /// (design of the event: dotnet/runtime, docs/design/features/RandomizedAllocationSampling.md).
    pub fn bytes(&self) -> u64 {
        const MEAN: f64 = 102_400.0;
        let size = self.object_size as f64;
        let chance = -(size * (-1.0 / MEAN).ln_1p()).exp_m1();
        if chance > 0.0 { (size / chance).round() as u64 } else { 0 }
    }
}

/// Kind u32, instance u16, the type's handle, a pointer, its name, the object's address, a pointer, its size u64, the offset
/// of the chosen byte u64. By the manifest only.
pub(super) fn decode_allocation_sampled<'a>(
    r: &mut Reader<'a>,
    pointer: Pointer,
) -> Option<AllocationSampled<'a>> {
    let _kind = r.u32()?;
    let instance = r.u16();
    pointer.read(r)?;
    let type_name = r.utf16();
    pointer.read(r)?;
    Some(AllocationSampled { type_name, object_size: r.u64()?, instance })
}
