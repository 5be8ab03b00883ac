//! A machine in memory, whose calls can fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::guid::Guid;

use super::{Account, Ace, Acl, CallError, Machine, Object, Record, SecurityDescriptor, Sid};

/// The state of the machine without what is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct World {
    pub(super) stored: BTreeMap<Guid, Vec<u8>>,
    pub(super) privileges: BTreeMap<Sid, Vec<String>>,
    pub(super) members: Vec<Sid>,
}

#[derive(Debug, Default)]
pub(super) struct Fake {
    pub(super) world: World,
    pub(super) record: Record,
    pub(super) log: RefCell<Vec<String>>,
    /// The calls from this one on (counted from 0, as many as `failures`) fail with the code.
    pub(super) fails_at: Option<usize>,
    pub(super) failures: usize,
    pub(super) code: u32,
    /// A failing call has its effect all the same.
    pub(super) half: bool,
    pub(super) calls: Cell<usize>,
    /// EventAccessControl widens an entry that the account has, and adds one only where there is none.
    pub(super) widens: bool,
}

/// Windows' default, as it is said to be installed.
pub(super) fn default_descriptor() -> SecurityDescriptor {
    let system: Sid = "S-1-5-18".parse().unwrap();
    let allow = |who: &str, rights| Ace::allow(&who.parse().unwrap(), rights);
    SecurityDescriptor {
        control: 0x8004,
        owner: Some(system.clone()),
        group: Some(system),
        sacl: None,
        dacl: Some(Acl {
            revision: 2,
            aces: vec![
                allow("S-1-1-0", 0x1800),
                allow("S-1-5-18", 0x120fff),
                allow("S-1-5-32-544", 0x120fff),
                allow("S-1-5-19", 0x120fff),
                allow("S-1-5-20", 0x120fff),
                allow("S-1-5-32-559", 0xee5),
            ],
        }),
    }
}

impl Fake {
    fn call(&self, call: &'static str, object: impl ToString) -> Result<(), CallError> {
        let (number, object) = (self.calls.get(), object.to_string());
        self.calls.set(number + 1);
        let fails = self.fails_at.is_some_and(|first| (first..first + self.failures).contains(&number));
        self.log.borrow_mut().push(format!("{call} {object}{}", if fails { " fails" } else { "" }));
        if fails { Err(CallError { call, object, code: self.code }) } else { Ok(()) }
    }

    /// True if the call must do what it says.
    fn acts(&self, result: &Result<(), CallError>) -> bool {
        result.is_ok() || self.half
    }
}

impl Machine for Fake {
    fn stored(&self, guid: Guid) -> Result<Option<Vec<u8>>, CallError> {
        self.call("RegQueryValueExW", guid)?;
        Ok(self.world.stored.get(&guid).cloned())
    }

    fn applied(&self, guid: Guid) -> Result<Vec<u8>, CallError> {
        self.call("EventAccessQuery", guid)?;
        Ok(self.world.stored.get(&guid).cloned().unwrap_or_else(|| default_descriptor().to_bytes()))
    }

    fn allow(&mut self, guid: Guid, sid: &Sid, rights: u32) -> Result<(), CallError> {
        let result = self.call("EventAccessControl", format!("{guid} {sid} {rights:#x}"));
        if self.acts(&result) {
            let stored = self.world.stored.get(&guid).map(|bytes| SecurityDescriptor::read(bytes).unwrap());
            let mut descriptor = stored.unwrap_or_else(default_descriptor);
            let aces = &mut descriptor.dacl.as_mut().unwrap().aces;
            let had = |ace: &Ace| ace.subject().is_some_and(|(_, whose)| whose == *sid && ace.kind == 0);
            match aces.iter_mut().find(|ace| self.widens && had(ace)) {
                Some(ace) => *ace = Ace::allow(sid, ace.subject().unwrap().0 | rights),
                None => aces.push(Ace::allow(sid, rights)),
            }
            self.world.stored.insert(guid, descriptor.to_bytes());
        }
        result
    }

    fn store(&mut self, guid: Guid, descriptor: Option<&[u8]>) -> Result<(), CallError> {
        let result =
            self.call(if descriptor.is_some() { "RegSetValueExW" } else { "EventAccessRemove" }, guid);
        if self.acts(&result) {
            match descriptor {
                Some(bytes) => drop(self.world.stored.insert(guid, bytes.to_vec())),
                None => drop(self.world.stored.remove(&guid)),
            }
        }
        result
    }

    fn privileges(&self, sid: &Sid) -> Result<Vec<String>, CallError> {
        self.call("LsaEnumerateAccountRights", sid)?;
        Ok(self.world.privileges.get(sid).cloned().unwrap_or_default())
    }

    fn add_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError> {
        let result = self.call("LsaAddAccountRights", format!("{sid} {name}"));
        if self.acts(&result) {
            self.world.privileges.entry(sid.clone()).or_default().push(name.to_owned());
        }
        result
    }

    fn remove_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError> {
        let result = self.call("LsaRemoveAccountRights", format!("{sid} {name}"));
        if self.acts(&result) {
            let names = self.world.privileges.entry(sid.clone()).or_default();
            names.retain(|has| has != name);
            if names.is_empty() {
                self.world.privileges.remove(sid);
            }
        }
        result
    }

    fn is_member(&self, sid: &Sid) -> Result<bool, CallError> {
        self.call("NetLocalGroupGetMembers", sid)?;
        Ok(self.world.members.contains(sid))
    }

    fn join(&mut self, sid: &Sid) -> Result<(), CallError> {
        let result = self.call("NetLocalGroupAddMembers", sid);
        if self.acts(&result) {
            self.world.members.push(sid.clone());
        }
        result
    }

    fn leave(&mut self, sid: &Sid) -> Result<(), CallError> {
        let result = self.call("NetLocalGroupDelMembers", sid);
        if self.acts(&result) {
            self.world.members.retain(|member| member != sid);
        }
        result
    }

    fn record(&self) -> Result<Record, CallError> {
        self.call("RegOpenKeyExW", "record")?;
        Ok(self.record.clone())
    }

    fn remember_object(&mut self, guid: Guid, object: Option<&Object>) -> Result<(), CallError> {
        let result = self.call(if object.is_some() { "RegCreateKeyExW" } else { "RegDeleteTreeW" }, guid);
        if self.acts(&result) {
            match object {
                Some(object) => drop(self.record.objects.insert(guid, object.clone())),
                None => drop(self.record.objects.remove(&guid)),
            }
        }
        result
    }

    fn remember_account(&mut self, sid: &Sid, account: Option<&Account>) -> Result<(), CallError> {
        let result = self.call(if account.is_some() { "RegCreateKeyExW" } else { "RegDeleteTreeW" }, sid);
        if self.acts(&result) {
            match account {
                Some(account) => drop(self.record.accounts.insert(sid.clone(), account.clone())),
                None => drop(self.record.accounts.remove(sid)),
            }
        }
        result
    }
}
