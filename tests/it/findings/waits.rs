//! What threads wait for while they do not run.

use etwprof::findings::{Evidence, Findings, Waited};

use super::built::{Built, MS, PID, finding, ids, own};
use crate::synth::kernel::disk_io::DiskIo;
use crate::synth::kernel::thread::{CSwitch, Thread};

const WORKER: u32 = 44;
/// Of states and reasons in context switches.
const WAITING: u8 = 5;
const READY: u8 = 1;
const REQUEST: u8 = 6;
const ASLEEP: u8 = 4;
const PREEMPTED: u8 = 32;

/// The program's own code for 400 ms in 200 samples; beside it a thread that runs for 1 ms, is away for `away` ticks with
/// this reason and state, and runs for 1 ms again; so often, 10 ms apart. It sleeps in between.
fn with_worker(times: i64, away: i64, (reason, state): (u8, u8), reads: bool) -> Findings {
    let mut built = Built::new().samples(200, &[own("Main")]);
    let start = built.now - 400 * MS + MS / 2;
    built = built.event(1, start - MS / 4, Thread::start(PID, WORKER));
    for number in 0..times {
        let at = start + number * 10 * MS;
        let back = at + MS + away;
        built = built
            .event(1, at, CSwitch::new(0, WORKER))
            .event(1, at + MS, CSwitch::new(WORKER, 0).reason(reason, state))
            .event(1, back, CSwitch::new(0, WORKER))
            .event(1, back + MS, CSwitch::new(WORKER, 0).reason(ASLEEP, WAITING));
        if reads {
            let read = DiskIo::read(u64::try_from(number).unwrap(), away as u64);
            built = built.event(2, back - 10, read.asked_by(PID, WORKER));
        }
    }
    built.findings_with_waits()
}

#[test]
fn waits_for_disks_from_a_fifth_of_the_time_on() {
    let request = (REQUEST, WAITING);
    let findings = with_worker(30, 4 * MS, request, true);
    assert_eq!(ids(&findings), ["disk-waits"]);
    let found = finding(&findings, "disk-waits");
    let expected = Evidence::Waits {
        what: Waited::Disk,
        count: 30,
        threads: 1,
        total: 120 * MS,
        longest: 4 * MS,
        of: 199 * 2 * MS,
    };
    assert_eq!(found.evidence, [expected]);
    assert!((found.share - 120.0 / 398.0).abs() < 1e-9);
    // Too short, too few, and waits for something else.
    for none in [
        with_worker(30, 2 * MS, request, true),
        with_worker(19, 7 * MS, request, true),
        with_worker(30, 4 * MS, request, false),
    ] {
        assert_eq!(ids(&none), Vec::<&str>::new());
    }
}

#[test]
fn threads_that_could_run_from_a_fifth_of_their_time_on() {
    let findings = with_worker(30, 4 * MS, (PREEMPTED, READY), false);
    assert_eq!(ids(&findings), ["processor-waits"]);
    let found = finding(&findings, "processor-waits");
    // Of the 6 ms of each round, and the 296 ms with switches in which the other thread ran.
    let expected = Evidence::Waits {
        what: Waited::Processor,
        count: 30,
        threads: 1,
        total: 120 * MS,
        longest: 4 * MS,
        of: (180 + 296) * MS,
    };
    assert_eq!(found.evidence, [expected]);
    assert!((found.share - 120.0 / 476.0).abs() < 1e-9);
    assert_eq!(ids(&with_worker(30, MS / 4, (PREEMPTED, READY), false)), Vec::<&str>::new());
    assert_eq!(ids(&with_worker(20, 4 * MS, (PREEMPTED, READY), false)), Vec::<&str>::new());
}

#[test]
fn nothing_is_said_of_waits_without_context_switches() {
    let findings = Built::new().samples(200, &[own("Main")]).findings_with_waits();
    assert_eq!(ids(&findings), Vec::<&str>::new());
}
