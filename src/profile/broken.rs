//! Which stacks are broken: those whose outermost frame is no start of a thread, and why the walk ended there.
//!
//! A stack is walked by Windows when its sample is taken, and no later step can complete it. Windows can walk stacks since
//! Vista, and since Vista every thread of a program starts in ntdll.dll, every thread of the kernel in the kernel's own
//! image. PerfView goes by the same rule (`TraceEventStacks.cs`, the frame `BROKEN`). There are two differences:
//!
//! - Nothing is said where the starts are not known: of a process that maps no ntdll.dll, as programs of Linux in WSL, of
//!   recordings without events of images, and of kernel code in an image that the recording does not list.
//! - A 32-bit program on a 64-bit system has two stacks, and its own ends in the ntdll.dll of 32 bits. Where it has run,
//!   which is seen by a frame of wow64cpu.dll, and the outermost frame is in the ntdll.dll of 64 bits, its own stack is lost.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::event::Pointer;
use crate::trace::{Module, Place, ProcessId, Trace};

use crate::prefix_tree::NodeId;

use super::frame::Remark;
use super::stack::Site;
use super::{Profile, Sample};

/// What an image is to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Threads of the kernel start here.
    Kernel,
    /// Threads of programs start here.
    Ntdll,
    /// Threads of 32-bit programs on a 64-bit system start here.
    Ntdll32,
    /// Runs the code of 32-bit programs on a 64-bit system.
    Wow64Cpu,
    /// Just code.
    Other,
    /// No image, or none that is known.
    None,
}

impl Role {
    fn of(module: &Module) -> Role {
        let path = module.path.to_ascii_lowercase();
        let mut parts = path.rsplit(['\\', '/']);
        let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match name {
            // One file under four names: for one processor or several, with 36-bit addresses or without.
            "ntoskrnl.exe" | "ntkrnlmp.exe" | "ntkrnlpa.exe" | "ntkrpamp.exe" => Role::Kernel,
            "ntdll.dll" if matches!(folder, "syswow64" | "sysarm32" | "sychpe32") => Role::Ntdll32,
            "ntdll.dll" => Role::Ntdll,
            "wow64cpu.dll" => Role::Wow64Cpu,
            _ => Role::Other,
        }
    }
}

/// Where the threads of a trace start.
pub(super) struct ThreadStarts {
    /// By the module.
    roles: Vec<Role>,
    /// The processes whose ntdll.dll is known.
    with_ntdll: FxHashSet<ProcessId>,
    /// The 32-bit programs on a 64-bit system. Windows 7 says of no process that it is one.
    wow64: FxHashSet<ProcessId>,
    kernel_is_known: bool,
}

impl ThreadStarts {
    pub(super) fn new(trace: &Trace) -> ThreadStarts {
        let roles: Vec<Role> = trace.modules.iter().map(Role::of).collect();
        let (mut with_ntdll, mut wow64) = (FxHashSet::default(), FxHashSet::default());
        for mapping in trace.mappings.iter() {
            match roles.get(mapping.module.0 as usize) {
                Some(Role::Ntdll) => {
                    with_ntdll.insert(mapping.process);
                }
                Some(Role::Ntdll32) => {
                    with_ntdll.insert(mapping.process);
                    wow64.insert(mapping.process);
                }
                Some(Role::Wow64Cpu) => {
                    wow64.insert(mapping.process);
                }
                _ => {}
            }
        }
        let kernel_is_known = roles.contains(&Role::Kernel);
        ThreadStarts { roles, with_ntdll, wow64, kernel_is_known }
    }

