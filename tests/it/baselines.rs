//! Real traces against TraceEvent's own dumps of them: how many events of each kind, and what the first of each
//! kind say.
//!
//! A dump lists up to five events of a kind field by field, then `COUNT name:number` for each kind. Where TraceEvent
//! counts otherwise than the file, the difference is listed here with its reason; any other one fails.

mod fields;
mod names;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use etwprof::etl::Recording;
use etwprof::event::{Event, Kind};
use serde_json::Value;

use crate::support::reading::{self, info, json, number};
use crate::support::{command, data};
use names::{Key, name_of};

/// A trace and the dump of it, below `etl/perfview`.
const BASELINES: [(&str, &str); 5] = [
    ("net.4.5.2.x64.etl", "net.4.5.2.x64.baseline.txt"),
    ("PerfViewData.etl", "net.4.5.x86-2016.baseline.txt"),
    ("gcevents/PerfViewData.etl", "gcevents.baseline.txt"),
    ("gcrundownevents/PerfViewData.clrRundown.etl", "gcrundownevents.baseline.txt"),
    ("primitive-types.etl", "primitive-types.baseline.txt"),
];

/// Events that TraceEvent reads and does not list: (provider, key, reason).
const UNLISTED: [(&str, Key, &str); 16] = [
    (EVENT_TRACE, Key::Opcode(80), "partition info: belongs to the header"),
    (THREAD, Key::Opcode(3), "rundown: makes its thread table"),
    (THREAD, Key::Opcode(4), "rundown: makes its thread table"),
    (FILE_IO, Key::Opcode(32), "file names: make its file table"),
    (FILE_IO, Key::Opcode(35), "file names: make its file table"),
    (FILE_IO, Key::Opcode(36), "file names: make its file table"),
    (STACK_WALK, Key::Opcode(32), "stacks: joined to their events"),
    (STACK_WALK, Key::Opcode(35), "stacks: joined to their events"),
    (STACK_WALK, Key::Opcode(36), "stacks: joined to their events"),
    (STACK_WALK, Key::Opcode(37), "stacks: joined to their events"),
    (STACK_WALK, Key::Opcode(38), "stacks: joined to their events"),
    (CLR, Key::Id(82), "stacks: joined to their events"),
    (CLR, Key::Id(190), "code maps: kept with their methods"),
    (CLR_RUNDOWN, Key::Id(144), "method rundown: names addresses"),
    (CLR_RUNDOWN, Key::Id(150), "code maps: kept with their methods"),
    (SYSTEM_CONFIG, Key::Opcode(18), "optical disks: unknown to it"),
];

/// Events that TraceEvent names by the schemas of the machine it runs on. Older dumps were made without these two.
const UNLISTED_ONCE: [(&str, &str); 2] = [
    ("net.4.5.2.x64.baseline.txt", "MSNT_SystemTrace/Image/HypercallPage"),
    ("net.4.5.2.x64.baseline.txt", "MSNT_SystemTrace/SystemConfig/DPI"),
];

const EVENT_TRACE: &str = "68fdd900-4a3e-11d1-84f4-0000f80464e3";
const THREAD: &str = "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c";
const FILE_IO: &str = "90cbdc39-4a3e-11d1-84f4-0000f80464e3";
const STACK_WALK: &str = "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3";
const SYSTEM_CONFIG: &str = "01853a65-418f-4f36-aefc-dc0f1d2fd235";
const CLR: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const CLR_RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";

const SAMPLE: &str = "Windows Kernel/PerfInfo/Sample";
const LOAD_VERBOSE: &str = "Microsoft-Windows-DotNETRuntime/Method/LoadVerbose";

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn counts_of_every_kind() {
    for (trace, baseline) in BASELINES {
        let (trace, baseline) = (perfview(trace), perfview(baseline));
        let mut ours = counts(&json(["events".as_ref(), "--json".as_ref(), trace.as_os_str()]));
        let total: u64 = ours.values().sum();
        assert_eq!(total, number(&info(&trace), "/events/total"), "{}", trace.display());
        differ_as_known(&trace, &mut ours);
        for (_, name) in UNLISTED_ONCE.iter().filter(|(dump, _)| baseline.ends_with(dump)) {
            assert_eq!(ours.remove(*name), Some(1), "{name} is there");
        }
        let theirs = listed_counts(&fs::read_to_string(&baseline).unwrap());
        assert_same_counts(&ours, &theirs, &trace);
    }
}

/// Brings our counts to what TraceEvent counts: samples without the idle ones, methods without helper stubs.
fn differ_as_known(trace: &Path, ours: &mut BTreeMap<String, u64>) {
    if let Some(samples) = ours.get_mut(SAMPLE) {
        let info = info(trace);
        assert_eq!(*samples, number(&info, "/samples/total"));
        *samples -= number(&info, "/samples/idle");
        assert_eq!(*samples, number(&info, "/samples/kept"));
    }
    if let Some(methods) = ours.get_mut(LOAD_VERBOSE) {
        *methods -= helper_stubs(trace);
    }
}

/// Methods with the flags of a helper stub (0x10), neither jitted (8) nor dynamic (1): TraceEvent hides them.
fn helper_stubs(trace: &Path) -> u64 {
    let mut stubs = 0;
    reading::events(&Recording::open(&[trace]).unwrap(), |event| stubs += u64::from(is_helper_stub(event)));
    stubs
}

