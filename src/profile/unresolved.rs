//! Why a frame is an address and no function.

use serde::Serialize;

use crate::trace::{ProcessId, Trace};

use super::category::{Category, ModuleCategories};

/// Why a frame is an address and no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unresolved {
    /// It is in an image for whose code there are no names.
    NoSymbols,
    /// It is in no image, in a process without a runtime that compiles code.
    OutsideImages,
    /// The process has a .NET runtime, which was never asked for its code.
    RuntimeNotAsked,
    /// The runtime reported code that came and went, but never listed what it had: nobody asked for that.
    NoRundown,
    /// The process ended before the runtime could list what it had.
    EndedBeforeRundown,
    /// The runtime began to list what it had, and did not come to the end.
    RundownCutShort,
    /// Events were lost, perhaps the one for this code.
    EventsLost,
    /// The runtime reported all its methods, and this is none: a stub or thunk, or code of another compiler.
    UnknownCode,
}

impl Unresolved {
    /// True for code that a .NET runtime could have named; false for that of images and of nobody.
    pub fn is_of_runtime(self) -> bool {
        !matches!(self, Unresolved::NoSymbols | Unresolved::OutsideImages)
    }

    /// The cause in words.
    pub fn text(self) -> &'static str {
        match self {
            Unresolved::NoSymbols => "no symbols",
            Unresolved::OutsideImages => "outside every image",
            Unresolved::RuntimeNotAsked => "no .NET events recorded",
            Unresolved::NoRundown => "no .NET rundown",
            Unresolved::EndedBeforeRundown => "the process ended before the .NET rundown",
            Unresolved::RundownCutShort => ".NET rundown cut short",
            Unresolved::EventsLost => "events lost",
            Unresolved::UnknownCode => "stubs and thunks",
        }
    }

    /// The cause for addresses of `process` outside all images and known code.
    pub(super) fn outside_images(
        trace: &Trace,
        process: ProcessId,
        categories: &ModuleCategories,
    ) -> Unresolved {
        let Some(host) = trace.code.host(process).filter(|host| host.is_clr()) else {
            let has_runtime =
                trace.mappings.of(process).any(|mapping| categories.of(mapping.module) == Category::Runtime);
            return if has_runtime { Unresolved::RuntimeNotAsked } else { Unresolved::OutsideImages };
        };
        let ended = trace.process(process).is_some_and(|process| process.life.end.is_some());
        let knows_all = host.rundown.is_complete() || host.was_seen_from_its_start();
        match host.rundown {
            _ if knows_all && trace.lost.events + trace.lost.buffers > 0 => Unresolved::EventsLost,
            _ if knows_all => Unresolved::UnknownCode,
            rundown if rundown.has_begun() => Unresolved::RundownCutShort,
            _ if ended => Unresolved::EndedBeforeRundown,
            _ => Unresolved::NoRundown,
        }
    }
}
