//! Modules as the .NET runtime knows them, and JavaScript sources: what a method belongs to.
//!
//! The runtime names a module by an address of its own, so another process, or the same one later, may use the number
//! for another module. Precompiled images are also mapped as images ([`Mappings`](crate::trace::Mappings)); here is
//! which IL they come from.

use rustc_hash::FxHashMap;

use crate::debug_id::DebugId;
use crate::event::Ticks;
use crate::events::clr::{ModuleFlags, Phase};
use crate::trace::images::PdbId;
use crate::trace::processes::ProcessId;
use crate::trace::texts::{TextId, Texts};
use crate::winpath::file_name;

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
    pub(super) id: u64,
    pub(super) assembly: u64,
    pub(super) instance: Option<u16>,
    pub(super) flags: ModuleFlags,
    pub(super) path: TextId,
    pub(super) native_path: TextId,
    pub(super) managed_pdb: Option<Pdb>,
    pub(super) native_pdb: Option<Pdb>,
}

/// What finds a PDB, its name being interned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pdb {
    pub(super) name: TextId,
    pub(super) id: DebugId,
}

impl Pdb {
    fn resolved(self, texts: &Texts) -> PdbId {
        PdbId { name: texts.get(self.name).to_owned(), id: self.id }
    }
}

/// Modules by process and handle.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) all: Vec<ManagedModule>,
    /// The lives of each handle, in order of time.
    by_id: FxHashMap<(ProcessId, u64), Vec<u32>>,
}

impl Modules {
    /// Takes one record of a module with this path; records come in order of time.
    pub(super) fn record(&mut self, process: ProcessId, record: &ModuleRecord, path: &str, texts: &Texts) {
        let ModuleRecord { time, phase, .. } = *record;
        let lives = self.by_id.entry((process, record.id)).or_default();
        let latest = lives.last().and_then(|index| self.all.get_mut(*index as usize));
        let same_file =
            |known: &ManagedModule| known.path.is_empty() || path.is_empty() || known.path == path;
        let mut from = match phase {
            Phase::Load => Some(time),
            Phase::Unload | Phase::RundownStart | Phase::RundownEnd => None,
        };
        match latest {
            Some(known) if known.until.is_none() && same_file(known) => {
                known.complete(record, path, texts);
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
        let mut module = ManagedModule {
            process,
            id: record.id,
            instance: None,
            flags: ModuleFlags::default(),
            path: String::new(),
            native_path: String::new(),
            managed_pdb: None,
            native_pdb: None,
            from,
            until: (phase == Phase::Unload).then_some(time),
        };
        module.complete(record, path, texts);
        self.all.push(module);
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
    /// Takes what a record of it adds.
    fn complete(&mut self, record: &ModuleRecord, path: &str, texts: &Texts) {
        if self.path.is_empty() {
            self.path = path.to_owned();
        }
        if self.native_path.is_empty() {
            self.native_path = texts.get(record.native_path).to_owned();
        }
        let pdb = |pdb: Option<Pdb>| pdb.map(|pdb| pdb.resolved(texts));
        self.managed_pdb = self.managed_pdb.take().or_else(|| pdb(record.managed_pdb));
        self.native_pdb = self.native_pdb.take().or_else(|| pdb(record.native_pdb));
        self.instance = self.instance.or(record.instance);
        self.flags.0 |= record.flags.0;
    }
}
