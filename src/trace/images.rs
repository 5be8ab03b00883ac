//! Images as intervals in time: which file was mapped at an address of a process at a moment.
//!
//! The evidence is patchy. Rundown at either end lists images whose load nobody saw; loads lack their unload; an
//! unload may be all there is. Bases are used again by other files, and the creator of a process maps its executable
//! for a moment. So images are told apart by process, base and time.

use rustc_hash::FxHashMap;

use crate::event::{Pointer, Ticks};
use crate::events::kernel::{self, ImageId, Phase, is_kernel_address};
use crate::guid::Guid;

use super::paths::{Paths, file_name};
use super::processes::{ProcessId, Processes};

/// A file that is mapped somewhere in the trace: an index into [`Trace::modules`](super::Trace::modules).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// What finds a PDB: its name, GUID and age.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// The name in the image, often a path on the machine that built it.
    pub name: String,
    /// The GUID.
    pub guid: Guid,
    /// The age.
    pub age: u32,
}

/// One file, however many processes map it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its path, with a drive letter where the trace tells it.
    pub path: String,
    /// The size of its mapping in bytes.
    pub size: u64,
    /// The link time in its header, seconds since 1970 or a hash; 0 where nothing tells it.
    pub timestamp: u32,
    /// The checksum in its header; 0 where it has none.
    pub checksum: u32,
    /// Its PDB, where the trace tells it.
    pub pdb: Option<PdbId>,
    /// The PDB of its IL, for precompiled .NET images.
    pub managed_pdb: Option<PdbId>,
    /// True for kernel modules.
    pub kernel: bool,
}

impl Module {
    /// The file's name.
    pub fn file_name(&self) -> &str {
        file_name(&self.path)
    }

    /// The file's name without its ending: the module's name in frames.
    pub fn name(&self) -> &str {
        let name = self.file_name();
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }
}

/// A module mapped in a process for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The process; the System process for kernel modules, which serve all.
    pub process: ProcessId,
    /// The file.
    pub module: ModuleId,
    /// Where it starts.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was mapped; `None` if before the recording.
    pub start: Option<Ticks>,
    /// When it was unmapped; `None` if not within the recording.
    pub end: Option<Ticks>,
}

impl Mapping {
    /// True if it was there at `time`.
    pub fn covers(&self, time: Ticks) -> bool {
        self.start.is_none_or(|start| start <= time) && self.end.is_none_or(|end| time < end)
    }
}

/// What is known of one mapping while the trace is read.
#[derive(Debug)]
struct Open {
    pid: u32,
    base: u64,
    size: u64,
    start: Option<Ticks>,
    end: Option<Ticks>,
    /// When it was surely there.
    evidence: Ticks,
    name: String,
    timestamp: u32,
    checksum: u32,
    pdb: Option<PdbId>,
    managed_pdb: Option<PdbId>,
}

/// Collects image records.
#[derive(Debug)]
pub(super) struct Images {
    all: Vec<Open>,
    /// The latest mapping at a base of a process.
    latest: FxHashMap<(u32, u64), u32>,
    /// Mappings and identities of the present moment: an identity precedes its image's record at the same time, in
    /// this file or in another.
    now: Ticks,
    now_mapped: Vec<u32>,
    now_known: Vec<Identity>,
    pointer: Pointer,
}

#[derive(Debug)]
struct Identity {
    pid: u32,
    base: u64,
    kind: IdentityKind,
}

#[derive(Debug)]
enum IdentityKind {
    Timestamp(u32),
    Pdb(PdbId),
    ManagedPdb(PdbId),
}

impl Images {
    pub(super) fn new(pointer: Pointer) -> Self {
        Images {
            all: Vec::new(),
            latest: FxHashMap::default(),
            now: Ticks(i64::MIN),
            now_mapped: Vec::new(),
            now_known: Vec::new(),
            pointer,
        }
    }

