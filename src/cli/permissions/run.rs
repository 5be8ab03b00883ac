//! What the commands do.

use anyhow::{Result, anyhow, bail};
use etwprof::access::windows::{
    Elevation, LocalMachine, Named, account, caller, groups, holds_privilege, name,
};
use etwprof::access::{self, CallError, Cause, GrantError, Machine, Method, Refused, Sid, State, rights};
use etwprof::session::{SessionError, Step};

use super::cures;
use super::print::{self, Logon, Subject};
use crate::cli::{args, live};

pub(in crate::cli) fn grant(args: &args::Grant) -> Result<()> {
    let subject = match (&args.account, args.me) {
        (Some(text), false) => subject(text)?,
        (None, true) => own()?,
        _ => bail!("no account given; name one, or use --me"),
    };
    let (method, flag) = if args.via_group { (Method::Group, " --via-group") } else { (Method::Each, "") };
    let mut machine = LocalMachine;
    if args.dry_run {
        let steps = access::preview(&machine, &subject.sid, method).map_err(|cause| {
            anyhow!("cannot grant to {subject}: {cause}\n  cure: {}", cures::of_cause(&cause))
        })?;
        return print::dry_run(&subject, &steps, args.json);
    }
    match access::grant(&mut machine, &subject.sid, method) {
        Ok(outcomes) => print::granted(&subject, &outcomes, is_filtered(&subject), args.json),
        Err(error) => {
            if args.json {
                print::grant_failed(&subject, &error)?;
            }
            // The SID, because the administrator who answers UAC may be another account than the caller.
            Err(grant_failed(&subject, &error, &format!("grant {}{flag}", subject.sid)))
        }
    }
}

/// True if User Account Control takes the privilege from the account's ordinary programs: an administrator's.
fn is_filtered(subject: &Subject) -> bool {
    match caller() {
        Ok(caller) if caller.sid == subject.sid => caller.elevation != Elevation::None,
        _ => subject.name.as_ref().is_some_and(is_administrator),
    }
}

fn is_administrator(named: &Named) -> bool {
    groups(named).is_ok_and(|groups| groups.contains(&Sid::administrators()))
}

fn grant_failed(subject: &Subject, error: &GrantError, command: &str) -> anyhow::Error {
    let what = match &error.cause {
        Cause::Anybody(_) => format!("cannot grant to {subject}: {}", error.cause),
        _ => error.to_string(),
    };
    let mut text = format!("{what}\n  cure: {}", cure(&error.cause, command));
    if error.left.is_empty() {
        text += "\n  nothing was changed";
        if !error.undone.is_empty() {
            text += ": rights granted before the failure were revoked again";
        }
    }
    for right in &error.undone {
        text += &format!("\n  revoked again: {right}");
    }
    for (right, cause) in &error.left {
        text += &format!("\n  NOT revoked: {right}: {cause}");
    }
    if !error.left.is_empty() {
        text += &format!("\n  `etwprof revoke {}` tries again to revoke the rest", subject.sid);
    }
    anyhow!(text)
}