    /// True if a stack of `process` with these sites, the leaf first, ends before the start of its thread.
    pub(super) fn are_missed<'s>(
        &self,
        trace: &Trace,
        process: ProcessId,
        mut sites: impl DoubleEndedIterator<Item = &'s Site>,
    ) -> bool {
        let Some(root) = sites.next_back().map(|site| self.role(site)) else { return false };
        match trace.is_kernel_only(process) {
            // All code of the kernel is in images: what is in none is in one that was not listed.
            true => self.kernel_is_known && !matches!(root, Role::Kernel | Role::None),
            false if !self.with_ntdll.contains(&process) => false,
            false => match root {
                Role::Ntdll32 => false,
                Role::Ntdll => sites.any(|site| self.role(site) == Role::Wow64Cpu),
                _ => true,
            },
        }
    }

    fn role(&self, site: &Site) -> Role {
        let Site::Code(Place::Image { module, .. }) = site else { return Role::None };
        self.roles.get(module.0 as usize).copied().unwrap_or(Role::Other)
    }
}

/// Why the walk of a broken stack ended, as far as the recording shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Break {
    /// The stack is deeper than Windows walks.
    TooDeep,
    /// Before Windows 8, Windows does not walk through code that was compiled at run time on a 64-bit system.
    JitBeforeWindows8,
    /// Before Windows 8, Windows often fails to walk the stacks of 32-bit programs on a 64-bit system.
    Wow64BeforeWindows8,
    /// 32-bit stacks are walked by frame pointers, which this code uses for something else.
    NoFramePointer,
    /// Generated code of which Windows does not know how to leave it.
    GeneratedCode,
    /// A thread of the kernel: mostly unwind data of drivers that was not in memory.
    Kernel,
    /// Other code: mostly a page of the stack, or unwind data, that was not in memory.
    Native,
}

/// The build of Windows 8.
const WINDOWS_8: u32 = 9200;

/// The frames that Windows walks at most; some versions walk a few more.
const DEEPEST: usize = 192;

impl Break {
    /// The cause in words.
    pub fn text(self) -> &'static str {
        match self {
            Break::TooDeep => "they are deeper than Windows walks",
            Break::JitBeforeWindows8 => "before Windows 8, stacks end at code that was compiled at run time",
            Break::Wow64BeforeWindows8 => {
                "before Windows 8, many stacks of 32-bit programs on 64-bit systems are incomplete"
            }
            Break::NoFramePointer => "32-bit code without frame pointers",
            Break::GeneratedCode => "generated code without unwind data",
            Break::Kernel => "unwind data of drivers was not in memory",
            Break::Native => "parts of the stack or unwind data were not in memory",
        }
    }
}

impl Profile {
    /// Why stacks of its samples are broken: samples by the cause.
    pub fn breaks(&self) -> BTreeMap<Break, u64> {
        let starts = ThreadStarts::new(&self.trace);
        let mut breaks = BTreeMap::default();
        let is_broken = |sample: &&Sample| self.stacks.has(sample.stack, Remark::Broken);
        let mut causes: FxHashMap<(ProcessId, NodeId), Break> = FxHashMap::default();
        for sample in self.samples.iter().filter(is_broken) {
            let key = (self.runner(sample).process, sample.stack);
            let cause = *causes.entry(key).or_insert_with(|| self.cause(sample, &starts));
            *breaks.entry(cause).or_default() += sample.count();
        }
        breaks
    }

    fn cause(&self, sample: &Sample, starts: &ThreadStarts) -> Break {
        let trace = &*self.trace;
        let process = self.runner(sample).process;
        let is_old = trace.machine.os_build < WINDOWS_8;
        let (mut depth, mut root) = (0, None);
        for site in self.stacks.sites(sample.stack) {
            if let Site::Code(place) = site {
                (depth, root) = (depth + 1, Some(place));
            }
        }
        if depth >= DEEPEST {
            Break::TooDeep
        } else if trace.is_kernel_only(process) {
            Break::Kernel
        } else if starts.wow64.contains(&process) {
            if is_old { Break::Wow64BeforeWindows8 } else { Break::NoFramePointer }
        } else if trace.machine.pointer == Pointer::Bits32 {
            Break::NoFramePointer
        } else if !matches!(root, Some(Place::Image { .. })) {
            if is_old { Break::JitBeforeWindows8 } else { Break::GeneratedCode }
        } else {
            Break::Native
        }
    }
}
