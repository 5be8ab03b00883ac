//! Compilations at run time of each runtime: how many, how well, how long, and which took longest.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::events::clr::MethodFlags;
use crate::profile::Tier;
use crate::trace::{Compilation, Spans, Trace};

use super::console::{DIM, HEAD};
use super::grid::{Csv, Grid};
use super::runtimes::{Key, PerRuntime, clr, fine_ms, ms, or_dash, process, title};
use super::text::{bytes, cell, count, json, one_line};

/// The compilations of a recording. Fields are only ever added; `null` is what the recording does not say.
#[derive(Clone, Debug, Serialize)]
pub struct Jit {
    /// The runtimes, those that compiled longest first.
    pub runtimes: Vec<Runtime>,
}

/// A runtime, and what it compiled.
#[derive(Clone, Debug, Serialize)]
pub struct Runtime {
    /// The id of its process.
    pub pid: u32,
    /// The executable of its process. It comes from a file, and may hold anything.
    pub process: String,
    /// Its line and version.
    pub clr: Option<String>,
    /// Methods that were compiled: once for each time.
    pub methods: u64,
    /// Compilations that began, and have no code in the recording.
    pub unfinished: u64,
    /// How long its threads compiled, in ns. A method that is compiled while another is being compiled counts once.
    pub jit_ns: Option<i64>,
    /// CPU time of these threads while they compiled, by samples, in ns.
    pub cpu_in_jit_ns: Option<i64>,
    /// Bytes of IL, of the compilations with a size of it.
    pub il_bytes: Option<u64>,
    /// Bytes of code.
    pub native_bytes: u64,
    /// Compilations by how they were made: `tier0`, `tier1`, `optimized`, ..., or `unknown`.
    pub by_tier: BTreeMap<String, u64>,
    /// Compilations of methods whose precompiled code the runtime turned down.
    pub rejected: u64,
    /// The compilations that took longest, the longest first.
    pub slowest: Vec<Row>,
}

/// A compilation.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The method with its type. It comes from a file, and may hold anything.
    pub name: Option<String>,
    /// From its begin to its code, with all that was compiled in between, in ns.
    pub jit_ns: Option<i64>,
    /// The size of its IL in bytes.
    pub il_size: Option<u32>,
    /// The size of its code in bytes.
    pub native_size: Option<u32>,
    /// How it was compiled.
    pub tier: Option<Tier>,
    /// True if its image has code for it, which the runtime turned down.
    pub rejected: bool,
    /// The id of the thread that compiled.
    pub tid: u32,
    /// When it began, in ns since the first record.
    pub start_ns: Option<i64>,
}

impl Jit {
    /// Those of the processes that are `wanted`, by their ids ([`Filter::processes`](crate::profile::Filter::processes)).
    pub fn new(trace: &Trace, wanted: &[bool]) -> Jit {
        let mut found = PerRuntime::<Vec<&Compilation>>::new(wanted);
        for one in &trace.managed.compilations {
            if let Some(found) = found.get(one.process, one.instance) {
                found.push(one);
            }
        }
        let runtimes = found.all.into_iter().map(|(key, all)| Runtime::new(trace, key, &all));
        let mut runtimes: Vec<Runtime> = runtimes.collect();
        runtimes.sort_by_key(|runtime| (Reverse(runtime.jit_ns), Reverse(runtime.methods), runtime.pid));
        Jit { runtimes }
    }

    /// The same with so many methods of each runtime at most.
    #[must_use]
    pub fn first(mut self, most: usize) -> Jit {
        self.runtimes.iter_mut().for_each(|runtime| runtime.slowest.truncate(most));
        self
    }
}

impl Runtime {
    fn new(trace: &Trace, key: Key, all: &[&Compilation]) -> Runtime {
        let (pid, process) = process(trace, key.0);
        let ready = || all.iter().filter(|one| one.end.is_some());
        let times = times(all);
        let jit_ns = (!times.is_empty()).then(|| {
            let ticks = times.values().map(Spans::ticks).fold(0, i64::saturating_add);
            trace.clock.nanoseconds_in(ticks)
        });
        let il = || ready().filter_map(|one| Some(u64::from(one.il_size?)));
        let mut by_tier = BTreeMap::new();
        for one in ready() {
            *by_tier.entry(word(tier(one))).or_default() += 1;
        }
        let mut slowest: Vec<Row> = all.iter().map(|one| Row::new(trace, one)).collect();
        slowest.sort_by_key(|row| (Reverse(row.jit_ns), row.start_ns));
        Runtime {
            pid,
            process,
            clr: clr(trace, key),
            methods: ready().count() as u64,
            unfinished: all.len() as u64 - ready().count() as u64,
            jit_ns,
            cpu_in_jit_ns: jit_ns.filter(|_| trace.sample_count() > 0).map(|_| cpu(trace, key, &times)),
            il_bytes: il().next().map(|_| il().sum()),
            native_bytes: ready().filter_map(|one| Some(u64::from(one.native_size?))).sum(),
            by_tier,
            rejected: ready().filter(|one| is_rejected(one)).count() as u64,
            slowest,
        }
    }

    fn title(&self) -> String {
        title(&self.process, self.pid, self.clr.as_deref())
    }

    /// `tier0 534, unknown 4,875`.
    fn tiers(&self) -> String {
        let tiers = self.by_tier.iter().filter(|(tier, _)| *tier != "unknown" || self.by_tier.len() > 1);
        let tiers = tiers.map(|(tier, methods)| format!("{} {}", tier.replace('_', " "), count(*methods)));
        let rejected =
            (self.rejected > 0).then(|| format!("{} precompiled but rejected", count(self.rejected)));
        tiers.chain(rejected).collect::<Vec<_>>().join(", ")
    }
}

