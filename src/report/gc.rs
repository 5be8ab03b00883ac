//! Garbage collections of each runtime: how many, why, and how long its program stood still for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::event::Ticks;
use crate::events::clr::{GcKind, GcReason, HeapStats};
use crate::trace::{Collection, Pause, ProcessId, Spans, Trace};

use super::console::{DIM, HEAD};
use super::grid::{Csv, Grid};
use super::runtimes::{Key, PerRuntime, clr, fine_ms, ms, or_dash, process, title};
use super::text::{bytes, cell, count, json, one_line};

/// The collections of a recording. Fields are only ever added; `null` is what the recording does not say.
#[derive(Clone, Debug, Serialize)]
pub struct Gc {
    /// The runtimes, those that stood still longest first.
    pub runtimes: Vec<Runtime>,
}

/// A runtime, and what it collected.
#[derive(Clone, Debug, Serialize)]
pub struct Runtime {
    /// The id of its process.
    pub pid: u32,
    /// The executable of its process. It comes from a file, and may hold anything.
    pub process: String,
    /// Its line and version.
    pub clr: Option<String>,
    /// Collections.
    pub gcs: u64,
    /// Collections by the oldest generation that each collected: `0`, `1`, `2`, or `unknown`.
    pub generations: BTreeMap<String, u64>,
    /// Collections by why they began: see [`Row::reason`].
    pub reasons: BTreeMap<&'static str, u64>,
    /// How often the threads of the program were stopped for a collection.
    pub pauses: Option<u64>,
    /// How long these took together, in ns; those without an end in the recording count for nothing.
    pub pause_ns: Option<i64>,
    /// The longest of them, in ns.
    pub longest_ns: Option<i64>,
    /// How long of them it took to stop the threads, in ns.
    pub suspend_ns: Option<i64>,
    /// The pauses, in percent of the time of the process in the recording.
    pub paused_percent: Option<f64>,
    /// Bytes that the program allocated, exact to about 100 KB.
    pub allocated_bytes: Option<u64>,
    /// CPU time of the process in these pauses, by samples, in ns.
    pub cpu_in_pauses_ns: Option<i64>,
    /// What was allocated by type, most first.
    pub allocated_types: Vec<TypeRow>,
    /// The collections in the order in which they began.
    pub collections: Vec<Row>,
}

/// What was allocated of a type.
#[derive(Clone, Debug, Serialize)]
pub struct TypeRow {
    /// The full name. It comes from a file, and may hold anything.
    pub name: Option<String>,
    /// Bytes: those between two events are taken to be of the type that the second names.
    pub bytes: u64,
    /// The events.
    pub ticks: u64,
}

/// A collection.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its number in its runtime.
    pub number: u32,
    /// The oldest generation that it collected.
    pub generation: Option<u32>,
    /// Why it began: `small_objects`, `large_objects`, `induced`, `induced_not_forced`, `low_memory`, `empty`,
    /// `out_of_space_small`, `out_of_space_large` or `other`.
    pub reason: &'static str,
    /// `blocking`, `background`, `foreground` or `other`.
    pub kind: Option<&'static str>,
    /// When it began, in ns since the first record.
    pub start_ns: i64,
    /// From its begin to its end, in ns.
    pub duration_ns: Option<i64>,
    /// How long the program stood still for it, in ns. Of several collections in one pause the first has it.
    pub pause_ns: Option<i64>,
    /// What the heap held after it.
    pub heap: Option<HeapRow>,
}

/// What a heap held after a collection, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeapRow {
    /// All of it.
    pub total_bytes: u64,
    /// Generation 0.
    pub gen0_bytes: u64,
    /// Generation 1.
    pub gen1_bytes: u64,
    /// Generation 2.
    pub gen2_bytes: u64,
    /// Large objects.
    pub large_bytes: u64,
    /// Pinned objects, where the runtime has a heap for them.
    pub pinned_bytes: Option<u64>,
    /// What survived the collection.
    pub promoted_bytes: u64,
    /// Objects that were pinned.
    pub pinned_objects: u32,
    /// Handles.
    pub handles: u32,
}

impl From<HeapStats> for HeapRow {
    fn from(heap: HeapStats) -> HeapRow {
        let [gen0_bytes, gen1_bytes, gen2_bytes, large_bytes] = heap.sizes;
        let sum = |parts: [u64; 4], more: u64| parts.into_iter().fold(more, u64::saturating_add);
        let (_, pinned_promoted) = heap.pinned_heap.unwrap_or_default();
        HeapRow {
            total_bytes: heap.bytes(),
            gen0_bytes,
            gen1_bytes,
            gen2_bytes,
            large_bytes,
            pinned_bytes: heap.pinned_heap.map(|(size, _)| size),
            promoted_bytes: sum(heap.promoted, pinned_promoted),
            pinned_objects: heap.pinned_objects,
            handles: heap.handles,
        }
    }
}

