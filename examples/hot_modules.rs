//! Prints the modules in which the CPU time of a recording was spent, most first.
//!
//!     cargo run --example hot_modules -- examples/demo.etl

use std::collections::HashMap;

use etwprof::etl::Recording;
use etwprof::profile::{Filter, Naming, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::Builder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let recording = Recording::open(&paths)?;
    let read = recording.fold(&mut |_| (), || Builder::for_recording(&recording), Builder::event);
    let trace = read.value.finish();
    let profile = Profile::new(&trace, &Filter::default(), &Unnamed, Naming::default());

    let mut time: HashMap<&str, u64> = HashMap::new();
    for sample in &profile.samples {
        // The leaf is the frame at the end of the stack's path.
        let leaf = profile.stacks.value(sample.stack).and_then(|frame| profile.frame(frame));
        let module = leaf.and_then(|frame| frame.module).and_then(|module| trace.module(module));
        *time.entry(module.map_or("(outside every module)", |module| module.file_name())).or_default() +=
            sample.weight;
    }
    let mut rows: Vec<_> = time.into_iter().collect();
    rows.sort_by_key(|(name, time)| (std::cmp::Reverse(*time), *name));
    for (name, time) in rows.iter().take(10) {
        println!("{:>9.1} ms  {name}", *time as f64 / 1e4);
    }
    Ok(())
}
