//! What an account has, read back from the machine.

use super::{Cause, Feature, Machine, Method, Need, Record, Right, SecurityDescriptor, Sid};

/// What is known about one need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The account has it, as itself or as a member of these groups.
    Has {
        /// Through whom: the account's own SID, or a group's; nobody, if everything is allowed to everybody.
        by: Vec<Sid>,
    },
    /// It does not.
    Missing {
        /// The bits that are missing, of an ETW object.
        rights: u32,
    },
    /// It could not be read.
    Unknown(Cause),
}

/// What an account has of what profiling needs.
///
/// `sids` is all that the account is: itself, then its groups. An account's membership of groups that is not in
/// `sids` is not counted.
pub fn permissions(machine: &dyn Machine, sids: &[Sid]) -> Vec<(Need, State)> {
    Method::Each.needs().iter().map(|need| (*need, state(machine, sids, need.right))).collect()
}

fn state(machine: &dyn Machine, sids: &[Sid], right: Right) -> State {
    match right {
        Right::Trace { guid, rights, .. } => {
            let descriptor = machine.applied(guid).map_err(Cause::from).and_then(|bytes| {
                SecurityDescriptor::read(&bytes).map_err(|why| Cause::Broken { guid, why })
            });
            match descriptor.map(|descriptor| descriptor.access(sids, rights)) {
                Ok((has, by)) if has == rights => State::Has { by },
                Ok((has, _)) => State::Missing { rights: rights & !has },
                Err(cause) => State::Unknown(cause),
            }
        }
        Right::Privilege { name } => {
            let (mut by, mut unknown) = (Vec::new(), None);
            for sid in sids {
                match machine.privileges(sid) {
                    Ok(names) if names.iter().any(|has| has == name) => by.push(sid.clone()),
                    Ok(_) => {}
                    Err(error) => unknown = Some(error),
                }
            }
            match unknown {
                _ if !by.is_empty() => State::Has { by },
                Some(error) => State::Unknown(error.into()),
                None => State::Missing { rights: 0 },
            }
        }
        Right::Group => match sids.iter().find(|sid| **sid == Sid::performance_log_users()) {
            Some(group) => State::Has { by: vec![group.clone()] },
            None => State::Missing { rights: 0 },
        },
    }
}

/// True if an older version granted this account something, and less of it than is needed today. Another
/// [`grant`](super::grant()) completes it.
pub fn granted_less(record: &Record, sid: &Sid) -> bool {
    Method::Each.needs().iter().any(|need| match need.right {
        Right::Trace { guid, rights, .. } => {
            let ours = record.objects.get(&guid).map_or(0, |object| object.ours_of(sid));
            ours != 0 && ours & rights != rights
        }
        _ => false,
    })
}

/// Whether a feature works with these permissions; `None` if not all could be read.
pub fn works(permissions: &[(Need, State)], feature: Feature) -> Option<bool> {
    // .NET names stand beside samples, and are nothing without them.
    let needed = permissions.iter().filter(|(need, _)| need.feature <= feature);
    let states: Vec<&State> = needed.map(|(_, state)| state).collect();
    if states.iter().any(|state| matches!(state, State::Missing { .. })) {
        return Some(false);
    }
    states.iter().all(|state| matches!(state, State::Has { .. })).then_some(true)
}
