//! `etwprof sessions`: who records on this machine.

use anyhow::{Result, anyhow};
use etwprof::session::running::{self, Owner, PutBack, Session};

use super::cures::with_cure;
use super::missing;
use crate::cli::args;
use crate::cli::{output, say};

pub(in crate::cli) fn run(args: &args::Sessions) -> Result<()> {
    for name in &args.stop {
        let put_back = running::stop(name).map_err(|error| anyhow!("--stop: {}", with_cure(&error)))?;
        say::note(format_args!("stopped {name}"));
        match put_back {
            Some(PutBack::Done(interval)) => {
                say::note(format_args!("restored the sampling interval to {}", missing::time(interval)));
            }
            Some(PutBack::Failed(interval, error)) => say::warning(format_args!(
                "{}; it was {} before that session, and will be again after a restart",
                with_cure(&error),
                missing::time(interval)
            )),
            None => {}
        }
    }
    if !args.stop.is_empty() {
        return Ok(());
    }
    let sessions = running::all().map_err(|error| anyhow!(with_cure(&error)))?;
    let shown: Vec<&Session> = sessions
        .iter()
        .filter(|session| session.owner != Owner::Other || session.is_kernel || session.samples)
        .collect();
    output::print(|out| {
        for session in &shown {
            writeln!(out, "{}: {}", session.name, describe(session))?;
        }
        match sessions.len() - shown.len() {
            0 if shown.is_empty() => writeln!(out, "no sessions"),
            0 => Ok(()),
            1 => writeln!(out, "1 other session, which does not interfere with profiling"),
            others => writeln!(out, "{others} other sessions, which do not interfere with profiling"),
        }
    })
}

fn describe(session: &Session) -> String {
    let owner = match session.owner {
        Owner::Running(pid) => format!("etwprof {pid}, running"),
        Owner::Gone(pid) => format!("left behind by etwprof {pid}; --stop {} stops it", session.name),
        Owner::Other => "another program's".to_owned(),
    };
    let kind = match (session.is_kernel, session.samples) {
        (_, true) => ", samples processors",
        (true, false) => ", records kernel events",
        (false, false) => "",
    };
    format!("{owner}{kind}")
}
