//! What is remembered between grant and revoke: keys that an administrator can read with `reg query`.
//!
//! | below `HKLM\SOFTWARE\etwprof\Permissions` | |
//! |---|---|
//! | `Objects\GUID` `Granted` | lines `SID rights`, rights in hexadecimal |
//! | `Objects\GUID` `Applied` | the descriptor that applied before the first of them |
//! | `Objects\GUID` `Stored` | the descriptor that was stored then; missing if none was |
//! | `Accounts\SID` `Granted` | lines: privileges, and `Performance Log Users` |
//!
//! The keys are made without a descriptor of their own and so inherit that of HKLM\SOFTWARE, where Windows lets
//! administrators and the system write, and users read: who can write here could set the descriptors themselves. All
//! the same nothing is done on a record that is not whole, and a revoke puts back only bytes that give the rights that
//! are there without us (see `grant`).

use crate::access::rights::{Method, PROFILE_PRIVILEGE, Right};
use crate::access::{Account, CallError, INVALID_DATA, Object, Record, SecurityDescriptor, Sid};
use crate::guid::Guid;

use super::failed;
use super::registry::{Key, Value};

const OBJECTS: &str = r"SOFTWARE\etwprof\Permissions\Objects";
const ACCOUNTS: &str = r"SOFTWARE\etwprof\Permissions\Accounts";
/// All of ours; it goes with the last that is in it.
const TOP: &str = r"SOFTWARE\etwprof";
const GROUP: &str = "Performance Log Users";

pub(super) fn read() -> Result<Record, CallError> {
    let mut record = Record::default();
    for name in children(OBJECTS)? {
        let path = format!("{OBJECTS}\\{name}");
        let Some(key) = Key::open(&path)? else { continue };
        // `Granted` is written last: without it nothing was done.
        let Some(granted) = key.value("Granted")? else { continue };
        let (stored, applied) = (key.value("Stored")?, key.value("Applied")?);
        let (guid, object) = object(&name, &granted, stored, applied).ok_or_else(|| damaged(&path))?;
        record.objects.insert(guid, object);
    }
    for name in children(ACCOUNTS)? {
        let path = format!("{ACCOUNTS}\\{name}");
        let Some(key) = Key::open(&path)? else { continue };
        let Some(granted) = key.value("Granted")? else { continue };
        let (sid, account) = account(&name, &granted).ok_or_else(|| damaged(&path))?;
        record.accounts.insert(sid, account);
    }
    Ok(record)
}

/// `None` if it is not what [`write_object`] writes.
fn object(
    name: &str,
    granted: &Value,
    stored: Option<Value>,
    applied: Option<Value>,
) -> Option<(Guid, Object)> {
    let entry = |line: String| {
        let (sid, rights) = line.split_once(' ')?;
        Some((sid.parse().ok()?, u32::from_str_radix(rights.strip_prefix("0x")?, 16).ok()?))
    };
    let ours = granted.text().into_iter().map(entry).collect::<Option<_>>()?;
    let object = Object { stored: stored.map(|value| value.bytes), applied: applied?.bytes, ours };
    let known = Method::Each.needs().iter().find_map(|need| match need.right {
        Right::Trace { guid, .. } if guid.to_string() == name => Some(guid),
        _ => None,
    });
    let descriptors = object.stored.iter().chain([&object.applied]);
    let whole = descriptors.into_iter().all(|bytes| SecurityDescriptor::read(bytes).is_ok());
    known.filter(|_| whole).map(|guid| (guid, object))
}

/// `None` if it is not what [`write_account`] writes.
fn account(name: &str, granted: &Value) -> Option<(Sid, Account)> {
    let (group, privileges) = granted.text().into_iter().partition::<Vec<_>, _>(|line| line == GROUP);
    let whole = privileges.iter().all(|name| name == PROFILE_PRIVILEGE);
    let account = Account { privileges, group: !group.is_empty() };
    name.parse().ok().filter(|_| whole).map(|sid| (sid, account))
}

fn damaged(path: &str) -> CallError {
    failed("reading what was granted", format!("HKLM\\{path}"), INVALID_DATA)
}

fn children(path: &str) -> Result<Vec<String>, CallError> {
    Key::open(path)?.map_or(Ok(Vec::new()), |key| key.keys())
}

pub(super) fn write_object(guid: Guid, object: Option<&Object>) -> Result<(), CallError> {
    let path = format!("{OBJECTS}\\{guid}");
    let Some(object) = object else { return Key::delete(&path, TOP) };
    let key = Key::create(&path)?;
    key.set("Applied", &Value::binary(&object.applied))?;
    match &object.stored {
        Some(stored) => key.set("Stored", &Value::binary(stored))?,
        // A record that was cut short may have left one.
        None => key.unset("Stored")?,
    }
    let lines = object.ours.iter().map(|(sid, rights)| format!("{sid} {rights:#x}"));
    key.set("Granted", &Value::lines(lines))
}

pub(super) fn write_account(sid: &Sid, account: Option<&Account>) -> Result<(), CallError> {
    let path = format!("{ACCOUNTS}\\{sid}");
    let Some(account) = account else { return Key::delete(&path, TOP) };
    let group = account.group.then(|| GROUP.to_owned());
    Key::create(&path)?.set("Granted", &Value::lines(account.privileges.iter().cloned().chain(group)))
}
