//! What the flags mean, checked: a command begins its work with these, and what is wrong with the line is known before.

use anyhow::{Result, bail};
use etwprof::profile::{Detail, Filter, Measure, Measured, Moment, Nameless};
use etwprof::report::count;
use etwprof::symbols::find::credentials::{Credentials, netrc_file};
use etwprof::symbols::{StoreOptions, SymbolPath};
use etwprof::trace::{Parts, Trace};
use etwprof::{Options, SymbolOptions};

use super::usage::Usage;
use super::{args, say, words};

/// More of `--symbol-header`, one in each line: other users of the machine see the arguments of a program.
const SYMBOL_HEADERS: &str = "ETWPROF_SYMBOL_HEADERS";

impl args::Symbols {
    /// Where to look for the symbols of modules with any share; `None` if nothing is to be named. What is skipped is said
    /// on stderr.
    pub(super) fn options(&self, quiet: bool) -> Result<Option<SymbolOptions>> {
        self.with_servers(quiet, !self.offline)
    }

    fn with_servers(&self, quiet: bool, servers: bool) -> Result<Option<SymbolOptions>> {
        // Wrong is wrong, also where nothing is to be looked for.
        let path = self.path(quiet || self.no_symbols)?;
        let (offline, retry_failed) = (!servers, self.retry_failed);
        let mut credentials = self.headers()?;
        if servers && !self.no_symbols {
            add_netrc(&mut credentials, quiet);
        }
        let time = self.symbol_timeout.0;
        let store = StoreOptions { offline, retry_failed, time, credentials, ..StoreOptions::default() };
        Ok((!self.no_symbols).then(|| SymbolOptions { store, ..SymbolOptions::new(path) }))
    }

    /// The same without asking a server, whatever the flags say.
    pub(super) fn local(&self, quiet: bool) -> Result<Option<SymbolOptions>> {
        self.with_servers(quiet, false)
    }

    /// `--symbol-header` and its variable.
    fn headers(&self) -> Result<Credentials> {
        let mut credentials = Credentials::default();
        let variable = std::env::var(SYMBOL_HEADERS).unwrap_or_default();
        let given = self.symbol_header.iter().map(|text| ("--symbol-header", text.as_str()));
        let lines = variable.lines().filter(|line| !line.trim().is_empty());
        for (origin, text) in given.chain(lines.map(|line| (SYMBOL_HEADERS, line))) {
            // The text has a secret.
            credentials.add_header(text).map_err(|why| Usage(format!("{origin}: {why}")))?;
        }
        Ok(credentials)
    }

    /// `--images` and `--symbols`, then the environment, or Microsoft's server where no path is set.
    fn path(&self, quiet: bool) -> Result<SymbolPath> {
        if let Some(missing) = self.images.iter().find(|folder| !folder.is_dir()) {
            bail!(Usage(format!("--images: there is no folder {}", missing.display())));
        }
        let variable = |name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        let (path, skipped) = SymbolPath::of_run(&self.symbols, variable)
            .map_err(|error| Usage(format!("--symbols: {error}; {}", words::instead(error.reason))))?;
        for skipped in skipped.iter().filter(|_| !quiet) {
            let (variable, cause) = (skipped.variable, &skipped.cause);
            say::warning(format_args!("{variable}: skipped {cause}; {}", words::instead(cause.reason)));
        }
        Ok(path.behind_trees(self.images.iter().cloned()))
    }
}

/// The logins of the user's netrc file, which is there for other programs too: without it we go on.
fn add_netrc(credentials: &mut Credentials, quiet: bool) {
    if let Some(netrc) = netrc_file()
        && let Err(error) = credentials.read_netrc(&netrc)
        && !quiet
    {
        let netrc = netrc.display();
        say::warning(format_args!(
            "cannot read {netrc} for the logins of symbol servers: {error}; check NETRC"
        ));
    }
}

impl args::Limits {
    /// What to make of a recording: all that flags say of it.
    pub(super) fn options(&self, filter: Filter, symbols: Option<SymbolOptions>, detail: Detail) -> Options {
        let min_share = self.min_module_share;
        let symbols = symbols.map(|symbols| SymbolOptions { min_share, lines: detail.lines, ..symbols });
        let (trusted, repair, addresses) = (self.no_limit, self.repair_stacks, detail.addresses);
        let (jobs, memory) = (self.jobs, self.max_memory);
        Options { filter, symbols, trusted, repair, addresses, jobs, memory, ..Options::default() }
    }
}

