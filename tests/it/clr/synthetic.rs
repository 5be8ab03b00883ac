//! The rules of JIT-compiled code in time, one by one, on traces made by hand.

use std::sync::Arc;

use etwprof::event::Ticks;
use etwprof::profile::{Category, Detail, Filter, Profile, Unresolved};
use etwprof::symbols::Unnamed;
use etwprof::trace::code::{Body, CodeAt};
use etwprof::trace::{ProcessId, Trace};

use crate::support::clr::{CODE, EARLY, PID, TID, at, base, leaves, method, trace};
use crate::support::reading;
use crate::support::stacks::texts;
use crate::synth::{Bytes, Event, Image, IntoEvent, Item, Process, START, clr, guid};

fn process(trace: &Trace, pid: u32) -> ProcessId {
    let found = trace.processes.iter().position(|process| process.pid == pid);
    ProcessId(u32::try_from(found.unwrap()).unwrap())
}

fn found(trace: &Trace, address: u64, time: i64) -> CodeAt {
    let code = trace.code.at(process(trace, PID), address, Ticks(time));
    assert!(code.from.0 <= time && time < code.until.0, "the answer holds when it was asked for");
    code
}

fn body(trace: &Trace, address: u64, time: i64) -> Option<&Body> {
    found(trace, address, time).body.and_then(|id| trace.code.body(id))
}

/// The method's name at an address, `-` where there is none.
fn name(trace: &Trace, address: u64, time: i64) -> &str {
    body(trace, address, time).and_then(|body| trace.code.name(body)).map_or("-", |name| name.method)
}

fn leaf(trace: &Arc<Trace>) -> (String, Category) {
    let [leaf] = leaves(trace, Detail::default()).try_into().unwrap();
    leaf
}

#[test]
fn a_method_is_there_from_just_before_its_load_to_its_unload() {
    let trace = trace(&base().event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("M"))).event(
        0,
        at(3),
        clr::Method::unload(PID, CODE, 0x80, method("M")),
    ));
    assert_eq!(name(&trace, CODE, at(1) - EARLY - 1), "-");
    assert_eq!(name(&trace, CODE, at(1) - EARLY), "M");
    assert_eq!(name(&trace, CODE + 0x7f, at(2)), "M");
    assert_eq!(name(&trace, CODE + 0x80, at(2)), "-");
    assert_eq!(name(&trace, CODE - 1, at(2)), "-");
    assert_eq!(name(&trace, CODE, at(3)), "-");
    let code = found(&trace, CODE + 5, at(2));
    assert_eq!((code.from, code.until), (Ticks(at(1) - EARLY), Ticks(at(3))));
    assert_eq!(trace.code.bodies().len(), 1, "load and unload tell of one body");
    let before = found(&trace, CODE, at(0));
    assert_eq!(before.until, Ticks(at(1) - EARLY), "what was not there comes later");
}

#[test]
fn code_memory_is_used_again() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("A")).id(1))
            .event(0, at(2), clr::Method::unload(PID, CODE, 0x80, method("A")).id(1))
            // Sooner after the unload than code runs before its load event.
            .event(0, at(2) + EARLY / 2, clr::Method::load(PID, CODE + 0x40, 0x80, method("B")).id(2)),
    );
    assert_eq!(name(&trace, CODE + 0x50, at(2) - 1), "A");
    assert_eq!(name(&trace, CODE + 0x50, at(2)), "B");
    assert_eq!(name(&trace, CODE + 0x10, at(2)), "-");
}

#[test]
fn a_load_over_the_same_bytes_replaces_what_lost_its_unload() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::Method::load(PID, CODE, 0x40, method("A")).id(1))
            .event(0, at(1), clr::Method::load(PID, CODE + 0x40, 0x40, method("B")).id(2))
            .event(0, at(1), clr::Method::load(PID, CODE + 0x80, 0x40, method("C")).id(3))
            .event(0, at(4), clr::Method::load(PID, CODE + 0x20, 0x40, method("D")).id(4)),
    );
    let names = |time| [0x10, 0x30, 0x50, 0x70, 0x90].map(|offset| name(&trace, CODE + offset, time));
    assert_eq!(names(at(4) - 1), ["A", "A", "B", "B", "C"]);
    assert_eq!(names(at(4)), ["-", "D", "D", "-", "C"], "an overwritten method is gone as a whole");
}

