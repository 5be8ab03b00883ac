//! What ends a recording by itself.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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
}

const EXPECTED: &str = "expected cpu:80%, gc:200ms, file:PATH, or exit:NAME (or a process id)";

impl FromStr for StopWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<StopWhen, String> {
        let (kind, value) = text.split_once(':').filter(|(_, value)| !value.is_empty()).ok_or(EXPECTED)?;
        match kind {
            "cpu" => percent(value).map(StopWhen::Cpu),
            "gc" => time::parse(value).map(StopWhen::Gc),
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
            Err(error) => error,
        };
        let all = ["cpu:80%", "gc:200ms", r"file:C:\a:b", "exit:7", "exit:a.exe"].map(kind);
        assert_eq!(all, ["80 %", "200ms", r"C:\a:b", "7", "a.exe"]);
        for text in ["", "cpu", "cpu:", "cpu:x", "disk:1", "gc:long", "exit:/x"] {
            assert!(text.parse::<StopWhen>().is_err(), "{text}");
        }
    }
}
