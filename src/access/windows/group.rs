//! Membership of Performance Log Users.

use std::ptr;

use windows_sys::Win32::NetworkManagement::NetManagement::{
    LOCALGROUP_MEMBERS_INFO_0, MAX_PREFERRED_LENGTH, NetApiBufferFree, NetLocalGroupAddMembers,
    NetLocalGroupDelMembers, NetLocalGroupGetMembers,
};

use crate::access::{CallError, Sid};

use super::etw::THIS_MACHINE;
use super::{accounts, failed, lsa, wide};

const ALREADY_MEMBER: u32 = 1378;
const NOT_MEMBER: u32 = 1377;

/// The group's name in this machine's language, without its domain.
fn group() -> Result<Vec<u16>, CallError> {
    let sid = Sid::performance_log_users();
    let named = accounts::name(&sid)?.ok_or_else(|| failed("LookupAccountSidW", &sid, 1332))?;
    Ok(wide(&named.name))
}

pub(super) fn is_member(sid: &Sid) -> Result<bool, CallError> {
    let group = group()?;
    let (mut buffer, mut read, mut total, mut resume) = (ptr::null_mut(), 0, 0, 0);
    // SAFETY: the name ends with 0; all results live through the call; the buffer has no limit, so one call is all.
    let code = unsafe {
        NetLocalGroupGetMembers(
            THIS_MACHINE,
            group.as_ptr(),
            0,
            &mut buffer,
            MAX_PREFERRED_LENGTH,
            &mut read,
            &mut total,
            &mut resume,
        )
    };
    if code != 0 {
        return Err(failed("NetLocalGroupGetMembers", sid, code));
    }
    let members = buffer.cast::<LOCALGROUP_MEMBERS_INFO_0>();
    let found = (0..read as usize).any(|place| {
        // SAFETY: the call gave `read` members, each with a pointer to a whole SID.
        unsafe { accounts::sid((*members.add(place)).lgrmi0_sid) }.is_some_and(|member| member == *sid)
    });
    // SAFETY: the buffer is from the call above, and not used after this.
    unsafe { NetApiBufferFree(buffer.cast()) };
    Ok(found)
}

pub(super) fn join(sid: &Sid) -> Result<(), CallError> {
    let (group, member) = (group()?, LOCALGROUP_MEMBERS_INFO_0 { lgrmi0_sid: lsa::raw(sid) });
    // SAFETY: the name ends with 0, and the one member with its SID lives through the call.
    let code =
        unsafe { NetLocalGroupAddMembers(THIS_MACHINE, group.as_ptr(), 0, (&raw const member).cast(), 1) };
    if matches!(code, 0 | ALREADY_MEMBER) {
        Ok(())
    } else {
        Err(failed("NetLocalGroupAddMembers", sid, code))
    }
}

pub(super) fn leave(sid: &Sid) -> Result<(), CallError> {
    let (group, member) = (group()?, LOCALGROUP_MEMBERS_INFO_0 { lgrmi0_sid: lsa::raw(sid) });
    // SAFETY: as above.
    let code =
        unsafe { NetLocalGroupDelMembers(THIS_MACHINE, group.as_ptr(), 0, (&raw const member).cast(), 1) };
    if matches!(code, 0 | NOT_MEMBER) { Ok(()) } else { Err(failed("NetLocalGroupDelMembers", sid, code)) }
}
