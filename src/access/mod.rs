//! The one-time grant: profiling without being an administrator.
//!
//! ETW keeps, for sessions and providers alike, a security descriptor under a GUID. Where none is stored, a default
//! applies, which lets administrators, services and the group Performance Log Users control sessions, and none but
//! administrators the kernel's events. An account that is none of these can profile if it has
//!
//! - on the GUIDs of our two sessions ([`guids`](crate::guids)): the rights to start, set up, query, read and stop a
//!   session;
//! - on the kernel's provider and the .NET runtime's: the right to switch events on;
//! - the privilege [`PROFILE_PRIVILEGE`](rights::PROFILE_PRIVILEGE), without which the kernel takes no samples.
//!
//! [`rights`] has the list with the reason for each. Sources: the documentation of EventAccessControl and of
//! "Configuring and Starting a SystemTraceProvider Session", and Geoff Chappell's study of what TraceSetInformation asks
//! for.
//!
//! What to do is decided here on every system, against the calls of a [`Machine`]; only the calls need Windows
//! (`windows`). [`grant()`] remembers what it found and reads back what it wrote; [`revoke()`] takes exactly that back.

mod denied;
mod descriptor;
mod grant;
mod machine;
pub mod rights;
mod sid;
mod status;
#[cfg(windows)]
pub mod windows;

#[cfg(test)]
mod fake;

pub use denied::{Refused, is_denied, missing_right};
pub use descriptor::{Ace, Acl, Difference, NotADescriptor, SecurityDescriptor};
pub use grant::{Cause, GrantError, Outcome, Prospect, Revoked, Taken, grant, preview, revoke};
pub use machine::{Account, CallError, CallFault, INVALID_DATA, Machine, NONE_MAPPED, Object, Record};
pub use rights::{Feature, Method, Need, Right};
pub use sid::{NotASid, Sid};
pub use status::{State, granted_less, permissions, works};
