//! The GUIDs that a live session and the rights for it must agree on.
//!
//! Windows keeps the rights to a session under the GUID that the session is started with. A session with a random
//! GUID falls under the rights for all sessions, so ours have fixed ones.

use crate::guid::Guid;

/// Our kernel session's.
pub const KERNEL_SESSION: Guid = Guid::from_u128(0xb3b8c5f6_61e0_4d0f_9c9e_2a4a7c1d5e10);

/// Our CLR session's.
pub const CLR_SESSION: Guid = Guid::from_u128(0xb3b8c5f6_61e0_4d0f_9c9e_2a4a7c1d5e11);

/// The kernel's own provider, under whose rights every kernel session's flags fall (`SystemTraceControlGuid` in
/// evntrace.h).
pub const SYSTEM_TRACE_CONTROL: Guid = Guid::from_u128(0x9e814aad_3204_11d2_9a82_006008a86939);

/// The .NET runtime's provider.
pub const CLR: Guid = Guid::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);

/// The .NET runtime's provider of what was loaded before.
pub const CLR_RUNDOWN: Guid = Guid::from_u128(0xa669021c_c450_4609_a035_5af59af4df18);
