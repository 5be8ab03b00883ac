//! Symbols on the command line: where to look for them, the talk while they are fetched, what came of it; and
//! `etwprof symbols`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, bail};
use etwprof::Analysis;
use etwprof::profile::{Detail, Profile, Resolution};
use etwprof::report::{bytes, count, json, one_line};
use etwprof::symbols::find::lookup::{Found, Place};
use etwprof::symbols::find::options::user_cache;
use etwprof::symbols::find::path::KeptIn;
use etwprof::symbols::il_images::IlImage;
use etwprof::symbols::{
    Attempt, IlPdbReport, Limits, Lookup, ModuleReport, Outcome, Progress, SymbolPath, Verdict,
};
use etwprof::trace::Trace;
use etwprof::winpath::file_name;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::progress::Lines;
use super::{args, choose, load, output, say, strict, words};

/// What is said on stderr while files are looked for.
pub(super) struct Talk {
    /// Said once, when a server is about to be asked.
    announcement: Mutex<Option<String>>,
    bars: MultiProgress,
    running: Mutex<BTreeMap<String, ProgressBar>>,
    /// Folders that files were kept in, and said to be; others are noted.
    kept_in: Mutex<BTreeSet<PathBuf>>,
    quiet: bool,
    /// What lines say in place of bars, off a terminal.
    lines: Option<Mutex<Lines>>,
}

/// The key of the bar that shows silence; no file has an empty name.
const SILENCE: &str = "";

impl Talk {
    pub(super) fn new(path: &SymbolPath, offline: bool, quiet: bool) -> Talk {
        let mut servers = path.kept_in(user_cache().as_deref());
        let homeless = servers.extract_if(.., |kept| kept.folders.is_empty()).map(|kept| kept.server);
        let homeless: Vec<_> = homeless.collect();
        if let (Some(server), false) = (homeless.first(), offline || quiet) {
            let all = homeless.join(", ");
            say::warning(format_args!(
                "no folder to keep symbols from {all} in: no home folder was found; write `srv*FOLDER*{server}`"
            ));
        }
        let announcement = (!servers.is_empty() && !offline && !quiet)
            .then(|| format!("downloading symbols {} (--offline disables this)", from_to(&servers)));
        let target = if quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bars = MultiProgress::with_draw_target(target);
        let lines = (!quiet && bars.is_hidden()).then(|| Mutex::new(Lines::new()));
        let kept_in = servers.into_iter().flat_map(|server| server.folders).collect();
        Talk {
            announcement: Mutex::new(announcement),
            bars,
            running: Mutex::default(),
            kept_in: Mutex::new(kept_in),
            quiet,
            lines,
        }
    }

    /// For when nothing is looked for.
    pub(super) fn silent() -> Talk {
        Talk::new(&SymbolPath::default(), true, true)
    }