#[test]
fn tiers_of_a_method_live_side_by_side() {
    let first = clr::Method::load(PID, CODE, 0x80, method("M")).id(7).version(1).tier(3);
    let second = clr::Method::load(PID, CODE + 0x1000, 0x40, method("M")).id(7).tier(4);
    let third = clr::Method::load(PID, CODE + 0x2000, 0x60, method("M")).id(7).tier(5);
    let rejit = clr::Method::load(PID, CODE + 0x3000, 0x60, method("M")).id(7).tier(2).rejit(1);
    let trace = trace(
        &base()
            .event(0, at(1), first.clone())
            .event(0, at(1) + 1, clr::il_to_native_map(PID, 7, 0, &[(-2, 0), (0, 4)]))
            .event(0, at(2), second)
            .event(0, at(2) + 1, clr::il_to_native_map(PID, 7, 0, &[(8, 30), (0, 9)]))
            .event(0, at(3), third)
            .event(0, at(4), rejit)
            // .NET Core 3.1 leaves the re-JIT id out of the map.
            .event(0, at(4) + 1, clr::il_to_native_map(PID, 7, 0, &[(3, 3)]))
            .event(0, at(5), clr::Method::unload(PID, CODE, 0x80, method("M")).id(7).version(1))
            .sampled(0, at(4) + 10, PID, TID, &[CODE])
            .sampled(0, at(4) + 20, PID, TID, &[CODE + 0x1000])
            .sampled(0, at(4) + 30, PID, TID, &[CODE + 0x2000])
            .sampled(0, at(4) + 40, PID, TID, &[CODE + 0x3000]),
    );
    for offset in [0, 0x1000, 0x2000, 0x3000] {
        assert_eq!(name(&trace, CODE + offset, at(4)), "M");
    }
    let map = |offset| trace.code.il_map(body(&trace, CODE + offset, at(4)).unwrap());
    assert_eq!(map(0), [(0, -2), (4, 0)]);
    assert_eq!(map(0x1000), [(9, 0), (30, 8)], "by native offset");
    assert_eq!(map(0x2000), []);
    assert_eq!(map(0x3000), [(3, 3)]);
    assert_eq!(name(&trace, CODE, at(5)), "-");
    assert_eq!(name(&trace, CODE + 0x1000, at(5)), "M");
    let tiers = leaves(&trace, Detail { tiers: true, ..Detail::default() });
    let tiers: Vec<&str> = tiers.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(tiers, ["[Tier0]N.T.M", "[Tier1]N.T.M", "[OSR]N.T.M", "[Optimized]N.T.M"]);
    let raw = leaves(&trace, Detail { raw: true, ..Detail::default() });
    assert!(raw.iter().all(|(text, category)| text == "N.T.M(int32)" && *category == Category::ManagedJit));
}

#[test]
fn the_cold_part_is_a_body_of_its_own() {
    let trace = trace(&base().event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("M")).id(7)).event(
        0,
        at(1),
        clr::Method::load(PID, CODE + 0x8000, 0x20, method("M")).id(7).cold(),
    ));
    assert!(!body(&trace, CODE, at(2)).unwrap().flags.is_cold());
    assert!(body(&trace, CODE + 0x8010, at(2)).unwrap().flags.is_cold());
    assert_eq!(name(&trace, CODE + 0x8010, at(2)), "M");
}

#[test]
fn live_events_and_rundowns_tell_of_one_body() {
    let load = clr::Method::load(PID, CODE, 0x80, method("M")).id(7).tier(3);
    let end = clr::Method::dc_end(PID, CODE, 0x80, method("M")).id(7).tier(3);
    let trace = trace(
        &base()
            .event(0, at(1), load.clone())
            .event(1, at(1), load)
            .event(0, at(5), clr::dc_end_init(PID))
            .event(0, at(5), end.clone())
            .event(0, at(5), clr::dc_end_complete(PID))
            .event(0, at(6), clr::dc_end_init(PID))
            .event(0, at(6), clr::il_to_native_map_dc_end(PID, 7, 0, &[(0, 0)]))
            .event(0, at(6), end)
            .event(0, at(6), clr::dc_end_complete(PID)),
    );
    let [body] = trace.code.bodies() else { panic!("{:?}", trace.code.bodies()) };
    assert_eq!((body.from, body.until), (Some(Ticks(at(1) - EARLY)), None));
    assert_eq!(trace.code.il_map(body), [(0, 0)]);
    let host = trace.code.host(process(&trace, PID)).unwrap();
    assert_eq!((host.rundown.begun, host.rundown.completed, host.methods), (2, 2, 1));
}

