//! The PDBs of IL, for the source lines of .NET methods.
//!
//! Their ids come from the runtime's module events, from images in the trace, or from the image at hand. Such a PDB lies by
//! itself (where the trace says, or along the symbol path), or inside the image of its IL. This machine is searched
//! for both before a server is asked.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::debug_id::DebugId;
use super::identity;
use super::key::FileKey;
use super::lookup::{self, Attempt, Lookup, Verdict};
use super::managed::source::{ManagedPdb, SourceLine, embedded};
use super::names::IlPlace;
use super::parallel::{guarded, in_parallel};
use super::pe::Image;
use super::resolver::{OnProgress, Search, find_all};
use super::store::Store;
use crate::guid::Guid;
use crate::mmap::Mapped;
use crate::trace::code::{ManagedModule, ManagedModuleId};
use crate::trace::{PdbId, Trace, same_file};

/// The PDB of a module's IL, to be found.
#[derive(Debug)]
pub struct Wanted {
    /// Its identity, and its path as the image or the trace has it.
    pub pdb: PdbId,
    /// Path of the IL's image in the trace; empty where none tells it.
    pub image: String,
    /// Its time stamp and size, where they are known.
    pub key: Option<(u32, u32)>,
    /// The image on this machine, if it was found.
    pub here: Option<PathBuf>,
    /// The PDB on this machine, if the user says where.
    pub pdb_here: Option<PathBuf>,
}

/// What became of the PDB of one module's IL.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// The PDB's path, as the image or the trace has it.
    pub pdb: String,
    /// Where it was found; of one inside an image, that image.
    pub from: Option<PathBuf>,
    /// Why it cannot be used although it was found.
    pub unreadable: Option<String>,
    /// Every place that was asked, with its answer.
    pub attempts: Vec<Attempt>,
}

impl SourceReport {
    /// Whether it was found and can be read.
    pub fn is_used(&self) -> bool {
        self.from.is_some() && self.unreadable.is_none()
    }

    /// The most telling answer of those that did not have it.
    pub fn reason(&self) -> Option<&Attempt> {
        lookup::most_telling(&self.attempts)
    }
}

/// PDBs of IL: first they are [wanted](Sources::want), then [found](Sources::find), then [asked](Sources::ask).
#[derive(Debug, Default)]
pub struct Sources {
    pdbs: FxHashMap<Guid, Source>,
    /// Of modules of a trace.
    modules: FxHashMap<ManagedModuleId, Guid>,
}

#[derive(Debug)]
struct Source {
    wanted: Wanted,
    found: Option<Found>,
    attempts: Vec<Attempt>,
}

/// A PDB, or the image that has it inside.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// The PDB's bytes, or why there are none.
    bytes: Result<Bytes, String>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mapped),
    Inflated(Vec<u8>),
}

impl Bytes {
    fn open(path: &Path, form: Form) -> Result<Bytes, String> {
        let file = Mapped::open(path).map_err(|error| error.to_string())?;
        if form != Form::InImage {
            return Ok(Bytes::Mapped(file));
        }
        let image = Image::parse(&file).map_err(|error| error.to_string())?;
        let inflated = embedded(&image).ok_or("no PDB inside")?;
        inflated.map(Bytes::Inflated).map_err(|error| error.to_string())
    }

    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(file) => file,
            Bytes::Inflated(bytes) => bytes,
        }
    }
}

/// The forms that a PDB of IL comes in.
const FORMS: [Form; 3] = [Form::Portable, Form::Windows, Form::InImage];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Portable,
    Windows,
    InImage,
}

impl Sources {
    /// Adds PDBs to find.
    pub fn want(&mut self, wanted: impl IntoIterator<Item = Wanted>) {
        for wanted in wanted {
            let new = Source { wanted, found: None, attempts: Vec::new() };
            // Of several that want it, one that knows the image.
            match self.pdbs.entry(new.wanted.pdb.guid) {
                std::collections::hash_map::Entry::Vacant(place) => drop(place.insert(new)),
                std::collections::hash_map::Entry::Occupied(mut place) => {
                    if place.get().wanted.key.is_none() && new.wanted.key.is_some() {
                        place.insert(new);
                    }
                }
            }
        }
    }

