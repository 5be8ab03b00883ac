//! Symbols on the command line: where to look for them, the talk while they are fetched, what came of it; and
//! `etwprof symbols`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use etwprof::etl;
use etwprof::profile::{Filter, Limit, Naming, Profile};
use etwprof::report::{bytes, count, json, one_line};
use etwprof::symbols::lookup::{Attempt, Outcome};
use etwprof::symbols::path::{Element, SymbolPath, Tier};
use etwprof::symbols::resolver::{self, Hit, ModuleReport, Options, Symbols};
use etwprof::symbols::sources::SourceReport;
use etwprof::symbols::store::{Progress, Store, StoreOptions, user_cache};
use etwprof::symbols::verdict::Verdict;
use etwprof::symbols::{Limits, Names, Unnamed, Wanted};
use etwprof::trace::{Trace, file_name};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::output::Usage;
use super::{args, load, output, say};

/// A profile with names, and what became of the modules.
pub(super) struct Named {
    pub(super) profile: Profile,
    pub(super) symbols: Symbols,
}

/// Keeps the samples that `filter` keeps and names their frames, as the flags say. `files` are those of the recording;
/// archives among them may have symbols too.
pub(super) fn named(
    trace: &Trace,
    files: &[PathBuf],
    filter: &Filter,
    limit: Limit,
    args: &args::Symbols,
    quiet: bool,
) -> Result<Named> {
    let naming = Naming {
        inlined: !args.no_inline,
        lines: args.lines,
        tiers: args.tiers,
        raw: args.raw_names,
        parameters: args.parameters,
    };
    let profile = |names: &dyn Names, naming| Profile::within(limit, trace, filter, names, naming);
    if args.no_symbols {
        return Ok(Named { profile: profile(&Unnamed, naming), symbols: Symbols::default() });
    }
    let wanted = Wanted::default();
    let (kept, samples) = {
        // Nobody reads the names of this one.
        let bare = profile(&wanted, Naming { raw: true, ..naming });
        (bare.balance.kept, bare.samples_by_module())
    };
    let hits = wanted.addresses().into_iter().map(|(module, rvas)| Hit {
        module,
        samples: samples.get(&module).copied().unwrap_or(0),
        rvas,
    });
    let options = Options {
        samples: kept,
        min_share: args.min_module_share,
        lines: args.lines,
        limits: if limit == Limit::NONE { Limits::NONE } else { Limits::default() },
    };
    let path = checked_path(args)?;
    let archives = files.iter().filter(|file| etl::is_archive(file));
    let path = path.behind_trees(args.images.iter().cloned());
    let path = path.behind_archives(archives.cloned());
    let store = store(&path, args.offline, args.retry_failed);
    let talk = Talk::new(&path, args.offline, quiet);
    let on_progress = |name: &str, state: Progress<'_>| talk.on(name, state);
    let symbols = resolver::resolve(trace, hits.collect(), &wanted.places(), &store, &options, &on_progress);
    talk.done();
    Ok(Named { profile: profile(&symbols, naming), symbols })
}

/// Fails where [`named`] would fail for these flags, before there is something to lose.
pub(super) fn check(args: &args::Symbols) -> Result<()> {
    if !args.no_symbols {
        checked_path(args)?;
    }
    Ok(())
}

fn checked_path(args: &args::Symbols) -> Result<SymbolPath> {
    if let Some(missing) = args.images.iter().find(|folder| !folder.is_dir()) {
        bail!("--images: {} is not a folder", missing.display());
    }
    symbol_path(&args.symbols)
}

/// `--symbols`, then `_NT_SYMBOL_PATH`, or Microsoft's server where that is not set.
pub(super) fn symbol_path(added: &[String]) -> Result<SymbolPath> {
    if let Some(error) = added.iter().find_map(|text| SymbolPath::parse(text).err()) {
        bail!(Usage(format!("--symbols: {error}")));
    }
    let environment = std::env::var("_NT_SYMBOL_PATH").ok();
    SymbolPath::of_run(added, environment.as_deref()).context("_NT_SYMBOL_PATH")
}

pub(super) fn store(path: &SymbolPath, offline: bool, retry_failed: bool) -> Store {
    Store::new(path, StoreOptions { offline, retry_failed, ..StoreOptions::default() })
}

