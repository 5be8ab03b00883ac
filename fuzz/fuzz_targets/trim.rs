//! A recording trimmed to a process and to a time, and without its secrets: what is written opens, is whole, and says of
//! the processes that were kept what a filter says of the recording.
#![no_main]

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::sync::Arc;

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::etl::writer::{Keep, copy};
use etwprof::profile::{Filter, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::{ProcessId, Trace};
use etwprof::trim::{Choice, Trim};
use etwprof_fuzz::mutate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn written(recording: &Recording, keep: &impl Keep) -> Arc<Trace> {
    let mut out = Cursor::new(Vec::new());
    copy(recording, keep, false, ONE, &mut |_| {}, &mut out).expect("memory takes all");
    let written = Recording::from_bytes("written.etl", out.into_inner()).expect("what is written opens");
    let reading = analysis::trace(&written, &mut |_| {});
    assert_eq!(reading.damage, []);
    Arc::new(reading.value)
}

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = Recording::from_bytes("fuzz.etl", data.to_vec()) else { return };
    let trace = Arc::new(analysis::trace(&recording, &mut |_| {}).value);
    written(&recording, &Trim::all().anonymous());
    let Some(process) = trace.samples.first().map(|sample| trace.runner(sample.runner).process) else { return };
    let middle = trace.samples.get(trace.samples.len() / 2).map(|sample| sample.time);
    // In a file, 0 is no moment.
    let middle = middle.filter(|time| time.0 != 0);
    for (from, to) in [(None, None), (middle, None), (None, middle)] {
        let choice = Choice { processes: Some(vec![process]), from, to, providers: Vec::new() };
        let part = written(&recording, &Trim::new(&recording, &trace, choice, ONE, &mut |_| {}));
        let trimmed = part.trimmed.clone().expect("it says so");
        assert_eq!((trimmed.from, trimmed.to), (from, to));
        let pid = trace.process(ProcessId(process.0)).map(|process| process.pid);
        assert_eq!(trimmed.pids, pid.map(|pid| vec![pid]));
        // From a part to its profile and its waits.
        let _ = etwprof::trace::waits::Waits::new(&part);
        let profile = Profile::new(&part, &Filter::default(), &Unnamed);
        assert!(profile.samples.len() <= trace.samples.len());
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Every fourth change is libFuzzer's own.
    let own = if seed % 4 == 0 { None } else { mutate(data, size, seed) };
    own.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
