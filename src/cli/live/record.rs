//! From the flags to the result: start, watch, stop, show.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use etwprof::etl::writer::Tee;
use etwprof::origin::Origin;
use etwprof::profile::{Filter, FilteredBy, Measure, Measured};
use etwprof::report::counters::Counters;
use etwprof::report::format::Format;
use etwprof::report::{self, count};
use etwprof::session::process::Stdout;
use etwprof::session::undo::{self, Undo};
use etwprof::session::{self, Ending, Losses, ProfileFlag, Recorder, SessionError, Whose, console};
use etwprof::symbols::local_images;
use etwprof::trace::lookout::{Lookout, Sights};
use etwprof::trace::{Builder, Trace};
use etwprof::{Analysis, Options, SymbolOptions};

use super::counters::{Asked, Beside};
use super::cures::with_cure;
use super::diagnose::Diagnose;
use super::file::Destination;
use super::missing;
use super::status::StatusLine;
use super::stop::Conditions;
use super::targets::Targets;
use super::words::{self, Share, Targeted};
use crate::cli::args::{self, Live, Record, RecordedFile, Recording};
use crate::cli::convert::View;
use crate::cli::progress::Watch;
use crate::cli::usage::Usage;
use crate::cli::{candidates, choose, load, output, permissions, say, strict, waits};

/// Who takes the events: the trace, and perhaps a file.
type Sunk = Lookout<Tee<Builder, File>>;

/// How often is looked whether it is time to stop.
const TICK: Duration = Duration::from_millis(50);

pub(in crate::cli) fn run(args: &Live, quiet: bool) -> Result<()> {
    // What would fail afterwards fails before there is something to lose.
    let mut view = View::new(&args.output, &args.shaping, &args.tree, &args.names)?;
    view.fallback = Some(fallback(view.format()));
    args.output.check(&[])?;
    view.check_metric(&args.measure)?;
    if args.samples.highest.is_some() {
        bail!(Usage(
            "--highest: for recordings; add --record-to FILE.etl, and open that with --highest".to_owned()
        ));
    }
    if args.measure.is_of_events() {
        bail!(Usage(
            "--event, --metric allocated: not live yet; record with PerfView or wpr and open the recording"
                .to_owned()
        ));
    }
    let measure = args.measure.checked()?;
    if args.waits && measure.what == Measured::Cpu && !view.is_read_here() {
        bail!(Usage(
            "--waits: their times are shown as text on stdout; for a file, add --metric blocked, ready or wall"
                .to_owned()
        ));
    }
    let symbols = args.symbols.options(quiet)?;
    let filter = args.samples.options_without_times_of_day()?;
    view.range = (filter.from, filter.to);
    view.chosen = [args.measure.chosen(), args.samples.chosen()].concat();
    let diagnose = args.diagnose.as_deref().map(Diagnose::start).transpose()?;
    let result = profile(args, &view, measure, filter, symbols, quiet, diagnose.as_ref());
    if let Some(diagnose) = diagnose {
        diagnose.finish(result.as_ref().err(), quiet);
    }
    match result? {
        // Everything is written and nothing is left to undo.
        Some(code) if args.recording.forward_exit_code => std::process::exit(code),
        _ => Ok(()),
    }
}

/// Neither the kernel nor the system says where kernel modules are.
const KERNEL_IS_HIDDEN: &str = "kernel frames have no module: from Windows 11 24H2 on, only accounts with the privilege \
    \"Debug programs\" (SeDebugPrivilege) see where drivers are loaded; record from an elevated console";

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Says what could not be undone, whatever else the run says: it outlives the program.
fn left_behind(what: &Undo, why: &SessionError) {
    let remains = match what {
        Undo::Session(name) => {
            format!("the session may still run, and `etwprof sessions --stop {name}` stops it")
        }
        Undo::Interval(_) => "it stays as it is until the system starts again".to_owned(),
        Undo::Program(pid) => format!("process {pid} is left, and has not run"),
    };
    say::warning(format_args!("{why}; {remains}"));
}

/// `etwprof record`: a file and no profile.
pub(in crate::cli) fn record(args: &Record, quiet: bool) -> Result<()> {
    let output = args::Output { path: Some(args.output.clone()), format: None };
    let Some(path) = output.file() else {
        bail!(Usage("-o: cannot write to stdout or a device; name a file: -o trace.etl".to_owned()));
    };
    let to = Destination::new(&args.file, path, "-o")?;
    let plan = Plan {
        waits: args.waits,
        filter: Filter::default(),
        stdout: Stdout::Ours,
        is_shown: false,
        memory: None,
    };
    let recorded = recorded(&args.recording, plan, Some(&to), quiet)?;
    recorded.written?;
    match recorded.code {
        Some(code) if args.recording.forward_exit_code => std::process::exit(code),
        _ => Ok(()),
    }
}