fn reason(reason: GcReason) -> &'static str {
    match reason {
        GcReason::AllocSmall => "small_objects",
        GcReason::Induced => "induced",
        GcReason::LowMemory => "low_memory",
        GcReason::Empty => "empty",
        GcReason::AllocLarge => "large_objects",
        GcReason::OutOfSpaceSmall => "out_of_space_small",
        GcReason::OutOfSpaceLarge => "out_of_space_large",
        GcReason::InducedNotForced => "induced_not_forced",
        GcReason::Other(_) => "other",
    }
}

/// What the trace has of a runtime.
#[derive(Default)]
struct Found<'t> {
    collections: Vec<&'t Collection>,
    pauses: Vec<&'t Pause>,
    /// It reports suspensions, whatever for.
    suspends: bool,
    types: Vec<TypeRow>,
}

impl Gc {
    /// Those of the processes that are `wanted`, by their ids ([`Filter::processes`](crate::profile::Filter::processes)).
    pub fn new(trace: &Trace, wanted: &[bool]) -> Gc {
        let managed = &trace.managed;
        let mut found = PerRuntime::<Found<'_>>::new(wanted);
        for gc in &managed.collections {
            if let Some(found) = found.get(gc.process, gc.instance) {
                found.collections.push(gc);
            }
        }
        for pause in &managed.pauses {
            if let Some(found) = found.get(pause.process, pause.instance) {
                found.suspends = true;
                found.pauses.extend(pause.is_for_gc.then_some(pause));
            }
        }
        for one in &managed.allocated {
            let name = one.type_name.and_then(|name| managed.allocated_types.get(name as usize)).cloned();
            if let Some(found) = found.get(one.process, one.instance) {
                found.types.push(TypeRow { name, bytes: one.bytes, ticks: one.ticks });
            }
        }
        let mut all = found.all;
        all.retain(|_, found| {
            !(found.collections.is_empty() && found.pauses.is_empty() && found.types.is_empty())
        });
        let cpu = cpu(trace, &all);
        let runtime = |(key, found)| Runtime::new(trace, key, found, cpu.get(&key).copied());
        let mut runtimes: Vec<Runtime> = all.into_iter().map(runtime).collect();
        runtimes.sort_by_key(|runtime| (Reverse(runtime.pause_ns), Reverse(runtime.gcs), runtime.pid));
        Gc { runtimes }
    }

    /// The same with so many collections and types of each runtime at most: those with the longest pauses, and those that
    /// most was allocated of.
    #[must_use]
    pub fn first(mut self, most: usize) -> Gc {
        for runtime in &mut self.runtimes {
            if runtime.collections.len() > most {
                runtime.collections.sort_by_key(|row| (Reverse(row.cost()), row.start_ns));
                runtime.collections.truncate(most);
                runtime.collections.sort_by_key(|row| row.start_ns);
            }
            runtime.allocated_types.truncate(most);
        }
        self
    }
}

/// The CPU time of samples in the pauses of each runtime that reports them, in ns; nothing in a recording without samples.
fn cpu(trace: &Trace, all: &BTreeMap<Key, Found<'_>>) -> FxHashMap<Key, i64> {
    let mut cpu = FxHashMap::default();
    if trace.sample_count() == 0 {
        return cpu;
    }
    for (key, found) in all.iter().filter(|(_, found)| found.suspends) {
        let pauses = found.pauses.iter().filter_map(|pause| Some((pause.start, pause.end?)));
        let pauses = Spans::new(pauses);
        let inside = trace.samples.iter().filter(|sample| pauses.contains(sample.time));
        let inside = inside.filter(|sample| trace.runner(sample.runner).process == key.0);
        let sum = inside.fold(0, |sum: i64, sample| sum.saturating_add(i64::from(sample.weight)));
        cpu.insert(*key, sum.saturating_mul(100));
    }
    cpu
}

/// How long a process lived in the recording, in ns.
fn life(trace: &Trace, process: ProcessId) -> i64 {
    let Some((first, last)) = trace.span else { return 0 };
    let life = trace.process(process).map(|process| process.life);
    let start = life.and_then(|life| life.start).unwrap_or(first).max(first);
    let end = life.and_then(|life| life.end).unwrap_or(last).min(last);
    trace.clock.nanoseconds_in(end.0.saturating_sub(start.0)).max(0)
}

