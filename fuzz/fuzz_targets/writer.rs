//! A whole file, written again: what opens is copied to a file that is whole, with the same events; and played as a live
//! recording to a file and a ring of two buffers for each processor.
#![no_main]

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use etwprof::etl::Recording;
use etwprof::etl::writer::{Ending, KeepAll, Newest, Output, Tee, copy, record_of};
use etwprof::event::Event;
use etwprof::guids::EVENT_TRACE;
use etwprof::sink::Sink;
use etwprof::trim::is_fact;
use etwprof_fuzz::mutate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

struct Nobody;

impl Sink for Nobody {
    fn event(&mut self, _event: &Event<'_>) {}
}

/// A file whose bytes are there when it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Shared {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("one thread").get_ref().clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.lock().expect("one thread").seek(to)
    }
}

impl Output for Shared {
    fn clear(&mut self) -> io::Result<()> {
        self.0.lock().expect("one thread").clear()
    }
}

/// Every event but the heads of logs. A whole file has no damage.
fn texts(recording: &Recording, is_whole: bool, is_wanted: impl Fn(&Event<'_>) -> bool) -> Vec<String> {
    let step = |all: &mut Vec<String>, event: &Event<'_>| {
        if (event.provider, event.opcode) != (EVENT_TRACE, 0) && is_wanted(event) {
            all.push(format!("{event:?}"));
        }
    };
    let reading = recording.fold(NonZeroUsize::MIN, &mut |_| {}, Vec::new, step);
    assert!(!is_whole || reading.damage.is_empty(), "{:?}", reading.damage);
    reading.value
}

fn open(bytes: Vec<u8>) -> Recording {
    Recording::from_bytes("copy.etl", bytes).expect("what is written opens")
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::from_bytes("fuzz.etl", bytes.to_vec()) else { return };
    let before = texts(&recording, false, |_| true);
    for compress in [false, true] {
        let mut out = Cursor::new(Vec::new());
        copy(&recording, &KeepAll, compress, NonZeroUsize::MIN, &mut |_| {}, &mut out).expect("memory takes all");
        assert!(texts(&open(out.into_inner()), true, |_| true) == before, "compressed {compress}");
    }
    let (out, ring) = (Shared::default(), Shared::default());
    let newest = Newest { out: ring.clone(), bytes: 0, is_fact };
    let mut tee = Tee::with_newest(Nobody, &recording.origin(), "live.etl", out.clone(), newest);
    recording.fold(NonZeroUsize::MIN, &mut |_| {}, || (), |(), event| tee.event(event));
    tee.split().1.expect("a file").finish(Ending::default(), |_, _| None).size.expect("memory takes all");
    let facts = texts(&open(out.bytes()), true, |_| true);
    let known = texts(&recording, false, |event| is_fact(event) && record_of(event).is_some());
    assert!(facts.len() >= known.len(), "{} of {} facts", facts.len(), known.len());
    texts(&open(ring.bytes()), true, |_| true);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Every fourth change is libFuzzer's own.
    let own = if seed % 4 == 0 { None } else { mutate(data, size, seed) };
    own.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
