//! What the commands do.

use anyhow::{Result, anyhow, bail};
use etwprof::session::SessionError;
use etwprof::session::access::windows::{LocalMachine, account, caller, groups, holds_privilege, name};
use etwprof::session::access::{self, CallError, Cause, GrantError, Method, Refused, Sid, rights};

use super::print::{self, Subject};
use crate::cli::args;

pub(in crate::cli) fn grant(args: &args::Grant) -> Result<()> {
    let subject = match (&args.account, args.me) {
        (Some(text), false) => subject(text)?,
        (None, true) => own()?,
        _ => bail!("`etwprof grant` needs to know whom: name an ACCOUNT, or say --me"),
    };
    let method = if args.via_group { Method::Group } else { Method::Each };
    let mut machine = LocalMachine;
    if args.dry_run {
        let steps = access::preview(&machine, &subject.sid, method);
        return print::dry_run(&subject, &steps, args.json);
    }
    match access::grant(&mut machine, &subject.sid, method) {
        Ok(outcomes) => print::granted(&subject, &outcomes, args.json),
        Err(error) => Err(grant_failed(&subject, &error)),
    }
}

fn grant_failed(subject: &Subject, error: &GrantError) -> anyhow::Error {
    let mut text = format!("{error}\n  cure: {}", cure(&error.cause, subject, "grant"));
    if error.left.is_empty() {
        text += "\n  nothing was changed";
        if !error.undone.is_empty() {
            text += ": what had been given before that was taken back";
        }
    }
    for right in &error.undone {
        text += &format!("\n  taken back: {right}");
    }
    for (right, cause) in &error.left {
        text += &format!("\n  NOT taken back: {right}: {cause}");
    }
    if !error.left.is_empty() {
        text += &format!("\n  `etwprof revoke {}` tries again to take back what is left", subject.sid);
    }
    anyhow!(text)
}

/// For the caller the cure names the SID: an elevated console may run as somebody else.
fn cure(cause: &Cause, subject: &Subject, command: &str) -> String {
    match cause {
        Cause::Call(error) if error.is_denied() => {
            let sid = &subject.sid;
            format!(
                "{}. From here, with one question of UAC: `powershell -c \"Start-Process cmd -Verb RunAs -ArgumentList \
                 '/k \"\"{}\"\" {command} {sid}'\"` (the SID, because the administrator who answers may be another \
                 account than {subject})",
                cause.cure(),
                std::env::current_exe().map_or("etwprof".into(), |path| path.display().to_string()),
            )
        }
        _ => cause.cure().to_owned(),
    }
}

pub(in crate::cli) fn revoke(args: &args::Revoke) -> Result<()> {
    let whose = match (&args.account, args.me) {
        (Some(text), _) => Some(subject(text)?),
        (None, true) => Some(own()?),
        (None, false) => None,
    };
    let sid = whose.as_ref().map(|subject| &subject.sid);
    let revoked = access::revoke(&mut LocalMachine, sid).map_err(|error| with_cure(&error))?;
    print::revoked(&revoked, args.json)?;
    match revoked.left.first() {
        None => Ok(()),
        Some((_, _, cause)) => {
            bail!(
                "{} rights could not be taken back; {}; then repeat `etwprof revoke`",
                revoked.left.len(),
                cause.cure()
            )
        }
    }
}

pub(in crate::cli) fn permissions(args: &args::Permissions) -> Result<()> {
    let me = own()?;
    let subject = match &args.account {
        Some(text) => subject(text)?,
        None => own()?,
    };
    let is_me = subject.sid == me.sid;
    let mut sids = vec![subject.sid.clone()];
    let mut notes = Vec::new();
    let more = match (is_me, &subject.name) {
        (true, _) => Ok(caller().map_err(|error| with_cure(&error))?.1),
        (false, Some(named)) => groups(named),
        (false, None) => Ok(Vec::new()),
    };
    match more {
        Ok(groups) => sids.extend(groups),
        // A group has no groups to ask for, and domain groups may be out of reach.
        Err(error) => notes.push(format!("rights through groups are not counted: {error}")),
    }
    sids.dedup();
    let states = access::permissions(&LocalMachine, &sids);
    let in_token = if is_me { holds_privilege(rights::PROFILE_PRIVILEGE).ok() } else { None };
    print::permissions(&subject, &states, in_token, &notes, args.json)
}

/// Why a live session could not be started: of a refusal, the missing right and the command that gives it.
pub(in crate::cli) fn explained(error: &SessionError) -> anyhow::Error {
    let denied = match error {
        SessionError::Call { doing, code } => {
            let account = own().ok().and_then(|me| me.name.map(|name| name.to_string()));
            access::denied(refused(doing), *code, account.as_deref().unwrap_or("this account"))
                .map(|why| anyhow!("cannot record: cannot {doing}: {why}"))
        }
        _ => None,
    };
    denied.unwrap_or_else(|| anyhow!("cannot record: {error}"))
}

fn refused(doing: &str) -> Refused {
    match doing {
        "read a session" => Refused::Consume,
        "switch a provider on" => Refused::DotNetEvents,
        "ask for stacks" | "switch the kernel's events on" => Refused::KernelEvents,
        _ if doing.contains("privilege") || doing.contains("sampling interval") => Refused::Privilege,
        _ => Refused::Session,
    }
}

fn subject(text: &str) -> Result<Subject> {
    let sid = account(text).map_err(|error| with_cure(&error))?;
    with_name(sid)
}

fn own() -> Result<Subject> {
    let (sid, _) = caller().map_err(|error| with_cure(&error))?;
    with_name(sid)
}

fn with_name(sid: Sid) -> Result<Subject> {
    let name = name(&sid).map_err(|error| with_cure(&error))?;
    Ok(Subject { sid, name })
}

fn with_cure(error: &CallError) -> anyhow::Error {
    anyhow!("{error}\n  cure: {}", error.cure())
}
