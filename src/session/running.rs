//! The sessions that run on this machine: ours, those of runs that crashed, and those of others in our way.
//!
//! Our sessions are named `etwprof-PID-STARTED-INTERVAL-kernel` and `-clr`, after the process that owns them and the time
//! it was started (hexadecimal), because process ids are used again. A session is stale when that process is gone.
//! INTERVAL is the machine's own sampling interval, which has to be put back when the run is over, whoever ends it.

use super::error::{NO_SUCH_SESSION, SessionError};
use super::{etw, interval, process};

/// A running session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// True for a session of the kernel's events: there are eight places for these.
    pub is_kernel: bool,
    /// True if it samples processors.
    pub samples: bool,
    /// The machine's own sampling interval in 100 ns, kept by a session of ours.
    pub interval: Option<u32>,
}

/// Whose a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A running etwprof, with this process id.
    Running(u32),
    /// An etwprof that is gone: the session is left over.
    Gone(u32),
    /// Not ours.
    Other,
}

const PREFIX: &str = "etwprof-";
const SYSTEM_LOGGER_MODE: u32 = 0x0200_0000;
const FLAG_PROFILE: u32 = 0x0100_0000;
const KERNEL_LOGGER: &str = "NT Kernel Logger";

const KERNEL_PART: &str = "kernel";
const CLR_PART: &str = "clr";

/// The names of this process's sessions: the kernel's and the CLR's. They keep the machine's own sampling interval, in
/// 100 ns.
pub(super) fn names(interval: Option<u32>) -> [String; 2] {
    let pid = std::process::id();
    let since = process::watch(pid).and_then(|own| own.since).unwrap_or(0);
    let interval = interval.unwrap_or(0);
    [KERNEL_PART, CLR_PART].map(|part| format!("{PREFIX}{pid}-{since:x}-{interval}-{part}"))
}

/// What the name of a session of ours says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name<'a> {
    pid: u32,
    started: u64,
    interval: Option<u32>,
    part: &'a str,
}

fn parse(name: &str) -> Option<Name<'_>> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let pid = parts.next()?.parse().ok()?;
    let started = u64::from_str_radix(parts.next()?, 16).ok()?;
    let interval = parts.next()?.parse().ok().filter(|interval| *interval > 0);
    Some(Name { pid, started, interval, part: parts.next().unwrap_or_default() })
}

/// Every session that this user may see.
pub fn all() -> Result<Vec<Session>, SessionError> {
    let session = |properties: etw::Properties| Session {
        owner: parse(&properties.name).map_or(Owner::Other, owner),
        is_kernel: properties.mode & SYSTEM_LOGGER_MODE != 0 || properties.name == KERNEL_LOGGER,
        samples: properties.kernel_flags & FLAG_PROFILE != 0,
        interval: parse(&properties.name).and_then(|name| name.interval),
        name: properties.name,
    };
    Ok(etw::all()?.into_iter().map(session).collect())
}

/// Another run of etwprof that samples now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampler {
    pub(super) pid: u32,
    /// The machine's own sampling interval, as that run knows it.
    pub(super) interval: Option<u32>,
}

/// Another run of etwprof that samples now. A user who may not list sessions does not see it.
pub(super) fn other_sampler() -> Option<Sampler> {
    let own = std::process::id();
    let sampler = |session: Session| match (parse(&session.name)?, session.owner) {
        (Name { part: KERNEL_PART, interval, .. }, Owner::Running(pid)) if pid != own => {
            Some(Sampler { pid, interval })
        }
        _ => None,
    };
    all().unwrap_or_default().into_iter().find_map(sampler)
}

/// Stops a session, whoever started it. If it is left of a run that is gone, the machine's own sampling interval is put
/// back first; what that came to.
pub fn stop(name: &str) -> Result<Option<PutBack>, SessionError> {
    let own = parse(name).and_then(|name| name.interval).filter(|_| etw::query(name).is_ok());
    let put_back = own.and_then(|own| {
        // Setting it needs the privilege; without it setting fails, and says so.
        let _ = process::enable_profile_privilege();
        match interval::put_back(own) {
            Ok(true) => Some(PutBack::Done(own)),
            Ok(false) => None,
            Err(error) => Some(PutBack::Failed(own, error)),
        }
    });
    match etw::stop(name) {
        Err(error) if error.code() == Some(NO_SUCH_SESSION) => Err(SessionError::NoSession(name.to_owned())),
        other => other.map(|_| put_back),
    }
}

/// What came of putting a sampling interval back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// It is in force again, in 100 ns.
    Done(u32),
    /// Another one stays in force.
    Failed(u32, SessionError),
}

/// What runs that crashed had left.
#[derive(Clone, Debug, Default)]
pub(super) struct Stale {
    /// The names of their sessions, which were stopped.
    pub(super) stopped: Vec<String>,
    /// The machine's own sampling interval, as they knew it.
    pub(super) interval: Option<u32>,
}

/// Stops the sessions of runs that crashed, and puts back the sampling interval that they found.
pub(super) fn stop_stale() -> Stale {
    // A user who may not list sessions may not start one either, and is told so then.
    let mut stale = all().unwrap_or_default();
    stale.retain(|session| matches!(session.owner, Owner::Gone(_)));
    let interval = stale.iter().find_map(|session| session.interval);
    let names = stale.into_iter().map(|session| session.name);
    Stale { stopped: names.filter(|name| stop(name).is_ok()).collect(), interval }
}

fn owner(name: Name<'_>) -> Owner {
    let Name { pid, started, .. } = name;
    match process::watch(pid) {
        None => Owner::Gone(pid),
        // A process whose start nobody tells us (another user's) may be the owner.
        Some(watched) if watched.since.is_none_or(|since| since == started) => Owner::Running(pid),
        Some(_) => Owner::Gone(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_belongs_to_a_process_and_its_start() {
        let owner = |name: &str| parse(name).map_or(Owner::Other, owner);
        for own in names(Some(10_000)) {
            assert_eq!(owner(&own), Owner::Running(std::process::id()));
        }
        let earlier = format!("etwprof-{}-1234-kernel", std::process::id());
        assert_eq!(owner(&earlier), Owner::Gone(std::process::id()));
        assert_eq!(owner("NT Kernel Logger"), Owner::Other);
        assert_eq!(owner("etwprof-friend"), Owner::Other);
    }

    #[test]
    fn a_session_keeps_the_interval_that_was_found() {
        let interval = |name: &str| parse(name).unwrap().interval;
        assert_eq!(names(Some(15_625)).map(|name| interval(&name)), [Some(15_625); 2]);
        assert_eq!(names(None).map(|name| interval(&name)), [None; 2]);
        assert_eq!(interval("etwprof-4711-1dd-kernel"), None);
    }
}