/// What to do about it; of a refusal also how to run the command elevated from here.
fn cure(cause: &Cause, command: &str) -> String {
    match cause {
        Cause::Call(error) if error.is_denied() => {
            let program = std::env::current_exe().map_or("etwprof".into(), |path| path.display().to_string());
            format!(
                "{}. From here, with one UAC prompt: `powershell -c \"Start-Process -Verb RunAs '{}' \
                 '{command}'\"`; then check with `etwprof permissions`",
                cures::of_cause(cause),
                program.replace('\'', "''"),
            )
        }
        _ => cures::of_cause(cause).to_owned(),
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
    let again = sid.map_or("revoke".to_owned(), |sid| format!("revoke {sid}"));
    match revoked.left.first() {
        None => Ok(()),
        Some((_, _, cause)) => {
            bail!(
                "cannot revoke everything that was granted ({} left); `etwprof {again}` tries again\n  cure: {}",
                revoked.left.len(),
                cure(cause, &again)
            )
        }
    }
}

pub(in crate::cli) fn permissions(args: &args::Permissions) -> Result<()> {
    let caller = caller().map_err(|error| with_cure(&error))?;
    let subject = match &args.account {
        Some(text) => subject(text)?,
        None => with_name(caller.sid.clone())?,
    };
    let own = subject.sid == caller.sid;
    let mut notes = Vec::new();
    let assigned = match &subject.name {
        Some(named) => groups(named).unwrap_or_else(|error| {
            // A group has no groups to ask for, and domain groups may be out of reach.
            notes.push(format!("rights through groups may be missing here: {error}"));
            Vec::new()
        }),
        None => Vec::new(),
    };
    let mut sids = vec![subject.sid.clone()];
    let logon = own.then(|| Logon {
        sids: [&[caller.sid][..], &caller.groups].concat(),
        filtered: caller.elevation == Elevation::Filtered,
        privilege: holds_privilege(rights::PROFILE_PRIVILEGE).ok(),
    });
    match &logon {
        Some(logon) => {
            sids.extend(caller.groups);
            sids.extend(
                assigned
                    .into_iter()
                    .filter(|sid| !logon.sids.contains(sid) && !caller.held_back.contains(sid)),
            );
        }
        None => sids.extend(assigned),
    }
    let mut seen = std::collections::BTreeSet::new();
    sids.retain(|sid| seen.insert(sid.clone()));
    let mut states = access::permissions(&LocalMachine, &sids);
    if let Ok(record) = LocalMachine.record() {
        for sid in sids.iter().filter(|sid| access::granted_less(&record, sid)) {
            notes.push(format!(
                "an older etwprof granted {sid} fewer rights than this version needs; `etwprof grant {sid}` adds them"
            ));
        }
    }
    if logon.as_ref().is_some_and(|logon| logon.privilege == Some(true)) {
        // Only administrators may ask for what is assigned, but what a logon holds is there.
        let unknown = |need: &access::Need, state: &State| {
            matches!((need.right, state), (access::Right::Privilege { .. }, State::Unknown(_)))
        };
        for (_, state) in states.iter_mut().filter(|(need, state)| unknown(need, state)) {
            *state = State::Has { by: vec![subject.sid.clone()] };
        }
    }
    print::permissions(&subject, &states, logon.as_ref(), &notes, args.json)
}

/// Why a live session could not be started.
pub(in crate::cli) fn explained(error: &SessionError) -> anyhow::Error {
    anyhow!("cannot record: {}", cause(error))
}

/// Why it failed, with a cure: of a refusal, the missing right and the command that gives it.
pub(in crate::cli) fn cause(error: &SessionError) -> String {
    let denied = match error {
        SessionError::Call { step, code } => access::missing_right(refused(*step), *code)
            .map(|right| format!("cannot {step}: {}", denied(&right, *code))),
        _ => None,
    };
    denied.unwrap_or_else(|| live::with_cure(error))
}

fn denied(right: &str, code: u32) -> String {
    let account = own().ok().and_then(|me| me.name.map(|name| name.to_string()));
    let account = account.as_deref().unwrap_or("this account");
    if caller().is_ok_and(|caller| caller.elevation == Elevation::Filtered) {
        return format!(
            "this program lacks {right} (error {code:#x}). {account} is an administrator, but this console is not \
             elevated. Open one with \"Run as administrator\" and repeat the command there. {}",
            print::FILTERED
        );
    }
    format!(
        "{account} lacks {right} (error {code:#x}). An administrator can grant it once, in an elevated console, with \
         `etwprof grant \"{account}\"`, which also updates a grant by an older etwprof; then log off and on again. \
         `etwprof permissions` shows the result. Or run this command as administrator"
    )
}

fn refused(step: Step) -> Refused {
    match step {
        Step::Read => Refused::Consume,
        Step::EnableProvider => Refused::DotNetEvents,
        Step::TraceStacks => Refused::Stacks,
        Step::EnableKernel => Refused::KernelEvents,
        Step::EnablePrivilege | Step::ReadInterval | Step::SetInterval => Refused::Privilege,
        _ => Refused::Session,
    }
}

fn subject(text: &str) -> Result<Subject> {
    let sid = account(text).map_err(|error| with_cure(&error))?;
    with_name(sid)
}

fn own() -> Result<Subject> {
    with_name(caller().map_err(|error| with_cure(&error))?.sid)
}

fn with_name(sid: Sid) -> Result<Subject> {
    let name = name(&sid).map_err(|error| with_cure(&error))?;
    Ok(Subject { sid, name })
}

fn with_cure(error: &CallError) -> anyhow::Error {
    anyhow!("{error}\n  cure: {}", cures::of_call(error))
}
