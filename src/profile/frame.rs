//! One line of a stack.

use serde::Serialize;

use crate::symbols::Function;
use crate::trace::{ModuleId, file_name};

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

/// How frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Inlined functions are frames of their own.
    pub inlined: bool,
    /// Functions are followed by their source file and line.
    pub lines: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Naming { inlined: true, lines: false }
    }
}

impl Naming {
    /// `module!function`, `module!~function` for one that is only the nearest name, and the source line if wanted.
    pub(super) fn text(self, module: &str, function: &Function) -> String {
        let near = if function.approximate { "~" } else { "" };
        let mut text = format!("{module}!{near}{}", function.name);
        if self.lines
            && let (Some(file), Some(line)) = (&function.file, function.line)
        {
            text += &format!(" ({}:{line})", file_name(file));
        }
        text
    }
}