impl Runtime {
    fn new(trace: &Trace, key: Key, found: Found<'_>, cpu_in_pauses_ns: Option<i64>) -> Runtime {
        let clock = &trace.clock;
        let (pid, process) = process(trace, key.0);
        let Found { collections, pauses, suspends, mut types } = found;
        let (mut generations, mut reasons) = (BTreeMap::new(), BTreeMap::new());
        for gc in &collections {
            let generation = gc.generation.map_or("unknown".to_owned(), |number| number.to_string());
            *generations.entry(generation).or_default() += 1;
            *reasons.entry(reason(gc.reason)).or_default() += 1;
        }
        let lengths = || pauses.iter().filter_map(|pause| Some(clock.nanoseconds_in(pause.ticks()?).max(0)));
        let of_each = pauses_of(&collections, &pauses);
        let stops = || {
            let ended = pauses.iter().filter(|pause| pause.end.is_some());
            ended.filter_map(|pause| Some(clock.nanoseconds_in(pause.suspend_ticks()?).max(0)))
        };
        let pause_ns = suspends.then(|| lengths().fold(0, i64::saturating_add));
        let life = life(trace, key.0);
        let percent = |pause: i64| (life > 0).then(|| 100.0 * pause as f64 / life as f64);
        let row = |(gc, pause): (&&Collection, Option<i64>)| Row {
            number: gc.number,
            generation: gc.generation,
            reason: reason(gc.reason),
            kind: gc.kind.map(GcKind::text),
            start_ns: clock.nanoseconds(gc.start),
            duration_ns: gc.end.map(|end| clock.nanoseconds_in(end.0.saturating_sub(gc.start.0))),
            pause_ns: pause.map(|ticks| clock.nanoseconds_in(ticks)),
            heap: gc.heap.map(HeapRow::from),
        };
        types.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Runtime {
            pid,
            process,
            clr: clr(trace, key),
            gcs: collections.len() as u64,
            generations,
            reasons,
            pauses: suspends.then_some(pauses.len() as u64),
            pause_ns,
            longest_ns: lengths().max(),
            suspend_ns: stops().next().map(|_| stops().fold(0, i64::saturating_add)),
            paused_percent: pause_ns.and_then(percent),
            allocated_bytes: (!types.is_empty())
                .then(|| types.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes))),
            cpu_in_pauses_ns,
            allocated_types: types,
            collections: collections.iter().zip(of_each).map(row).collect(),
        }
    }

    fn of_generation(&self, generation: &str) -> String {
        count(self.generations.get(generation).copied().unwrap_or(0))
    }

    /// `paused for 1.8% of its time; of 130.8 ms, 10.4 ms passed until its threads stood still`.
    fn paused(&self) -> Option<String> {
        let (pause, percent) = (self.pause_ns.filter(|pause| *pause > 0)?, self.paused_percent?);
        let stops = self.suspend_ns.map(|suspend| {
            format!("; of {} ms, {} ms passed until its threads stood still", ms(pause), ms(suspend))
        });
        Some(format!("paused for {percent:.1}% of its time{}", stops.unwrap_or_default()))
    }

    fn title(&self) -> String {
        title(&self.process, self.pid, self.clr.as_deref())
    }
}

impl Row {
    /// What the program waited for it, or how long it took, where that is not known.
    fn cost(&self) -> Option<i64> {
        self.pause_ns.or(self.duration_ns)
    }
}

/// How long the program stood still for each collection, in ticks. A pause is for the first collection that begins in it;
/// if none does, for the one that goes on, in the background.
fn pauses_of(collections: &[&Collection], pauses: &[&Pause]) -> Vec<Option<i64>> {
    let mut of_each: Vec<Option<i64>> = vec![None; collections.len()];
    for pause in pauses {
        let Some((end, ticks)) = pause.end.zip(pause.ticks()) else { continue };
        let behind = collections.partition_point(|gc| gc.start < pause.start);
        let begins = collections.get(behind).is_some_and(|gc| gc.start <= end);
        let goes_on = |gc: &&&Collection| {
            gc.kind == Some(GcKind::Background) && gc.end.is_none_or(|end: Ticks| end > pause.start)
        };
        let place = match begins {
            true => Some(behind),
            // Only one runs in the background, and few begin while it does.
            false => collections
                .iter()
                .take(behind)
                .rev()
                .take(64)
                .position(|gc| goes_on(&gc))
                .map(|back| behind - 1 - back),
        };
        if let Some(of) = place.and_then(|place| of_each.get_mut(place)) {
            *of = Some(of.unwrap_or(0).saturating_add(ticks));
        }
    }
    of_each
}

