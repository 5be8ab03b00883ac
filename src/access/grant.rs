//! Giving rights and taking them back.
//!
//! Everything is remembered on the machine before it is given, so that a grant that was cut short can still be taken
//! back. Everything that was given is read back. What fails half-way is undone in reverse order; what cannot be
//! undone is named.

use std::collections::BTreeSet;

use crate::guid::Guid;

use super::machine::{Account, Object, Record};
use super::{CallError, Difference, Machine, Method, Need, NotADescriptor, Right, SecurityDescriptor, Sid};

/// Why a right could not be given or taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// A call of the system failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What Windows keeps for an ETW object cannot be read.
    #[error("the security descriptor of {guid} is invalid: {why}")]
    Broken {
        /// The object.
        guid: Guid,
        /// Why.
        why: NotADescriptor,
    },
    /// The account is everybody, or nobody in particular.
    #[error("{0} is not a specific account")]
    Anybody(Sid),
    /// An entry denies the account what is to be given.
    #[error("an entry for {whom} at {guid} denies it, and deny entries take precedence")]
    Denied {
        /// The object.
        guid: Guid,
        /// The account, or a group of everybody's.
        whom: Sid,
    },
    /// Reading back shows something else than was asked for.
    #[error("Windows accepted the entry for {guid}, but reading it back shows that {why}")]
    Differs {
        /// The object.
        guid: Guid,
        /// What.
        why: Difference,
    },
    /// Reading back shows no change.
    #[error("Windows reported success for {0}, but reading it back shows no change")]
    NoEffect(&'static str),
}

/// What became of one right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was given.
    Given,
    /// The account had it from an earlier grant.
    AlreadyGranted,
    /// The account had it, and not from us: a revoke will leave it.
    AlreadyThere,
    /// The account has it as a member of Performance Log Users.
    ByGroup,
}

/// A grant that failed, and the state that it left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot grant {}: {cause}", .failed.right)]
pub struct GrantError {
    /// What could not be given.
    pub failed: Need,
    /// Why.
    pub cause: Cause,
    /// What had been given by then and was taken back.
    pub undone: Vec<Right>,
    /// What could not be taken back, and why.
    pub left: Vec<(Right, Cause)>,
}

/// Gives `sid` the rights that profiling needs, each if it is not there yet. All or none, if the machine lets us.
///
/// # Errors
///
/// What failed, what was undone, and what could not be undone. SIDs that stand for [anybody](Sid::is_anybody) are
/// refused.
pub fn grant(
    machine: &mut dyn Machine,
    sid: &Sid,
    method: Method,
) -> Result<Vec<(Need, Outcome)>, Box<GrantError>> {
    let mut outcomes: Vec<(Need, Outcome)> = Vec::new();
    for need in method.needs() {
        let mut left = Vec::new();
        let given = chosen(sid).and_then(|()| give(machine, sid, method, need.right, &mut left));
        match given {
            Ok(outcome) => outcomes.push((*need, outcome)),
            Err(cause) => {
                let mut undone = Vec::new();
                let given = outcomes.iter().rev().filter(|(_, outcome)| *outcome == Outcome::Given);
                for (need, _) in given {
                    match take(machine, sid, need.right, Entries::Last) {
                        Ok(_) => undone.push(need.right),
                        Err(cause) => left.push((need.right, cause)),
                    }
                }
                return Err(Box::new(GrantError { failed: *need, cause, undone, left }));
            }
        }
    }
    Ok(outcomes)
}

/// What a grant would do about one need, or why it cannot tell.
pub type Prospect = (Need, Result<Outcome, Cause>);

/// What a [`grant`] would do about each need, in order, or why it cannot tell. Changes nothing.
///
/// # Errors
///
/// If the account is one that is not granted to at all.
pub fn preview(machine: &dyn Machine, sid: &Sid, method: Method) -> Result<Vec<Prospect>, Cause> {
    chosen(sid)?;
    let record = machine.record()?;
    let preview = |need: &Need| (*need, prospect(machine, &record, sid, method, need.right));
    Ok(method.needs().iter().map(preview).collect())
}

