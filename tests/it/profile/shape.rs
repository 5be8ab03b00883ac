//! What shapes make of stacks, worked out by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use etwprof::profile::patterns::{Recipe, RecipeText};
use etwprof::profile::{
    Arranged, Detail, Entry, Filter, Focus, FrameId, FrameSet, Grouping, Part, Patterns, Profile, Shape,
};
use etwprof::report::{Spelling, folded, verbose};
use etwprof::symbols::{Evidence, Function, FunctionName, Names};
use etwprof::trace::{ModuleId, Trace};
use etwprof::{Analysis, Options};

use crate::support::reading;
use crate::support::stacks::{exact, machine};
use crate::synth::{Image, START};

/// Where each image is; a function is 0x100 bytes.
const IMAGES: [(&str, u32, u64, &str); 6] = [
    ("K", 0, 0xffff_8000_0000_0000, r"\SystemRoot\system32\ntoskrnl.exe"),
    ("A", 40, 0x40_0000, r"C:\app\a.exe"),
    ("L", 40, 0x50_0000, r"C:\app\bin\lib.dll"),
    // Without its ending nobody knows where threads start, and no stack is broken.
    ("N", 40, 0x60_0000, r"C:\Windows\System32\ntdll"),
    ("W", 40, 0x70_0000, r"C:\Windows\System32\wow64cpu.dll"),
    ("B", 50, 0x40_0000, r"C:\other\b.exe"),
];

/// `A0` is the first function of image A.
fn address(name: &str) -> u64 {
    let (image, number) = name.split_at(1);
    let base = IMAGES.iter().find(|(letter, ..)| *letter == image).unwrap().2;
    base + 0x100 * number.parse::<u64>().unwrap() + 0x10
}

struct Table(BTreeMap<(ModuleId, u64), Function>);

impl Names for Table {
    fn functions(&self, module: ModuleId, rva: u64) -> Vec<&Function> {
        self.0.get(&(module, rva / 0x100)).into_iter().collect()
    }
}

/// A profile of samples: process and thread, and the stack from its root on.
fn profile(samples: &[(u32, u32, &str)]) -> Profile {
    let mut etl = machine();
    for (_, process, base, path) in IMAGES {
        etl = etl.event(0, START + 2, Image::dc_start(process, base, 0x1000, path));
    }
    for (number, (process, thread, stack)) in (1..).zip(samples) {
        let frames: Vec<u64> = stack.split_whitespace().rev().map(address).collect();
        etl = etl.sampled(0, START + 1000 * number, *process, *thread, &frames);
    }
    let trace: Arc<Trace> = reading::synthetic(etl);
    let mut names = BTreeMap::new();
    for (number, module) in (0..).map(ModuleId).zip(&trace.modules) {
        let letter = module.name()[..1].to_uppercase();
        let letter = if module.kernel { "K".to_owned() } else { letter };
        for function in 0..16 {
            let name = FunctionName::Text(format!("{letter}{function}").into());
            names.insert((number, function), exact(name, Evidence::Pdb));
        }
    }
    Profile::new(&trace, &Filter::default(), &Table(names))
}

