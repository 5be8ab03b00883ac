//! The counters as Windows names them, and their values between two moments.

use std::sync::Arc;

use super::super::kind::growth;
use super::super::{CounterPath, NoValue, Reading};
use super::{BlockError, Gc, Runtime};

/// The runtimes of a process at a moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The moment, as the performance counter of the system (QPC) shows it.
    pub qpc: i64,
    /// The ticks of that counter in a second.
    pub qpc_hz: i64,
    /// The runtimes.
    pub runtimes: Vec<Runtime>,
    /// Blocks that were not believed.
    pub refused: Vec<BlockError>,
}

/// How a counter gets its value.
#[derive(Clone, Copy)]
enum Value {
    /// It stands in the block.
    Now(fn(&Runtime) -> u64),
    /// It stands in the block, as of the last collection.
    Last(fn(&Gc) -> u64),
    /// What it grew by per second.
    Rate(fn(&Runtime) -> u32),
    /// Bytes that were allocated per second.
    Allocated,
    /// The last collection's share of the time since the one before.
    TimeInGc,
    /// The share of time since the last moment.
    TimeInJit,
}

const MEMORY: &str = ".NET CLR Memory";
const JIT: &str = ".NET CLR Jit";
const EXCEPTIONS: &str = ".NET CLR Exceptions";
const LOCKS: &str = ".NET CLR LocksAndThreads";
const LOADING: &str = ".NET CLR Loading";
const INTEROP: &str = ".NET CLR Interop";
const REMOTING: &str = ".NET CLR Remoting";
const SECURITY: &str = ".NET CLR Security";

