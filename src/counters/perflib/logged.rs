//! What Windows has logged of performance counters: events 1000 to 1023 of Perflib in the log Application. The same ids of
//! another provider, LoadPerf, mean other things.

use std::collections::BTreeMap;

use super::service::Service;
use super::{Finding, Kind};

/// Chooses the events of the last 7 days, in the XPath of Windows' event log.
pub fn event_query() -> &'static str {
    "*[System[Provider[@Name='Microsoft-Windows-Perflib' or @Name='Perflib'] and (EventID >= 1000 and EventID <= 1023) \
     and TimeCreated[timediff(@SystemTime) <= 604800000]]]"
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub id: u32,
    /// When, UTC, as in RFC 3339.
    pub time: String,
    /// Its texts, each with its name: a service and a DLL among them.
    pub texts: Vec<(String, String)>,
    /// The code of an error.
    pub code: Option<u32>,
}

/// So many texts of an event are kept; the longest has a dozen.
const MOST_TEXTS: usize = 64;

impl Logged {
    /// Reads an event as XML ("Event Schema"). `None` without a provider or an id.
    pub fn parse(xml: &str) -> Option<Logged> {
        let mut event = Logged::default();
        let mut is_data = false;
        for element in xml.split('<').skip(1) {
            let Some((tag, text)) = element.split_once('>') else { continue };
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            let text = unescaped(text.trim());
            match name {
                "Provider" => event.provider = attribute(attributes, "Name")?,
                "EventID" => event.id = text.parse().ok()?,
                "TimeCreated" => event.time = attribute(attributes, "SystemTime").unwrap_or_default(),
                "EventData" | "UserData" => is_data = true,
                _ if is_data && !text.is_empty() && !name.starts_with('/') => {
                    let name = attribute(attributes, "Name").unwrap_or_else(|| name.to_owned());
                    event.code = event.code.or_else(|| code(&name, &text));
                    if event.texts.len() < MOST_TEXTS {
                        event.texts.push((name, text));
                    }
                }
                _ => {}
            }
        }
        (event.id != 0 && !event.provider.is_empty()).then_some(event)
    }

    /// The service: what is called so, or the first text that is the name of one.
    fn service<'a>(&'a self, known: &BTreeMap<String, &'a str>) -> Option<&'a str> {
        let named = self.texts.iter().find(|(name, _)| name == "Service").map(|(_, text)| text.as_str());
        let of = |text: &str| known.get(&text.to_lowercase()).copied();
        named
            .map(|text| of(text).unwrap_or(text))
            .or_else(|| self.texts.iter().find_map(|(_, text)| of(text)))
    }
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some((key, value)) = rest.split_once('=') {
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = value.get(1..)?.split_once(quote)?;
        if key.trim() == name {
            return Some(unescaped(value));
        }
        rest = after;
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escape, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
    {
        plain = plain.replace(escape, letter);
    }
    plain
}

fn is_binary(name: &str) -> bool {
    name.to_lowercase().starts_with("binary")
}

fn is_error(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("error") || name.contains("status")
}

/// The code in a field that has one: binary data begin with it, byte by byte; others are numbers.
fn code(name: &str, text: &str) -> Option<u32> {
    if is_binary(name) {
        return u32::from_str_radix(text.get(..8)?, 16).ok().map(u32::swap_bytes);
    }
    if !is_error(name) {
        return None;
    }
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// One finding for all events of a kind.
pub(super) fn check(logged: &[Logged], services: &[Service<'_>], findings: &mut Vec<Finding>) {
    let known = services.iter().map(|service| (service.name.to_lowercase(), &*service.name)).collect();
    let mut all: BTreeMap<_, (u64, &Logged)> = BTreeMap::new();
    for event in logged {
        let (count, last) =
            all.entry((event.service(&known), &*event.provider, event.id)).or_insert((0, event));
        *count += 1;
        if event.time > last.time {
            *last = event;
        }
    }
    findings.extend(all.into_iter().map(|((service, provider, id), (count, last))| {
        Finding {
            service: service.map(str::to_owned),
            kind: Kind::Logged {
                provider: provider.to_owned(),
                id,
                count,
                last: last.time.clone(),
                code: last.code,
                texts: last
                    .texts
                    .iter()
                    .filter(|(name, _)| !is_binary(name) && !is_error(name))
                    .map(|(_, text)| text.clone())
                    .collect(),
            },
        }
    }));
}
