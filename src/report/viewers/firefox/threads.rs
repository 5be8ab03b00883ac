//! Threads, each with its samples, under the process that it is of.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::json::{Json, Milliseconds, OrNull};
use super::markers::{Marker, write_markers};
use super::tables::Tables;
use crate::event::{NO_ID, Ticks};
use crate::profile::{End, Entry, Sample, Unit};
use crate::report::format::Picture;
use crate::trace::{Life, Process, ProcessId, RunnerId, Thread, ThreadId, Trace};

/// A process with kept samples, and its threads.
pub(super) struct Group<'p> {
    pub(super) id: ProcessId,
    pub(super) process: &'p Process,
    /// Its id; of an id that was used again, `40.2` is the second.
    pid: String,
    /// The main thread first, then those that ran most.
    threads: Vec<Row<'p>>,
    /// What its samples stand for.
    total: i64,
}

/// A thread.
struct Row<'p> {
    tid: u32,
    thread: Option<&'p Thread>,
    /// Its places in `Arranged::ends`, in order of time.
    ends: Vec<u32>,
    total: i64,
    is_main: bool,
}

impl Group<'_> {
    pub(super) fn pid(&self) -> &str {
        &self.pid
    }

    pub(super) fn thread_count(&self) -> usize {
        self.threads.len()
    }
}

/// The processes with kept samples, those that ran most first.
pub(super) fn groups<'p>(picture: &Picture<'p>) -> Vec<Group<'p>> {
    let profile = picture.profile();
    let trace: &'p Trace = &profile.trace;
    let mut by_runner: BTreeMap<RunnerId, (Vec<u32>, i64)> = BTreeMap::new();
    for (place, end) in (0..).zip(&picture.arranged.ends) {
        let Some(sample) = profile.samples.get(end.sample as usize) else { continue };
        let (ends, total) = by_runner.entry(sample.runner).or_default();
        ends.push(place);
        *total = total.saturating_add(sample.value);
    }
    let mut by_process: BTreeMap<ProcessId, Vec<(Option<ThreadId>, Row<'p>)>> = BTreeMap::new();
    for (runner, (ends, total)) in by_runner {
        let runner = trace.runner(runner);
        let thread = runner.thread.and_then(|id| trace.thread(id));
        let row = Row { tid: runner.tid, thread, ends, total, is_main: false };
        by_process.entry(runner.process).or_default().push((runner.thread, row));
    }
    let first = first_threads(trace);
    let mut of_pid: FxHashMap<u32, u32> = FxHashMap::default();
    let mut groups: Vec<Group<'p>> = Vec::new();
    for (id, mut rows) in by_process {
        let Some(process) = trace.process(id) else { continue };
        // What ran may be known by its id alone.
        let main = first.get(&id).and_then(|id| Some((*id, trace.thread(*id)?)));
        let is_main = |id: Option<ThreadId>, row: &Row<'_>| {
            main.is_some_and(|(main, thread)| id.map_or(row.tid == thread.tid, |id| id == main))
        };
        if let Some((main, thread)) = main
            && !rows.iter().any(|(id, row)| is_main(*id, row))
        {
            let row =
                Row { tid: thread.tid, thread: Some(thread), ends: Vec::new(), total: 0, is_main: false };
            rows.push((Some(main), row));
        }
        rows.sort_by_key(|(id, row)| (!is_main(*id, row), Reverse(row.total), row.tid));
        let mut threads: Vec<Row<'p>> = rows.into_iter().map(|(_, row)| row).collect();
        // There must be one, which has the name of the process.
        if let Some(main) = threads.first_mut() {
            main.is_main = true;
        }
        let of_pid = of_pid.entry(process.pid).or_default();
        *of_pid += 1;
        let pid = match (process.pid, *of_pid) {
            (NO_ID, 1) => "unknown".to_owned(),
            (NO_ID, nth) => format!("unknown.{nth}"),
            (pid, 1) => pid.to_string(),
            (pid, nth) => format!("{pid}.{nth}"),
        };
        let total = threads.iter().fold(0, |sum: i64, row| sum.saturating_add(row.total));
        groups.push(Group { id, process, pid, threads, total });
    }
    groups.sort_by_key(|group| (Reverse(group.total), group.id));
    groups
}

/// Whose threads are: ids of processes are used again, and a crafted recording may do so any number of times.
pub(super) struct Owners(FxHashMap<u32, Vec<(Option<Ticks>, ProcessId)>>);

impl Owners {
    pub(super) fn new(trace: &Trace) -> Owners {
        let mut of_pid: FxHashMap<u32, Vec<(Option<Ticks>, ProcessId)>> = FxHashMap::default();
        for (id, process) in (0..).map(ProcessId).zip(&trace.processes) {
            of_pid.entry(process.pid).or_default().push((process.life.start, id));
        }
        of_pid.values_mut().for_each(|lives| lives.sort_unstable());
        Owners(of_pid)
    }

