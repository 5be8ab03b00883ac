//! The IL of precompiled code that lies in files of its own.
//!
//! A composite image has the code of several assemblies and may leave their metadata, and so the names, in the
//! assemblies' own files; instantiations compiled for one assembly may need that of another. Which assemblies they are
//! and which builds of them, the image says. A file lies beside the image, where the trace says, in a folder of images,
//! or in a store or on a server under its time stamp and size, where the trace tells these.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::find::key::{FileId, FileKey};
use super::find::lookup::{self, Attempt, Checked, Found, Lookup};
use super::find::request::{OnProgress, Request};
use super::find::store::Store;
use super::read::dotnet::r2r::{AssemblyReference, R2rError, R2rImage, own_metadata};
use super::read::pe::Image;
use super::read::precompiled;
use crate::mmap::Mapped;
use crate::trace::code::ManagedModule;
use crate::trace::{Module, ModuleId, ProcessId, Trace};
use crate::winpath::{file_name, without_volume};

/// Assemblies looked for because of one image. The whole .NET framework is some 200.
const MOST_ASSEMBLIES: usize = 512;

/// Files of one assembly that a trace may tell: each process that maps the image may have its own.
const MOST_TOLD: usize = 8;

/// What a trace tells of an assembly's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToldIl {
    /// Its path.
    pub path: String,
    /// Its time stamp and size, where they are known.
    pub key: Option<(u32, u32)>,
}

/// The IL of one assembly, on its way.
#[derive(Clone, Debug)]
pub struct IlImage {
    assembly: AssemblyReference,
    /// The precompiled image on this machine.
    image: PathBuf,
    /// Its own name, as the rewritten file of a component has it.
    image_name: String,
    told: Vec<ToldIl>,
    found: Option<Found>,
    attempts: Vec<Attempt>,
}

impl IlImage {
    /// The IL that the names at `rvas` of the image at `here` lack. `told` gives what a trace tells of an assembly's
    /// file.
    pub fn wanted(
        image: &R2rImage<'_>,
        here: &Path,
        image_name: &str,
        rvas: impl IntoIterator<Item = u32>,
        told: impl Fn(&str) -> Vec<ToldIl>,
    ) -> Vec<IlImage> {
        let missing = precompiled::missing(image, rvas);
        let references = missing.iter().filter_map(|name| image.reference(name));
        let wanted = references.take(MOST_ASSEMBLIES).map(|assembly| IlImage {
            told: told(&assembly.name),
            assembly,
            // What lies beside it is looked for by a full path.
            image: std::path::absolute(here).unwrap_or_else(|_| here.to_owned()),
            image_name: image_name.to_owned(),
            found: None,
            attempts: Vec::new(),
        });
        wanted.collect()
    }

    /// Looks for those of `all` that are not found yet.
    pub fn find<'i>(
        all: impl IntoIterator<Item = &'i mut IlImage>,
        store: &Store,
        ask_servers: bool,
        progress: &OnProgress<'_>,
    ) {
        let mut missing: Vec<&mut IlImage> = all.into_iter().filter(|il| il.found.is_none()).collect();
        missing.iter_mut().for_each(|il| il.attempts.clear());
        for turn in 0..=MOST_TOLD {
            let (asked, requests): (Vec<_>, Vec<_>) = missing
                .iter_mut()
                .filter(|il| il.found.is_none())
                .filter_map(|il| il.request(turn, ask_servers).map(|request| (il, request)))
                .unzip();
            for (il, lookup) in asked.into_iter().zip(store.find_all(&requests, progress)) {
                let Lookup { found, attempts } = lookup;
                il.found = found;
                il.attempts.extend(attempts);
            }
        }
    }

    /// The assembly's simple name.
    pub fn assembly(&self) -> &str {
        &self.assembly.name
    }

    /// The file on this machine.
    pub fn path(&self) -> Option<&Path> {
        self.found.as_ref().map(|found| &*found.path)
    }

    /// The most telling answer of those that did not have it.
    pub fn reason(&self) -> Option<&Attempt> {
        lookup::most_telling(&self.attempts)
    }

    /// Every place that was asked, with its answer.
    pub fn into_attempts(self) -> Vec<Attempt> {
        self.attempts
    }

    /// What to look for at each turn: each file that the trace tells, or the assembly's name alone.
    fn request(&self, turn: usize, ask_servers: bool) -> Option<Request<'static>> {
        let usual = format!("{}.dll", self.assembly.name);
        let told = self.told.get(turn);
        let path = match (told, turn) {
            (Some(told), _) => &told.path,
            (None, 0) => &usual,
            (None, _) => return None,
        };
        let key = told.and_then(|told| told.key);
        let (timestamp, size) = key.unwrap_or_default();
        let beside = self.image.with_file_name(file_name(path));
        let hints = [Some(beside), told.map(|told| PathBuf::from(&told.path))];
        let (assembly, image, image_name) =
            (self.assembly.clone(), self.image.clone(), self.image_name.clone());
        Some(Request {
            key: FileKey::image(path, timestamp, size),
            hints: hints.into_iter().flatten().collect(),
            // Servers know images by their time stamp.
            ask_servers: ask_servers && key.is_some(),
            verify: Box::new(move |path| check(path, &assembly, key, &image, &image_name)),
        })
    }
}

