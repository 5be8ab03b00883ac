//! Modules as the .NET runtime knows them, and JavaScript sources: what a method belongs to.
//!
//! The runtime names a module by an address of its own, so another process, or the same one later, may use the number
//! for another module. Precompiled images are also mapped as images ([`Mappings`](crate::trace::Mappings)); here is
//! which IL they come from.

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::events::clr::{ModuleFlags, Phase};
use crate::trace::images::PdbId;
use crate::trace::paths::file_name;
use crate::trace::processes::ProcessId;

/// A module of a runtime: an index into the modules of [`Code`](super::Code).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagedModuleId(pub u32);

/// A module of a .NET runtime in a process, or a script of a JavaScript engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedModule {
    /// The process.
    pub process: ProcessId,
    /// The runtime's handle.
    pub id: u64,
    /// Which runtime of the process.
    pub instance: Option<u16>,
    /// What it is made of.
    pub flags: ModuleFlags,
    /// The file of its IL, or the script's URL; only a name where it has no file.
    pub path: String,
    /// The file of its NGEN code; empty where it has none.
    pub native_path: String,
    /// The PDB of its IL.
    pub managed_pdb: Option<PdbId>,
    /// The PDB of its precompiled code.
    pub native_pdb: Option<PdbId>,
    /// When it was loaded; `None` if before the recording.
    pub from: Option<Ticks>,
    /// When it was unloaded; `None` if not within the recording.
    pub until: Option<Ticks>,
    /// The handle of its assembly.
    pub(super) assembly: u64,
}

impl ManagedModule {
    /// The file's name without its ending: the module's name in frames.
    pub fn name(&self) -> &str {
        let name = file_name(&self.path);
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        // Assemblies without a file have dots in their names.
        let is_file = ["dll", "exe", "winmd", "netmodule"].iter().any(|e| ending.eq_ignore_ascii_case(e));
        if is_file && !stem.is_empty() { stem } else { name }
    }
}

/// What one event tells of a module.
#[derive(Debug)]
pub(super) struct ModuleRecord {
    pub(super) time: Ticks,
    pub(super) phase: Phase,
    /// `process` is not set yet, `from` and `until` never.
    pub(super) module: ManagedModule,
}

/// Modules by process and handle.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) all: Vec<ManagedModule>,
    /// The lives of each handle, in order of time.
    by_id: FxHashMap<(ProcessId, u64), Vec<u32>>,
}

impl Modules {
    /// Takes one record; records come in order of time.
    pub(super) fn record(&mut self, record: ModuleRecord) {
        let ModuleRecord { time, phase, module } = record;
        let lives = self.by_id.entry((module.process, module.id)).or_default();
        let latest = lives.last().and_then(|index| self.all.get_mut(*index as usize));
        let same_file = |known: &ManagedModule| {
            known.path.is_empty() || module.path.is_empty() || known.path == module.path
        };
        let mut from = match phase {
            Phase::Load => Some(time),
            Phase::Unload | Phase::RundownStart | Phase::RundownEnd => None,
        };
        match latest {
            Some(known) if known.until.is_none() && same_file(known) => {
                known.complete(module);
                if phase == Phase::Unload {
                    known.until = Some(time);
                }
                return;
            }
            // Told twice.
            Some(known) if phase == Phase::Unload && same_file(known) => return,
            Some(known) => {
                let end = *known.until.get_or_insert(time);
                from = from.or(Some(end));
            }
            None => {}
        }
        lives.push(self.all.len() as u32);
        let until = (phase == Phase::Unload).then_some(time);
        self.all.push(ManagedModule { from, until, ..module });
    }

    /// The module with this handle at `time`: the latest loaded by then, as methods outlive their module by moments.
    pub(super) fn at(&self, process: ProcessId, id: u64, time: Ticks) -> Option<ManagedModuleId> {
        let lives = self.by_id.get(&(process, id))?;
        let loaded = |index: &&u32| {
            self.all.get(**index as usize).is_some_and(|module| module.from.is_none_or(|from| from <= time))
        };
        let found = lives.iter().rev().find(loaded).or(lives.first())?;
        Some(ManagedModuleId(*found))
    }
}

impl ManagedModule {
    /// Takes what another record of the same module adds.
    fn complete(&mut self, other: ManagedModule) {
        if self.path.is_empty() {
            self.path = other.path;
        }
        if self.native_path.is_empty() {
            self.native_path = other.native_path;
        }
        self.managed_pdb = self.managed_pdb.take().or(other.managed_pdb);
        self.native_pdb = self.native_pdb.take().or(other.native_pdb);
        self.instance = self.instance.or(other.instance);
        self.flags.0 |= other.flags.0;
    }
}
