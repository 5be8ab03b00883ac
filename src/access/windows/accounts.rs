//! Accounts by name, by SID, and the one that runs this program.

use std::mem::offset_of;
use std::ptr;

use windows_sys::Win32::Foundation::{CloseHandle, GetLastError, HANDLE, LUID};
use windows_sys::Win32::NetworkManagement::NetManagement::{
    LG_INCLUDE_INDIRECT, LOCALGROUP_USERS_INFO_0, MAX_PREFERRED_LENGTH, NetApiBufferFree,
    NetUserGetLocalGroups,
};
use windows_sys::Win32::Security::{
    GetLengthSid, GetTokenInformation, IsValidSid, LUID_AND_ATTRIBUTES, LookupAccountNameW,
    LookupAccountSidW, LookupPrivilegeValueW, PSID, SID_AND_ATTRIBUTES, SidTypeDeletedAccount, SidTypeDomain,
    SidTypeInvalid, SidTypeLabel, SidTypeUnknown, TOKEN_GROUPS, TOKEN_INFORMATION_CLASS, TOKEN_PRIVILEGES,
    TOKEN_QUERY, TOKEN_USER, TokenElevationType, TokenElevationTypeFull, TokenElevationTypeLimited,
    TokenGroups, TokenPrivileges, TokenUser,
};
use windows_sys::Win32::System::SystemInformation::{ComputerNameNetBIOS, GetComputerNameExW};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::access::{CallError, NONE_MAPPED, Sid};

use super::etw::THIS_MACHINE;
use super::{failed, lsa, narrow, wide};

/// How an account is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The machine or domain that has it.
    pub domain: String,
    /// Its name there.
    pub name: String,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.domain.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}\\{}", self.domain, self.name)
        }
    }
}

/// The SID at a pointer.
///
/// # Safety
///
/// The pointer must be null, or point to a whole SID.
pub(super) unsafe fn sid(raw: PSID) -> Option<Sid> {
    // SAFETY: as the caller says; a SID of a wrong revision is not read.
    if raw.is_null() || unsafe { IsValidSid(raw) } == 0 {
        return None;
    }
    // SAFETY: a valid SID has as many bytes as the system says.
    Sid::read(unsafe { std::slice::from_raw_parts(raw.cast(), GetLengthSid(raw) as usize) })
}

/// The SID of an account, given as SID or as name: `DOMAIN\user`, `user`, `user@domain`, a group.
pub fn account(text: &str) -> Result<Sid, CallError> {
    if let Ok(sid) = text.parse() {
        return Ok(sid);
    }
    // This machine's accounts can be written with a dot, which the look-up does not know.
    let name = wide(&match text.strip_prefix(".\\") {
        Some(name) => format!("{}\\{name}", machine_name()?),
        None => text.to_owned(),
    });
    // 68 bytes are the longest SID; in units of 4, for its alignment.
    let mut found = [0u32; 17];
    let mut domain = vec![0u16; 512];
    let (mut size, mut room, mut kind) = (size_of_val(&found) as u32, domain.len() as u32, 0);
    // SAFETY: the name ends with 0; both buffers are as long as their sizes say; all live through the call.
    let done = unsafe {
        LookupAccountNameW(
            THIS_MACHINE,
            name.as_ptr(),
            found.as_mut_ptr().cast(),
            &mut size,
            domain.as_mut_ptr(),
            &mut room,
            &mut kind,
        )
    };
    if done == 0 {
        return Err(failed("LookupAccountNameW", text, last_error()));
    }
    // Of a machine and a user with one name the look-up finds the machine, which is no account.
    const NO_ACCOUNTS: [i32; 5] =
        [SidTypeDomain, SidTypeDeletedAccount, SidTypeInvalid, SidTypeUnknown, SidTypeLabel];
    if NO_ACCOUNTS.contains(&kind) {
        return Err(failed("LookupAccountNameW", text, NONE_MAPPED));
    }
    let bytes: Vec<u8> = found.iter().flat_map(|unit| unit.to_ne_bytes()).collect();
    Sid::read(&bytes).ok_or_else(|| failed("LookupAccountNameW", text, NONE_MAPPED))
}

