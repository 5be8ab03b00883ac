//! Counts the events of a recording by name.
//!
//!     cargo run --example count_events -- trace.etl

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use etwprof::etl::Recording;
use etwprof::events::names::event_name;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let recording = Recording::open(&paths)?;
    let counted = recording.fold(NonZeroUsize::MIN, &mut |_| (), BTreeMap::<_, u64>::new, |counts, event| {
        let name = event_name(event).unwrap_or_else(|| format!("{}/{:?}", event.provider, event.kind));
        *counts.entry(name).or_default() += 1;
    });
    for (name, count) in &counted.value {
        println!("{count:>9}  {name}");
    }
    for damage in &counted.damage {
        eprintln!("{damage}");
    }
    Ok(())
}
