//! The shared memory of .NET Framework: where each number stands, what is believed, and what two moments say.

use etwprof::counters::framework::{BlockError, Runtime, Sample, USUAL, known, legacy, readings, runtimes};
use etwprof::counters::{CounterPath, NoValue, Reading};

use crate::synth::framework::{Counters, FIELDS, Wide, memory, put};

const PID: u32 = 4_711;
/// A clock of 10 MHz.
const SECOND: i64 = 10_000_000;

/// Gives copies of what never changes.
fn still(memory: &[u8]) -> impl FnMut(usize, &mut [u8]) -> bool {
    |at, to| match memory.get(at..at + to.len()) {
        Some(bytes) => {
            to.copy_from_slice(bytes);
            true
        }
        None => false,
    }
}

fn read(memory: &[u8]) -> Vec<Result<Runtime, BlockError>> {
    runtimes(PID, &mut still(memory))
}

fn read_one(block: Vec<u8>) -> Result<Runtime, BlockError> {
    let found = read(&memory(&[(0, block)]));
    assert_eq!(found.len(), 1);
    found[0]
}

/// The field of this name in the tests' table.
fn field(of: &Runtime, name: &str) -> u64 {
    let gc = of.gc.unwrap();
    match name {
        "gen0_collections" => gc.gen0_collections,
        "gen1_collections" => gc.gen1_collections,
        "gen2_collections" => gc.gen2_collections,
        "gen0_promoted" => gc.gen0_promoted,
        "gen1_promoted" => gc.gen1_promoted,
        "promoted_by_finalization" => gc.promoted_by_finalization,
        "process_id" => gc.process_id,
        "gen0_budget" => gc.gen0_budget,
        "gen1_size" => gc.gen1_size,
        "gen2_size" => gc.gen2_size,
        "committed" => gc.committed,
        "reserved" => gc.reserved,
        "large_objects" => gc.large_objects,
        "finalization_survivors" => gc.finalization_survivors,
        "handles" => gc.handles,
        "allocated" => gc.allocated,
        "large_allocated" => gc.large_allocated,
        "induced" => gc.induced,
        "gc_time" => gc.time.into(),
        "gc_time_base" => gc.time_base.into(),
        "pinned" => gc.pinned,
        "sink_blocks" => gc.sink_blocks,
        "remote_calls" => of.remoting.remote_calls.into(),
        "channels" => of.remoting.channels.into(),
        "proxies" => of.remoting.proxies.into(),
        "context_classes" => of.remoting.classes.into(),
        "context_objects" => of.remoting.objects.into(),
        "contexts" => of.remoting.contexts.into(),
        "ccws" => of.interop.ccws.into(),
        "stubs" => of.interop.stubs.into(),
        "marshalling" => of.interop.marshalling.into(),
        "tlb_imports" => of.interop.tlb_imports.into(),
        "tlb_exports" => of.interop.tlb_exports.into(),
        "classes" => of.loading.classes.into(),
        "classes_total" => of.loading.classes_total.into(),
        "app_domains" => of.loading.app_domains.into(),
        "app_domains_total" => of.loading.app_domains_total.into(),
        "assemblies" => of.loading.assemblies.into(),
        "assemblies_total" => of.loading.assemblies_total.into(),
        "loading_time" => of.loading.time as u64,
        "search_length" => of.loading.search_length.into(),
        "load_failures" => of.loading.failures.into(),
        "loader_heap" => of.loading.loader_heap,
        "app_domains_unloaded" => of.loading.app_domains_unloaded.into(),
        "thrown" => of.exceptions.thrown.into(),
        "filters" => of.exceptions.filters.into(),
        "finallys" => of.exceptions.finallys.into(),
        "throw_to_catch_depth" => of.exceptions.throw_to_catch_depth.into(),
        "contentions" => of.locks.contentions.into(),
        "queue" => of.locks.queue.into(),
        "queue_total" => of.locks.queue_total.into(),
        "logical" => of.locks.logical.into(),
        "physical" => of.locks.physical.into(),
        "recognized" => of.locks.recognized.into(),
        "recognized_total" => of.locks.recognized_total.into(),
        "methods" => of.jit.methods.into(),
        "il_bytes" => of.jit.il_bytes.into(),
        "il_bytes_total" => of.jit.il_bytes_total.into(),
        "jit_failures" => of.jit.failures.into(),
        "jit_time" => of.jit.time.into(),
        "jit_time_before" => of.jit.time_before.into(),
        "runtime_checks" => of.security.runtime_checks.into(),
        "time_authorizing" => of.security.time_authorizing as u64,
        "link_checks" => of.security.link_checks.into(),
        "checks_time" => of.security.time_of_runtime_checks.into(),
        "checks_time_base" => of.security.time_of_runtime_checks_base.into(),
        "stack_depth" => of.security.stack_depth.into(),
        other => panic!("{other}"),
    }
}