    pub(super) fn on(&self, name: &str, state: Progress<'_>) {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lines =
            self.lines.as_ref().map(|lines| lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        match state {
            Progress::Started => {}
            Progress::Receiving { bytes, total } => {
                let announcement = self.announcement.lock().map(|mut text| text.take());
                if let Ok(Some(text)) = announcement {
                    say::note(text);
                }
                if let Some(bar) = running.remove(SILENCE) {
                    bar.finish_and_clear();
                }
                let bar = running.entry(name.to_owned()).or_insert_with(|| {
                    let bar = self.bars.add(ProgressBar::new_spinner());
                    let style =
                        ProgressStyle::with_template("{spinner} {bytes:>10} of {total_bytes:<10} {msg}");
                    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                    bar.set_message(one_line(name).into_owned());
                    bar
                });
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(bytes);
                bar.tick();
            }
            Progress::Waiting { server, seconds } => {
                let text = format!("waiting for {}: no answer for {seconds} s", one_line(server));
                if !self.bars.is_hidden() {
                    let bar = running.entry(SILENCE.to_owned()).or_insert_with(|| {
                        let bar = self.bars.add(ProgressBar::new_spinner());
                        let style = ProgressStyle::with_template("{spinner} {msg}");
                        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                        bar
                    });
                    bar.set_message(text);
                    bar.tick();
                }
            }
            Progress::Finished(lookup) => {
                self.note_elsewhere(lookup);
                for bar in [running.remove(name), running.remove(SILENCE)].into_iter().flatten() {
                    bar.finish_and_clear();
                }
            }
            _ => {}
        }
        if let Some(line) = lines.and_then(|mut lines| lines.line(name, &state, Instant::now())) {
            say::note(line);
        }
    }

    /// Says where a file that came from a server is kept, if that is in none of the announced folders.
    fn note_elsewhere(&self, lookup: &Lookup) {
        let Some(Found { path, from: Place::Url(_), .. }) = &lookup.found else { return };
        // The cache's folder, above the file, its index and its name.
        let Some(folder) = path.ancestors().nth(3).filter(|_| !self.quiet) else { return };
        let Ok(mut known) = self.kept_in.lock() else { return };
        if !known.iter().any(|known| path.starts_with(known)) {
            say::warning(format_args!(
                "symbols are kept in {}, because the caches of the symbol path cannot be written to",
                folder.display()
            ));
            known.insert(folder.to_owned());
        }
    }

    pub(super) fn done(&self) {
        let _shown_or_not = self.bars.clear();
    }
}

/// `from A, B to /cache; from C to /other`.
fn from_to(servers: &[KeptIn]) -> String {
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for KeptIn { server, folders } in servers {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let to = folders.join(" and ");
        match parts.iter_mut().find(|(known, _)| *known == to) {
            Some((_, servers)) => servers.push(server),
            None => parts.push((to, vec![server])),
        }
    }
    let parts = parts.iter().map(|(to, servers)| format!("from {} to {to}", servers.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

/// Causes, files or modules of a kind that are shown.
const SHOWN: usize = 3;

/// Why there are fewer names and lines than there could be, on stderr.
pub(super) fn warnings(analysis: &Analysis) {
    let Analysis { profile, symbols, .. } = analysis;
    let modules = &symbols.modules;
    without_sources(&symbols.il_pdbs);
    let left_out: u64 = modules.iter().map(|module| module.left_out).sum();
    if left_out > 0 {
        say::warning(format_args!(
            "{} inlined calls are hidden, in the middle of more than {} at one address; --no-limit shows them",
            count(left_out),
            Limits::default().inlined_calls
        ));
    }
    wrong_files(modules).take(SHOWN).for_each(not_used);
    time_is_up(profile, modules);
}

/// The files of another build that were found for modules without symbols.
fn wrong_files(modules: &[ModuleReport]) -> impl Iterator<Item = &Attempt> {
    let missing = modules.iter().filter(|module| !matches!(module.verdict, Verdict::Mismatch { .. }));
    missing.flat_map(ModuleReport::wrong_files)
}

/// How much of the profile has names, and the modules that hurt most, on stderr. `frames` are those of all processes;
/// `live`: there is no file that another command could be given.
pub(super) fn closing_lines(analysis: &Analysis, frames: &Resolution, live: bool) {
    let Analysis { profile, symbols, .. } = analysis;
    let modules = &symbols.modules;
    if modules.is_empty() {
        return;
    }
    let addresses: usize = modules.iter().map(|module| module.addresses).sum();
    let known: usize = modules.iter().map(|module| module.named).sum();
    let kept = profile.balance.kept;
    say::note(format_args!(
        "named: {:.1}% of samples by their leaf, {:.1}% of frames; symbols name {} of {} addresses in {} of {} modules",
        percent(profile.named_leaves(), kept),
        frames.percent(),
        count(known as u64),
        count(addresses as u64),
        modules.iter().filter(|module| module.named > 0).count(),
        modules.len()
    ));
    let command = if live { words::Command::Live } else { words::Command::Convert };
    let causes = by_cause(modules, command);
    for (cause, reports) in causes.iter().take(SHOWN) {
        let named = |report: &ModuleReport| {
            let name = profile.trace.module(report.module).map_or("", |module| module.file_name());
            (name, format!("{:.1}%", percent(report.samples, kept)))
        };
        let shown: Vec<_> = reports.iter().take(SHOWN).map(|report| named(report)).collect();
        let who = match shown.as_slice() {
            [(name, share)] => format!("{name} ({share} of samples)"),
            several => {
                let names = several.iter().enumerate().map(|(place, (name, share))| {
                    let of = if place == 0 { " of samples" } else { "" };
                    format!("{name} {share}{of}")
                });
                listed("modules", names.collect(), reports.len())
            }
        };
        say::note(format_args!("  {who}: {cause}"));
    }
    let hidden: usize = causes.iter().skip(SHOWN).map(|(_, reports)| reports.len()).sum();
    let hidden = hidden + wrong_files(modules).skip(SHOWN).count();
    if hidden > 0 {
        let all = if live { "" } else { "; `etwprof symbols` lists all" };
        say::note(format_args!("  {hidden} more{all}"));
    }
}

/// Warns that servers were not asked for the symbols of some modules.
fn time_is_up(profile: &Profile, modules: &[ModuleReport]) {
    let cut: Vec<_> = modules.iter().filter_map(|module| Some((module, cut_off(module)?))).collect();
    let Some((_, outcome)) = cut.first() else { return };
    let name =
        |report: &ModuleReport| profile.trace.module(report.module).map_or("", |m| m.file_name()).to_owned();
    let names = cut.iter().take(SHOWN).map(|(report, _)| name(report)).collect();
    let who = listed("modules", names, cut.len());
    say::warning(format_args!("{outcome}: {who} not asked for; raise --symbol-timeout"));
}

/// That the time was up before a module had its symbols.
fn cut_off(report: &ModuleReport) -> Option<&Outcome> {
    let is_cut = |attempt: &&Attempt| matches!(attempt.outcome, Outcome::TimeUp { .. });
    report.attempts.iter().find(is_cut).map(|attempt| &attempt.outcome).filter(|_| !report.verdict.is_named())
}

/// The modules without sure names by their cause and its cure; what most samples hit comes first.
fn by_cause(modules: &[ModuleReport], command: words::Command) -> Vec<(String, Vec<&ModuleReport>)> {
    let mut causes: Vec<(Option<String>, String, Vec<&ModuleReport>)> = Vec::new();
    for report in modules.iter().filter(|module| !module.verdict.is_named() && cut_off(module).is_none()) {
        let cure = words::cure(&report.verdict, command).map(|cure| format!("; {cure}")).unwrap_or_default();
        let cause = report.verdict.cause().map(|cause| cause + &cure);
        match causes.iter_mut().find(|(known, _, _)| cause.is_some() && *known == cause) {
            Some((_, _, reports)) => reports.push(report),
            None => causes.push((cause, format!("{}{cure}", report.verdict), vec![report])),
        }
    }
    // Of a single module its own files are named.
    let text = |cause: Option<String>, own, alone| if alone { own } else { cause.unwrap_or(own) };
    causes.into_iter().map(|(cause, own, reports)| (text(cause, own, reports.len() == 1), reports)).collect()
}

/// `a.pdb` for one, `12 PDBs (a.pdb, b.pdb, c.pdb, ...)` for several.
fn listed(what: &str, names: Vec<String>, all: usize) -> String {
    match names.as_slice() {
        [name] if all == 1 => name.clone(),
        names => {
            let more = if names.len() < all { ", ..." } else { "" };
            format!("{} {what} ({}{more})", count(all as u64), names.join(", "))
        }
    }
}

/// Says for each cause which PDBs of .NET modules give no source lines.
fn without_sources(reports: &[IlPdbReport]) {
    let mut causes: Vec<(String, Vec<&IlPdbReport>)> = Vec::new();
    for report in reports.iter().filter(|report| !report.is_used()) {
        let Some(reason) = no_lines(report) else { continue };
        match causes.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, reports)) => reports.push(report),
            None => causes.push((reason, vec![report])),
        }
    }
    for (reason, reports) in causes.iter().take(SHOWN) {
        let names = reports.iter().take(SHOWN).map(|report| file_name(&report.pdb).to_owned()).collect();
        say::warning(format_args!("no source lines from {}: {reason}", listed("PDBs", names, reports.len())));
    }
    let hidden: usize = causes.iter().skip(SHOWN).map(|(_, reports)| reports.len()).sum();
    if hidden > 0 {
        say::note(format_args!("  {hidden} more PDBs of .NET modules are missing"));
    }
}

/// Why a PDB gives no lines; `None` if it does.
fn no_lines(report: &IlPdbReport) -> Option<String> {
    match (&report.unreadable, &report.from) {
        (Some(reason), Some(from)) => Some(format!("{}: {reason}", from.display())),
        (None, Some(_)) => None,
        (_, None) => Some(report.reason().map_or("not found".to_owned(), |attempt| match &attempt.outcome {
            // Their places differ by the name of the file alone.
            outcome @ (Outcome::Offline | Outcome::NotThere) => outcome.to_string(),
            _ => attempt.to_string(),
        })),
    }
}

/// Says why there are no source lines of a .NET module; nothing if there are.
pub(super) fn without_lines(report: &IlPdbReport) {
    if let Some(reason) = no_lines(report) {
        say::warning(format_args!("no source lines from {}: {reason}", file_name(&report.pdb)));
    }
}

/// Says which assembly's methods have no names because its IL is missing.
pub(super) fn without_il(il: &IlImage) {
    let reason = il.reason().map_or("not found".to_owned(), ToString::to_string);
    let assembly = one_line(il.assembly());
    say::warning(format_args!(
        "the IL of {assembly} was not found, so its methods have no names: {}",
        one_line(&reason)
    ));
}

/// Names a file of another build.
pub(super) fn not_used(attempt: &Attempt) {
    say::warning(format_args!("{} was not used: {}", attempt.place, attempt.outcome));
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// One module as `etwprof symbols --json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    path: &'a str,
    samples: u64,
    addresses: usize,
    named: usize,
    pdb_name: Option<&'a str>,
    pdb_guid: Option<String>,
    pdb_age: Option<u32>,
    verdict: &'static str,
    detail: String,
    cure: Option<&'static str>,
    attempts: Vec<String>,
}

pub(super) fn run(args: &args::SymbolsCommand, quiet: bool) -> Result<()> {
    let filter = args.filter.options()?;
    let symbols = if args.fetch { args.symbols.options(quiet) } else { args.symbols.local(quiet) };
    let options = args.limits.options(filter, symbols?, Detail::default());
    let mut analysis = load::analysis(&args.files, &options, quiet)?;
    choose::narrow(&mut analysis, &options.filter, &args.filter.samples, Detail::default(), quiet)?;
    let modules = &analysis.symbols.modules;
    let trace = &analysis.profile.trace;
    load::warn(&analysis);
    if !quiet {
        time_is_up(&analysis.profile, modules);
    }
    let printed = output::print(|mut out| {
        if args.json {
            let rows: Vec<Row<'_>> = modules.iter().filter_map(|report| row(trace, report)).collect();
            return json(&mut out, &rows);
        }
        table(&mut out, &analysis, args.places)
    });
    if !quiet && printed.is_ok() {
        let sizes = modules.iter().filter_map(|report| {
            let (Verdict::Resolved { from } | Verdict::PublicOnly { from }) = &report.verdict else {
                return None;
            };
            Some(std::fs::metadata(from).ok()?.len())
        });
        say::note(format_args!("used {} of symbol files", bytes(sizes.sum())));
    }
    let names_wanted = options.symbols.is_some();
    strict::checked(args.limits.strict, printed, || strict::reasons(&analysis, names_wanted))?;
    if args.fetch { all_were_reached(modules) } else { Ok(()) }
}

/// Fails where a server failed: what is missing may be there.
fn all_were_reached(modules: &[ModuleReport]) -> Result<()> {
    let mut servers: BTreeMap<&str, &Outcome> = BTreeMap::new();
    for attempt in modules.iter().flat_map(|module| &module.attempts) {
        if let (Place::Url(url), true) = (&attempt.place, attempt.outcome.is_trouble()) {
            servers.entry(server(url)).or_insert(&attempt.outcome);
        }
    }
    let answers = servers.iter().map(|(server, outcome)| format!("{server}: {outcome}"));
    match answers.collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        answers => {
            bail!("--fetch: not every symbol server was reachable: {}", answers.join("; "))
        }
    }
}

