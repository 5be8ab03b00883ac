//! Any bytes as a file of performance counters: every value is a number or has a reason, and every block a report.
#![no_main]

use etwprof::counters::{CounterPath, Dump, readings};
use etwprof::report::counters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(dump) = Dump::parse(data) else { return };
    let out = &mut std::io::sink();
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
