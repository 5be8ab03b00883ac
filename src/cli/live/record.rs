//! From the flags to the result: start, watch, stop, show.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use etwprof::profile::Filter;
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
    console::listen()?;
    let mut targets = Targets::find(args, quiet)?;
    if let Some(delay) = args.delay {
        targets.resume()?;
        wait(delay, &mut targets)?;
    }
    if console::asked_to_stop() {
        bail!("stopped before the recording began");
    }
    let options = Options { frequency: args.frequency, scope: targets.scope() };
    let recorder =
        Recorder::start(&options, Builder::for_session).map_err(|error| permissions::explained(&error))?;
    if !quiet {
        said_at_start(&recorder);
    }
    if !console::asked_to_stop() {
        targets.resume()?;
    }
    let mut line = StatusLine::new(quiet);
    watch(&recorder, &mut targets, args.duration, &mut line);
    let ended_by_itself = recorder.is_over();
    line.stopping();
    let stopped = recorder.stop();
    console::recording_is_over();
    line.done();
    let stopped = stopped?;
    if targets.never_ran() {
        bail!("stopped before the program ran");
    }

    if ended_by_itself && !quiet {
        anstream::eprintln!("warning: the recording ended by itself: somebody stopped its session");
    }
    for problem in &stopped.problems {
        anstream::eprintln!("warning: {problem}");
    }
    let mut trace = finish(stopped.sink, &stopped.losses, quiet);
    let filter = targets.filter(&trace);
    if !quiet {
        warn_unlisted(&trace, &filter, &stopped.unlisted);
    }
    let code = targets.exit_code();
    if let Some(code) = code.filter(|_| !quiet) {
        // Windows' own codes, for crashes and Ctrl-C, are known by their hexadecimal form.
        let code = if code < 0 { format!("{code:#x}") } else { code.to_string() };
        anstream::eprintln!("the program ended with exit code {code}");
    }
    if trace.samples.is_empty() {
        bail!("the kernel gave no sample; `etwprof sessions` tells who else samples");
    }
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

/// Lets `--delay` pass.
fn wait(time: Duration, targets: &mut Targets) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until && !console::asked_to_stop() {
        if targets.have_ended() {
            bail!("--delay: what was to be profiled ended before the recording began");
        }
        std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
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
fn watch(
    recorder: &Recorder<Builder>,
    targets: &mut Targets,
    duration: Option<Duration>,
    line: &mut StatusLine,
) {
    let start = Instant::now();
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
        ] {
            if number > 0 {
                anstream::eprintln!("warning: {} {what}", count(number));
            }
        }
    }
    trace
}

/// Names the programs whose .NET methods may be without names.
fn warn_unlisted(trace: &Trace, filter: &Filter, pids: &[u32]) {
    for pid in pids {
        let process = trace.processes.iter().rev().find(|process| process.pid == *pid);
        if let Some(process) = process.filter(|process| filter.keeps_process(process)) {
            anstream::eprintln!(
                "warning: {} ({pid}) did not list all of its .NET code when it was asked; what was compiled before the \
                 recording may have no names",
                process.label()
            );
        }
    }
}
