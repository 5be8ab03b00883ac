//! What a recording goes on without, in words.

use etwprof::session::{Missing, Started};

use crate::cli::permissions;

/// A warning for each.
pub(super) fn warnings(started: &Started) -> Vec<String> {
    let mut warnings: Vec<String> = started.missing.iter().map(|missing| words(missing, started)).collect();
    let is_about_rate = |missing: &Missing| matches!(missing, Missing::Rate(_) | Missing::RateOfAnother(_));
    if started.interval != started.asked_interval && !started.missing.iter().any(is_about_rate) {
        warnings.push(format!("the machine samples {}", rates(started)));
    }
    warnings
}

fn words(missing: &Missing, started: &Started) -> String {
    match missing {
        Missing::DotNet(error) => format!(
            ".NET methods may have no names, and stacks through them may be cut short: {}",
            permissions::cause(error)
        ),
        Missing::DotNetBefore(error) => format!(
            ".NET methods compiled before the recording may have no names: {}",
            permissions::cause(error)
        ),
        Missing::Rate(error) => {
            format!("{}; the machine samples {}", permissions::cause(error), rates(started))
        }
        Missing::RateOfAnother(pid) => format!(
            "etwprof {pid} is recording too, and all recordings share one sampling rate: it stays at {}",
            rates(started)
        ),
    }
}

fn rates(started: &Started) -> String {
    let (is, asked) = (started.interval, started.asked_interval);
    if is == asked {
        return format!("every {}", time(is));
    }
    format!("every {} instead of every {}", time(is), time(asked))
}

/// An interval of so many 100 ns.
pub(super) fn time(interval: u32) -> String {
    format!("{} us", f64::from(interval) / 10.0)
}
