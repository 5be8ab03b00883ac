//! What is wrong with one service.

use std::collections::BTreeMap;

use super::{Facts, Finding, Kind, Library, Range};
use crate::counters::registry::kind::MULTI_SZ;
use crate::counters::registry::{Key, Registry, SERVICES, Value, kind_name};
use crate::counters::trial::{Step, Trial};

/// The values without which Windows cannot use a DLL ("Creating the Application's Performance Key").
const OF_LIBRARY: [&str; 4] = ["Library", "Open", "Collect", "Close"];

/// Those with the indices, which lodctr writes ("Adding Counter Names and Descriptions to the Registry").
const OF_RANGE: [&str; 4] = ["First Counter", "Last Counter", "First Help", "Last Help"];

const DISABLE: &str = "Disable Performance Counters";

/// How long a DLL may take, in ms, if the registry does not say ("Creating Other Registry Entries").
const USUAL_WAIT: u32 = 10_000;

/// The DLLs of Windows itself whose counters have the indices up to `Base Index`.
const OF_WINDOWS: [&str; 7] = [
    "perfos.dll",
    "perfproc.dll",
    "perfdisk.dll",
    "perfnet.dll",
    "perfctrs.dll",
    "perfts.dll",
    "winspool.drv",
];

/// A service, as the registry has it.
pub(super) struct Service<'a> {
    pub(super) name: String,
    key: &'a Key,
    /// Its indices, if they make sense.
    pub(super) range: Option<Range>,
}

impl<'a> Service<'a> {
    pub(super) fn new(key: &'a Key) -> Service<'a> {
        let range = key.number("First Counter").zip(key.number("Last Counter"));
        let range = range.map(|(first, last)| Range { first, last });
        let range = range.filter(|range| range.first <= range.last && range.first.is_multiple_of(2));
        Service { name: key.parent().to_owned(), key, range }
    }

    fn path(&self, below: &str) -> String {
        format!(r"{SERVICES}\{}{below}", self.name)
    }

    fn text(&self, value: &str) -> Option<String> {
        self.key.text(value).filter(|text| !text.trim().is_empty())
    }

    /// The file name of its DLL in small letters.
    fn library_name(&self) -> Option<String> {
        let library = self.text("Library")?.to_lowercase();
        library.rsplit(['\\', '/']).next().map(str::to_owned)
    }

    fn export<'r>(&self, registry: &'r Registry) -> Option<&'r Value> {
        registry.key(&self.path(r"\Linkage"))?.value("Export")
    }
}

/// Of the services with one DLL: how many there are, and how many have a `Linkage\Export`.
#[derive(Default)]
pub(super) struct Siblings(BTreeMap<String, (usize, usize)>);

