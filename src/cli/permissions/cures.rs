//! What to do about a right that could not be given, taken back or looked at.

use etwprof::access::{CallError, CallFault, Cause};

pub(super) fn of_cause(cause: &Cause) -> &'static str {
    match cause {
        Cause::Call(error) => of_call(error),
        Cause::Broken { .. } => {
            "look at it with `reg query HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI\\Security`; without that value, \
             Windows' default applies"
        }
        Cause::Anybody(_) => {
            "name the user who profiles, or a group of such users: a grant lets them see the whole system"
        }
        Cause::Denied { .. } => {
            "find out why the right was denied before you remove that entry (docs/permissions.md shows how to view it)"
        }
        // `Differs` and `NoEffect`.
        _ => {
            "another program may be changing the same rights, or this Windows behaves differently; try again, and please \
             report it if it happens again"
        }
    }
}

pub(super) fn of_call(error: &CallError) -> &'static str {
    if error.is_denied() {
        return "run it as administrator: open a console with \"Run as administrator\" and repeat the command; if it \
                already is one, a policy of the machine or domain forbids this, so ask its administrator";
    }
    match error.fault() {
        Some(CallFault::InvalidData) => {
            "etwprof does not act on a damaged record: view it with `reg query HKLM\\SOFTWARE\\etwprof /s`, and find out \
             what changed it"
        }
        Some(CallFault::NoSuchAccount) => {
            "check the spelling; use MACHINE\\user, DOMAIN\\user, the name of a group or a SID, and make sure that the \
             domain can be reached"
        }
        Some(CallFault::NoSuchPrivilege) => {
            "this Windows does not know the privilege; etwprof needs Windows 8 or later"
        }
        Some(CallFault::InvalidParameter) => {
            "this Windows refuses the call; etwprof needs Windows 8 or later"
        }
        Some(CallFault::NoMember) => {
            "Windows does not allow a local group in a local group; grant without --via-group, or name a user"
        }
        Some(CallFault::NoSuchDomain) => {
            "the domain controller does not answer; try again when the domain can be reached"
        }
        _ => "try again; if it fails again, search for the error code",
    }
}