fn lines(profile: &Profile, arranged: &Arranged) -> Vec<String> {
    let labels = Spelling::new(profile, Detail::default()).with_groups(&arranged.groups);
    let mut out = Vec::new();
    folded::write(&mut out, &arranged.counts, &labels).unwrap();
    let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Checks the folded stacks, and that every sample is accounted for.
#[track_caller]
fn assert_shape(samples: &[(u32, u32, &str)], shape: &Shape, expected: &[&str]) {
    let profile = profile(samples);
    let arranged = profile.arrange(shape);
    assert_eq!(lines(&profile, &arranged), expected);
    assert_whole(&profile, &arranged);
}

#[track_caller]
fn assert_whole(profile: &Profile, arranged: &Arranged) {
    let balance = arranged.balance;
    assert_eq!(balance.total, balance.kept + balance.idle + balance.filtered);
    assert_eq!(arranged.counts.total(), balance.kept as i64);
    let parts = balance.stacks;
    assert_eq!(
        parts.user_only + parts.kernel_and_user + parts.kernel_only + parts.none,
        balance.kept,
        "{balance:?}"
    );
    assert!(arranged.values.total() <= profile.total());
}

fn frames(profile: &Profile, names: &[&str]) -> FrameSet {
    let spelling = Spelling::new(profile, Detail::default());
    let all = (0..profile.stacks.frames().len() as u32).map(FrameId);
    all.filter(|id| names.iter().any(|name| spelling.text(Entry::Frame(*id)).ends_with(name))).collect()
}

#[test]
fn stacks_stand_below_what_they_are_grouped_by() {
    let samples = [(40, 41, "N0 A0"), (40, 42, "N0 A0 K0"), (50, 51, "B0")];
    for (grouping, expected) in [
        (Grouping::None, &["b!B0 1", "ntdll!N0;a!A0 1", "ntdll!N0;a!A0;ntoskrnl!K0 1"][..]),
        (
            Grouping::Process,
            &["a.exe (40);ntdll!N0;a!A0 1", "a.exe (40);ntdll!N0;a!A0;ntoskrnl!K0 1", "b.exe (50);b!B0 1"],
        ),
        (
            Grouping::Thread,
            &[
                "a.exe (40);thread 41;ntdll!N0;a!A0 1",
                "a.exe (40);thread 42;ntdll!N0;a!A0;ntoskrnl!K0 1",
                "b.exe (50);thread 51;b!B0 1",
            ],
        ),
        (Grouping::Module, &["a;ntdll!N0;a!A0 1", "b;b!B0 1", "ntoskrnl;ntdll!N0;a!A0;ntoskrnl!K0 1"]),
        (
            Grouping::Category,
            &["kernel;ntdll!N0;a!A0;ntoskrnl!K0 1", "native;b!B0 1", "native;ntdll!N0;a!A0 1"],
        ),
    ] {
        assert_shape(&samples, &Shape { grouping, ..Shape::default() }, expected);
    }
}

/// Glue folds where it leads somewhere; a leaf stays, for its time is its own.
#[test]
fn glue_folds_but_at_the_leaf() {
    let samples = [(40, 41, "W0 N0 A0 W1 W2 A1"), (40, 41, "N0 W0")];
    let shape = Shape { fold_glue: true, ..Shape::default() };
    assert_shape(&samples, &shape, &["ntdll!N0;a!A0;a!A1 1", "ntdll!N0;wow64cpu!W0 1"]);
}

#[test]
fn the_kernel_folds_at_its_border() {
    let samples = [(40, 41, "A0 N0 K0 K1"), (40, 41, "A0 N0"), (4, 5, "K0 K1"), (40, 41, "A0 K0 A1 K1")];
    let shape = Shape { fold_kernel: true, ..Shape::default() };
    // What the kernel called back belongs to the call of the kernel.
    assert_shape(&samples, &shape, &["[kernel] 1", "a!A0 1", "a!A0;ntdll!N0 2"]);
}

#[test]
fn what_is_not_the_programs_own_is_one_node_for_each_way_in() {
    let samples = [(40, 41, "N0 N1 A0 L0 N2 K0"), (40, 41, "N0 N1 A0 N3 A1"), (50, 51, "B0 K0")];
    let shape = Shape { own_code: true, grouping: Grouping::Process, ..Shape::default() };
    assert_shape(
        &samples,
        &shape,
        &[
            "a.exe (40);OTHER <<ntdll!N0>>;a!A0;OTHER <<ntdll!N3>>;a!A1 1",
            "a.exe (40);OTHER <<ntdll!N0>>;a!A0;lib!L0;OTHER <<ntdll!N2>> 1",
            "b.exe (50);b!B0;OTHER <<ntoskrnl!K0>> 1",
        ],
    );
}

#[test]
fn recursion_shows_once() {
    let samples = [(40, 41, "A0 A1 A1 A1 A2"), (40, 41, "A0 A1 A2 A1 A2 L0")];
    let shape = Shape { fold_recursion: true, ..Shape::default() };
    assert_shape(&samples, &shape, &["a!A0;a!A1;a!A2 1", "a!A0;a!A1;a!A2;lib!L0 1"]);
}

#[test]
fn one_function_with_its_callers_and_its_callees() {
    let samples = [(40, 41, "A0 A7 A1 A7 A2"), (40, 41, "A0 A7"), (40, 41, "A0 A3"), (50, 51, "B0")];
    let profile = profile(&samples);
    let functions = frames(&profile, &["!A7"]);
    for (part, inverted, expected) in [
        (Part::Through, false, &["a!A0;a!A7 1", "a!A0;a!A7;a!A2 1"][..]),
        (Part::From, false, &["a!A7 1", "a!A7;a!A1;a!A7;a!A2 1"]),
        (Part::Callers, true, &["a!A7;a!A0 2"]),
    ] {
        let focus = Some(Focus { functions: functions.clone(), part });
        let arranged = profile.arrange(&Shape { focus, inverted, ..Shape::default() });
        assert_eq!(lines(&profile, &arranged), expected, "{part:?}");
        assert_eq!((arranged.balance.kept, arranged.balance.filtered), (2, 2));
        assert_whole(&profile, &arranged);
    }
}

/// Whoever asks for glue sees it.
#[test]
fn glue_in_focus_does_not_fold() {
    let profile = profile(&[(40, 41, "N0 W0 A0")]);
    let functions = frames(&profile, &["!W0"]);
    let focus = Some(Focus { functions, part: Part::From });
    let arranged = profile.arrange(&Shape { focus, fold_glue: true, ..Shape::default() });
    assert_eq!(lines(&profile, &arranged), ["wow64cpu!W0;a!A0 1"]);
}

#[test]
fn callees_come_first_when_inverted() {
    let samples = [(40, 41, "A0 A1 A2"), (40, 41, "A3 A2")];
    let shape = Shape { inverted: true, grouping: Grouping::Process, ..Shape::default() };
    assert_shape(&samples, &shape, &["a.exe (40);a!A2;a!A1;a!A0 1", "a.exe (40);a!A2;a!A3 1"]);
}

/// Patterns see processes and threads, whatever the grouping shows of them, and full paths of modules.
#[test]
fn patterns_see_what_perfview_shows() {
    let samples = [(40, 41, "N0 A0 L0"), (40, 42, "N0 A0 K0"), (50, 51, "B0")];
    let profile = profile(&samples);
    for (text, grouping, expected) in [
        (
            RecipeText {
                inc: "Process% a (40)".into(),
                group: r"\app\%!->;!=>OTHER".into(),
                ..RecipeText::default()
            },
            Grouping::Process,
            // `%` stops at a backslash: what lies in a folder below is none of the program's own.
            &[
                "a.exe (40);OTHER <<ntdll!N0>>;a!A0;OTHER <<lib!L0>> 1",
                "a.exe (40);OTHER <<ntdll!N0>>;a!A0;OTHER <<ntoskrnl!K0>> 1",
            ][..],
        ),
        (
            RecipeText {
                exc: "Thread (41)".into(),
                group: "{%}!->module $1".into(),
                ..RecipeText::default()
            },
            Grouping::None,
            &["module b 1", "module ntdll;module a;module ntoskrnl 1"],
        ),
        (
            RecipeText {
                group: "Thread -> AllThreads".into(),
                fold: "ntdll!".into(),
                ..RecipeText::default()
            },
            Grouping::Thread,
            &[
                "a.exe (40);AllThreads;a!A0;lib!L0 1",
                "a.exe (40);AllThreads;a!A0;ntoskrnl!K0 1",
                "b.exe (50);AllThreads;b!B0 1",
            ],
        ),
        (RecipeText { fold: "!".into(), ..RecipeText::default() }, Grouping::None, &["[folded] 3"]),
    ] {
        let recipe = Recipe::parse(&text).unwrap();
        let patterns = Some(Patterns { recipe, names: verbose(&profile) });
        let arranged = profile.arrange(&Shape { grouping, patterns, ..Shape::default() });
        assert_eq!(lines(&profile, &arranged), expected, "{text:?}");
        assert_whole(&profile, &arranged);
    }
}

/// No shape changes the sum of the samples that are kept and left out, nor the sum of their values.
#[test]
fn no_shape_loses_a_sample() {
    let analysis = Analysis::open(&["examples/demo.etl"], &Options::default(), &()).unwrap();
    let profile = &analysis.profile;
    let groupings =
        [Grouping::None, Grouping::Process, Grouping::Thread, Grouping::Module, Grouping::Category];
    let focused = frames(profile, &["!JIT_New"]);
    let focuses = [None, Some(Part::Through), Some(Part::From), Some(Part::Callers)];
    for (grouping, part) in groupings.into_iter().flat_map(|g| focuses.map(|part| (g, part))) {
        for switches in 0..1 << 5 {
            let on = |switch: u32| switches & 1 << switch != 0;
            let focus = part.map(|part| Focus { functions: focused.clone(), part });
            let shape = Shape {
                grouping,
                focus,
                fold_glue: on(0),
                fold_kernel: on(1),
                own_code: on(2),
                fold_recursion: on(3),
                inverted: on(4),
                ..Shape::default()
            };
            let arranged = profile.arrange(&shape);
            assert_whole(profile, &arranged);
            let left_out = arranged.balance.filtered as i64;
            assert_eq!(arranged.counts.total() + left_out, profile.samples.len() as i64, "{shape:?}");
            let has_it = |shape: &Shape| shape.focus.is_none() && arranged.values.total() == profile.total();
            assert!(has_it(&shape) || left_out > 0, "{shape:?}");
        }
    }
}

/// Folding goes on below a group, and a group is the program's own code as far as folding knows.
#[test]
fn groups_stand_among_what_is_folded() {
    let profile = profile(&[(40, 41, "A0 L0 N0 N1"), (40, 41, "A0 L0 K0 K1")]);
    let recipe = |group: &str| {
        let recipe = Recipe::parse(&RecipeText { group: group.into(), ..RecipeText::default() }).unwrap();
        Some(Patterns { recipe, names: verbose(&profile) })
    };
    for (shape, expected) in [
        (
            Shape { patterns: recipe("lib!->RT"), own_code: true, ..Shape::default() },
            &["a!A0;RT;OTHER <<ntdll!N0>> 1", "a!A0;RT;OTHER <<ntoskrnl!K0>> 1"][..],
        ),
        (
            Shape { patterns: recipe("a!->APP;lib!->APP"), fold_kernel: true, ..Shape::default() },
            &["APP 1", "APP;ntdll!N0;ntdll!N1 1"],
        ),
    ] {
        let arranged = profile.arrange(&shape);
        assert_eq!(lines(&profile, &arranged), expected);
        assert_whole(&profile, &arranged);
    }
}

/// What is asked for is seen, in the kernel and outside the program's folder too.
#[test]
fn what_is_in_focus_does_not_fold() {
    let profile = profile(&[(40, 41, "A0 N0 N1 K0 K1 K2")]);
    let focus = |name: &str| Some(Focus { functions: frames(&profile, &[name]), part: Part::Through });
    for (shape, expected) in [
        (
            Shape { focus: focus("!K1"), fold_kernel: true, ..Shape::default() },
            "a!A0;ntdll!N0;ntdll!N1;ntoskrnl!K0;ntoskrnl!K1 1",
        ),
        (
            Shape { focus: focus("!N1"), own_code: true, ..Shape::default() },
            "a!A0;OTHER <<ntdll!N0>>;ntdll!N1;OTHER <<ntoskrnl!K0>> 1",
        ),
    ] {
        assert_eq!(lines(&profile, &profile.arrange(&shape)), [expected]);
    }
}
