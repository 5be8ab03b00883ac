//! Any bytes as a file of performance counters, and as the memory that .NET Framework shares: every value is a number or has a
//! reason, and every block a report. The same bytes as an export of a registry, a DLL and an event: whatever is found there is a
//! report, too.
#![no_main]

use std::collections::BTreeMap;

use etwprof::counters::perflib::{Facts, Files, Library, Logged, diagnose};
use etwprof::counters::{CounterPath, Dump, Registry, framework, readings};
use etwprof::report::{counters, perflib};
use libfuzzer_sys::fuzz_target;

/// Each file is these bytes.
struct Bytes<'a>(&'a [u8]);

impl Files for Bytes<'_> {
    fn library(&self, library: &str) -> Library {
        Library::parse(library, self.0)
    }

    fn exists(&self, path: &str) -> Option<bool> {
        Some(path.len() % 2 == 0)
    }
}

fn registry(data: &[u8]) {
    let mut registry = Registry::default();
    // Damage ends it; what came before counts.
    let _read_or_not = registry.read(data);
    let logged: Vec<_> = Logged::parse(&String::from_utf8_lossy(data)).into_iter().collect();
    let facts = Facts {
        registry: &registry,
        names: Some(data),
        files: &Bytes(data),
        trials: &BTreeMap::new(),
        logged: &logged,
    };
    let found = perflib::Diagnosis::new(diagnose(&facts));
    let out = &mut std::io::sink();
    perflib::write(out, &found).expect("a sink takes all");
    perflib::write_json(out, &found).expect("JSON has a form for every value");
}

fuzz_target!(|data: &[u8]| {
    registry(data);
    let out = &mut std::io::sink();
    shared(data, out);
    let Ok(dump) = Dump::parse(data) else { return };
    let mut before = None;
    for block in &dump.blocks {
        let paths = block.objects.iter().map(|object| {
            let instance = object.has_instances.then(|| "*".to_owned());
            CounterPath { object: object.name.to_string(), instance, counter: "*".to_owned() }
        });
        let paths: Vec<_> = paths.take(8).collect();
        if let Ok(found) = readings(before, block, &dump.names, &paths) {
            let rows = found.into_iter().map(counters::Row::from).collect();
            let moment = counters::Moment { counters: rows, ..Default::default() };
            let all = counters::Counters { source: block.machine.clone(), moments: vec![moment.clone(), moment] };
            counters::write(out, &all, None).expect("a sink takes all");
            counters::write_json(out, &all).expect("JSON has a form for every value");
        }
        let available = counters::Available::new(block, &dump.names);
        counters::write_available(out, &available, Some(80)).expect("a sink takes all");
        before = Some(block);
    }
});

/// Two halves are two moments.
fn shared(data: &[u8], out: &mut std::io::Sink) {
    let (old, new) = data.split_at(data.len() / 2);
    let sample = |memory: &[u8], qpc| {
        let mut copy = |at: usize, to: &mut [u8]| match memory.get(at..at + to.len()) {
            Some(bytes) => {
                to.copy_from_slice(bytes);
                true
            }
            None => false,
        };
        let mut all = framework::runtimes(1, &mut copy);
        all.push(framework::legacy(1, &mut copy));
        let runtimes = all.into_iter().flatten().collect();
        framework::Sample { qpc, qpc_hz: 10_000_000, runtimes, refused: Vec::new() }
    };
    let path = |object: &str| CounterPath { object: object.to_owned(), instance: None, counter: "*".to_owned() };
    let paths: Vec<_> = framework::known().map(|(object, _)| path(object)).collect();
    let found = framework::readings(Some(&sample(old, 0)), &sample(new, 1_000), "a.exe", &paths);
    let rows = found.into_iter().map(counters::Row::from).collect();
    let moment = counters::Moment { counters: rows, ..Default::default() };
    counters::write(out, &counters::Counters { moments: vec![moment], ..Default::default() }, None).expect("a sink takes all");
}