/// What is said on stderr while files are looked for.
pub(super) struct Talk {
    /// Said once, when a server is about to be asked.
    announcement: Mutex<Option<String>>,
    bars: MultiProgress,
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Talk {
    pub(super) fn new(path: &SymbolPath, offline: bool, quiet: bool) -> Talk {
        let servers: Vec<&str> = path
            .elements()
            .iter()
            .flat_map(|element| match element {
                Element::Server(tiers) => tiers.as_slice(),
                _ => &[],
            })
            .filter_map(|tier| match tier {
                Tier::Url(url) => Some(url.as_str()),
                _ => None,
            })
            .collect();
        let announcement = (!servers.is_empty() && !offline && !quiet).then(|| {
            let cache = user_cache().map_or("nowhere".to_owned(), |cache| cache.display().to_string());
            format!("symbols from {}, kept in {cache} (--offline asks no server)", servers.join(", "))
        });
        let target = if quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bars = MultiProgress::with_draw_target(target);
        Talk { announcement: Mutex::new(announcement), bars, running: Mutex::default() }
    }

    pub(super) fn on(&self, name: &str, state: Progress<'_>) {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match state {
            Progress::Started => {
                let announcement = self.announcement.lock().map(|mut text| text.take());
                if let Ok(Some(text)) = announcement {
                    say::note(text);
                }
            }
            Progress::Receiving { bytes, total } => {
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
            Progress::Finished(_) => {
                if let Some(bar) = running.remove(name) {
                    bar.finish_and_clear();
                }
            }
        }
    }

    pub(super) fn done(&self) {
        let _shown_or_not = self.bars.clear();
    }
}

/// How much of the profile has names, the files that were found and not used, and the modules that hurt most, on
/// stderr. `live`: there is no file that another command could be given.
pub(super) fn closing_lines(trace: &Trace, named: &Named, live: bool) {
    const SHOWN: usize = 3;
    let without: Vec<_> = named.symbols.sources.iter().filter(|report| !report.is_used()).collect();
    without.iter().take(SHOWN).for_each(|report| without_lines(report));
    if without.len() > SHOWN {
        say::note(format_args!("  {} more PDBs of .NET modules are missing", without.len() - SHOWN));
    }
    let modules = &named.symbols.modules;
    if modules.is_empty() {
        return;
    }
    let addresses: usize = modules.iter().map(|module| module.addresses).sum();
    let known: usize = modules.iter().map(|module| module.named).sum();
    let kept = named.profile.balance.kept;
    say::note(format_args!(
        "functions are known for {:.1}% of the samples; symbols name {} of {} addresses in {} of {} modules",
        percent(named.profile.named_leaves(), kept),
        count(known as u64),
        count(addresses as u64),
        modules.iter().filter(|module| module.named > 0).count(),
        modules.len()
    ));
    let left_out: u64 = modules.iter().map(|module| module.left_out).sum();
    if left_out > 0 {
        say::warning(format_args!(
            "{} inlined calls are left out: of each address, the middle of more than {}; --no-limit shows them",
            count(left_out),
            Limits::default().inlined_calls
        ));
    }
    let wrong: Vec<&Attempt> = modules
        .iter()
        .filter(|module| !matches!(module.verdict, Verdict::Mismatch { .. }))
        .flat_map(ModuleReport::wrong_files)
        .collect();
    for attempt in wrong.iter().take(SHOWN) {
        not_used(attempt);
    }
    let unnamed: Vec<&ModuleReport> = modules.iter().filter(|module| !module.verdict.is_named()).collect();
    for report in unnamed.iter().take(SHOWN) {
        let name = trace.module(report.module).map_or("", |module| module.file_name());
        let share = percent(report.samples, kept);
        let cure = if live { live_cure(&report.verdict) } else { report.verdict.cure() };
        let cure = cure.map(|cure| format!("; {cure}")).unwrap_or_default();
        say::note(format_args!("  {name} ({share:.1}% of samples): {}{cure}", report.verdict));
    }
    let hidden = wrong.len().saturating_sub(SHOWN) + unnamed.len().saturating_sub(SHOWN);
    if hidden > 0 {
        let all = if live { "" } else { "; `etwprof symbols` lists all" };
        say::note(format_args!("  {hidden} more{all}"));
    }
}

/// The cure of a module of a recording that is not in a file.
fn live_cure(verdict: &Verdict) -> Option<&'static str> {
    let offline = |attempt: &Option<Attempt>| {
        attempt.as_ref().is_some_and(|attempt| attempt.outcome == Outcome::Offline)
    };
    match verdict {
        Verdict::NoId { .. } => Some("name the folder of its image by --images"),
        Verdict::NotFound { reason } | Verdict::ExportsOnly { pdb: reason, .. } if offline(reason) => {
            Some("leave out --offline")
        }
        _ => verdict.cure(),
    }
}

