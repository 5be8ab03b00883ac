//! What the commands say, as text and as JSON.

use std::fmt;
use std::io::{self, Write};

use anyhow::Result;
use etwprof::access::windows::{Named, name};
use etwprof::access::{
    Cause, Feature, GrantError, Need, Outcome, Prospect, Revoked, Right, Sid, State, Taken, rights, works,
};
use serde_json::{Value, json};

use super::cures;
use crate::cli::output;

/// Why a grant does not help an administrator whose programs are not elevated.
pub(super) const FILTERED: &str = "A grant does not help here: at each logon, User Account Control removes the \
                                   privilege from the programs that an administrator starts without elevation. Grants \
                                   are for standard users";

/// Whom it is about.
pub(super) struct Subject {
    pub(super) sid: Sid,
    pub(super) name: Option<Named>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.sid),
            None => write!(f, "{} (unknown account)", self.sid),
        }
    }
}

impl Subject {
    fn json(&self) -> Value {
        json!({ "sid": self.sid, "name": self.name.as_ref().map(Named::to_string) })
    }
}

fn write(
    json: bool,
    value: impl FnOnce() -> Value,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    output::print(|out| if json { writeln!(out, "{:#}", value()) } else { text(out) })
}

/// The fields that every right has in JSON.
fn right(right: Right) -> Value {
    match right {
        Right::Trace { guid, object, rights: bits } => json!({
            "kind": "trace", "guid": guid, "object": object, "rights": format!("{bits:#x}"), "names": rights::names(bits),
        }),
        Right::Privilege { name } => json!({ "kind": "privilege", "name": name }),
        Right::Group => json!({ "kind": "group", "sid": Sid::performance_log_users() }),
    }
}

pub(super) fn dry_run(subject: &Subject, steps: &[Prospect], json: bool) -> Result<()> {
    let value = || {
        let steps = steps.iter().map(|(need, outcome)| {
            json!({
                "right": right(need.right), "feature": need.feature, "why": need.why,
                "outcome": outcome.as_ref().ok(), "cause": outcome.as_ref().err().map(Cause::to_string),
            })
        });
        json!({ "account": subject.json(), "dry_run": true, "steps": steps.collect::<Vec<_>>() })
    };
    write(json, value, |out| {
        writeln!(out, "`etwprof grant` would grant to {subject}:\n")?;
        for (place, (need, outcome)) in steps.iter().enumerate() {
            writeln!(out, "{}. {}", place + 1, need.right)?;
            writeln!(out, "   why: {}", need.why)?;
            match outcome {
                Ok(Outcome::Given) => writeln!(out, "   not granted yet")?,
                Ok(Outcome::ByGroup) => writeln!(out, "   comes with the group")?,
                Ok(_) => writeln!(out, "   already there; stays as it is")?,
                Err(cause @ Cause::Denied { .. }) => writeln!(out, "   cannot be granted: {cause}")?,
                Err(cause) => writeln!(out, "   could not be determined: {cause}")?,
            }
        }
        writeln!(out, "\nNothing was changed. `etwprof revoke` takes back exactly these rights.")
    })
}

/// `filtered`: User Account Control takes the privilege from the account's ordinary programs.
pub(super) fn granted(
    subject: &Subject,
    outcomes: &[(Need, Outcome)],
    filtered: bool,
    json: bool,
) -> Result<()> {
    let given = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Given);
    let changed = given.clone().count();
    let logon = !filtered && given.clone().any(|(need, _)| !matches!(need.right, Right::Trace { .. }));
    let value = || {
        let steps = outcomes.iter().map(|(need, outcome)| {
            json!({ "right": right(need.right), "feature": need.feature, "why": need.why, "outcome": outcome })
        });
        json!({
            "account": subject.json(), "dry_run": false, "steps": steps.collect::<Vec<_>>(),
            "changed": changed != 0, "new_logon_needed": logon, "only_elevated": filtered,
        })
    };
    write(json, value, |out| {
        for (need, outcome) in outcomes {
            let outcome = match outcome {
                Outcome::Given => "granted",
                Outcome::AlreadyGranted => "granted before",
                Outcome::AlreadyThere => "already there, not from etwprof",
                Outcome::ByGroup => "comes with the group",
            };
            writeln!(out, "{outcome}: {}", need.right)?;
        }
        match changed {
            0 => writeln!(out, "\n{subject} already had every right; nothing was changed.")?,
            _ if filtered => writeln!(out, "\n`etwprof revoke {}` revokes this.", subject.sid)?,
            _ => writeln!(out, "\n{subject} can profile. `etwprof revoke {}` revokes this.", subject.sid)?,
        }
        if filtered {
            writeln!(
                out,
                "\n{subject} is an administrator and records from an elevated console. {FILTERED}."
            )?;
        }
        if logon {
            writeln!(
                out,
                "The account must log off and on again: privileges and groups take effect at the next logon."
            )?;
        }
        Ok(())
    })
}

pub(super) fn grant_failed(subject: &Subject, error: &GrantError) -> Result<()> {
    let value = || {
        let undone = error.undone.iter().map(|undone| json!({ "right": right(*undone) }));
        let left = error.left.iter().map(|(left, cause)| {
            json!({ "right": right(*left), "cause": cause.to_string(), "cure": cures::of_cause(cause) })
        });
        json!({
            "account": subject.json(), "dry_run": false, "changed": !error.left.is_empty(),
            "failed": {
                "right": right(error.failed.right), "cause": error.cause.to_string(), "cure": cures::of_cause(&error.cause),
            },
            "undone": undone.collect::<Vec<_>>(), "left": left.collect::<Vec<_>>(),
        })
    };
    write(true, value, |_| Ok(()))
}

