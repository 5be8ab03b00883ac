//! What is known of one line of a stack.

use std::sync::Arc;

use crate::events::kernel::WaitReason;
use crate::symbols::{Certainty, Evidence, FunctionName};
use crate::trace::{ModuleId, ProcessId};

use super::category::Category;
use super::tier::Tier;
use super::unresolved::Unresolved;

/// A frame: an index into [`Stacks::frames`](super::Stacks::frames).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A function: an index into [`Stacks::functions`](super::Stacks::functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// A function in a module, or an address of which no function is known. Facts only: how they read is decided where they
/// are shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function; `None` where only the address is known.
    pub function: Option<FunctionId>,
    /// How the function was found; `None` without one.
    pub evidence: Option<Evidence>,
    /// How sure it is that the code is the function's.
    pub certainty: Certainty,
    /// How well its code was compiled, where that is known.
    pub tier: Option<Tier>,
    /// The image that the code is in.
    pub module: Option<ModuleId>,
    /// Of an unresolved frame its address: relative to the image, or absolute without one. 0 for others, because a
    /// function has many.
    pub address: u64,
    /// Where in its image the code is, if that is kept ([`Located::addresses`](super::Located::addresses)).
    pub instruction: Option<Instruction>,
    /// The source line.
    pub line: Option<Line>,
    /// How many functions it is inlined into; 0 for one with code of its own.
    pub inlined: u16,
    /// What kind of code it is.
    pub category: Category,
    /// Why it has no name; `None` for one that has.
    pub unresolved: Option<Unresolved>,
}

/// An instruction of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instruction {
    /// Its RVA; of a call that goes on behind it, that of the last byte before.
    pub rva: u32,
    /// The RVA where its function begins, or that part of it, where that is known.
    pub start: Option<u32>,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The file's path, as the symbols have it.
    pub file: Arc<str>,
    /// The line in it, from 1.
    pub line: u32,
}

/// A function. Its facts are the same in every trace and with every filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// The name of its module, without an ending: `ntdll`, `System.Private.CoreLib`; empty where none is known.
    pub module: Arc<str>,
    /// Its name.
    pub name: FunctionName,
}

/// What has to be said of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Remark {
    /// A deferred procedure call, on the back of the thread.
    Dpc,
    /// An interrupt service routine, on the back of the thread.
    Isr,
    /// The sample has no stack.
    NoStack,
    /// The part in user mode was lost.
    UserStackMissing,
    /// The stack does not reach the start of its thread.
    Broken,
    /// The stack did not, and its outer frames are those of other samples of its thread.
    Repaired,
    /// So many outer frames are left out, because the recording asked for too much.
    Cut(u32),
    /// The thread waited for something, for this reason where that is asked for and known.
    Blocked(Option<WaitReason>),
    /// The thread could run, and had no processor.
    Ready,
    /// What was allocated has this type: an index into [`Kept::types`](crate::trace::Kept::types).
    Allocated(u32),
}

impl Remark {
    /// As it is shown; of types only that they are one.
    pub fn text(self) -> &'static str {
        match self {
            Remark::Dpc => "[DPC]",
            Remark::Isr => "[ISR]",
            Remark::NoStack => "[no stack]",
            Remark::UserStackMissing => "[user stack missing]",
            Remark::Broken => "[broken stack]",
            Remark::Repaired => "[repaired stack]",
            Remark::Cut(_) => "[stack cut]",
            Remark::Ready => "[ready]",
            Remark::Allocated(_) => "[allocated]",
            Remark::Blocked(reason) => reason.map_or("[blocked]", WaitReason::bracketed),
        }
    }
}

/// A group: an index into [`Arranged::groups`](super::Arranged::groups).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Frames that are shown as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its name.
    pub name: Arc<str>,
    /// The entry by which it was entered, where that is shown: `NAME <<module!function>>`.
    pub entry: Option<Entry>,
    /// What kind of code it is, if it is of one.
    pub category: Category,
}

/// What a node of a profile's call tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Entry {
    /// A process.
    Process(ProcessId),
    /// A thread of a process, by the system's id.
    Thread(ProcessId, u32),
    /// A remark on the stacks below it.
    Remark(Remark),
    /// A frame; of several that read alike, the first.
    Frame(FrameId),
    /// Frames that are shown as one: an index into [`Arranged::groups`](super::Arranged::groups).
    Group(GroupId),
    /// The unresolved code of an image ([`Nameless::ByModule`](super::Nameless::ByModule)), by the first such frame.
    Unnamed(FrameId),
}

impl Entry {
    /// True for code, also for several frames that are shown as one.
    pub fn is_code(self) -> bool {
        matches!(self, Entry::Frame(_) | Entry::Unnamed(_) | Entry::Group(_))
    }

    /// Its frame, if it stands for code.
    pub fn frame(self) -> Option<FrameId> {
        match self {
            Entry::Frame(frame) | Entry::Unnamed(frame) => Some(frame),
            _ => None,
        }
    }
}