/// A different number in each field, as wide as the field.
fn filled(is_32: bool) -> (Counters, Vec<(&'static str, u64)>) {
    let value = |(at, (name, _, _, wide)): (usize, &(&'static str, usize, usize, Wide))| {
        let low = 0x8100_0000 + at as u64;
        let is_long = matches!(wide, Wide::Eight) || matches!(wide, Wide::P) && !is_32;
        let value = if is_long { (0x7700 + at as u64) << 32 | low } else { low };
        (*name, if *name == "process_id" { PID.into() } else { value })
    };
    let values: Vec<_> = FIELDS.iter().enumerate().map(value).collect();
    let counters = values.iter().fold(Counters::new(is_32), |all, (name, value)| all.with(name, *value));
    (counters, values)
}

#[test]
fn every_number_is_found_in_both_widths() {
    for is_32 in [true, false] {
        let (counters, values) = filled(is_32);
        let newer = read_one(counters.block(13)).unwrap();
        let older = legacy(PID, &mut still(&counters.legacy())).unwrap();
        for runtime in [&newer, &older] {
            for (name, value) in &values {
                assert_eq!(field(runtime, name), *value, "{name}, 32-bit {is_32}");
            }
            assert_eq!((runtime.pointer.bytes() == 4, runtime.attributes), (is_32, 1));
        }
        assert_eq!((newer.id, newer.version), (Some(13), (4, 30_319)));
        assert_eq!((older.id, older.version), (None, (2, 50_727)));
    }
}

#[test]
fn a_free_block_ends_nothing() {
    let block = |id| Counters::new(false).block(id);
    // Of one that was unloaded, the number is gone and the counter is not.
    let mut unloaded = block(0);
    put(&mut unloaded, 0, &6_i32.to_le_bytes());
    let found = read(&memory(&[(0, unloaded), (5, block(7)), (31, Counters::new(true).block(9))]));
    let ids: Vec<_> = found.iter().map(|runtime| runtime.unwrap().id).collect();
    assert_eq!(ids, [Some(7), Some(9)]);
    assert_eq!(read(&memory(&[])), []);
}

#[test]
fn a_block_is_copied_again_while_it_changes() {
    // The counter is odd twice; then it changes during a copy; then all is still.
    let (mut moments, mut asked) = ([5_i32, 5, 6, 8, 8].into_iter(), 0);
    let block = Counters::new(false).with("thrown", 3).block(1);
    let memory = memory(&[(0, block)]);
    let mut now = 4_i32;
    let mut copy = |at: usize, to: &mut [u8]| {
        to.copy_from_slice(&memory[at..at + to.len()]);
        if at == 0 {
            // Each try begins and ends with the counter alone.
            if to.len() == 4 {
                asked += 1;
                now = moments.next().unwrap_or(8);
            }
            put(to, 0, &now.to_le_bytes());
        }
        true
    };
    let found = runtimes(PID, &mut copy);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].unwrap().exceptions.thrown, 3);
    // 5 5, 6 8, 8 8.
    assert_eq!(asked, 6);

    // It never comes to rest.
    let mut now = 0_i32;
    let mut copy = |at: usize, to: &mut [u8]| {
        to.fill(0);
        now += i32::from(at == 0) * 2;
        put(to, 0, &(if at == 0 { now } else { 0 }).to_le_bytes());
        true
    };
    assert_eq!(runtimes(PID, &mut copy), [Err(BlockError::Busy)]);
}