    /// The last process with its id that began before it.
    pub(super) fn of(&self, thread: &Thread) -> Option<ProcessId> {
        let lives = self.0.get(&thread.pid)?;
        let place = lives.partition_point(|(start, _)| *start <= thread.life.start).saturating_sub(1);
        lives.get(place).map(|(_, id)| *id)
    }
}

/// The first thread of each process: a system lists threads as they were made.
fn first_threads(trace: &Trace) -> FxHashMap<ProcessId, ThreadId> {
    let owners = Owners::new(trace);
    let mut first: FxHashMap<ProcessId, (Option<Ticks>, ThreadId)> = FxHashMap::default();
    for (id, thread) in (0..).map(ThreadId).zip(&trace.threads) {
        let Some(owner) = owners.of(thread) else { continue };
        let candidate = (thread.life.start, id);
        first.entry(owner).and_modify(|known| *known = candidate.min(*known)).or_insert(candidate);
    }
    first.into_iter().map(|(process, (_, thread))| (process, thread)).collect()
}

/// The place of the thread that ran most in the list of all.
pub(super) fn busiest(groups: &[Group<'_>]) -> Option<usize> {
    let rows = groups.iter().flat_map(|group| &group.threads).enumerate();
    rows.max_by_key(|(place, row)| (row.total, Reverse(*place))).map(|(place, _)| place)
}

/// Time in 100 ns since the recording's first record.
pub(super) fn since(trace: &Trace, time: Ticks) -> i64 {
    trace.clock.filetime(time).saturating_sub(trace.clock.base_utc)
}

/// Writes the list of threads; `markers` belong to the main threads of their processes.
pub(super) fn write_threads<W: Write>(
    picture: &Picture<'_>,
    groups: &[Group<'_>],
    markers: &mut FxHashMap<ProcessId, Vec<Marker>>,
    tables: &mut Tables<'_>,
    json: &mut Json<W>,
) -> io::Result<()> {
    let trace: &Trace = &picture.profile().trace;
    json.array(|json| {
        for group in groups {
            for row in &group.threads {
                let markers = if row.is_main { markers.remove(&group.id) } else { None };
                json.object(|json| {
                    write_head(trace, picture, group, row, json)?;
                    json.key("samples")?.object(|json| write_samples(picture, &row.ends, json))?;
                    json.key("markers")?
                        .object(|json| write_markers(trace, &markers.unwrap_or_default(), tables, json))
                })?;
            }
        }
        Ok(())
    })
}

fn write_head<W: Write>(
    trace: &Trace,
    picture: &Picture<'_>,
    group: &Group<'_>,
    row: &Row<'_>,
    json: &mut Json<W>,
) -> io::Result<()> {
    let start = |life: Option<Life>| life.and_then(|life| life.start).map_or(0, |time| since(trace, time));
    let end = |life: Option<Life>| {
        OrNull(life.and_then(|life| life.end).map(|time| Milliseconds(since(trace, time))))
    };
    let (process, thread) = (Some(group.process.life), row.thread.map(|thread| thread.life));
    let name = match row.thread {
        Some(thread) if !thread.name.is_empty() => format!("thread {} {}", row.tid, thread.name),
        _ => picture.labels.text(Entry::Thread(group.id, row.tid)),
    };
    json.key("processType")?.text("default")?;
    json.key("processStartupTime")?.plain(Milliseconds(start(process)))?;
    json.key("processShutdownTime")?.plain(end(process))?;
    json.key("registerTime")?.plain(Milliseconds(start(thread.or(process))))?;
    json.key("unregisterTime")?.plain(end(thread))?;
    json.key("pausedRanges")?.array(|_| Ok(()))?;
    json.key("name")?.text(&name)?;
    json.key("isMainThread")?.plain(row.is_main)?;
    json.key("processName")?.text(group.process.label())?;
    json.key("pid")?.text(&group.pid)?;
    json.key("tid")?.plain(row.tid)
}

/// A sample counts with the CPU time that it stands for, which is also what its thread used since the sample before.
fn write_samples<W: Write>(picture: &Picture<'_>, ends: &[u32], json: &mut Json<W>) -> io::Result<()> {
    let profile = picture.profile();
    let pairs = || {
        ends.iter().filter_map(|place| {
            let end: &End = picture.arranged.ends.get(*place as usize)?;
            Some((end, profile.samples.get(end.sample as usize)?))
        })
    };
    let values = || pairs().map(|(_, sample): (_, &Sample)| sample.value);
    json.column("stack", pairs().map(|(end, _)| end.node.0))?;
    json.column("time", pairs().map(|(_, sample)| Milliseconds(since(&profile.trace, sample.time))))?;
    match profile.metric.unit {
        Unit::Time => {
            json.column("weight", values().map(Milliseconds))?;
            json.key("weightType")?.text("tracing-ms")?;
            json.column("threadCPUDelta", values().map(|value| value.saturating_mul(100)))?;
        }
        unit => {
            json.column("weight", values())?;
            json.key("weightType")?.text(if unit == Unit::Bytes { "bytes" } else { "samples" })?;
        }
    }
    json.key("length")?.plain(ends.len())
}
