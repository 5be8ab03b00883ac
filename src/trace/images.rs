//! Images as intervals in time: which file was mapped at an address of a process at a moment.
//!
//! The evidence is patchy. Rundown at either end lists images whose load nobody saw; loads lack their unload; an
//! unload may be all there is. Bases are used again by other files, and the creator of a process maps its executable
//! for a moment. So images are told apart by process, base and time.

use rustc_hash::FxHashMap;

use crate::bytes::{Ansi, Utf16};
use crate::debug_id::DebugId;
use crate::event::{Pointer, Ticks};
use crate::events::kernel::{self, ImageId, Phase};
use crate::interned::Interned;
use crate::origin::KernelSpace;
use crate::sink::Loaded;
use crate::winpath::file_name;

use super::mappings::{Mapping, Mappings};
use super::paths::Paths;
use super::processes::{ProcessId, Processes};
use super::space::Extent;
use super::texts::{TextId, Texts};

/// A file that is mapped somewhere in the trace: an index into [`Trace::modules`](super::Trace::modules).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// What finds a PDB: its name, GUID and age.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// The name in the image, often a path on the machine that built it.
    pub name: String,
    /// What the PDB carries.
    pub id: DebugId,
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
    place: Place,
    start: Option<Ticks>,
    end: Option<Ticks>,
    /// When it was surely there.
    evidence: Ticks,
    file: File,
}

/// A base in a process; all of the kernel's are in process 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    pid: u32,
    base: u64,
}

/// What is known of a mapped file, in numbers: a rundown lists the same file for every process that maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct File {
    name: TextId,
    size: u64,
    timestamp: u32,
    checksum: u32,
    pdb: Option<u32>,
    managed_pdb: Option<u32>,
}

/// Collects image records.
#[derive(Debug)]
pub(super) struct Images {
    all: Vec<Open>,
    /// The latest mapping at a base of a process.
    latest: FxHashMap<Place, u32>,
    /// Mappings and identities of the present moment: an identity precedes its image's record at the same time, in
    /// this file or in another.
    now: Ticks,
    now_mapped: Vec<u32>,
    now_known: Vec<(Place, Known)>,
    /// When the present owner of a process id began: what was mapped before is not its.
    began: FxHashMap<u32, Ticks>,
    names: Texts,
    pdbs: Pdbs,
    pointer: Pointer,
    kernel: KernelSpace,
}

/// What the records of one moment say of the file at a base; of the PDBs their numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    timestamp: Option<u32>,
    pdb: Option<u32>,
    managed_pdb: Option<u32>,
}