/// What is to become of one right.
fn prospect(
    machine: &dyn Machine,
    record: &Record,
    sid: &Sid,
    method: Method,
    right: Right,
) -> Result<Outcome, Cause> {
    if has(machine, sid, right)? {
        let ours = is_ours(record, sid, right);
        return Ok(if ours { Outcome::AlreadyGranted } else { Outcome::AlreadyThere });
    }
    if let (Method::Group, Right::Trace { guid, rights, .. }) = (method, right) {
        let member = [&all(sid)[..], &[Sid::performance_log_users()]].concat();
        if applied(machine, guid)?.access(&member, rights).0 == rights {
            return Ok(Outcome::ByGroup);
        }
    }
    Ok(Outcome::Given)
}

/// Rights that show the whole system are for accounts that somebody chose.
fn chosen(sid: &Sid) -> Result<(), Cause> {
    if sid.is_anybody() { Err(Cause::Anybody(sid.clone())) } else { Ok(()) }
}

/// What every account is, beside the groups that it is in.
fn all(sid: &Sid) -> [Sid; 3] {
    [sid.clone(), Sid::everyone(), Sid::authenticated_users()]
}

/// True if exactly this account has it.
fn has(machine: &dyn Machine, sid: &Sid, right: Right) -> Result<bool, Cause> {
    Ok(match right {
        Right::Trace { guid, rights, .. } => {
            let applied = applied(machine, guid)?;
            if let Some(whom) = applied.denied(&all(sid), rights) {
                return Err(Cause::Denied { guid, whom: whom.clone() });
            }
            applied.grants(sid, rights)
        }
        Right::Privilege { name } => machine.privileges(sid)?.iter().any(|has| has == name),
        Right::Group => machine.is_member(sid)?,
    })
}

fn applied(machine: &dyn Machine, guid: Guid) -> Result<SecurityDescriptor, Cause> {
    read(guid, &machine.applied(guid)?)
}

fn read(guid: Guid, bytes: &[u8]) -> Result<SecurityDescriptor, Cause> {
    SecurityDescriptor::read(bytes).map_err(|why| Cause::Broken { guid, why })
}

/// What there is before an entry of ours. A stored value that is no descriptor is not built on: what Windows makes of
/// it is not known.
fn found(machine: &dyn Machine, guid: Guid) -> Result<Object, Cause> {
    let stored = machine.stored(guid)?;
    stored.as_deref().map(|bytes| read(guid, bytes)).transpose()?;
    Ok(Object { stored, applied: machine.applied(guid)?, ours: Vec::new() })
}

/// Gives one right. What it could not undo after a failure is added to `left`.
fn give(
    machine: &mut dyn Machine,
    sid: &Sid,
    method: Method,
    right: Right,
    left: &mut Vec<(Right, Cause)>,
) -> Result<Outcome, Cause> {
    let record = machine.record()?;
    let prospect = prospect(machine, &record, sid, method, right)?;
    if prospect != Outcome::Given {
        return Ok(prospect);
    }
    let found = match right {
        Right::Trace { guid, .. } => Some(found(machine, guid)?),
        _ => None,
    };
    if let Err(error) = remember(machine, &record, sid, right, found.as_ref()) {
        // Nothing is given yet, but the record may name it.
        if let Err(error) = forget(machine, &record, sid, right) {
            left.push((right, error.into()));
        }
        return Err(error.into());
    }
    let given = (|| {
        match (right, &found) {
            (Right::Trace { guid, rights, .. }, Some(found)) => {
                let before = read(guid, &found.applied)?;
                machine.allow(guid, sid, rights)?;
                let after = applied(machine, guid)?;
                after.is_with(&before, sid, rights).map_err(|why| Cause::Differs { guid, why })?;
            }
            (Right::Privilege { name }, _) => machine.add_privilege(sid, name)?,
            _ => machine.join(sid)?,
        }
        match has(machine, sid, right)? {
            true => Ok(Outcome::Given),
            false => Err(Cause::NoEffect(calls(right).0)),
        }
    })();
    if given.is_err() {
        let stored = found.and_then(|found| found.stored);
        if let Err(cause) = put_back(machine, sid, right, stored.as_deref()) {
            // It stays remembered, so that a revoke can take it back.
            left.push((right, cause));
        } else if let Err(error) = forget(machine, &record, sid, right) {
            left.push((right, error.into()));
        }
    }
    given
}

/// The calls that give and take a right.
fn calls(right: Right) -> (&'static str, &'static str) {
    match right {
        Right::Trace { .. } => ("EventAccessControl", "EventAccessRemove"),
        Right::Privilege { .. } => ("LsaAddAccountRights", "LsaRemoveAccountRights"),
        Right::Group => ("NetLocalGroupAddMembers", "NetLocalGroupDelMembers"),
    }
}

