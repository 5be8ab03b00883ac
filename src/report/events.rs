//! The events of a recording, counted by kind.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::event::{Event, Kind};
use crate::events::names;
use crate::guid::Guid;
use crate::trace::{EventKey, EventSet};

use super::text::{count, json, one_line};

/// Counts events.
#[derive(Debug, Default)]
pub struct Counter {
    counts: FxHashMap<Key, u64>,
    named: BTreeMap<NamedKey, (u64, Option<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    provider: Guid,
    kind: Kind,
    opcode: u8,
    version: u8,
}

/// TraceLogging events share ids; their names tell them apart.
type NamedKey = (Key, String);

/// One row: events of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The provider, or the task of classic events; image loads are under the Image task.
    pub provider: Guid,
    /// The name, where it is known.
    pub name: Option<String>,
    /// The opcode, called type for classic events.
    pub opcode: u8,
    /// The id; `None` for classic events.
    pub id: Option<u16>,
    /// The version.
    pub version: u8,
    /// How many.
    pub count: u64,
}

impl Counter {
    /// Counts one event.
    pub fn event(&mut self, event: &Event<'_>) {
        let key =
            Key { provider: event.provider, kind: event.kind, opcode: event.opcode, version: event.version };
        match event.tracelogging_name() {
            None => *self.counts.entry(key).or_default() += 1,
            Some(name) => {
                let (count, _) =
                    self.named.entry((key, name)).or_insert_with(|| (0, names::event_name(event)));
                *count += 1;
            }
        }
    }

    /// The events of which `is_wanted` is true for one of their names: `Provider/Event`, with the GUID of the provider or the
    /// number of the event too.
    pub fn chosen(&self, is_wanted: impl Fn(&str) -> bool) -> EventSet {
        let mut set = EventSet::default();
        let mut add = |key: &Key, own: Option<&str>, name: Option<String>| {
            let (number, what) = match key.kind {
                Kind::Classic => (u16::from(key.opcode), EventKey::Classic(key.provider, key.opcode)),
                Kind::Manifest(id) => (id, EventKey::Manifest(key.provider, id)),
                Kind::Message(_) | Kind::Unknown(_) => return,
            };
            let name = name.unwrap_or_default();
            let (provider, event) = name.split_once('/').unwrap_or((name.as_str(), ""));
            let guid = key.provider.to_string();
            let providers = [provider, guid.as_str()];
            let events = [event.to_owned(), number.to_string()];
            let mut names =
                providers.iter().flat_map(|provider| events.iter().map(move |event| (provider, event)));
            if names.any(|(provider, event)| is_wanted(&format!("{provider}/{event}"))) {
                set.insert(what, own);
            }
        };
        self.counts.keys().for_each(|key| add(key, None, name(key)));
        self.named.iter().for_each(|((key, own), (_, name))| add(key, Some(own), name.clone()));
        set
    }

    /// The rows, by provider, id, opcode and version.
    pub fn rows(&self) -> Vec<Row> {
        let plain = self.counts.iter().map(|(key, count)| (*key, String::new(), row(key, *count, name(key))));
        let named = self
            .named
            .iter()
            .map(|((key, own), (count, name))| (*key, own.clone(), row(key, *count, name.clone())));
        let mut rows: Vec<_> = plain.chain(named).collect();
        rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        rows.into_iter().map(|(_, _, row)| row).collect()
    }
}

fn row(key: &Key, count: u64, name: Option<String>) -> Row {
    let id = match key.kind {
        Kind::Manifest(id) | Kind::Message(id) => Some(id),
        Kind::Classic | Kind::Unknown(_) => None,
    };
    Row { provider: key.provider, name, opcode: key.opcode, id, version: key.version, count }
}

fn name(key: &Key) -> Option<String> {
    names::known_name(key.provider, key.kind, key.opcode)
}

/// Writes the rows as a table, most events first.
pub fn write(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    writeln!(out, "{:>11}  {:>5}  {:>6}  {:>7}  name", "count", "id", "opcode", "version")?;
    for row in &rows {
        let id = row.id.map_or("-".to_owned(), |id| id.to_string());
        let name = row.name.clone().unwrap_or_else(|| row.provider.to_string());
        let (events, opcode, version) = (count(row.count), row.opcode, row.version);
        writeln!(out, "{events:>11}  {id:>5}  {opcode:>6}  {version:>7}  {}", one_line(&name))?;
    }
    let total = rows.iter().map(|row| row.count).sum();
    writeln!(out, "{:>11}  in all", count(total))
}

/// Writes the rows as a JSON array.
pub fn write_json(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    json(out, &rows)
}