/// Writes the tables: all runtimes, and the collections of each. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, gc: &Gc, all: &Gc, width: Option<usize>) -> io::Result<()> {
    let heads = ["GCs", "gen 0", "gen 1", "gen 2", "pauses", "pause ms", "longest ms", "CPU ms", "allocated"];
    let mut grid = Grid::new(heads, "process").cut_at_the_end();
    for runtime in &all.runtimes {
        grid.row(
            [
                count(runtime.gcs),
                runtime.of_generation("0"),
                runtime.of_generation("1"),
                runtime.of_generation("2"),
                or_dash(runtime.pauses, count),
                or_dash(runtime.pause_ns, ms),
                or_dash(runtime.longest_ns, ms),
                or_dash(runtime.cpu_in_pauses_ns, ms),
                or_dash(runtime.allocated_bytes, bytes),
            ],
            0,
            runtime.title(),
        );
    }
    grid.write(out, width)?;
    for (runtime, all) in gc.runtimes.iter().zip(&all.runtimes) {
        collections(out, runtime, all.collections.len(), width)?;
        types(out, runtime, all.allocated_types.len(), width)?;
    }
    Ok(())
}

fn collections(out: &mut impl Write, runtime: &Runtime, of: usize, width: Option<usize>) -> io::Result<()> {
    let rows = &runtime.collections;
    let which = match rows.len() {
        shown if shown >= of => String::new(),
        1 => format!(", the longest of {} collections", count(of as u64)),
        shown => format!(", the {} longest of {} collections", count(shown as u64), count(of as u64)),
    };
    let title = one_line(&runtime.title()).into_owned();
    writeln!(out, "\n{HEAD}{title}{HEAD:#}{DIM}{which}{DIM:#}")?;
    if let Some(paused) = runtime.paused() {
        writeln!(out, "{paused}")?;
    }
    if rows.is_empty() {
        return Ok(());
    }
    let heads = ["GC", "gen", "start s", "pause ms", "GC ms", "heap after", "survived"];
    let mut grid = Grid::new(heads, "reason").cut_at_the_end();
    for row in rows {
        let mut why = row.reason.replace('_', " ");
        if let Some(kind) = row.kind.filter(|kind| *kind != "blocking") {
            why += &format!(", {kind}");
        }
        grid.row(
            [
                row.number.to_string(),
                or_dash(row.generation, |number| number.to_string()),
                format!("{:.3}", row.start_ns as f64 / 1e9),
                or_dash(row.pause_ns, fine_ms),
                or_dash(row.duration_ns, fine_ms),
                or_dash(row.heap, |heap| bytes(heap.total_bytes)),
                or_dash(row.heap, |heap| bytes(heap.promoted_bytes)),
            ],
            0,
            why,
        );
    }
    grid.write(out, width)
}

fn types(out: &mut impl Write, runtime: &Runtime, of: usize, width: Option<usize>) -> io::Result<()> {
    let rows = &runtime.allocated_types;
    let (Some(all), false) = (runtime.allocated_bytes, rows.is_empty()) else { return Ok(()) };
    let mut grid = Grid::new(["allocated", "%"], "type");
    for row in rows {
        let share = format!("{:.1}%", 100.0 * row.bytes as f64 / all.max(1) as f64);
        let size = i64::try_from(row.bytes).unwrap_or(i64::MAX);
        grid.row([bytes(row.bytes), share], size, row.name.as_deref().unwrap_or("unknown"));
    }
    if !runtime.collections.is_empty() {
        writeln!(out)?;
    }
    grid.write(out, width)?;
    super::table::grid_rest(out, of.saturating_sub(rows.len()))
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, gc: &Gc) -> io::Result<()> {
    json(out, gc)
}

/// Writes the collections as CSV, with a head.
pub fn write_csv(out: &mut impl Write, gc: &Gc) -> io::Result<()> {
    const HEAD: [&str; 11] = [
        "pid",
        "process",
        "number",
        "generation",
        "reason",
        "kind",
        "start_ns",
        "duration_ns",
        "pause_ns",
        "heap_bytes",
        "promoted_bytes",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for runtime in &gc.runtimes {
        for row in &runtime.collections {
            csv.row(&(
                runtime.pid,
                cell(&runtime.process),
                row.number,
                row.generation,
                row.reason,
                row.kind,
                row.start_ns,
                row.duration_ns,
                row.pause_ns,
                row.heap.map(|heap| heap.total_bytes),
                row.heap.map(|heap| heap.promoted_bytes),
            ))?;
        }
    }
    csv.finish()
}
