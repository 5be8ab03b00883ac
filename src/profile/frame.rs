//! One line of a stack.

use crate::symbols::Function;
use crate::trace::{ModuleId, file_name};

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
    /// Code of which no module is told.
    pub(super) fn code(text: String, category: Category) -> Frame {
        Frame { text, category, module: None, inlined: false, unresolved: None }
    }

    /// A line over frames: a process, a thread, a remark.
    pub(super) fn heading(text: String) -> Frame {
        Frame::code(text, Category::Heading)
    }
}

/// How frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Inlined functions are frames of their own.
    pub inlined: bool,
    /// Functions are followed by their source file and line.
    pub lines: bool,
    /// .NET methods are preceded by their tier: `module![Tier1]Type.Method`.
    pub tiers: bool,
    /// .NET methods are named as their runtime does, with their signature and as compiled.
    pub raw: bool,
    /// .NET methods have their parameters always, not only where two would read alike.
    pub parameters: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Naming { inlined: true, lines: false, tiers: false, raw: false, parameters: false }
    }
}

impl Naming {
    /// `module!function`, `module!~function` for one that is only the nearest name, and the source line if wanted.
    pub(super) fn text(self, module: &str, name: &str, function: &Function) -> String {
        let near = if function.approximate { "~" } else { "" };
        format!("{module}!{near}{name}{}", self.line(function.file.as_deref(), function.line))
    }

    /// ` (file:line)`, if wanted and known.
    pub(super) fn line(self, file: Option<&str>, line: Option<u32>) -> String {
        match (file, line) {
            (Some(file), Some(line)) if self.lines => format!(" ({}:{line})", file_name(file)),
            _ => String::new(),
        }
    }
}

/// Characters of a module's name in a frame: a file's name has no more. Each frame holds its own.
const LONGEST_NAME: usize = 255;

/// What a frame holds of a module's name.
pub(super) fn cut(name: &str) -> &str {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}
