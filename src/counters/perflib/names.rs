//! What is wrong with the names: the value `Counter` of `Perflib\009`, in turn an index and a name.

use std::collections::BTreeMap;

use super::service::Service;
use super::{Facts, Finding, Kind};
use crate::bytes::Reader;
use crate::counters::registry::kind::MULTI_SZ;
use crate::counters::registry::{Key, PERFLIB};

/// So many characters of a damaged value are shown.
const SHOWN: usize = 60;

/// The value, where it is known.
pub(super) fn raw<'a>(facts: &Facts<'a>) -> Option<&'a [u8]> {
    let value = facts.registry.key(&format!(r"{PERFLIB}\009")).and_then(|names| names.value("Counter"));
    value.filter(|value| value.kind == MULTI_SZ).map(|value| value.data.as_slice()).or(facts.names)
}

pub(super) fn check(
    raw: &[u8],
    perflib: Option<&Key>,
    services: &[Service<'_>],
    findings: &mut Vec<Finding>,
) {
    let of_machine = |kind| Finding { service: None, kind };
    let mut reader = Reader::new(raw);
    let mut names = BTreeMap::new();
    let mut last = None;
    loop {
        let index = reader.utf16().to_string();
        if index.is_empty() {
            break;
        }
        let Ok(index) = index.trim().parse::<u32>() else {
            let found = index.chars().take(SHOWN).collect();
            findings.push(of_machine(Kind::NamesDamaged { after: last, found }));
            // Whatever is behind it is shifted, and says nothing about services.
            return;
        };
        last = Some(index);
        let name = reader.utf16();
        names.entry(index).or_insert(name);
    }
    if reader.rest().iter().any(|byte| *byte != 0) {
        let found = reader.utf16().to_string().chars().take(SHOWN).collect();
        findings.push(of_machine(Kind::NamesDamaged { after: last, found }));
        return;
    }
    // Index 1 has `Base Index` in place of a name.
    if let Some((index, name)) = names.range(2..).find(|(index, _)| !index.is_multiple_of(2)) {
        let name = name.to_string().chars().take(SHOWN).collect();
        findings.push(of_machine(Kind::NameOdd { index: *index, name }));
    }
    let last_counter = perflib.and_then(|perflib| perflib.number("Last Counter"));
    if let Some((last_counter, (highest, _))) = last_counter.zip(names.last_key_value())
        && *highest < last_counter
    {
        findings.push(of_machine(Kind::NamesEnd { highest: *highest, last_counter }));
    }
    for service in services {
        let Some(range) = service.range else { continue };
        let of = (range.last - range.first) / 2 + 1;
        let named =
            names.range(range.first..=range.last).filter(|(index, _)| index.is_multiple_of(2)).count();
        // Between the first and the last, a provider may leave indices out.
        let is_missing = named == 0 || !names.contains_key(&range.last) || !names.contains_key(&range.first);
        if is_missing {
            let missing = of.saturating_sub(u32::try_from(named).unwrap_or(u32::MAX));
            let kind = Kind::NamesMissing { range, missing, of };
            findings.push(Finding { service: Some(service.name.clone()), kind });
        }
    }
}
