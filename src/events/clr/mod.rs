//! Events of the .NET runtime: methods and modules as they come and go, and the rundown of what is there.
//!
//! Two providers tell the same things: the runtime's own, live, and the rundown's, on request. Their ids overlap (143
//! is a load in the one and a listing in the other), so an event is known by provider and id together. A process
//! writes its own events, with real header ids, and all widths are fixed: a handle has 64 bits in 32-bit processes
//! too. Newer versions only append fields. The reference is the runtime's manifest, `ClrEtwAll.man`; "verified" names
//! the real traces on which every event was read to its last byte.

mod exception;
mod gc;
mod loader;
mod method;
mod runtime;
mod threading;

pub use exception::Exception;
pub use gc::{AllocationSampled, AllocationTick, GcEnd, GcKind, GcReason, GcStart, HeapStats, Suspension};
pub use loader::{AppDomain, Assembly, DomainModule, Module, ModuleFlags, PdbSignature};
pub use method::{IlMap, JitMemory, JittingStarted, Method, MethodFlags, MethodName, R2rEntryPoint, Tier};
pub use runtime::{Runtime, Sku, StackWalk, TieredSettings};
pub use threading::{Contention, ContentionEnd, PoolReason, PoolThreads};

use crate::bytes::Reader;
use crate::event::{Event, Kind};

use crate::guids::{CLR, CLR_RUNDOWN};

/// What an event says of a method, module, assembly or domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It was loaded or compiled just now.
    Load,
    /// It goes now.
    Unload,
    /// It was there when the session began.
    RundownStart,
    /// It is there while the session ends.
    RundownEnd,
}

