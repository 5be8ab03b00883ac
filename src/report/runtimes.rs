//! What the tables of collections and of compilations have in common: the runtimes that they are about.

use std::collections::BTreeMap;

use crate::events::clr::Sku;
use crate::trace::{ProcessId, Trace};

/// A runtime of a process, in order of their ids.
pub(super) type Key = (ProcessId, Option<u16>);

/// One entry for each runtime that is wanted; `None` for one that nobody wants.
#[derive(Debug)]
pub(super) struct PerRuntime<'a, T> {
    wanted: &'a [bool],
    pub(super) all: BTreeMap<Key, T>,
}

impl<'a, T: Default> PerRuntime<'a, T> {
    /// None yet. `wanted` says of each process of a trace whether it is.
    pub(super) fn new(wanted: &'a [bool]) -> Self {
        PerRuntime { wanted, all: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, process: ProcessId, instance: Option<u16>) -> Option<&mut T> {
        let wanted = self.wanted.get(process.0 as usize) == Some(&true);
        wanted.then(|| self.all.entry((process, instance)).or_default())
    }
}

/// The id and the name of a process.
pub(super) fn process(trace: &Trace, id: ProcessId) -> (u32, String) {
    let process = trace.process(id);
    process.map_or_else(Default::default, |process| (process.pid, process.label().to_owned()))
}

/// The line and version of a runtime: `.NET Framework 4.0.30319.0`; `None` where the recording does not say.
pub(super) fn clr(trace: &Trace, (process, instance): Key) -> Option<String> {
    let runtimes = &trace.code.host(process)?.runtimes;
    let runtime = match (instance, runtimes.as_slice()) {
        (None, [only]) => only,
        _ => runtimes.iter().find(|runtime| Some(runtime.instance) == instance)?,
    };
    let [major, minor, build, revision] = runtime.version;
    Some(format!("{} {major}.{minor}.{build}.{revision}", line(runtime.sku)))
}

/// What a line of runtimes is called.
pub(super) fn line(sku: Sku) -> &'static str {
    match sku {
        Sku::Desktop => ".NET Framework",
        Sku::CoreClr => ".NET",
        Sku::Mono => "Mono",
        Sku::Unknown => "runtime",
    }
}

/// `test.exe (1980), .NET Framework 4.0.30319.0`.
pub(super) fn title(process: &str, pid: u32, clr: Option<&str>) -> String {
    match clr {
        Some(clr) => format!("{process} ({pid}), {clr}"),
        None => format!("{process} ({pid})"),
    }
}

/// A value as text; what is unknown is a dash.
pub(super) fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), text)
}

/// Nanoseconds as milliseconds: `1,856.2`.
pub(super) fn ms(nanoseconds: i64) -> String {
    super::text::milliseconds(nanoseconds / 100)
}

/// Nanoseconds as milliseconds, for what is short: `0.123`.
pub(super) fn fine_ms(nanoseconds: i64) -> String {
    format!("{:.3}", nanoseconds as f64 / 1e6)
}
