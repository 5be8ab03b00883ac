//! Tracks of numbers: how much the heaps of each .NET runtime held after each collection, and recorded counters.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use super::json::{Json, Milliseconds};
use super::threads::{Group, since};
use crate::event::Ticks;
use crate::trace::{Collection, CounterTrack, ProcessId, Trace};

/// Numbers over time.
struct Track {
    /// The process, by its place among the groups.
    group: usize,
    name: String,
    category: &'static str,
    description: &'static str,
    colour: &'static str,
    /// `bytes` or `number`.
    unit: &'static str,
    /// What the number of a moment is.
    label: &'static str,
    /// The moment, in 100 ns since the recording's first record, and the number.
    levels: Levels,
}

type Levels = Vec<(i64, f64)>;

/// Writes the counters of the processes. `range` is the range of time that was chosen.
pub(super) fn write_counters<W: Write>(
    trace: &Trace,
    groups: &[Group<'_>],
    range: RangeInclusive<Ticks>,
    json: &mut Json<W>,
) -> io::Result<()> {
    let mut tracks = heaps(trace, groups, &range);
    tracks.extend(trace.counters.iter().filter_map(|track| recorded(trace, track, groups, &range)));
    json.array(|json| {
        tracks.iter().try_for_each(|track| {
            let Some((before, [group, ..])) = groups.split_at_checked(track.group) else { return Ok(()) };
            let main_thread: usize = before.iter().map(Group::thread_count).sum();
            json.object(|json| write_track(track, group, main_thread, json))
        })
    })
}

fn place(groups: &[Group<'_>], process: ProcessId) -> Option<usize> {
    groups.iter().position(|group| group.id == process)
}

fn heaps(trace: &Trace, groups: &[Group<'_>], range: &RangeInclusive<Ticks>) -> Vec<Track> {
    let mut heaps: Vec<(usize, Option<u16>, Levels)> = Vec::new();
    for collection in &trace.managed.collections {
        let Collection { process, instance, start, end, heap: Some(stats), .. } = *collection else {
            continue;
        };
        let time = end.unwrap_or(start);
        let Some(group) = place(groups, process).filter(|_| range.contains(&time)) else { continue };
        let level = (since(trace, time), stats.bytes() as f64);
        match heaps.iter_mut().find(|heap| (heap.0, heap.1) == (group, instance)) {
            Some((.., levels)) => levels.push(level),
            None => heaps.push((group, instance, vec![level])),
        }
    }
    heaps.iter_mut().for_each(|(.., levels)| levels.sort_by_key(|(time, _)| *time));
    let of_group = |group| heaps.iter().filter(|(of, ..)| *of == group).count();
    let several: Vec<bool> = heaps.iter().map(|(group, ..)| of_group(*group) > 1).collect();
    let track = |((group, instance, levels), is_one_of_several)| Track {
        group,
        // Two runtimes in one process are rare.
        name: match instance {
            Some(instance) if is_one_of_several => format!("GC heap of runtime {instance}"),
            _ => "GC heap".to_owned(),
        },
        category: "Memory",
        description: "Bytes in the heaps of the .NET runtime after each garbage collection",
        colour: "orange",
        unit: "bytes",
        label: "heap after a collection",
        levels,
    };
    heaps.into_iter().zip(several).map(track).collect()
}

/// A recorded counter. That of the machine stands with the busiest process, for each belongs to one there.
fn recorded(
    trace: &Trace,
    track: &CounterTrack,
    groups: &[Group<'_>],
    range: &RangeInclusive<Ticks>,
) -> Option<Track> {
    let group = track.process.map_or(Some(0), |process| place(groups, process))?;
    let values = track.values.iter().filter(|(time, _)| range.contains(time));
    // The difference of any two is a number.
    let levels = values.map(|(time, value)| (since(trace, *time), value.clamp(-1e300, 1e300)));
    let levels: Vec<_> = levels.collect();
    let unit = if track.unit.is_empty() { String::new() } else { format!(" ({})", track.unit) };
    (!levels.is_empty()).then(|| Track {
        group,
        name: format!("{}{unit}", track.path()),
        category: "Counters",
        description: "A counter that was recorded beside the samples",
        colour: "teal",
        unit: "number",
        label: "value",
        levels,
    })
}

fn write_track<W: Write>(
    track: &Track,
    group: &Group<'_>,
    main: usize,
    json: &mut Json<W>,
) -> io::Result<()> {
    json.key("name")?.text(&track.name)?;
    json.key("category")?.text(track.category)?;
    json.key("description")?.text(track.description)?;
    json.key("pid")?.text(group.pid())?;
    json.key("mainThreadIndex")?.plain(main)?;
    json.key("display")?.object(|json| {
        json.key("graphType")?.text("line-accumulated")?;
        json.key("unit")?.text(track.unit)?;
        json.key("color")?.text(track.colour)?;
        match track.unit {
            "bytes" => json.key("markerSchemaLocation")?.text("timeline-memory")?,
            _ => json.key("markerSchemaLocation")?.plain("null")?,
        }
        json.key("sortWeight")?.plain(20)?;
        json.key("label")?.text(&track.name)?;
        json.key("tooltipRows")?.array(|json| {
            let rows = [("accumulated", track.label), ("count-range", "range in the graph")];
            rows.iter().try_for_each(|(source, label)| {
                json.object(|json| {
                    json.key("type")?.text("value")?;
                    json.key("source")?.text(source)?;
                    json.key("format")?.object(|json| json.key("unit")?.text(track.unit))?;
                    json.key("label")?.text(label)
                })
            })
        })
    })?;
    json.key("samples")?.object(|json| {
        json.column("time", track.levels.iter().map(|(time, _)| Milliseconds(*time)))?;
        // Each is the difference to the one before.
        let before = std::iter::once(0.0).chain(track.levels.iter().map(|(_, level)| *level));
        json.column("count", track.levels.iter().zip(before).map(|((_, level), before)| level - before))?;
        json.key("length")?.plain(track.levels.len())
    })
}