/// A decoded event of the .NET runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clr<'a> {
    /// A method's code came, went, or is there.
    Method(Method<'a>),
    /// Which native code belongs to which IL of a method.
    IlMap(IlMap<'a>),
    /// A method is about to be compiled.
    JittingStarted(JittingStarted<'a>),
    /// Memory for a method's code was taken.
    JitMemory(JitMemory),
    /// A precompiled method was called for the first time.
    R2rEntryPoint(R2rEntryPoint<'a>),
    /// A module was loaded, unloaded, or is there.
    Module(Module<'a>),
    /// The same by application domain.
    DomainModule(DomainModule<'a>),
    /// An assembly was loaded, unloaded, or is there.
    Assembly(Assembly<'a>),
    /// An application domain was made, unloaded, or is there.
    AppDomain(AppDomain<'a>),
    /// A runtime started, or is there.
    Runtime(Runtime<'a>),
    /// The rundown of a process begins.
    RundownBegin {
        /// At the session's start or end.
        phase: Phase,
        /// Which runtime of the process.
        instance: Option<u16>,
    },
    /// The rundown of a process is complete.
    RundownComplete {
        /// At the session's start or end.
        phase: Phase,
        /// Which runtime of the process.
        instance: Option<u16>,
    },
    /// How tiered compilation is set.
    TieredSettings(TieredSettings),
    /// The stack of the thread's runtime event before it.
    StackWalk(StackWalk<'a>),
    /// A collection begins. .NET Framework 4.5.2 writes it twice, in two versions.
    GcStart(GcStart),
    /// A collection is over.
    GcEnd(GcEnd),
    /// What the heaps hold after a collection.
    HeapStats(HeapStats),
    /// About 100 KB were allocated.
    AllocationTick(AllocationTick<'a>),
    /// An object was allocated, and chosen by chance.
    AllocationSampled(AllocationSampled<'a>),
    /// The runtime begins to stop the threads that run its code.
    Suspension(Suspension),
    /// They all stand still.
    SuspensionEnd {
        /// Which runtime of the process.
        instance: Option<u16>,
    },
    /// They run again.
    Resumption {
        /// Which runtime of the process.
        instance: Option<u16>,
    },
    /// An exception was thrown.
    Exception(Exception<'a>),
    /// A thread begins to wait for a lock.
    Contention(Contention),
    /// It has the lock.
    ContentionEnd(ContentionEnd),
    /// Threads of the thread pool came or went, or others are wanted.
    PoolThreads(PoolThreads),
}

/// Decodes an event of the runtime's providers; the outer `None` if its payload is too short for its layout, the
/// inner `None` if the event is of no use here.
#[inline]
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<Clr<'a>>> {
    read(event, &mut event.reader())
}

/// [`decode`](super::decode) with the reader at hand: what it leaves is behind every known field of the layout.
pub fn read<'a>(event: &Event<'a>, r: &mut Reader<'a>) -> Option<Option<Clr<'a>>> {
    use Phase::{Load, RundownEnd, RundownStart, Unload};
    let Kind::Manifest(id) = event.kind else { return Some(None) };
    let version = event.version;
    let method =
        |r: &mut Reader<'a>, phase, verbose| Some(Clr::Method(method::decode(r, version, phase, verbose)?));
    let module = |r: &mut Reader<'a>, phase| Some(Clr::Module(loader::decode_module(r, version, phase)?));
    let domain_module =
        |r: &mut Reader<'a>, phase| Some(Clr::DomainModule(loader::decode_domain_module(r, version, phase)?));
    let assembly =
        |r: &mut Reader<'a>, phase| Some(Clr::Assembly(loader::decode_assembly(r, version, phase)?));
    let domain =
        |r: &mut Reader<'a>, phase| Some(Clr::AppDomain(loader::decode_app_domain(r, version, phase)?));
    // Version 0 of the marks is empty.
    let begin = |r: &mut Reader<'a>, phase| Clr::RundownBegin { phase, instance: r.u16() };
    let complete = |r: &mut Reader<'a>, phase| Clr::RundownComplete { phase, instance: r.u16() };
    let decoded = match (event.provider, id) {
        (CLR, 141) => method(r, Load, false)?,
        (CLR, 142) => method(r, Unload, false)?,
        (CLR, 143) => method(r, Load, true)?,
        (CLR, 144) => method(r, Unload, true)?,
        // The runtimes of .NET Framework 2.0 to 3.5 have no rundown provider.
        (CLR, 137) | (CLR_RUNDOWN, 141) => method(r, RundownStart, false)?,
        (CLR, 138) | (CLR_RUNDOWN, 142) => method(r, RundownEnd, false)?,
        (CLR, 139) | (CLR_RUNDOWN, 143) => method(r, RundownStart, true)?,
        (CLR, 140) | (CLR_RUNDOWN, 144) => method(r, RundownEnd, true)?,
        (CLR, 145) => Clr::JittingStarted(method::decode_jitting_started(r, version)?),
        (CLR, 146) => Clr::JitMemory(method::decode_jit_memory(r)?),
        (CLR, 159) => Clr::R2rEntryPoint(method::decode_r2r_entry_point(r)?),
        (CLR, 190) => Clr::IlMap(method::decode_il_map(r, Load)?),
        (CLR_RUNDOWN, 149) => Clr::IlMap(method::decode_il_map(r, RundownStart)?),
        (CLR_RUNDOWN, 150) => Clr::IlMap(method::decode_il_map(r, RundownEnd)?),
        (CLR, 135) | (CLR_RUNDOWN, 145) => complete(r, RundownStart),
        (CLR, 136) | (CLR_RUNDOWN, 146) => complete(r, RundownEnd),
        (CLR_RUNDOWN, 147) => begin(r, RundownStart),
        (CLR_RUNDOWN, 148) => begin(r, RundownEnd),
        (CLR, 152) => module(r, Load)?,
        (CLR, 153) => module(r, Unload)?,
        (CLR, 149) | (CLR_RUNDOWN, 153) => module(r, RundownStart)?,
        (CLR, 150) | (CLR_RUNDOWN, 154) => module(r, RundownEnd)?,
        (CLR, 151) => domain_module(r, Load)?,
        (CLR_RUNDOWN, 151) => domain_module(r, RundownStart)?,
        (CLR_RUNDOWN, 152) => domain_module(r, RundownEnd)?,
        (CLR, 154) => assembly(r, Load)?,
        (CLR, 155) => assembly(r, Unload)?,
        (CLR_RUNDOWN, 155) => assembly(r, RundownStart)?,
        (CLR_RUNDOWN, 156) => assembly(r, RundownEnd)?,
        (CLR, 156) => domain(r, Load)?,
        (CLR, 157) => domain(r, Unload)?,
        (CLR_RUNDOWN, 157) => domain(r, RundownStart)?,
        (CLR_RUNDOWN, 158) => domain(r, RundownEnd)?,
        (CLR | CLR_RUNDOWN, 187) => Clr::Runtime(runtime::decode(r, event.provider == CLR)?),
        (CLR | CLR_RUNDOWN, 280) => Clr::TieredSettings(runtime::decode_tiered_settings(r)?),
        (CLR, 1) => Clr::GcStart(gc::decode_start(r, version)?),
        (CLR, 2) => Clr::GcEnd(gc::decode_end(r, version)?),
        (CLR, 3) => Clr::Resumption { instance: r.u16() },
        (CLR, 4) => Clr::HeapStats(gc::decode_heap_stats(r, version)?),
        (CLR, 10) => Clr::AllocationTick(gc::decode_allocation_tick(r, version, event.pointer)?),
        (CLR, 303) => Clr::AllocationSampled(gc::decode_allocation_sampled(r, event.pointer)?),
        (CLR, 8) => Clr::SuspensionEnd { instance: r.u16() },
        (CLR, 9) => Clr::Suspension(gc::decode_suspension(r, version)?),
        (CLR, 80) => Clr::Exception(exception::decode(r, event.pointer)),
        (CLR, 81) => Clr::Contention(threading::decode_contention(r, version, event.pointer)),
        (CLR, 91) => Clr::ContentionEnd(threading::decode_contention_end(r, version)),
        (CLR, 50 | 51 | 57) => Clr::PoolThreads(threading::decode_pool_threads(r)?),
        (CLR, 55) => Clr::PoolThreads(threading::decode_pool_adjustment(r)?),
        (CLR, 82) | (CLR_RUNDOWN, 0) => Clr::StackWalk(runtime::decode_stack_walk(r, event.pointer)?),
        _ => return Some(None),
    };
    Some(Some(decoded))
}
