//! .NET frames of a profile: what they are called, wherever their names come from.

use std::sync::Arc;

use etwprof::profile::{Detail, Filter, Grouping, Profile};
use etwprof::report::Spelling;
use etwprof::symbols::{Evidence, Function, FunctionName, Names, RawName};
use etwprof::trace::{ModuleId, Trace};

use crate::support::clr::{CODE, PID, TID, at, base, leaves, method, trace};
use crate::support::stacks::exact;
use crate::synth::{Event, Image, START, clr};

#[test]
fn overloads_are_told_apart_and_a_tier_up_is_one_node() {
    /// The image's tables name the precompiled code of the method that is compiled again.
    struct Tables;
    impl Names for Tables {
        fn functions(&self, _: ModuleId, _: u64) -> Vec<&Function> {
            static FUNCTIONS: std::sync::OnceLock<Vec<Function>> = std::sync::OnceLock::new();
            let functions = FUNCTIONS.get_or_init(|| {
                let name = RawName {
                    type_name: "N.T".into(),
                    method: "Run".into(),
                    type_args: String::new(),
                    signature: "void  (int32)".into(),
                };
                let name = FunctionName::Method(Arc::new(name));
                vec![exact(name, Evidence::R2r)]
            });
            functions.iter().collect()
        }
    }
    let lib = r"C:\dotnet\Lib.dll";
    let image = 0x7FFD_9000_0000;
    let compiled = |offset: u64, name, signature| {
        clr::Method::load(PID, CODE + offset, 0x80, ["N.T", name, signature]).module(0x55).id(offset + 1)
    };
    let recording = base()
        .event(0, START + 20, Image::dc_start(PID, image, 0x10000, r"\Device\HarddiskVolume3\dotnet\Lib.dll"))
        .event(0, at(1), clr::Module::load(PID, 0x55, lib).flags(0x28))
        .event(0, at(1), compiled(0, "Run", "void  (int32)"))
        .event(0, at(1), compiled(0x100, "Run", "void  (class System.String)"))
        .event(0, at(1), compiled(0x200, "Stop", "void  ()"));
    let addresses = [image + 0x1000, CODE, CODE + 0x100, CODE + 0x200];
    let recording = addresses
        .iter()
        .zip((at(2)..).step_by(100))
        .fold(recording, |recording, (address, time)| recording.sampled(0, time, PID, TID, &[*address]));
    let trace = trace(&recording);
    let profile = Profile::new(&trace, &Filter::default(), &Tables);
    let nodes = |detail: Detail| -> Vec<(String, i64)> {
        let (tree, _) = profile.tree(Grouping::default(), detail);
        let spelling = Spelling::new(&profile, detail);
        let node = |id: &_| tree.node(*id).map(|node| (spelling.text(node.entry), node.leaf));
        tree.roots().iter().filter_map(node).collect()
    };
    let expected = |nodes: &[(&str, i64)]| -> Vec<(String, i64)> {
        nodes.iter().map(|(text, count)| (format!("Lib!{text}"), *count)).collect()
    };
    assert_eq!(
        nodes(Detail::default()),
        expected(&[("N.T.Run(int)", 2), ("N.T.Run(string)", 1), ("N.T.Stop", 1)])
    );
    let tiers = nodes(Detail { tiers: true, ..Detail::default() });
    assert!(tiers.contains(&("Lib![R2R]N.T.Run(int)".into(), 1)), "{tiers:?}");
    assert_eq!(tiers.len(), 4);
    let parameters = nodes(Detail { parameters: true, ..Detail::default() });
    assert_eq!(parameters[2].0, "Lib!N.T.Stop()");
    let raw = nodes(Detail { raw: true, ..Detail::default() });
    assert_eq!(raw[0], ("Lib!N.T.Run(int32)".into(), 2));
}