/// Object and counter as in Microsoft's "Performance Counters in .NET Framework". Those that are documented as reserved are
/// left out, and so are the rates of promoted bytes, whose values are not cumulative, and shares of time in checks, which
/// start again at each collection.
const COUNTERS: &[(&str, &str, Value)] = &[
    (
        MEMORY,
        "# Bytes in all Heaps",
        Value::Last(|gc| gc.gen1_size.saturating_add(gc.gen2_size).saturating_add(gc.large_objects)),
    ),
    (MEMORY, GEN0, Value::Last(|gc| gc.gen0_budget)),
    (MEMORY, "Gen 1 heap size", Value::Last(|gc| gc.gen1_size)),
    (MEMORY, "Gen 2 heap size", Value::Last(|gc| gc.gen2_size)),
    (MEMORY, "Large Object Heap size", Value::Last(|gc| gc.large_objects)),
    (MEMORY, "# Total committed Bytes", Value::Last(|gc| gc.committed)),
    (MEMORY, "# Total reserved Bytes", Value::Last(|gc| gc.reserved)),
    (MEMORY, "Allocated Bytes/sec", Value::Allocated),
    (MEMORY, "% Time in GC", Value::TimeInGc),
    (MEMORY, "# Gen 0 Collections", Value::Last(|gc| gc.gen0_collections)),
    (MEMORY, "# Gen 1 Collections", Value::Last(|gc| gc.gen1_collections)),
    (MEMORY, "# Gen 2 Collections", Value::Last(|gc| gc.gen2_collections)),
    (MEMORY, "# Induced GC", Value::Last(|gc| gc.induced)),
    (MEMORY, "Promoted Memory from Gen 0", Value::Last(|gc| gc.gen0_promoted)),
    (MEMORY, "Promoted Memory from Gen 1", Value::Last(|gc| gc.gen1_promoted)),
    (MEMORY, "Promoted Finalization-Memory from Gen 0", Value::Last(|gc| gc.promoted_by_finalization)),
    (MEMORY, "Finalization Survivors", Value::Last(|gc| gc.finalization_survivors)),
    (MEMORY, "# of Pinned Objects", Value::Last(|gc| gc.pinned)),
    (MEMORY, "# of Sink Blocks in use", Value::Last(|gc| gc.sink_blocks)),
    (MEMORY, "# GC Handles", Value::Last(|gc| gc.handles)),
    (JIT, "% Time in Jit", Value::TimeInJit),
    (JIT, "# of Methods Jitted", Value::Now(|of| of.jit.methods.into())),
    (JIT, "# of IL Bytes Jitted", Value::Now(|of| of.jit.il_bytes.into())),
    (JIT, "Total # of IL Bytes Jitted", Value::Now(|of| of.jit.il_bytes_total.into())),
    (JIT, "IL Bytes Jitted / sec", Value::Rate(|of| of.jit.il_bytes_total)),
    (JIT, "Standard Jit Failures", Value::Now(|of| of.jit.failures.into())),
    (EXCEPTIONS, "# of Exceps Thrown", Value::Now(|of| of.exceptions.thrown.into())),
    (EXCEPTIONS, "# of Exceps Thrown / sec", Value::Rate(|of| of.exceptions.thrown)),
    (EXCEPTIONS, "# of Filters / sec", Value::Rate(|of| of.exceptions.filters)),
    (EXCEPTIONS, "# of Finallys / sec", Value::Rate(|of| of.exceptions.finallys)),
    (EXCEPTIONS, "Throw To Catch Depth / sec", Value::Rate(|of| of.exceptions.throw_to_catch_depth)),
    (LOCKS, "Total # of Contentions", Value::Now(|of| of.locks.contentions.into())),
    (LOCKS, "Contention Rate / sec", Value::Rate(|of| of.locks.contentions)),
    (LOCKS, "Current Queue Length", Value::Now(|of| of.locks.queue.into())),
    (LOCKS, "Queue Length Peak", Value::Now(|of| of.locks.queue_total.into())),
    (LOCKS, "Queue Length / sec", Value::Rate(|of| of.locks.queue_total)),
    (LOCKS, "# of current logical Threads", Value::Now(|of| of.locks.logical.into())),
    (LOCKS, "# of current physical Threads", Value::Now(|of| of.locks.physical.into())),
    (LOCKS, "# of current recognized threads", Value::Now(|of| of.locks.recognized.into())),
    (LOCKS, "# of total recognized threads", Value::Now(|of| of.locks.recognized_total.into())),
    (LOCKS, "rate of recognized threads / sec", Value::Rate(|of| of.locks.recognized_total)),
    (LOADING, "Current Classes Loaded", Value::Now(|of| of.loading.classes.into())),
    (LOADING, "Total Classes Loaded", Value::Now(|of| of.loading.classes_total.into())),
    (LOADING, "Rate of Classes Loaded", Value::Rate(|of| of.loading.classes_total)),
    (LOADING, "Current appdomains", Value::Now(|of| of.loading.app_domains.into())),
    (LOADING, "Total Appdomains", Value::Now(|of| of.loading.app_domains_total.into())),
    (LOADING, "Rate of appdomains", Value::Rate(|of| of.loading.app_domains_total)),
    (LOADING, "Total appdomains unloaded", Value::Now(|of| of.loading.app_domains_unloaded.into())),
    (LOADING, "Rate of appdomains unloaded", Value::Rate(|of| of.loading.app_domains_unloaded)),
    (LOADING, "Current Assemblies", Value::Now(|of| of.loading.assemblies.into())),
    (LOADING, "Total Assemblies", Value::Now(|of| of.loading.assemblies_total.into())),
    (LOADING, "Rate of Assemblies", Value::Rate(|of| of.loading.assemblies_total)),
    (LOADING, "Bytes in Loader Heap", Value::Now(|of| of.loading.loader_heap)),
    (LOADING, "Total # of Load Failures", Value::Now(|of| of.loading.failures.into())),
    (LOADING, "Rate of Load Failures", Value::Rate(|of| of.loading.failures)),
    (INTEROP, "# of CCWs", Value::Now(|of| of.interop.ccws.into())),
    (INTEROP, "# of Stubs", Value::Now(|of| of.interop.stubs.into())),
    (INTEROP, "# of marshalling", Value::Now(|of| of.interop.marshalling.into())),
    (REMOTING, "Total Remote Calls", Value::Now(|of| of.remoting.remote_calls.into())),
    (REMOTING, "Remote Calls/sec", Value::Rate(|of| of.remoting.remote_calls)),
    (REMOTING, "Channels", Value::Now(|of| of.remoting.channels.into())),
    (REMOTING, "Context Proxies", Value::Now(|of| of.remoting.proxies.into())),
    (REMOTING, "Context-Bound Classes Loaded", Value::Now(|of| of.remoting.classes.into())),
    (REMOTING, "Context-Bound Objects Alloc / sec", Value::Rate(|of| of.remoting.objects)),
    (REMOTING, "Contexts", Value::Now(|of| of.remoting.contexts.into())),
    (SECURITY, "Total Runtime Checks", Value::Now(|of| of.security.runtime_checks.into())),
    (SECURITY, "# Link Time Checks", Value::Now(|of| of.security.link_checks.into())),
    (SECURITY, "Stack Walk Depth", Value::Now(|of| of.security.stack_depth.into())),
];

/// Windows calls it a size. What it is stands behind, and need not be typed.
const GEN0: &str = "Gen 0 heap size (allocation budget)";

/// The counters that say most, as object and counter.
pub const USUAL: &[(&str, &str)] = &[
    (MEMORY, "# Bytes in all Heaps"),
    (MEMORY, GEN0),
    (MEMORY, "Gen 1 heap size"),
    (MEMORY, "Gen 2 heap size"),
    (MEMORY, "Large Object Heap size"),
    (MEMORY, "Allocated Bytes/sec"),
    (MEMORY, "% Time in GC"),
    (MEMORY, "# Gen 0 Collections"),
    (MEMORY, "# Gen 1 Collections"),
    (MEMORY, "# Gen 2 Collections"),
    (JIT, "% Time in Jit"),
    (JIT, "# of Methods Jitted"),
    (EXCEPTIONS, "# of Exceps Thrown / sec"),
    (LOCKS, "Contention Rate / sec"),
    (LOCKS, "Current Queue Length"),
    (LOCKS, "# of current logical Threads"),
    (LOADING, "Current Assemblies"),
];

/// Every counter as object and counter, in the order in which they are read.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    COUNTERS.iter().map(|(object, counter, _)| (*object, *counter))
}

