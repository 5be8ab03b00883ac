//! What a trimmed recording says of waits, and of itself.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::command::etwprof;
use crate::support::data;
use crate::support::reading::json as read_json;
use crate::support::stacks::machine;
use crate::synth::kernel::thread::{CSwitch, ready};
use crate::synth::{Bytes, Etl, Event, IntoEvent, Item, START, Sample, guid, stack_walk};

/// Ticks of 100 ns in a millisecond.
const MS: i64 = 10_000;

fn trim(whole: &Path, part: &Path, more: &[&str]) {
    let line = [OsStr::new("trim"), whole.as_os_str(), OsStr::new("-q"), OsStr::new("-o"), part.as_os_str()];
    etwprof(line.into_iter().chain(more.iter().map(OsStr::new))).success();
}

fn shown(file: &Path, command: &[&str], filter: &[&str]) -> String {
    let line = command.iter().chain(filter).map(OsStr::new).chain([file.as_os_str()]);
    etwprof(line).success().text().to_owned()
}

/// The event behind the header, from the layouts of the TraceLogging header file: types 13 BOOL32, 9 INT64, 8 UINT32, with 0x40 an
/// array that its length precedes, and with 0x80 a second byte follows, 5 for a process id.
fn mark(all_providers: u32, (from, to): (i64, i64), pids: &'static [u32]) -> Event {
    let fields = b"AllProviders\0\x0dFrom\0\x09To\0\x09ProcessIds\0\xc8\x05";
    let payload = move |bytes: Bytes| {
        let bytes = bytes.u32(all_providers).i64(from).i64(to).u16(pids.len() as u16);
        pids.iter().fold(bytes, |bytes, pid| bytes.u32(*pid))
    };
    Event::manifest(guid("deb49ce9-f9ba-505d-8029-5461bd3c09a5"), 0, 0, payload)
        .channel(11)
        .level(0)
        .by(0, 0)
        .item(Item::schema("Trimmed", fields))
        .item(Item::provider_traits("etwprof"))
}

/// Pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Threads of three processes on two processors for so many milliseconds: they run, wait, wake each other, are woken by
/// interrupts and are pre-empted. Each event has the stack of its thread; those that make a thread ready name nobody.
fn busy(seed: u64, milliseconds: i64) -> Etl {
    let mut numbers = Numbers(seed);
    let owner = |tid: u32| match tid {
        41 | 42 => 40,
        51 | 52 => 50,
        _ => 4,
    };
    let mut etl = machine();
    let (mut runs, mut ready_ones) = ([0_u32; 2], VecDeque::from([41, 42, 51, 52, 5]));
    let mut blocked = Vec::new();
    let stack = |etl: Etl, cpu: u16, at: i64, tid: u32, address: u64| match tid {
        0 => etl,
        _ => etl.event(cpu, at + 2, stack_walk::full(at, owner(tid), tid, &[address, 0x100])),
    };
    for ms in 1..milliseconds {
        let cpu = numbers.below(2) as u16;
        let at = START + ms * MS;
        let running = runs[usize::from(cpu)];
        match numbers.below(4) {
            0 if !blocked.is_empty() => {
                let woken = blocked.swap_remove(numbers.below(blocked.len() as u64) as usize);
                etl = etl.event(cpu, at, ready(woken, running == 0));
                etl = stack(etl, cpu, at, running, 0x3000 + numbers.below(3));
                ready_ones.push_back(woken);
            }
            1 if running != 0 => {
                etl = etl.event(cpu, at, Sample::new(0x5000, running));
                etl = stack(etl, cpu, at, running, 0x5000);
            }
            _ => {
                let next = ready_ones.pop_front().unwrap_or(0);
                if next == running {
                    continue;
                }
                // Waits for something, or is pre-empted.
                let (reason, state) = if numbers.below(3) == 0 { (32, 1) } else { (6, 5) };
                match (running, state) {
                    (0, _) => {}
                    (_, 1) => ready_ones.push_back(running),
                    _ => blocked.push(running),
                }
                etl = etl.event(cpu, at, CSwitch::new(running, next).reason(reason, state));
                etl = stack(etl, cpu, at, next, 0x7000 + numbers.below(4));
                runs[usize::from(cpu)] = next;
            }
        }
    }
    etl
}

/// Chains of wakers end at other processes, whose waits are gone.
fn without_chains(text: &str) -> Value {
    let mut worst: Value = serde_json::from_str(text).unwrap();
    for wait in worst["waits"].as_array_mut().unwrap() {
        wait.as_object_mut().unwrap().retain(|key, _| !key.starts_with("chain"));
    }
    worst
}

