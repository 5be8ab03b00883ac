//! What to do about a failed step of a recording.

use etwprof::session::{Fault, SessionError};

const RIGHTS: &str = "run etwprof from an elevated console (Run as administrator), or let an administrator run `etwprof grant` once";
const CROWDED: &str =
    "`etwprof sessions` lists sessions, `etwprof sessions --stop NAME` or `logman stop NAME -ets` stops one";
const OLD_WINDOWS: &str = "etwprof needs Windows 8 or later";

/// What failed, why, and what to do about it.
pub(in crate::cli) fn with_cure(error: &SessionError) -> String {
    match cure(error) {
        Some(cure) => format!("{error}; {cure}"),
        None => error.to_string(),
    }
}

fn cure(error: &SessionError) -> Option<&'static str> {
    if let SessionError::NoSession(_) = error {
        return Some("`etwprof sessions` lists the running ones");
    }
    Some(match error.fault()? {
        Fault::Denied | Fault::NoPrivilege => RIGHTS,
        Fault::OutOfMemory => "close other programs, or sample at a lower --frequency",
        Fault::NotSupported | Fault::NotThere => OLD_WINDOWS,
        Fault::InvalidParameter => "etwprof needs Windows 8 or later; on such a system, try --frequency 1000",
        Fault::FixedRate => "omit --frequency: the default is 1,000 samples per second",
        Fault::Busy => {
            "stop the other profiler (`etwprof sessions` lists sessions, `logman stop NAME -ets` stops one), add an \
             exception to the security product, or give the virtual machine performance counters"
        }
        Fault::AlreadyRuns | Fault::ProviderIsTaken | Fault::TooManySessions => CROWDED,
        Fault::Gone => "start again, and find out which program stops sessions",
        Fault::NotStarted => "start again",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use etwprof::session::{SessionError, Step};

    use super::with_cure;

    #[test]
    fn codes_become_cause_and_cure() {
        let text = |code| with_cure(&SessionError::call(Step::StartKernel, code));
        assert!(text(5).contains("elevated"), "{}", text(5));
        assert!(text(183).contains("etwprof sessions"), "{}", text(183));
        assert!(text(1450).contains("8 kernel sessions"), "{}", text(1450));
        let enable = with_cure(&SessionError::call(Step::EnableProvider, 1450));
        assert!(enable.contains("eight sessions") && !enable.contains("kernel sessions"), "{enable}");
        assert!(text(170).contains("Defender") && text(170).contains("VTune"), "{}", text(170));
        assert!(text(170).contains("virtual machine"), "{}", text(170));
        assert!(text(4201).contains("another program stopped it"), "{}", text(4201));
        assert!(text(2).starts_with("cannot start the kernel session: "));
        let unknown = with_cure(&SessionError::NoSession("x".to_owned()));
        assert_eq!(unknown, "no session is named x; `etwprof sessions` lists the running ones");
    }
}
