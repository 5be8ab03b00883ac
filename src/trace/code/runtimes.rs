//! The runtimes of each process, and whether it told what it had.

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::events::clr::{self, Sku};
use crate::trace::processes::{ProcessId, Processes};

/// A .NET runtime in a process. There may be two, a .NET Framework and a .NET one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its number in its process.
    pub instance: u16,
    /// Its line.
    pub sku: Sku,
    /// Its version: major, minor, build, revision.
    pub version: [u16; 4],
    /// Its file.
    pub path: String,
    /// It started while the session ran.
    pub started: bool,
}

/// How often a process listed its methods and modules, mostly when the session ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rundown {
    /// Lists begun. The runtimes of .NET Framework 2.0 to 3.5 do not tell it.
    pub begun: u32,
    /// Lists completed.
    pub completed: u32,
}

impl Rundown {
    /// A list was begun.
    pub fn has_begun(self) -> bool {
        self.begun > 0 || self.completed > 0
    }

    /// Every list that was begun was completed.
    pub fn is_complete(self) -> bool {
        self.completed > 0 && self.completed >= self.begun
    }
}

/// What runtimes and engines say of their process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its runtimes.
    pub runtimes: Vec<Runtime>,
    /// Its rundown.
    pub rundown: Rundown,
    /// Bodies of .NET methods that are known of it.
    pub methods: usize,
    /// Bodies of functions of scripts.
    pub functions: usize,
}

impl Host {
    /// True if all of its methods were told when they were compiled: its runtimes started while the session ran.
    pub fn was_seen_from_its_start(&self) -> bool {
        self.methods > 0 && !self.runtimes.is_empty() && self.runtimes.iter().all(|runtime| runtime.started)
    }

    /// True if a .NET runtime told of itself; scripts have other engines.
    pub fn is_clr(&self) -> bool {
        !self.runtimes.is_empty() || self.rundown.has_begun() || self.methods > 0
    }
}

/// Collects what runtimes say of their processes.
#[derive(Debug, Default)]
pub(super) struct Hosts(Vec<(u32, Ticks, Fact)>);

#[derive(Debug)]
enum Fact {
    Runtime(Runtime),
    RundownBegins,
    RundownIsComplete,
}

impl Hosts {
    pub(super) fn runtime(&mut self, pid: u32, time: Ticks, runtime: &clr::Runtime<'_>) {
        let clr::Runtime { started, instance, sku, version, path, .. } = *runtime;
        let runtime = Runtime { instance, sku, version, path: path.to_string(), started };
        self.0.push((pid, time, Fact::Runtime(runtime)));
    }

    pub(super) fn rundown_begins(&mut self, pid: u32, time: Ticks) {
        self.0.push((pid, time, Fact::RundownBegins));
    }

    pub(super) fn rundown_is_complete(&mut self, pid: u32, time: Ticks) {
        self.0.push((pid, time, Fact::RundownIsComplete));
    }

    pub(super) fn finish(self, processes: &mut Processes) -> FxHashMap<ProcessId, Host> {
        let mut hosts: FxHashMap<ProcessId, Host> = FxHashMap::default();
        for (pid, time, fact) in self.0 {
            let host = hosts.entry(processes.at(pid, time)).or_default();
            match fact {
                Fact::Runtime(runtime) => {
                    if !host.runtimes.iter().any(|known| known.instance == runtime.instance) {
                        host.runtimes.push(runtime);
                    }
                }
                Fact::RundownBegins => host.rundown.begun += 1,
                Fact::RundownIsComplete => host.rundown.completed += 1,
            }
        }
        hosts
    }
}