fn machine_name() -> Result<String, CallError> {
    let (mut name, mut room) = ([0u16; 256], 256);
    // SAFETY: the buffer is as long as its size says; both live through the call.
    if unsafe { GetComputerNameExW(ComputerNameNetBIOS, name.as_mut_ptr(), &mut room) } == 0 {
        return Err(failed("GetComputerNameExW", "this machine", last_error()));
    }
    Ok(String::from_utf16_lossy(name.get(..room as usize).unwrap_or_default()))
}

/// The name of an account; `None` if nobody in reach knows it.
pub fn name(sid: &Sid) -> Result<Option<Named>, CallError> {
    let (mut name, mut domain) = (vec![0u16; 512], vec![0u16; 512]);
    let (mut name_room, mut domain_room, mut kind) = (name.len() as u32, domain.len() as u32, 0);
    // SAFETY: the SID is whole; both buffers are as long as their sizes say; all live through the call.
    let found = unsafe {
        LookupAccountSidW(
            THIS_MACHINE,
            lsa::raw(sid),
            name.as_mut_ptr(),
            &mut name_room,
            domain.as_mut_ptr(),
            &mut domain_room,
            &mut kind,
        )
    };
    match if found == 0 { last_error() } else { 0 } {
        0 => {
            name.truncate(name_room as usize);
            domain.truncate(domain_room as usize);
            let text = |units: Vec<u16>| String::from_utf16_lossy(&units);
            Ok(Some(Named { domain: text(domain), name: text(name) }))
        }
        NONE_MAPPED => Ok(None),
        code => Err(failed("LookupAccountSidW", sid, code)),
    }
}

/// The local groups that an account is in, also through domain groups, and those that everybody is in.
///
/// # Errors
///
/// If the account's own groups cannot be read.
pub fn groups(named: &Named) -> Result<Vec<Sid>, CallError> {
    let user = wide(&named.to_string());
    let (mut buffer, mut read, mut total) = (ptr::null_mut(), 0, 0);
    // SAFETY: the name ends with 0; all results live through the call; the buffer has no limit, so one call is all.
    let code = unsafe {
        NetUserGetLocalGroups(
            THIS_MACHINE,
            user.as_ptr(),
            0,
            LG_INCLUDE_INDIRECT,
            &mut buffer,
            MAX_PREFERRED_LENGTH,
            &mut read,
            &mut total,
        )
    };
    if code != 0 {
        return Err(failed("NetUserGetLocalGroups", named, code));
    }
    let entries = buffer.cast::<LOCALGROUP_USERS_INFO_0>();
    let names: Vec<String> = (0..read as usize)
        .map(|place| {
            // SAFETY: the call gave `read` names, each ended with 0.
            unsafe {
                let text = (*entries.add(place)).lgrui0_name.cast_const();
                narrow(text, (0..).take_while(|unit| *text.add(*unit) != 0).count())
            }
        })
        .collect();
    // SAFETY: the buffer is from the call above, and not used after this.
    unsafe { NetApiBufferFree(buffer.cast()) };
    let mut sids = vec![Sid::everyone(), Sid::authenticated_users()];
    for name in names {
        sids.push(account(&name)?);
    }
    Ok(sids)
}

/// The account that runs this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its SID.
    pub sid: Sid,
    /// The groups that give it rights in this logon.
    pub groups: Vec<Sid>,
    /// Groups that are in this logon only to be denied something: those of an administrator who is not elevated.
    pub held_back: Vec<Sid>,
    /// What User Account Control makes of the account.
    pub elevation: Elevation,
}

/// What User Account Control makes of an account (`TOKEN_ELEVATION_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elevation {
    /// Nothing: a standard user's, or User Account Control is off.
    None,
    /// An administrator's program that was started elevated. What is not has a filtered token.
    Elevated,
    /// An administrator's program that was not: the token lacks all privileges but a few harmless ones, whatever the
    /// account has.
    Filtered,
}

