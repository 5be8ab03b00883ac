//! From the flags to the result: start, watch, stop, show.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use etwprof::profile::Filter;
use etwprof::report::count;
use etwprof::session::{Ending, Host, Losses, Options, ProfileFlag, Recorder, Whose, console};
use etwprof::trace::{Builder, Trace};

use super::diagnose::Diagnose;
use super::status::StatusLine;
use super::targets::Targets;
use super::words::{self, Share, Targeted};
use super::{local_images, missing};
use crate::cli::args::{Format, Live};
use crate::cli::convert::View;
use crate::cli::{load, permissions, symbols};

/// How often is looked whether it is time to stop.
const TICK: Duration = Duration::from_millis(50);

pub(in crate::cli) fn run(args: &Live, quiet: bool) -> Result<()> {
    let format = args.output.format()?;
    // What would fail afterwards fails before there is something to lose.
    args.output.check(&[])?;
    symbols::check(&args.symbols)?;
    let diagnose = args.diagnose.as_deref().map(Diagnose::start).transpose()?;
    let result = record(args, format, quiet, diagnose.as_ref());
    if let Some(diagnose) = diagnose {
        diagnose.finish(result.as_ref().err(), quiet);
    }
    match result? {
        // Everything is written and nothing is left to undo.
        Some(code) if args.forward_exit_code => std::process::exit(code),
        _ => Ok(()),
    }
}

/// Neither the kernel nor the system says where kernel modules are.
const KERNEL_IS_HIDDEN: &str = "kernel frames have no module: Windows 11 24H2 and later show where drivers are only \
    to accounts with the privilege \"Debug programs\" (SeDebugPrivilege), and the kernel listed none; record from an \
    elevated prompt";

/// The exit code of the program that was run, if it has ended.
fn record(args: &Live, format: Format, quiet: bool, diagnose: Option<&Diagnose>) -> Result<Option<i32>> {
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
    let builder = |host: &Host| {
        let mut builder = Builder::for_session(host);
        if let Some(pids) = targets.only_pids() {
            builder.keep_only(pids);
        }
        builder
    };
    let mut recorder = Recorder::start(&options, builder).map_err(|error| permissions::explained(&error))?;
    if !quiet {
        said_at_start(&recorder);
    }
    if !console::asked_to_stop() {
        targets.resume()?;
    }
    let line = StatusLine::new(quiet);
    line.begin(targets.label(), args.frequency, args.duration);
    let mut watch = Watch::new(&mut recorder, &line);
    watch.run(&mut targets, args.duration);
    let (elapsed, share) = (watch.start.elapsed(), watch.share);
    let ended_by_itself = recorder.is_over();
    line.stopping();
    let running = targets.running();
    let whose = running.as_deref().map_or(Whose::All, Whose::Of);
    let stopped = recorder.stop(whose, &mut |ending: &Ending| {
        line.listing(|| targets.names(&ending.listing), ending.events);
    });
    console::recording_is_over();
    line.done(targets.label(), elapsed, &share);
    let stopped = stopped?;
    if targets.never_ran() {
        bail!("stopped before the program ran");
    }

    if ended_by_itself {
        line.say("warning: the recording ended by itself: somebody stopped its session");
    }
    for problem in &stopped.problems {
        anstream::eprintln!("warning: {problem}");
    }
    let mut trace = finish(stopped.sink, &stopped.losses, quiet);
    if stopped.profile != ProfileFlag::Group && !trace.samples.is_empty() && !quiet {
        anstream::eprintln!(
            "warning: no samples came until the classic profile flag was set (0x01000000 in group mask 0); please report \
             this with your version of Windows"
        );
    }
    if trace.before.kernel_is_hidden && !trace.has_kernel_modules() && !quiet {
        line.say(&format!("warning: {}", KERNEL_IS_HIDDEN));
    }
    let filter = targets.filter(&trace);
    if !quiet {
        warn_unlisted(&trace, &filter, &stopped.unlisted);
    }
    let code = targets.exit_code();
    match code {
        // Windows' own codes, for crashes and Ctrl-C, are known by their hexadecimal form.
        Some(code) if code < 0 => line.say(&format!("the program ended with exit code {code:#x}")),
        Some(code) => line.say(&format!("the program ended with exit code {code}")),
        None if targets.is_program() => {
            line.say(&format!("{} still runs; only the recording has ended", targets.label()));
        }
        None => {}
    }
    let opened =
        if args.symbols.no_symbols { Vec::new() } else { local_images::identify(&mut trace, &filter) };
    if let Some(diagnose) = diagnose {
        diagnose.trace(&trace, &filter, &opened);
    }
    if trace.sample_count() == 0 {
        bail!(words::no_sample());
    }
    let never_ran = targets.unseen_name().filter(|_| !has_run(&trace, &filter));
    let targeted = Targeted { label: targets.label(), never_ran };
    let view = View {
        files: &[],
        format,
        path: args.output.path.as_deref(),
        fallback: Some(fallback(format)),
        filter: &filter,
        tree: &args.tree,
        symbols: &args.symbols,
        title: &targets.title(),
        nothing_left: &|balance| words::nothing_left(targeted, balance),
    };
    view.show(&trace, quiet)?;
    Ok(code)
}