#[test]
fn what_is_wrong_is_not_read() {
    let change = |at: usize, value: &[u8]| {
        let mut block = Counters::new(false).with("process_id", PID.into()).block(1);
        put(&mut block, at, value);
        read_one(block)
    };
    assert!(change(0, &2_i32.to_le_bytes()).is_ok());
    for (at, value, error) in [
        (16, 5_u32, BlockError::Version(5)),
        (18, 2, BlockError::NotSetUp),
        (18, 1, BlockError::NotSetUp),
        // 32-bit, with the size of the other.
        (18, 7, BlockError::Size(384)),
        (28, 0, BlockError::Empty),
        (36, 0, BlockError::Size(0)),
        (36, 385, BlockError::Size(385)),
        (36, u32::MAX, BlockError::Size(u32::MAX)),
        (32, 2_048 - 383, BlockError::Outside),
        (32, u32::MAX, BlockError::Outside),
        (40, 0x1_0118, BlockError::Size(280)),
        (40 + 56, 4_712, BlockError::Process(4_712)),
        // The upper half of the process id.
        (40 + 60, 1, BlockError::Process(0x1_0000_1267)),
    ] {
        let length = if matches!(at, 16 | 18) { 2 } else { 4 };
        assert_eq!(change(at, &value.to_le_bytes()[..length]), Err(error), "{value} at {at}");
    }
    // The last place that there is.
    let mut block = Counters::new(false).block(1);
    let counters = Counters::new(false).with("thrown", 9).bytes;
    put(&mut block, 32, &(2_048_u32 - 384).to_le_bytes());
    put(&mut block, 2_048 - 384, &counters);
    assert_eq!(read_one(block).unwrap().exceptions.thrown, 9);
    // Memory that ends in a block keeps those before.
    let whole = memory(&[(0, Counters::new(false).block(1))]);
    for length in [0, 3, 2_047] {
        assert_eq!(read(&whole[..length]), [Err(BlockError::Short)]);
    }
    let found = read(&whole[..4_095]);
    assert!(found.len() == 2 && found[0].is_ok() && found[1] == Err(BlockError::Short), "{found:?}");
}

#[test]
fn the_older_block_is_checked_too() {
    for is_32 in [true, false] {
        let good = Counters::new(is_32).with("process_id", PID.into()).legacy();
        assert_eq!(good.len(), if is_32 { 0x134 } else { 0x1a0 });
        let (entries, offset, size, counters, pid) =
            if is_32 { (16, 20, 24, 28, 28) } else { (20, 24, 28, 32, 56) };
        for (at, value, error) in [
            (0, 5_u32, BlockError::Version(5)),
            (4, 0x135, BlockError::Length(0x135)),
            (4, u32::MAX, BlockError::Length(u32::MAX)),
            (entries, 0, BlockError::Empty),
            (size, 281, BlockError::Size(281)),
            (offset, 33, BlockError::Outside),
            (offset, u32::MAX, BlockError::Outside),
            (counters, 0x1_0119, BlockError::Size(281)),
            (counters + pid, 1, BlockError::Process(1)),
        ] {
            let mut block = good.clone();
            put(&mut block, at, &value.to_le_bytes());
            assert_eq!(legacy(PID, &mut still(&block)), Err(error), "{value} at {at}, 32-bit {is_32}");
        }
        for length in [0, 7, 8, good.len() - 1] {
            assert_eq!(legacy(PID, &mut still(&good[..length])), Err(BlockError::Short), "{length}");
        }
    }
    // More entries than there is room for, which a 32-bit one counts its offset from.
    let mut block = Counters::new(true).legacy();
    put(&mut block, 16, &u32::MAX.to_le_bytes());
    assert_eq!(legacy(PID, &mut still(&block)), Err(BlockError::Outside));
}