#[test]
fn a_rundown_applies_backwards_until_another_method_was_there() {
    let trace = trace(
        &base()
            .event(0, at(2), clr::Method::load(PID, CODE + 0x100, 0x80, method("Old")).id(1))
            .event(0, at(3), clr::Method::unload(PID, CODE + 0x100, 0x80, method("Old")).id(1))
            .event(0, at(9), clr::Method::dc_end(PID, CODE, 0x80, method("M")).id(2))
            .event(0, at(9), clr::Method::dc_end(PID, CODE + 0x140, 0x80, method("New")).id(3)),
    );
    assert_eq!(name(&trace, CODE, START), "M");
    assert_eq!(found(&trace, CODE, START).from, Ticks(i64::MIN));
    assert_eq!(name(&trace, CODE + 0x150, at(1)), "-");
    assert_eq!(name(&trace, CODE + 0x150, at(2)), "Old");
    assert_eq!(name(&trace, CODE + 0x150, at(3)), "New", "its load was not seen, but the bytes were free");
}

#[test]
fn an_unload_alone_tells_that_a_method_was_there() {
    let trace = trace(&base().event(0, at(2), clr::Method::unload(PID, CODE, 0x80, method("M"))));
    assert_eq!(name(&trace, CODE, START), "M");
    assert_eq!(name(&trace, CODE, at(2)), "-");
}

#[test]
fn a_start_rundown_is_there_from_the_beginning() {
    let trace = trace(&base().event(0, at(2), clr::Method::dc_start(PID, CODE, 0x80, method("M"))).event(
        0,
        at(4),
        clr::Method::unload(PID, CODE, 0x80, method("M")),
    ));
    assert_eq!(name(&trace, CODE, START), "M");
    assert_eq!(name(&trace, CODE, at(4) - 1), "M");
    assert_eq!(name(&trace, CODE, at(4)), "-");
}

#[test]
fn precompiled_code_does_not_hide_its_image() {
    let image = r"\Device\HarddiskVolume3\dotnet\Lib.dll";
    let precompiled = clr::Method::dc_end(PID, CODE + 0x1000, 0x80, method("M")).module(0x55).flags(0);
    let trace = trace(
        &base()
            .event(0, START + 20, Image::dc_start(PID, CODE, 0x10000, image))
            .event(0, at(9), clr::Module::dc_end(PID, 0x55, r"C:\dotnet\Lib.dll").flags(0x28))
            .event(0, at(9), precompiled)
            .sampled(0, at(1), PID, TID, &[CODE + 0x1010])
            .sampled(0, at(2), PID, TID, &[CODE + 0x2000]),
    );
    assert_eq!(name(&trace, CODE + 0x1010, at(1)), "-");
    let pid = process(&trace, PID);
    assert!(trace.code.precompiled_at(pid, CODE + 0x1010, Ticks(at(1))).body.is_some());
    assert_eq!(
        leaves(&trace, Detail::default()),
        [
            ("Lib!N.T.M".to_owned(), Category::ManagedPrecompiled),
            ("Lib!0x2000".to_owned(), Category::ManagedPrecompiled),
        ],
        "a name where the image has none, and the image where the runtime has none"
    );
    let tiers = leaves(&trace, Detail { tiers: true, ..Detail::default() });
    assert_eq!(tiers[0].0, "Lib![R2R]N.T.M");

    /// An image with symbols.
    struct Symbols(Vec<etwprof::symbols::Function>);
    impl etwprof::symbols::Names for Symbols {
        fn functions(&self, _: etwprof::trace::ModuleId, _: u64) -> Vec<&etwprof::symbols::Function> {
            self.0.iter().collect()
        }
    }
    let function = etwprof::symbols::Function {
        name: etwprof::symbols::FunctionName::Text("FromThePdb".into()),
        evidence: etwprof::symbols::Evidence::Pdb,
        certainty: etwprof::symbols::Certainty::Exact,
        assembly: None,
        file: None,
        line: None,
        start: None,
        inlined: false,
    };
    let profile = Profile::new(&trace, &Filter::default(), &Symbols(vec![function]));
    let stacks = profile.samples.iter().flat_map(|sample| texts(&profile, sample.stack, Detail::default()));
    let stacks: Vec<String> = stacks.collect();
    assert!(stacks.iter().all(|frame| frame == "Lib!FromThePdb"), "{stacks:?}");
}