fn is_helper_stub(event: &Event<'_>) -> bool {
    let is_load = event.provider.to_string() == CLR && event.kind == Kind::Manifest(143);
    is_load && u32::from_le_bytes(event.payload[32..36].try_into().unwrap()) & 0x9 == 0
}

/// The counts of `events --json` by TraceEvent's names, without what it does not list. Nothing else is left out.
fn counts(rows: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in rows.as_array().expect("an array of kinds") {
        let provider = row["provider"].as_str().expect("a GUID");
        assert_eq!(provider, provider.to_lowercase());
        let count = number(row, "/count");
        assert!(row["opcode"].is_u64() && row["version"].is_u64(), "{row}");
        let key = match row["id"].as_u64() {
            Some(id) => Key::Id(u16::try_from(id).unwrap()),
            None => Key::Opcode(u8::try_from(row["opcode"].as_u64().unwrap()).unwrap()),
        };
        let unlisted = UNLISTED.iter().any(|(guid, of, _)| (*guid, *of) == (provider, key));
        let name = match name_of(provider, key) {
            Some(name) => name,
            None if unlisted => format!("unlisted {provider} {key:?}"),
            None => own_name(row, provider, key),
        };
        *counts.entry(name).or_default() += count;
    }
    counts
}

/// Self-describing events say their names themselves; of others there is the id.
fn own_name(row: &Value, provider: &str, key: Key) -> String {
    let ending = match row["opcode"].as_u64() {
        Some(1) => "/Start",
        Some(2) => "/Stop",
        _ => "",
    };
    match (row["name"].as_str(), key) {
        (Some(name), Key::Id(_)) => format!("{name}{ending}"),
        (None, Key::Id(id)) => format!("{provider}/EventID({id})"),
        (_, Key::Opcode(_)) => panic!("an unknown kind: {row}"),
    }
}

/// The `COUNT name:number` lines of a dump.
fn listed_counts(dump: &str) -> BTreeMap<String, u64> {
    let lines = dump.lines().filter_map(|line| line.strip_prefix("COUNT "));
    let counts: BTreeMap<String, u64> = lines
        .map(|line| line.rsplit_once(':').expect("a name and a number"))
        .map(|(name, count)| (one_name(name), count.trim().parse().expect("a number")))
        .collect();
    assert!(!counts.is_empty());
    counts
}

/// TraceEvent has the name of this event from a schema that only one of the traces carries.
fn one_name(name: &str) -> String {
    match name {
        "Microsoft-Windows-DNS-Client/EventID(1001)" => {
            "Microsoft-Windows-DNS-Client/DnsServerForInterface".to_owned()
        }
        _ => name.to_owned(),
    }
}

#[track_caller]
fn assert_same_counts(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>, trace: &Path) {
    let names = ours.keys().filter(|name| !name.starts_with("unlisted")).chain(theirs.keys());
    let mut differences: Vec<String> = names
        .filter(|name| ours.get(*name) != theirs.get(*name))
        .map(|name| format!("{name}: {:?}, the baseline has {:?}", ours.get(name), theirs.get(name)))
        .collect();
    differences.dedup();
    assert!(differences.is_empty(), "{}:\n{}", trace.display(), differences.join("\n"));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn first_events_field_by_field() {
    for (trace, baseline) in BASELINES {
        let (trace, baseline) = (perfview(trace), perfview(baseline));
        let dump = fs::read_to_string(baseline).unwrap();
        fields::compare(&trace, &dump);
    }
}

/// All names of a Visual Studio session in order of time, as TraceEvent lists them for its four files together.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_session_of_four_files_has_every_event_of_its_listing() {
    let listing = perfview("diaghub-etls.txt");
    let folder = perfview("diaghub-dotnetcore3.1-win-x64-diagsession");
    let files =
        ["diaghub.etl", "diaghub.kernel.1.etl", "diaghub.user_paged.1.etl", "diaghub.user_injected.1.etl"];
    let files = files.map(|file| folder.join(file));
    let output = command::etwprof(["events", "--json"].map(PathBuf::from).iter().chain(&files)).success();
    let ours = counts(&serde_json::from_slice(&output.stdout).unwrap());

    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for name in fs::read_to_string(listing).unwrap().lines() {
        *theirs.entry(name.to_owned()).or_default() += 1;
    }
    // The listing has no providers, and its names for those without a schema in the trace differ.
    let mut without_provider: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in ours.iter().filter(|(name, _)| !name.starts_with("unlisted")) {
        let short = [
            "Windows Kernel/",
            "MSNT_SystemTrace/",
            "KernelTraceControl/",
            "Microsoft-Windows-DotNETRuntime/",
        ]
        .iter()
        .find_map(|provider| name.strip_prefix(provider));
        let short = short.or_else(|| name.split_once('/').map(|(_, short)| short)).unwrap_or(name);
        *without_provider.entry(short.to_owned()).or_default() += count;
    }
    assert_same_counts(&without_provider, &theirs, &folder);
}

fn perfview(path: &str) -> PathBuf {
    data::file(&format!("etl/perfview/{path}"))
}
