//! What to say when Windows refuses to start or feed a live session.

use super::rights::{PROFILE_PRIVILEGE, bits};

/// The step of a live session that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Starting, querying or stopping one of our sessions.
    Session,
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

/// The cause and the cure, when `code` says that `account` may not do it: the right that is missing and the command
/// that grants it. `None` for any other code.
pub fn denied(refused: Refused, code: u32, account: &str) -> Option<String> {
    if !is_denied(code) {
        return None;
    }
    let right = match refused {
        // Without the privilege Windows refuses the call itself, whatever was refused.
        _ if matches!(code & 0xffff, 1300 | 1314) || code == PRIVILEGE_NOT_HELD => privilege(),
        Refused::Privilege => privilege(),
        Refused::Session => {
            super::rights::names(bits::QUERY | bits::CREATE_REALTIME) + " on etwprof's sessions"
        }
        Refused::Consume => super::rights::names(bits::ACCESS_REALTIME) + " on etwprof's sessions",
        Refused::KernelEvents => super::rights::names(bits::GUID_ENABLE) + " on the kernel's events",
        Refused::DotNetEvents => super::rights::names(bits::GUID_ENABLE) + " on the .NET runtime's providers",
    };
    Some(format!(
        "{account} lacks {right} (error {code:#x}). An administrator gives it once, in an elevated console, with \
         `etwprof grant \"{account}\"`; then log off and on again. `etwprof permissions` shows what is there. Or run \
         this command itself as administrator"
    ))
}

fn privilege() -> String {
    format!("the privilege {PROFILE_PRIVILEGE} (\"Profile system performance\")")
}

#[cfg(test)]
mod tests {
    use super::{Refused, denied};

    #[test]
    fn names_the_right_and_the_command() {
        let text = denied(Refused::Consume, 5, "PC\\jo").unwrap();
        assert!(
            text.contains("TRACELOG_ACCESS_REALTIME") && text.contains("`etwprof grant \"PC\\jo\"`"),
            "{text}"
        );
        let text = denied(Refused::Session, 0x8007_0005, "PC\\jo").unwrap();
        assert!(text.contains("TRACELOG_CREATE_REALTIME"), "{text}");
        let text = denied(Refused::KernelEvents, 0x8007_0522, "PC\\jo").unwrap();
        assert!(text.contains("SeSystemProfilePrivilege") && text.contains("log off"), "{text}");
        let text = denied(Refused::Session, 0xc000_0061, "PC\\jo").unwrap();
        assert!(text.contains("SeSystemProfilePrivilege"), "{text}");
        assert_eq!(denied(Refused::Session, 87, "PC\\jo"), None);
    }
}