/// Where a result is kept that cannot be written to where it should be: a recording cannot be repeated.
fn fallback(format: Format) -> PathBuf {
    let ending = match format {
        Format::Tree => "tree.txt",
        Format::Folded => "folded",
        Format::Svg => "svg",
    };
    std::env::temp_dir().join(format!("etwprof-{}.{ending}", std::process::id()))
}

fn has_run(trace: &Trace, filter: &Filter) -> bool {
    trace.processes.iter().any(|process| filter.keeps_process(process))
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
    for warning in missing::warnings(started) {
        anstream::eprintln!("warning: {warning}");
    }
}

/// A recording that is looked at until it is time to stop.
struct Watch<'a> {
    recorder: &'a mut Recorder<Builder>,
    line: &'a StatusLine,
    start: Instant,
    looked: Instant,
    share: Share,
    /// All samples at the last look.
    all: u64,
    /// What is in the buffers has been asked for.
    flushed: bool,
    /// It has been looked whether samples come at all.
    judged: bool,
}

/// Asking the session costs system calls.
const LOOK: Duration = Duration::from_millis(500);
/// Samples lie in buffers for up to a second: then they are asked for, and soon after there are some or none.
const FLUSH_AT: Duration = Duration::from_millis(1200);
const JUDGE_AT: Duration = Duration::from_millis(1800);

impl<'a> Watch<'a> {
    fn new(recorder: &'a mut Recorder<Builder>, line: &'a StatusLine) -> Watch<'a> {
        let (now, processors) = (Instant::now(), recorder.started().host.processors);
        let share = Share { samples: 0, percent: None, processors };
        Watch { recorder, line, start: now, looked: now, share, all: 0, flushed: false, judged: false }
    }

    /// Returns when it is time to stop.
    fn run(&mut self, targets: &mut Targets, duration: Option<Duration>) {
        loop {
            let left = duration.map(|duration| duration.saturating_sub(self.start.elapsed()));
            let is_over = console::asked_to_stop() || self.recorder.is_over();
            if is_over || left.is_some_and(|left| left.is_zero()) || targets.have_ended() {
                break;
            }
            self.recorder.tend();
            if self.looked.elapsed() >= LOOK && !self.look(targets) {
                break;
            }
            std::thread::sleep(left.map_or(TICK, |left| left.min(TICK)));
        }
        self.count(targets);
    }

    /// False if it cannot go on.
    fn look(&mut self, targets: &Targets) -> bool {
        self.looked = Instant::now();
        let elapsed = self.start.elapsed();
        if elapsed >= FLUSH_AT && !self.flushed {
            self.flushed = true;
            self.recorder.flush();
        }
        let status = self.count(targets);
        self.line.show(&status, &self.share, targets.label(), elapsed);
        if elapsed >= JUDGE_AT && !self.judged {
            self.judged = true;
            if status.samples.all == 0 {
                self.line.say(&format!("warning: {}", words::no_sample_yet(elapsed)));
            } else if self.share.samples == 0 && targets.are_running() {
                self.line.say(&words::no_sample_of(targets.label(), &status));
            }
        }
        if words::is_memory_short(&status) {
            self.line.say(&format!("warning: {}", words::memory_is_short(&status)));
            return false;
        }
        true
    }

    /// Counts the targets' samples, and what part they had of those since the last count.
    fn count(&mut self, targets: &Targets) -> etwprof::session::Status {
        let status = self.recorder.status();
        let samples = targets.samples(&status.samples);
        let (new, of) = (
            samples.saturating_sub(self.share.samples),
            status.samples.all - self.all.min(status.samples.all),
        );
        if of > 0 {
            self.share.percent = Some(100.0 * new as f64 / of as f64);
        }
        (self.share.samples, self.all) = (samples, status.samples.all);
        status
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
