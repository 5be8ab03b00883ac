//! Frames of .NET methods. Which readable form of a name is enough depends on the other methods of its module, so such a
//! frame gets its text when all are known. Those of the whole trace count, shown or not: a method has one name, whatever
//! samples are kept.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::symbols::Precompiled;
use crate::symbols::managed::RawName;
use crate::symbols::managed::names::{distinct, tier};
use crate::trace::Trace;
use crate::trace::code::{Body, BodyKind, Host, MethodName};

use super::category::Category;
use super::frame::{Frame, FrameId, Naming, cut};

/// What the text of a method's frame is made of: `module![Tier1]Type.Method (file:line)`.
#[derive(Debug)]
pub(super) struct Method {
    /// `module!`, or nothing.
    module: String,
    /// The nearest one, without proof that the code is its.
    near: bool,
    tier: &'static str,
    name: RawName,
    /// What follows the name.
    remark: String,
}

impl Method {
    fn text(&self, name: &str) -> String {
        let near = if self.near { "~" } else { "" };
        format!("{}{near}{}{name}{}", self.module, self.tier, self.remark)
    }
}

/// A frame, and what its text will be made of if that is not said yet.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) frame: Frame,
    pub(super) method: Option<Method>,
}

impl From<Frame> for Draft {
    fn from(frame: Frame) -> Draft {
        Draft { frame, method: None }
    }
}

impl Naming {
    /// The frame of a body: `module!Namespace.Type.Method`. `image` is the name of the image that it is in, which
    /// tells the module where no event does; `line` follows the name.
    pub(super) fn body(self, trace: &Trace, body: &Body, image: &str, line: String) -> Draft {
        let module = body.module.and_then(|module| trace.code.module(module));
        let prefix = module_prefix(module.map_or(image, |module| module.name()));
        let category = Category::of_body(body);
        let plain = |name: &str| Draft::from(Frame::code(format!("{prefix}{name}"), category));
        let Some(name) = trace.code.name(body) else {
            // The token finds it in the module's metadata.
            return plain(&format!("method 0x{:08x}", body.token));
        };
        if matches!(body.kind, BodyKind::Script | BodyKind::Helper) {
            return plain(name.method);
        }
        let tier = match body.open_ended {
            true => Some("[R2R]"),
            false => tier(body.flags.0, module.map_or(0, |module| module.flags.0)),
        };
        let method = Method {
            module: prefix,
            near: body.open_ended && !all_entry_points_are_known(trace, body),
            tier: tier.filter(|_| self.tiers).unwrap_or_default(),
            name: RawName {
                type_name: name.type_name.to_owned(),
                method: name.method.to_owned(),
                type_args: String::new(),
                signature: name.signature.to_owned(),
            },
            remark: line,
        };
        self.method(method, category)
    }

    /// The frame of a method in the image of this name.
    pub(super) fn precompiled(self, image: &str, method: &Precompiled, line: &str) -> Draft {
        let shared = if method.shared { " (shared)" } else { "" };
        let tier = if method.ready_to_run { "[R2R]" } else { "[PreJIT]" };
        let method = Method {
            // Its runtime names a module by its IL.
            module: module_prefix(image.strip_suffix(".ni").unwrap_or(image)),
            near: false,
            tier: if self.tiers { tier } else { "" },
            name: method.name.clone(),
            remark: format!("{shared}{line}"),
        };
        self.method(method, Category::ManagedPrecompiled)
    }

    /// The frame of a method.
    fn method(self, method: Method, category: Category) -> Draft {
        if self.raw {
            return Frame::code(method.text(&method.name.to_string()), category).into();
        }
        // Until it has its name, all that tells it from others.
        let RawName { type_name, method: name, type_args, signature } = &method.name;
        let text = method.text(&format!("{type_name}.{name}{type_args} {signature}"));
        Draft { frame: Frame::code(text, category), method: Some(method) }
    }
}

/// A precompiled method's entry point is told when it is first called. Where none was missed, the nearest one before
/// code that runs is that of its method.
fn all_entry_points_are_known(trace: &Trace, body: &Body) -> bool {
    let from_the_start = trace.code.host(body.process).is_some_and(Host::was_seen_from_its_start);
    from_the_start && trace.lost.events + trace.lost.buffers == 0
}

/// `module!`, or nothing for an empty name.
fn module_prefix(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{}!", cut(name)) }
}

/// Gives methods their readable names. No two methods of a module get the same, those of `trace` that have
/// no sample among them.
pub(super) fn name_methods(
    frames: &mut [Frame],
    mut methods: Vec<(FrameId, Method)>,
    trace: &Trace,
    parameters: bool,
) {
    methods.sort_by(|(_, a), (_, b)| a.module.cmp(&b.module));
    let others = other_names(trace, &methods);
    for of_module in methods.chunk_by(|(_, a), (_, b)| a.module == b.module) {
        let also = of_module.first().and_then(|(_, method)| others.get(method.module.as_str()));
        let shown = of_module.iter().map(|(_, method)| &method.name);
        let names = distinct(shown.chain(also.into_iter().flatten()), parameters);
        for ((id, method), name) in of_module.iter().zip(names) {
            if let Some(frame) = frames.get_mut(id.0 as usize) {
                frame.text = method.text(&name);
            }
        }
    }
}

/// The names of all methods in `trace` that may read like one of `methods`, by `module!`: those of the same types.
fn other_names<'m>(trace: &Trace, methods: &'m [(FrameId, Method)]) -> FxHashMap<&'m str, Vec<RawName>> {
    let mut others: FxHashMap<&str, Vec<RawName>> = FxHashMap::default();
    if methods.is_empty() {
        return others;
    }
    let mut types: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
    for (_, method) in methods {
        types.entry(&method.module).or_default().insert(outer_type(&method.name.type_name));
    }
    // Of each module in the trace the types that matter, if any do.
    let wanted =
        |prefix: String| types.get_key_value(prefix.as_str()).map(|(module, types)| (*module, types));
    let modules: Vec<_> =
        trace.code.modules().iter().map(|module| wanted(module_prefix(module.name()))).collect();
    let mut known: FxHashSet<(&str, MethodName<'_>)> = FxHashSet::default();
    for body in trace.code.bodies() {
        let module = body.module.and_then(|module| modules.get(module.0 as usize).copied().flatten());
        let Some((module, types)) = module else { continue };
        if matches!(body.kind, BodyKind::Script | BodyKind::Helper) {
            continue;
        }
        let Some(name) = trace.code.name(body) else { continue };
        if types.contains(outer_type(name.type_name)) && known.insert((module, name)) {
            others.entry(module).or_default().push(RawName {
                type_name: name.type_name.to_owned(),
                method: name.method.to_owned(),
                type_args: String::new(),
                signature: name.signature.to_owned(),
            });
        }
    }
    others
}

/// The name of the outermost type, with which every readable form begins, without its arity.
fn outer_type(type_name: &str) -> &str {
    // By bytes: every method of the trace comes by here.
    let end = type_name.bytes().position(|byte| matches!(byte, b'`' | b'+' | b'[' | b'<'));
    end.and_then(|end| type_name.get(..end)).unwrap_or(type_name)
}
