//! Managed code in real traces: every event read to its end, every count as other readers have it, every address
//! named as a slow and obvious search would name it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use etwprof::analysis;
use etwprof::bytes::Utf16;
use etwprof::etl::Recording;
use etwprof::event::{Event, Ticks};
use etwprof::events::clr::{self, Clr, Phase, Tier};
use etwprof::events::{Decoded, decode};
use etwprof::trace::Trace;
use etwprof::trace::code::{BodyId, BodyKind};

use crate::support::data;

const X64: &str = "etl/perfview/net.4.5.2.x64.etl";
const OF_2016: &str = "etl/perfview/PerfViewData.etl";
const WIN11: &str = "etl/etwanalyzer/TraceLoggingTester.etl";
const DIAGHUB: &str = "etl/perfview/diaghub-dotnetcore3.1-win-x64-diagsession";

fn open(files: &[PathBuf]) -> Recording {
    Recording::open(files).unwrap()
}

fn each_event(recording: &Recording, mut see: impl FnMut(&Event<'_>)) {
    recording.fold(NonZeroUsize::MIN, &mut |_| {}, || (), |(), event| see(event));
}

fn trace(recording: &Recording) -> Trace {
    analysis::trace(recording, &mut |_| {}).value
}

fn diaghub() -> Vec<PathBuf> {
    let folder = data::file(DIAGHUB);
    let names = ["diaghub", "diaghub.kernel.1", "diaghub.user_injected.1", "diaghub.user_paged.1"];
    names.map(|name| folder.join(format!("{name}.etl"))).into()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_event_is_read_to_its_last_byte() {
    let traces = data::traces();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for path in traces {
        let Ok(recording) = Recording::open(&[&path]) else { continue };
        each_event(&recording, |event| {
            let mut reader = event.reader();
            let Ok(Decoded::Clr(known)) = decode(event) else {
                let clr = [0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4, 0xa669021c_c450_4609_a035_5af59af4df18];
                let is_clr = clr.map(etwprof::guid::Guid::from_u128).contains(&event.provider);
                assert!(!is_clr || decode(event).is_ok(), "{}: {event:?}", path.display());
                return;
            };
            assert_eq!(clr::read(event, &mut reader), Some(Some(known)));
            assert_eq!(reader.rest(), b"", "{}: {event:?}", path.display());
            let (kind, instance) = match known {
                Clr::Method(method) => ("method", method.instance),
                Clr::IlMap(map) => ("map", map.instance),
                Clr::Module(module) => ("module", module.instance),
                Clr::DomainModule(module) => ("domain module", module.instance),
                Clr::Assembly(assembly) => ("assembly", assembly.instance),
                Clr::AppDomain(domain) => ("domain", domain.instance),
                Clr::JittingStarted(method) => ("jitting", method.instance),
                Clr::Runtime(runtime) => ("runtime", Some(runtime.instance)),
                Clr::RundownBegin { instance, .. } => ("begin", instance),
                Clr::RundownComplete { instance, .. } => ("complete", instance),
                Clr::StackWalk(walk) => ("stack", Some(walk.instance)),
                Clr::TieredSettings(settings) => ("tiers", Some(settings.instance)),
                Clr::GcStart(gc) => ("gc start", gc.instance),
                Clr::GcEnd(gc) => ("gc end", gc.instance),
                Clr::HeapStats(stats) => ("heap", stats.instance),
                Clr::AllocationTick(tick) => ("tick", tick.instance),
                Clr::Suspension(suspension) => ("suspension", suspension.instance),
                Clr::SuspensionEnd { instance } => ("suspension end", instance),
                Clr::Resumption { instance } => ("resumption", instance),
                Clr::Exception(exception) => ("exception", exception.instance),
                Clr::PoolThreads(pool) => ("pool", pool.instance),
                other => panic!("no real trace had {other:?}"),
            };
            *seen.entry(kind).or_default() += 1;
            assert!(instance.is_some(), "{}: {known:?}", path.display());
        });
    }
    assert!(seen["method"] >= 44_068 + 16_702 + 578 + 10_818 + 656 + 80, "{seen:?}");
    assert!(seen["map"] >= 16_494 + 5_247, "{seen:?}");
    assert!(seen["stack"] >= 14_983, "{seen:?}");
    for kind in ["module", "domain module", "assembly", "domain", "jitting", "runtime", "tiers"] {
        assert!(seen[kind] > 0, "{kind}");
    }
}

/// The counts of an event by the names of TraceEvent, which wrote the baselines.
fn counts(recording: &Recording) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    each_event(recording, |event| {
        let Ok(Decoded::Clr(known)) = decode(event) else { return };
        let suffix = |phase| match phase {
            Phase::Load => "Load",
            Phase::Unload => "Unload",
            Phase::RundownStart => "DCStart",
            Phase::RundownEnd => "DCStop",
            other => panic!("{other:?}"),
        };
        let rundown = |phase| matches!(phase, Phase::RundownStart | Phase::RundownEnd);
        let (is_rundown, name) = match known {
            // TraceEvent leaves out what is neither compiled nor dynamic.
            Clr::Method(method) if !method.flags.is_jitted() && !method.flags.is_dynamic() => return,
            Clr::Method(method) => (rundown(method.phase), format!("Method/{}Verbose", suffix(method.phase))),
            Clr::Module(module) => (rundown(module.phase), format!("Loader/Module{}", suffix(module.phase))),
            Clr::DomainModule(module) => {
                (rundown(module.phase), format!("Loader/DomainModule{}", suffix(module.phase)))
            }
            Clr::Assembly(assembly) => {
                (rundown(assembly.phase), format!("Loader/Assembly{}", suffix(assembly.phase)))
            }
            Clr::AppDomain(domain) => {
                (rundown(domain.phase), format!("Loader/AppDomain{}", suffix(domain.phase)))
            }
            Clr::JittingStarted(_) => (false, "Method/JittingStarted".to_owned()),
            Clr::Runtime(runtime) => (!runtime.started, "Runtime/Start".to_owned()),
            Clr::RundownBegin { phase, .. } => (true, format!("Method/{}Init", suffix(phase))),
            Clr::RundownComplete { phase, .. } => (true, format!("Method/{}Complete", suffix(phase))),
            Clr::GcStart(_) => (false, "GC/Start".to_owned()),
            Clr::GcEnd(_) => (false, "GC/Stop".to_owned()),
            Clr::HeapStats(_) => (false, "GC/HeapStats".to_owned()),
            Clr::AllocationTick(_) => (false, "GC/AllocationTick".to_owned()),
            Clr::Suspension(_) => (false, "GC/SuspendEEStart".to_owned()),
            Clr::SuspensionEnd { .. } => (false, "GC/SuspendEEStop".to_owned()),
            Clr::Resumption { .. } => (false, "GC/RestartEEStop".to_owned()),
            Clr::Exception(_) => (false, "Exception/Start".to_owned()),
            Clr::PoolThreads(_) => (false, "ThreadPoolWorkerThread/Start".to_owned()),
            _ => return,
        };
        let provider = if is_rundown { "Rundown" } else { "" };
        *counts.entry(format!("Microsoft-Windows-DotNETRuntime{provider}/{name}")).or_default() += 1;
    });
    counts
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn counts_are_those_of_the_baselines() {
    for (file, baseline) in [
        (X64, "etl/perfview/net.4.5.2.x64.baseline.txt"),
        (OF_2016, "etl/perfview/net.4.5.x86-2016.baseline.txt"),
        ("etl/perfview/gcevents/PerfViewData.etl", "etl/perfview/gcevents.baseline.txt"),
        (
            "etl/perfview/gcrundownevents/PerfViewData.clrRundown.etl",
            "etl/perfview/gcrundownevents.baseline.txt",
        ),
    ] {
        let (file, baseline) = (data::file(file), data::file(baseline));
        let ours = counts(&open(&[file]));
        let is_ours = |name: &str| {
            [
                "Runtime/Method/",
                "Runtime/Loader/",
                "Runtime/Runtime/",
                "Runtime/Exception/Start",
                "Runtime/ThreadPoolWorkerThread/",
            ]
            .iter()
            .any(|part| name.replace("Rundown/", "/").contains(part))
                || [
                    "GC/Start",
                    "GC/Stop",
                    "GC/SuspendEEStart",
                    "GC/SuspendEEStop",
                    "GC/RestartEEStop",
                    "GC/HeapStats",
                    "GC/AllocationTick",
                ]
                .iter()
                .any(|part| name.ends_with(part))
        };
        let text = String::from_utf8_lossy(&fs::read(&baseline).unwrap()).into_owned();
        let mut compared = 0;
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("COUNT ")) {
            let (name, count) = line.rsplit_once(':').unwrap();
            if name.starts_with("Microsoft-Windows-DotNETRuntime") && is_ours(name) {
                assert_eq!(ours.get(name).copied(), Some(count.parse().unwrap()), "{name}");
                compared += 1;
            }
        }
        assert!(compared > 3, "{}", baseline.display());
    }
}

/// What an event said of a method.
struct Told {
    time: Ticks,
    phase: Phase,
    start: u64,
    end: u64,
    id: u64,
    name: [String; 3],
    is_precompiled: bool,
}

fn told(recording: &Recording) -> HashMap<u32, Vec<Told>> {
    let mut told: HashMap<u32, Vec<Told>> = HashMap::new();
    each_event(recording, |event| {
        let Ok(Decoded::Clr(Clr::Method(method))) = decode(event) else { return };
        let text = |text: Utf16<'_>| text.to_string();
        let name = method.name.unwrap();
        told.entry(event.pid).or_default().push(Told {
            time: event.time,
            phase: method.phase,
            start: method.start,
            end: method.start + u64::from(method.size),
            id: method.id,
            name: [text(name.type_name), text(name.method), text(name.signature)],
            is_precompiled: !method.flags.is_jitted() && !method.flags.is_dynamic(),
        });
    });
    told
}

/// The method at an address, by reading the events once for it: of the loads up to then the last one, if it was not
/// unloaded since; else an end that tells of a method which nobody saw come.
fn slow_search(told: &[Told], address: u64, time: Ticks, early: i64) -> Option<&Told> {
    let here: Vec<&Told> = told
        .iter()
        .filter(|told| !told.is_precompiled && told.start <= address && address < told.end)
        .collect();
    let loads = || here.iter().filter(|told| told.phase == Phase::Load);
    let gone = |load: &Told| {
        let end = |told: &&&Told| told.phase == Phase::Unload && told.start == load.start;
        here.iter().find(|told| told.time > load.time && end(told)).map(|told| told.time)
    };
    let live = loads().rev().find(|load| load.time.0 - early <= time.0);
    if let Some(load) = live {
        return gone(load).is_none_or(|gone| time < gone).then_some(*load);
    }
    // No load up to now: there since before, if no other method follows it in these bytes.
    let first = here.iter().find(|told| told.phase != Phase::Load)?;
    let loaded_later = loads().any(|load| load.time < first.time);
    let ended = first.phase == Phase::Unload && first.time <= time;
    (!loaded_later && !ended).then_some(first)
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_address_gets_the_method_of_a_slow_search() {
    for (file, least) in [(X64, 1_500), (OF_2016, 100)] {
        let file = data::file(file);
        let recording = open(&[file]);
        let trace = trace(&recording);
        let told = told(&recording);
        let early = trace.clock.ticks(0.010);
        let mut asked = HashSet::new();
        let mut named = 0;
        for sample in &trace.samples {
            let process = trace.runner(sample.runner).process;
            let pid = trace.process(process).unwrap().pid;
            let Some(told) = told.get(&pid) else { continue };
            let user = trace.stack(sample.stack).user;
            let stack = user.into_iter().flat_map(|user| trace.addresses.path(user));
            for address in stack.chain([sample.address]) {
                // Twice a second is enough for one address.
                let when = sample.time.0 * 2 / trace.clock.frequency as i64;
                if !asked.insert((pid, address, when)) {
                    continue;
                }
                let expected = slow_search(told, address, sample.time, early);
                let found = trace.code.at(process, address, sample.time);
                assert!(found.from <= sample.time && sample.time < found.until);
                let body = found.body.map(|id| trace.code.body(id).unwrap());
                assert_eq!(
                    body.map(|body| (body.start, body.method)),
                    expected.map(|told| (told.start, told.id)),
                    "{pid} {address:x} {:?}",
                    sample.time
                );
                if let (Some(body), Some(told)) = (body, expected) {
                    let name = trace.code.name(body).unwrap();
                    assert_eq!(
                        [name.type_name, name.method, name.signature],
                        told.name.each_ref().map(|t| &**t)
                    );
                    named += 1;
                }
            }
        }
        assert!(named > least, "only {named} addresses are in compiled code");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn methods_of_windows_11_come_from_the_rundown_alone() {
    let file = data::file(WIN11);
    let recording = open(&[file]);
    let mut events = 0;
    each_event(&recording, |event| {
        if let Ok(Decoded::Clr(Clr::Method(method))) = decode(event) {
            assert_eq!(method.phase, Phase::RundownEnd);
            events += 1;
        }
    });
    let trace = trace(&recording);
    let code = &trace.code;
    // Every process lists its methods twice.
    assert_eq!(events, 44_068);
    assert_eq!(code.bodies().len(), 44_068 / 2);
    let mut tiers: BTreeMap<Tier, usize> = BTreeMap::new();
    for (id, body) in (0..).map(BodyId).zip(code.bodies()) {
        let name = code.name(body).unwrap();
        assert!(!name.method.is_empty() && !name.type_name.is_empty(), "{body:?}");
        assert!(body.module.is_some(), "{body:?}");
        assert_eq!((body.from, body.until), (None, None));
        let middle = code.at(body.process, body.start + body.size / 2, Ticks(0));
        assert_eq!(middle.body, Some(id), "{body:?}");
        *tiers.entry(body.flags.tier()).or_default() += 1;
    }
    // Half of `cut -f flags | sort | uniq -c` of the events.
    let expected = [
        (Tier::Unknown, (3_164 + 48 + 26 + 24) / 2),
        (Tier::MinOptimized, 24 / 2),
        (Tier::Optimized, (488 + 128 + 110 + 84 + 12) / 2),
        (Tier::Tier0, (11_430 + 8_340 + 1_496) / 2),
        (Tier::Tier1, (4_606 + 1_366 + 674) / 2),
        (Tier::Tier0Instrumented, (740 + 632 + 468) / 2),
        (Tier::Tier1Instrumented, (7_684 + 1_682 + 842) / 2),
    ];
    assert_eq!(tiers, BTreeMap::from(expected));
    let hosts = trace.processes.iter().enumerate().filter_map(|(index, process)| {
        let host = code.host(etwprof::trace::ProcessId(index as u32))?;
        assert!(host.rundown.is_complete(), "{process:?}");
        Some(host.methods)
    });
    assert_eq!(hosts.sum::<usize>(), 44_068 / 2);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn four_files_of_one_session_are_one_story_of_loads_and_unloads() {
    let files = diaghub();
    let recording = open(&files);
    let told = told(&recording);
    let [told] = told.values().collect::<Vec<_>>().try_into().ok().unwrap();
    let trace = trace(&recording);
    let bodies = trace.code.bodies();
    assert_eq!(bodies.len(), 5_409);
    let unloads: Vec<&Told> = told.iter().filter(|told| told.phase == Phase::Unload).collect();
    assert_eq!(unloads.len(), 5_409);
    for body in bodies {
        let load = told.iter().find(|t| t.phase == Phase::Load && t.start == body.start).unwrap();
        let unload = unloads.iter().find(|t| t.start == body.start && t.id == body.method).unwrap();
        assert_eq!(body.until, Some(unload.time));
        assert_eq!(body.from, Some(Ticks(load.time.0 - trace.clock.ticks(0.010))));
        assert_ne!(body.flags.tier(), Tier::Unknown, "an unload has no tier and must not take it");
    }
    let mapped = bodies.iter().filter(|body| !trace.code.il_map(body).is_empty()).count();
    assert_eq!(mapped, 5_247);
    let process = bodies[0].process;
    let host = trace.code.host(process).unwrap();
    assert!(!host.rundown.has_begun() && host.was_seen_from_its_start());
    assert_eq!(host.runtimes.len(), 1);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn maps_of_il_belong_to_their_methods() {
    let file = data::file(X64);
    let trace = trace(&open(&[file]));
    let code = &trace.code;
    assert_eq!(code.bodies().len(), 16_702 + 288);
    let mapped: Vec<_> = code.bodies().iter().filter(|body| !code.il_map(body).is_empty()).collect();
    // 271 + 2 live ones and 16,221 of the rundown; two methods have both.
    assert_eq!(mapped.len(), 16_494 - 2);
    for body in mapped {
        let map = code.il_map(body);
        assert!(map.is_sorted_by_key(|(native, _)| *native));
        assert!(map.iter().all(|(native, il)| u64::from(*native) <= body.size && *il >= -3), "{body:?}");
    }
    let setup = code.bodies().iter().find(|body| body.start == 0x7f9_5eb1_0090).unwrap();
    assert_eq!(code.name(setup).unwrap().method, "SetupDomain");
    assert_eq!(code.il_map(setup).len(), 33);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn modules_and_kinds_of_code_are_known() {
    let file = data::file(OF_2016);
    let trace = trace(&open(&[file]));
    let code = &trace.code;
    let kinds = |kind| code.bodies().iter().filter(|body| body.kind == kind).count();
    // x86 has its allocation helpers generated, twenty for each of the two runtimes that started.
    assert_eq!(kinds(BodyKind::Helper), 20);
    assert!(code.bodies().iter().all(|body| body.kind == BodyKind::Helper || body.module.is_some()));
    let stub = code.bodies().iter().find(|body| body.kind == BodyKind::IlStub).unwrap();
    assert_eq!(code.name(stub).unwrap().type_name, "dynamicClass");
    let corelib = code.modules().iter().find(|module| module.name() == "mscorlib").unwrap();
    assert!(corelib.native_path.ends_with("mscorlib.ni.dll"));
    let ended = trace.processes.iter().position(|process| process.pid == 1876).unwrap();
    let host = code.host(etwprof::trace::ProcessId(ended as u32)).unwrap();
    assert_eq!((host.methods, host.rundown.has_begun()), (238, false));
}
