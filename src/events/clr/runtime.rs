//! The runtime itself: its version, its settings, the stacks of its events.

use crate::bytes::{Reader, Utf16};
use crate::event::Pointer;
use crate::events::kernel::Frames;

/// Which line of .NET runtimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Sku {
    /// .NET Framework.
    Desktop,
    /// .NET Core and its successors.
    CoreClr,
    /// Mono.
    Mono,
    /// A number that is not known here.
    Unknown,
}

/// A runtime started in a process, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Runtime<'a> {
    /// True if it started just now; false if a rundown tells that it is there.
    pub started: bool,
    /// Which runtime of the process: all its events carry this number.
    pub instance: u16,
    /// Its line.
    pub sku: Sku,
    /// The version of its class library: major, minor, build, revision.
    pub library_version: [u16; 4],
    /// The version of the runtime itself.
    pub version: [u16; 4],
    /// The command line.
    pub command_line: Utf16<'a>,
    /// The file of the runtime.
    pub path: Utf16<'a>,
}

/// Instance u16, SKU u16, eight version parts u16, startup flags u32, mode u8, command line, COM object GUID, path.
/// Verified on net.4.5.2.x64.etl and gcrundownevents.
pub(super) fn decode<'a>(r: &mut Reader<'a>, started: bool) -> Option<Runtime<'a>> {
    let instance = r.u16()?;
    let sku = match r.u16()? {
        1 => Sku::Desktop,
        2 => Sku::CoreClr,
        4 => Sku::Mono,
        _ => Sku::Unknown,
    };
    let version = |r: &mut Reader<'a>| Some([r.u16()?, r.u16()?, r.u16()?, r.u16()?]);
    let (library_version, own_version) = (version(r)?, version(r)?);
    r.skip(5)?;
    let command_line = r.utf16();
    // Behind a text that was cut there is nothing.
    let path = if r.guid().is_some() { r.utf16() } else { Utf16::default() };
    Some(Runtime { started, instance, sku, library_version, version: own_version, command_line, path })
}

/// How tiered compilation is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TieredSettings {
    /// Which runtime of the process.
    pub instance: u16,
    /// 0x1 quick JIT, 0x2 quick JIT for loops, 0x4 tiered PGO, 0x8 ReadyToRun.
    pub flags: u32,
}

/// Runtime instance u16, flags u32. Verified on gcrundownevents.
pub(super) fn decode_tiered_settings(r: &mut Reader<'_>) -> Option<TieredSettings> {
    Some(TieredSettings { instance: r.u16()?, flags: r.u32()? })
}

/// The stack of the thread's runtime event before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackWalk<'a> {
    /// Which runtime of the process.
    pub instance: u16,
    /// The stack.
    pub frames: Frames<'a>,
}

/// Runtime instance u16, two bytes, count u32, addresses of the writer's width. Verified on net.4.5.2.x64.etl
/// (14,983).
pub(super) fn decode_stack_walk<'a>(r: &mut Reader<'a>, pointer: Pointer) -> Option<StackWalk<'a>> {
    let instance = r.u16()?;
    r.skip(2)?;
    let bytes = usize::try_from(r.u32()?).ok()?.checked_mul(pointer.bytes())?;
    Some(StackWalk { instance, frames: Frames::new(r.take(bytes)?, pointer) })
}
