//! Opens a recording and reads it into a trace.

use std::path::PathBuf;

use anyhow::Result;
use etwprof::etl::{Damage, Recording};
use etwprof::event::Event;
use etwprof::profile;
use etwprof::report::count;
use etwprof::trace::{Builder, Lost, Trace};

use super::args;
use super::progress::Progress;

/// A recording and what it says.
pub(super) struct Loaded {
    pub(super) recording: Recording,
    pub(super) trace: Trace,
    pub(super) damage: Vec<Damage>,
}

pub(super) fn trace(files: &[PathBuf], quiet: bool) -> Result<Loaded> {
    let recording = Recording::open(files)?;
    let (builder, damage) =
        fold(&recording, quiet, || Builder::for_recording(&recording), |builder, event| builder.event(event));
    Ok(Loaded { trace: builder.finish(), damage, recording })
}

/// [`Recording::fold`] with a progress bar.
pub(super) fn fold<T>(
    recording: &Recording,
    quiet: bool,
    start: impl Fn() -> T,
    step: impl FnMut(&mut T, &Event<'_>),
) -> (T, Vec<Damage>) {
    let progress = Progress::new("reading", recording.size(), quiet);
    let reading = recording.fold(&mut |bytes| progress.at(bytes), start, step);
    progress.done();
    (reading.value, reading.damage)
}

/// The filter that the flags describe.
pub(super) fn filter(args: &args::Filter) -> profile::Filter {
    profile::Filter {
        pids: args.pid.clone(),
        names: args.name.clone(),
        tids: args.tid.clone(),
        from: args.from,
        to: args.to,
    }
}

/// Says on stderr what was lost or damaged: a result without it would look better than it is.
pub(super) fn warn(loaded: &Loaded, quiet: bool) {
    if quiet {
        return;
    }
    warn_lost(&loaded.trace.lost);
    const SHOWN: usize = 5;
    for damage in loaded.damage.iter().take(SHOWN) {
        anstream::eprintln!("warning: {damage}");
    }
    if loaded.damage.len() > SHOWN {
        anstream::eprintln!(
            "warning: {} more damaged places; `etwprof info` lists them",
            loaded.damage.len() - SHOWN
        );
    }
}

/// Says on stderr what the sessions lost and what does not fit together.
pub(super) fn warn_lost(lost: &Lost) {
    for (number, what) in [
        (lost.events, "events were lost while recording"),
        (lost.buffers, "buffers were lost while recording"),
        (lost.sequence_gaps, "buffers are missing in the file"),
        (lost.orphan_stacks, "stacks have no event"),
        (lost.undefined_stack_keys, "stacks were never told"),
        (lost.malformed_events, "events are malformed"),
    ] {
        if number > 0 {
            anstream::eprintln!("warning: {} {what}", count(number));
        }
    }
}
