//! Frames of managed code.

use crate::events::clr::Tier;
use crate::trace::Trace;
use crate::trace::code::{Body, BodyKind};

use super::category::Category;
use super::frame::Frame;

/// How managed code is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// The tier stands before the method: `Module![Tier1]Type.Method`.
    pub tiers: bool,
    /// The runtime's own form: `Module!Type.Method(signature)`.
    pub raw: bool,
}

impl Naming {
    /// The frame of a body.
    pub(super) fn frame(self, trace: &Trace, body: &Body) -> Frame {
        let mut text = String::with_capacity(64);
        let module = body.module.and_then(|module| trace.code.module(module));
        if let Some(name) = module.map(|module| module.name()).filter(|name| !name.is_empty()) {
            text += name;
            text += "!";
        }
        if self.tiers {
            text += tier(body, module.is_some_and(|module| module.flags.is_ready_to_run()));
        }
        match trace.code.name(body) {
            Some(name) => {
                if !name.type_name.is_empty() {
                    text += name.type_name;
                    text += ".";
                }
                text += name.method;
                if self.raw {
                    let parameters = name.signature.find('(').and_then(|at| name.signature.get(at..));
                    text += parameters.unwrap_or_default();
                }
            }
            // The token finds it in the module's metadata.
            None => text += &format!("method 0x{:08x}", body.token),
        }
        Frame { text, category: Category::of_body(body), module: None, inlined: false, unresolved: None }
    }
}

/// How a body was compiled. Runtimes without tiers tell only whether it was at run time.
fn tier(body: &Body, ready_to_run: bool) -> &'static str {
    match (body.kind, body.flags.tier()) {
        (BodyKind::Script | BodyKind::Helper, _) => "",
        (BodyKind::Precompiled, _) if ready_to_run => "[R2R]",
        (BodyKind::Precompiled, _) => "[PreJIT]",
        (_, Tier::Unknown) => "[JIT]",
        (_, Tier::MinOptimized) => "[MinOpt]",
        (_, Tier::Optimized) => "[Optimized]",
        (_, Tier::Tier0) => "[Tier0]",
        (_, Tier::Tier1) => "[Tier1]",
        (_, Tier::Osr) => "[OSR]",
        (_, Tier::Tier0Instrumented) => "[Tier0 instrumented]",
        (_, Tier::Tier1Instrumented) => "[Tier1 instrumented]",
    }
}