/// Says why there are no source lines of a .NET module; nothing if there are.
pub(super) fn without_lines(report: &SourceReport) {
    let pdb = file_name(&report.pdb);
    let reason = match (&report.unreadable, &report.from) {
        (Some(reason), Some(from)) => format!("{}: {reason}", from.display()),
        (None, Some(_)) => return,
        (_, None) => report.reason().map_or("not found".to_owned(), ToString::to_string),
    };
    say::warning(format_args!("no source lines by {pdb}: {reason}"));
}

/// Names a file of another build.
pub(super) fn not_used(attempt: &Attempt) {
    say::warning(format_args!("{} is not used: {}", attempt.place, attempt.outcome));
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
    let loaded = load::trace(&args.files, quiet)?;
    let flags = args::Symbols {
        offline: !args.fetch,
        retry_failed: args.retry_failed,
        ..args::Symbols::offline(&args.symbols, &args.images)
    };
    let limit = load::limit(&loaded.trace, args.no_limit);
    let named = named(&loaded.trace, &args.files, &load::filter(&args.filter), limit, &flags, quiet)?;
    let trace = &loaded.trace;
    output::write(None, |mut out| {
        if args.json {
            let rows: Vec<Row<'_>> =
                named.symbols.modules.iter().filter_map(|report| row(trace, report)).collect();
            return json(&mut out, &rows);
        }
        table(&mut out, trace, &named, args.places)
    })?;
    if !quiet {
        let sizes = named.symbols.modules.iter().filter_map(|report| {
            let (Verdict::Resolved { from } | Verdict::PublicOnly { from }) = &report.verdict else {
                return None;
            };
            Some(std::fs::metadata(from).ok()?.len())
        });
        say::note(format_args!("{} of symbols are used", bytes(sizes.sum())));
    }
    Ok(())
}

fn row<'a>(trace: &'a Trace, report: &ModuleReport) -> Option<Row<'a>> {
    let module = trace.module(report.module)?;
    Some(Row {
        path: &module.path,
        samples: report.samples,
        addresses: report.addresses,
        named: report.named,
        pdb_name: module.pdb.as_ref().map(|pdb| pdb.name.as_str()),
        pdb_guid: module.pdb.as_ref().map(|pdb| pdb.guid.to_string()),
        pdb_age: module.pdb.as_ref().map(|pdb| pdb.age),
        verdict: report.verdict.word(),
        detail: report.verdict.to_string(),
        cure: report.verdict.cure(),
        attempts: report.attempts.iter().map(ToString::to_string).collect(),
    })
}

fn table(out: &mut impl Write, trace: &Trace, named: &Named, places: bool) -> io::Result<()> {
    writeln!(out, "{:>9}  {:>6}  {:>13}  {:<24}  verdict", "samples", "share", "named", "module")?;
    for report in &named.symbols.modules {
        let share = percent(report.samples, named.profile.balance.kept);
        let name = trace.module(report.module).map_or("", |module| module.file_name());
        let (samples, name) = (count(report.samples), one_line(name));
        let known = format!("{} of {}", count(report.named as u64), count(report.addresses as u64));
        let verdict = report.verdict.to_string();
        writeln!(out, "{samples:>9}  {share:>5.1}%  {known:>13}  {name:<24}  {}", one_line(&verdict))?;
        let shown = report.attempts.iter().filter(|attempt| places || attempt.outcome.is_wrong_file());
        for attempt in shown {
            writeln!(out, "{:37}{}", "", one_line(&attempt.to_string()))?;
        }
        if let Some(cure) = report.verdict.cure().filter(|_| places) {
            writeln!(out, "{:37}cure: {cure}", "")?;
        }
    }
    Ok(())
}