#[test]
fn an_image_mapped_later_is_not_old_code() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("M")))
            .event(0, at(3), Image::load(PID, CODE, 0x1000, r"\Device\HarddiskVolume3\later.dll"))
            .sampled(0, at(2), PID, TID, &[CODE])
            .sampled(0, at(4), PID, TID, &[CODE]),
    );
    let texts: Vec<String> = leaves(&trace, Detail::default()).into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["N.T.M", "later!0x0"]);
}

#[test]
fn a_return_address_belongs_to_the_method_of_its_call() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("Caller")).id(1))
            .event(0, at(1), clr::Method::load(PID, CODE + 0x80, 0x80, method("Next")).id(2))
            .sampled(0, at(2), PID, TID, &[CODE + 0x90, CODE + 0x80]),
    );
    let profile = Profile::new(&trace, &Filter::default(), &Unnamed);
    let texts = texts(&profile, profile.samples[0].stack, Detail::default());
    assert_eq!(texts, ["N.T.Next", "N.T.Caller"]);
}

fn cause(trace: &Arc<Trace>) -> Unresolved {
    let profile = Profile::new(trace, &Filter::default(), &Unnamed);
    let frames = profile.stacks.frames();
    let [cause] = frames.iter().filter_map(|frame| frame.unresolved).collect::<Vec<_>>()[..] else {
        panic!("{frames:?}");
    };
    let resolution = &profile.resolution()[&process(trace, PID)];
    assert_eq!(resolution.unresolved[&cause], 1);
    cause
}

#[test]
fn why_code_has_no_name() {
    let unknown = CODE + 0x10_0000;
    let sampled = || base().sampled(0, at(2), PID, TID, &[unknown]);
    let load = || clr::Method::load(PID, CODE, 0x80, method("M"));
    let runtime = Image::dc_start(PID, 0x7ffb_0000_0000, 0x1000, r"\Device\HarddiskVolume3\coreclr.dll");
    let end = || Process::end(PID, "a.exe");
    assert_eq!(cause(&trace(&sampled())), Unresolved::OutsideImages);
    assert_eq!(cause(&trace(&sampled().event(0, START + 20, runtime))), Unresolved::RuntimeNotAsked);
    assert_eq!(cause(&trace(&sampled().event(0, at(1), load()))), Unresolved::NoRundown);
    let ended = sampled().event(0, at(1), load()).event(0, at(3), end());
    assert_eq!(cause(&trace(&ended)), Unresolved::EndedBeforeRundown);
    let begun = sampled().event(0, at(4), clr::dc_end_init(PID));
    assert_eq!(cause(&trace(&begun)), Unresolved::RundownCutShort);
    let twice =
        begun.clone().event(0, at(5), clr::dc_end_complete(PID)).event(0, at(6), clr::dc_end_init(PID));
    assert_eq!(cause(&trace(&twice)), Unresolved::RundownCutShort);
    let complete = begun.event(0, at(5), clr::dc_end_complete(PID));
    assert_eq!(cause(&trace(&complete)), Unresolved::UnknownCode);
    assert_eq!(cause(&trace(&complete.lost(3, 0))), Unresolved::EventsLost);
    let from_its_start = sampled()
        .event(0, at(1), clr::runtime_start(PID, "a", "coreclr.dll"))
        .event(0, at(1), load())
        .event(0, at(3), end());
    assert_eq!(cause(&trace(&from_its_start)), Unresolved::UnknownCode);
}

#[test]
fn a_process_that_ended_before_the_rundown_keeps_its_live_methods() {
    let trace = trace(
        &base()
            .event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("M")))
            .sampled(0, at(2), PID, TID, &[CODE])
            .event(0, at(3), Process::end(PID, "a.exe"))
            // Another process gets its id, and another method its address.
            .event(0, at(4), Process::start(PID, "b.exe"))
            .event(0, at(8), clr::dc_end_init(PID))
            .event(0, at(8), clr::Method::dc_end(PID, CODE, 0x80, method("Other")))
            .event(0, at(8), clr::dc_end_complete(PID)),
    );
    assert_eq!(leaf(&trace).0, "N.T.M");
    let [first, second] = trace.code.bodies() else { panic!() };
    assert_ne!(first.process, second.process);
    let host = |body: &Body| trace.code.host(body.process).unwrap().rundown.is_complete();
    assert_eq!([first, second].map(host), [false, true]);
    let at_end = trace.code.at(second.process, CODE, Ticks(at(6)));
    assert_eq!(at_end.body.and_then(|id| trace.code.body(id)).map(|body| body.start), Some(CODE));
}