impl args::Measure {
    /// The flags, as they may be typed.
    pub(super) fn chosen(&self) -> Vec<String> {
        let metric = clap::ValueEnum::to_possible_value(&self.metric);
        let metric = metric.filter(|_| self.metric != args::MetricWord::Cpu);
        let mut flags: Vec<String> =
            metric.iter().map(|metric| format!("--metric {}", metric.get_name())).collect();
        flags.extend(self.event.iter().map(|event| format!("--event '{event}'")));
        flags.extend(self.by_reason.then(|| "--by-reason".to_owned()));
        flags.extend(self.by_type.then(|| "--by-type".to_owned()));
        flags.extend(self.with_wakers.then(|| "--with-wakers".to_owned()));
        flags
    }

    /// What is measured, if the flags fit together.
    pub(super) fn checked(&self) -> Result<Measure> {
        let measure = self.measure();
        if measure.by_reason && !matches!(measure.what, Measured::Blocked | Measured::Wall) {
            bail!(Usage(
                "--by-reason: only blocked time has reasons; use it with --metric blocked or wall".to_owned()
            ));
        }
        if measure.by_type && measure.what != Measured::Allocated {
            bail!(Usage(
                "--by-type: only what was allocated has types; use it with --metric allocated".to_owned()
            ));
        }
        if measure.wakers && !matches!(measure.what, Measured::Blocked | Measured::Ready | Measured::Wall) {
            bail!(Usage(
                "--with-wakers: only waits have wakers; use it with --metric blocked, ready or wall"
                    .to_owned()
            ));
        }
        Ok(measure)
    }

    /// Fails if the recording does not have what the metric needs.
    pub(super) fn check(&self, trace: &Trace, quiet: bool) -> Result<()> {
        if self.is_of_events() {
            return check_events(trace, self, quiet);
        }
        if self.metric == args::MetricWord::Cpu {
            return Ok(());
        }
        check_switches(trace)?;
        if self.with_wakers && trace.kept.readied.is_empty() {
            say::warning(
                "--with-wakers: the recording does not say who made threads ready; record with DISPATCHER too",
            );
        }
        if !quiet {
            warn_of_stacks(trace);
        }
        Ok(())
    }
}

/// Fails if a recording has none of the chosen events, or no stack of any.
fn check_events(trace: &Trace, measure: &args::Measure, quiet: bool) -> Result<()> {
    let events = &trace.kept.events;
    let bare = events.iter().filter(|event| trace.stack(event.stack).parts() == Parts::None).count();
    if measure.metric == args::MetricWord::Allocated && events.is_empty() {
        bail!(
            "the recording has no allocation events; record the GC keyword of Microsoft-Windows-DotNETRuntime at the verbose \
             level, with stacks (PerfView collects it by default)"
        );
    }
    if events.is_empty() {
        bail!("the chosen events never have stacks: they say what a session, a stack or an image file is");
    }
    if bare == events.len() {
        bail!(
            "the chosen events were recorded without stacks; `xperf -stackwalk` names kernel events that get them, and \
             PerfView's providers take @StacksEnabled=true"
        );
    }
    if bare > 0 && !quiet {
        say::warning(format_args!(
            "{} of the {} chosen events have no stack; they are shown under [no stack]",
            count(bare as u64),
            count(events.len() as u64)
        ));
    }
    Ok(())
}

/// Warns if it is not known where threads went to sleep.
pub(super) fn warn_of_stacks(trace: &Trace) {
    if trace.kept.switches.iter().all(|switch| trace.stack(switch.stack).parts() == Parts::None) {
        say::warning(
            "context switches were recorded without stacks, so it is not known where threads waited; \
             `xperf -stackwalk Profile+CSwitch+ReadyThread` records them",
        );
    }
}