/// Who runs this program, by its token.
pub fn caller() -> Result<Caller, CallError> {
    let token = Token::open()?;
    let user = token.read(TokenUser)?;
    // SAFETY: the class gives a TOKEN_USER, whose SID lies in the same buffer.
    let me = unsafe { sid((*user.as_ptr().cast::<TOKEN_USER>()).User.Sid) };
    let me = me.ok_or_else(|| failed("GetTokenInformation", "the user", NONE_MAPPED))?;
    let groups = token.read(TokenGroups)?;
    const ENABLED: u32 = 4;
    // SAFETY: the class gives a TOKEN_GROUPS: a count and as many entries, whose SIDs lie in the same buffer.
    let groups: Vec<(Sid, u32)> = unsafe {
        let count = (*groups.as_ptr().cast::<TOKEN_GROUPS>()).GroupCount as usize;
        let first = groups.as_ptr().byte_add(offset_of!(TOKEN_GROUPS, Groups)).cast::<SID_AND_ATTRIBUTES>();
        let entries = (0..count).map(|place| &*first.add(place));
        entries.filter_map(|entry| Some((sid(entry.Sid)?, entry.Attributes))).collect()
    };
    let (enabled, held_back): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(_, attributes)| attributes & ENABLED != 0);
    let sids = |groups: Vec<(Sid, u32)>| groups.into_iter().map(|(sid, _)| sid).collect();
    let elevation = token.read(TokenElevationType)?;
    // SAFETY: the class gives a TOKEN_ELEVATION_TYPE, which is a plain integer of 4 bytes.
    let elevation = match unsafe { *elevation.as_ptr().cast::<i32>() } {
        kind if kind == TokenElevationTypeFull => Elevation::Elevated,
        kind if kind == TokenElevationTypeLimited => Elevation::Filtered,
        _ => Elevation::None,
    };
    Ok(Caller { sid: me, groups: sids(enabled), held_back: sids(held_back), elevation })
}

/// True if the token of this program holds the privilege: it was assigned before the logon.
pub fn holds_privilege(privilege: &str) -> Result<bool, CallError> {
    let (text, mut wanted) = (wide(privilege), LUID::default());
    // SAFETY: the name ends with 0, and the result lives through the call.
    if unsafe { LookupPrivilegeValueW(THIS_MACHINE, text.as_ptr(), &mut wanted) } == 0 {
        return Err(failed("LookupPrivilegeValueW", privilege, last_error()));
    }
    let held = Token::open()?.read(TokenPrivileges)?;
    // SAFETY: the class gives a TOKEN_PRIVILEGES: a count and as many entries.
    unsafe {
        let count = (*held.as_ptr().cast::<TOKEN_PRIVILEGES>()).PrivilegeCount as usize;
        let first =
            held.as_ptr().byte_add(offset_of!(TOKEN_PRIVILEGES, Privileges)).cast::<LUID_AND_ATTRIBUTES>();
        Ok((0..count).any(|place| {
            let luid = (*first.add(place)).Luid;
            (luid.LowPart, luid.HighPart) == (wanted.LowPart, wanted.HighPart)
        }))
    }
}

struct Token(HANDLE);

impl Token {
    fn open() -> Result<Token, CallError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the process handle is the pseudo handle of this process; the result lives through the call.
        let opened = unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut handle) };
        if opened == 0 {
            return Err(failed("OpenProcessToken", "this process", last_error()));
        }
        Ok(Token(handle))
    }

    /// In units of 8 bytes, for the alignment of what the buffer holds.
    fn read(&self, class: TOKEN_INFORMATION_CLASS) -> Result<Vec<u64>, CallError> {
        let mut buffer = vec![0u64; 512];
        loop {
            let (size, mut needed) = (buffer.len() as u32 * 8, 0);
            // SAFETY: the token is open; the buffer has `size` bytes; both live through the call.
            let read =
                unsafe { GetTokenInformation(self.0, class, buffer.as_mut_ptr().cast(), size, &mut needed) };
            if read != 0 {
                return Ok(buffer);
            }
            if needed <= size || needed > 1 << 20 {
                return Err(failed("GetTokenInformation", "this process", last_error()));
            }
            buffer.resize(needed as usize / 8 + 1, 0);
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and open, and this is its last use.
        unsafe { CloseHandle(self.0) };
    }
}

fn last_error() -> u32 {
    // SAFETY: reads a number of this thread.
    unsafe { GetLastError() }
}
