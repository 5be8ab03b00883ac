//! Modules, assemblies and application domains.

use crate::bytes::{Reader, Utf16};
use crate::debug_id::DebugId;
use crate::guid::Guid;

use super::Phase;

/// The flags of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModuleFlags(pub u32);

impl ModuleFlags {
    /// It has an NGEN image: a second file, of native code.
    pub fn is_native(self) -> bool {
        self.0 & 0x2 != 0
    }

    /// It has no file.
    pub fn is_dynamic(self) -> bool {
        self.0 & 0x4 != 0
    }

    /// Its own file holds ReadyToRun code.
    pub fn is_ready_to_run(self) -> bool {
        self.0 & 0x20 != 0
    }
}

/// What finds a PDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdbSignature<'a> {
    /// What the PDB carries.
    pub id: DebugId,
    /// The path that the compiler wrote.
    pub path: Utf16<'a>,
}

/// A module was loaded, unloaded, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle: an address, so other processes and times may use it for another module.
    pub id: u64,
    /// The runtime's handle of its assembly.
    pub assembly: u64,
    /// What it is made of.
    pub flags: ModuleFlags,
    /// The file of its IL; only a name where it has none.
    pub il_path: Utf16<'a>,
    /// The file of its NGEN code; empty where it has none.
    pub native_path: Utf16<'a>,
    /// Which runtime of the process; `None` in version 0.
    pub instance: Option<u16>,
    /// The PDB of its IL; from version 2 on.
    pub managed_pdb: Option<PdbSignature<'a>>,
    /// The PDB of its precompiled code; from version 2 on.
    pub native_pdb: Option<PdbSignature<'a>>,
}

/// Module id u64, assembly id u64, flags u32, reserved u32, two paths; from version 1 on the runtime instance u16;
/// from version 2 on two PDBs (GUID, age u32, path). Version 2 verified on net.4.5.2.x64.etl and the diaghub session.
pub(super) fn decode_module<'a>(r: &mut Reader<'a>, version: u8, phase: Phase) -> Option<Module<'a>> {
    let (id, assembly, flags) = (r.u64()?, r.u64()?, ModuleFlags(r.u32()?));
    r.skip(4)?;
    let pdb = |r: &mut Reader<'a>| {
        let (guid, age) = (r.guid()?, r.u32()?);
        let path = r.utf16();
        (version >= 2 && guid != Guid::ZERO).then_some(PdbSignature { id: DebugId { guid, age }, path })
    };
    Some(Module {
        phase,
        id,
        assembly,
        flags,
        il_path: r.utf16(),
        native_path: r.utf16(),
        instance: if version >= 1 { r.u16() } else { None },
        managed_pdb: if version >= 2 { pdb(r) } else { None },
        native_pdb: if version >= 2 { pdb(r) } else { None },
    })
}

/// A module was loaded into an application domain, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainModule<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle of the module.
    pub id: u64,
    /// The runtime's handle of its assembly.
    pub assembly: u64,
    /// The runtime's handle of the domain.
    pub domain: u64,
    /// What it is made of.
    pub flags: ModuleFlags,
    /// The file of its IL.
    pub il_path: Utf16<'a>,
    /// The file of its NGEN code; empty where it has none.
    pub native_path: Utf16<'a>,
    /// Which runtime of the process; `None` in version 0.
    pub instance: Option<u16>,
}

/// Module id u64, assembly id u64, domain id u64, flags u32, reserved u32, two paths; from version 1 on the runtime
/// instance u16. Version 1 verified on net.4.5.2.x64.etl.
pub(super) fn decode_domain_module<'a>(
    r: &mut Reader<'a>,
    version: u8,
    phase: Phase,
) -> Option<DomainModule<'a>> {
    let (id, assembly, domain, flags) = (r.u64()?, r.u64()?, r.u64()?, ModuleFlags(r.u32()?));
    r.skip(4)?;
    let (il_path, native_path) = (r.utf16(), r.utf16());
    let instance = if version >= 1 { r.u16() } else { None };
    Some(DomainModule { phase, id, assembly, domain, flags, il_path, native_path, instance })
}

/// An assembly was loaded, unloaded, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assembly<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle.
    pub id: u64,
    /// The runtime's handle of its domain.
    pub domain: u64,
    /// What it is.
    pub flags: u32,
    /// Its full name: `System.Linq, Version=…`.
    pub full_name: Utf16<'a>,
    /// Which runtime of the process; `None` in version 0.
    pub instance: Option<u16>,
}

/// Assembly id u64, domain id u64, from version 1 on a binding id u64, flags u32, full name, from version 1 on the
/// runtime instance u16. Version 1 verified on net.4.5.2.x64.etl.
pub(super) fn decode_assembly<'a>(r: &mut Reader<'a>, version: u8, phase: Phase) -> Option<Assembly<'a>> {
    let (id, domain) = (r.u64()?, r.u64()?);
    if version >= 1 {
        r.skip(8)?;
    }
    let (flags, full_name) = (r.u32()?, r.utf16());
    let instance = if version >= 1 { r.u16() } else { None };
    Some(Assembly { phase, id, domain, flags, full_name, instance })
}

/// An application domain was made, unloaded, or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppDomain<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle.
    pub id: u64,
    /// What it is.
    pub flags: u32,
    /// Its name.
    pub name: Utf16<'a>,
    /// Its number in the process; from version 1 on.
    pub index: Option<u32>,
    /// Which runtime of the process; `None` in version 0.
    pub instance: Option<u16>,
}

/// Domain id u64, flags u32, name; from version 1 on index u32 and the runtime instance u16. Version 1 verified on
/// net.4.5.2.x64.etl.
pub(super) fn decode_app_domain<'a>(r: &mut Reader<'a>, version: u8, phase: Phase) -> Option<AppDomain<'a>> {
    let (id, flags, name) = (r.u64()?, r.u32()?, r.utf16());
    let (index, instance) = if version >= 1 { (r.u32(), r.u16()) } else { (None, None) };
    Some(AppDomain { phase, id, flags, name, index, instance })
}
