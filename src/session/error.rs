//! What can go wrong with a session: the step that failed, and why. What to do about it is for whoever shows it.

use std::fmt;

/// A step of a recording that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A call of the system failed.
    #[error("cannot {step}: {}", Reason(*.step, *.code))]
    Call {
        /// What the call was to do.
        step: Step,
        /// The Win32 error code.
        code: u32,
    },
    /// A call of the system has not returned in the time that it was given.
    #[error("cannot {step}: the system does not answer")]
    NoAnswer {
        /// What the call was to do.
        step: Step,
    },
    /// There is no session of the name that a user gave.
    #[error("no session is named {0}")]
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
    #[error("a session still delivered events half a minute after it was stopped; the rest is missing")]
    Unread,
}

/// What a call of the system is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Start the kernel session.
    StartKernel,
    /// Start the CLR session.
    StartClr,
    /// Ask for the state of a session.
    Query,
    /// Stop a session.
    Stop,
    /// Have a session hand out what is in its buffers.
    Flush,
    /// List the sessions of the machine.
    List,
    /// Read the events of a session.
    Read,
    /// Switch a provider of programs on.
    EnableProvider,
    /// Switch kernel events on.
    EnableKernel,
    /// Ask for stacks with kernel events.
    TraceStacks,
    /// Read the sampling interval.
    ReadInterval,
    /// Set the sampling interval.
    SetInterval,
    /// Switch the privilege to sample on.
    EnablePrivilege,
    /// Let a program run that was started suspended.
    Resume,
    /// End a program that was started suspended and has not run.
    End,
    /// Listen for Ctrl-C.
    Listen,
}

/// As the rest of "cannot ...".
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::StartKernel => "start the kernel session",
            Step::StartClr => "start the CLR session",
            Step::Query => "query a session",
            Step::Stop => "stop a session",
            Step::Flush => "flush a session",
            Step::List => "list the sessions",
            Step::Read => "read a session",
            Step::EnableProvider => "enable a provider",
            Step::EnableKernel => "enable the kernel's events",
            Step::TraceStacks => "request stacks",
            Step::ReadInterval => "read the sampling interval",
            Step::SetInterval => "set the sampling interval",
            Step::EnablePrivilege => "enable the privilege to sample",
            Step::Resume => "start the program's first thread",
            Step::End => "end the suspended program",
            Step::Listen => "listen for Ctrl-C",
        })
    }
}

/// Why the system refuses a step, where its code says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The account may not do it.
    #[error("access is denied")]
    Denied,
    /// The account lacks the privilege to sample.
    #[error("this user does not have the privilege \"Profile system performance\"")]
    NoPrivilege,
    /// No memory is left.
    #[error("the system is out of memory")]
    OutOfMemory,
    /// This Windows cannot do it.
    #[error("this system does not support it")]
    NotSupported,
    /// This Windows does not have the call.
    #[error("this system lacks it")]
    NotThere,
    /// A parameter is refused.
    #[error("the system refuses a parameter")]
    InvalidParameter,
    /// The sampling interval cannot be changed here.
    #[error("this system or container does not allow it")]
    FixedRate,
    /// Another program has the source of samples, or there is none.
    #[error(
        "the sampling source is in use by another profiler (VTune, WPR) or a security product (Microsoft Defender, an \
         EDR), or this virtual machine has none"
    )]
    Busy,
    /// A session with this GUID runs.
    #[error("such a session already runs, and granted rights allow one at a time")]
    AlreadyRuns,
    /// Eight sessions have the provider (documentation of EnableTraceEx2).
    #[error("eight sessions already receive its events, the most that Windows allows")]
    ProviderIsTaken,
    /// There is no place for one more session.
    #[error("too many sessions: Windows allows 8 kernel sessions, and 64 in all")]
    TooManySessions,
    /// Somebody stopped the session.
    #[error("the session is gone: another program stopped it")]
    Gone,
    /// The session did not start.
    #[error("the session could not be started")]
    NotStarted,
}

impl SessionError {
    /// An error of this code, which may be wrapped as an HRESULT (`0x8007xxxx`).
    pub fn call(step: Step, code: u32) -> SessionError {
        SessionError::Call { step, code: if code >> 16 == 0x8007 { code & 0xffff } else { code } }
    }

    /// Why the call failed, where the code says so.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            SessionError::Call { step, code } => fault(*step, *code),
            _ => None,
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

pub(super) const BUSY: u32 = 170;
pub(super) const INVALID_PARAMETER: u32 = 87;
pub(super) const ALREADY_EXISTS: u32 = 183;

/// No session of this name; the code in the documentation of ControlTrace.
pub(super) const NO_SUCH_SESSION: u32 = 4201;

/// What a step's code means.
fn fault(step: Step, code: u32) -> Option<Fault> {
    Some(match (step, code) {
        (Step::EnableProvider, 1450) => Fault::ProviderIsTaken,
        (Step::SetInterval, 50 | INVALID_PARAMETER | 120) => Fault::FixedRate,
        (_, 5) => Fault::Denied,
        (_, 8 | 14) => Fault::OutOfMemory,
        (_, 50) => Fault::NotSupported,
        (_, INVALID_PARAMETER) => Fault::InvalidParameter,
        (_, 120) => Fault::NotThere,
        (_, BUSY) => Fault::Busy,
        (_, ALREADY_EXISTS) => Fault::AlreadyRuns,
        (_, 1300 | 1314) => Fault::NoPrivilege,
        (_, 1450) => Fault::TooManySessions,
        (_, NO_SUCH_SESSION) => Fault::Gone,
        (_, 4214) => Fault::NotStarted,
        _ => return None,
    })
}

/// A step's code in words; the system's own where we have none.
struct Reason(Step, u32);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reason(step, code) = *self;
        match fault(step, code) {
            Some(fault) => write!(f, "{fault} (error {code})"),
            None => write!(f, "{}", std::io::Error::from_raw_os_error(code as i32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, SessionError, Step};

    #[test]
    fn a_code_means_what_its_step_makes_of_it() {
        let fault = |step, code| SessionError::call(step, code).fault();
        assert_eq!(fault(Step::StartKernel, 1450), Some(Fault::TooManySessions));
        assert_eq!(fault(Step::EnableProvider, 1450), Some(Fault::ProviderIsTaken));
        assert_eq!(fault(Step::SetInterval, 87), Some(Fault::FixedRate));
        assert_eq!(fault(Step::StartKernel, 0x8007_00aa), Some(Fault::Busy));
        assert_eq!(fault(Step::StartKernel, 2), None);
        assert_eq!(SessionError::NoAnswer { step: Step::Stop }.fault(), None);
    }

    #[test]
    fn an_error_names_step_cause_and_code() {
        let text = |code| SessionError::call(Step::Stop, code).to_string();
        assert_eq!(text(5), "cannot stop a session: access is denied (error 5)");
        assert_eq!(text(0x8007_0005), text(5));
        assert!(text(2).starts_with("cannot stop a session: "));
    }
}
