//! From the flags to the result: start, watch, stop, show.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use etwprof::report::count;
use etwprof::session::{Losses, Options, Recorder, console};
use etwprof::trace::{Builder, Trace};

use super::local_images;
use super::status::StatusLine;
use super::targets::Targets;
use crate::cli::args::Live;
use crate::cli::convert::View;
use crate::cli::{load, permissions};

/// How often is looked whether it is time to stop.
const TICK: Duration = Duration::from_millis(50);

pub(in crate::cli) fn run(args: &Live, quiet: bool) -> Result<()> {
    let format = args.output.format()?;
    console::listen();
    let mut targets = Targets::find(args)?;
    if let Some(delay) = args.delay {
        targets.resume()?;
        wait(delay);
    }
    let options = Options { frequency: args.frequency, clr_pids: targets.clr_pids() };
    let recorder =
        Recorder::start(&options, Builder::for_session).map_err(|error| permissions::explained(&error))?;
    if !quiet {
        said_at_start(&recorder);
    }
    targets.resume()?;
    watch(&recorder, &mut targets, args.duration, quiet);
    let stopped = recorder.stop()?;
    console::recording_is_over();

    for problem in &stopped.problems {
        anstream::eprintln!("warning: {problem}");
    }
    let mut trace = finish(stopped.sink, &stopped.losses, quiet);
    let code = targets.exit_code();
    if let Some(code) = code.filter(|_| !quiet) {
        anstream::eprintln!("the program ended with exit code {code}");
    }
    if trace.samples.is_empty() {
        bail!("the kernel gave no sample; `etwprof sessions` tells who else samples");
    }
    let filter = targets.filter(&trace);
    if !args.symbols.no_symbols {
        local_images::identify(&mut trace, &filter);
    }
    let view = View {
        files: &[],
        format,
        path: args.output.path.as_deref(),
        filter: &filter,
        tree: &args.tree,
        symbols: &args.symbols,
        title: &targets.title(),
    };
    view.show(&trace, quiet)?;
    match code {
        // Everything is written and nothing is left to undo.
        Some(code) if args.forward_exit_code => std::process::exit(code),
        _ => Ok(()),
    }
}

fn wait(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until && !console::asked_to_stop() {
        std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
    }
}

fn said_at_start(recorder: &Recorder<Builder>) {
    let started = recorder.started();
    for name in &started.stale {
        anstream::eprintln!("stopped {name}, which a crashed run had left");
    }
    if started.host.interval != started.asked_interval {
        anstream::eprintln!(
            "warning: the machine samples every {} us, and not every {} us as asked",
            f64::from(started.host.interval) / 10.0,
            f64::from(started.asked_interval) / 10.0
        );
    }
}

/// Returns when it is time to stop.
fn watch(recorder: &Recorder<Builder>, targets: &mut Targets, duration: Option<Duration>, quiet: bool) {
    let start = Instant::now();
    let mut line = StatusLine::new(quiet);
    loop {
        let left = duration.map(|duration| duration.saturating_sub(start.elapsed()));
        if console::asked_to_stop() || recorder.is_over() || left.is_some_and(|left| left.is_zero()) {
            break;
        }
        if targets.have_ended() {
            break;
        }
        line.show(recorder, start);
        std::thread::sleep(left.map_or(TICK, |left| left.min(TICK)));
    }
    line.done();
    if recorder.is_over() && !quiet {
        anstream::eprintln!("warning: the recording ended by itself: somebody stopped its session");
    }
}

fn finish(builder: Builder, losses: &Losses, quiet: bool) -> Trace {
    let mut trace = builder.finish();
    // The trace has counted what the session told of losses; the session's own figures know of more.
    trace.lost.events = trace.lost.events.max(losses.events) + losses.dropped;
    trace.lost.buffers = trace.lost.buffers.max(losses.buffers);
    if !quiet {
        load::warn_lost(&trace.lost);
        for (number, what) in [
            (losses.dropped, "of the lost events were dropped because this machine was too slow for them"),
            (losses.late, "events came late and out of order"),
            (losses.unfinished_rundowns, "programs did not finish the list of their .NET code"),
        ] {
            if number > 0 {
                anstream::eprintln!("warning: {} {what}", count(number));
            }
        }
    }
    trace
}