pub(super) fn revoked(revoked: &Revoked, json: bool) -> Result<()> {
    let value = || {
        let taken = revoked
            .taken
            .iter()
            .map(|(sid, what, taken)| json!({ "sid": sid, "right": right(*what), "outcome": taken }));
        let left = revoked.left.iter().map(|(sid, what, cause)| {
            json!({ "sid": sid, "right": right(*what), "cause": cause.to_string(), "cure": cures::of_cause(cause) })
        });
        json!({ "taken": taken.collect::<Vec<_>>(), "left": left.collect::<Vec<_>>() })
    };
    write(json, value, |out| {
        for (sid, right, taken) in &revoked.taken {
            let outcome = match taken {
                Taken::AsFound => "revoked; everything is as it was before",
                Taken::Removed => "revoked; what others added stays",
                Taken::WasGone => "already gone",
            };
            writeln!(out, "{}: {outcome}: {right}", called(sid))?;
        }
        for (sid, right, cause) in &revoked.left {
            writeln!(out, "{}: NOT revoked: {right}: {cause}", called(sid))?;
        }
        if revoked.taken.is_empty() && revoked.left.is_empty() {
            writeln!(out, "etwprof has granted nothing here; nothing was changed.")?;
        }
        Ok(())
    })
}

/// Of rights to an ETW object these alone.
fn only(right: Right, rights: u32) -> Right {
    match right {
        Right::Trace { guid, object, .. } => Right::Trace { guid, object, rights },
        other => other,
    }
}

fn called(sid: &Sid) -> String {
    name(sid).ok().flatten().map_or_else(|| sid.to_string(), |named| named.to_string())
}

/// The logon that the program runs in.
pub(super) struct Logon {
    /// All that it counts as.
    pub(super) sids: Vec<Sid>,
    /// Whether it holds the privilege; `None` if that cannot be read.
    pub(super) privilege: Option<bool>,
    /// Whether User Account Control holds back what the account has as an administrator.
    pub(super) filtered: bool,
}

impl Logon {
    /// True if the account has this, but got it after this logon.
    fn lacks(&self, need: &Need, state: &State) -> bool {
        match (need.right, state) {
            // No logon brings it.
            (Right::Privilege { .. }, State::Has { .. }) if self.filtered => false,
            (Right::Privilege { .. }, State::Has { .. }) => self.privilege == Some(false),
            (_, State::Has { by }) => !by.iter().all(|sid| self.sids.contains(sid)),
            _ => false,
        }
    }
}

pub(super) fn permissions(
    subject: &Subject,
    states: &[(Need, State)],
    this: Option<&Logon>,
    notes: &[String],
    json: bool,
) -> Result<()> {
    let lacks = |(need, state): &(Need, State)| this.is_some_and(|logon| logon.lacks(need, state));
    let logon = states.iter().any(lacks);
    let filtered = this.is_some_and(|logon| logon.filtered && logon.privilege != Some(true));
    let value = || {
        let needs = states.iter().map(|(need, state)| {
            let (has, by, missing, unreadable) = match state {
                State::Has { by } => (Some(true), by.as_slice(), None, None),
                State::Missing { rights } => (Some(false), [].as_slice(), Some(rights::names(*rights)), None),
                State::Unknown(cause) => (None, [].as_slice(), None, Some(cause.to_string())),
            };
            json!({
                "right": right(need.right), "feature": need.feature, "why": need.why,
                "has": has, "by": by, "missing": missing, "unreadable": unreadable,
            })
        });
        let features =
            Feature::ALL.map(|feature| json!({ "feature": feature, "works": works(states, feature) }));
        json!({
            "account": subject.json(), "needs": needs.collect::<Vec<_>>(), "features": features,
            "privilege_in_token": this.and_then(|logon| logon.privilege), "new_logon_needed": logon, "only_elevated": filtered,
            "notes": notes,
        })
    };
    write(json, value, |out| {
        writeln!(out, "{subject}\n")?;
        for (need, state) in states {
            match state {
                State::Has { by } => {
                    let others: Vec<_> = by.iter().filter(|sid| **sid != subject.sid).map(called).collect();
                    let by =
                        if others.is_empty() { String::new() } else { format!(", by {}", others.join(", ")) };
                    writeln!(out, "has      {}{by}", need.right)?;
                }
                State::Missing { rights } => {
                    writeln!(out, "MISSING  {}\n         to {}", only(need.right, *rights), need.why)?
                }
                State::Unknown(cause) => {
                    writeln!(out, "unknown  {}\n         could not be read: {cause}", need.right)?
                }
            }
        }
        writeln!(out)?;
        let mut cures = (false, false);
        for feature in Feature::ALL {
            let answer = match works(states, feature) {
                _ if filtered => "only elevated",
                Some(true) if logon => "after a new logon",
                Some(true) => "yes",
                Some(false) => {
                    cures.0 = true;
                    "no"
                }
                None => {
                    cures.1 = true;
                    "unknown"
                }
            };
            writeln!(out, "{}: {answer}", feature.title())?;
        }
        if filtered {
            writeln!(
                out,
                "\nYou are an administrator, but this console is not elevated: record from one that is. {FILTERED}."
            )?;
        }
        if logon {
            let late: Vec<_> = states.iter().filter(|one| lacks(one)).map(|(need, _)| need.right).collect();
            writeln!(out, "\nGranted, but not in effect for this logon: log off and on again.")?;
            late.iter().try_for_each(|right| writeln!(out, "  {right}"))?;
        }
        if cures.0 {
            writeln!(
                out,
                "\nAn administrator can grant what is missing with `etwprof grant {}`.",
                subject.sid
            )?;
        }
        if cures.1 {
            writeln!(out, "\nOnly administrators can read all rights: repeat this in an elevated console.")?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
    })
}
