//! Which right is missing when Windows refuses to start or feed a live session.

use super::rights::{PROFILE_PRIVILEGE, bits, names};

/// The step of a live session that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Starting, querying, flushing or stopping one of our sessions.
    Session,
    /// Asking for stacks in our kernel session.
    Stacks,
    /// Switching kernel events on.
    KernelEvents,
    /// Switching a .NET provider on.
    DotNetEvents,
    /// Reading a session's events while it runs.
    Consume,
    /// Enabling the privilege, sampling, setting the interval.
    Privilege,
}

/// STATUS_PRIVILEGE_NOT_HELD.
const PRIVILEGE_NOT_HELD: u32 = 0xc000_0061;

/// True for the codes with which Windows says that the account may not (Win32, HRESULT and NTSTATUS forms of
/// "access denied", "not all privileges assigned" and "privilege not held").
pub fn is_denied(code: u32) -> bool {
    let win32 = if code >> 16 == 0x8007 { code & 0xffff } else { code };
    matches!(win32, 5 | 1300 | 1314 | 0xc000_0022 | PRIVILEGE_NOT_HELD)
}

/// The right that is missing, when `code` says that the account may not do it; `None` for any other code.
pub fn missing_right(refused: Refused, code: u32) -> Option<String> {
    if !is_denied(code) {
        return None;
    }
    Some(match refused {
        // Without the privilege Windows refuses the call itself, whatever was refused.
        _ if matches!(code & 0xffff, 1300 | 1314) || code == PRIVILEGE_NOT_HELD => privilege(),
        Refused::Privilege => privilege(),
        Refused::Session => {
            names(bits::QUERY | bits::CREATE_REALTIME | bits::GUID_ENABLE) + " on etwprof's sessions"
        }
        Refused::Stacks => names(bits::GUID_ENABLE) + " on etwprof's kernel session",
        Refused::Consume => names(bits::ACCESS_REALTIME) + " on etwprof's sessions",
        Refused::KernelEvents => {
            names(bits::GUID_ENABLE) + " on the kernel's events or on etwprof's kernel session"
        }
        Refused::DotNetEvents => names(bits::GUID_ENABLE) + " on the .NET runtime's providers",
    })
}

fn privilege() -> String {
    format!("the privilege {PROFILE_PRIVILEGE} (\"Profile system performance\")")
}

#[cfg(test)]
mod tests {
    use super::{Refused, missing_right};

    #[test]
    fn names_the_right_that_is_missing() {
        let right = |refused, code| missing_right(refused, code).unwrap();
        assert_eq!(right(Refused::Consume, 5), "TRACELOG_ACCESS_REALTIME on etwprof's sessions");
        assert_eq!(
            right(Refused::Session, 0x8007_0005),
            "WMIGUID_QUERY | TRACELOG_CREATE_REALTIME | TRACELOG_GUID_ENABLE on etwprof's sessions"
        );
        assert_eq!(right(Refused::Stacks, 5), "TRACELOG_GUID_ENABLE on etwprof's kernel session");
        for code in [0x8007_0522, 1300, 0xc000_0061] {
            assert!(right(Refused::KernelEvents, code).contains("SeSystemProfilePrivilege"), "{code:#x}");
        }
        assert_eq!(missing_right(Refused::Session, 87), None);
    }
}