/// Whether a file has the IL of this build of an assembly.
///
/// The MVID proves it. Images before format 5.3 have none: then the time stamp and size do that the trace tells, and
/// without these the assembly's version, if the file also says that its code is in this image, or lies beside it.
fn check(
    path: &Path,
    wanted: &AssemblyReference,
    key: Option<(u32, u32)>,
    image: &Path,
    image_name: &str,
) -> Checked {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Checked::Unreadable(error.to_string()),
    };
    let file = match Image::parse(&bytes) {
        Ok(file) => file,
        Err(error) => return Checked::Unreadable(error.to_string()),
    };
    let metadata = match own_metadata(&file) {
        Ok(metadata) => metadata,
        Err(error) => return Checked::Unreadable(error.to_string()),
    };
    if metadata.assembly_name() != Some(&*wanted.name) {
        let found = metadata.assembly_name().unwrap_or("no assembly");
        return Checked::Unreadable(format!("it is {found}, not {}", wanted.name));
    }
    if let Some(mvid) = wanted.mvid {
        return match metadata.mvid() {
            Some(found) if found == mvid => Checked::Matches,
            Some(found) => Checked::Unreadable(format!("another build: its MVID is {found}, not {mvid}")),
            None => Checked::Unreadable("it has no MVID".to_owned()),
        };
    }
    if let Some(key) = key {
        let (timestamp, size_of_image) = (file.timestamp, file.size_of_image);
        return match (timestamp, size_of_image) == key {
            true => Checked::Matches,
            false => Checked::Differs(FileId::Image { timestamp, size_of_image }.to_string()),
        };
    }
    let is_component = match R2rImage::parse(&file) {
        Err(R2rError::InComposite { file }) => file.eq_ignore_ascii_case(image_name),
        _ => path.parent() == image.parent(),
    };
    match metadata.assembly_version() == wanted.version && is_component {
        true => Checked::Matches,
        false => Checked::Unreadable("nothing shows that it is of the same build".to_owned()),
    }
}

/// The files that a trace tells of the assemblies in the processes that map an image, by the assemblies' names in small
/// letters: modules that the runtime reported, and images of that name.
pub(super) fn told_by(trace: &Trace, image: ModuleId) -> FxHashMap<String, Vec<ToldIl>> {
    let mut told: FxHashMap<String, Vec<ToldIl>> = FxHashMap::default();
    let mut add = |name: &str, file: ToldIl| {
        let files = told.entry(name.to_ascii_lowercase()).or_default();
        if files.len() < MOST_TOLD && !files.contains(&file) {
            files.push(file);
        }
    };
    let processes = trace.mappings.processes_of(image);
    let mut managed: FxHashMap<ProcessId, Vec<&ManagedModule>> = FxHashMap::default();
    for module in trace.code.modules().iter().filter(|module| processes.contains(&module.process)) {
        managed.entry(module.process).or_default().push(module);
    }
    for process in processes {
        let modules: FxHashSet<ModuleId> = trace.mappings.of(process).map(|mapping| mapping.module).collect();
        let mut images: Vec<&Module> = modules
            .into_iter()
            .filter_map(|id| trace.module(id))
            .filter(|module| module.timestamp != 0)
            .collect();
        images.sort_by(|a, b| a.path.cmp(&b.path));
        let key = |module: &Module| Some((module.timestamp, u32::try_from(module.size).ok()?));
        let managed = managed.remove(&process).unwrap_or_default();
        let mut mapped: FxHashMap<String, &Module> = FxHashMap::default();
        for image in images.iter().filter(|_| !managed.is_empty()) {
            mapped.entry(without_volume(&image.path)).or_insert(image);
        }
        for module in managed {
            let mapped = mapped.get(&without_volume(&module.path));
            let file = ToldIl { path: module.path.clone(), key: mapped.and_then(|image| key(image)) };
            add(module.name(), file);
        }
        for image in images {
            let file = ToldIl { path: image.path.clone(), key: key(image) };
            add(image.name(), file);
        }
    }
    told
}
