//! Opens a recording and reads it into a trace.

use std::path::PathBuf;

use anyhow::{Result, bail};
use etwprof::etl::{Damage, DamageKind, Recording};
use etwprof::event::Event;
use etwprof::profile::{self, Limit};
use etwprof::report::count;
use etwprof::trace::{Builder, Lost, Trace};

use super::progress::Progress;
use super::{args, say};

/// A recording and what it says.
pub(super) struct Loaded {
    pub(super) recording: Recording,
    pub(super) trace: Trace,
    pub(super) damage: Vec<Damage>,
}

pub(super) fn trace(files: &[PathBuf], quiet: bool) -> Result<Loaded> {
    let recording = Recording::open(files)?;
    let start = || Builder::for_recording(&recording);
    let (builder, damage) = fold(&recording, quiet, start, |builder, event| builder.event(event))?;
    Ok(Loaded { trace: builder.finish(), damage, recording })
}

/// [`Recording::fold`] with a progress bar. A file that somebody cut meanwhile is an error: what was read of it is no
/// recording that ever was.
pub(super) fn fold<T>(
    recording: &Recording,
    quiet: bool,
    start: impl Fn() -> T,
    step: impl FnMut(&mut T, &Event<'_>),
) -> Result<(T, Vec<Damage>)> {
    let progress = Progress::new("reading", recording.size(), quiet);
    let reading = recording.fold(&mut |bytes| progress.at(bytes), start, step);
    progress.done();
    if let Some(cut) = reading.damage.iter().find(|damage| damage.kind == DamageKind::Shrunk) {
        bail!("{cut}; is it still being recorded or copied?");
    }
    Ok((reading.value, reading.damage))
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

/// How much may be made of a trace.
pub(super) fn limit(trace: &Trace, none: bool) -> Limit {
    if none { Limit::NONE } else { Limit::of(trace) }
}

/// Says on stderr what was lost or damaged: a result without it would look better than it is.
pub(super) fn warn(loaded: &Loaded, quiet: bool) {
    if quiet {
        return;
    }
    warn_lost(&loaded.trace.lost);
    const SHOWN: usize = 5;
    for damage in loaded.damage.iter().take(SHOWN) {
        say::warning(damage);
    }
    if loaded.damage.len() > SHOWN {
        let hidden = loaded.damage.len() - SHOWN;
        say::warning(format_args!("{hidden} more damaged places; `etwprof info` lists them"));
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
            say::warning(format_args!("{} {what}", count(number)));
        }
    }
}