/// Identities of PDBs, each with a number.
#[derive(Debug, Default)]
struct Pdbs {
    names: Texts,
    all: Interned<(TextId, DebugId)>,
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
            names: Texts::default(),
            pdbs: Pdbs::default(),
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
        self.all.iter().any(|open| open.place.pid == 0)
    }

    pub(super) fn record(&mut self, image: &kernel::Image<'_>, time: Ticks) {
        self.advance(time);
        let place = self.place(image.pid, image.base);
        let latest = self.latest.get(&place).copied();
        let name = self.name(image.file_name, latest);
        let of_owner = |open: &Open| self.began.get(&place.pid).is_none_or(|began| *began <= open.evidence);
        let latest = latest.filter(|index| self.get(*index).is_some_and(of_owner));
        let live = latest.filter(|index| self.get(*index).is_some_and(|open| open.end.is_none()));
        let is_same = |open: &Open| self.is_same_file(&open.file, name, image.size);
        let same = live.filter(|index| self.get(*index).is_some_and(is_same));
        let index = match image.phase {
            Phase::Start => {
                // Told twice at one moment, by two sessions; else its unload was lost.
                match same.filter(|index| self.get(*index).is_some_and(|open| open.evidence == time)) {
                    Some(same) => same,
                    None => {
                        self.end(live, time);
                        self.add(place, image, name, (Some(time), None), time)
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
                    self.add(place, image, name, (start.filter(|start| *start < time), Some(time)), time)
                }
            },
            Phase::RundownStart | Phase::RundownEnd => match same {
                Some(same) => same,
                None => {
                    let start = latest.and_then(|index| self.get(index)?.end);
                    // Another file at the base that nobody saw leave: it left unseen, at the latest now.
                    self.end(live, time);
                    self.add(place, image, name, (start.or(live.map(|_| time)), None), time)
                }
            },
        };
        self.now_mapped.push(index);
        if let Some(open) = self.all.get_mut(index as usize) {
            open.file.complete(image, name, &self.names);
        }
    }

    pub(super) fn identity(&mut self, id: &ImageId<'_>, time: Ticks) {
        self.advance(time);
        let (pid, base, known) = match *id {
            // The merge writes 0 for reproducible builds; the record itself may know better.
            ImageId::File { timestamp: 0, .. } => return,
            ImageId::File { base, pid, timestamp, .. } => {
                (pid, base, Known { timestamp: Some(timestamp), ..Known::default() })
            }
            ImageId::Pdb { base, pid, guid, age, name, managed } => {
                let pdb = Some(self.pdbs.number(name, DebugId { guid, age }));
                let known = match managed {
                    true => Known { managed_pdb: pdb, ..Known::default() },
                    false => Known { pdb, ..Known::default() },
                };
                (pid, base, known)
            }
            ImageId::NoPdb { .. } | ImageId::Mark { .. } | ImageId::Version { .. } => return,
        };
        let place = self.place(pid, base);
        match self.now_known.last_mut() {
            Some((last, earlier)) if *last == place => earlier.take(known),
            _ => self.now_known.push((place, known)),
        }
    }

    /// Joins what one moment told, before the next one begins.
    fn advance(&mut self, time: Ticks) {
        if time == self.now {
            return;
        }
        self.now = time;
        if !self.now_mapped.is_empty() {
            // Stable: of two identities of a kind, the later one counts.
            self.now_known.sort_by_key(|(place, _)| *place);
            self.now_known.dedup_by(|(place, known), (before, earlier)| {
                let is_same = place == before;
                if is_same {
                    earlier.take(*known);
                }
                is_same
            });
        }
        for index in self.now_mapped.drain(..) {
            if let Some(open) = self.all.get_mut(index as usize)
                && let Ok(found) = self.now_known.binary_search_by_key(&open.place, |(place, _)| *place)
                && let Some((_, known)) = self.now_known.get(found)
            {
                open.file.identify(known);
            }
        }
        self.now_known.clear();
    }

    /// A base in the kernel's half is everybody's, whatever process a record names.
    fn place(&self, pid: u32, base: u64) -> Place {
        Place { pid: if self.kernel.contains(base, self.pointer) { 0 } else { pid }, base }
    }

    /// The id of a name, which is mostly that of the mapping which is known at the place.
    fn name(&mut self, name: Utf16<'_>, known: Option<u32>) -> TextId {
        let known = known.and_then(|index| self.get(index)).map(|open| open.file.name);
        self.names.intern_probable(name, known.unwrap_or_default())
    }

    /// The same file by the last part of its path (paths have several forms) and its size, where both are told.
    fn is_same_file(&self, known: &File, name: TextId, size: u64) -> bool {
        let is_same_name = || {
            let [known, name] = [known.name, name].map(|name| file_name(self.names.get(name)));
            known.eq_ignore_ascii_case(name)
        };
        (known.name == name || known.name.is_empty() || name.is_empty() || is_same_name())
            && (known.size == size || known.size == 0 || size == 0)
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
        place: Place,
        image: &kernel::Image<'_>,
        name: TextId,
        (start, end): (Option<Ticks>, Option<Ticks>),
        evidence: Ticks,
    ) -> u32 {
        let index = self.all.len() as u32;
        let kernel::Image { size, timestamp, checksum, .. } = *image;
        let file = File { name, size, timestamp, checksum, pdb: None, managed_pdb: None };
        self.all.push(Open { place, start, end, evidence, file });
        self.latest.insert(place, index);
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
            let Place { pid, base } = open.place;
            let extent = Extent { start: base, size: open.file.size, from: open.start, until: open.end };
            known.entry(owner(pid, open.evidence)).or_default().push(extent);
        }
        let before = self.all.len();
        for loaded in list {
            let place = self.place(loaded.pid, loaded.base);
            let others = known.entry(owner(place.pid, from)).or_default();
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
            let name = self.names.intern(loaded.path.as_str());
            let (timestamp, checksum, pdb, managed_pdb) = (0, 0, None, None);
            let file = File { name, size: loaded.size, timestamp, checksum, pdb, managed_pdb };
            self.all.push(Open { place, start, end, evidence: from, file });
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
        // Each name once as a path, and as one whose case does not matter.
        let mut folded = Texts::default();
        let paths = self.names.iter().map(|name| {
            let path = paths.to_dos(name);
            let key = folded.intern(path.to_ascii_lowercase().as_str());
            (path, key)
        });
        let paths: Vec<(String, TextId)> = paths.collect();
        let mut modules: Vec<Module> = Vec::new();
        let mut known: FxHashMap<(File, bool), ModuleId> = FxHashMap::default();
        let mut mappings = Vec::with_capacity(self.all.len());
        for Open { place: Place { pid, base }, start, end, evidence, file } in self.all {
            let kernel = pid == 0;
            let process = if kernel { system } else { processes.at(pid, evidence) };
            let Some((path, name)) = paths.get(file.name.index()) else { continue };
            let module = *known.entry((File { name: *name, ..file }, kernel)).or_insert_with(|| {
                modules.push(Module {
                    path: path.clone(),
                    size: file.size,
                    timestamp: file.timestamp,
                    checksum: file.checksum,
                    pdb: self.pdbs.get(file.pdb),
                    managed_pdb: self.pdbs.get(file.managed_pdb),
                    kernel,
                });
                ModuleId((modules.len() - 1) as u32)
            });
            mappings.push(Mapping { process, module, base, size: file.size, start, end });
        }
        (modules, Mappings::new(mappings, system))
    }
}

impl Known {
    /// Takes what a later record says; that counts.
    fn take(&mut self, later: Known) {
        self.timestamp = later.timestamp.or(self.timestamp);
        self.pdb = later.pdb.or(self.pdb);
        self.managed_pdb = later.managed_pdb.or(self.managed_pdb);
    }
}

impl Pdbs {
    fn number(&mut self, name: Ansi<'_>, id: DebugId) -> u32 {
        let name = self.names.intern(name);
        self.all.number((name, id))
    }

    fn get(&self, number: Option<u32>) -> Option<PdbId> {
        let (name, id) = *self.all.get(number?)?;
        Some(PdbId { name: self.names.get(name).to_owned(), id })
    }
}

impl File {
    fn identify(&mut self, known: &Known) {
        self.timestamp = known.timestamp.unwrap_or(self.timestamp);
        self.pdb = known.pdb.or(self.pdb);
        self.managed_pdb = known.managed_pdb.or(self.managed_pdb);
    }

    /// Takes what another record of the same mapping adds.
    fn complete(&mut self, image: &kernel::Image<'_>, name: TextId, names: &Texts) {
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
        if name != self.name && names.get(name).len() > names.get(self.name).len() {
            self.name = name;
        }
    }
}
