//! Blocks, names and paths: what is found, and what hostile blocks say.

use etwprof::counters::{Block, BlockError, CounterPath, Dump, DumpError, Names, NoValue, readings};

use crate::synth::counters::{self as synth, Instance, Object, eight, four, instance};

fn names() -> Vec<u8> {
    let names = [(2, "System"), (230, "Process"), (232, "Thread"), (6, "% Processor Time")];
    synth::names(&[&names[..], &[(784, "ID Process"), (674, "Uptime"), (680, "Threads")]].concat())
}

/// Two processes of one name, a thread of the second, and an object without instances.
fn machine(pids: [u32; 2], times: [u64; 2]) -> synth::Block {
    let process = |name, pid, time| instance(name, vec![eight(time), four(pid)]);
    let processes = vec![process("svchost", pids[0], times[0]), process("svchost", pids[1], times[1])];
    let counters = vec![(6, 0x2051_0500, 8), (784, 0x0001_0000, 4)];
    let processes = Object { name: 230, counters, instances: Some(processes), ..Default::default() };
    let thread = Instance { parent: (230, 1), ..instance("7", vec![four(3)]) };
    let threads = Object {
        name: 232,
        counters: vec![(680, 0x0001_0000, 4)],
        instances: Some(vec![thread]),
        ..Default::default()
    };
    let counters = vec![(674, 0x3024_0500, 8)];
    let system =
        Object { name: 2, clock: (5_000, 1_000), counters, single: vec![eight(2_000)], instances: None };
    synth::Block {
        objects: vec![processes, threads, system],
        time_100ns: times[0] as i64 * 4,
        ..Default::default()
    }
}

fn values(old: Option<&Block>, new: &Block, path: &str) -> Vec<(String, Result<f64, NoValue>)> {
    let names = Names::parse(&names());
    let found = readings(old, new, &names, &[path.parse().unwrap()]).unwrap();
    let name = |r: &etwprof::counters::Reading| r.instance.as_deref().unwrap_or("").to_owned();
    found.iter().map(|reading| (name(reading), reading.value)).collect()
}

#[test]
fn a_block_has_objects_instances_and_parents() {
    let block = Block::parse(machine([10, 20], [0, 0]).bytes()).unwrap();
    assert_eq!(block.machine, "HOST");
    // `date -d '2026-11-23 09:00:14.250 UTC' +%s%3N`
    assert_eq!(block.unix_ms, Some(1_795_424_414_250));
    assert_eq!(block.objects.len(), 3);
    let of = |path| values(None, &block, path);
    assert_eq!(of(r"System\Uptime"), [(String::new(), Ok(3.0))]);
    assert_eq!(of(r"\\OTHER\system\uptime"), of(r"2\674"), "a machine and the case do not matter");
    assert_eq!(of(r"Process(svchost)\ID Process"), [("svchost".to_owned(), Ok(10.0))]);
    assert_eq!(of(r"Process(svchost#0)\ID Process"), of(r"Process(SVCHOST)\ID Process"));
    assert_eq!(of(r"Process(svchost#1)\ID Process"), [("svchost#1".to_owned(), Ok(20.0))]);
    assert_eq!(of(r"Process(svc*)\ID Process").len(), 2);
    assert_eq!(of(r"Process(*)\*").len(), 4);
    assert_eq!(of(r"Thread(svchost/7)\Threads"), [("svchost/7".to_owned(), Ok(3.0))]);
    assert_eq!(of(r"Process\ID Process"), [], "an instance must be named");
    assert_eq!(of(r"System(*)\Uptime"), []);
}

#[test]
fn a_process_that_took_the_name_of_another_has_no_rate_yet() {
    let old = Block::parse(machine([10, 20], [100, 100]).bytes()).unwrap();
    let new = Block::parse(machine([10, 30], [200, 300]).bytes()).unwrap();
    let found = values(Some(&old), &new, r"Process(*)\% Processor Time");
    // 100 of 400 units of 100 ns.
    assert_eq!(found, [("svchost".to_owned(), Ok(25.0)), ("svchost#1".to_owned(), Err(NoValue::Replaced))]);
}