fn sample(seconds: f64, blocks: &[Counters]) -> Sample {
    let blocks: Vec<_> = blocks.iter().enumerate().map(|(at, one)| (at, one.block(at as u32 + 1))).collect();
    let runtimes = read(&memory(&blocks)).into_iter().collect::<Result<_, _>>().unwrap();
    Sample { qpc: (seconds * SECOND as f64) as i64, qpc_hz: SECOND, runtimes, refused: Vec::new() }
}

fn chosen(old: Option<&Sample>, new: &Sample, paths: &[&str]) -> Vec<Reading> {
    let paths: Vec<CounterPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
    readings(old, new, "Web.EXE", &paths)
}

/// The value of one counter of a 64-bit process, two seconds after.
fn value(old: Counters, new: Counters, path: &str) -> Result<f64, NoValue> {
    let found = chosen(Some(&sample(1.0, &[old])), &sample(3.0, &[new]), &[path]);
    assert_eq!(found.len(), 1, "{path}");
    found[0].value
}

fn collected() -> Counters {
    Counters::new(false).with("process_id", PID.into())
}

const ALLOCATED: &str = r".NET CLR Memory\Allocated Bytes/sec";

#[test]
fn nothing_is_known_of_heaps_before_the_first_collection() {
    // It has begun: what was allocated is there already.
    let began = Counters::new(false).with("allocated", 500).with("induced", 1);
    let all = chosen(None, &sample(1.0, std::slice::from_ref(&began)), &[r".NET CLR Memory\*"]);
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|reading| reading.value == Err(NoValue::NoCollection)), "{all:?}");
    let jit =
        chosen(None, &sample(1.0, std::slice::from_ref(&began)), &[r".NET CLR Jit\Standard Jit Failures"]);
    assert_eq!(jit[0].value, Ok(0.0));
    // The first one: since when is not known.
    assert_eq!(value(began, collected().with("allocated", 500), ALLOCATED), Err(NoValue::New));
}

#[test]
fn what_is_allocated_is_known_by_collections() {
    let at = |bytes| collected().with("allocated", bytes);
    assert_eq!(value(at(1_000), at(4_000), ALLOCATED), Ok(1_500.0));
    assert_eq!(value(at(1_000), at(1_000), ALLOCATED), Err(NoValue::NoCollectionSince));
    assert_eq!(value(at(1_000), at(999), ALLOCATED), Err(NoValue::Restarted));
    // 32 bits wrap.
    let at = |bytes| Counters::new(true).with("process_id", PID.into()).with("allocated", bytes);
    assert_eq!(value(at(0xffff_ff00), at(0x100), ALLOCATED), Ok(256.0));
}

#[test]
fn shares_of_time() {
    let last = r".NET CLR Memory\% Time in GC";
    let at = |time, base| collected().with("gc_time", time).with("gc_time_base", base);
    assert_eq!(value(collected(), at(3, 12), last), Ok(25.0));
    assert_eq!(value(collected(), at(0, 12), last), Ok(0.0));
    assert_eq!(value(collected(), at(3, 0), last), Err(NoValue::Nothing));
    // Read in the middle.
    assert_eq!(value(collected(), at(13, 12), last), Ok(100.0));

    let jit = r".NET CLR Jit\% Time in Jit";
    let at = |ticks| collected().with("jit_time", ticks);
    // Of 20 million ticks.
    assert_eq!(value(at(1_000_000), at(6_000_000), jit), Ok(25.0));
    assert_eq!(value(at(0xffff_fff0), at(0x3d_0900 - 16), jit), Ok(20.0));
    let long = chosen(Some(&sample(0.0, &[at(0)])), &sample(429.5, &[at(9)]), &[jit]);
    assert_eq!(long[0].value, Err(NoValue::TooLong));
}