    pub(super) fn record(&mut self, image: &kernel::Image<'_>, time: Ticks) {
        self.advance(time);
        // A base in the kernel's half is everybody's, whatever process the record names.
        let pid = if is_kernel_address(image.base, self.pointer) { 0 } else { image.pid };
        let latest = self.latest.get(&(pid, image.base)).copied();
        let live = latest.filter(|index| self.get(*index).is_some_and(|open| open.end.is_none()));
        let same = live.filter(|index| self.get(*index).is_some_and(|open| open.is_same_file(image)));
        let index = match image.phase {
            Phase::Start => {
                // Told twice at one moment, by two sessions; else its unload was lost.
                match same.filter(|index| self.get(*index).is_some_and(|open| open.evidence == time)) {
                    Some(same) => same,
                    None => {
                        self.end(live, time);
                        self.add(pid, image, Some(time), None, time)
                    }
                }
            }
            Phase::End | Phase::Defunct => match same {
                Some(same) => {
                    self.end(Some(same), time);
                    same
                }
                // Never seen before: it was there all the time, or since the other file at its base went.
                None => {
                    self.end(live, time);
                    let start = latest.and_then(|index| self.get(index)?.end);
                    self.add(pid, image, start.filter(|start| *start < time), Some(time), time)
                }
            },
            Phase::RundownStart | Phase::RundownEnd => match same {
                Some(same) => same,
                None => {
                    let start = latest.and_then(|index| self.get(index)?.end);
                    // Another file at the base that nobody saw leave: it left unseen, at the latest now.
                    self.end(live, time);
                    self.add(pid, image, start.or(live.map(|_| time)), None, time)
                }
            },
        };
        self.now_mapped.push(index);
        if let Some(open) = self.all.get_mut(index as usize) {
            open.complete(image);
        }
    }

    pub(super) fn identity(&mut self, id: &ImageId<'_>, time: Ticks) {
        self.advance(time);
        let (pid, base, kind) = match *id {
            ImageId::File { base, pid, timestamp, .. } => (pid, base, IdentityKind::Timestamp(timestamp)),
            ImageId::Pdb { base, pid, guid, age, name, managed } => {
                let pdb = PdbId { name: name.to_string(), guid, age };
                (pid, base, if managed { IdentityKind::ManagedPdb(pdb) } else { IdentityKind::Pdb(pdb) })
            }
            ImageId::NoPdb { .. } | ImageId::Mark { .. } | ImageId::Version { .. } => return,
        };
        let pid = if is_kernel_address(base, self.pointer) { 0 } else { pid };
        self.now_known.push(Identity { pid, base, kind });
    }

    /// Joins what one moment told, before the next one begins.
    fn advance(&mut self, time: Ticks) {
        if time == self.now {
            return;
        }
        for identity in self.now_known.drain(..) {
            for index in &self.now_mapped {
                let Some(open) = self.all.get_mut(*index as usize) else { continue };
                if open.pid != identity.pid || open.base != identity.base {
                    continue;
                }
                match &identity.kind {
                    IdentityKind::Timestamp(timestamp) => open.timestamp = *timestamp,
                    IdentityKind::Pdb(pdb) => open.pdb = Some(pdb.clone()),
                    IdentityKind::ManagedPdb(pdb) => open.managed_pdb = Some(pdb.clone()),
                }
            }
        }
        self.now_mapped.clear();
        self.now = time;
    }

    fn get(&self, index: u32) -> Option<&Open> {
        self.all.get(index as usize)
    }

    fn end(&mut self, index: Option<u32>, time: Ticks) {
        if let Some(open) = index.and_then(|index| self.all.get_mut(index as usize)) {
            open.end = Some(time);
        }
    }

    fn add(
        &mut self,
        pid: u32,
        image: &kernel::Image<'_>,
        start: Option<Ticks>,
        end: Option<Ticks>,
        evidence: Ticks,
    ) -> u32 {
        let index = self.all.len() as u32;
        self.all.push(Open {
            pid,
            base: image.base,
            size: image.size,
            start,
            end,
            evidence,
            name: image.file_name.to_string(),
            timestamp: image.timestamp,
            checksum: image.checksum,
            pdb: None,
            managed_pdb: None,
        });
        self.latest.insert((pid, image.base), index);
        index
    }

    /// Turns records into modules and their mappings.
    pub(super) fn finish(
        mut self,
        paths: &Paths,
        processes: &mut Processes,
        system: ProcessId,
    ) -> (Vec<Module>, Mappings) {
        self.advance(Ticks(i64::MAX));
        let mut modules: Vec<Module> = Vec::new();
        let mut known: FxHashMap<Module, ModuleId> = FxHashMap::default();
        let mut mappings = Vec::with_capacity(self.all.len());
        for open in self.all {
            let kernel = open.pid == 0;
            let process = if kernel { system } else { processes.at(open.pid, open.evidence) };
            let module = Module {
                path: paths.to_dos(&open.name),
                size: open.size,
                timestamp: open.timestamp,
                checksum: open.checksum,
                pdb: open.pdb,
                managed_pdb: open.managed_pdb,
                kernel,
            };
            let key = Module { path: module.path.to_ascii_lowercase(), ..module.clone() };
            let module = *known.entry(key).or_insert_with(|| {
                modules.push(module);
                ModuleId((modules.len() - 1) as u32)
            });
            let Open { base, size, start, end, .. } = open;
            mappings.push(Mapping { process, module, base, size, start, end });
        }
        (modules, Mappings::new(mappings, system))
    }
}

