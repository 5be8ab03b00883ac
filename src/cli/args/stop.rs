//! What ends a recording by itself.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use etwprof::counters::{CounterPath, PathError};
use etwprof::profile::Matcher;

use super::shared::percent;
use crate::cli::time;

/// A condition of `--stop-when`.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(windows, test)), expect(dead_code, reason = "only recording asks for it"))]
pub(crate) enum StopWhen {
    /// The targets use so much of all processors, in percent.
    Cpu(f64),
    /// Threads of a target stand still so long for a collection.
    Gc(Duration),
    /// A file is there.
    File(PathBuf),
    /// A process of this id ends.
    ExitOf(u32),
    /// A process of this name ends.
    Exit(Matcher),
    /// A counter passes a value.
    Counter(CounterLimit),
}

/// A value that a counter may pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CounterLimit {
    /// Which counter.
    pub(crate) path: CounterPath,
    /// True if it is to be greater than the value, false if less.
    pub(crate) above: bool,
    pub(crate) value: f64,
}

impl FromStr for CounterLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<CounterLimit, String> {
        let expected = || r"expected counter:Object\Counter>VALUE, or < for less".to_owned();
        let at = text.rfind(['>', '<']).ok_or_else(expected)?;
        let (path, rest) = text.split_at(at);
        let value = rest.get(1..).unwrap_or_default().trim().parse::<f64>().ok();
        Ok(CounterLimit {
            path: path.trim().parse().map_err(|error: PathError| error.to_string())?,
            above: rest.starts_with('>'),
            value: value.filter(|value| value.is_finite()).ok_or_else(expected)?,
        })
    }
}

const EXPECTED: &str =
    "expected cpu:80%, gc:200ms, file:PATH, exit:NAME (or a process id), or counter:NAME>VALUE";

impl FromStr for StopWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<StopWhen, String> {
        let (kind, value) = text.split_once(':').filter(|(_, value)| !value.is_empty()).ok_or(EXPECTED)?;
        match kind {
            "cpu" => percent(value).map(StopWhen::Cpu),
            "gc" => time::parse(value).map(StopWhen::Gc),
            "counter" => value.parse().map(StopWhen::Counter),
            "file" => Ok(StopWhen::File(value.into())),
            "exit" => match value.parse() {
                Ok(pid) => Ok(StopWhen::ExitOf(pid)),
                Err(_) => Matcher::parse(value).map(StopWhen::Exit).map_err(|error| error.to_string()),
            },
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopWhen;

    #[test]
    fn conditions_have_a_kind_and_a_value() {
        let kind = |text: &str| match text.parse::<StopWhen>() {
            Ok(StopWhen::Cpu(percent)) => format!("{percent} %"),
            Ok(StopWhen::Gc(time)) => format!("{time:?}"),
            Ok(StopWhen::File(path)) => path.display().to_string(),
            Ok(StopWhen::ExitOf(pid)) => pid.to_string(),
            Ok(StopWhen::Exit(name)) => name.to_string(),
            Ok(StopWhen::Counter(limit)) => format!("{limit:?}"),
            Err(error) => error,
        };
        let all = ["cpu:80%", "gc:200ms", r"file:C:\a:b", "exit:7", "exit:a.exe"].map(kind);
        assert_eq!(all, ["80 %", "200ms", r"C:\a:b", "7", "a.exe"]);
        let limit = |text: &str| text.parse::<super::CounterLimit>().unwrap();
        let heap = limit(r"System.Runtime\gc-heap-size>500");
        assert_eq!(
            (heap.path.to_string().as_str(), heap.above, heap.value),
            (r"System.Runtime\gc-heap-size", true, 500.0)
        );
        let idle = limit(r"Processor(_Total)\% Idle Time < 1.5");
        assert_eq!((idle.path.counter.as_str(), idle.above, idle.value), ("% Idle Time", false, 1.5));
        for text in ["counter:x", r"counter:a\b", r"counter:a\b>", r"counter:a\b>inf", "counter:>5"] {
            assert!(text.parse::<StopWhen>().is_err(), "{text}");
        }
        for text in ["", "cpu", "cpu:", "cpu:x", "disk:1", "gc:long", "exit:/x"] {
            assert!(text.parse::<StopWhen>().is_err(), "{text}");
        }
    }
}
