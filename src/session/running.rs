//! The sessions that run on this machine: ours, those of runs that crashed, and those of others in our way.
//!
//! Our sessions are named `etwprof-PID-STARTED-kernel` and `etwprof-PID-STARTED-clr`, after the process that owns
//! them and the time it was started (hexadecimal), because process ids are used again. A session is stale when that
//! process is gone.

use super::error::{NO_SUCH_SESSION, SessionError};
use super::{etw, process};

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

/// The name for a session of this process.
pub(super) fn name(part: &str) -> String {
    let pid = std::process::id();
    let since = process::watch(pid).and_then(|own| own.since).unwrap_or(0);
    format!("{PREFIX}{pid}-{since:x}-{part}")
}

/// Every session that this user may see.
pub fn all() -> Result<Vec<Session>, SessionError> {
    let session = |properties: etw::Properties| Session {
        owner: owner(&properties.name),
        is_kernel: properties.mode & SYSTEM_LOGGER_MODE != 0 || properties.name == KERNEL_LOGGER,
        samples: properties.kernel_flags & FLAG_PROFILE != 0,
        name: properties.name,
    };
    Ok(etw::all()?.into_iter().map(session).collect())
}

/// Stops a session, whoever started it.
pub fn stop(name: &str) -> Result<(), SessionError> {
    match etw::stop(name) {
        Err(error) if error.code() == Some(NO_SUCH_SESSION) => Err(SessionError::NoSession(name.to_owned())),
        other => other.map(drop),
    }
}

/// Stops the sessions of runs that crashed, and gives their names. A run that crashed may also have left its sampling
/// interval: that goes back to what Windows starts with.
pub(super) fn stop_stale() -> Vec<String> {
    const DEFAULT_INTERVAL: u32 = 10_000;
    // A user who may not list sessions may not start one either, and is told so then.
    let stale =
        all().unwrap_or_default().into_iter().filter(|session| matches!(session.owner, Owner::Gone(_)));
    let stopped: Vec<String> = stale.map(|session| session.name).filter(|name| stop(name).is_ok()).collect();
    if !stopped.is_empty() {
        let _ = etw::set_sampling_interval(DEFAULT_INTERVAL);
    }
    stopped
}

fn owner(name: &str) -> Owner {
    let parts = || {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let pid = parts.next()?.parse::<u32>().ok()?;
        let started = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some((pid, started))
    };
    let Some((pid, started)) = parts() else { return Owner::Other };
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
        let own = name("kernel");
        assert_eq!(owner(&own), Owner::Running(std::process::id()));
        let earlier = format!("etwprof-{}-1234-kernel", std::process::id());
        assert_eq!(owner(&earlier), Owner::Gone(std::process::id()));
        assert_eq!(owner("NT Kernel Logger"), Owner::Other);
        assert_eq!(owner("etwprof-friend"), Owner::Other);
    }
}
