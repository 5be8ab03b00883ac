//! Waits for locks, the threads of pools, and precompiled code that a runtime turns down: built by hand.

use etwprof::Trace;
use etwprof::events::clr::PoolReason;
use etwprof::report::jit::Jit;
use serde_json::Value;

use crate::support::clr::{CODE, PID, TID, at, base, method, trace};
use crate::support::data;
use crate::support::reading;
use crate::synth::clr::{self, Method};
use crate::synth::{Process, Thread};

const OTHER: u32 = 44;

/// Each wait: its thread, its ticks, and who held the lock.
fn waits(trace: &Trace) -> Vec<(u32, Option<i64>, Option<u64>)> {
    trace.managed.contentions.iter().map(|wait| (wait.tid, wait.ticks(), wait.owner)).collect()
}

#[test]
fn a_wait_for_a_lock_ends_on_its_thread() {
    let etl = base()
        .event(0, at(0), Thread::dc_start(PID, OTHER))
        .event(0, at(1), clr::by_thread(clr::contention(PID, 2, false, 44), PID, TID))
        .event(0, at(2), clr::by_thread(clr::contention(PID, 1, false, 0), PID, OTHER))
        .event(0, at(4), clr::by_thread(clr::contention_end(PID, 3e8), PID, TID))
        .event(0, at(7), clr::by_thread(clr::contention_end(PID, 5e8), PID, OTHER))
        // An end without a begin, a begin without an end, a lock of the runtime, and the oldest version.
        .event(0, at(8), clr::by_thread(clr::contention_end(PID, 1.0), PID, OTHER))
        .event(0, at(9), clr::by_thread(clr::contention(PID, 2, true, 0), PID, OTHER))
        .event(0, at(10), clr::by_thread(clr::contention(PID, 0, false, 0), PID, TID));
    let trace = trace(&etl);
    let step = at(1) - at(0);
    assert_eq!(
        waits(&trace),
        [
            (TID, Some(3 * step), Some(44)),
            (OTHER, Some(5 * step), None),
            (OTHER, None, None),
            (TID, None, None)
        ]
    );
    let native: Vec<bool> = trace.managed.contentions.iter().map(|wait| wait.is_native).collect();
    assert_eq!(native, [false, false, true, false]);
    assert_eq!(trace.managed.contentions[0].instance, Some(9));
    assert_eq!(trace.managed.contentions[3].instance, None);
}

#[test]
fn a_wait_does_not_end_in_the_next_process_with_its_id() {
    let etl = base()
        .event(0, at(1), clr::by_thread(clr::contention(PID, 1, false, 0), PID, TID))
        .event(0, at(2), Process::end(PID, "a.exe"))
        .event(0, at(3), Process::start(PID, "b.exe"))
        .event(0, at(4), clr::by_thread(clr::contention_end(PID, 1.0), PID, TID));
    assert_eq!(waits(&trace(&etl)), [(TID, None, None)]);
}

#[test]
fn what_the_pool_did_and_why() {
    let etl = base()
        .event(0, at(1), clr::pool_thread(PID, 2))
        .event(0, at(2), clr::pool_adjustment(PID, 5, 6))
        .event(0, at(3), clr::pool_adjustment(PID, 4, 3))
        .event(0, at(4), clr::pool_adjustment(PID, 4, 77));
    let trace = trace(&etl);
    let pool: Vec<_> = trace.managed.pool.iter().map(|change| (change.threads, change.reason)).collect();
    assert_eq!(
        pool,
        [
            (2, None),
            (5, Some(PoolReason::Starvation)),
            (4, Some(PoolReason::Climbing)),
            (4, Some(PoolReason::Other(77))),
        ]
    );
    assert!(trace.managed.pool.iter().all(|change| change.instance == Some(9)));
}

/// `info --json` has everything twice: of the process, and of that of its runtimes which did it.
#[test]
fn each_runtime_has_its_own() {
    let etl = base()
        .event(0, at(0), clr::runtime_dc_of(PID, 9, "C:\\9\\coreclr.dll"))
        .event(0, at(0), clr::runtime_dc_of(PID, 4, "C:\\4\\coreclr.dll"))
        .event(0, at(1), clr::gc_start_of(PID, 4, 1))
        .event(0, at(2), clr::gc_start_of(PID, 9, 1))
        .event(0, at(3), clr::gc_start_of(PID, 4, 2))
        .event(0, at(4), clr::exception(PID, "N.Failed", ""))
        .event(0, at(5), clr::by_thread(clr::contention(PID, 2, false, 44), PID, TID))
        .event(0, at(7), clr::by_thread(clr::contention_end(PID, 2e8), PID, TID))
        // The oldest version does not name its runtime.
        .event(0, at(8), clr::by_thread(clr::contention(PID, 0, false, 0), PID, TID))
        .event(0, at(9), clr::pool_adjustment(PID, 5, 6));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.etl");
    std::fs::write(&path, etl.finish()).unwrap();
    let info = reading::json(["info", "--json", "--offline", "-q", path.to_str().unwrap()]);
    let process = info["processes"].as_array().unwrap().iter().find(|p| p["pid"] == PID).unwrap();
    let of = |who: &Value| {
        let fields =
            ["collections", "exceptions", "contentions", "contention_ns", "pool_threads", "pool_starvations"];
        fields.map(|field| who[field].as_u64())
    };
    let step = (at(1) - at(0)) as u64 * 100;
    assert_eq!(of(process), [Some(3), Some(1), Some(2), Some(2 * step), Some(5), Some(1)]);
    let runtime = |id: u16| process["clr"].as_array().unwrap().iter().find(|clr| clr["id"] == id).unwrap();
    assert_eq!(of(runtime(9)), [Some(1), Some(1), Some(1), Some(2 * step), Some(5), Some(1)]);
    assert_eq!(of(runtime(4)), [Some(2), Some(0), Some(0), None, None, Some(0)]);
}

/// TraceEvent lists both events of this recording, without their fields.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn threads_of_a_real_pool() {
    let trace = reading::file(&data::file("etl/perfview/net.4.5.2.x64.etl"));
    let pids = trace.managed.pool.iter().map(|change| trace.process(change.process).unwrap().pid);
    assert_eq!(pids.collect::<Vec<u32>>(), [3988, 3988]);
    assert!(trace.managed.pool.iter().all(|change| change.reason.is_none() && change.instance.is_some()));
    assert_eq!(trace.managed.contentions, []);
}

#[test]
fn precompiled_code_that_is_turned_down() {
    const JITTED: u32 = 0x8;
    const REJECTED: u32 = 0x40;
    const TIER0: u32 = 3 << 7;
    let load = |start, name, flags| Method::load(PID, start, 0x80, method(name)).flags(flags);
    let etl = base().event(0, at(1), load(CODE, "Kept", JITTED | TIER0)).event(
        0,
        at(2),
        load(CODE + 0x100, "Rejected", JITTED | TIER0 | REJECTED),
    );
    let trace = trace(&etl);
    let jit = Jit::new(&trace, &vec![true; trace.processes.len()]);
    let [runtime] = &jit.runtimes[..] else { panic!("{jit:?}") };
    assert_eq!((runtime.methods, runtime.rejected), (2, 1));
    let rejected: Vec<_> = runtime.slowest.iter().map(|row| (row.name.as_deref(), row.rejected)).collect();
    assert_eq!(rejected, [(Some("N.T.Kept"), false), (Some("N.T.Rejected"), true)]);
}
