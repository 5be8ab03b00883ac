//! `etwprof events`: the events of a recording, counted.

use anyhow::Result;
use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::origin::Losses;
use etwprof::report::events::{self, Counter};
use etwprof::trace::Lost;

use super::{args, load, output, strict};

pub(super) fn run(args: &args::Events, quiet: bool) -> Result<()> {
    let recording = Recording::open(&args.files)?;
    let reading = load::watched(&recording, quiet, |progress| {
        recording.fold(analysis::processors(), progress, Counter::default, Counter::event)
    })?;
    let Losses { events, buffers, sequence_gaps } = recording.origin().losses;
    let lost = Lost { events, buffers, sequence_gaps, ..Lost::default() };
    load::warn_lost(&lost);
    load::warn_damaged(&reading.damage);
    let rows = reading.value.rows();
    let printed = output::print(|mut out| {
        if args.json { events::write_json(&mut out, &rows) } else { events::write(&mut out, &rows) }
    });
    strict::checked(args.strict, printed, || strict::of_reading(&lost, &reading.damage))
}
