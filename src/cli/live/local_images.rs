//! The files of this machine tell what a live session does not. A recording gets the link times and PDB ids of its
//! images when it is merged; a live one has them only of images that are loaded while it runs.

use etwprof::mmap::Mapped;
use etwprof::profile::{Filter, Naming, Profile};
use etwprof::symbols::Wanted;
use etwprof::symbols::identity::is_at_its_path;
use etwprof::symbols::pe::{Image, PdbKind};
use etwprof::trace::{Module, PdbId, Trace};

/// Completes the modules that kept samples hit, from their files.
pub(super) fn identify(trace: &mut Trace, filter: &Filter) {
    let wanted = Wanted::default();
    Profile::new(trace, filter, &wanted, Naming { inlined: false, ..Naming::default() });
    for module in wanted.addresses().into_keys() {
        // The file may have been replaced since it was loaded.
        let is_incomplete = |module: &Module| module.timestamp == 0 || module.pdb.is_none();
        if trace.module(module).is_some_and(is_incomplete)
            && is_at_its_path(trace, module)
            && let Some(module) = trace.modules.get_mut(module.0 as usize)
        {
            // What cannot be read stays as it is, and is told as such with the symbols.
            let _ = complete(module);
        }
    }
}

fn complete(module: &mut Module) -> Option<()> {
    let bytes = Mapped::open(module.path.as_ref()).ok()?;
    let image = Image::parse(&bytes).ok()?;
    module.timestamp = image.timestamp;
    for pdb in image.pdbs() {
        let place = match pdb.kind {
            PdbKind::Windows if module.pdb.is_none() => &mut module.pdb,
            PdbKind::Portable if module.managed_pdb.is_none() => &mut module.managed_pdb,
            _ => continue,
        };
        *place = Some(PdbId { name: pdb.path, guid: pdb.id.guid, age: pdb.id.age });
    }
    Some(())
}
