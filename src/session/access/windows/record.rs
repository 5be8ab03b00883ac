//! What is remembered between grant and revoke: keys that an administrator can read with `reg query`.
//!
//! | below `HKLM\SOFTWARE\etwprof\Permissions` | |
//! |---|---|
//! | `Objects\GUID` `Granted` | lines `SID rights`, rights in hexadecimal |
//! | `Objects\GUID` `Applied` | the descriptor that applied before the first of them |
//! | `Objects\GUID` `Stored` | the descriptor that was stored then; missing if none was |
//! | `Accounts\SID` `Granted` | lines: privileges, and `Performance Log Users` |
//!
//! Whoever may write to HKLM\SOFTWARE, and so an administrator, may write here; that is who could set the descriptors
//! themselves.

use crate::guid::Guid;
use crate::session::access::{Account, CallError, Object, Record, Sid};

use super::registry::{Key, Value};

const OBJECTS: &str = r"SOFTWARE\etwprof\Permissions\Objects";
const ACCOUNTS: &str = r"SOFTWARE\etwprof\Permissions\Accounts";
/// All of ours; it goes with the last that is in it.
const TOP: &str = r"SOFTWARE\etwprof";
const GROUP: &str = "Performance Log Users";

pub(super) fn read() -> Result<Record, CallError> {
    let mut record = Record::default();
    for name in children(OBJECTS)? {
        let Some(guid) = guid(&name) else { continue };
        let Some(key) = Key::open(&format!("{OBJECTS}\\{name}"))? else { continue };
        // `Granted` is written last: without it nothing was done.
        let Some(granted) = key.value("Granted")? else { continue };
        let entry = |line: String| {
            let (sid, rights) = line.split_once(' ')?;
            Some((sid.parse().ok()?, u32::from_str_radix(rights.strip_prefix("0x")?, 16).ok()?))
        };
        let bytes = |name| Ok(key.value(name)?.map(|value| value.bytes));
        let object = Object {
            stored: bytes("Stored")?,
            applied: bytes("Applied")?.unwrap_or_default(),
            ours: granted.text().into_iter().filter_map(entry).collect(),
        };
        record.objects.insert(guid, object);
    }
    for name in children(ACCOUNTS)? {
        let (Ok(sid), Some(key)) = (name.parse::<Sid>(), Key::open(&format!("{ACCOUNTS}\\{name}"))?) else {
            continue;
        };
        let Some(granted) = key.value("Granted")? else { continue };
        let (group, privileges) = granted.text().into_iter().partition::<Vec<_>, _>(|line| line == GROUP);
        record.accounts.insert(sid, Account { privileges, group: !group.is_empty() });
    }
    Ok(record)
}

fn children(path: &str) -> Result<Vec<String>, CallError> {
    Key::open(path)?.map_or(Ok(Vec::new()), |key| key.keys())
}

fn guid(text: &str) -> Option<Guid> {
    let digits: String = text.split('-').collect();
    let value = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(Guid::from_u128(value))
}

pub(super) fn write_object(guid: Guid, object: Option<&Object>) -> Result<(), CallError> {
    let path = format!("{OBJECTS}\\{guid}");
    let Some(object) = object else { return Key::delete(&path, TOP) };
    let key = Key::create(&path)?;
    key.set("Applied", &Value::binary(&object.applied))?;
    if let Some(stored) = &object.stored {
        key.set("Stored", &Value::binary(stored))?;
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
