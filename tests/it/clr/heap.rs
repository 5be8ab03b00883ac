//! What is left after collections, and what was allocated: against the dumps of TraceEvent, and typed by hand.

use std::collections::BTreeMap;
use std::fs;

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::events::clr::Clr;
use etwprof::events::{Decoded, decode};

use crate::support::clr::{PID, at, base, trace};
use crate::support::{data, reading};
use crate::synth::{Process, clr};

/// The dumped fields of an event, by name: numbers without their commas.
fn dumped(baseline: &str, event: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read(data::file(baseline)).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines = text.lines().filter(|line| line.contains(&format!("DotNETRuntime/{event} ")));
    let fields = |line: &str| {
        let fields = line.split(';').filter_map(|field| field.trim().split_once('='));
        fields
            .map(|(name, value)| (name.rsplit(' ').next().unwrap().to_owned(), value.replace(',', "")))
            .collect()
    };
    lines.map(fields).collect()
}

/// The first events of a kind in a recording, as `seen` shows them.
fn first<T>(file: &str, count: usize, mut seen: impl FnMut(u32, Clr<'_>) -> Option<T>) -> Vec<T> {
    let recording = Recording::open(&[data::file(file)]).unwrap();
    let mut all = Vec::new();
    recording.fold(
        analysis::processors(),
        &mut |_| {},
        || (),
        |(), event| {
            if let Ok(Decoded::Clr(clr)) = decode(event)
                && let Some(one) = seen(event.pid, clr)
            {
                all.push(one);
            }
        },
    );
    all.truncate(count);
    all
}

const FILES: [(&str, &str); 3] = [
    ("etl/perfview/PerfViewData.etl", "etl/perfview/net.4.5.x86-2016.baseline.txt"),
    ("etl/perfview/net.4.5.2.x64.etl", "etl/perfview/net.4.5.2.x64.baseline.txt"),
    ("etl/perfview/gcevents/PerfViewData.etl", "etl/perfview/gcevents.baseline.txt"),
];

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn heaps_are_those_of_the_baselines() {
    for (file, baseline) in FILES {
        let expected = dumped(baseline, "GC/HeapStats");
        assert!(expected.len() >= 2, "{baseline}");
        let seen = first(file, expected.len(), |pid, clr| match clr {
            Clr::HeapStats(stats) => Some((pid, stats)),
            _ => None,
        });
        assert_eq!(seen.len(), expected.len(), "{file}");
        for ((pid, stats), expected) in seen.into_iter().zip(expected) {
            let is = |name: &str, value: u64| assert_eq!(expected[name], value.to_string(), "{file}: {name}");
            is("PID", u64::from(pid));
            for (generation, (size, promoted)) in stats.sizes.into_iter().zip(stats.promoted).enumerate() {
                is(&format!("GenerationSize{generation}"), size);
                is(&format!("TotalPromotedSize{generation}"), promoted);
            }
            is("FinalizationPromotedSize", stats.finalization_bytes);
            is("FinalizationPromotedCount", stats.finalization_objects);
            is("PinnedObjectCount", u64::from(stats.pinned_objects));
            is("GCHandleCount", u64::from(stats.handles));
            is("ClrInstanceID", u64::from(stats.instance.unwrap()));
            if let Some((size, promoted)) = stats.pinned_heap {
                is("GenerationSize4", size);
                is("TotalPromotedSize4", promoted);
            }
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn allocations_are_those_of_the_baselines() {
    for (file, baseline) in FILES {
        let expected = dumped(baseline, "GC/AllocationTick");
        assert!(expected.len() >= 2, "{baseline}");
        let seen = first(file, expected.len(), |pid, clr| match clr {
            Clr::AllocationTick(tick) => {
                let name = tick.type_name.map(|name| name.to_string());
                Some((pid, tick.bytes, tick.kind, name.unwrap(), tick.object_size, tick.instance.unwrap()))
            }
            _ => None,
        });
        assert_eq!(seen.len(), expected.len(), "{file}");
        for ((pid, bytes, kind, name, size, instance), expected) in seen.into_iter().zip(expected) {
            assert_eq!(expected["PID"], pid.to_string());
            assert_eq!(expected["AllocationAmount64"], bytes.to_string());
            assert_eq!(expected["AllocationKind"], ["Small", "Large"][kind as usize]);
            // The dumps cut long names.
            assert!(
                name.replace(',', "").starts_with(expected["TypeName"].trim_end_matches("...")),
                "{name}"
            );
            assert_eq!(expected["ClrInstanceID"], instance.to_string());
            if let Some(size) = size {
                assert_eq!(expected["ObjectSize"], size.to_string());
            }
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn each_collection_has_its_heap_and_all_ticks_are_counted() {
    let trace = reading::file(&data::file("etl/perfview/PerfViewData.etl"));
    assert!(trace.managed.collections.iter().all(|gc| gc.heap.is_some()));
    assert_eq!(trace.managed.allocated.iter().map(|one| one.ticks).sum::<u64>(), 52_698);
    let trace = reading::file(&data::file("etl/perfview/net.4.5.2.x64.etl"));
    assert_eq!(trace.managed.collections.len(), 264);
    assert!(trace.managed.collections.iter().all(|gc| gc.heap.is_some()));
}

#[test]
fn every_version_of_a_tick_counts() {
    let mut etl = base().event(0, at(0), Process::dc_start(PID, "a.exe"));
    for version in 0..=4 {
        etl = etl.event(0, at(1 + i64::from(version)), clr::allocation_tick(PID, version, 100_000, "N.T"));
    }
    // More than 32 bits hold.
    let etl = etl.event(0, at(7), clr::allocation_tick(PID, 2, 5_000_000_000, "N.T"));
    let managed = &trace(&etl).managed;
    let all: Vec<_> = managed
        .allocated
        .iter()
        .map(|one| {
            let name = one.type_name.map(|name| managed.allocated_types[name as usize].as_str());
            (one.instance, name, one.bytes, one.ticks)
        })
        .collect();
    let expected =
        [(None, None, 100_000, 1), (Some(9), None, 100_000, 1), (Some(9), Some("N.T"), 5_000_300_000, 4)];
    assert_eq!(all, expected);
}

#[test]
fn every_version_of_heap_stats_belongs_to_the_collection_before_it() {
    let trace = trace(
        &base()
            .event(0, at(0), clr::heap_stats(PID, 2, [9, 9, 9, 9])) // of none
            .event(0, at(1), clr::gc_start(PID, 7, 2, 4, 1))
            .event(0, at(2), clr::gc_start(PID, 8, 0, 0, 2))
            .event(0, at(3), clr::gc_end(PID, 8, 0))
            .event(0, at(4), clr::heap_stats(PID, 1, [2, 4, 6, 8]))
            .event(0, at(5), clr::gc_end(PID, 7, 2))
            .event(0, at(6), clr::heap_stats(PID, 2, [10, 20, 30, 40])),
    );
    let heaps: Vec<_> = trace.managed.collections.iter().map(|gc| gc.heap.unwrap()).collect();
    assert_eq!(heaps[0].sizes, [10, 20, 30, 40]);
    assert_eq!(heaps[0].promoted, [5, 10, 15, 20]);
    assert_eq!(heaps[0].pinned_heap, Some((5_000, 2_500)));
    assert_eq!(heaps[1].sizes, [2, 4, 6, 8]);
    assert_eq!(heaps[1].pinned_heap, None);
    let rest = (heaps[0].finalization_bytes, heaps[0].finalization_objects, heaps[0].pinned_objects);
    assert_eq!((rest, heaps[0].handles), ((11, 12, 13), 15));
}

#[test]
fn an_id_that_is_used_again_is_another_process() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::gc_start(PID, 1, 0, 0, 0)) // never ends
            .event(0, at(1), clr::allocation_tick(PID, 3, 100, "A"))
            .event(0, at(2), clr::suspend(PID, 1))
            .event(0, at(3), Process::end(PID, "a.exe"))
            .event(0, at(5), Process::start(PID, "b.exe"))
            .event(0, at(6), clr::gc_start(PID, 1, 2, 1, 0))
            .event(0, at(6), clr::allocation_tick(PID, 3, 50, "A"))
            .event(0, at(7), clr::gc_end(PID, 1, 2))
            .event(0, at(8), clr::resume(PID)),
    );
    let managed = &trace.managed;
    let ends: Vec<_> = managed.collections.iter().map(|gc| (gc.process.0, gc.end.is_some())).collect();
    assert_eq!(ends.len(), 2);
    assert_ne!(ends[0].0, ends[1].0);
    assert_eq!((ends[0].1, ends[1].1), (false, true));
    assert_eq!(managed.pauses.len(), 1);
    assert_eq!(managed.pauses[0].end, None);
    let bytes: Vec<_> = managed
        .allocated
        .iter()
        .map(|one| (one.process == managed.collections[0].process, one.bytes))
        .collect();
    assert_eq!(bytes, [(true, 100), (false, 50)]);
}

/// The chance of an object is 1 - (1 - 1/102,400)^size: computed with 60 digits.
#[test]
fn objects_that_are_chosen_by_chance_stand_for_others() {
    let sampled = |step, size, name| (step, clr::allocation_sampled(PID, size, name));
    let all = [
        sampled(1, 1, "A"),
        sampled(2, 25, "B"),
        sampled(3, 102_400, "C"),
        sampled(4, 10_000_000, "D"),
        sampled(5, 0, "E"),
        sampled(6, 1, "A"),
    ];
    let etl = base().event(0, at(0), clr::allocation_tick(PID, 3, 100_000, "A"));
    let etl = all.into_iter().fold(etl, |etl, (step, event)| etl.event(0, at(step), event));
    // Ticks of a process that has both would count everything twice.
    let etl = etl.event(0, at(7), clr::allocation_tick(PID, 3, 100_000, "A"));
    let managed = &trace(&etl).managed;
    let row = |one: &etwprof::trace::Allocated| {
        (managed.allocated_types[one.type_name.unwrap() as usize].as_str(), one.bytes, one.ticks)
    };
    let rows: Vec<_> = managed.allocated.iter().map(row).collect();
    let expected =
        [("A", 204_800, 2), ("B", 102_412, 1), ("C", 161_994, 1), ("D", 10_000_000, 1), ("E", 0, 1)];
    assert_eq!(rows, expected);
}

#[test]
fn runtimes_of_one_process_count_for_themselves() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::gc_start_of(PID, 9, 1))
            .event(0, at(2), clr::gc_start_of(PID, 10, 1))
            .event(0, at(3), clr::gc_end(PID, 1, 0)),
    );
    let all: Vec<_> = trace.managed.collections.iter().map(|gc| (gc.instance, gc.end.is_some())).collect();
    assert_eq!(all, [(Some(9), true), (Some(10), false)]);
}
