//! Rules that frames show.

use etwprof::findings::rules::{RULES, Until, Whole};
use etwprof::findings::{Evidence, Signature, Sort};

use crate::support::command::etwprof;

use super::built::{Built, Line, finding, ids, method, native, own, parts};

/// A line that a signature means; `None` for what is no function.
fn meant(signature: &Signature) -> Option<Line> {
    let filled = |name: &str| name.replace('*', "X");
    match signature {
        Signature::Method(type_name, name) => {
            Some(method("System.Private.CoreLib", &filled(type_name), &filled(name)))
        }
        Signature::Native(modules, function) => Some(native(modules[0], &filled(function))),
        _ => None,
    }
}

#[test]
fn every_signature_of_every_rule_is_found() {
    let mut seen = 0;
    for rule in RULES {
        for line in rule.frames.what.iter().filter_map(meant) {
            let built = Built::new().samples(140, &[own("Main")]).samples(60, &[own("Main"), line.clone()]);
            let findings = built.findings();
            let found = finding(&findings, rule.kind.id);
            assert!((found.share - 0.3).abs() < 1e-9, "{line:?}: {}", found.share);
            let ms = 10_000;
            let cpu = Evidence::Cpu { samples: 60, value: 60 * ms, of: 200 * ms };
            assert_eq!(found.evidence[0], cpu, "{line:?}");
            assert_eq!(parts(found, Sort::Functions), [60], "{line:?}");
            assert_eq!(parts(found, Sort::Callers), [60], "{line:?}");
            seen += 1;
        }
    }
    assert!(seen > 90, "{seen}");
}

#[test]
fn what_own_code_does_below_is_its_own() {
    for rule in RULES {
        for line in rule.frames.what.iter().filter_map(meant) {
            let below = [own("Main"), line.clone(), own("Work")];
            let built = Built::new().samples(140, &[own("Main")]).samples(60, &below);
            let is_found = ids(&built.findings()).contains(&rule.kind.id);
            assert_eq!(is_found, rule.frames.until == Until::End, "{}: {line:?}", rule.kind.id);
        }
    }
}

#[test]
fn a_rule_holds_for_what_it_calls_of_the_framework() {
    let core = |type_name: &str, name: &str| method("System.Private.CoreLib", type_name, name);
    let zones = [
        own("Main"),
        core("System.DateTime", "get_Now"),
        core("System.TimeZoneInfo", "GetDateTimeNowUtcOffsetFromUtc"),
        native("coreclr", "JIT_New"),
    ];
    let built = Built::new().samples(100, &[own("Main")]).samples(100, &zones);
    assert_eq!(finding(&built.findings(), "datetime-now").share, 0.5);

    // What reflection calls is no reflection, and what a method costs is not that of its caller.
    let called = [
        own("Main"),
        core("System.Reflection.MethodBaseInvoker", "InvokeWithNoArgs"),
        core("System.GC", "Collect"),
    ];
    let built = Built::new().samples(100, &[own("Main")]).samples(100, &called);
    assert!(!ids(&built.findings()).contains(&"reflection"));
}

/// What is found where half of the samples have this stack.
fn found_in(stack: &[Line]) -> Vec<&'static str> {
    let mut found = ids(&Built::new().samples(100, &[own("Main")]).samples(100, stack).findings());
    // The stacks made here begin anywhere.
    found.retain(|id| *id != "broken-stacks");
    found
}

#[test]
fn who_waits_does_not_spin() {
    let spinning = [own("Main"), native("coreclr", "AwareLock::EnterEpilogHelper")];
    assert_eq!(found_in(&spinning), ["lock-spinning"]);
    for wait in [native("coreclr", "CLREventWaitHelper2"), native("ntdll", "NtWaitForSingleObject")] {
        let waiting = [&spinning[..], &[wait, native("ntoskrnl", "KiSwapContext")]].concat();
        assert_eq!(found_in(&waiting), Vec::<&str>::new());
    }
    let pool = method("System.Private.CoreLib", "System.Threading.LowLevelLifoSemaphore", "Wait");
    assert_eq!(found_in(&[own("Main"), pool.clone()]), ["thread-pool-spinning"]);
    let sleeping =
        method("System.Private.CoreLib", "System.Threading.LowLevelLifoSemaphore", "WaitForSignal");
    assert_eq!(found_in(&[own("Main"), pool, sleeping]), Vec::<&str>::new());
    let producer = method("System.Private.CoreLib", "System.Threading.LowLevelLifoSemaphore", "Release");
    assert_eq!(found_in(&[own("Main"), producer]), Vec::<&str>::new());
}

