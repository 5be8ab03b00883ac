//! Compilations at run time: those of real recordings, and built ones.

use etwprof::clock::Ticks;
use etwprof::events::clr::Tier;

use crate::support::clr::{CODE, PID, at, base, method, trace};
use crate::support::{data, reading};
use crate::synth::clr::{self, Method};

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_method_that_was_compiled_began_once() {
    let folder = data::file("etl/perfview/diaghub-dotnetcore3.1-win-x64-diagsession");
    let trace = reading::file(&folder.join("diaghub.user_paged.1.etl"));
    let all = &trace.managed.compilations;
    // 5,409 MethodJittingStarted and as many MethodLoadVerbose.
    assert_eq!(all.len(), 5_409);
    assert!(all.iter().all(|one| one.ticks().is_some_and(|ticks| ticks >= 0) && one.name.is_some()));
    // Of these 534 in another version of the event.
    let tier = |one: &etwprof::trace::Compilation| one.flags.unwrap().tier();
    assert!(all.iter().any(|one| tier(one) == Tier::Tier0) && all.iter().any(|one| tier(one) == Tier::Tier1));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_first_is_that_of_the_baseline() {
    let trace = reading::file(&data::file("etl/perfview/net.4.5.2.x64.etl"));
    let managed = &trace.managed;
    let is_wanted = |one: &&etwprof::trace::Compilation| {
        one.start.is_some() && trace.process(one.process).unwrap().pid == 3676
    };
    let one = managed.compilations.iter().find(is_wanted).unwrap();
    let (of_type, name) = one.name.unwrap();
    let names =
        (managed.method_names[of_type as usize].as_str(), managed.method_names[name as usize].as_str());
    assert_eq!(names, ("System.AppDomain", "SetupDomain"));
    assert_eq!((one.il_size, one.tid, one.instance), (Some(207), 3680, Some(9)));
}

#[test]
fn each_ends_on_its_own_thread() {
    let name = method("A");
    let load = |start, name| Method::load(PID, start, 0x100, name);
    let other = |start: u64| start ^ 0x5000_0000_0000;
    let trace = trace(
        &base()
            .event(0, at(1), clr::jitting_started(PID, other(CODE), 1, 0x0600_0001, name))
            // In the midst of it another, on the same thread.
            .event(0, at(2), clr::jitting_started(PID, other(CODE + 0x1000), 1, 0x0600_0002, method("B")))
            // The same method, on another thread: the code of one of them is thrown away.
            .event(
                0,
                at(3),
                clr::by_thread(clr::jitting_started(PID, other(CODE), 1, 0x0600_0001, name), PID, 77),
            )
            .event(0, at(4), load(CODE + 0x1000, method("B")).tier(3))
            .event(0, at(5), load(CODE, name).tier(3))
            // Its begin is not recorded.
            .event(0, at(6), load(CODE + 0x2000, method("C")).tier(4))
            // No compilations: precompiled, a helper, the cold part, and what was there.
            .event(0, at(7), load(CODE + 0x3000, method("D")).flags(0))
            .event(0, at(8), load(CODE + 0x4000, method("E")).flags(0x18))
            .event(0, at(9), load(CODE + 0x5000, method("F")).cold())
            .event(0, at(10), Method::dc_end(PID, CODE + 0x6000, 0x100, method("G"))),
    );
    let managed = &trace.managed;
    let step = |time: Ticks| (time.0 - at(0)) / (at(1) - at(0));
    let all: Vec<_> = managed
        .compilations
        .iter()
        .map(|one| {
            let name = managed.method_names[one.name.unwrap().1 as usize].as_str();
            (name, one.tid, one.start.map(step), one.end.map(step), one.il_size, one.native_size)
        })
        .collect();
    let thread = PID + 4;
    let (il, native) = (Some(0x40), Some(0x100));
    assert_eq!(
        all,
        [
            ("A", thread, Some(1), Some(5), il, native),
            ("B", thread, Some(2), Some(4), il, native),
            ("A", 77, Some(3), None, il, None),
            ("C", thread, None, Some(6), None, native),
        ]
    );
    assert_eq!(managed.compilations[1].flags.unwrap().tier(), Tier::Tier0);
}
