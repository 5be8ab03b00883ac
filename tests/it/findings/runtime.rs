//! What .NET runtimes do beside the program's code.

use std::collections::BTreeMap;

use etwprof::events::clr::GcReason;
use etwprof::findings::{Evidence, Waited};

use super::built::{Built, MS, PID, finding, ids, native, own};
use crate::synth::clr;

/// The program's own code for 400 ms, in 200 samples.
fn busy() -> Built {
    Built::new().samples(200, &[own("Main")])
}

/// Collections of generation 0, a millisecond and a half each, one in 10 ms of the samples' time.
fn collecting(mut built: Built, count: u32, reason: u32) -> Built {
    let start = built.now - 400 * MS;
    for number in 0..count {
        let at = start + i64::from(number) * 10 * MS + MS / 2;
        built = built
            .event(0, at, clr::suspend(PID, 1))
            .event(0, at + MS / 10, clr::gc_start(PID, number + 1, 0, reason, 0))
            .event(0, at + MS, clr::gc_end(PID, number + 1, 0))
            .event(0, at + 3 * MS / 2, clr::resume(PID));
    }
    built
}

#[test]
fn pauses_are_a_finding_from_a_twentieth_of_the_time_on() {
    let findings = collecting(busy(), 20, 0).findings();
    assert_eq!(ids(&findings), ["gc"]);
    let gc = finding(&findings, "gc");
    // 199 times 2 ms lie between the first and the last sample.
    let of = 199 * 2 * MS;
    assert_eq!(
        gc.evidence,
        [
            Evidence::Pauses { count: 20, total: 30 * MS, longest: 3 * MS / 2, of },
            Evidence::Collections {
                count: 20,
                generations: BTreeMap::from([(0, 20)]),
                reasons: BTreeMap::from([(GcReason::AllocSmall, 20)]),
            },
        ]
    );
    assert!((gc.share - 30.0 / 398.0).abs() < 1e-9);
    assert_eq!(ids(&collecting(busy(), 10, 0).findings()), Vec::<&str>::new());
}

#[test]
fn collections_that_the_program_asks_for() {
    let findings = collecting(busy(), 12, 1).findings();
    assert_eq!(ids(&findings), ["induced-gc"]);
    assert_eq!(ids(&collecting(busy(), 9, 1).findings()), Vec::<&str>::new());
}

#[test]
fn cpu_time_of_the_collector_and_the_compiler() {
    let gc = busy().samples(60, &[own("Main"), native("coreclr", "WKS::gc_heap::mark_object_simple")]);
    assert_eq!(ids(&gc.findings()), ["gc"]);
    let jit = busy().samples(60, &[own("Main"), native("clrjit", "Compiler::compCompile")]);
    let findings = jit.findings();
    assert_eq!(ids(&findings), ["jit"]);
    // The one method of the program, which was compiled before its first sample, does not count.
    let compiled = |evidence: &Evidence| matches!(evidence, Evidence::Compiled { .. });
    assert!(!finding(&findings, "jit").evidence.iter().any(compiled));
}

#[test]
fn exceptions_by_their_number_and_by_their_cost() {
    let thrown = |count: i64| {
        (0..count).fold(busy(), |built, number| {
            let at = built.now - 400 * MS + number * MS + MS / 3;
            let type_name = if number % 4 == 0 { "System.IO.IOException" } else { "System.FormatException" };
            built.event(0, at, clr::exception(PID, type_name, "no"))
        })
    };
    let findings = thrown(300).findings();
    assert_eq!(ids(&findings), ["exceptions"]);
    let types = vec![("System.FormatException".to_owned(), 225), ("System.IO.IOException".to_owned(), 75)];
    let per_second = 300.0 / 0.398;
    assert_eq!(
        finding(&findings, "exceptions").evidence,
        [Evidence::Exceptions { count: 300, per_second, types }]
    );
    assert_eq!(ids(&thrown(150).findings()), Vec::<&str>::new());

    let throws = [own("Main"), native("coreclr", "IL_Throw"), native("KernelBase", "RaiseException")];
    assert_eq!(ids(&busy().samples(60, &throws).findings()), ["exceptions"]);
    // A handler runs above what throws.
    let handler = [own("Main"), native("coreclr", "IL_Throw"), own("Main (catch)")];
    assert_eq!(ids(&busy().samples(60, &handler).findings()), Vec::<&str>::new());
}

/// Waits for a lock, one in 10 ms of the samples' time.
fn waiting(count: i64, length: i64) -> Built {
    (0..count).fold(busy(), |built, number| {
        let at = built.now - 400 * MS + number * 10 * MS + MS / 3;
        let thread = 100 + u32::try_from(number % 2).unwrap();
        built.event(0, at, clr::by_thread(clr::contention(PID, 1, false, 0), PID, thread)).event(
            0,
            at + length,
            clr::by_thread(clr::contention_end(PID, 0.0), PID, thread),
        )
    })
}

#[test]
fn waits_for_locks_from_a_fifth_of_the_time_on() {
    let findings = waiting(30, 4 * MS).findings();
    assert_eq!(ids(&findings), ["lock-contention"]);
    let found = finding(&findings, "lock-contention");
    let of = 199 * 2 * MS;
    let expected =
        Evidence::Waits { what: Waited::Lock, count: 30, threads: 2, total: 120 * MS, longest: 4 * MS, of };
    assert_eq!(found.evidence, [expected]);
    assert!((found.share - 120.0 / 398.0).abs() < 1e-9);
    for short in [waiting(30, 2 * MS), waiting(19, 9 * MS)] {
        assert_eq!(ids(&short.findings()), Vec::<&str>::new());
    }
}

#[test]
fn a_pool_that_adds_threads_because_work_waits() {
    let starved = |count: u32, reason: u32| {
        (0..count).fold(busy(), |built, number| {
            let at = built.now - 400 * MS + i64::from(number) * 100 * MS + MS / 3;
            built.event(0, at, clr::pool_adjustment(PID, 9 + number, reason))
        })
    };
    let findings = starved(3, 6).findings();
    assert_eq!(ids(&findings), ["thread-pool-starvation"]);
    let found = finding(&findings, "thread-pool-starvation");
    assert_eq!(found.evidence, [Evidence::Starved { count: 3, most: 11, span: 200 * MS }]);
    assert!((found.share - 200.0 / 398.0).abs() < 1e-9);
    assert_eq!(ids(&starved(2, 6).findings()), Vec::<&str>::new());
    assert_eq!(ids(&starved(4, 3).findings()), Vec::<&str>::new());
}

#[test]
fn code_without_its_list() {
    // A runtime that nobody asked for its methods.
    let mut built = Built::new();
    let clr = built.address(&native("coreclr", "ThePreStub"));
    let etl = built.etl.clone();
    built.etl = (0..200).fold(etl, |etl, number| {
        let at = built.now + number * 2 * MS;
        etl.sampled(0, at, PID, super::built::TID, &[0x7ffb_0000_0000, clr])
    });
    assert_eq!(ids(&built.findings()), ["cut-rundown"]);
}
