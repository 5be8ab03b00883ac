//! `etwprof trim`: a recording made smaller, or its parts made one.

use std::cell::RefCell;
use std::collections::BTreeSet;
#[cfg(windows)]
use std::path::Path;
use std::path::PathBuf;

use anyhow::{Result, bail};
use etwprof::analysis;
use etwprof::etl::{Reading, Recording, writer};
use etwprof::event::Event;
use etwprof::guid::Guid;
use etwprof::guids::provider_name;
use etwprof::profile::Filter;
use etwprof::report::count;
use etwprof::report::trim::{self as report, Trimmed};
use etwprof::symbols::local_images;
use etwprof::trace::{ModuleId, PdbId, ProcessId, Trace};
use etwprof::trim::{Choice, Identities, Identity, Trim};

use rustc_hash::FxHashMap;

use super::args::Provider;
use super::usage::Usage;
use super::{args, candidates, load, output, say};

pub(super) fn run(args: &args::Trim, quiet: bool) -> Result<()> {
    let trimmed = trimmed(args, Identities::default(), quiet)?;
    output::print(|mut out| match args.json {
        true => report::write_json(&mut out, &trimmed),
        false => report::write(&mut out, &trimmed),
    })
}

/// Writes the smaller recording, with these identities of images and those that its options find.
fn trimmed(args: &args::Trim, mut identities: Identities, quiet: bool) -> Result<Trimmed> {
    let to = args::Output { path: Some(args.output.clone()), format: None };
    if to.file().is_none() || args.output.exists() && !args.output.is_file() && !args.output.is_dir() {
        bail!(Usage("-o: cannot write to stdout or a device; name a file: -o small.etl".to_owned()));
    }
    to.check(&args.files)?;
    let filter = args.filter()?;
    let is_all = filter.keeps_all() && args.provider.is_empty();
    if let Some(missing) = args.images.iter().find(|folder| !folder.is_dir()) {
        bail!(Usage(format!("--images: there is no folder {}", missing.display())));
    }
    let recording = Recording::open(&args.files)?;
    let jobs = analysis::processors();
    // Who was there and when is read first. Samples are of no use for that.
    let Reading { value: trace, .. } =
        load::watched(&recording, quiet, |progress| match is_all && args.images.is_empty() {
            true => Reading { value: None, damage: Vec::new() },
            false => {
                let prepare = |builder: &mut etwprof::trace::Builder| {
                    builder.keep_only([]);
                    builder.hold(0);
                };
                let Reading { value, damage } = analysis::trace_with(&recording, None, progress, prepare);
                Reading { value: Some(value), damage }
            }
        })?;
    let mut trace = trace;
    if let Some(trace) = &mut trace {
        identities.extend(found_in(trace, &args.images, quiet));
    }
    let choice = match &trace {
        Some(trace) if !is_all => {
            let choice = choice(args, &filter, trace, quiet)?;
            let providers = providers(&args.provider, &recording, quiet)?;
            Some((trace, Choice { providers, ..choice }))
        }
        _ => None,
    };
    let trim = match choice {
        None => (args.anonymize || !identities.is_empty()).then(Trim::all),
        Some((trace, choice)) => {
            let survey = |progress: &mut dyn FnMut(u64)| {
                let value = Trim::new(&recording, trace, choice, jobs, progress);
                Reading { value, damage: Vec::new() }
            };
            Some(load::watched(&recording, quiet, survey)?.value)
        }
    };
    let trim = trim.map(|trim| trim.identifying(identities));
    let trim = if args.anonymize { trim.map(Trim::anonymous) } else { trim };
    drop(trace);
    let compress = match (args.compress, args.no_compress) {
        (true, _) => true,
        (_, true) => false,
        _ => recording.files().iter().any(|file| file.header().is_compressed()),
    };
    let copied = RefCell::new(None);
    let mut shrunk = None;
    output::write_recording(&args.output, |out| {
        let reading = load::watched(&recording, quiet, |progress| {
            let copy = match &trim {
                Some(trim) => writer::copy(&recording, trim, compress, jobs, progress, out),
                None => writer::copy(&recording, &writer::KeepAll, compress, jobs, progress, out),
            };
            match copy {
                Ok(Reading { value, damage }) => Reading { value: Ok(value), damage },
                Err(error) => Reading { value: Err(error), damage: Vec::new() },
            }
        });
        match reading {
            Ok(Reading { value, damage }) => {
                copied.replace(Some((value?, damage)));
                Ok(())
            }
            Err(error) => {
                shrunk = Some(error);
                Err(std::io::Error::other("a part of the recording is gone"))
            }
        }
    })
    .map_err(|error| shrunk.unwrap_or(error))?;
    let Some((copied, damage)) = copied.into_inner() else { bail!("nothing was written") };
    load::warn_damaged(&damage);
    let trimmed = Trimmed::new(recording.size(), &copied, damage.len());
    let unknown = trimmed.dropped.get("unknown_layout").copied().unwrap_or(0);
    if !quiet && unknown > trimmed.events_in / 2 {
        let (unknown, all) = (count(unknown), count(trimmed.events_in));
        say::note(format_args!(
            "most events were left out: etwprof does not know the layout of {unknown} of {all}"
        ));
    }
    Ok(trimmed)
}

