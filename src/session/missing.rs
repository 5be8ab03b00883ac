//! What a recording goes on without.

use super::error::SessionError;

/// A part that could not be had. The recording goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Events of the CLR, and with them names of .NET code. A CLR on x64 hands Windows the unwind data of the code that it
    /// compiles only while somebody receives these events, so stacks through such code may be cut as well.
    DotNet(SessionError),
    /// The CLR's lists of the code that was compiled before: its names.
    DotNetBefore(SessionError),
    /// The sampling interval could not be read or set. What is in force is then in `Started::interval`, or
    /// Windows' own where it is not known.
    Rate(SessionError),
    /// The sampling interval was not set, for another run of etwprof with this process id samples.
    RateOfAnother(u32),
}
