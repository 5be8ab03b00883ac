//! One line of a stack.

use crate::trace::ModuleId;

use super::category::Category;
use super::unresolved::Unresolved;

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
    /// Why it is an address and no function; `None` for functions and headings.
    pub unresolved: Option<Unresolved>,
}

impl Frame {
    /// A line over frames: a process, a thread, a remark.
    pub(super) fn heading(text: String) -> Frame {
        Frame { text, category: Category::Heading, module: None, inlined: false, unresolved: None }
    }
}