/// Undoes a giving of which is not known how far it came.
fn put_back(machine: &mut dyn Machine, sid: &Sid, right: Right, stored: Option<&[u8]>) -> Result<(), Cause> {
    match right {
        Right::Trace { guid, .. } => restore(machine, guid, stored)?,
        _ if !has(machine, sid, right)? => {}
        Right::Privilege { name } => machine.remove_privilege(sid, name)?,
        Right::Group => machine.leave(sid)?,
    }
    Ok(())
}

/// Has Windows keep this descriptor for an object, byte for byte, or none.
fn restore(machine: &mut dyn Machine, guid: Guid, descriptor: Option<&[u8]>) -> Result<(), Cause> {
    if machine.stored(guid)?.as_deref() == descriptor {
        return Ok(());
    }
    machine.store(guid, descriptor)?;
    if machine.stored(guid)?.as_deref() == descriptor {
        Ok(())
    } else {
        Err(Cause::NoEffect(if descriptor.is_some() { "RegSetValueExW" } else { "EventAccessRemove" }))
    }
}

fn is_ours(record: &Record, sid: &Sid, right: Right) -> bool {
    match right {
        Right::Trace { guid, rights, .. } => {
            record.objects.get(&guid).is_some_and(|object| object.ours_of(sid) & rights == rights)
        }
        Right::Privilege { name } => {
            record.accounts.get(sid).is_some_and(|account| account.privileges.iter().any(|ours| ours == name))
        }
        Right::Group => record.accounts.get(sid).is_some_and(|account| account.group),
    }
}

fn remember(
    machine: &mut dyn Machine,
    record: &Record,
    sid: &Sid,
    right: Right,
    found: Option<&Object>,
) -> Result<(), CallError> {
    if is_ours(record, sid, right) {
        // Somebody else took it back since: what was there before us is known already.
        return Ok(());
    }
    let mut account = record.accounts.get(sid).cloned().unwrap_or_default();
    match right {
        Right::Trace { guid, rights, .. } => {
            let mut object = record.objects.get(&guid).or(found).cloned().unwrap_or_default();
            object.ours.push((sid.clone(), rights));
            return machine.remember_object(guid, Some(&object));
        }
        Right::Privilege { name } => account.privileges.push(name.to_owned()),
        Right::Group => account.group = true,
    }
    machine.remember_account(sid, Some(&account))
}

/// Makes the record what it was for this right.
fn forget(machine: &mut dyn Machine, record: &Record, sid: &Sid, right: Right) -> Result<(), CallError> {
    let forgotten = match right {
        Right::Trace { guid, .. } => machine.remember_object(guid, record.objects.get(&guid)),
        _ => machine.remember_account(sid, record.accounts.get(sid)),
    };
    // Whoever may not write had nothing written either.
    forgotten.or_else(|error| if machine.record()? == *record { Ok(()) } else { Err(error) })
}

/// What became of a right that was to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// Taken back, and everything is as it was found.
    AsFound,
    /// Taken back; others have changed the object since, or rights of other accounts are still in it, and that stays.
    Removed,
    /// Somebody else had taken it back.
    WasGone,
}

/// What a revoke did, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Revoked {
    /// What was taken back.
    pub taken: Vec<(Sid, Right, Taken)>,
    /// What could not be, and why. It stays remembered, and another revoke tries again.
    pub left: Vec<(Sid, Right, Cause)>,
}

/// Takes back what [`grant`] gave: to one account, or to all. Goes on after a failure.
///
/// # Errors
///
/// If what was given cannot be read from the machine's record.
pub fn revoke(machine: &mut dyn Machine, whose: Option<&Sid>) -> Result<Revoked, CallError> {
    let record = machine.record()?;
    let asked = |sid: &&Sid| whose.is_none_or(|whose| whose == *sid);
    let mut ours: Vec<(Sid, Right)> = Vec::new();
    for (guid, object) in &record.objects {
        let accounts: BTreeSet<&Sid> = object.ours.iter().map(|(sid, _)| sid).filter(asked).collect();
        ours.extend(accounts.into_iter().map(|sid| (sid.clone(), known(*guid, object.ours_of(sid)))));
    }
    for (sid, account) in record.accounts.iter().filter(|(sid, _)| asked(sid)) {
        let names = account.privileges.iter().filter(|name| *name == super::rights::PROFILE_PRIVILEGE);
        ours.extend(
            names.map(|_| (sid.clone(), Right::Privilege { name: super::rights::PROFILE_PRIVILEGE })),
        );
        ours.extend(account.group.then(|| (sid.clone(), Right::Group)));
    }
    // The last given first, one account after the other.
    ours.sort_by(|(a, left), (b, right)| a.cmp(b).then(place(right).cmp(&place(left))));

    let mut revoked = Revoked::default();
    for (sid, right) in ours {
        match take(machine, &sid, right, Entries::All) {
            Ok(taken) => revoked.taken.push((sid, right, taken)),
            Err(cause) => revoked.left.push((sid, right, cause)),
        }
    }
    Ok(revoked)
}

