//! The files of this machine tell what a live session does not. A recording gets the link times and PDB ids of its
//! images when it is merged; a live one has them only of images that are loaded while it runs.

use etwprof::mmap::Mapped;
use etwprof::profile::{Filter, Naming, Profile};
use etwprof::symbols::Wanted;
use etwprof::symbols::identity::at_its_path;
use etwprof::symbols::lookup::Verdict;
use etwprof::symbols::pe::{Image, PdbKind};
use etwprof::trace::{Module, PdbId, Trace};

/// Completes the modules that kept samples hit, from their files. Gives the files, with what came of opening each.
pub(super) fn identify(trace: &mut Trace, filter: &Filter) -> Vec<(String, String)> {
    let wanted = Wanted::default();
    let mut opened = Vec::new();
    Profile::new(trace, filter, &wanted, Naming { inlined: false, ..Naming::default() });
    for id in wanted.addresses().into_keys() {
        let is_incomplete = |module: &Module| module.timestamp == 0 || module.pdb.is_none();
        if !trace.module(id).is_some_and(is_incomplete) {
            continue;
        }
        // The file may have been replaced since it was loaded.
        let Some(verdict) = at_its_path(trace, id) else { continue };
        let Some(module) = trace.modules.get_mut(id.0 as usize) else { continue };
        // What cannot be read stays as it is, and the symbols say so.
        let result = match verdict {
            Verdict::Matches => match complete(module) {
                Ok(()) => "opened, and it is the one".to_owned(),
                Err(error) => error,
            },
            Verdict::Differs(what) => format!("another build: {what}"),
            Verdict::Unreadable(error) => format!("cannot be read: {error}"),
        };
        opened.push((module.path.clone(), result));
    }
    opened
}

fn complete(module: &mut Module) -> Result<(), String> {
    let bytes = Mapped::open(module.path.as_ref()).map_err(|error| format!("cannot be opened: {error}"))?;
    let image = Image::parse(&bytes).map_err(|error| format!("cannot be read: {error}"))?;
    module.timestamp = image.timestamp;
    for pdb in image.pdbs() {
        let place = match pdb.kind {
            PdbKind::Windows if module.pdb.is_none() => &mut module.pdb,
            PdbKind::Portable if module.managed_pdb.is_none() => &mut module.managed_pdb,
            _ => continue,
        };
        *place = Some(PdbId { name: pdb.path, guid: pdb.id.guid, age: pdb.id.age });
    }
    Ok(())
}