/// The part of an address that names the server.
fn server(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = url.get(host..).and_then(|rest| rest.find('/')).map_or(url.len(), |length| host + length);
    url.get(..end).unwrap_or(url)
}

fn row<'a>(trace: &'a Trace, report: &ModuleReport) -> Option<Row<'a>> {
    let module = trace.module(report.module)?;
    Some(Row {
        path: &module.path,
        samples: report.samples,
        addresses: report.addresses,
        named: report.named,
        pdb_name: module.pdb.as_ref().map(|pdb| pdb.name.as_str()),
        pdb_guid: module.pdb.as_ref().map(|pdb| pdb.id.guid.to_string()),
        pdb_age: module.pdb.as_ref().map(|pdb| pdb.id.age),
        verdict: report.verdict.word(),
        detail: report.verdict.to_string(),
        cure: words::cure(&report.verdict, words::Command::Symbols),
        attempts: report.attempts.iter().map(ToString::to_string).collect(),
    })
}

fn table(out: &mut impl Write, analysis: &Analysis, places: bool) -> io::Result<()> {
    let Analysis { profile, symbols, .. } = analysis;
    let file =
        |report: &ModuleReport| profile.trace.module(report.module).map_or("", |module| module.file_name());
    // A longer name moves its own line only.
    let widths = symbols.modules.iter().map(|report| file(report).chars().count());
    let width = widths.filter(|width| *width <= 48).max().unwrap_or_default().max("module".len());
    writeln!(out, "{:>9}  {:>6}  {:>13}  {:<width$}  verdict", "samples", "share", "named", "module")?;
    for report in &symbols.modules {
        let share = percent(report.samples, profile.balance.kept);
        let name = file(report);
        let (samples, name) = (count(report.samples), one_line(name));
        let known = format!("{} of {}", count(report.named as u64), count(report.addresses as u64));
        let verdict = report.verdict.to_string();
        writeln!(out, "{samples:>9}  {share:>5.1}%  {known:>13}  {name:<width$}  {}", one_line(&verdict))?;
        let shown = report.attempts.iter().filter(|attempt| places || attempt.outcome.is_wrong_file());
        for attempt in shown {
            writeln!(out, "{:37}{}", "", one_line(&attempt.to_string()))?;
        }
        if let Some(cure) = words::cure(&report.verdict, words::Command::Symbols).filter(|_| places) {
            writeln!(out, "{:37}cure: {cure}", "")?;
        }
    }
    Ok(())
}
