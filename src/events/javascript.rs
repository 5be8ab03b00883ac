//! Events of JavaScript engines: Chakra's manifest provider, and V8 (Chrome, Edge, Node.js), which writes the same
//! fields as TraceLogging events under the same GUID.
//!
//! V8 tells no unload, and its collector moves code: a later load over the same bytes replaces what was there. The
//! layouts are those of the Chakra manifest and of V8's sources; no real file was at hand to verify them.

use crate::bytes::{Reader, Utf16};
use crate::event::{Event, Kind};

use super::clr::Phase;
use crate::guids::JSCRIPT;

/// A decoded event of a JavaScript engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JavaScript<'a> {
    /// A function's code came, went, or is there.
    Method(Method<'a>),
    /// A script came, went, or is there.
    Source(Source<'a>),
}

/// A function's code came, went, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The engine's handle of the script's context.
    pub context: u64,
    /// Where its code begins.
    pub start: u64,
    /// The size of its code in bytes.
    pub size: u64,
    /// The engine's number of the function; 0 in V8.
    pub id: u32,
    /// The engine's number of the script.
    pub source: u64,
    /// The line in the script.
    pub line: u32,
    /// The column in that line.
    pub column: u32,
    /// Its name; V8 may put a mark of the tier before it.
    pub name: Utf16<'a>,
}

/// A script came, went, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The engine's number of the script.
    pub id: u64,
    /// The engine's handle of its context.
    pub context: u64,
    /// Where it was loaded from.
    pub url: Utf16<'a>,
}

/// Decodes an event of the engines' provider, as [`clr`](super::clr) does.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<JavaScript<'a>>> {
    let (JSCRIPT, Kind::Manifest(id)) = (event.provider, event.kind) else { return Some(None) };
    // TraceLogging events may have no id but only a name.
    let id = match id {
        0 => event.tracelogging_name().as_deref().and_then(id_of_name).unwrap_or(0),
        id => id,
    };
    let mut r = event.reader();
    let method = |r: &mut Reader<'a>, phase| decode_method(event, r, phase).map(JavaScript::Method);
    let source = |r: &mut Reader<'a>, phase| decode_source(event, r, phase).map(JavaScript::Source);
    Some(Some(match id {
        9 => method(&mut r, Phase::Load)?,
        10 => method(&mut r, Phase::Unload)?,
        5 => method(&mut r, Phase::RundownStart)?,
        6 => method(&mut r, Phase::RundownEnd)?,
        41 => source(&mut r, Phase::Load)?,
        42 => source(&mut r, Phase::Unload)?,
        39 => source(&mut r, Phase::RundownStart)?,
        40 => source(&mut r, Phase::RundownEnd)?,
        _ => return Some(None),
    }))
}

fn id_of_name(name: &str) -> Option<u16> {
    Some(match name {
        "MethodLoad" => 9,
        "MethodUnload" => 10,
        "MethodDCStart" => 5,
        "MethodDCStop" => 6,
        "SourceLoad" => 41,
        "SourceUnload" => 42,
        "SourceDCStart" => 39,
        "SourceDCStop" => 40,
        _ => return None,
    })
}

/// Context P, start P, size u64, id u32, flags u16, address range u16, source u64, line u32, column u32, name.
fn decode_method<'a>(event: &Event<'a>, r: &mut Reader<'a>, phase: Phase) -> Option<Method<'a>> {
    let context = event.pointer.read(r)?;
    let start = event.pointer.read(r)?;
    let (size, id) = (r.u64()?, r.u32()?);
    r.skip(4)?;
    let (source, line, column, name) = (r.u64()?, r.u32()?, r.u32()?, r.utf16());
    Some(Method { phase, context, start, size, id, source, line, column, name })
}

/// Source u64, context P, flags u32, URL.
fn decode_source<'a>(event: &Event<'a>, r: &mut Reader<'a>, phase: Phase) -> Option<Source<'a>> {
    let id = r.u64()?;
    let context = event.pointer.read(r)?;
    r.skip(4)?;
    Some(Source { phase, id, context, url: r.utf16() })
}
