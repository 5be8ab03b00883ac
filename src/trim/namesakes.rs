//! Methods of other programs that decide how those of the chosen ones are shown: a name has its parameters if the trace has
//! another method that reads like it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::trace::Trace;
use crate::trace::code::{Body, BodyKind, MethodName, outer_type};

/// Where their code begins, by process.
pub(super) type Namesakes = FxHashMap<u32, FxHashSet<u64>>;

/// The methods of processes for which `is_kept` is false that the others lack and have the types of, each once.
pub(super) fn namesakes(trace: &Trace, is_kept: impl Fn(u32) -> bool) -> Namesakes {
    let bodies = || trace.code.bodies().iter().filter_map(|body| Some((body, named(trace, body)?)));
    let pid = |body: &Body| trace.process(body.process).map(|process| process.pid);
    let mut types: FxHashSet<(&str, &str)> = FxHashSet::default();
    let mut known: FxHashSet<(&str, MethodName<'_>)> = FxHashSet::default();
    for (_, (module, name)) in bodies().filter(|(body, _)| pid(body).is_some_and(&is_kept)) {
        if known.insert((module, name)) {
            types.insert((module, outer_type(name.type_name)));
        }
    }
    let mut namesakes = Namesakes::default();
    for (body, (module, name)) in bodies() {
        let Some(pid) = pid(body).filter(|pid| !is_kept(*pid)) else { continue };
        if types.contains(&(module, outer_type(name.type_name))) && known.insert((module, name)) {
            namesakes.entry(pid).or_default().insert(body.start);
        }
    }
    namesakes
}

/// The module and the name of a method.
fn named<'t>(trace: &'t Trace, body: &Body) -> Option<(&'t str, MethodName<'t>)> {
    let module = body.module.and_then(|module| trace.code.module(module))?;
    let is_method = !matches!(body.kind, BodyKind::Script | BodyKind::Helper);
    trace.code.name(body).filter(|_| is_method).map(|name| (module.name(), name))
}