/// The file beside a profile.
fn destination(args: &Live) -> Result<Option<Destination<'_>>> {
    if let Some(path) = &args.record_to {
        return Destination::new(&args.file, path, "--record-to").map(Some);
    }
    let RecordedFile { whole_system, compress, ring } = args.file;
    let of_file = [(whole_system, "--whole-system"), (compress, "--compress"), (ring.is_some(), "--ring")];
    match of_file.iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => bail!(Usage(format!("{flag}: it is about the file of --record-to; name one"))),
        None => Ok(None),
    }
}

/// A recording that has ended.
struct Recorded {
    trace: Trace,
    /// The samples of the targets.
    filter: Filter,
    targets: Targets,
    line: StatusLine,
    /// The exit code of the program that was run, if it has ended.
    code: Option<i32>,
    /// What became of the file.
    written: Result<()>,
}

/// The exit code of the program that was run, if it has ended.
fn profile(
    args: &Live,
    view: &View<'_>,
    measure: Measure,
    filter: Filter,
    symbols: Option<SymbolOptions>,
    quiet: bool,
    diagnose: Option<&Diagnose>,
) -> Result<Option<i32>> {
    let to = destination(args)?;
    let records_waits = args.waits || measure.what != Measured::Cpu;
    let plan = Plan {
        waits: records_waits,
        filter,
        // stdout has the result, unless that goes to a file.
        stdout: if args.output.file().is_some() { Stdout::Ours } else { Stdout::Stderr },
        is_shown: true,
        memory: args.limits.max_memory,
    };
    let Recorded { mut trace, filter, targets, line: _line, code, written } =
        recorded(&args.recording, plan, to.as_ref(), quiet)?;
    let mut options = Options { measure, ..args.limits.options(filter, symbols, view.detail) };
    let has_waits = records_waits && found_waits(args, &trace, quiet);
    if !has_waits {
        options.measure = Measure::default();
    }
    let mut located = options.locate(&trace);
    let FilteredBy { thread, cpu, time, .. } = located.balance.filtered_by;
    if thread + cpu + time > 0
        && let Err(error) = choose::check_some_are_left(&options.filter, &located.balance)
    {
        say::all_is_shown(&error);
        options.filter = targets.filter(Filter::default());
        located = options.locate(&trace);
    }
    let modules = if options.symbols.is_some() { located.modules() } else { Default::default() };
    let opened = local_images::identify(&mut trace, modules);
    let trace = Arc::new(trace);
    if let Some(diagnose) = diagnose {
        diagnose.trace(&trace, &options.filter, &opened);
    }
    if trace.sample_count() == 0 && !has_waits {
        bail!(words::no_sample());
    }
    if located.samples.is_empty() && !options.filter.keeps_all() {
        let never_ran = targets.unseen_name().filter(|_| !has_run(&trace, &options.filter));
        bail!(words::nothing_left(Targeted { label: targets.label(), never_ran }, &located.balance));
    }
    let mut analysis = Analysis::name(trace, located, &[], &options, &Watch::new(&options, quiet));
    if let Err(error) = choose::narrow_by_names(&mut analysis, &args.samples, view.detail, quiet) {
        say::all_is_shown(&error);
    }
    let shown = view.show(&analysis, &targets.title(), quiet).and_then(|()| {
        let trace = &analysis.profile.trace;
        if trace.counters.is_empty() || !view.is_read_here() {
            return Ok(());
        }
        output::print(|mut out| {
            writeln!(out)?;
            report::counters::write(&mut out, &Counters::recorded(trace, &[]), output::terminal_width())
        })
    });
    let printed = shown.and_then(|()| {
        if !args.waits || !has_waits || !view.is_read_here() {
            return Ok(());
        }
        let trace = Arc::clone(&analysis.profile.trace);
        let options = Options { measure: BLOCKED, ..options.clone() };
        let located = options.locate(&trace);
        let analysis = Analysis::name(trace, located, &[], &options, &Watch::new(&options, quiet));
        waits::summary(&analysis, &options.filter, view.detail)
    });
    let names_wanted = options.symbols.is_some();
    strict::checked(args.limits.strict, printed, || strict::reasons(&analysis, names_wanted))?;
    written.map(|()| code)
}