#[test]
fn paths_are_those_of_perfmon() {
    let path = |text: &str| text.parse::<CounterPath>().map(|p| (p.object, p.instance, p.counter));
    let is = |object: &str, instance: Option<&str>, counter: &str| {
        Ok((object.to_owned(), instance.map(str::to_owned), counter.to_owned()))
    };
    assert_eq!(path(r"\\HOST\Memory\Page Faults/sec"), is("Memory", None, "Page Faults/sec"));
    assert_eq!(path(r"Processor(_Total)\% Idle"), is("Processor", Some("_Total"), "% Idle"));
    let paging = path(r"Paging File(\??\C:\pagefile.sys)\% Usage");
    assert_eq!(paging, is("Paging File", Some(r"\??\C:\pagefile.sys"), "% Usage"));
    assert_eq!(path(r"Job(a (b))\Time (ms)"), is("Job", Some("a (b)"), "Time (ms)"));
    for wrong in ["", "Memory", r"\Memory", r"Memory\", r"Process()\x", r"\\HOST", r"(a)\b"] {
        assert!(path(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn names_survive_damage() {
    let names = Names::parse(&synth::names(&[(2, "System"), (6, "one"), (6, "two")]));
    assert_eq!((names.len(), &*names.name(6), &*names.name(7)), (2, "one", "#7"));
    let shifted = [synth::utf16("no number"), synth::utf16("x"), synth::names(&[(4, "Memory")])].concat();
    assert_eq!(Names::parse(&shifted).iter().collect::<Vec<_>>(), [(4, "Memory")]);
    assert!(Names::parse(b"").is_empty() && Names::parse(b"1\0").is_empty());
}

#[test]
fn a_dump_keeps_blocks_and_names() {
    let (one, two) = (machine([1, 2], [1, 1]).bytes(), machine([1, 2], [5, 5]).bytes());
    let mut file = Vec::new();
    Dump::begin(&mut file, &names()).unwrap();
    Dump::add(&mut file, &one).unwrap();
    Dump::add(&mut file, &two).unwrap();
    let dump = Dump::parse(&file).unwrap();
    assert_eq!((dump.names.len(), dump.blocks.len()), (7, 2));
    assert_eq!(dump.blocks[1].bytes(), two);
    // A section that a later version adds.
    let more = [&file, &b"MORE\0\0\0\0\x03\0\0\0\0\0\0\0abc"[..]].concat();
    assert_eq!(Dump::parse(&more).unwrap().blocks.len(), 2);
    // A bare block, in a buffer that is longer.
    assert_eq!(Dump::parse(&[&one, &[0; 99][..]].concat()).unwrap().blocks.len(), 1);
    assert_eq!(Dump::parse(b"MZ").unwrap_err(), DumpError::Unknown);
    for cut in 17..file.len() {
        // Between sections nothing is missing.
        let is_whole = [32 + names().len(), 48 + names().len() + one.len()].contains(&cut);
        assert_eq!(Dump::parse(&file[..cut]).is_ok(), is_whole, "{cut}");
    }
}

fn with(at: usize, value: u32) -> Result<Block, BlockError> {
    let mut bytes = machine([1, 2], [1, 1]).bytes();
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    Block::parse(bytes)
}

/// Where the first object is: behind 88 bytes and five units of name, to a multiple of 8.
const OBJECT: usize = 104;

#[test]
fn hostile_blocks_are_errors() {
    let wrong = |structure, offset, field| Some(BlockError::Structure { structure, offset, field });
    assert_eq!(with(0, 0).unwrap_err(), BlockError::Signature);
    assert_eq!(with(8, 0).unwrap_err(), BlockError::BigEndian);
    assert!(matches!(with(20, 1 << 20), Err(BlockError::Cut { .. })));
    assert!(matches!(with(20, u32::MAX), Err(BlockError::TooLong(_))));
    assert_eq!(with(24, 0).err(), wrong("header", 0, "header length"));
    assert_eq!(with(28, u32::MAX).err(), wrong("header", 0, "number of objects"));
    assert_eq!(with(84, u32::MAX).err(), wrong("header", 0, "name"));
    // A zero length would be stepped by for ever.
    assert_eq!(with(OBJECT, 0).err(), wrong("object", OBJECT, "length"));
    assert_eq!(with(OBJECT, 1 << 20).err(), wrong("object", OBJECT, "length"));
    assert_eq!(with(OBJECT + 4, 1 << 20).err(), wrong("object", OBJECT, "definition length"));
    assert_eq!(with(OBJECT + 8, 8).err(), wrong("object", OBJECT, "header length"));
    assert_eq!(with(OBJECT + 32, 5_000).err(), wrong("object", OBJECT, "number of counters"));
    assert!(with(OBJECT + 32, 3).is_err(), "definitions that run into instances");
    assert_eq!(with(OBJECT + 40, -7_i32 as u32).err(), wrong("object", OBJECT, "number of instances"));
    assert!(with(OBJECT + 40, 1 << 30).is_err(), "instances that run past the object");
    assert!(with(OBJECT + 40, -2_i32 as u32).unwrap().objects[0].instances.is_empty(), "definitions alone");
    let definition = OBJECT + 64;
    assert_eq!(with(definition, 0).err(), wrong("counter definition", definition, "length"));
    let first = OBJECT + 64 + 80;
    assert_eq!(with(first, 0).err(), wrong("instance", first, "length"));
    assert_eq!(with(first + 20, u32::MAX).err(), wrong("instance", first, "name"));
    assert_eq!(with(first + 16, u32::MAX).err(), wrong("instance", first, "name"));
    let values = first + 40;
    assert_eq!(with(values, 0).err(), wrong("counter block", values, "length"));
    assert_eq!(with(values, 1 << 20).err(), wrong("counter block", values, "length"));
}

#[test]
fn parents_and_offsets_that_lead_nowhere_cost_themselves_only() {
    // The parent of a thread: itself, or one that is not there.
    let mut block = machine([1, 2], [1, 1]);
    block.objects[1].instances.as_mut().unwrap()[0].parent = (232, 0);
    let own = Block::parse(block.bytes()).unwrap();
    assert_eq!(values(None, &own, r"Thread(*)\Threads"), [("7/7".to_owned(), Ok(3.0))]);
    block.objects[1].instances.as_mut().unwrap()[0].parent = (9_999, u32::MAX);
    let lost = Block::parse(block.bytes()).unwrap();
    assert_eq!(values(None, &lost, r"Thread(*)\Threads"), [("7".to_owned(), Ok(3.0))]);
    // The offset of "ID Process" outside of its values, and in the length in front of them.
    for offset in [u32::MAX, 1_000, 22, 0] {
        let block = with(OBJECT + 64 + 40 + 36, offset).unwrap();
        let found = values(None, &block, r"Process(svchost)\ID Process");
        assert_eq!(found, [("svchost".to_owned(), Err(NoValue::Damaged))], "{offset}");
    }
}

#[test]
fn every_cut_is_an_error() {
    let bytes = machine([1, 2], [1, 1]).bytes();
    for length in 0..bytes.len() {
        let mut cut = bytes[..length].to_vec();
        assert!(Block::parse(cut.clone()).is_err(), "{length}");
        // The header may lie about it.
        if length >= 24 {
            cut[20..24].copy_from_slice(&(length as u32).to_le_bytes());
            assert!(Block::parse(cut).is_err(), "{length}");
        }
    }
}
