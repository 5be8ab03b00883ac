//! One line of a stack.

use serde::Serialize;

use crate::trace::ModuleId;

/// A frame of a [`Profile`](super::Profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A function in a module, an address, or a heading over frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What to show: `module!function`, `module!0xRVA` without a symbol, `0xADDRESS` without a module.
    pub text: String,
    /// What kind of code it is.
    pub category: Category,
    /// Its module.
    pub module: Option<ModuleId>,
    /// True for a function that was inlined into its caller.
    pub inlined: bool,
}

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// No code: a process, a thread, or a remark.
    Heading,
    /// The kernel and its drivers.
    Kernel,
    /// Compiled code in user mode.
    Native,
    /// .NET code.
    Managed,
    /// Code outside every known image.
    Unresolved,
}