/// The sums of each thread's states.
fn totals(file: &Path, filter: &[&str]) -> Vec<Value> {
    let timeline: Value =
        serde_json::from_str(&shown(file, &["timeline", "-q", "--json", "-n", "0"], filter)).unwrap();
    let row = |row: &Value| json!([row["pid"], row["tid"], row["kind"], row["total_ns"]]);
    timeline["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn waits_of_a_process_and_a_time_are_those_of_the_whole_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
    let tree = |metric| ["convert", "-q", "-f", "folded", "--no-symbols", "--threads", "--metric", metric];
    let choices: [&[&str]; 5] = [
        &["--pid", "40"],
        &["--pid", "50"],
        &["--pid", "40", "--from", "50ms", "--to", "90ms"],
        &["--pid", "40", "--pid", "4", "--from", "101ms"],
        &["--from", "60ms", "--to", "75ms"],
    ];
    let mut waited = 0;
    for seed in 0..3 {
        std::fs::write(&whole, busy(seed, 180).finish()).unwrap();
        for choice in choices {
            trim(&whole, &part, choice);
            let name = format!("seed {seed}, {choice:?}");
            let threads = ["threads", "-q", "--json"];
            assert_eq!(shown(&part, &threads, &[]), shown(&whole, &threads, choice), "{name}");
            assert_eq!(totals(&part, &[]), totals(&whole, choice), "{name}");
            let info = shown(&part, &["info", "-q"], &[]);
            assert!(info.contains("\nlost        nothing\n"), "{name}: {info}");
            for metric in ["cpu", "blocked", "ready", "wall"] {
                assert_eq!(shown(&part, &tree(metric), &[]), shown(&whole, &tree(metric), choice), "{name}");
            }
            let with_wakers = [&tree("blocked")[..], &["--with-wakers"]].concat();
            assert_eq!(shown(&part, &with_wakers, &[]), shown(&whole, &with_wakers, choice), "{name}");
            let waits = ["waits", "-q", "--no-symbols", "--json", "-n", "0"];
            let (of_part, of_whole) = (shown(&part, &waits, &[]), shown(&whole, &waits, choice));
            assert_eq!(without_chains(&of_part), without_chains(&of_whole), "{name}");
            waited += without_chains(&of_part)["waits"].as_array().unwrap().len();
        }
    }
    assert!(waited > 100, "{waited}");
}

#[test]
fn an_event_behind_the_header_says_what_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, part, smaller] =
        ["whole.etl", "part.etl", "smaller.etl"].map(|name| folder.path().join(name));
    std::fs::write(&whole, busy(7, 100).finish()).unwrap();
    let has = |file: &Path, event: Event| {
        let (record, bytes) = (event.record(START, 8), std::fs::read(file).unwrap());
        bytes.windows(record.len()).filter(|part| *part == record).count()
    };
    let trimmed = |file: &Path| {
        let info = read_json([OsStr::new("info"), OsStr::new("--json"), file.as_os_str()]);
        info["trimmed"].clone()
    };
    assert_eq!(trimmed(&whole), Value::Null);
    trim(&whole, &part, &["--pid", "50", "--pid", "40", "--from", "20ms"]);
    assert_eq!(has(&part, mark(1, (START + 20 * MS, 0), &[40, 50])), 1);
    let kept = json!({ "pids": [40, 50], "from_ns": 20_000_000, "to_ns": null, "all_providers": true });
    assert_eq!(trimmed(&part), kept);
    let text = shown(&part, &["info", "-q"], &[]);
    assert!(text.contains("\ntrimmed     processes 40, 50, from 20.0 ms\n"), "{text}");

    // What is left of what was left stands in its place.
    trim(&part, &smaller, &["--pid", "40", "--from", "10ms", "--to", "80ms", "--provider", "Thread"]);
    assert_eq!(has(&smaller, mark(0, (START + 20 * MS, START + 80 * MS), &[40])), 1);
    assert_eq!(has(&smaller, mark(1, (START + 20 * MS, 0), &[40, 50])), 0);
    trim(&smaller, &part, &[]);
    assert_eq!(trimmed(&part), trimmed(&smaller));

    // Parts of one recording have more together than each of them.
    trim(&whole, &part, &["--pid", "50", "--to", "90ms"]);
    let both = [OsStr::new("info"), OsStr::new("--json"), part.as_os_str(), smaller.as_os_str()];
    let both = read_json(both)["trimmed"].clone();
    assert_eq!(
        both,
        json!({ "pids": [40, 50], "from_ns": null, "to_ns": 90_000_000, "all_providers": false })
    );
}

/// What processors did beside the kept processes is not known, and no finding.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_process_of_a_real_recording_has_its_states_and_no_gaps() {
    let whole = data::file("etl/xperf/slow-ppt.etl");
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    for filter in [&["--pid", "856"][..], &["--pid", "5100", "--from", "3", "--to", "9"]] {
        trim(&whole, &part, filter);
        for command in
            [&["threads", "-q", "--json"][..], &["waits", "-q", "--no-symbols", "--json", "-n", "0"]]
        {
            assert_eq!(shown(&part, command, &[]), shown(&whole, command, filter), "{filter:?}");
        }
        let findings = shown(&part, &["findings", "-q", "--json"], &[]);
        assert!(!findings.contains("samples-missing"), "{findings}");
    }
}

/// A stack that an event of another provider began may be the user part of a sample's.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn stacks_stay_with_the_events_of_their_provider() {
    let whole = data::file("etl/perfview/net.4.5.2.x64.etl");
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let tree = ["convert", "-q", "-f", "folded", "--no-symbols"];
    let counted = |text: String| {
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        lines.map(|(stack, count)| (stack.to_owned(), count.to_owned())).collect::<BTreeMap<_, _>>()
    };
    trim(&whole, &part, &["--provider", "PerfInfo"]);
    assert_eq!(counted(shown(&part, &tree, &[])), counted(shown(&whole, &tree, &[])));
    // Without the events that they are of.
    trim(&whole, &part, &["--provider", "StackWalk"]);
    let stacks = |file: &Path| -> u64 {
        let text = shown(file, &["events", "--json"], &[]);
        let events: Value = serde_json::from_str(&text).unwrap();
        let rows = events.as_array().or(events["events"].as_array()).unwrap().iter();
        let rows = rows.filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("StackWalk/")));
        rows.map(|row| row["count"].as_u64().unwrap()).sum()
    };
    assert!(stacks(&whole) > 1_000);
    assert_eq!(stacks(&part), stacks(&whole));
}