impl Siblings {
    pub(super) fn new(services: &[Service<'_>], registry: &Registry) -> Siblings {
        let mut all = Siblings::default();
        for service in services {
            if let Some(library) = service.library_name() {
                let (services, linked) = all.0.entry(library).or_default();
                *services += 1;
                *linked += usize::from(service.export(registry).is_some());
            }
        }
        all
    }
}

pub(super) fn check(
    service: &Service<'_>,
    siblings: &Siblings,
    facts: &Facts<'_>,
    findings: &mut Vec<Finding>,
) {
    let mut found = Vec::new();
    let key = service.key;
    if let Some(value) = key.number(DISABLE).filter(|value| *value != 0) {
        found.push(Kind::Disabled { value });
    }
    let is_usable = library(service, facts, &mut found);
    range(service, facts, &mut found);
    linkage(service, siblings, facts.registry, &mut found);
    for name in ["Open Timeout", "Collect Timeout"] {
        if let Some(value) = key.number(name).filter(|value| *value > USUAL_WAIT) {
            found.push(Kind::Setting { name, value, usual: USUAL_WAIT });
        }
    }
    match facts.trials.get(&service.name.to_lowercase()) {
        // The file has shown it already.
        Some(Trial::Failed { step: Step::Load, .. }) if !is_usable => {}
        Some(Trial::Failed { step, failure }) => {
            found.push(Kind::TrialFailed { step: *step, failure: failure.clone() });
        }
        Some(Trial::Works { .. }) | None => {}
    }
    let of = |kind| Finding { service: Some(service.name.clone()), kind };
    findings.extend(found.into_iter().map(of));
}

/// Checks what names the DLL, and the file. True unless something there keeps it from being loaded.
fn library(service: &Service<'_>, facts: &Facts<'_>, found: &mut Vec<Kind>) -> bool {
    let key = service.key;
    let before = found.len();
    // A key that only says which INI file there is counts nothing, and need not.
    if !OF_LIBRARY.iter().any(|value| key.value(value).is_some()) {
        return true;
    }
    let is_empty = |value: &str| {
        key.value(value).is_none() || key.text(value).is_some_and(|text| text.trim().is_empty())
    };
    let missing: Vec<_> = OF_LIBRARY.into_iter().filter(|value| is_empty(value)).collect();
    if !missing.is_empty() {
        found.push(Kind::ValuesMissing { values: missing });
    }
    for value in OF_LIBRARY {
        if let Some(is) = key.value(value).filter(|is| is.as_text().is_none()) {
            let found_type = kind_name(is.kind).into_owned();
            found.push(Kind::ValueType { value, found: found_type, wanted: "REG_SZ" });
        }
    }
    let Some(named) = service.text("Library") else { return false };
    let image = match facts.files.library(&named) {
        Library::NotChecked => return found.len() == before,
        Library::Missing => {
            found.push(Kind::LibraryMissing { library: named });
            return false;
        }
        Library::NotAnImage { path } => {
            found.push(Kind::NotAnImage { path });
            return false;
        }
        Library::Image(image) => image,
    };
    let wanted = usize::BITS;
    if image.bits != 0 && image.bits != wanted {
        found.push(Kind::WrongBits { path: image.path, bits: image.bits, wanted });
        return false;
    }
    let functions = ["Open", "Collect", "Close"].into_iter().filter_map(|value| service.text(value));
    let functions: Vec<_> = functions.filter(|name| !image.exports.contains(name)).collect();
    if !functions.is_empty() {
        found.push(Kind::ExportsMissing { path: image.path.clone(), functions });
    }
    let before_change = key.number("WbemAdapFileSize").filter(|size| u64::from(*size) != image.size);
    if let Some(size_before) = before_change.filter(|_| key.value("Library Validation Code").is_some()) {
        found.push(Kind::LibraryChanged { path: image.path, size: image.size, size_before });
        return true;
    }
    found.len() == before
}

fn range(service: &Service<'_>, facts: &Facts<'_>, found: &mut Vec<Kind>) {
    let key = service.key;
    for value in OF_RANGE.into_iter().chain([DISABLE]) {
        if let Some(is) = key.value(value).filter(|is| is.as_number().is_none()) {
            let found_type = kind_name(is.kind).into_owned();
            found.push(Kind::ValueType { value, found: found_type, wanted: "REG_DWORD" });
        }
    }
    let [first_counter, last_counter, first_help, last_help] = OF_RANGE.map(|value| key.number(value));
    if OF_RANGE.iter().all(|value| key.value(value).is_none()) {
        // The services of Windows itself name their objects and have no range. What has neither was never loaded, if lodctr
        // knows its INI file.
        let ini = service.text("PerfIniFile").filter(|_| service.text("Library").is_some());
        if let Some(ini) = ini.filter(|_| service.text("Object List").is_none()) {
            found.push(Kind::NeverLoaded { ini });
        }
        return;
    }
    let follows =
        |help: Option<u32>, counter: Option<u32>| help == counter.and_then(|index| index.checked_add(1));
    let is_whole = service.range.is_some() && first_help.is_some() && last_help.is_some();
    if !is_whole || !follows(first_help, first_counter) || !follows(last_help, last_counter) {
        found.push(Kind::RangeInconsistent { first_counter, last_counter, first_help, last_help });
    }
    let base_index = super::machine::base_index(facts.registry);
    let is_of_windows = service.library_name().is_some_and(|name| OF_WINDOWS.contains(&&*name));
    if let Some(range) = service.range.filter(|range| range.first <= base_index && !is_of_windows) {
        found.push(Kind::RangeTooLow { range, base_index });
    }
}

/// `Linkage\Export` is a list of names for Open. An export of the key `Performance` alone does not have it.
fn linkage(service: &Service<'_>, siblings: &Siblings, registry: &Registry, found: &mut Vec<Kind>) {
    if let Some(export) = service.export(registry) {
        if export.kind != MULTI_SZ {
            found.push(Kind::LinkageType { found: kind_name(export.kind).into_owned() });
        }
        return;
    }
    let Some((library, name)) = service.text("Library").zip(service.library_name()) else { return };
    let Some((services, linked)) = siblings.0.get(&name) else { return };
    let others = services.saturating_sub(1);
    if registry.key(&service.path("")).is_some() && others >= 2 && *linked == others {
        found.push(Kind::LinkageMissing { library, others });
    }
}
