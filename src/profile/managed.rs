//! Frames of managed code, as its runtime names it.

use crate::symbols::managed::RawName;
use crate::symbols::managed::names::{self, Style};
use crate::trace::Trace;
use crate::trace::code::{Body, BodyKind};

use super::category::Category;
use super::frame::{Frame, Naming, cut};

/// As native functions, methods are shown without their parameters.
const STYLE: Style = Style { parameters: false, exact: false };

impl Naming {
    /// The frame of a body: `module!Namespace.Type.Method`.
    pub(super) fn managed(self, trace: &Trace, body: &Body) -> Frame {
        let module = body.module.and_then(|module| trace.code.module(module));
        let mut text = match module.map(|module| module.name()) {
            Some("") | None => String::new(),
            Some(name) => format!("{}!", cut(name)),
        };
        if self.tiers && !matches!(body.kind, BodyKind::Script | BodyKind::Helper) {
            let tier = names::tier(body.flags.0, module.map_or(0, |module| module.flags.0));
            text += tier.unwrap_or_default();
        }
        match trace.code.name(body) {
            Some(name) if name.type_name.is_empty() => text += name.method,
            Some(name) => {
                let name = RawName {
                    type_name: name.type_name.to_owned(),
                    method: name.method.to_owned(),
                    type_args: String::new(),
                    signature: name.signature.to_owned(),
                };
                text += &if self.raw { name.to_string() } else { name.readable(STYLE) };
            }
            // The token finds it in the module's metadata.
            None => text += &format!("method 0x{:08x}", body.token),
        }
        Frame { text, category: Category::of_body(body), module: None, inlined: false, unresolved: None }
    }
}
