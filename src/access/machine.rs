//! What the machine can be asked and told, and what is remembered on it.

use std::collections::BTreeMap;
use std::fmt;

use crate::guid::Guid;

use super::Sid;

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed for {object}: {}", Reason(*.code))]
pub struct CallError {
    /// The function of Windows.
    pub call: &'static str,
    /// What it was called for: a GUID, an account, a registry key.
    pub object: String,
    /// A Win32 error code, or an NTSTATUS (those have the top two bits set).
    pub code: u32,
}

/// ERROR_NONE_MAPPED: no such account.
pub const NONE_MAPPED: u32 = 1332;
/// ERROR_INVALID_DATA: what is remembered is not what etwprof writes.
pub const INVALID_DATA: u32 = 13;

impl CallError {
    /// True if the account that runs etwprof may not do it.
    pub fn is_denied(&self) -> bool {
        super::is_denied(self.code)
    }

    /// What the code means, where it is one of those that are known here.
    pub fn fault(&self) -> Option<CallFault> {
        fault(self.code)
    }
}

/// Why a system call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CallFault {
    /// It is not there.
    #[error("not found")]
    NotFound,
    /// The account that runs etwprof may not do it.
    #[error("access denied")]
    Denied,
    /// What is remembered is not what etwprof writes.
    #[error("the data is invalid")]
    InvalidData,
    /// This Windows refuses a parameter.
    #[error("invalid parameter")]
    InvalidParameter,
    /// This Windows does not know the privilege.
    #[error("no such privilege")]
    NoSuchPrivilege,
    /// The account that runs etwprof lacks a privilege.
    #[error("a privilege is missing")]
    PrivilegeMissing,
    /// There is no such account.
    #[error("no such account")]
    NoSuchAccount,
    /// There is no such domain, or its controller does not answer.
    #[error("no such domain, or not in reach")]
    NoSuchDomain,
    /// An account of this kind cannot be in a local group.
    #[error("an account of this kind cannot be a member")]
    NoMember,
    /// There is no such user.
    #[error("no such user")]
    NoSuchUser,
}

fn fault(code: u32) -> Option<CallFault> {
    Some(match code {
        2 => CallFault::NotFound,
        5 | 0x8007_0005 | 0xc000_0022 => CallFault::Denied,
        INVALID_DATA => CallFault::InvalidData,
        87 | 0xc000_000d => CallFault::InvalidParameter,
        1313 | 0xc000_0060 => CallFault::NoSuchPrivilege,
        1314 | 0xc000_0061 => CallFault::PrivilegeMissing,
        NONE_MAPPED | 0xc000_0073 => CallFault::NoSuchAccount,
        1355 => CallFault::NoSuchDomain,
        1388 => CallFault::NoMember,
        2221 => CallFault::NoSuchUser,
        _ => return None,
    })
}

/// A code with its meaning.
struct Reason(u32);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (fault(self.0), self.0) {
            (Some(fault), code @ 0x8000_0000..) => write!(f, "{fault} ({code:#x})"),
            (Some(fault), code) => write!(f, "{fault} ({code})"),
            (None, code @ 0xc000_0000..) => write!(f, "status {code:#x}"),
            (None, code) => write!(f, "{}", std::io::Error::from_raw_os_error(code as i32)),
        }
    }
}

/// What was found at an ETW object before our first entry, and the entries that are ours now.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Object {
    /// The stored descriptor, byte for byte; `None` if there was none and Windows' default applied.
    pub stored: Option<Vec<u8>>,
    /// The descriptor that applied.
    pub applied: Vec<u8>,
    /// Whom we allowed which rights.
    ///
    /// One account may be in it twice: an older version gave less, and what was given since is a second entry.
    pub ours: Vec<(Sid, u32)>,
}

impl Object {
    /// The rights that all entries of ours allow this account.
    pub fn ours_of(&self, sid: &Sid) -> u32 {
        let of_it = self.ours.iter().filter(|(whose, _)| whose == sid);
        of_it.fold(0, |all, (_, rights)| all | rights)
    }
}

/// What we gave an account beside entries at ETW objects.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Account {
    /// Privileges.
    pub privileges: Vec<String>,
    /// Membership of Performance Log Users.
    pub group: bool,
}

/// What is remembered on the machine. What was there before us is not in it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// ETW objects with entries of ours.
    pub objects: BTreeMap<Guid, Object>,
    /// Accounts.
    pub accounts: BTreeMap<Sid, Account>,
}

/// The calls that grants are made of. Each either does all of what it says or nothing.
///
/// A trait, so that what is decided here is tested on every system, with every call failing in turn.
pub trait Machine {
    /// The descriptor that is stored for an ETW object, if there is one.
    fn stored(&self, guid: Guid) -> Result<Option<Vec<u8>>, CallError>;
    /// The descriptor that applies to an ETW object: the stored one, or the default.
    fn applied(&self, guid: Guid) -> Result<Vec<u8>, CallError>;
    /// Adds an entry that allows these rights to an ETW object's descriptor.
    fn allow(&mut self, guid: Guid, sid: &Sid, rights: u32) -> Result<(), CallError>;
    /// Stores this descriptor for an ETW object, or none.
    fn store(&mut self, guid: Guid, descriptor: Option<&[u8]>) -> Result<(), CallError>;
    /// The privileges and logon rights that are assigned to exactly this account.
    fn privileges(&self, sid: &Sid) -> Result<Vec<String>, CallError>;
    /// Assigns a privilege.
    fn add_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError>;
    /// Takes a privilege back.
    fn remove_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError>;
    /// True if the account itself is a member of Performance Log Users.
    fn is_member(&self, sid: &Sid) -> Result<bool, CallError>;
    /// Makes it one.
    fn join(&mut self, sid: &Sid) -> Result<(), CallError>;
    /// Makes it none.
    fn leave(&mut self, sid: &Sid) -> Result<(), CallError>;
    /// What is remembered.
    fn record(&self) -> Result<Record, CallError>;
    /// Remembers this about an ETW object, or forgets it.
    fn remember_object(&mut self, guid: Guid, object: Option<&Object>) -> Result<(), CallError>;
    /// Remembers this about an account, or forgets it.
    fn remember_account(&mut self, sid: &Sid, account: Option<&Account>) -> Result<(), CallError>;
}