/// Writes what `filter` keeps of the processes of a recording's parts to one file, with these identities of images.
#[cfg(windows)]
pub(super) fn shrink(
    parts: &[PathBuf],
    to: &Path,
    filter: &Filter,
    identities: Identities,
    compress: bool,
    quiet: bool,
) -> Result<Trimmed> {
    let processes =
        args::Processes { pid: filter.pids.clone(), name: filter.names.clone(), children: filter.children };
    let args = args::Trim {
        files: parts.to_vec(),
        output: to.to_owned(),
        compress,
        no_compress: !compress,
        images: Vec::new(),
        anonymize: false,
        json: false,
        processes,
        from: None,
        to: None,
        provider: Vec::new(),
    };
    trimmed(&args, identities, quiet)
}

impl args::Trim {
    fn filter(&self) -> Result<Filter> {
        Ok(Filter { from: self.from, to: self.to, ..self.processes.options()? })
    }
}

/// The identities of images that these folders have, and the recording does not.
fn found_in(trace: &mut Trace, folders: &[PathBuf], quiet: bool) -> Identities {
    if folders.is_empty() {
        return Identities::default();
    }
    let found: BTreeSet<ModuleId> = local_images::identify_in(trace, folders).into_iter().collect();
    if !quiet {
        let without =
            trace.modules.iter().filter(|module| module.pdb.is_none() && module.managed_pdb.is_none());
        let (found, without) = (count(found.len() as u64), count(without.count() as u64));
        say::note(format_args!("the PDB ids of {found} images were added; {without} images have none"));
    }
    identities_of(trace, &found)
}

/// The identities of these modules, wherever they are mapped.
pub(super) fn identities_of(trace: &Trace, modules: &BTreeSet<ModuleId>) -> Identities {
    let mut identities = Identities::default();
    for mapping in trace.mappings.iter().filter(|mapping| modules.contains(&mapping.module)) {
        let Some(module) = trace.module(mapping.module) else { continue };
        let pid = match trace.process(mapping.process) {
            Some(process) if !module.kernel => process.pid,
            _ => 0,
        };
        // An image of IL only has one, which stands in the place of the other.
        let pdb = module.pdb.as_ref().or(module.managed_pdb.as_ref());
        let managed = module.managed_pdb.as_ref().filter(|_| module.pdb.is_some());
        let known = |pdb: &PdbId| (pdb.name.clone(), pdb.id);
        let identity = Identity {
            timestamp: module.timestamp,
            name: module.file_name().to_owned(),
            pdb: pdb.map(known),
            managed_pdb: managed.map(known),
        };
        identities.insert((pid, mapping.base, mapping.size), identity);
    }
    identities
}

/// What the options choose of the recording.
fn choice(args: &args::Trim, filter: &Filter, trace: &Trace, quiet: bool) -> Result<Choice> {
    candidates::check_processes(filter, trace, quiet)?;
    candidates::check_times(filter, trace, quiet)?;
    candidates::check_any_time(filter, trace)?;
    let processes = (!filter.pids.is_empty() || !filter.names.is_empty()).then(|| {
        let kept = (0..).map(ProcessId).zip(filter.processes(trace));
        kept.filter(|(_, is_kept)| *is_kept).map(|(process, _)| process).collect()
    });
    Ok(Choice {
        processes,
        from: args.from.map(|from| from.at(trace)),
        to: args.to.map(|to| to.at(trace)),
        providers: Vec::new(),
    })
}

/// The providers that are meant, of those that a recording has. Fails if it has none of them.
fn providers(wanted: &[Provider], recording: &Recording, quiet: bool) -> Result<Vec<Guid>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let Reading { value: there, .. } = load::watched(recording, quiet, |progress| {
        let count = |there: &mut FxHashMap<(Guid, Option<String>), u64>, event: &Event<'_>| {
            *there.entry((event.provider, event.provider_name())).or_default() += 1;
        };
        recording.fold(analysis::processors(), progress, FxHashMap::default, count)
    })?;
    let there: Vec<(Guid, String, u64)> = there
        .into_iter()
        .map(|((guid, own_name), events)| {
            let name = provider_name(guid).map(str::to_owned).or(own_name);
            (guid, name.unwrap_or_else(|| guid.to_string()), events)
        })
        .collect();
    let is_meant = |wanted: &Provider, guid: Guid, name: &str| match wanted {
        Provider::Guid(wanted) => *wanted == guid,
        Provider::Name(wanted) => wanted.matches(name),
    };
    let missing = wanted.iter().filter(|one| !there.iter().any(|(guid, name, _)| is_meant(one, *guid, name)));
    let names: Vec<(&str, u64)> = there.iter().map(|(_, name, events)| (name.as_str(), *events)).collect();
    let missing = missing.map(|one| candidates::no_such_provider(one, &names)).collect();
    let meant = there.iter().filter(|(guid, name, _)| wanted.iter().any(|one| is_meant(one, *guid, name)));
    let meant: Vec<Guid> = meant.map(|(guid, ..)| *guid).collect();
    candidates::answer(missing, !meant.is_empty(), quiet)?;
    Ok(meant)
}