/// Fails if a recording has no context switches, without which nothing is known of waits.
pub(super) fn check_switches(trace: &Trace) -> Result<()> {
    if trace.kept.switches.is_empty() {
        bail!(
            "the recording has no context switches, so it does not say when threads waited; record with \
             `wpr -start CPU`, PerfView's Thread Time, or `xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH+DISPATCHER`"
        );
    }
    Ok(())
}

impl args::Names {
    pub(super) fn options(&self) -> Detail {
        let nameless = if self.addresses { Nameless::ByAddress } else { Nameless::ByModule };
        Detail {
            inlined: !self.no_inline,
            lines: self.lines,
            tiers: self.tiers,
            raw: self.raw_names,
            parameters: self.parameters,
            nameless,
            addresses: false,
        }
    }
}

impl args::Filter {
    pub(super) fn options(&self) -> Result<Filter> {
        let Filter { pids, names, children, .. } = self.processes.options()?;
        Ok(Filter { pids, names, children, ..self.samples.options()? })
    }
}

impl args::Processes {
    /// The processes, and all of their samples.
    pub(super) fn options(&self) -> Result<Filter> {
        if self.children && self.pid.is_empty() && self.name.is_empty() {
            bail!(Usage("--children: name a process too, with --pid or --name".to_owned()));
        }
        let (pids, names) = (self.pid.clone(), self.name.clone());
        Ok(Filter { pids, names, children: self.children, ..Filter::default() })
    }
}

impl args::Filter {
    /// The flags that choose samples, but those of time, as they may be typed.
    pub(super) fn chosen(&self) -> Vec<String> {
        let args::Filter { processes, samples } = self;
        let mut flags: Vec<String> = processes.pid.iter().map(|pid| format!("--pid {pid}")).collect();
        flags.extend(words::flags("--name", &processes.name));
        flags.extend(processes.children.then(|| "--children".to_owned()));
        flags.extend(samples.chosen());
        flags
    }
}

impl args::Samples {
    /// The same of these.
    pub(super) fn chosen(&self) -> Vec<String> {
        let mut flags: Vec<String> = self.tid.iter().map(|tid| format!("--tid {tid}")).collect();
        flags.extend(words::flags("--thread", &self.thread));
        flags.extend(self.cpu.iter().map(|cpu| match (cpu.start(), cpu.end()) {
            (first, last) if first == last => format!("--cpu {first}"),
            (first, last) => format!("--cpu {first}-{last}"),
        }));
        flags.extend(words::flags("--module", &self.module));
        flags.extend(words::flags("--function", &self.function));
        flags.extend(words::flags("--exclude", &self.exclude));
        let kinds = self.category.iter().filter_map(clap::ValueEnum::to_possible_value);
        flags.extend(kinds.map(|kind| format!("--category {}", kind.get_name())));
        let during = self.during.as_ref().and_then(clap::ValueEnum::to_possible_value);
        flags.extend(during.map(|during| format!("--during {}", during.get_name())));
        flags.extend(self.include_idle.then(|| "--include-idle".to_owned()));
        flags
    }

    /// What facts of the recording decide; for names see [`choose`](super::choose).
    pub(super) fn options(&self) -> Result<Filter> {
        // Times of day are compared when it is known when the recording began.
        if let (Some(Moment::Seconds(from)), Some(Moment::Seconds(to))) = (self.from, self.to)
            && from >= to
        {
            bail!(Usage("--from must be before --to".to_owned()));
        }
        Ok(Filter {
            tids: self.tid.clone(),
            threads: self.thread.clone(),
            cpus: self.cpu.clone(),
            include_idle: self.include_idle,
            from: self.from,
            to: self.to,
            during: self.during.map(args::During::during),
            ..Filter::default()
        })
    }

    /// The same for a recording that has just been made here: nobody looks at the clock while it begins.
    #[cfg(windows)]
    pub(super) fn options_without_times_of_day(&self) -> Result<Filter> {
        for (option, moment) in [("--from", self.from), ("--to", self.to)] {
            if matches!(moment, Some(Moment::TimeOfDay(_) | Moment::UtcTimeOfDay(_))) {
                bail!(Usage(format!(
                    "{option} takes the time since the start of a live recording: 10, 1.5s, 1m30s"
                )));
            }
        }
        self.options()
    }
}