/// What becomes of what is recorded.
struct Plan {
    /// Context switches are recorded.
    waits: bool,
    /// The samples that are wanted of the targets.
    filter: Filter,
    /// That of a program that is run.
    stdout: Stdout,
    /// It is shown; otherwise a file has it, and no sample is kept here.
    is_shown: bool,
    /// What samples may take.
    memory: Option<u64>,
}

/// Records until it is time to stop, to a file as well if there is one.
fn recorded(args: &Recording, plan: Plan, to: Option<&Destination<'_>>, quiet: bool) -> Result<Recorded> {
    let Plan { waits, filter, stdout, is_shown, memory } = plan;
    undo::on_failure(left_behind);
    console::listen(|| std::process::exit(INTERRUPTED)).map_err(|error| anyhow!(with_cure(&error)))?;
    let mut targets = Targets::find(args, stdout, quiet)?;
    if let Some(delay) = args.delay {
        targets.resume()?;
        wait(delay, &mut targets)?;
    }
    if console::asked_to_stop() {
        bail!("stopped before the recording began");
    }
    let options = session::Options { frequency: args.frequency, scope: targets.scope(), waits };
    let counters = Asked::new(args)?;
    let file = to.map(Destination::open).transpose()?;
    let sights = Sights::default();
    let seen = sights.clone();
    let builder = |origin: &Origin| {
        let mut builder = Builder::new(origin);
        match targets.only_pids() {
            // The file has the samples.
            _ if !is_shown => builder.keep_only([]),
            // What a thread waited for may be a thread of any process.
            _ if waits => builder.keep(BLOCKED.keep()),
            Some(pids) => builder.keep_only(pids),
            None => {}
        }
        if filter.include_idle {
            builder.keep_idle();
        }
        if let Some(memory) = memory {
            builder.hold(memory);
        }
        let tee = match file {
            Some(file) => file.tee(builder, origin),
            None => Tee::without_file(builder),
        };
        Lookout::new(tee, seen)
    };
    let started = Recorder::start(&options, builder);
    if let (Err(_), Some(to)) = (&started, to) {
        to.abandon();
    }
    let mut recorder = started.map_err(|error| permissions::explained(&error))?;
    if !quiet {
        said_at_start(&recorder);
    }
    let clock = recorder.started().origin.clock;
    let start = |counters: Asked| counters.start(recorder.feed(), clock.frequency, targets.running());
    let beside = counters.map(start).transpose()?;
    if !console::asked_to_stop() {
        targets.resume()?;
    }
    let line = StatusLine::new(quiet);
    line.begin(targets.label(), args.frequency, args.duration);
    let conditions = Conditions::new(&args.stop_when, sights, clock);
    let mut session = Session::new(&mut recorder, &line, conditions, beside.as_ref());
    session.run(&mut targets, args.duration);
    let (elapsed, share) = (session.start.elapsed(), session.share);
    for warning in beside.map(Beside::finish).unwrap_or_default() {
        line.say(&format!("warning: {warning}"));
    }
    let ended_by_itself = recorder.is_over();
    line.stopping();
    let running = targets.running();
    let whose = running.as_deref().map_or(Whose::All, Whose::Of);
    let stopped = recorder.stop(whose, &mut |ending: &Ending| {
        line.listing(|| targets.names(&ending.listing), ending.events);
    });
    console::recording_is_over();
    line.done(targets.label(), elapsed, &share);
    let stopped = stopped.map_err(|error| anyhow!(with_cure(&error)))?;
    if targets.never_ran() {
        bail!("stopped before the program ran");
    }

    if ended_by_itself {
        line.say("warning: the recording ended early: another program stopped its session");
    }
    for problem in &stopped.problems {
        say::warning(with_cure(problem));
    }
    let (builder, file) = stopped.sink.into_inner().split();
    let mut trace = finish(builder, &stopped.losses);
    if stopped.profile != ProfileFlag::Group && !trace.samples.is_empty() && !quiet {
        say::warning(
            "no samples arrived until the classic profile flag was set (0x01000000 in group mask 0); please report this \
             with your version of Windows",
        );
    }
    if trace.before.kernel_is_hidden && !trace.has_kernel_modules() && !quiet {
        line.say(&format!("warning: {}", KERNEL_IS_HIDDEN));
    }
    let mut written = Ok(());
    if let Some((to, file)) = to.zip(file) {
        written = to.write(file, &mut trace, targets.filter(Filter::default()), &stopped.losses, quiet);
    }
    let mut filter = targets.filter(filter.clone());
    if let Err(error) = candidates::check_facts(&filter, &trace, quiet) {
        say::all_is_shown(&error);
        filter = targets.filter(Filter::default());
    }
    if !quiet {
        warn_unlisted(&trace, &filter, &stopped.unlisted);
    }
    let code = targets.exit_code();
    match code {
        // Windows' own codes, for crashes and Ctrl-C, are known by their hexadecimal form.
        Some(code) if code < 0 => line.say(&format!("the program ended with exit code {code:#x}")),
        Some(code) => line.say(&format!("the program ended with exit code {code}")),
        None if targets.is_program() => {
            line.say(&format!("{} is still running; only the recording has ended", targets.label()));
        }
        None => {}
    }
    Ok(Recorded { trace, filter, targets, line, code, written })
}

