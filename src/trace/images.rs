//! Images as intervals in time: which file was mapped at an address of a process at a moment.
//!
//! The evidence is patchy. Rundown at either end lists images whose load nobody saw; loads lack their unload; an
//! unload may be all there is. Bases are used again by other files, and the creator of a process maps its executable
//! for a moment. So images are told apart by process, base and time.

use rustc_hash::FxHashMap;

use crate::event::{Pointer, Ticks};
use crate::events::kernel::{self, ImageId, KernelSpace, Phase};
use crate::guid::Guid;
use crate::session::Loaded;

use super::mappings::{Mapping, Mappings};
use super::paths::{Paths, file_name};
use super::processes::{ProcessId, Processes};
use super::space::Extent;

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
    /// When the present owner of a process id began: what was mapped before is not its.
    began: FxHashMap<u32, Ticks>,
    pointer: Pointer,
    kernel: KernelSpace,
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

/// What one moment tells of the file at a base.
#[derive(Debug, Default)]
struct Known {
    timestamp: Option<u32>,
    pdb: Option<PdbId>,
    managed_pdb: Option<PdbId>,
}

impl Images {
    pub(super) fn new(pointer: Pointer, kernel: KernelSpace) -> Self {
        Images {
            all: Vec::new(),
            latest: FxHashMap::default(),
            now: Ticks(i64::MIN),
            now_mapped: Vec::new(),
            now_known: Vec::new(),
            began: FxHashMap::default(),
            pointer,
            kernel,
        }
    }

    /// A process begins at `time`, and with it an address space of its own.
    pub(super) fn process_began(&mut self, pid: u32, time: Ticks) {
        self.began.insert(pid, time);
    }

    /// True if any image is mapped in the kernel's half.
    pub(super) fn has_kernel_modules(&self) -> bool {
        self.all.iter().any(|open| open.pid == 0)
    }

    pub(super) fn record(&mut self, image: &kernel::Image<'_>, time: Ticks) {
        self.advance(time);
        // A base in the kernel's half is everybody's, whatever process the record names.
        let pid = if self.kernel.contains(image.base, self.pointer) { 0 } else { image.pid };
        let began = self.began.get(&pid).copied();
        let latest = self.latest.get(&(pid, image.base)).copied();
        let latest = latest
            .filter(|index| self.get(*index).is_some_and(|open| began.is_none_or(|at| at <= open.evidence)));
        let live = latest.filter(|index| self.get(*index).is_some_and(|open| open.end.is_none()));
        let name = image.file_name.to_string();
        let is_same = |index: &u32| self.get(*index).is_some_and(|open| open.is_same_file(&name, image.size));
        let same = live.filter(is_same);
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
            open.complete(image, name);
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
        let pid = if self.kernel.contains(base, self.pointer) { 0 } else { pid };
        self.now_known.push(Identity { pid, base, kind });
    }

    /// Joins what one moment told, before the next one begins.
    fn advance(&mut self, time: Ticks) {
        if time == self.now {
            return;
        }
        if !self.now_known.is_empty() {
            // Of two identities of a kind, the later one counts.
            let mut known: FxHashMap<(u32, u64), Known> = FxHashMap::default();
            for identity in self.now_known.drain(..) {
                let known = known.entry((identity.pid, identity.base)).or_default();
                match identity.kind {
                    // The merge writes 0 for reproducible builds; the record itself may know better.
                    IdentityKind::Timestamp(0) => {}
                    IdentityKind::Timestamp(timestamp) => known.timestamp = Some(timestamp),
                    IdentityKind::Pdb(pdb) => known.pdb = Some(pdb),
                    IdentityKind::ManagedPdb(pdb) => known.managed_pdb = Some(pdb),
                }
            }
            for index in &self.now_mapped {
                let Some(open) = self.all.get_mut(*index as usize) else { continue };
                if let Some(known) = known.get(&(open.pid, open.base)) {
                    open.identify(known);
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
            name: String::new(),
            timestamp: image.timestamp,
            checksum: image.checksum,
            pdb: None,
            managed_pdb: None,
        });
        self.latest.insert((pid, image.base), index);
        index
    }

    /// Takes the system's own list of what was mapped at some time between `from` and `until`, and gives how many
    /// mappings only that knows. What events report of the same place and time stays as it is.
    pub(super) fn there(
        &mut self,
        list: &[Loaded],
        from: Ticks,
        until: Ticks,
        processes: &mut Processes,
    ) -> u64 {
        // The owner of a process id at a moment; kernel modules are everybody's.
        let mut owner = |pid: u32, time| (pid != 0).then(|| processes.at(pid, time));
        let mut known: FxHashMap<Option<ProcessId>, Vec<Extent>> = FxHashMap::default();
        for open in &self.all {
            let extent = Extent { start: open.base, size: open.size, from: open.start, until: open.end };
            known.entry(owner(open.pid, open.evidence)).or_default().push(extent);
        }
        let before = self.all.len();
        for loaded in list {
            let pid = if self.kernel.contains(loaded.base, self.pointer) { 0 } else { loaded.pid };
            let others = known.entry(owner(pid, from)).or_default();
            let overlaps = |other: &&Extent| {
                other.start < loaded.base.saturating_add(loaded.size.max(1))
                    && loaded.base < other.start.saturating_add(other.size.max(1))
            };
            let (mut start, mut end) = (None, None);
            let mut is_known = false;
            for other in others.iter().filter(overlaps) {
                match (other.from, other.until) {
                    (_, Some(gone)) if gone <= from => start = start.max(Some(gone)),
                    (Some(came), _) if until < came => {
                        end = Some(end.map_or(came, |end: Ticks| end.min(came)));
                    }
                    _ => is_known = true,
                }
            }
            if is_known {
                continue;
            }
            others.push(Extent { start: loaded.base, size: loaded.size, from: start, until: end });
            self.all.push(Open {
                pid,
                base: loaded.base,
                size: loaded.size,
                start,
                end,
                evidence: from,
                name: loaded.path.clone(),
                timestamp: 0,
                checksum: 0,
                pdb: None,
                managed_pdb: None,
            });
        }
        (self.all.len() - before) as u64
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
    fn is_same_file(&self, name: &str, size: u64) -> bool {
        let nameless = self.name.is_empty() || name.is_empty();
        (nameless || file_name(&self.name).eq_ignore_ascii_case(file_name(name)))
            && (self.size == size || self.size == 0 || size == 0)
    }

    fn identify(&mut self, known: &Known) {
        self.timestamp = known.timestamp.unwrap_or(self.timestamp);
        if known.pdb.is_some() {
            self.pdb.clone_from(&known.pdb);
        }
        if known.managed_pdb.is_some() {
            self.managed_pdb.clone_from(&known.managed_pdb);
        }
    }

    /// Takes what another record of the same mapping adds.
    fn complete(&mut self, image: &kernel::Image<'_>, name: String) {
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
        if name.len() > self.name.len() {
            self.name = name;
        }
    }
}
