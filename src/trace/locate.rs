//! Where an address is: the one place that decides between images, compiled code and precompiled methods.

use crate::event::Ticks;

use super::code::{BodyId, CodeAt};
use super::images::ModuleId;
use super::processes::ProcessId;
use super::{MappingAt, Trace};

/// A code address, as a stack has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeAddress {
    /// The address.
    pub address: u64,
    /// It is behind a call, which may be the last instruction of its function and its module: what is looked up is the
    /// byte before it.
    pub is_return: bool,
}

impl CodeAddress {
    /// The address whose function, line and module count.
    pub fn looked_up(self) -> u64 {
        self.address.saturating_sub(u64::from(self.is_return))
    }
}

/// Where code is, without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In an image.
    Image {
        /// The image.
        module: ModuleId,
        /// Relative to its base.
        rva: CodeAddress,
        /// What its runtime says of precompiled code there.
        method: Option<InBody>,
    },
    /// In code that a runtime or engine made.
    Body(InBody),
    /// In nothing that is known.
    Bare {
        /// The process; the first one for the kernel's half, which is the same for all.
        process: ProcessId,
        /// The address.
        address: u64,
    },
}

/// An address in a body of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InBody {
    /// The body.
    pub body: BodyId,
    /// Bytes from its start to the address that is [looked up](CodeAddress::looked_up).
    pub offset: u32,
}

/// A place, and the time for which the address is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceAt {
    /// The place.
    pub place: Place,
    /// The answer is the same from here,
    pub from: Ticks,
    /// until just before here.
    pub until: Ticks,
}

impl PlaceAt {
    /// True if the answer holds at `time` too.
    pub fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

impl Trace {
    /// Where an address of `process` is at `time`.
    ///
    /// Compiled code hides an image that was mapped before it. What a runtime says of precompiled code goes with the
    /// image that holds it.
    pub fn locate(&self, process: ProcessId, code: CodeAddress, time: Ticks) -> PlaceAt {
        let kernel = self.is_kernel_address(code.address);
        let looked_up = code.looked_up();
        let located = self.mappings.at(process, looked_up, kernel, time);
        let mapping = located.mapping.and_then(|index| self.mappings.get(index));
        if kernel {
            let place = match mapping {
                Some(mapping) => image(mapping.module, mapping.base, code, None),
                None => Place::Bare { process: ProcessId(0), address: code.address },
            };
            let MappingAt { from, until, .. } = located;
            return PlaceAt { place, from, until };
        }
        let in_body = |id| {
            let offset = looked_up.saturating_sub(self.code.body(id)?.start);
            Some(InBody { body: id, offset: u32::try_from(offset).ok()? })
        };
        let compiled = self.code.at(process, looked_up, time);
        let compiled_body = compiled.body.and_then(|id| Some((self.code.body(id)?, in_body(id)?)));
        if let Some((body, place)) = compiled_body
            && mapping.is_none_or(|mapping| mapping.start <= body.from)
        {
            return holding(Place::Body(place), located, compiled, CodeAt::NOTHING);
        }
        let precompiled = self.code.precompiled_at(process, looked_up, time);
        // A method without a known end does not reach into another image.
        let is_inside = |id: &BodyId| {
            self.code.body(*id).is_some_and(|body| {
                !body.open_ended || mapping.is_some_and(|mapping| mapping.base <= body.start)
            })
        };
        let method = precompiled.body.filter(is_inside).and_then(in_body);
        let place = match (mapping, method) {
            (Some(mapping), method) => image(mapping.module, mapping.base, code, method),
            (None, Some(method)) => Place::Body(method),
            (None, None) => Place::Bare { process, address: code.address },
        };
        holding(place, located, compiled, precompiled)
    }
}

fn image(module: ModuleId, base: u64, code: CodeAddress, method: Option<InBody>) -> Place {
    let rva = CodeAddress { address: code.address.saturating_sub(base), is_return: code.is_return };
    Place::Image { module, rva, method }
}

/// For as long as all three answers hold.
fn holding(place: Place, located: MappingAt, compiled: CodeAt, precompiled: CodeAt) -> PlaceAt {
    let from = located.from.max(compiled.from).max(precompiled.from);
    let until = located.until.min(compiled.until).min(precompiled.until);
    PlaceAt { place, from, until }
}

impl Place {
    /// The body of code at it, if there is one.
    pub fn body(&self) -> Option<InBody> {
        match *self {
            Place::Image { method, .. } => method,
            Place::Body(body) => Some(body),
            Place::Bare { .. } => None,
        }
    }
}