#[test]
fn programs_that_follow_the_advice_are_left_alone() {
    let compare = |name| method("System.Private.CoreLib", "System.Globalization.CompareInfo", name);
    for ordinal in [
        compare("NlsCompareStringOrdinalIgnoreCase"),
        compare("NlsIndexOfOrdinalCore"),
        compare("IcuIndexOfOrdinal"),
        native("kernelbase", "CompareStringOrdinal"),
        method("System.Private.CoreLib", "System.Enum", "Equals"),
        method("System.Private.CoreLib", "System.Reflection.RuntimeAssembly", "InternalLoad"),
    ] {
        assert_eq!(found_in(&[own("Main"), ordinal.clone()]), Vec::<&str>::new(), "{ordinal:?}");
    }
    assert_eq!(found_in(&[own("Main"), compare("NlsCompareString")]), ["culture-comparison"]);
}

#[test]
fn one_cost_is_one_finding() {
    let core = |type_name: &str, name: &str| method("System.Private.CoreLib", type_name, name);
    let equality =
        [own("Main"), core("System.ValueType", "Equals"), core("System.Reflection.RtFieldInfo", "GetValue")];
    assert_eq!(found_in(&equality), ["struct-equality"]);
    let debug_text =
        [own("Main"), native("kernelbase", "OutputDebugStringW"), native("kernelbase", "RaiseException")];
    assert_eq!(found_in(&debug_text), ["logging"]);
    // Of the thread that fills pages while nobody else runs.
    let zeroing = [native("ntoskrnl", "MmZeroPageThread"), native("ntoskrnl", "KeZeroPages")];
    assert!(!found_in(&zeroing).contains(&"memory-zeroing"));
    let in_need = [native("ntoskrnl", "MiResolveDemandZeroFault"), native("ntoskrnl", "KeZeroPages")];
    assert!(found_in(&in_need).contains(&"memory-zeroing"));
}

/// Idle samples are shown on request; what is found is the same.
#[test]
fn idle_processors_have_no_findings() {
    let found = |options: &[&str]| {
        let line = [&["findings", "examples/demo.etl", "--json", "--offline"], options].concat();
        let json: serde_json::Value = serde_json::from_str(etwprof(line).success().text()).unwrap();
        json["findings"].clone()
    };
    assert_eq!(found(&["--include-idle"]), found(&[]));
}

#[test]
fn a_block_that_catches_is_no_part_of_throwing() {
    let throwing =
        [own("Main"), native("vcruntime140", "_CxxThrowException"), native("ntdll", "RtlUnwindEx")];
    assert_eq!(found_in(&throwing), ["exceptions"]);
    let catching = [
        &throwing[..],
        &[native("vcruntime140", "_CallSettingFrame_LookupContinuationIndex"), native("app", "recover")],
    ]
    .concat();
    assert_eq!(found_in(&catching), Vec::<&str>::new());
}

#[test]
fn little_is_no_finding() {
    let now = [own("Main"), method("System.Private.CoreLib", "System.DateTime", "get_Now")];
    // 4 % of the program, and 49 samples of it.
    let little = Built::new().samples(1_440, &[own("Main")]).samples(60, &now);
    let few = Built::new().samples(100, &[own("Main")]).samples(49, &now);
    let enough = Built::new().samples(1_100, &[own("Main")]).samples(60, &now);
    assert_eq!(ids(&little.findings()), Vec::<&str>::new());
    assert_eq!(ids(&few.findings()), Vec::<&str>::new());
    assert_eq!(ids(&enough.findings()), ["datetime-now"]);
}

#[test]
fn names_that_only_look_alike_are_no_finding() {
    let now = |module, type_name, name| {
        let stack = [own("Main"), method(module, type_name, name)];
        ids(&Built::new().samples(100, &[own("Main")]).samples(100, &stack).findings())
    };
    assert_eq!(now("Orders", "Orders.DateTime", "get_Now"), Vec::<&str>::new());
    assert_eq!(now("System.Private.CoreLib", "System.DateTime", "get_NowX"), Vec::<&str>::new());
    let heap = [own("Main"), native("orders", "RtlAllocateHeap")];
    let built = Built::new().samples(100, &[own("Main")]).samples(100, &heap);
    assert_eq!(ids(&built.findings()), Vec::<&str>::new());
}

#[test]
fn ids_are_each_ones_own_and_documented() {
    let docs = std::fs::read_to_string("docs/findings.md").unwrap();
    let row = |id: &str| docs.lines().filter(|line| line.starts_with(&format!("| `{id}` |"))).count();
    let ids: Vec<&str> = etwprof::findings::kinds().map(|kind| kind.id).collect();
    for id in &ids {
        assert_eq!(ids.iter().filter(|other| other == &id).count(), 1, "{id}");
        assert_eq!(row(id), 1, "{id} in docs/findings.md");
    }
    for rule in RULES {
        let of = if rule.of == Whole::Program { "a program" } else { "everything" };
        let start = format!("| `{}` | {} % | {of} |", rule.kind.id, 100.0 * rule.least);
        assert!(docs.lines().any(|line| line.starts_with(&start)), "{start}");
    }
}
