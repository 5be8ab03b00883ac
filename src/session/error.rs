//! What can go wrong with a session, with its cause and its cure.

use std::fmt;

/// A failed call, by what it was to do and the system's code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A call of the system failed.
    #[error("cannot {doing}: {}", Reason(.doing, *.code))]
    Call {
        /// What the call was to do, for instance "start the kernel session".
        doing: &'static str,
        /// The Win32 error code.
        code: u32,
    },
    /// A call of the system has not returned in the time that it was given.
    #[error("cannot {doing}: the system does not answer")]
    NoAnswer {
        /// What the call was to do.
        doing: &'static str,
    },
    /// There is no session of the name that a user gave.
    #[error("no session is named {0}; `etwprof sessions` lists those that run")]
    NoSession(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// The thread that builds the trace panicked.
    #[error(
        "the thread that builds the trace panicked; this is a fault of etwprof, and its message is above"
    )]
    Builder,
    /// A session did not hand out all that it had.
    #[error("a session still had events half a minute after it was stopped; these are missing")]
    Unread,
}

impl SessionError {
    /// An error of this code, which may be wrapped as an HRESULT (`0x8007xxxx`).
    pub fn call(doing: &'static str, code: u32) -> SessionError {
        SessionError::Call { doing, code: win32(code) }
    }

    /// What failed and why, without a cure: for whoever has one that fits better.
    pub fn cause(&self) -> String {
        match self {
            SessionError::Call { doing, code } => match reason(doing, *code) {
                Some((_, cause, _)) => format!("cannot {doing}: {cause} (error {code})"),
                None => self.to_string(),
            },
            other => other.to_string(),
        }
    }

    /// The Win32 error code of a failed call.
    pub fn code(&self) -> Option<u32> {
        match self {
            SessionError::Call { code, .. } => Some(*code),
            SessionError::NoSession(_) => Some(NO_SUCH_SESSION),
            SessionError::NoAnswer { .. }
            | SessionError::Thread(_)
            | SessionError::Builder
            | SessionError::Unread => None,
        }
    }
}

/// What the call does that switches a provider on.
pub(super) const ENABLE: &str = "switch a provider on";

/// What the call does that sets the sampling interval.
pub(super) const SET_INTERVAL: &str = "set the sampling interval";

pub(super) const BUSY: u32 = 170;
pub(super) const INVALID_PARAMETER: u32 = 87;
pub(super) const ALREADY_EXISTS: u32 = 183;

/// No session of this name; the code in the documentation of ControlTrace.
pub(super) const NO_SUCH_SESSION: u32 = 4201;

fn win32(code: u32) -> u32 {
    if code >> 16 == 0x8007 { code & 0xffff } else { code }
}

/// What a call was to do and its code, as cause and cure.
struct Reason<'a>(&'a str, u32);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reason(doing, code) = *self;
        match reason(doing, code) {
            Some((_, cause, cure)) => write!(f, "{cause} (error {code}); {cure}"),
            None => write!(f, "{}", std::io::Error::from_raw_os_error(code as i32)),
        }
    }
}

/// Code, cause, cure, where they are known.
fn reason(doing: &str, code: u32) -> Option<&'static (u32, &'static str, &'static str)> {
    let reasons = match doing {
        ENABLE => OF_PROVIDERS,
        SET_INTERVAL => OF_INTERVAL,
        _ => &[],
    };
    reasons.iter().chain(REASONS).find(|(known, ..)| *known == code)
}

const RIGHTS: &str = "run etwprof from an elevated prompt (Run as administrator), or let an administrator `etwprof grant` it once";
const CROWDED: &str =
    "`etwprof sessions` lists sessions, `etwprof sessions --stop NAME` or `logman stop NAME -ets` stops one";

/// Code, cause, cure, of a provider (documentation of EnableTraceEx2).
const OF_PROVIDERS: &[(u32, &str, &str)] =
    &[(1450, "eight sessions receive its events already, and Windows allows no more", CROWDED)];

const FIXED_RATE: &str = "this system or container does not allow it";
const USUAL_RATE: &str = "leave out --frequency: Windows itself takes 1,000 samples a second";

/// Code, cause, cure, of the sampling interval.
const OF_INTERVAL: &[(u32, &str, &str)] = &[
    (50, FIXED_RATE, USUAL_RATE),
    (INVALID_PARAMETER, FIXED_RATE, USUAL_RATE),
    (120, FIXED_RATE, USUAL_RATE),
];

/// Code, cause, cure.
const REASONS: &[(u32, &str, &str)] = &[
    (5, "access is denied", RIGHTS),
    (8, "the system is out of memory", "close other programs, or sample at a lower --frequency"),
    (14, "the system is out of memory", "close other programs, or sample at a lower --frequency"),
    (50, "this system does not support it", "etwprof needs Windows 8 or later"),
    (
        INVALID_PARAMETER,
        "the system refuses a parameter",
        "etwprof needs Windows 8 or later; if that is what you have, try --frequency 1000",
    ),
    (120, "this system does not have it", "etwprof needs Windows 8 or later"),
    (
        BUSY,
        "the sampling source is in use by another profiler (VTune, WPR) or a security product (Microsoft Defender, an \
         EDR), or this virtual machine has none",
        "stop the other profiler (`etwprof sessions` lists sessions, `logman stop NAME -ets` stops one), let the security \
         product make an exception, or give the virtual machine performance counters",
    ),
    (ALREADY_EXISTS, "such a session runs already, and on granted rights there is one at a time", CROWDED),
    (1300, "this user does not have the privilege \"Profile system performance\"", RIGHTS),
    (1314, "this user does not have the privilege \"Profile system performance\"", RIGHTS),
    (1450, "too many sessions run: Windows has 8 places for kernel sessions, and 64 in all", CROWDED),
    (4201, "the session is gone: somebody stopped it", "start again, and look for who stops sessions"),
    (4214, "the session could not be started", "start again"),
];

#[cfg(test)]
mod tests {
    use super::SessionError;

    #[test]
    fn codes_become_cause_and_cure() {
        let text = |code| SessionError::call("start the kernel session", code).to_string();
        assert!(text(5).contains("elevated"), "{}", text(5));
        assert!(text(183).contains("etwprof sessions"), "{}", text(183));
        assert!(text(1450).contains("8 places"), "{}", text(1450));
        let enable = SessionError::call(super::ENABLE, 1450).to_string();
        assert!(enable.contains("eight sessions") && !enable.contains("places"), "{enable}");
        assert!(text(170).contains("Defender") && text(170).contains("VTune"), "{}", text(170));
        assert!(text(170).contains("virtual machine"), "{}", text(170));
        assert!(text(4201).contains("somebody stopped it"), "{}", text(4201));
        assert_eq!(text(0x8007_00aa), text(170));
        assert!(text(0x8007_00aa).contains("another profiler"), "{}", text(170));
        assert!(text(2).starts_with("cannot start the kernel session: "));
        let cause = SessionError::call("stop a session", 5).cause();
        assert_eq!(cause, "cannot stop a session: access is denied (error 5)");
    }
}