#[test]
fn rates_and_what_they_need() {
    let path = r".NET CLR Exceptions\# of Exceps Thrown / sec";
    let at = |thrown| Counters::new(true).with("thrown", thrown);
    assert_eq!(value(at(10), at(30), path), Ok(10.0));
    assert_eq!(value(at(0xffff_fffe), at(2), path), Ok(2.0));
    assert_eq!(value(at(30), at(10), path), Err(NoValue::Restarted));
    let new = sample(3.0, &[at(30)]);
    let one = |old: Option<&Sample>| chosen(old, &new, &[path])[0].value;
    assert_eq!(one(None), Err(NoValue::One));
    assert_eq!(one(Some(&Sample { runtimes: Vec::new(), ..new.clone() })), Err(NoValue::New));
    assert_eq!(one(Some(&new)), Err(NoValue::Time));
    assert_eq!(one(Some(&Sample { qpc: i64::MIN, ..new.clone() })), Ok(0.0));
    let stopped = Sample { qpc_hz: 0, ..new.clone() };
    assert_eq!(chosen(Some(&sample(1.0, &[at(0)])), &stopped, &[path])[0].value, Err(NoValue::Time));
}

#[test]
fn readings_are_called_as_windows_calls_them() {
    let first = collected().with("gen0_budget", 6_291_456).with("gen1_size", 100).with("gen2_size", 20);
    let first = first.with("large_objects", 3).with("loader_heap", 4_096);
    let one = sample(1.0, &[first]);
    let found = chosen(None, &one, &[r".net clr memory\gen 0 heap size"]);
    let Reading { object, instance, counter, unit, value, .. } = &found[0];
    assert_eq!((&**object, instance.as_deref()), (".NET CLR Memory", Some("Web")));
    assert_eq!((&**counter, &**unit), ("Gen 0 heap size (allocation budget)", ""));
    assert_eq!(*value, Ok(6_291_456.0));
    let of = |path| chosen(None, &one, &[path]).first().map(|reading| reading.value);
    assert_eq!(of(r".NET CLR Memory(web)\# Bytes in all Heaps"), Some(Ok(123.0)));
    assert_eq!(of(r".NET CLR Memory(*)\Gen 0 heap size (allocation budget)"), Some(Ok(6_291_456.0)));
    assert_eq!(of(r".NET CLR Loading\Bytes in Loader Heap"), Some(Ok(4_096.0)));
    assert_eq!(of(r".NET CLR Memory(other)\Gen 1 heap size"), None);
    assert_eq!(of(r".NET CLR Memory\Gen 1"), None);

    // Several runtimes.
    let mut two = sample(1.0, &[Counters::new(false), Counters::new(true)]);
    two.runtimes.push(legacy(PID, &mut still(&Counters::new(false).legacy())).unwrap());
    let names = |path| {
        let found = chosen(None, &two, &[path]);
        found.iter().map(|reading| reading.instance.as_deref().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(r".NET CLR Jit\% Time in Jit"), ["Web_v4", "Web_v4#1", "Web_v2"]);
    assert_eq!(names(r".NET CLR Jit(*_v2)\% Time in Jit"), ["Web_v2"]);
}

#[test]
fn the_usual_counters_are_among_those_that_are_known() {
    let all: Vec<_> = known().collect();
    assert!(USUAL.iter().all(|usual| all.contains(usual)));
    let mut names: Vec<_> =
        all.iter().map(|(object, counter)| format!("{object}\\{counter}").to_lowercase()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len(), "no name twice");
}