/// True for an object that .NET Framework has, whether or not it has counters here.
pub fn is_object(name: &str) -> bool {
    name.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(".NET CLR "))
}

/// The values of the counters that `paths` choose, in the order of the paths, then of the runtimes. `old` is the moment
/// before: without it, rates have no value.
///
/// An instance is what perfmon makes of it, the process without `.exe`, and a path without one takes all. Where a process has
/// several runtimes, `_v4` and `_v2` stand behind.
pub fn readings(old: Option<&Sample>, new: &Sample, process: &str, paths: &[CounterPath]) -> Vec<Reading> {
    let instances = instances(process, &new.runtimes);
    let mut found = Vec::new();
    for path in paths {
        for (runtime, instance) in new.runtimes.iter().zip(&instances) {
            if path.instance.is_some() && !path.wants(Some(instance)) {
                continue;
            }
            let was = match old {
                None => Err(NoValue::One),
                Some(old) => match old.runtimes.iter().find(|was| was.id == runtime.id) {
                    None => Err(NoValue::New),
                    Some(was) => Ok((old, was)),
                },
            };
            for (object, counter, value) in COUNTERS {
                if path.object.eq_ignore_ascii_case(object) && is_wanted(&path.counter, counter) {
                    found.push(Reading {
                        object: Arc::from(*object),
                        instance: Some(instance.clone()),
                        counter: Arc::from(*counter),
                        unit: unit(*value).into(),
                        is_hex: false,
                        value: calculate(*value, was, new, runtime),
                    });
                }
            }
        }
    }
    found
}

fn is_wanted(pattern: &str, counter: &str) -> bool {
    let is = |name: &str| pattern.eq_ignore_ascii_case(name);
    pattern == "*" || is(counter) || counter.split_once(" (").is_some_and(|(name, _)| is(name))
}

fn unit(value: Value) -> &'static str {
    match value {
        Value::Now(_) | Value::Last(_) => "",
        Value::Rate(_) | Value::Allocated => "/s",
        Value::TimeInGc | Value::TimeInJit => "%",
    }
}

/// What the instances of a process are called; those of one name have numbers from the second on.
fn instances(process: &str, runtimes: &[Runtime]) -> Vec<Arc<str>> {
    let start = process.len().saturating_sub(4);
    let name = match process.get(start..) {
        Some(end) if end.eq_ignore_ascii_case(".exe") => process.get(..start).unwrap_or(process),
        _ => process,
    };
    if runtimes.len() == 1 {
        return vec![name.into()];
    }
    let mut newer = 0;
    let of = |runtime: &Runtime| match runtime.id {
        None => format!("{name}_v2").into(),
        Some(_) => {
            newer += 1;
            if newer == 1 { format!("{name}_v4").into() } else { format!("{name}_v4#{}", newer - 1).into() }
        }
    };
    runtimes.iter().map(of).collect()
}

type Was<'a> = Result<(&'a Sample, &'a Runtime), NoValue>;

fn calculate(value: Value, was: Was<'_>, new: &Sample, runtime: &Runtime) -> Result<f64, NoValue> {
    let gc = runtime.gc.as_ref().ok_or(NoValue::NoCollection);
    let ticks = |old: &Sample| {
        let passed = i128::from(new.qpc) - i128::from(old.qpc);
        if passed > 0 { Ok(passed) } else { Err(NoValue::Time) }
    };
    let per_second = |grown: f64, old: &Sample| match (ticks(old)?, new.qpc_hz) {
        (ticks, hz) if hz > 0 => Ok(grown / (ticks as f64 / hz as f64)),
        _ => Err(NoValue::Time),
    };
    match value {
        Value::Now(of) => Ok(of(runtime) as f64),
        Value::Last(of) => gc.map(|gc| of(gc) as f64),
        Value::Rate(of) => {
            let (old, was) = was?;
            let grown = growth((of(runtime).into(), 4), (of(was).into(), 4))?;
            per_second(grown, old)
        }
        Value::Allocated => {
            let gc = gc?;
            let (old, was) = was?;
            // What the first collection finds was allocated since the program began.
            let before = was.gc.as_ref().ok_or(NoValue::New)?;
            // It steps when a collection begins, and nothing is known of the time since.
            if gc.allocated == before.allocated {
                return Err(NoValue::NoCollectionSince);
            }
            let size = runtime.pointer.bytes() as u32;
            per_second(growth((gc.allocated, size), (before.allocated, size))?, old)
        }
        Value::TimeInGc => match gc? {
            Gc { time_base: 0, .. } => Err(NoValue::Nothing),
            // The two are not written at once.
            gc => Ok((100.0 * f64::from(gc.time) / f64::from(gc.time_base)).min(100.0)),
        },
        Value::TimeInJit => {
            let (old, was) = was?;
            let ticks = ticks(old)?;
            if ticks > i128::from(u32::MAX) {
                return Err(NoValue::TooLong);
            }
            let grown = runtime.jit.time.wrapping_sub(was.jit.time);
            Ok(100.0 * f64::from(grown) / ticks as f64)
        }
    }
}