#[test]
fn two_runtimes_in_a_process_have_their_own_methods() {
    let desktop = clr::Method::load(PID, CODE, 0x80, method("A")).id(7).instance(3);
    let core = clr::Method::load(PID, CODE + 0x1000, 0x80, method("B")).id(7).instance(9);
    let trace = trace(&base().event(0, at(1), desktop).event(0, at(1), core));
    let of = |address| body(&trace, address, at(2)).map(|body| body.instance);
    assert_eq!([of(CODE), of(CODE + 0x1000)], [Some(Some(3)), Some(Some(9))]);
    assert_eq!(name(&trace, CODE, at(2)), "A");
    assert_eq!(name(&trace, CODE + 0x1000, at(2)), "B");
}

#[test]
fn modules_are_found_by_process_handle_and_time() {
    const OTHER: u32 = 77;
    let load = |pid, offset| clr::Method::load(pid, CODE + offset, 0x80, method("M")).module(0x55);
    let trace = trace(
        &base()
            .event(0, START + 10, Process::dc_start(OTHER, "b.exe"))
            .event(0, at(1), clr::Module::load(PID, 0x55, r"C:\one.dll"))
            .event(0, at(1), clr::Module::load(OTHER, 0x55, r"C:\dir\other.exe"))
            .event(0, at(2), load(PID, 0))
            .event(0, at(2), load(OTHER, 0))
            .event(0, at(3), clr::Module::unload(PID, 0x55, r"C:\one.dll"))
            .event(0, at(4), clr::assembly_load(PID, 0x66, 1, "Two.Parts, Version=1.0.0.0"))
            .event(0, at(4), clr::Module::load(PID, 0x55, "").assembly(0x66).flags(4))
            .event(0, at(5), load(PID, 0x1000)),
    );
    let module = |pid, offset| {
        let code = trace.code.at(process(&trace, pid), CODE + offset, Ticks(at(6)));
        let body = trace.code.body(code.body.unwrap()).unwrap();
        trace.code.module(body.module.unwrap()).unwrap().name()
    };
    assert_eq!(module(PID, 0), "one");
    assert_eq!(module(OTHER, 0), "other");
    assert_eq!(module(PID, 0x1000), "Two.Parts");
}

#[test]
fn stubs_dynamic_methods_and_nameless_ones_are_shown_as_what_they_are() {
    let dynamic = |name| ["dynamicClass", name, "void  ()"];
    let trace = trace(
        &base()
            .event(0, at(1), clr::Module::load(PID, 0x55, r"C:\App.dll"))
            .event(
                0,
                at(1),
                clr::Method::load(PID, CODE, 0x80, dynamic("IL_STUB_PInvoke")).flags(9).module(0x55),
            )
            .event(0, at(1), clr::Method::load(PID, CODE + 0x100, 0x80, dynamic("lambda_method")).flags(9))
            .event(0, at(1), clr::Method::load(PID, CODE + 0x200, 0x80, method("M")).nameless().module(0x55))
            .event(0, at(1), clr::Method::load(PID, CODE + 0x300, 0x80, ["NULL", "@Box", "NULL"]).flags(0x10))
            .sampled(0, at(2), PID, TID, &[CODE])
            .sampled(0, at(3), PID, TID, &[CODE + 0x100])
            .sampled(0, at(4), PID, TID, &[CODE + 0x200])
            .sampled(0, at(5), PID, TID, &[CODE + 0x300]),
    );
    let leaves = leaves(&trace, Detail { raw: true, ..Detail::default() });
    let expected = [
        ("App!dynamicClass.IL_STUB_PInvoke()", Category::Stub),
        ("dynamicClass.lambda_method()", Category::ManagedJit),
        ("App!method 0x06000001", Category::ManagedJit),
        ("@Box", Category::Stub),
    ];
    assert_eq!(leaves, expected.map(|(text, category)| (text.to_owned(), category)));
}

