//! The PDBs of IL, for the source lines of .NET methods.
//!
//! Their ids come from the runtime's module events, from images in the trace, or from the image at hand. Such a PDB lies by
//! itself (where the trace says, or along the symbol path), or inside the image of its IL. This machine is searched
//! for both before a server is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::find::key::FileKey;
use super::find::lookup::{self, Attempt, Checked, Lookup};
use super::find::request::{OnProgress, Request};
use super::find::store::Store;
use super::find::verify;
use super::names::IlPlace;
use super::parallel::{guarded, in_parallel};
use super::read::dotnet::lines::{ManagedPdb, SourceLine, embedded};
use super::read::dotnet::r2r::own_metadata;
use super::read::pe::Image;
use super::read::precompiled::PdbsOfIl;
use crate::debug_id::DebugId;
use crate::guid::Guid;
use crate::mmap::Mapped;
use crate::trace::code::{ManagedModule, ManagedModuleId};
use crate::trace::{Module, PdbId, Trace};
use crate::winpath::{self, file_name};

/// The PDB of a module's IL, to be found.
#[derive(Debug)]
pub struct WantedPdb {
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
pub struct IlPdbReport {
    /// The PDB's path, as the image or the trace has it.
    pub pdb: String,
    /// Where it was found; of one inside an image, that image.
    pub from: Option<PathBuf>,
    /// Why it cannot be used although it was found.
    pub unreadable: Option<String>,
    /// Every place that was asked, with its answer.
    pub attempts: Vec<Attempt>,
}

impl IlPdbReport {
    /// Whether it was found and can be read.
    pub fn is_used(&self) -> bool {
        self.from.is_some() && self.unreadable.is_none()
    }

    /// Where one of its source files, as its lines name it, lies on the web by SourceLink. The PDB is opened anew.
    pub fn source_link(&self, file: &str) -> Option<String> {
        let from = self.from.as_ref()?;
        let link = |form| {
            let bytes = Bytes::open(from, form)?;
            let pdb = ManagedPdb::open(bytes.get()).map_err(|error| error.to_string())?;
            Ok(pdb.source_link(file))
        };
        [Form::Portable, Form::InImage].into_iter().find_map(|form| guarded(|| link(form)).ok().flatten())
    }

    /// The most telling answer of those that did not have it.
    pub fn reason(&self) -> Option<&Attempt> {
        lookup::most_telling(&self.attempts)
    }
}

/// PDBs of IL: first they are [wanted](IlPdbs::want), then [found](IlPdbs::find), then [opened](IlPdbs::of_images).
#[derive(Debug, Default)]
pub struct IlPdbs {
    pdbs: FxHashMap<Guid, Searched>,
    /// Of modules of a trace.
    modules: FxHashMap<ManagedModuleId, Guid>,
}

#[derive(Debug)]
struct Searched {
    wanted: WantedPdb,
    found: Option<Opened>,
    attempts: Vec<Attempt>,
}

/// A PDB, or the image that has it inside.
#[derive(Debug)]
struct Opened {
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

impl IlPdbs {
    /// Adds PDBs to find.
    pub fn want(&mut self, wanted: impl IntoIterator<Item = WantedPdb>) {
        for wanted in wanted {
            let new = Searched { wanted, found: None, attempts: Vec::new() };
            // Of several that want it, one that knows the image.
            match self.pdbs.entry(new.wanted.pdb.id.guid) {
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
        let mut pdbs: Vec<&mut Searched> = self.pdbs.values_mut().collect();
        pdbs.sort_by(|a, b| a.wanted.pdb.name.cmp(&b.wanted.pdb.name));
        for ask_servers in [false, true] {
            for form in FORMS {
                let missing = pdbs.iter_mut().filter(|pdb| pdb.found.is_none());
                let (missing, requests): (Vec<_>, Vec<_>) = missing
                    .filter_map(|pdb| pdb.wanted.request(form, ask_servers).map(|request| (pdb, request)))
                    .unzip();
                for (pdb, lookup) in missing.into_iter().zip(store.find_all(&requests, progress)) {
                    pdb.take(lookup, form, ask_servers);
                }
            }
        }
    }

    /// The PDBs of the IL in `images`, as far as they are here and can be read.
    pub fn of_images<'d, 'i>(&self, images: impl IntoIterator<Item = &'i Image<'d>>) -> PdbsOfIl<'_>
    where
        'd: 'i,
    {
        let of_image = |image: &Image<'_>| {
            let assembly = own_metadata(image).ok()?.assembly_name()?.to_owned();
            Some((assembly, self.pdbs.get(&image.il_pdb()?.id.guid)?.open().ok()?))
        };
        images.into_iter().filter_map(of_image).collect()
    }

    /// Adds the PDBs of modules of a trace, as their runtimes tell them or the images in the trace.
    pub(super) fn want_of<'m>(
        &mut self,
        trace: &Trace,
        modules: impl IntoIterator<Item = &'m ManagedModuleId>,
    ) {
        // Of several images of one file, the first.
        let mut mapped: FxHashMap<winpath::FileKey, &Module> = FxHashMap::default();
        for image in &trace.modules {
            mapped.entry(winpath::file_key(&image.path)).or_insert(image);
        }
        for module in modules {
            if let Some(wanted) = wanted_of(trace, &mapped, *module) {
                self.modules.insert(*module, wanted.pdb.id.guid);
                self.want([wanted]);
            }
        }
    }

