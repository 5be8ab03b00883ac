//! The ReadyToRun header and its sections.

use super::super::cursor::Cursor;
use super::super::metadata::Metadata;
use super::R2rError;
use crate::symbols::read::pe::{CLR_DIRECTORY, EXPORT_DIRECTORY, Image};

/// The sections that names and source lines need, by their numbers (dotnet/runtime, readytorun.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum SectionKind {
    CompilerIdentifier = 100,
    RuntimeFunctions = 102,
    MethodEntryPoints = 103,
    DebugInfo = 105,
    InstanceEntryPoints = 109,
    ManifestMetadata = 112,
    ComponentAssemblies = 115,
    OwnerComposite = 116,
    ManifestAssemblyMvids = 118,
    HotColdMap = 120,
}

/// RVA and size.
pub(super) type Extent = (u32, u32);

pub(super) struct Header {
    pub(super) version: (u16, u16),
    sections: Vec<(u32, Extent)>,
}

/// The whole .NET framework is some 200 assemblies; what is known of each takes 2 KB.
const MAX_COMPONENTS: usize = 4096;

/// No format has more than 24 sections.
const MAX_SECTIONS: u32 = 256;

const RTR: u32 = u32::from_le_bytes(*b"RTR\0");
const NGE: u32 = u32::from_le_bytes(*b"NGE\0");

impl Header {
    /// Finds the header: the COR header's managed native header, or the export of a composite image.
    pub(super) fn find(pe: &Image<'_>) -> Result<Self, R2rError> {
        let native = match (exported(pe), pe.directory(CLR_DIRECTORY)) {
            (Some(rva), _) => rva,
            (None, Some(cor_header)) => cor_field(pe, cor_header.rva, 64)?,
            (None, None) => return Err(R2rError::NotManaged),
        };
        if native == 0 {
            return Err(R2rError::IlOnly);
        }
        let cut = R2rError::Cut { what: "the managed native header", rva: native };
        let Some(mut cursor) = pe.bytes_from(native).map(|bytes| Cursor::new(bytes, 0)) else {
            return Err(cut);
        };
        match cursor.u32() {
            Some(RTR) => {}
            Some(NGE) => return Err(R2rError::Ngen),
            Some(signature) => return Err(R2rError::Signature { rva: native, signature }),
            None => return Err(cut),
        }
        let (Some(major), Some(minor)) = (cursor.u16(), cursor.u16()) else { return Err(cut) };
        let header = Header { version: (major, minor), sections: sections(&mut cursor).ok_or(cut)? };
        if let Some(extent) = header.section(SectionKind::OwnerComposite) {
            let name = bytes(pe, extent).unwrap_or_default();
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            return Err(R2rError::InComposite { file: String::from_utf8_lossy(name).into_owned() });
        }
        Ok(header)
    }

    pub(super) fn section(&self, kind: SectionKind) -> Option<Extent> {
        self.sections.iter().find(|(number, _)| *number == kind as u32).map(|&(_, extent)| extent)
    }

    /// The method entry points of each assembly in the image.
    pub(super) fn entry_point_sections(&self, pe: &Image<'_>) -> Vec<Option<Extent>> {
        if self.section(SectionKind::ComponentAssemblies).is_none() {
            return vec![self.section(SectionKind::MethodEntryPoints)];
        }
        self.components(pe)
            .map(|(_, core_header)| {
                let component = sections(&mut Cursor::new(pe.bytes_from(core_header)?, 0))?;
                let (_, extent) = component
                    .into_iter()
                    .find(|(number, _)| *number == SectionKind::MethodEntryPoints as u32)?;
                Some(extent)
            })
            .collect()
    }

    /// The RVAs of the COR headers in a composite image; `None` where the IL stayed in a file of its own.
    pub(super) fn component_cor_headers(&self, pe: &Image<'_>) -> Vec<Option<u32>> {
        self.components(pe).map(|(cor_header, _)| (cor_header != 0).then_some(cor_header)).collect()
    }