#[test]
fn events_of_net_framework_2_are_in_the_runtime_provider() {
    let clr_2 = |id: u16, opcode: u8, payload: fn(Bytes) -> Bytes| {
        let provider = guid("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
        Event::manifest(provider, id, 0, payload).opcode(opcode).by(PID, TID)
    };
    let verbose = |bytes: Bytes| {
        let bytes = bytes.u64(7).u64(0x55).u64(CODE).u32(0x80).u32(0x0600_0001).u32(8);
        bytes.utf16z("N.T").utf16z("M").utf16z("void  ()")
    };
    let plain = |bytes: Bytes| bytes.u64(8).u64(0x55).u64(CODE + 0x100).u32(0x80).u32(0x0600_0002).u32(8);
    let module = |bytes: Bytes| bytes.u64(0x55).u64(0x66).u32(8).u32(0).utf16z(r"C:\old.dll").utf16z("");
    let trace = trace(
        &base()
            .event(0, at(5), clr_2(140, 40, verbose))
            .event(0, at(5), clr_2(138, 36, plain))
            .event(0, at(5), clr_2(150, 36, module))
            .event(0, at(6), clr_2(136, 15, |bytes| bytes))
            .sampled(0, at(2), PID, TID, &[CODE]),
    );
    assert_eq!(leaf(&trace), ("old!N.T.M".to_owned(), Category::ManagedJit));
    assert_eq!(trace.code.bodies().len(), 2);
    assert!(trace.code.host(process(&trace, PID)).unwrap().rundown.is_complete());
}

/// A record of a JavaScript engine.
fn javascript(id: u16, payload: impl Fn(Bytes) -> Bytes + 'static) -> Event {
    let provider = guid("57277741-3638-4a4b-bdba-0ac6e45da56c");
    Event::manifest(provider, id, 0, payload).by(PID, TID)
}

fn function(start: u64, size: u64, name: &'static str) -> impl Fn(Bytes) -> Bytes {
    move |bytes| {
        let bytes = bytes.ptr(0xC0).ptr(start).u64(size).u32(0).u16(0).u16(0);
        bytes.u64(5).u32(12).u32(3).utf16z(name)
    }
}

fn source(bytes: Bytes) -> Bytes {
    bytes.u64(5).ptr(0xC0).u32(0).utf16z("file:///C:/app/server.js")
}

#[test]
fn scripts_are_named_and_their_code_moves() {
    let trace = trace(
        &base()
            .event(0, at(1), javascript(41, source))
            .event(0, at(1), javascript(9, function(CODE, 0x80, "~f")))
            .event(0, at(1), javascript(9, function(CODE + 0x80, 0x80, "g")))
            // The collector moved g; no unload tells it.
            .event(0, at(3), javascript(9, function(CODE + 0x40, 0x80, "g")))
            .sampled(0, at(2), PID, TID, &[CODE + 0x10])
            .sampled(0, at(4), PID, TID, &[CODE + 0x50]),
    );
    assert_eq!(name(&trace, CODE + 0x90, at(2)), "g");
    assert_eq!(name(&trace, CODE + 0x10, at(4)), "-");
    let expected = [("server.js!~f", Category::JavaScript), ("server.js!g", Category::JavaScript)];
    assert_eq!(leaves(&trace, Detail::default()), expected.map(|(text, kind)| (text.to_owned(), kind)));
    let host = trace.code.host(process(&trace, PID)).unwrap();
    assert!(!host.is_clr());
    assert_eq!((host.methods, host.functions), (0, 3));
}

#[test]
fn v8_tells_the_same_by_name() {
    let by_name = |name: &'static str, event: Event| event.item(Item::schema(name, &[]));
    let trace = trace(
        &base()
            .event(0, at(1), by_name("SourceLoad", javascript(0, source)))
            .event(0, at(1), by_name("MethodLoad", javascript(0, function(CODE, 0x80, "*hot"))))
            .sampled(0, at(2), PID, TID, &[CODE]),
    );
    assert_eq!(leaf(&trace), ("server.js!*hot".to_owned(), Category::JavaScript));
}

#[test]
fn cut_and_odd_events_cost_themselves_only() {
    let short = |bytes: Bytes| bytes.u64(1).u64(2);
    let provider = guid("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
    let huge = clr::Method::load(PID, u64::MAX - 4, u32::MAX, method("Huge"));
    let empty = clr::Method::load(PID, CODE + 8, 0, method("Empty"));
    let etl = base()
        .event(0, at(1), clr::Method::load(PID, CODE, 0x80, method("M")))
        .event(0, at(2), huge)
        .event(0, at(2), empty)
        .event(0, at(3), Event::manifest(provider, 143, 2, short).by(PID, TID));
    let trace = reading::synthetic(etl);
    assert_eq!(trace.lost.malformed_events, 1);
    assert_eq!(name(&trace, CODE + 8, at(4)), "M");
    assert_eq!(trace.code.bodies().len(), 3);
}
