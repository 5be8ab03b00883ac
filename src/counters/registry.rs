//! The part of a Windows registry that says who counts what: read from files of `reg export` on any system, or from the
//! registry of the running Windows.

mod file;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use file::RegFileError;

use crate::bytes::Reader;

/// The services, below `HKEY_LOCAL_MACHINE`.
pub(super) const SERVICES: &str = r"SYSTEM\CurrentControlSet\Services";

/// What the services have in common.
pub(super) const PERFLIB: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib";

/// The types of values that matter here (`REG_SZ` and so on, winnt.h).
pub(super) mod kind {
    pub(in crate::counters) const SZ: u32 = 1;
    pub(in crate::counters) const EXPAND_SZ: u32 = 2;
    pub(in crate::counters) const BINARY: u32 = 3;
    pub(in crate::counters) const DWORD: u32 = 4;
    pub(in crate::counters) const MULTI_SZ: u32 = 7;
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its type: 1 for a text, 2 for a text with variables, 4 for a number of 32 bits, 7 for several texts.
    pub kind: u32,
    /// Its bytes; texts are UTF-16.
    pub data: Vec<u8>,
}

impl Value {
    /// A text without variables.
    pub fn text(text: &str) -> Value {
        Value { kind: kind::SZ, data: text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() }
    }

    /// A number.
    pub fn number(number: u32) -> Value {
        Value { kind: kind::DWORD, data: number.to_le_bytes().to_vec() }
    }

    /// The text, if it is one, with or without variables.
    pub fn as_text(&self) -> Option<String> {
        matches!(self.kind, kind::SZ | kind::EXPAND_SZ).then(|| Reader::new(&self.data).utf16().to_string())
    }

    /// The number, if it is one of 32 bits.
    pub fn as_number(&self) -> Option<u32> {
        let bytes = self.data.as_slice().try_into().ok().filter(|_| self.kind == kind::DWORD);
        bytes.map(u32::from_le_bytes)
    }

    /// What the type is called.
    pub fn kind_name(&self) -> Cow<'static, str> {
        kind_name(self.kind)
    }
}

/// What a type is called: `REG_SZ`.
pub(super) fn kind_name(kind: u32) -> Cow<'static, str> {
    match kind {
        kind::SZ => "REG_SZ".into(),
        kind::EXPAND_SZ => "REG_EXPAND_SZ".into(),
        kind::BINARY => "REG_BINARY".into(),
        kind::DWORD => "REG_DWORD".into(),
        kind::MULTI_SZ => "REG_MULTI_SZ".into(),
        11 => "REG_QWORD".into(),
        other => format!("type {other}").into(),
    }
}

/// A key: its values by name. Case does not matter.
#[derive(Clone, Debug, Default)]
pub struct Key {
    path: String,
    values: BTreeMap<String, Value>,
}

impl Key {
    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('\\').next().unwrap_or_default()
    }

    /// The part before it: of the key `Performance` the service.
    pub fn parent(&self) -> &str {
        self.path.rsplit('\\').nth(1).unwrap_or_default()
    }

    /// A value by its name.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(&name.to_lowercase())
    }

    /// The text of a value, if it has one.
    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name)?.as_text()
    }

    /// The number of a value, if it has one.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.value(name)?.as_number()
    }
}

/// Keys by their paths below `HKEY_LOCAL_MACHINE`. Of a service its own key is known, and `Performance` and `Linkage` below
/// it; of `Perflib` everything. Others are left out.
#[derive(Clone, Debug, Default)]
pub struct Registry(BTreeMap<String, Key>);

impl Registry {
    /// Adds a key without values, if it is one of those that are wanted.
    pub fn add(&mut self, path: &str) {
        self.entry(path);
    }

    fn entry(&mut self, path: &str) -> Option<&mut Key> {
        let new = || Key { path: path.to_owned(), values: BTreeMap::new() };
        is_wanted(path).then(|| self.0.entry(path.to_lowercase()).or_insert_with(new))
    }

    /// Sets a value, if its key is one of those that are wanted.
    pub fn set(&mut self, path: &str, name: &str, value: Value) {
        if let Some(key) = self.entry(path) {
            key.values.insert(name.to_lowercase(), value);
        }
    }

    /// Removes a value.
    pub fn remove_value(&mut self, path: &str, name: &str) {
        if let Some(key) = self.0.get_mut(&path.to_lowercase()) {
            key.values.remove(&name.to_lowercase());
        }
    }

    /// Removes a key and all below it.
    pub fn remove(&mut self, path: &str) {
        let path = path.to_lowercase();
        let prefix = format!("{path}\\");
        let below = self.0.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
        let below: Vec<String> = below.map(|(key, _)| key.clone()).chain([path]).collect();
        below.iter().for_each(|key| drop(self.0.remove(key)));
    }

    /// A key by its path.
    pub fn key(&self, path: &str) -> Option<&Key> {
        self.0.get(&path.to_lowercase())
    }

    /// The keys directly below a path.
    pub fn below(&self, path: &str) -> impl Iterator<Item = &Key> {
        let prefix = format!("{}\\", path.to_lowercase());
        let length = prefix.len();
        let all = self.0.range(prefix.clone()..).take_while(move |(key, _)| key.starts_with(&prefix));
        let directly = move |key: &str| key.get(length..).is_some_and(|rest| !rest.contains('\\'));
        all.filter(move |(key, _)| directly(key)).map(|(_, key)| key)
    }

    /// The keys `Performance` of services; [`Key::parent`] is the service.
    pub fn services(&self) -> impl Iterator<Item = &Key> {
        let prefix = format!("{}\\", SERVICES.to_lowercase());
        let all = self.0.range(prefix.clone()..).take_while(move |(key, _)| key.starts_with(&prefix));
        all.filter(|(key, _)| key.ends_with(r"\performance")).map(|(_, key)| key)
    }
}

fn is_wanted(path: &str) -> bool {
    let lower = path.to_lowercase();
    let below = |top: &str| lower.strip_prefix(&top.to_lowercase())?.strip_prefix('\\').map(str::to_owned);
    if let Some(service) = below(SERVICES) {
        return match service.split_once('\\') {
            None => true,
            Some((_, key)) => matches!(key, "performance" | "linkage"),
        };
    }
    lower == PERFLIB.to_lowercase() || below(PERFLIB).is_some()
}
