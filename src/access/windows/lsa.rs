//! Privileges of accounts: the local security policy.

use std::ptr;

use windows_sys::Win32::Security::Authentication::Identity::{
    LSA_HANDLE, LSA_OBJECT_ATTRIBUTES, LSA_UNICODE_STRING, LsaAddAccountRights, LsaClose,
    LsaEnumerateAccountRights, LsaFreeMemory, LsaOpenPolicy, LsaRemoveAccountRights, POLICY_CREATE_ACCOUNT,
    POLICY_LOOKUP_NAMES, POLICY_VIEW_LOCAL_INFORMATION,
};
use windows_sys::Win32::Security::PSID;

use crate::access::{CallError, Sid};

use super::{failed, narrow};

/// STATUS_OBJECT_NAME_NOT_FOUND: no rights are assigned to the account.
const NO_RIGHTS: u32 = 0xc000_0034;

/// The open policy.
pub(super) struct Policy(LSA_HANDLE);

impl Policy {
    /// To look at rights.
    pub(super) const READ: u32 = (POLICY_LOOKUP_NAMES | POLICY_VIEW_LOCAL_INFORMATION) as u32;
    /// To change them; an account without any rights is created in the policy.
    pub(super) const WRITE: u32 = Policy::READ | POLICY_CREATE_ACCOUNT as u32;

    pub(super) fn open(access: u32) -> Result<Policy, CallError> {
        let attributes = LSA_OBJECT_ATTRIBUTES::default();
        let mut handle = 0;
        // SAFETY: a null name is this machine; the attributes and the handle live through the call.
        let status = unsafe { LsaOpenPolicy(ptr::null(), &attributes, access, &mut handle) };
        if status == 0 {
            Ok(Policy(handle))
        } else {
            Err(failed("LsaOpenPolicy", "this machine", status as u32))
        }
    }

    pub(super) fn rights(&self, sid: &Sid) -> Result<Vec<String>, CallError> {
        let (mut rights, mut count) = (ptr::null_mut(), 0);
        // SAFETY: the handle is open; the SID is whole; both results live through the call.
        let status = unsafe { LsaEnumerateAccountRights(self.0, raw(sid), &mut rights, &mut count) };
        match status as u32 {
            0 => {}
            NO_RIGHTS => return Ok(Vec::new()),
            status => return Err(failed("LsaEnumerateAccountRights", sid, status)),
        }
        let names = (0..count as usize).map(|place| {
            // SAFETY: the call gave `count` strings at `rights`, each with its length in bytes.
            unsafe {
                let right = &*rights.add(place);
                narrow(right.Buffer, usize::from(right.Length) / 2)
            }
        });
        let names = names.collect();
        // SAFETY: the memory is LSA's, from the call above, and not used after this.
        unsafe { LsaFreeMemory(rights.cast()) };
        Ok(names)
    }

    pub(super) fn add(&self, sid: &Sid, name: &str) -> Result<(), CallError> {
        // SAFETY: the handle is open, the SID is whole, and the one string lives through the call.
        let status = with(name, |right| unsafe { LsaAddAccountRights(self.0, raw(sid), right, 1) });
        if status == 0 { Ok(()) } else { Err(failed("LsaAddAccountRights", sid, status as u32)) }
    }

    pub(super) fn remove(&self, sid: &Sid, name: &str) -> Result<(), CallError> {
        // SAFETY: as above; `false` takes back no other rights.
        let status = with(name, |right| unsafe { LsaRemoveAccountRights(self.0, raw(sid), false, right, 1) });
        match status as u32 {
            0 | NO_RIGHTS => Ok(()),
            status => Err(failed("LsaRemoveAccountRights", sid, status)),
        }
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and open, and this is its last use.
        unsafe { LsaClose(self.0) };
    }
}

pub(super) fn raw(sid: &Sid) -> PSID {
    sid.bytes().as_ptr().cast_mut().cast()
}

fn with(text: &str, call: impl FnOnce(&LSA_UNICODE_STRING) -> i32) -> i32 {
    let mut units: Vec<u16> = text.encode_utf16().collect();
    let bytes = (units.len() * 2) as u16;
    call(&LSA_UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: units.as_mut_ptr() })
}