/// When each thread compiled.
fn times(all: &[&Compilation]) -> FxHashMap<u32, Spans> {
    let mut times: FxHashMap<u32, Vec<_>> = FxHashMap::default();
    for one in all {
        if let Some(span) = one.start.zip(one.end) {
            times.entry(one.tid).or_default().push(span);
        }
    }
    times.into_iter().map(|(tid, spans)| (tid, Spans::new(spans))).collect()
}

/// The CPU time of samples of threads that compiled then, in ns.
fn cpu(trace: &Trace, (process, _): Key, times: &FxHashMap<u32, Spans>) -> i64 {
    let is_inside = |sample: &&crate::trace::Sample| {
        let runner = trace.runner(sample.runner);
        runner.process == process && times.get(&runner.tid).is_some_and(|times| times.contains(sample.time))
    };
    let inside = trace.samples.iter().filter(is_inside);
    inside.fold(0, |sum: i64, sample| sum.saturating_add(i64::from(sample.weight))).saturating_mul(100)
}

fn is_rejected(one: &Compilation) -> bool {
    one.flags.is_some_and(MethodFlags::is_rejected)
}

fn tier(one: &Compilation) -> Option<Tier> {
    one.flags.and_then(|flags| Tier::of(flags, false))
}

/// A tier as JSON has it.
fn word(tier: Option<Tier>) -> String {
    let word = tier.and_then(|tier| serde_json::to_value(tier).ok());
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned())
}

impl Row {
    fn new(trace: &Trace, one: &Compilation) -> Row {
        let clock = &trace.clock;
        let text = |name: u32| trace.managed.method_names.get(name as usize).map_or("", String::as_str);
        let name = one.name.map(|(of_type, name)| match (text(of_type), text(name)) {
            ("", name) => name.to_owned(),
            (of_type, name) => format!("{of_type}.{name}"),
        });
        Row {
            name,
            jit_ns: one.ticks().map(|ticks| clock.nanoseconds_in(ticks)),
            il_size: one.il_size,
            native_size: one.native_size,
            tier: tier(one),
            rejected: is_rejected(one),
            tid: one.tid,
            start_ns: one.start.map(|start| clock.nanoseconds(start)),
        }
    }
}

/// Writes the tables: all runtimes, and the slowest methods of each. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, jit: &Jit, all: &Jit, width: Option<usize>) -> io::Result<()> {
    let heads = ["methods", "JIT ms", "CPU ms", "IL", "code"];
    let mut grid = Grid::new(heads, "process").cut_at_the_end();
    for runtime in &jit.runtimes {
        let tiers = runtime.tiers();
        let title = runtime.title();
        grid.row(
            [
                count(runtime.methods),
                or_dash(runtime.jit_ns, ms),
                or_dash(runtime.cpu_in_jit_ns, ms),
                or_dash(runtime.il_bytes, bytes),
                bytes(runtime.native_bytes),
            ],
            0,
            if tiers.is_empty() { title } else { format!("{title}: {tiers}") },
        );
    }
    grid.write(out, width)?;
    for (runtime, all) in jit.runtimes.iter().zip(&all.runtimes) {
        slowest(out, runtime, all.slowest.len(), width)?;
    }
    Ok(())
}

fn slowest(out: &mut impl Write, runtime: &Runtime, of: usize, width: Option<usize>) -> io::Result<()> {
    if runtime.slowest.is_empty() {
        return Ok(());
    }
    let which = match runtime.slowest.len() {
        shown if shown >= of => String::new(),
        1 => format!(", the slowest of {} methods", count(of as u64)),
        shown => format!(", the {} slowest of {} methods", count(shown as u64), count(of as u64)),
    };
    let title = one_line(&runtime.title()).into_owned();
    writeln!(out, "\n{HEAD}{title}{HEAD:#}{DIM}{which}{DIM:#}")?;
    let mut grid = Grid::new(["JIT ms", "IL bytes", "code bytes", "tier"], "method");
    for row in &runtime.slowest {
        grid.row(
            [
                or_dash(row.jit_ns, fine_ms),
                or_dash(row.il_size, |size| count(size.into())),
                or_dash(row.native_size, |size| count(size.into())),
                match (row.tier, row.rejected) {
                    (Some(tier), true) => format!("{}, rejected", tier.text()),
                    (tier, _) => or_dash(tier, |tier| tier.text().to_owned()),
                },
            ],
            row.jit_ns.unwrap_or(0),
            row.name.as_deref().unwrap_or("unknown"),
        );
    }
    grid.write(out, width)
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, jit: &Jit) -> io::Result<()> {
    json(out, jit)
}

/// Writes the methods as CSV, with a head.
pub fn write_csv(out: &mut impl Write, jit: &Jit) -> io::Result<()> {
    const HEAD: [&str; 10] =
        ["pid", "process", "name", "jit_ns", "il_size", "native_size", "tier", "tid", "start_ns", "rejected"];
    let mut csv = Csv::new(out, &HEAD)?;
    for runtime in &jit.runtimes {
        for row in &runtime.slowest {
            csv.row(&(
                runtime.pid,
                cell(&runtime.process),
                row.name.as_deref().map(cell),
                row.jit_ns,
                row.il_size,
                row.native_size,
                row.tier,
                row.tid,
                row.start_ns,
                row.rejected,
            ))?;
        }
    }
    csv.finish()
}
