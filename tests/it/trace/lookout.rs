//! What is noted of events while they go by.

use etwprof::etl::Recording;
use etwprof::event::Event;
use etwprof::sink::Sink;
use etwprof::trace::lookout::{Lookout, Sights};

use crate::support::clr::{PID, at, base};
use crate::support::{data, reading};
use crate::synth::{Process, clr};

struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _event: &Event<'_>) {
        self.0 += 1;
    }
}

/// Shows a recording to a lookout, through which all events go.
fn sights(recording: &Recording) -> Sights {
    let sights = Sights::default();
    let mut lookout = Lookout::new(Count(0), sights.clone());
    let mut events = 0;
    reading::events(recording, |event| {
        lookout.event(event);
        events += 1;
    });
    assert_eq!(lookout.into_inner().0, events);
    sights
}

#[test]
fn the_longest_pause_of_each_process() {
    const OTHER: u32 = 44;
    let etl = base()
        .event(0, at(1), clr::suspend(PID, 1))
        .event(0, at(2), clr::suspend(OTHER, 6))
        .event(0, at(4), clr::resume(PID))
        .event(0, at(9), clr::resume(OTHER))
        // A shorter one; one for a debugger; one that goes on.
        .event(0, at(10), clr::suspend(PID, 1))
        .event(0, at(11), clr::resume(PID))
        .event(0, at(12), clr::suspend(PID, 5))
        .event(0, at(18), clr::resume(PID))
        .event(0, at(19), clr::suspend(PID, 1));
    let sights = sights(&Recording::from_bytes("a.etl", etl.finish()).unwrap());
    let step = at(1) - at(0);
    let mut longest: Vec<_> = sights.longest_pauses().into_iter().collect();
    longest.sort_unstable();
    assert_eq!(longest, [(PID, 3 * step), (OTHER, 7 * step)]);
    assert!(sights.longest_pauses().is_empty(), "they were looked at");
}

#[test]
fn processes_that_end_but_not_those_that_are_listed() {
    let etl = base()
        .event(0, at(1), Process::start(50, "short.exe"))
        .event(0, at(2), Process::end(50, "short.exe"))
        .event(0, at(3), Process::dc_end(PID, "a.exe"));
    let sights = sights(&Recording::from_bytes("a.etl", etl.finish()).unwrap());
    let ended: Vec<_> = sights.ended().into_iter().map(|one| (one.pid, one.name, one.status)).collect();
    assert_eq!(ended, [(50, "short.exe".to_owned(), 0)]);
    assert_eq!(sights.ended(), []);
}

/// The processes that TraceEvent's baselines have a Process/Stop of.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn processes_of_a_real_recording_that_end() {
    let recording = Recording::open(&[data::file("etl/perfview/PerfViewData.etl")]).unwrap();
    let ended = sights(&recording).ended();
    let ended: Vec<_> = ended.iter().map(|one| (one.pid, one.name.as_str())).collect();
    assert_eq!(ended, [(1876, "PerfView.exe"), (1980, "test.exe")]);
}

/// 8.7 ms is the longest of an independent reader, 10.9 ms that of PerfView in the other recording.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_longest_pauses_of_real_recordings() {
    for (file, pid, ms) in [
        ("etl/perfview/PerfViewData.etl", 1980, 8.7),
        ("etl/perfview/net.4.5.2.x64.etl", 3676, 1.4),
        ("etl/perfview/net.4.5.2.x64.etl", 3988, 10.9),
    ] {
        let recording = Recording::open(&[data::file(file)]).unwrap();
        let longest = sights(&recording).longest_pauses()[&pid];
        let longest = recording.origin().clock.nanoseconds_in(longest) as f64 / 1e6;
        assert!((longest - ms).abs() <= 0.05, "{file}: {longest} ms");
    }
}
