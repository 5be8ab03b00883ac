//! Tracks of numbers: how much the heaps of each .NET runtime held after each collection.

use std::io::{self, Write};

use super::json::{Json, Milliseconds};
use super::threads::{Group, since};
use crate::event::Ticks;
use crate::trace::{Collection, ProcessId, Trace};

/// What the heaps of a runtime held.
struct Heap {
    /// The process, by its place among the groups.
    group: usize,
    instance: Option<u16>,
    /// The moment, in 100 ns since the recording's first record, and the bytes.
    levels: Vec<(i64, u64)>,
}

/// Writes the counters of the processes. `range` is the range of time that was chosen.
pub(super) fn write_counters<W: Write>(
    trace: &Trace,
    groups: &[Group<'_>],
    range: std::ops::RangeInclusive<Ticks>,
    json: &mut Json<W>,
) -> io::Result<()> {
    let heaps = heaps(trace, groups, range);
    json.array(|json| {
        heaps.iter().try_for_each(|heap| {
            let Some((before, [group, ..])) = groups.split_at_checked(heap.group) else { return Ok(()) };
            let main_thread: usize = before.iter().map(Group::thread_count).sum();
            // Two runtimes in one process are rare.
            let of_group = heaps.iter().filter(|other| other.group == heap.group).count();
            let name = match heap.instance {
                Some(instance) if of_group > 1 => format!("GC heap of runtime {instance}"),
                _ => "GC heap".to_owned(),
            };
            json.object(|json| write_counter(heap, &name, group, main_thread, json))
        })
    })
}

fn heaps(trace: &Trace, groups: &[Group<'_>], range: std::ops::RangeInclusive<Ticks>) -> Vec<Heap> {
    let mut heaps: Vec<Heap> = Vec::new();
    let place = |process: ProcessId| groups.iter().position(|group| group.id == process);
    for collection in &trace.managed.collections {
        let Collection { process, instance, start, end, heap: Some(stats), .. } = *collection else {
            continue;
        };
        let time = end.unwrap_or(start);
        let Some(group) = place(process).filter(|_| range.contains(&time)) else { continue };
        let level = (since(trace, time), stats.bytes());
        match heaps.iter_mut().find(|heap| (heap.group, heap.instance) == (group, instance)) {
            Some(heap) => heap.levels.push(level),
            None => heaps.push(Heap { group, instance, levels: vec![level] }),
        }
    }
    heaps.iter_mut().for_each(|heap| heap.levels.sort_by_key(|(time, _)| *time));
    heaps
}

fn write_counter<W: Write>(
    heap: &Heap,
    name: &str,
    group: &Group<'_>,
    main: usize,
    json: &mut Json<W>,
) -> io::Result<()> {
    json.key("name")?.text(name)?;
    json.key("category")?.text("Memory")?;
    json.key("description")?.text("Bytes in the heaps of the .NET runtime after each garbage collection")?;
    json.key("pid")?.text(group.pid())?;
    json.key("mainThreadIndex")?.plain(main)?;
    json.key("display")?.object(|json| {
        json.key("graphType")?.text("line-accumulated")?;
        json.key("unit")?.text("bytes")?;
        json.key("color")?.text("orange")?;
        json.key("markerSchemaLocation")?.text("timeline-memory")?;
        json.key("sortWeight")?.plain(20)?;
        json.key("label")?.text(name)?;
        json.key("tooltipRows")?.array(|json| {
            let rows = [("accumulated", "heap after a collection"), ("count-range", "range in the graph")];
            rows.iter().try_for_each(|(source, label)| {
                json.object(|json| {
                    json.key("type")?.text("value")?;
                    json.key("source")?.text(source)?;
                    json.key("format")?.object(|json| json.key("unit")?.text("bytes"))?;
                    json.key("label")?.text(label)
                })
            })
        })
    })?;
    json.key("samples")?.object(|json| {
        json.column("time", heap.levels.iter().map(|(time, _)| Milliseconds(*time)))?;
        // Each is the difference to the one before.
        let before = std::iter::once(0).chain(heap.levels.iter().map(|(_, bytes)| i128::from(*bytes)));
        let counts = heap.levels.iter().zip(before).map(|((_, bytes), before)| i128::from(*bytes) - before);
        json.column("count", counts)?;
        json.key("length")?.plain(heap.levels.len())
    })
}
