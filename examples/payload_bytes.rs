//! Where do the bytes of a recording go? A call tree of a metric of its own: the payloads of events, by provider and
//! event.
//!
//!     cargo run --example payload_bytes -- examples/demo.etl

use std::num::NonZeroUsize;

use etwprof::etl::Recording;
use etwprof::events::names::event_name;
use etwprof::profile::CallTree;
use etwprof::report::{Plain, folded};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    let mut events: Vec<(String, i64)> = Vec::new();
    Recording::open(&files)?.fold(
        NonZeroUsize::MIN,
        &mut |_| (),
        || (),
        |(), event| {
            let name = event_name(event).unwrap_or_else(|| format!("{}/{:?}", event.provider, event.kind));
            events.push((name, event.payload.len() as i64));
        },
    );
    let stacks = events.iter().map(|(name, bytes)| (name.split('/'), *bytes));
    folded::write(&mut std::io::stdout(), &CallTree::new(stacks), &Plain)?;
    Ok(())
}
