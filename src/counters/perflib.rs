//! What is wrong with the performance counters of a machine: its registry, the files that it names, how the DLLs did when
//! they were tried, and what Windows has logged.
//!
//! Rules and layouts are those of Microsoft's documentation of performance counters (PerfCtrs: "Creating the Application's
//! Performance Key", "Creating Other Registry Entries", "Adding Counter Names and Descriptions to the Registry",
//! "Implementing CollectPerformanceData") and of the articles KB 226494 and KB 300956. docs/counters.md has the source of
//! each.

mod finding;
mod library;
mod logged;
mod machine;
mod names;
mod service;

use std::collections::BTreeMap;

use serde::Serialize;

use super::registry::{PERFLIB, Registry};
use super::trial::Trial;

pub use finding::{Finding, Kind, Range, Severity};
pub use library::{Image, Library, MOST_BYTES};
pub use logged::{Logged, event_query};

/// What is looked at.
pub struct Facts<'a> {
    /// The registry.
    pub registry: &'a Registry,
    /// The English names as a query gives them (`Counter 009`), for a registry without them.
    pub names: Option<&'a [u8]>,
    /// What is known of the files.
    pub files: &'a dyn Files,
    /// How DLLs did, by the name of the service in small letters.
    pub trials: &'a BTreeMap<String, Trial>,
    /// What Windows has logged.
    pub logged: &'a [Logged],
}

/// The files of the machine whose registry is looked at.
pub trait Files {
    /// The DLL that the value `Library` names, with or without variables and a folder.
    fn library(&self, library: &str) -> Library;

    /// Whether there is a file; `None` if that is not known.
    fn exists(&self, path: &str) -> Option<bool>;
}

/// The files of another machine.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere;

impl Files for Elsewhere {
    fn library(&self, _: &str) -> Library {
        Library::NotChecked
    }

    fn exists(&self, _: &str) -> Option<bool> {
        None
    }
}

/// What could not be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unchecked {
    /// The files of the DLLs.
    Files,
    /// The key `Perflib`: it is not in the registry that was read.
    Perflib,
    /// The names of the counters.
    Names,
    /// The event log.
    Events,
    /// How the DLLs do.
    Trials,
}

/// What is wrong.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The services with performance counters, by name.
    pub services: Vec<String>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What the registry that was read does not have.
    pub unchecked: Vec<Unchecked>,
}

/// Looks for all that is wrong.
pub fn diagnose(facts: &Facts<'_>) -> Diagnosis {
    let registry = facts.registry;
    let perflib = registry.key(PERFLIB);
    let names = names::raw(facts);
    let mut unchecked = Vec::new();
    if perflib.is_none() {
        unchecked.push(Unchecked::Perflib);
    }
    if names.is_none() {
        unchecked.push(Unchecked::Names);
    }
    let services: Vec<_> = registry.services().map(service::Service::new).collect();
    let mut findings = Vec::new();
    machine::check(facts, &mut findings);
    if let Some(names) = &names {
        names::check(names, perflib, &services, &mut findings);
    }
    machine::compare(registry, &services, &mut findings);
    let siblings = service::Siblings::new(&services, registry);
    services.iter().for_each(|service| service::check(service, &siblings, facts, &mut findings));
    logged::check(facts.logged, &services, &mut findings);
    // One kind beside the other, each by service.
    findings.sort_by_cached_key(|finding| (finding.kind.severity(), finding.service.clone()));
    Diagnosis { services: services.into_iter().map(|service| service.name).collect(), findings, unchecked }
}
