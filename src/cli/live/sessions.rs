//! `etwprof sessions`: who records on this machine.

use anyhow::{Context, Result};
use etwprof::session::running::{self, Owner, PutBack, Session};

use super::missing;
use crate::cli::args;
use crate::cli::output;

pub(in crate::cli) fn run(args: &args::Sessions) -> Result<()> {
    for name in &args.stop {
        let put_back = running::stop(name).context("--stop")?;
        anstream::eprintln!("stopped {name}");
        match put_back {
            Some(PutBack::Done(interval)) => {
                anstream::eprintln!("put the sampling interval back to {}", missing::time(interval));
            }
            Some(PutBack::Failed(interval, error)) => anstream::eprintln!(
                "warning: {error}; before that session it was {}, which is back when the system starts again",
                missing::time(interval)
            ),
            None => {}
        }
    }
    if !args.stop.is_empty() {
        return Ok(());
    }
    let sessions = running::all()?;
    let shown: Vec<&Session> = sessions
        .iter()
        .filter(|session| session.owner != Owner::Other || session.is_kernel || session.samples)
        .collect();
    output::write(None, |out| {
        for session in &shown {
            writeln!(out, "{}: {}", session.name, describe(session))?;
        }
        let others = sessions.len() - shown.len();
        writeln!(out, "{others} other sessions, which are not in the way of a profile")
    })
}

fn describe(session: &Session) -> String {
    let owner = match session.owner {
        Owner::Running(pid) => format!("of the running etwprof {pid}"),
        Owner::Gone(pid) => format!("left by etwprof {pid}, which is gone; --stop {} stops it", session.name),
        Owner::Other => "somebody else's".to_owned(),
    };
    let kind = match (session.is_kernel, session.samples) {
        (_, true) => ", samples processors",
        (true, false) => ", has kernel events",
        (false, false) => "",
    };
    format!("{owner}{kind}")
}
