//! The signature of an instantiation, and the names of methods.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::super::cursor::Cursor;
use super::super::metadata::names::{MemberParent, TypeToken};
use super::super::metadata::signature::{NoModules, Scope, Spelling, TypeWriter, UNKNOWN, skip_type};
use super::super::metadata::{Metadata, Modules};
use super::{R2rImage, Spelled};
use crate::symbols::read::spelling::method::RawName;

/// Method-signature flags (dotnet/runtime, readytorun.h, ReadyToRunMethodSigFlags).
const METHOD_INSTANTIATION: u32 = 0x04;
const SLOT_INSTEAD_OF_TOKEN: u32 = 0x08;
const MEMBER_REF_TOKEN: u32 = 0x10;
const CONSTRAINED: u32 = 0x20;
const OWNER_TYPE: u32 = 0x40;
const UPDATE_CONTEXT: u32 = 0x80;

/// Element types that a module override can stand in or behind.
const GENERIC_INST: u8 = 0x15;
const MODULE_OVERRIDE: u8 = 0x3F;

/// A taken-apart instance signature: positions in it, nothing resolved.
pub(super) struct InstanceSignature<'d> {
    flags: u32,
    /// The module that tokens belong to, when it is not the image's own.
    module: Option<u32>,
    owner: Option<Cursor<'d>>,
    row: u32,
    /// Count and types of the method's own type arguments.
    arguments: Option<(u32, Cursor<'d>)>,
    /// What follows: the entry point.
    pub(super) end: Cursor<'d>,
}

impl<'d> InstanceSignature<'d> {
    pub(super) fn read(section: &'d [u8], offset: u32) -> Option<Self> {
        let mut cursor = Cursor::new(section, offset as usize);
        let flags = cursor.compressed()?;
        let module = if flags & UPDATE_CONTEXT != 0 { Some(cursor.compressed()?) } else { None };
        let owner = cursor;
        if flags & OWNER_TYPE != 0 {
            skip_type(&mut cursor)?;
        }
        let row = cursor.compressed()?;
        let mut arguments = None;
        if flags & METHOD_INSTANTIATION != 0 {
            let count = cursor.compressed()?;
            arguments = Some((count, cursor));
            for _ in 0..count {
                skip_type(&mut cursor)?;
            }
        }
        if flags & CONSTRAINED != 0 {
            skip_type(&mut cursor)?;
        }
        let owner = (flags & OWNER_TYPE != 0).then_some(owner);
        Some(InstanceSignature { flags, module, owner, row, arguments, end: cursor })
    }

    /// The module that the method's token belongs to: the signature's, or the one its owner type is marked with.
    fn method_module(&self) -> Option<u32> {
        let mut owner = self.owner?;
        if self.module.is_some() {
            return self.module;
        }
        if owner.peek() == Some(GENERIC_INST) {
            owner.u8();
        }
        (owner.u8()? == MODULE_OVERRIDE).then(|| owner.compressed())?
    }
}

impl<'d> R2rImage<'d> {
    pub(super) fn spell_definition(&self, component: u32, row: u32) -> Spelled<'d> {
        let mut name = RawName::default();
        let Some(component) = self.components.get(component as usize) else { return Spelled::default() };
        let asked = Asked::new(self);
        let scope = component.metadata.as_ref().map_or_else(|| asked.scope(component.name), Scope::Here);
        push_definition(scope, row, true, &mut name);
        asked.spelled(name)
    }

    /// The assembly and row of the method that an instance signature is about; `None` where it names none by its row.
    pub(super) fn instance_definition(&self, offset: u32) -> Option<(&'d str, u32)> {
        let signature = InstanceSignature::read(self.instances, offset)?;
        if signature.flags & (SLOT_INSTEAD_OF_TOKEN | MEMBER_REF_TOKEN) != 0 {
            return None;
        }
        let assembly = match (signature.method_module().or(signature.module), self.components.as_slice()) {
            (Some(module), _) => self.name(module)?,
            (None, [only]) => only.name,
            (None, _) => CORE_LIBRARY,
        };
        Some((assembly, signature.row))
    }

    pub(super) fn spell_instance(&self, offset: u32) -> Spelled<'d> {
        let mut name = RawName::default();
        let Some(signature) = InstanceSignature::read(self.instances, offset) else {
            return Spelled::default();
        };
        let asked = Asked::new(self);
        let outer = match (signature.module, self.components.as_slice()) {
            (Some(module), _) => Scope::of(&asked, module),
            (None, [only]) => asked.scope(only.name),
            // In a composite image only the core library's primitive types stand without a module.
            (None, _) => Scope::named(self.metadata_named(CORE_LIBRARY), CORE_LIBRARY),
        };
        let scope = match (signature.method_module(), outer) {
            (Some(module), _) => Scope::of(&asked, module),
            (None, Scope::Elsewhere(assembly)) => asked.scope(assembly),
            (None, here) => here,
        };

        let mut types = TypeWriter::new(&asked, outer, Spelling::Name);
        if let Some(mut owner) = signature.owner {
            types.push_type(&mut owner, &mut name.type_name);
        }
        if let Some((count, mut arguments)) = signature.arguments {
            types.push_arguments(count, &mut arguments, &mut name.type_args);
        }
        let owner_missing = signature.owner.is_none();
        if signature.flags & SLOT_INSTEAD_OF_TOKEN != 0 {
            name.method = format!("slot {}", signature.row);
        } else if signature.flags & MEMBER_REF_TOKEN != 0 {
            push_reference(scope, signature.row, owner_missing, &mut name);
        } else {
            push_definition(scope, signature.row, owner_missing, &mut name);
        }
        asked.spelled(name)
    }
}

