//! What is wrong with the machine as a whole: the key `Perflib`, and services beside each other.

use super::service::Service;
use super::{Facts, Finding, Kind, Range};
use crate::counters::registry::{Key, PERFLIB, Registry, kind_name};

/// The highest index of Windows itself, which has not changed since Windows NT 4.
const BASE_INDEX: u32 = 1847;

/// Settings of `Perflib`, with the greatest value that asks for nothing unusual ("Creating Other Registry Entries").
const USUAL_WAIT: (&str, u32) = ("OpenProcedureWaitTime", 10_000);

/// No test of what a DLL gives, the default ("Implementing CollectPerformanceData").
const USUAL_TESTS: u32 = 4;

/// Flags that change how DLLs are treated: not aligned is no error, never switched off, never tested, switched off when slow.
const FLAGS: u32 = 0xf;

pub(super) fn base_index(registry: &Registry) -> u32 {
    registry.key(PERFLIB).and_then(|perflib| perflib.number("Base Index")).unwrap_or(BASE_INDEX)
}

fn of_machine(kind: Kind) -> Finding {
    Finding { service: None, kind }
}

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    if let Some(perflib) = facts.registry.key(PERFLIB) {
        values(perflib, findings);
    }
    for name in ["perfc009.dat", "perfh009.dat"] {
        let path = format!(r"%SystemRoot%\System32\{name}");
        if facts.files.exists(&path) == Some(false) {
            findings.push(of_machine(Kind::NameFileMissing { path }));
        }
    }
    for provider in facts.registry.below(&format!(r"{PERFLIB}\_V2Providers")) {
        let path = ["ApplicationIdentity", "Application Identity"]
            .into_iter()
            .find_map(|value| provider.text(value));
        // Drivers have paths of another kind.
        let is_whole = |path: &String| path.starts_with('%') || path.get(1..3) == Some(r":\");
        if let Some(path) = path.filter(is_whole)
            && facts.files.exists(&path) == Some(false)
        {
            let provider = provider.name().to_owned();
            findings.push(of_machine(Kind::ManifestProgramMissing { provider, path }));
        }
    }
}

fn values(perflib: &Key, findings: &mut Vec<Finding>) {
    if let Some(value) = perflib.number("Disable Performance Counters").filter(|value| *value != 0) {
        findings.push(of_machine(Kind::AllDisabled { value }));
    }
    for value in ["Base Index", "Last Counter", "Last Help"] {
        if perflib.number(value).is_none() {
            let found = perflib.value(value).map(|found| kind_name(found.kind).into_owned());
            findings.push(of_machine(Kind::PerflibValue { value, found }));
        }
    }
    if let Some((last_counter, last_help)) = perflib.number("Last Counter").zip(perflib.number("Last Help"))
        && Some(last_help) != last_counter.checked_add(1)
    {
        findings.push(of_machine(Kind::LastHelp { last_counter, last_help }));
    }
    let (name, usual) = USUAL_WAIT;
    if let Some(value) = perflib.number(name).filter(|value| *value > usual) {
        findings.push(of_machine(Kind::Setting { name, value, usual }));
    }
    if let Some(value) =
        perflib.number("ExtCounterTestLevel").filter(|value| (1..USUAL_TESTS).contains(value))
    {
        findings.push(of_machine(Kind::Setting { name: "ExtCounterTestLevel", value, usual: USUAL_TESTS }));
    }
    if let Some(value) = perflib.number("Configuration Flags").filter(|value| value & FLAGS != 0) {
        findings.push(of_machine(Kind::Setting { name: "Configuration Flags", value, usual: 0 }));
    }
}

/// Compares the ranges of services with each other and with the highest indices of `Perflib`.
pub(super) fn compare(registry: &Registry, services: &[Service<'_>], findings: &mut Vec<Finding>) {
    let base = base_index(registry);
    let own = services.iter().filter_map(|service| Some((service.range?, &service.name)));
    let mut own: Vec<(Range, &String)> = own.filter(|(range, _)| range.first > base).collect();
    own.sort_by_key(|(range, _)| (range.first, range.last));
    // The one before that reaches farthest.
    let mut farthest: Option<(Range, &String)> = None;
    for (range, name) in own {
        if let Some((other_range, other)) = farthest.filter(|(before, _)| range.first <= before.last) {
            let kind = Kind::Overlap { range, other: other.clone(), other_range };
            findings.push(Finding { service: Some(name.clone()), kind });
        }
        if farthest.is_none_or(|(before, _)| range.last > before.last) {
            farthest = Some((range, name));
        }
    }
    let last = registry.key(PERFLIB).and_then(|perflib| perflib.number("Last Counter"));
    if let Some((perflib, (range, name))) = last.zip(farthest)
        && range.last > perflib
    {
        let kind = Kind::LastTooLow { value: "Last Counter", perflib, of_service: range.last };
        findings.push(Finding { service: Some(name.clone()), kind });
    }
}
