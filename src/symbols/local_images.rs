//! The files of this machine say what a live session does not. A recording gets the link times and PDB ids of its
//! images when it is merged; a live one has them only of images that are loaded while it runs.

use std::path::{Path, PathBuf};

use super::find::key::FileKey;
use super::find::lookup::Checked;
use super::find::options::StoreOptions;
use super::find::path::SymbolPath;
use super::find::request::Request;
use super::find::store::Store;
use super::find::verify::ImageFacts;
use super::image_facts::{self, at_its_path, file_of};
use super::read::pe::Image;
use crate::mmap::Mapped;
use crate::trace::{Module, ModuleId, PdbId, Trace};

/// What the file at the path of a module turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identified {
    /// The image that was loaded: the module has its link time and PDB ids now.
    Same,
    /// Another build, and in what it differs.
    Another(String),
    /// It cannot be opened or read, and why.
    Unreadable(String),
}

/// Completes `modules` from their files. Gives each of them with what its file was.
pub fn identify(
    trace: &mut Trace,
    modules: impl IntoIterator<Item = ModuleId>,
) -> Vec<(ModuleId, Identified)> {
    let mut opened = Vec::new();
    for id in modules {
        let is_incomplete = |module: &Module| module.timestamp == 0 || module.pdb.is_none();
        if !trace.module(id).is_some_and(is_incomplete) {
            continue;
        }
        // The file may have been replaced since it was loaded.
        let Some(verdict) = at_its_path(trace, id) else { continue };
        let Some(module) = trace.modules.get_mut(id.0 as usize) else { continue };
        // What cannot be read stays as it is, and the symbols say so.
        let result = match verdict {
            Checked::Matches => match complete(module, &file_of(module)) {
                Ok(()) => Identified::Same,
                Err(error) => Identified::Unreadable(error),
            },
            Checked::Differs(what) => Identified::Another(what),
            Checked::Unreadable(error) => Identified::Unreadable(error),
        };
        opened.push((id, result));
    }
    opened
}

/// Completes the modules without PDB ids from image files in these folders and below. Gives those that have ids now.
pub fn identify_in(trace: &mut Trace, folders: &[PathBuf]) -> Vec<ModuleId> {
    let path = SymbolPath::default().behind_trees(folders.iter().cloned());
    let options = StoreOptions { offline: true, user_cache: None, ..StoreOptions::default() };
    let store = Store::new(&path, options);
    let is_incomplete = |module: &Module| module.pdb.is_none() && module.managed_pdb.is_none();
    let ids = (0..).map(ModuleId).zip(&trace.modules).filter(|(_, module)| is_incomplete(module));
    let wanted: Vec<(ModuleId, ImageFacts)> =
        ids.filter_map(|(id, _)| Some((id, image_facts::of_module(trace, id)?))).collect();
    let request = |(_, facts): &(ModuleId, ImageFacts)| {
        let facts = facts.clone();
        let key = FileKey::image(&facts.path.to_string_lossy(), facts.timestamp.unwrap_or(0), facts.size);
        Request {
            key,
            hints: Vec::new(),
            ask_servers: false,
            verify: Box::new(move |path| facts.check(path)),
        }
    };
    let requests: Vec<Request<'_>> = wanted.iter().map(request).collect();
    let found = store.find_all(&requests, &|_, _| ());
    let mut identified = Vec::new();
    for ((id, _), lookup) in wanted.iter().zip(found) {
        let module = trace.modules.get_mut(id.0 as usize);
        let Some((module, found)) = module.zip(lookup.found) else { continue };
        if complete(module, &found.path).is_ok() && !is_incomplete(module) {
            identified.push(*id);
        }
    }
    identified
}

fn complete(module: &mut Module, file: &Path) -> Result<(), String> {
    let bytes = Mapped::open(file).map_err(|error| error.to_string())?;
    let image = Image::parse(&bytes).map_err(|error| error.to_string())?;
    module.timestamp = image.timestamp;
    let (native, il) = (image.native_pdb(), image.il_pdb());
    let il = il.filter(|il| native.as_ref().is_none_or(|native| native.id != il.id));
    for (place, pdb) in [(&mut module.pdb, native), (&mut module.managed_pdb, il)] {
        let known = pdb.map(|pdb| PdbId { name: pdb.path, id: pdb.id });
        *place = place.take().or(known);
    }
    Ok(())
}