    /// The lines of places in the modules of a trace, by so many threads. Each PDB is opened once.
    pub(super) fn lines(
        &self,
        places: &BTreeMap<ManagedModuleId, Vec<IlPlace>>,
        threads: usize,
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
        in_parallel(threads, &work, each).into_iter().flatten().collect()
    }

    /// What became of each.
    pub fn into_reports(self) -> Vec<IlPdbReport> {
        let report = |source: Searched| IlPdbReport {
            unreadable: source.found.as_ref().and_then(|_| source.open().err()),
            pdb: source.wanted.pdb.name,
            from: source.found.map(|found| found.path),
            attempts: source.attempts,
        };
        let mut reports: Vec<IlPdbReport> = self.pdbs.into_values().map(report).collect();
        reports.sort_by(|a, b| a.pdb.cmp(&b.pdb));
        reports
    }
}

impl WantedPdb {
    /// The PDB of the IL that the image at `here` was made from.
    pub fn of_image(image: &Image<'_>, here: PathBuf) -> Option<WantedPdb> {
        let pdb = image.il_pdb()?;
        Some(WantedPdb {
            pdb: PdbId { name: pdb.path, id: pdb.id },
            image: String::new(),
            key: Some((image.timestamp, image.size_of_image)),
            here: Some(here),
            pdb_here: None,
        })
    }

    fn request(&self, form: Form, ask_servers: bool) -> Option<Request<'static>> {
        let (name, id) = (&self.pdb.name, self.pdb.id);
        let (timestamp, size) = self.key.unwrap_or_default();
        let (key, hints) = match form {
            Form::Portable => (FileKey::portable_pdb(name, id.guid), self.pdb_hints()),
            Form::Windows => (FileKey::pdb(name, id), Vec::new()),
            Form::InImage => {
                let hints = self.here.iter().cloned().chain([PathBuf::from(&self.image)]).collect();
                (FileKey::image(&self.image, timestamp, size), hints)
            }
        };
        // Servers know images by their time stamp.
        let is_possible = !(form == Form::InImage && ask_servers && self.key.is_none());
        let verify = Box::new(move |path: &Path| match form {
            Form::InImage => check_image(path, &id),
            _ => verify::check_pdb(path, id),
        });
        is_possible.then_some(Request { key, hints, ask_servers, verify })
    }

    /// The recorded path, and the name beside the image.
    fn pdb_hints(&self) -> Vec<PathBuf> {
        let recorded = Some(&self.pdb.name).filter(|name| name.contains(['\\', '/'])).map(PathBuf::from);
        let name = file_name(&self.pdb.name);
        let folder = self.image.rfind(['\\', '/']).and_then(|at| self.image.get(..=at));
        let beside = folder.map(|folder| PathBuf::from(format!("{folder}{name}")));
        let beside_here = self.here.as_ref().map(|image| image.with_file_name(name));
        [self.pdb_here.clone(), beside_here, recorded, beside].into_iter().flatten().collect()
    }
}

impl Searched {
    fn take(&mut self, lookup: Lookup, form: Form, asked_servers: bool) {
        self.found =
            lookup.found.map(|found| Opened { bytes: Bytes::open(&found.path, form), path: found.path });
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
fn check_image(path: &Path, wanted: &DebugId) -> Checked {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Checked::Unreadable(error.to_string()),
    };
    match Image::parse(&bytes) {
        Err(error) => Checked::Unreadable(error.to_string()),
        Ok(image) if image.embedded_pdb().is_none() => Checked::Unreadable("no PDB inside".to_owned()),
        Ok(image) => match image.il_pdb() {
            Some(pdb) if pdb.id.guid == wanted.guid => Checked::Matches,
            Some(pdb) => Checked::Differs(pdb.id.to_string()),
            None => Checked::Unreadable("it names no PDB".to_owned()),
        },
    }
}

/// The PDB of a module's IL, as the runtime tells it or the image in the trace.
fn wanted_of(
    trace: &Trace,
    mapped: &FxHashMap<winpath::FileKey, &Module>,
    module: ManagedModuleId,
) -> Option<WantedPdb> {
    let module: &ManagedModule = trace.code.module(module)?;
    let mapped = mapped.get(&winpath::file_key(&module.path));
    let of_image = || mapped.and_then(|mapped| mapped.managed_pdb.clone().or(mapped.pdb.clone()));
    Some(WantedPdb {
        pdb: module.managed_pdb.clone().or_else(of_image)?,
        image: module.path.clone(),
        key: mapped
            .filter(|mapped| mapped.timestamp != 0)
            .and_then(|mapped| Some((mapped.timestamp, u32::try_from(mapped.size).ok()?))),
        here: None,
        pdb_here: None,
    })
}