    /// RVAs of COR header and core header of each component.
    fn components(&self, pe: &Image<'_>) -> impl Iterator<Item = (u32, u32)> {
        let table = self.section(SectionKind::ComponentAssemblies).and_then(|extent| bytes(pe, extent));
        table.unwrap_or_default().chunks_exact(16).take(MAX_COMPONENTS).filter_map(|row| {
            let mut cursor = Cursor::new(row, 0);
            let cor_header = cursor.u32()?;
            cursor.u32()?;
            Some((cor_header, cursor.u32()?))
        })
    }

    /// The row of the manifest's assembly references that a module index beyond the image's own references means;
    /// row 0 is the manifest itself. An image of one assembly skips row 0's index where the format has no use for
    /// it, a composite image does so since format 6.3, when the manifest got an index.
    pub(super) fn manifest_row(&self, index: u32, own_references: u32) -> Option<u32> {
        let beyond = index.checked_sub(own_references).filter(|&beyond| beyond > 0)?;
        let composite = self.section(SectionKind::ComponentAssemblies).is_some();
        if composite && self.version < (6, 3) { Some(beyond) } else { Some(beyond - 1) }
    }
}

/// The bytes of an extent, or as many as the file has.
pub(super) fn bytes<'d>(pe: &Image<'d>, (rva, size): Extent) -> Option<&'d [u8]> {
    let bytes = pe.bytes_from(rva)?;
    Some(bytes.get(..size as usize).unwrap_or(bytes))
}

/// Reads a core header: flags, count, sections.
fn sections(cursor: &mut Cursor<'_>) -> Option<Vec<(u32, Extent)>> {
    cursor.u32()?; // flags
    let count = cursor.u32()?;
    if count > MAX_SECTIONS {
        return None;
    }
    (0..count).map(|_| Some((cursor.u32()?, (cursor.u32()?, cursor.u32()?)))).collect()
}

/// The RVA that a composite image exports as `RTR_HEADER`. Its compiler writes the export tables in front of the
/// directory that points to them (dotnet/runtime, SectionBuilder.cs), so each is looked up by its own RVA.
fn exported(pe: &Image<'_>) -> Option<u32> {
    let directory = pe.directory(EXPORT_DIRECTORY)?;
    let mut cursor = Cursor::new(pe.bytes_from(directory.rva)?, 24);
    let [count, addresses, names, ordinals] = [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
    // The one export that is looked for is the only one, or one of a few.
    (0..count.min(64)).find_map(|index| {
        let word = |table: u32, at: usize| Cursor::new(pe.bytes_from(table)?, at).u32();
        let name = pe.bytes_from(word(names, 4 * index as usize)?)?;
        if !name.starts_with(b"RTR_HEADER\0") {
            return None;
        }
        let ordinal = Cursor::new(pe.bytes_from(ordinals)?, 2 * index as usize).u16()?;
        word(addresses, 4 * usize::from(ordinal))
    })
}

/// A 32-bit field of a COR header (ECMA-335 II.25.3.3).
fn cor_field(pe: &Image<'_>, cor_header: u32, offset: usize) -> Result<u32, R2rError> {
    pe.bytes_from(cor_header)
        .and_then(|bytes| Cursor::new(bytes, offset).u32())
        .ok_or(R2rError::Cut { what: "the COR header", rva: cor_header })
}

/// The metadata that a COR header points to.
pub(super) fn metadata_of<'d>(pe: &Image<'d>, cor_header: u32) -> Result<Metadata<'d>, R2rError> {
    let rva = cor_field(pe, cor_header, 8)?;
    let size = cor_field(pe, cor_header, 12)?;
    let root = bytes(pe, (rva, size)).ok_or(R2rError::Cut { what: "the metadata", rva })?;
    Ok(Metadata::parse(root)?)
}

/// The metadata that is an image's own: of a precompiled assembly, of a component of a composite image, or of IL alone.
///
/// # Errors
/// [`R2rError`] if the image has no COR header, or its metadata cannot be read.
pub fn own_metadata<'d>(pe: &Image<'d>) -> Result<Metadata<'d>, R2rError> {
    metadata_of(pe, pe.directory(CLR_DIRECTORY).ok_or(R2rError::NotManaged)?.rva)
}