    /// Looks for all of them.
    pub fn find(&mut self, store: &Store, progress: &OnProgress<'_>) {
        let mut sources: Vec<&mut Source> = self.pdbs.values_mut().collect();
        sources.sort_by(|a, b| a.wanted.pdb.name.cmp(&b.wanted.pdb.name));
        for ask_servers in [false, true] {
            for form in FORMS {
                let missing = (0..).zip(&sources).filter(|(_, source)| source.found.is_none());
                let searches: Vec<_> = missing
                    .filter_map(|(index, source)| source.wanted.search(index, form, ask_servers))
                    .collect();
                for (index, lookup) in find_all(&searches, store, progress) {
                    if let Some(source) = sources.get_mut(index) {
                        source.take(lookup, form, ask_servers);
                    }
                }
            }
        }
    }

    /// Asks the PDB of an image's IL; `question` is asked without one where it is not here or cannot be read.
    pub fn ask<R>(&self, image: &Image<'_>, question: impl Fn(Option<&ManagedPdb<'_>>) -> R) -> R {
        let source = image.il_pdb().and_then(|pdb| self.pdbs.get(&pdb.id.guid));
        match source.map(Source::open) {
            Some(Ok(pdb)) => question(Some(&pdb)),
            _ => question(None),
        }
    }

    /// Adds the PDBs of modules of a trace, as their runtimes tell them or the images in the trace.
    pub(super) fn want_of<'m>(
        &mut self,
        trace: &Trace,
        modules: impl IntoIterator<Item = &'m ManagedModuleId>,
    ) {
        for module in modules {
            if let Some(wanted) = wanted_of(trace, *module) {
                self.modules.insert(*module, wanted.pdb.guid);
                self.want([wanted]);
            }
        }
    }

    /// The lines of places in the modules of a trace. Each PDB is opened once.
    pub(super) fn lines(
        &self,
        places: &FxHashMap<ManagedModuleId, Vec<IlPlace>>,
    ) -> FxHashMap<(ManagedModuleId, IlPlace), SourceLine> {
        let mut by_pdb: FxHashMap<Guid, Vec<(ManagedModuleId, IlPlace)>> = FxHashMap::default();
        for (module, places) in places {
            let Some(id) = self.modules.get(module) else { continue };
            by_pdb.entry(*id).or_default().extend(places.iter().map(|place| (*module, *place)));
        }
        let work: Vec<_> = by_pdb.into_iter().collect();
        let each = |(id, places): &(Guid, Vec<(ManagedModuleId, IlPlace)>)| {
            let found = guarded(|| {
                let pdb = self.pdbs.get(id).ok_or("not wanted")?.open()?;
                let line = |(module, place): &(ManagedModuleId, IlPlace)| {
                    Some(((*module, *place), pdb.line(place.token, place.offset)?))
                };
                Ok(places.iter().filter_map(line).collect::<Vec<_>>())
            });
            found.unwrap_or_default()
        };
        in_parallel(&work, each).into_iter().flatten().collect()
    }

    /// What became of each.
    pub fn into_reports(self) -> Vec<SourceReport> {
        let report = |source: Source| SourceReport {
            unreadable: source.found.as_ref().and_then(|_| source.open().err()),
            pdb: source.wanted.pdb.name,
            from: source.found.map(|found| found.path),
            attempts: source.attempts,
        };
        let mut reports: Vec<SourceReport> = self.pdbs.into_values().map(report).collect();
        reports.sort_by(|a, b| a.pdb.cmp(&b.pdb));
        reports
    }
}

impl Wanted {
    /// The PDB of the IL that the image at `here` was made from.
    pub fn of_image(image: &Image<'_>, here: PathBuf) -> Option<Wanted> {
        let pdb = image.il_pdb()?;
        Some(Wanted {
            pdb: PdbId { name: pdb.path, guid: pdb.id.guid, age: pdb.id.age },
            image: String::new(),
            key: Some((image.timestamp, image.size_of_image)),
            here: Some(here),
            pdb_here: None,
        })
    }

