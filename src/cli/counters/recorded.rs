//! The counters beside the samples of a recording.

use std::path::PathBuf;

use anyhow::{Result, bail};
use etwprof::Options;
use etwprof::counters::CounterPath;
use etwprof::report::counters::Counters;

use super::show;
use crate::cli::highest::known;
use crate::cli::usage::Usage;
use crate::cli::{args, load};

/// True for a file that is opened as a recording.
pub(super) fn is_recording(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    [".etl", ".zip", ".diagsession"].iter().any(|ending| file.ends_with(ending))
}

/// Shows the counters that were recorded, or those that are wanted of them.
pub(super) fn run(
    args: &args::Counters,
    files: &[&String],
    wanted: &[CounterPath],
    quiet: bool,
) -> Result<()> {
    if let Some(other) = files.iter().find(|file| !is_recording(file)) {
        bail!(Usage(format!(
            "{other}: this is no recording, as the other files are; open one kind at a time"
        )));
    }
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let analysis = load::analysis(&files, &Options { symbols: None, ..Options::default() }, quiet)?;
    load::warn(&analysis);
    let trace = &analysis.profile.trace;
    if trace.counters.is_empty() {
        bail!("no counters were recorded here; `etwprof record --counters NAME` records them beside samples");
    }
    let named = |path: &&CounterPath| {
        let mut tracks = trace.counters.iter();
        !tracks.any(|track| path.means(&track.object, track.instance.as_deref(), &track.counter))
    };
    if let Some(path) = wanted.iter().find(named) {
        bail!(Usage(format!("{path}: no such counter was recorded; {}", known(trace))));
    }
    show(args, &Counters::recorded(trace, wanted))
}