/// The right that entries of ours stand for. An older version may have given other bits than this one needs.
fn known(guid: Guid, rights: u32) -> Right {
    let object = Method::Each.needs().iter().find_map(|need| match need.right {
        Right::Trace { guid: known, object, .. } if known == guid => Some(object),
        _ => None,
    });
    Right::Trace { guid, object: object.unwrap_or("an ETW object"), rights }
}

/// The place of a right among what is given. It does not depend on the bits of a session.
fn place(right: &Right) -> Option<usize> {
    let same = |need: &Need| match (need.right, right) {
        (Right::Trace { guid: needed, .. }, Right::Trace { guid, .. }) => needed == *guid,
        (needed, right) => needed == *right,
    };
    Method::Each.needs().iter().position(same)
}

/// Which entries of ours for one account at one object.
#[derive(Clone, Copy)]
enum Entries {
    /// The one that was added last.
    Last,
    /// Also those that older versions added, which gave other bits.
    All,
}

/// Takes one right back that is ours.
fn take(machine: &mut dyn Machine, sid: &Sid, right: Right, entries: Entries) -> Result<Taken, Cause> {
    let record = machine.record()?;
    if let Right::Trace { guid, .. } = right {
        return take_entries(machine, &record, guid, sid, entries);
    }
    let mut account = record.accounts.get(sid).cloned().unwrap_or_default();
    let had = has(machine, sid, right)?;
    match right {
        Right::Privilege { name } => {
            if had {
                machine.remove_privilege(sid, name)?;
            }
            account.privileges.retain(|ours| ours != name);
        }
        _ => {
            if had {
                machine.leave(sid)?;
            }
            account.group = false;
        }
    }
    if had && has(machine, sid, right)? {
        return Err(Cause::NoEffect(calls(right).1));
    }
    machine.remember_account(sid, (account != Account::default()).then_some(&account))?;
    Ok(if had { Taken::AsFound } else { Taken::WasGone })
}

fn take_entries(
    machine: &mut dyn Machine,
    record: &Record,
    guid: Guid,
    sid: &Sid,
    entries: Entries,
) -> Result<Taken, Cause> {
    let Some(object) = record.objects.get(&guid) else { return Ok(Taken::WasGone) };
    let mut left = object.clone();
    let found = read(guid, &object.applied)?;
    let stored = machine.stored(guid)?;
    let mut wanted = match &stored {
        Some(bytes) => read(guid, bytes)?,
        None => applied(machine, guid)?,
    };
    let mut was_there = false;
    while let Some(place) = left.ours.iter().rposition(|(whose, _)| whose == sid) {
        let (_, rights) = left.ours.remove(place);
        // An older entry of ours that stays may be in one with this.
        let keep = found.allowed_to(sid) | left.ours_of(sid);
        if let Some(without) = wanted.without(sid, rights, keep) {
            (wanted, was_there) = (without, true);
        }
        if matches!(entries, Entries::Last) {
            break;
        }
    }

    // The remembered bytes are put back only if they give what is there without us: whoever could have changed the
    // record must not have us write other rights.
    let remembered = match &object.stored {
        Some(bytes) => read(guid, bytes)?.same_entries(&found),
        None => true,
    };
    let as_found = left.ours.is_empty() && wanted.same_entries(&found) && remembered;
    if as_found {
        restore(machine, guid, object.stored.as_deref())?;
    } else if was_there {
        restore(machine, guid, Some(&wanted.to_bytes()))?;
    }
    machine.remember_object(guid, (!left.ours.is_empty()).then_some(&left))?;
    Ok(match (was_there, as_found) {
        (false, _) => Taken::WasGone,
        (true, true) => Taken::AsFound,
        (true, false) => Taken::Removed,
    })
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