impl Open {
    /// The same file by the last part of its path (paths have several forms) and its size, where both are told.
    fn is_same_file(&self, image: &kernel::Image<'_>) -> bool {
        let name = image.file_name.to_string();
        let named = self.name.is_empty() || name.is_empty();
        (named || file_name(&self.name).eq_ignore_ascii_case(file_name(&name)))
            && (self.size == image.size || self.size == 0 || image.size == 0)
    }

    /// Takes what another record of the same mapping adds.
    fn complete(&mut self, image: &kernel::Image<'_>) {
        if self.timestamp == 0 {
            self.timestamp = image.timestamp;
        }
        if self.checksum == 0 {
            self.checksum = image.checksum;
        }
        if self.size == 0 {
            self.size = image.size;
        }
        // A load may carry a cut path, and the later record the whole one.
        let name = image.file_name.to_string();
        if name.len() > self.name.len() {
            self.name = name;
        }
    }
}

/// All mappings, by process and address.
#[derive(Debug, Default)]
pub struct Mappings {
    /// By process, base and start.
    all: Vec<Mapping>,
    /// For each mapping, the end of the furthest reaching one of the same process up to it: a search backwards may
    /// stop where that lies below the address.
    reach: Vec<u64>,
    system: ProcessId,
}

impl Default for ProcessId {
    /// The first process.
    fn default() -> Self {
        ProcessId(0)
    }
}

impl Mappings {
    fn new(mut all: Vec<Mapping>, system: ProcessId) -> Self {
        all.sort_by_key(|mapping| (mapping.process, mapping.base, mapping.start));
        let mut reach = Vec::with_capacity(all.len());
        let mut before: Option<(ProcessId, u64)> = None;
        for mapping in &all {
            let end = mapping.base.saturating_add(mapping.size);
            let furthest = match before {
                Some((process, furthest)) if process == mapping.process => furthest.max(end),
                _ => end,
            };
            before = Some((mapping.process, furthest));
            reach.push(furthest);
        }
        Mappings { all, reach, system }
    }

    /// Every mapping.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.all.iter()
    }

    /// The mappings of a process, by base and start.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = &Mapping> {
        let from = self.all.partition_point(|mapping| mapping.process < process);
        self.all.iter().skip(from).take_while(move |mapping| mapping.process == process)
    }

    /// The mapping at `index`.
    pub fn get(&self, index: usize) -> Option<&Mapping> {
        self.all.get(index)
    }

    /// What was mapped at `address` of `process` at `time`. Of several, the latest.
    ///
    /// `kernel` says that the address is in the kernel's half, whose modules all processes share.
    pub fn at(&self, process: ProcessId, address: u64, kernel: bool, time: Ticks) -> Located {
        let process = if kernel { self.system } else { process };
        let behind =
            self.all.partition_point(|mapping| (mapping.process, mapping.base) <= (process, address));
        let mut located = Located { mapping: None, from: Ticks(i64::MIN), until: Ticks(i64::MAX) };
        let mut latest = None;
        for index in (0..behind).rev() {
            let Some(mapping) = self.all.get(index).filter(|mapping| mapping.process == process) else {
                break;
            };
            if self.reach.get(index).is_none_or(|reach| *reach <= address) {
                break;
            }
            if address - mapping.base >= mapping.size {
                continue;
            }
            for border in [mapping.start, mapping.end].into_iter().flatten() {
                if border <= time {
                    located.from = located.from.max(border);
                } else {
                    located.until = located.until.min(border);
                }
            }
            if mapping.covers(time) && latest.is_none_or(|latest| latest < mapping.start) {
                latest = Some(mapping.start);
                located.mapping = Some(index);
            }
        }
        located
    }
}

/// What is at an address, and for how long that answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The index of the mapping; `None` for an address outside all images.
    pub mapping: Option<usize>,
    /// The answer is the same from here,
    pub from: Ticks,
    /// until just before here.
    pub until: Ticks,
}

impl Located {
    /// True if the answer holds at `time` too.
    pub fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}