/// The modules of an image while a name is made; it remembers whose metadata was asked for and is not at hand.
struct Asked<'i, 'd> {
    image: &'i R2rImage<'d>,
    missing: RefCell<BTreeSet<&'d str>>,
}

impl<'i, 'd> Asked<'i, 'd> {
    fn new(image: &'i R2rImage<'d>) -> Self {
        Asked { image, missing: RefCell::default() }
    }

    /// The tokens of an assembly.
    fn scope(&self, assembly: &'d str) -> Scope<'i, 'd> {
        let metadata = self.image.metadata_named(assembly);
        if metadata.is_none() {
            self.missing.borrow_mut().insert(assembly);
        }
        Scope::named(metadata, assembly)
    }

    fn spelled(self, name: RawName) -> Spelled<'d> {
        Spelled { name, missing: self.missing.into_inner() }
    }
}

impl<'d> Modules<'d> for Asked<'_, 'd> {
    fn metadata(&self, index: u32) -> Option<&Metadata<'d>> {
        let found = self.image.metadata(index);
        if found.is_none() {
            self.missing.borrow_mut().insert(self.image.name(index).unwrap_or(UNKNOWN));
        }
        found
    }

    fn name(&self, index: u32) -> Option<&'d str> {
        self.image.name(index)
    }
}

const CORE_LIBRARY: &str = "System.Private.CoreLib";

/// Fills in a method definition's name and signature, and its type unless that is known already.
fn push_definition(scope: Scope<'_, '_>, row: u32, with_type: bool, name: &mut RawName) {
    let token = 0x0600_0000 | row;
    let metadata = match scope {
        Scope::Here(metadata) => metadata,
        Scope::Elsewhere(assembly) => {
            name.method = format!("{assembly}!0x{token:08X}");
            return;
        }
    };
    if with_type && let Some(owner) = metadata.method_owner(row) {
        // Methods outside any type belong to the pseudo type of row 1, which the runtime names like any other.
        let _ = metadata.push_type_name(owner, &mut name.type_name);
    }
    match metadata.method_def(row) {
        Some((method, signature)) => {
            name.method.push_str(method);
            push_signature(scope, signature, &mut name.signature);
        }
        None => name.method = format!("0x{token:08X}"),
    }
}

/// The same from a member reference.
fn push_reference(scope: Scope<'_, '_>, row: u32, with_type: bool, name: &mut RawName) {
    let token = 0x0A00_0000 | row;
    let metadata = match scope {
        Scope::Here(metadata) => metadata,
        Scope::Elsewhere(assembly) => {
            name.method = format!("{assembly}!0x{token:08X}");
            return;
        }
    };
    let Some((parent, method, signature)) = metadata.member_ref(row) else {
        name.method = format!("0x{token:08X}");
        return;
    };
    if with_type && let MemberParent::Type(parent) = parent {
        push_parent(scope, parent, &mut name.type_name);
    }
    name.method.push_str(method);
    push_signature(scope, signature, &mut name.signature);
}

fn push_parent<'d>(scope: Scope<'_, 'd>, parent: TypeToken, out: &mut String) {
    if let (Scope::Here(metadata), TypeToken::Spec(row)) = (scope, parent)
        && let Some(spec) = metadata.type_spec(row)
    {
        TypeWriter::new(&NoModules, scope, Spelling::Name).push_type(&mut Cursor::new(spec, 0), out);
    } else {
        scope.push_type(parent, out);
    }
}

/// A signature that cannot be read to its end is left out: half a signature would be a wrong one.
fn push_signature<'d>(scope: Scope<'_, 'd>, signature: &'d [u8], out: &mut String) {
    let mut types = TypeWriter::new(&NoModules, scope, Spelling::Il);
    if types.push_method(&mut Cursor::new(signature, 0), "  ", out).is_none() {
        out.clear();
    }
}
