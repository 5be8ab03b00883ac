//! Live recording through the library, on the stand-in for the ETW API (`scripts/check-live` runs these beside it).
//! Without the stand-in they would start real sessions, which needs rights that a test has not; so they are ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use etwprof::event::Event;
use etwprof::session::{Options, Recorder, Scope, SessionError, Whose};
use etwprof::sink::Sink;
use etwprof::trace::Builder;

fn options() -> Options {
    Options { frequency: 1000, scope: Scope::All, waits: false }
}

struct Panics(u32);

impl Sink for Panics {
    fn event(&mut self, _: &Event<'_>) {
        self.0 += 1;
        assert!(self.0 < 100, "on purpose");
    }
}

#[test]
#[ignore = "needs the stand-in for the ETW API: scripts/check-live"]
fn a_panic_in_the_sink_ends_the_recording_and_leaves_nothing() {
    let recorder = Recorder::start(&options(), |_| Panics(0)).unwrap();
    let start = Instant::now();
    while !recorder.is_over() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(recorder.is_over(), "the panic is seen while it records");
    assert!(matches!(recorder.stop(Whose::All, &mut |_| ()), Err(SessionError::Builder)));
}

/// Waits as long as it is to be slow.
struct Slow {
    taken: u64,
    is_slow: Arc<AtomicBool>,
}

impl Sink for Slow {
    fn event(&mut self, _: &Event<'_>) {
        self.taken += 1;
        while self.taken > 1000 && self.is_slow.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Set STANDIN_LOOPS so that more is played than the channel holds. `scripts/check-live` compares what this prints with
/// what the stand-in has delivered.
#[test]
#[ignore = "needs the stand-in for the ETW API: scripts/check-live"]
fn what_a_slow_sink_does_not_get_is_counted() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let sink = Slow { taken: 0, is_slow: is_slow.clone() };
    let recorder = Recorder::start(&options(), |_| sink).unwrap();
    let start = Instant::now();
    while recorder.status().losses.dropped < 100_000 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    is_slow.store(false, Relaxed);
    let before = recorder.status();
    let stopped = recorder.stop(Whose::All, &mut |_| ()).unwrap();
    assert!(stopped.losses.dropped > 0, "after {} events", before.events);
    println!("taken {} dropped {}", stopped.sink.taken, stopped.losses.dropped);
}

/// `scripts/check-live` looks at the paths that this prints.
#[test]
#[ignore = "needs the stand-in for the ETW API: scripts/check-live"]
fn paths_of_images_are_those_of_this_machine() {
    let recorder = Recorder::start(&options(), Builder::new).unwrap();
    let start = Instant::now();
    while recorder.status().samples.all < 100 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let trace = recorder.stop(Whose::All, &mut |_| ()).unwrap().sink.finish();
    trace.modules.iter().for_each(|module| println!("module {}", module.path));
    println!("before {:?}", trace.before);
}

#[test]
#[ignore = "needs the stand-in for the ETW API: scripts/check-live"]
fn a_recorder_that_is_dropped_leaves_nothing() {
    let sink = Slow { taken: 0, is_slow: Arc::default() };
    drop(Recorder::start(&options(), |_| sink).unwrap());
}
