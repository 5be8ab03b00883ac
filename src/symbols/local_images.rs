//! The files of this machine say what a live session does not. A recording gets the link times and PDB ids of its
//! images when it is merged; a live one has them only of images that are loaded while it runs.

use super::find::lookup::Checked;
use super::image_facts::{at_its_path, file_of};
use super::read::pe::{Image, PdbKind};
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
            Checked::Matches => match complete(module) {
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

fn complete(module: &mut Module) -> Result<(), String> {
    let bytes = Mapped::open(&file_of(module)).map_err(|error| error.to_string())?;
    let image = Image::parse(&bytes).map_err(|error| error.to_string())?;
    module.timestamp = image.timestamp;
    for pdb in image.pdbs() {
        let place = match pdb.kind {
            PdbKind::Windows if module.pdb.is_none() => &mut module.pdb,
            PdbKind::Portable if module.managed_pdb.is_none() => &mut module.managed_pdb,
            _ => continue,
        };
        *place = Some(PdbId { name: pdb.path, id: pdb.id });
    }
    Ok(())
}
