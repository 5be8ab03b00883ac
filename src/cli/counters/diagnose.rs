//! `etwprof counters --diagnose`: why counters are missing or wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use etwprof::counters::Registry;
use etwprof::counters::perflib::{self, Diagnosis, Elsewhere, Facts, Unchecked};
use etwprof::report::perflib as report;

use crate::cli::usage::{self, Usage};
use crate::cli::{args, output};

/// The longest file that is read, in bytes. An export of all services of a big machine has some 50 MB.
const MOST_BYTES: u64 = 256 << 20;

/// So many names are listed for a service that is not there.
const NEAR: usize = 8;

/// The findings have been printed, and something is wrong.
#[derive(Debug, thiserror::Error)]
#[error("something is wrong with the counters")]
pub(crate) struct SomethingIsWrong;

/// `asked` is the value of the option.
pub(super) fn run(args: &args::Counters, asked: Option<&str>) -> Result<()> {
    let is_file = |text: &str| Path::new(text).is_file();
    let (first, service) = match asked {
        Some(file) if is_file(file) => (Some(file), None),
        Some(file) if file.to_lowercase().ends_with(".reg") => {
            bail!(Usage(format!("{file}: there is no such file")))
        }
        service => (None, service),
    };
    let files: Vec<&str> = first.into_iter().chain(args.what.iter().map(String::as_str)).collect();
    if let Some(missing) = files.iter().find(|file| !is_file(file)) {
        bail!(Usage(format!("{missing}: there is no such file; one service alone is --diagnose SERVICE")));
    }
    let mut found = if files.is_empty() { of_machine(service)? } else { of_files(&files, service)? };
    if let Some(service) = service {
        keep(&mut found, service);
    }
    let found = report::Diagnosis::new(found);
    output::print(|mut out| match args.json {
        true => report::write_json(&mut out, &found),
        false => report::write(&mut out, &found),
    })?;
    if found.is_wrong() { Err(SomethingIsWrong.into()) } else { Ok(()) }
}

fn of_files(files: &[&str], service: Option<&str>) -> Result<Diagnosis> {
    let mut registry = Registry::default();
    for file in files {
        let path = Path::new(file);
        let cannot = |error| usage::cannot("open", path, &error);
        if fs::metadata(path).map_err(cannot)?.len() > MOST_BYTES {
            bail!("{file} has more than 256 MiB; export only the keys that --diagnose needs");
        }
        registry.read(&fs::read(path).map_err(cannot)?).with_context(|| file.to_string())?;
    }
    let services = registry.services().map(|key| key.parent().to_owned()).collect();
    known(service, services).with_context(|| files.join(", "))?;
    let facts =
        Facts { registry: &registry, names: None, files: &Elsewhere, trials: &BTreeMap::new(), logged: &[] };
    let mut found = perflib::diagnose(&facts);
    found.unchecked.extend([Unchecked::Files, Unchecked::Events, Unchecked::Trials]);
    Ok(found)
}

/// Fails if there are no services, or if it is none of them.
fn known(service: Option<&str>, all: Vec<String>) -> Result<()> {
    if all.is_empty() {
        bail!(
            r"there is no service with performance counters; export HKLM\SYSTEM\CurrentControlSet\Services with `reg export`"
        );
    }
    let Some(service) = service else { return Ok(()) };
    if all.iter().any(|known| known.eq_ignore_ascii_case(service)) {
        return Ok(());
    }
    let lower = service.to_lowercase();
    // By how much of the name differs; a part of it is near whatever else there is.
    let mut near: Vec<_> = all
        .iter()
        .map(|known| {
            let other = known.to_lowercase();
            let is_part = other.contains(&lower) || lower.contains(&other);
            (!is_part, usage::differences(&lower, &other), known.as_str())
        })
        .filter(|(is_other, differences, known)| !is_other || differences * 3 <= known.len())
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().take(NEAR).map(|(_, _, known)| known).collect();
    let near = match near.as_slice() {
        [] => "--diagnose --json lists all that do".to_owned(),
        near => format!("near it: {}", near.join(", ")),
    };
    bail!(Usage(format!("--diagnose {service}: no such service counts anything; {near}")))
}

/// What is about this service, and what is about the machine.
fn keep(found: &mut Diagnosis, service: &str) {
    let is = |name: &str| name.eq_ignore_ascii_case(service);
    found.findings.retain(|finding| match (&finding.service, &finding.kind) {
        (_, perflib::Kind::Overlap { other, .. }) if is(other) => true,
        (name, _) => name.as_deref().is_none_or(is),
    });
    found.services.retain(|name| is(name));
}

#[cfg(windows)]
fn of_machine(service: Option<&str>) -> Result<Diagnosis> {
    use etwprof::counters::windows;

    let registry = windows::registry();
    let services: Vec<String> = registry.services().map(|key| key.parent().to_owned()).collect();
    known(service, services.clone())?;
    let names = super::performance::names();
    let mut trials = BTreeMap::new();
    for name in services {
        if service.is_none_or(|service| service.eq_ignore_ascii_case(&name)) {
            let trial = super::performance::tried(&name)?;
            trials.insert(name.to_lowercase(), trial);
        }
    }
    let logged = windows::logged();
    let facts = Facts {
        registry: &registry,
        names: names.as_deref(),
        files: &windows::Here,
        trials: &trials,
        logged: logged.as_deref().unwrap_or_default(),
    };
    let mut found = perflib::diagnose(&facts);
    if logged.is_err() {
        found.unchecked.push(Unchecked::Events);
    }
    // Where a DLL fails by itself, the query of all is no news.
    if service.is_none() && trials.values().all(|trial| !trial.ends_the_reader()) {
        found.findings.splice(0..0, super::performance::query_fails()?);
    }
    Ok(found)
}

#[cfg(not(windows))]
fn of_machine(_: Option<&str>) -> Result<Diagnosis> {
    bail!(Usage(
        "--diagnose: only Windows has performance counters; there, save its registry with `reg export`, and name the file \
         here"
            .to_owned()
    ))
}
