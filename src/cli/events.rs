//! `etwprof events`: the events of a recording, counted.

use anyhow::Result;
use etwprof::etl::Recording;
use etwprof::report::events::{self, Counter};

use super::{args, load, output, say};

pub(super) fn run(args: &args::Events, quiet: bool) -> Result<()> {
    let recording = Recording::open(&args.files)?;
    let (counter, damage) = load::fold(&recording, quiet, Counter::default, Counter::event)?;
    let rows = counter.rows();
    output::write(None, |mut out| {
        if args.json { events::write_json(&mut out, &rows) } else { events::write(&mut out, &rows) }
    })?;
    if !quiet {
        damage.iter().for_each(say::warning);
    }
    Ok(())
}