    fn search(
        &self,
        index: usize,
        form: Form,
        ask_servers: bool,
    ) -> Option<Search<impl Fn(&Path) -> Verdict + Sync + use<>>> {
        let PdbId { name, guid, age } = &self.pdb;
        let id = DebugId { guid: *guid, age: *age };
        let (timestamp, size) = self.key.unwrap_or_default();
        let (key, hints) = match form {
            Form::Portable => (FileKey::portable_pdb(name, guid.to_bytes()), self.pdb_hints()),
            Form::Windows => (FileKey::of_pdb(name, id), Vec::new()),
            Form::InImage => {
                let hints = self.here.iter().cloned().chain([PathBuf::from(&self.image)]).collect();
                (FileKey::image(&self.image, timestamp, size), hints)
            }
        };
        // Servers know images by their time stamp.
        let is_possible = !(form == Form::InImage && ask_servers && self.key.is_none());
        let verify = move |path: &Path| match form {
            Form::InImage => check_image(path, &id),
            _ => identity::check_pdb(path, id),
        };
        is_possible.then_some(Search { index, key, hints, ask_servers, verify })
    }

    /// The recorded path, and the name beside the image.
    fn pdb_hints(&self) -> Vec<PathBuf> {
        let recorded = Some(&self.pdb.name).filter(|name| name.contains(['\\', '/'])).map(PathBuf::from);
        let name = self.pdb.name.rsplit(['\\', '/']).next().unwrap_or_default();
        let folder = self.image.rfind(['\\', '/']).and_then(|at| self.image.get(..=at));
        let beside = folder.map(|folder| PathBuf::from(format!("{folder}{name}")));
        let beside_here = self.here.as_ref().map(|image| image.with_file_name(name));
        [self.pdb_here.clone(), beside_here, recorded, beside].into_iter().flatten().collect()
    }
}

impl Source {
    fn take(&mut self, lookup: Lookup, form: Form, asked_servers: bool) {
        self.found =
            lookup.found.map(|found| Found { bytes: Bytes::open(&found.path, form), path: found.path });
        // The second round asks this machine again. That an image has no PDB inside is no news.
        if self.found.is_some() || asked_servers && form != Form::InImage {
            self.attempts.extend(lookup.attempts);
        }
    }

    fn open(&self) -> Result<ManagedPdb<'_>, String> {
        let bytes = self.found.as_ref().ok_or("not found")?.bytes.as_ref().map_err(String::clone)?;
        guarded(|| ManagedPdb::open(bytes.get()).map_err(|error| error.to_string()))
    }
}

/// An image with the PDB of this id inside.
fn check_image(path: &Path, wanted: &DebugId) -> Verdict {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Verdict::Unreadable(error.to_string()),
    };
    match Image::parse(&bytes) {
        Err(error) => Verdict::Unreadable(error.to_string()),
        Ok(image) if image.embedded_pdb().is_none() => Verdict::Unreadable("no PDB inside".to_owned()),
        Ok(image) => match image.il_pdb() {
            Some(pdb) if pdb.id.guid == wanted.guid => Verdict::Matches,
            Some(pdb) => Verdict::Differs(pdb.id.to_string()),
            None => Verdict::Unreadable("it names no PDB".to_owned()),
        },
    }
}

/// The PDB of a module's IL, as the runtime tells it or the image in the trace.
fn wanted_of(trace: &Trace, module: ManagedModuleId) -> Option<Wanted> {
    let module: &ManagedModule = trace.code.module(module)?;
    let mapped = trace.modules.iter().find(|mapped| same_file(&mapped.path, &module.path));
    let of_image = || mapped.and_then(|mapped| mapped.managed_pdb.clone().or(mapped.pdb.clone()));
    Some(Wanted {
        pdb: module.managed_pdb.clone().or_else(of_image)?,
        image: module.path.clone(),
        key: mapped
            .filter(|mapped| mapped.timestamp != 0)
            .and_then(|mapped| Some((mapped.timestamp, u32::try_from(mapped.size).ok()?))),
        here: None,
        pdb_here: None,
    })
}