/// What waits are shown of.
const BLOCKED: Measure = Measure { what: Measured::Blocked, by_reason: false, by_type: false, wakers: true };

/// Whether the recording has what it takes to show waits; says so if it has not, for it cannot be repeated.
fn found_waits(args: &Live, trace: &Trace, quiet: bool) -> bool {
    if trace.kept.switches.is_empty() {
        say::warning(
            "no context switches arrived, so it is not known when threads waited; CPU time is shown",
        );
        return false;
    }
    args.measure.check(trace, quiet).is_ok()
}

/// Where a result is kept that cannot be written to where it should be: a recording cannot be repeated.
fn fallback(format: &Format) -> PathBuf {
    let ending = format.endings.first().unwrap_or(&"");
    std::env::temp_dir().join(format!("etwprof-{}{ending}", std::process::id()))
}

fn has_run(trace: &Trace, filter: &Filter) -> bool {
    filter.processes(trace).contains(&true)
}

/// Lets `--delay` pass.
fn wait(time: Duration, targets: &mut Targets) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until && !console::asked_to_stop() {
        if targets.have_ended() {
            bail!("--delay: all targets ended before the recording began");
        }
        std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn said_at_start(recorder: &Recorder<Sunk>) {
    let started = recorder.started();
    for name in &started.stale {
        say::note(format_args!("stopped {name}, left behind by a crashed run"));
    }
    for warning in missing::warnings(started) {
        say::warning(warning);
    }
}

/// A recording that is looked at until it is time to stop.
struct Session<'a> {
    recorder: &'a mut Recorder<Sunk>,
    line: &'a StatusLine,
    conditions: Conditions<'a>,
    beside: Option<&'a Beside>,
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

impl<'a> Session<'a> {
    fn new(
        recorder: &'a mut Recorder<Sunk>,
        line: &'a StatusLine,
        conditions: Conditions<'a>,
        beside: Option<&'a Beside>,
    ) -> Session<'a> {
        let (now, processors) = (Instant::now(), recorder.started().origin.machine.processors);
        let share = Share { samples: 0, percent: None, processors };
        Session {
            recorder,
            line,
            conditions,
            beside,
            start: now,
            looked: now,
            share,
            all: 0,
            flushed: false,
            judged: false,
        }
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
        let counters = self.beside.map(|beside| {
            beside.of(targets.running());
            beside.warnings().iter().for_each(|warning| self.line.say(&format!("warning: {warning}")));
            beside.passed()
        });
        let happened = self.conditions.happened(targets, &self.share);
        if let Some(happened) = happened.or(counters.flatten()) {
            self.line.say(&format!("stopped: {happened}"));
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

fn finish(builder: Builder, losses: &Losses) -> Trace {
    let mut trace = builder.finish();
    // The trace has counted what the session told of losses; the session's own figures know of more.
    trace.lost.events = trace.lost.events.max(losses.events) + losses.dropped;
    trace.lost.buffers = trace.lost.buffers.max(losses.buffers);
    load::warn_lost(&trace.lost);
    load::warn_merged(&trace);
    for (number, what) in [
        (losses.dropped, "of the lost events were dropped because this machine was too slow"),
        (losses.late, "events arrived late and out of order"),
    ] {
        if number > 0 {
            say::warning(format_args!("{} {what}", count(number)));
        }
    }
    trace
}

/// Names the programs whose .NET methods may be without names.
fn warn_unlisted(trace: &Trace, filter: &Filter, pids: &[u32]) {
    let kept = filter.processes(trace);
    for pid in pids {
        let process = trace.processes.iter().zip(&kept).rev().find(|(process, _)| process.pid == *pid);
        if let Some((process, true)) = process {
            say::warning(format_args!(
                "{} ({pid}) did not list all of its .NET code; methods compiled before the recording may have no names",
                process.label()
            ));
        }
    }
}