/// R2RGetEntryPoint tells starts only: each method reaches to the next, or to the end of its image.
#[test]
fn entry_points_name_the_code_behind_them() {
    let image = |name: &str| format!(r"\Device\HarddiskVolume3\dotnet\{name}.dll");
    let entry = |method: u64, offset: u64, name: &'static str| {
        clr::r2r_entry_point(PID, method, CODE + offset, ["N.T", name, "void  ()"])
    };
    let recording = |seen_from_its_start: bool| {
        let mut recording = base()
            .event(0, START + 20, Image::dc_start(PID, CODE, 0x10000, &image("Lib")))
            .event(0, START + 20, Image::dc_start(PID, CODE + 0x10000, 0x10000, &image("Next")))
            .event(0, at(1), entry(1, 0x1000, "First"))
            .event(0, at(1), entry(2, 0x3000, "Third"))
            .event(0, at(1), entry(3, 0x2000, "Second"))
            .event(
                0,
                at(9),
                clr::Method::dc_end(PID, CODE + 0x2000, 0x40, method("Told")).module(0x55).flags(0),
            );
        if seen_from_its_start {
            recording =
                recording.event(0, at(1), clr::runtime_start(PID, "app.exe", r"C:\dotnet\coreclr.dll"));
        }
        let addresses = [0x0800, 0x1010, 0x2010, 0x2050, 0x3010, 0x10010];
        let samples = addresses.iter().zip((at(2)..).step_by(100));
        trace(&samples.fold(recording, |recording, (offset, time)| {
            recording.sampled(0, time, PID, TID, &[CODE + offset])
        }))
    };
    let texts = |trace: &Arc<Trace>, detail| -> Vec<String> {
        leaves(trace, detail).into_iter().map(|(text, _)| text).collect()
    };
    let attached = recording(false);
    let expected =
        ["Lib!0x800", "Lib!~N.T.First", "Lib!N.T.Told", "Lib!0x2050", "Lib!~N.T.Third", "Next!0x10"];
    assert_eq!(
        texts(&attached, Detail::default()),
        expected,
        "others may have been called before the recording"
    );
    let started = recording(true);
    let expected = ["Lib!0x800", "Lib!N.T.First", "Lib!N.T.Told", "Lib!0x2050", "Lib!N.T.Third", "Next!0x10"];
    assert_eq!(texts(&started, Detail::default()), expected);
    let tiers = texts(&started, Detail { tiers: true, ..Detail::default() });
    assert_eq!(tiers[1], "Lib![R2R]N.T.First");
}

/// Whatever symbols and events say of the same address, the better evidence names it; symbols do where it is the same.
#[test]
fn the_better_evidence_names_an_address() {
    struct Says(Vec<Function>);
    impl Names for Says {
        fn functions(&self, _: ModuleId, _: u64) -> Vec<&Function> {
            self.0.iter().collect()
        }
    }
    let symbols = |evidence| {
        let name = match evidence {
            Evidence::Token => FunctionName::Token(0x0600_00DC),
            Evidence::FunctionTable => FunctionName::Start(0x1000),
            _ => FunctionName::Text("Symbols".into()),
        };
        Says(vec![exact(name, evidence)])
    };
    let image = Image::dc_start(PID, CODE, 0x10000, r"\Device\HarddiskVolume3\dotnet\Lib.dll");
    let recording = |events: Vec<Event>| {
        let recording = base().event(0, START + 20, image.clone()).event(
            0,
            at(1),
            clr::Module::load(PID, 0x55, r"C:\dotnet\Lib.dll").flags(0x28),
        );
        let recording =
            events.into_iter().fold(recording, |recording, event| recording.event(0, at(1), event));
        trace(&recording.sampled(0, at(2), PID, TID, &[CODE + 0x1010]))
    };
    let body = || clr::Method::dc_end(PID, CODE + 0x1000, 0x100, method("Told")).module(0x55).flags(0);
    let listed = recording(vec![body().into()]);
    let without_name = recording(vec![body().nameless().token(0x0600_0042).into()]);
    let entry = || clr::r2r_entry_point(PID, 1, CODE + 0x1000, method("Told"));
    let nearest_entry = recording(vec![entry()]);
    let entry = recording(vec![clr::runtime_start(PID, "a.exe", r"C:\dotnet\coreclr.dll"), entry()]);

    use Evidence::*;
    let order = [
        Pdb,
        Dwarf,
        R2r,
        Ngen,
        CodeEvent,
        Public,
        EntryPoint,
        Token,
        NearestEntryPoint,
        Export,
        FunctionTable,
    ];
    for (trace, event) in [
        (&listed, CodeEvent),
        (&entry, EntryPoint),
        (&without_name, Token),
        (&nearest_entry, NearestEntryPoint),
    ] {
        for (place, evidence) in order.into_iter().enumerate() {
            let profile = Profile::new(trace, &Filter::default(), &symbols(evidence));
            let frame = profile.stacks.leaf(profile.samples[0].stack).unwrap();
            let by_event = order.iter().position(|other| *other == event).unwrap() < place;
            let expected = if by_event { event } else { evidence };
            assert_eq!(
                frame.evidence,
                Some(expected),
                "an event that is {event:?}, symbols that are {evidence:?}"
            );
        }
    }
}
