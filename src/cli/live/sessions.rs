//! `etwprof sessions`: who records on this machine.

use anyhow::{Context, Result};
use etwprof::session::running::{self, Owner, Session};

use crate::cli::args;
use crate::cli::output;

pub(in crate::cli) fn run(args: &args::Sessions) -> Result<()> {
    for name in &args.stop {
        running::stop(name).context("--stop")?;
        anstream::eprintln!("stopped {name}");
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
