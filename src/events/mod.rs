//! Payload bytes to typed events, by provider, opcode or id, version and pointer width.
//!
//! Everything is read by hand from known layouts. Windows' own decoder (TDH) needs Windows, needs the manifest of the
//! machine that recorded, and on Windows 11 24H2 knows neither samples nor context switches.

pub mod clr;
pub mod counter;
pub mod javascript;
pub mod kernel;
pub mod names;
mod self_describing;
pub mod trimmed;

use crate::event::{Event, Kind};
use crate::guids::{CLR, CLR_RUNDOWN, ETWPROF, JSCRIPT};
use clr::Clr;
use counter::CounterValue;
use javascript::JavaScript;
use kernel::Kernel;
use trimmed::TrimmedEvent;

/// A decoded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded<'a> {
    /// A kernel event.
    Kernel(Kernel<'a>),
    /// An event of the .NET runtime.
    Clr(Clr<'a>),
    /// An event of a JavaScript engine.
    JavaScript(JavaScript<'a>),
    /// The value of a counter.
    Counter(CounterValue<'a>),
    /// What the recording was trimmed to.
    Trimmed(TrimmedEvent<'a>),
    /// An event that no report needs.
    Other,
}

/// An event whose payload is too short for the layout that its version names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payload too short for its layout")]
pub struct Malformed;

/// Decodes one event.
#[inline]
pub fn decode<'a>(event: &Event<'a>) -> Result<Decoded<'a>, Malformed> {
    match event.kind {
        Kind::Classic => Ok(kernel::decode(event).ok_or(Malformed)?.map_or(Decoded::Other, Decoded::Kernel)),
        Kind::Manifest(_) => match event.provider {
            CLR | CLR_RUNDOWN => {
                Ok(clr::decode(event).ok_or(Malformed)?.map_or(Decoded::Other, Decoded::Clr))
            }
            JSCRIPT => {
                Ok(javascript::decode(event).ok_or(Malformed)?.map_or(Decoded::Other, Decoded::JavaScript))
            }
            ETWPROF if event.kind == Kind::Manifest(0) => match event.tracelogging_name().as_deref() {
                Some(counter::NAME) => counter::decode(event).map(Decoded::Counter).ok_or(Malformed),
                Some(trimmed::NAME) => trimmed::decode(event).map(Decoded::Trimmed).ok_or(Malformed),
                _ => Ok(Decoded::Other),
            },
            _ => Ok(Decoded::Other),
        },
        Kind::Message(_) | Kind::Unknown(_) => Ok(Decoded::Other),
    }
}
