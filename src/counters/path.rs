//! Counters as perfmon spells them: `Process(svchost#1)\% Processor Time`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Which counters are wanted. A machine in front (`\\HOST\`) is accepted and ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterPath {
    /// The name or index of the object.
    pub object: String,
    /// The instance, with its parent (`explorer/0`) and its number among those of one name (`svchost#1`), in which `*`
    /// stands for any characters. `None` for an object without instances.
    pub instance: Option<String>,
    /// The name or index of the counter; `*` means all.
    pub counter: String,
}

/// Why a text is no counter path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(r"{0:?} is no counter: write Object\Counter or Object(Instance)\Counter, as perfmon does")]
pub struct PathError(String);

impl FromStr for CounterPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<CounterPath, PathError> {
        let wrong = || PathError(text.to_owned());
        let rest = match text.strip_prefix(r"\\") {
            Some(rest) => rest.split_once('\\').ok_or_else(wrong)?.1,
            None => text.strip_prefix('\\').unwrap_or(text),
        };
        // Names of instances may hold parentheses and backslashes: `Paging File(\??\C:\pagefile.sys)\% Usage`.
        let (object, instance, counter) = match (rest.find('('), rest.rfind(r")\")) {
            (Some(open), Some(close)) if open < close => {
                let (object, instance) = (rest.get(..open), rest.get(open + 1..close));
                (object.ok_or_else(wrong)?, instance, rest.get(close + 2..).ok_or_else(wrong)?)
            }
            _ => rest.rsplit_once('\\').map(|(object, counter)| (object, None, counter)).ok_or_else(wrong)?,
        };
        let (object, counter) = (object.trim(), counter.trim());
        if object.is_empty() || counter.is_empty() || instance == Some("") {
            return Err(wrong());
        }
        let instance = instance.map(str::to_owned);
        Ok(CounterPath { object: object.to_owned(), instance, counter: counter.to_owned() })
    }
}

impl CounterPath {
    /// All counters of what a name without a counter names, be it an object with instances, one without, or a provider.
    pub fn all_of(object: &str) -> [CounterPath; 2] {
        [None, Some("*".to_owned())].map(|instance| CounterPath {
            object: object.to_owned(),
            instance,
            counter: "*".to_owned(),
        })
    }

    /// True if a value of this name is meant. Without an instance any is.
    pub fn means(&self, object: &str, instance: Option<&str>, counter: &str) -> bool {
        let same = |wanted: &str, name: &str| wanted.to_lowercase() == name.to_lowercase();
        same(&self.object, object)
            && (self.counter == "*" || same(&self.counter, counter))
            && (self.instance.is_none() || self.wants(instance) || instance.is_none() && self.is_of_any())
    }

    fn is_of_any(&self) -> bool {
        self.instance.as_deref() == Some("*")
    }

    /// True if an instance is wanted: one of an object that has instances only where one is named.
    pub(super) fn wants(&self, instance: Option<&str>) -> bool {
        match (&self.instance, instance) {
            (None, None) => true,
            (Some(pattern), Some(name)) => {
                let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
                let first = pattern.strip_suffix("#0");
                matches(&pattern, &name) || first.is_some_and(|pattern| matches(pattern, &name))
            }
            _ => false,
        }
    }
}

impl fmt::Display for CounterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CounterPath { object, instance, counter } = self;
        match instance {
            Some(instance) => write!(f, r"{object}({instance})\{counter}"),
            None => write!(f, r"{object}\{counter}"),
        }
    }
}

/// Whether `name` reads as `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    let mut rest = rest;
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}
