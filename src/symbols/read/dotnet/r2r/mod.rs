//! ReadyToRun images: which native code belongs to which method.
//!
//! The managed native header of a precompiled assembly begins with `RTR` and is a list of typed sections
//! (dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md). Four of them name code:
//!
//! - *runtime functions*: every piece of code with its unwind data, sorted by RVA. A method is one or more of them in a
//!   row: its body, then its funclets (exception handlers).
//! - *method entry points*: a sparse array from the row of a method definition to the index of its first runtime
//!   function. Only methods that are not generic are there.
//! - *instance entry points*: a hash table of generic instantiations. Each has a signature, with the type arguments
//!   written out, and the index of its first runtime function.
//! - *hot/cold map* (format 8): which later runtime functions are the cold part of which method.
//!
//! A fifth, the *debug information*, says from which IL the code of each method came: [`Method::il_map`].
//!
//! A *composite* image holds the code of several assemblies. Each has method entry points of its own; the rest is
//! common. Their metadata may lie in the composite image or in the assemblies' own files: [`Method::spell`] says whose
//! is missing, [`R2rImage::reference`] which build of it is needed, and [`R2rImage::add_reference`] takes it.
//!
//! [`R2rImage::parse`] walks both tables once and keeps 12 bytes for a method. Names are made when asked for.

mod debug_info;
mod functions;
mod header;
mod instance;
mod native_format;

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::metadata::{Metadata, MetadataError, Modules};
use crate::guid::Guid;
use crate::symbols::read::pe::{Image, Machine};
use crate::symbols::read::spelling::method::RawName;
use functions::Functions;
pub use header::own_metadata;
use header::{Header, SectionKind};
use instance::InstanceSignature;
use native_format::{NativeArray, NativeHashtable};

/// Why an image gives no names of precompiled methods.
#[derive(Debug, thiserror::Error)]
pub enum R2rError {
    /// Neither a COR header nor the header of a composite image.
    #[error("not a .NET image")]
    NotManaged,
    /// A .NET image without native code: all its methods are JIT-compiled.
    #[error("the image holds IL only, no precompiled code")]
    IlOnly,
    /// A native image of NGEN (.NET Framework, .NET Core 1 and 2): its names come from its `.ni.pdb`.
    #[error("an NGEN image: its names are in its .ni.pdb")]
    Ngen,
    /// The code of this assembly is in a composite image.
    #[error("the precompiled code is in the composite image {file}")]
    InComposite {
        /// The composite image's file name.
        file: String,
    },
    /// The header at this RVA begins with something else.
    #[error("unknown native header signature {signature:#010x} at RVA {rva:#x}")]
    Signature {
        /// Where the header is.
        rva: u32,
        /// Its first four bytes, little-endian.
        signature: u32,
    },
    /// A header or table that must be there lies outside the file.
    #[error("{what} is not in the file (RVA {rva:#x})")]
    Cut {
        /// What was looked for.
        what: &'static str,
        /// Where it should be.
        rva: u32,
    },
    /// The image is for a processor whose runtime-function form is not known.
    #[error("unknown machine {0:?}")]
    Machine(Machine),
    /// The image's own metadata cannot be read.
    #[error("metadata: {0}")]
    Metadata(MetadataError),
}

impl From<MetadataError> for R2rError {
    fn from(error: MetadataError) -> R2rError {
        R2rError::Metadata(error)
    }
}

/// Where a method's name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A method definition of a component (0 in an image of one assembly).
    Definition { component: u32, row: u32 },
    /// An instance signature, at this offset of the hash table.
    Instance { offset: u32 },
}

/// A method and its first runtime function.
#[derive(Debug, Clone, Copy)]
struct Entry {
    function: u32,
    source: Source,
}

/// An assembly that an image refers to, as far as the image identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyReference {
    /// Its simple name.
    pub name: String,
    /// Its version: major, minor, build, revision.
    pub version: Option<[u16; 4]>,
    /// The build that the code was compiled with, from format 5.3 on.
    pub mvid: Option<Guid>,
}

/// A method's name with what it lacks.
#[derive(Clone, Debug, Default)]
pub struct Spelled<'d> {
    /// The name; what cannot be read is left out or stands as a token.
    pub name: RawName,
    /// The simple names of the assemblies whose metadata would give more of it.
    pub missing: BTreeSet<&'d str>,
}

/// One assembly in the image.
struct Component<'d> {
    name: &'d str,
    metadata: Option<Metadata<'d>>,
}

/// A precompiled image, parsed once; borrows the file's bytes.
pub struct R2rImage<'d> {
    pe: Image<'d>,
    header: Header,
    components: Vec<Component<'d>>,
    /// The image's manifest: a small metadata blob that names further assemblies.
    manifest: Option<Metadata<'d>>,
    /// Metadata of assemblies that lie apart, by their simple names.
    references: FxHashMap<&'d str, Metadata<'d>>,
    functions: Functions<'d>,
    /// By first runtime function.
    entries: Vec<Entry>,
    /// The bytes from the start of the instance hash table.
    instances: &'d [u8],
    /// (first cold function, first hot function) of each split method, by the first.
    cold: Vec<(u32, u32)>,
}

impl<'d> R2rImage<'d> {
    /// Reads the tables of a precompiled image.
    pub fn parse(pe: &Image<'d>) -> Result<Self, R2rError> {
        let header = Header::find(pe)?;
        let composite = header.section(SectionKind::ComponentAssemblies).is_some();
        let manifest = header
            .section(SectionKind::ManifestMetadata)
            .and_then(|extent| Metadata::parse(header::bytes(pe, extent)?).ok());
        let components = if composite {
            composite_components(pe, &header, manifest.as_ref())
        } else {
            let metadata = header::own_metadata(pe)?;
            vec![Component { name: metadata.assembly_name().unwrap_or_default(), metadata: Some(metadata) }]
        };
        let functions = Functions::find(pe, &header)?;
        let mut image = R2rImage {
            instances: header
                .section(SectionKind::InstanceEntryPoints)
                .and_then(|extent| header::bytes(pe, extent))
                .unwrap_or_default(),
            cold: functions::cold_parts(pe, &header),
            pe: pe.clone(),
            header,
            components,
            manifest,
            references: FxHashMap::default(),
            functions,
            entries: Vec::new(),
        };
        image.collect_entries();
        Ok(image)
    }

    /// Walks the entry points of the components and of the instances. Entries that are cut or point nowhere are left
    /// out.
    fn collect_entries(&mut self) {
        let count = self.functions.len();
        let mut entries = Vec::new();
        let mut bytes = self.pe.data().len();
        for (component, table) in (0..).zip(self.header.entry_point_sections(&self.pe)) {
            let Some(array) = table.and_then(|extent| NativeArray::parse(header::bytes(&self.pe, extent)?))
            else {
                continue;
            };
            // A method takes more than a byte of an image; but the parts of such an array may be one and the same,
            // and so may the arrays.
            let Some(left) = bytes.checked_sub(array.len()) else { continue };
            bytes = left;
            entries.extend(array.iter().filter_map(|(index, cursor)| {
                let function = functions::entry_function(cursor)?;
                let source = Source::Definition { component, row: index + 1 };
                (function < count).then_some(Entry { function, source })
            }));
        }
        if let Some(table) = NativeHashtable::parse(self.instances) {
            entries.extend(table.iter().filter_map(|offset| {
                let function =
                    functions::entry_function(InstanceSignature::read(self.instances, offset)?.end)?;
                (function < count).then_some(Entry { function, source: Source::Instance { offset } })
            }));
        }
        entries.sort_by_key(|entry| entry.function);
        self.entries = entries;
    }

    /// Major and minor version of the ReadyToRun format.
    pub fn version(&self) -> (u16, u16) {
        self.header.version
    }

    /// The compiler's own words about itself: `Crossgen2 6.0.21.46421`.
    pub fn compiler(&self) -> Option<&'d str> {
        let bytes = header::bytes(&self.pe, self.header.section(SectionKind::CompilerIdentifier)?)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(bytes.get(..end)?).ok()
    }

    /// Whether the image holds the code of several assemblies.
    pub fn is_composite(&self) -> bool {
        self.header.section(SectionKind::ComponentAssemblies).is_some()
    }

    /// The simple names of the assemblies whose code this is: one, or those of a composite image.
    pub fn assemblies(&self) -> impl Iterator<Item = &'d str> {
        self.components.iter().map(|component| component.name)
    }

    /// Gives the metadata of another assembly. Instantiations that mix assemblies compiled together name types by
    /// the other assembly's tokens, and a composite image may leave all metadata in the assemblies' files; without
    /// it such a type reads `System.Private.CoreLib!0x02000123`.
    pub fn add_reference(&mut self, metadata: Metadata<'d>) {
        let Some(name) = metadata.assembly_name() else { return };
        match self.components.iter_mut().find(|component| component.name == name) {
            Some(component) => _ = component.metadata.get_or_insert(metadata),
            None => _ = self.references.insert(name, metadata),
        }
    }

    /// How the image identifies an assembly that it refers to; `None` if it does not.
    pub fn reference(&self, name: &str) -> Option<AssemblyReference> {
        let row_in = |metadata: &Metadata<'_>| {
            (1..=metadata.assembly_ref_count()).find(|row| metadata.assembly_ref_name(*row) == Some(name))
        };
        let named = |version, mvid| AssemblyReference { name: name.to_owned(), version, mvid };
        if let Some((manifest, row)) = self.manifest.as_ref().and_then(|all| Some((all, row_in(all)?))) {
            return Some(named(manifest.assembly_ref_version(row), self.mvid_of(row)));
        }
        let own = self.components.iter().filter_map(|component| component.metadata.as_ref());
        let (metadata, row) = own.filter_map(|metadata| Some((metadata, row_in(metadata)?))).next()?;
        Some(named(metadata.assembly_ref_version(row), None))
    }

    /// The MVID of an assembly that the manifest refers to: one record for each, in its order (format 5.3).
    fn mvid_of(&self, row: u32) -> Option<Guid> {
        let section = self.header.section(SectionKind::ManifestAssemblyMvids)?;
        let (records, _) = header::bytes(&self.pe, section)?.as_chunks::<16>();
        let mvid = Guid::from_bytes(records.get(row.checked_sub(1)? as usize)?);
        (mvid != Guid::from_u128(0)).then_some(mvid)
    }

    /// The size of the image's file, in bytes.
    pub(in crate::symbols) fn file_size(&self) -> usize {
        self.pe.data().len()
    }

    /// Every precompiled method, by address.
    pub fn methods(&self) -> impl Iterator<Item = Method<'_, 'd>> {
        (0..self.entries.len()).map(|index| Method { image: self, index })
    }

    /// How many pieces of code the image's runtime-function table has.
    pub fn function_count(&self) -> u32 {
        self.functions.len()
    }

    /// The RVA range of one of the [`function_count`](Self::function_count) pieces of code.
    pub fn function_range(&self, index: u32) -> Option<Range<u32>> {
        self.functions.range(index, &self.pe)
    }

    /// The method whose code covers `rva`, and how far into its code: bytes from the entry point through body and
    /// funclets, then on through the cold part. Of several methods with the same code, the first
    /// ([`Method::same_code`]).
    pub fn lookup(&self, rva: u32) -> Option<(Method<'_, 'd>, u32)> {
        let function = self.functions.containing(rva, &self.pe)?;
        let method = self.owner_of(function)?;
        let mut before = 0;
        for range in method.ranges() {
            if range.contains(&rva) {
                return Some((method, rva.saturating_sub(range.start).saturating_add(before)));
            }
            before = range.end.saturating_sub(range.start).saturating_add(before);
        }
        None
    }

    /// The method that a runtime function is a part of.
    fn owner_of(&self, function: u32) -> Option<Method<'_, 'd>> {
        let hot = match self.cold.partition_point(|&(cold, _)| cold <= function).checked_sub(1) {
            Some(part) => self.cold.get(part)?.1,
            None => function,
        };
        let index = self.entries.partition_point(|entry| entry.function <= hot).checked_sub(1)?;
        // Of two methods with the same code, the first.
        let first = self.entries.get(index)?.function;
        let index = self.entries.partition_point(|entry| entry.function < first);
        Some(Method { image: self, index })
    }

    /// Where the hot functions end.
    fn hot_end(&self) -> u32 {
        self.cold.first().map_or(self.functions.len(), |&(cold, _)| cold)
    }

    fn metadata_named(&self, name: &str) -> Option<&Metadata<'d>> {
        let component = self.components.iter().find(|component| component.name == name);
        component.and_then(|component| component.metadata.as_ref()).or_else(|| self.references.get(name))
    }
}

impl<'d> Modules<'d> for R2rImage<'d> {
    fn metadata(&self, index: u32) -> Option<&Metadata<'d>> {
        if let (0, [only]) = (index, self.components.as_slice()) {
            return only.metadata.as_ref();
        }
        let row = self.header.manifest_row(index, self.own_reference_count());
        if row == Some(0) {
            return self.manifest.as_ref();
        }
        // The manifest refers to the components first, in their order.
        let components = if self.is_composite() { self.components.as_slice() } else { &[] };
        if let Some(component) = row.and_then(|row| components.get((row as usize).checked_sub(1)?)) {
            return component.metadata.as_ref();
        }
        self.metadata_named(self.name(index)?)
    }

    /// The module's simple name. Index 0 is the image's own assembly; then come the assemblies its metadata refers
    /// to, then those that its manifest does.
    fn name(&self, index: u32) -> Option<&'d str> {
        let own = self.own_reference_count();
        if let (0, [only]) = (index, self.components.as_slice()) {
            return Some(only.name);
        }
        if index <= own {
            return self.components.first()?.metadata.as_ref()?.assembly_ref_name(index);
        }
        self.manifest.as_ref()?.assembly_ref_name(self.header.manifest_row(index, own)?)
    }
}

impl R2rImage<'_> {
    /// How many module indices mean the image's own assembly references; none in a composite image.
    fn own_reference_count(&self) -> u32 {
        match self.components.as_slice() {
            [only] if !self.is_composite() => only.metadata.as_ref().map_or(0, Metadata::assembly_ref_count),
            _ => 0,
        }
    }
}

/// The assemblies of a composite image: the manifest names them in the order of the section.
fn composite_components<'d>(
    pe: &Image<'d>,
    header: &Header,
    manifest: Option<&Metadata<'d>>,
) -> Vec<Component<'d>> {
    (1..)
        .zip(header.component_cor_headers(pe))
        .map(|(row, cor_header)| {
            let metadata = cor_header.and_then(|rva| header::metadata_of(pe, rva).ok());
            let named = manifest.and_then(|manifest| manifest.assembly_ref_name(row));
            let name = metadata.as_ref().and_then(Metadata::assembly_name).or(named).unwrap_or_default();
            Component { name, metadata }
        })
        .collect()
}

/// A precompiled method.
#[derive(Clone, Copy)]
pub struct Method<'i, 'd> {
    image: &'i R2rImage<'d>,
    index: usize,
}

impl<'i, 'd> Method<'i, 'd> {
    fn entry(&self) -> Option<Entry> {
        self.image.entries.get(self.index).copied()
    }

    /// The method's number in the image, by address; a key for caches.
    pub fn index(&self) -> usize {
        self.index
    }

    /// All methods that the very same code belongs to, this one included, in the image's order. P/Invokes of one
    /// signature share their marshalling code; a sample in it can be any of theirs.
    pub fn same_code(&self) -> impl Iterator<Item = Method<'i, 'd>> + use<'i, 'd> {
        let (image, entries) = (self.image, &self.image.entries);
        let function = self.entry().map_or(u32::MAX, |entry| entry.function);
        let first = entries.partition_point(|entry| entry.function < function);
        let after = entries.partition_point(|entry| entry.function <= function);
        (first..after).map(move |index| Method { image, index })
    }

    /// The metadata token `0x06......`; `None` for an instantiation, whose token may be another module's.
    pub fn token(&self) -> Option<u32> {
        match self.entry()?.source {
            Source::Definition { row, .. } => Some(0x0600_0000 | row),
            Source::Instance { .. } => None,
        }
    }

    /// The method that the compiler read: the simple name of its assembly and its token there, as its PDB has it. An
    /// instantiation has the token of its generic method, maybe of another assembly; `None` where the image names
    /// that by reference only.
    pub fn definition(&self) -> Option<(&'d str, u32)> {
        let (assembly, row) = match self.entry()?.source {
            Source::Definition { component, row } => {
                (self.image.components.get(component as usize)?.name, row)
            }
            Source::Instance { offset } => self.image.instance_definition(offset)?,
        };
        Some((assembly, 0x0600_0000 | row))
    }

    /// The name, made anew from the metadata. What cannot be read is left out or stands as a token.
    pub fn name(&self) -> RawName {
        self.spell().name
    }

    /// The same, with the assemblies whose metadata it lacks.
    pub fn spell(&self) -> Spelled<'d> {
        match self.entry().map(|entry| entry.source) {
            Some(Source::Definition { component, row }) => self.image.spell_definition(component, row),
            Some(Source::Instance { offset }) => self.image.spell_instance(offset),
            None => Spelled::default(),
        }
    }

    /// The RVA ranges of the method's code: body and funclets, then the cold part where there is one.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u32>> + use<'i, 'd> {
        let image = self.image;
        let first = self.entry().map_or(u32::MAX, |entry| entry.function);
        let after = image.entries.partition_point(|entry| entry.function <= first);
        let next = image.entries.get(after).map_or(u32::MAX, |entry| entry.function);
        let hot = first..next.min(image.hot_end());
        // Cold parts stand in the order of their methods.
        let part = image.cold.binary_search_by_key(&first, |&(_, hot)| hot).ok();
        let cold = part.and_then(|part| {
            let &(start, _) = image.cold.get(part)?;
            let end = image.cold.get(part + 1).map_or(image.functions.len(), |&(next, _)| next);
            Some(start..end)
        });
        [Some(hot), cold].into_iter().flatten().filter_map(|functions| {
            let last = functions.end.checked_sub(1).filter(|&last| last >= functions.start)?;
            let start = image.functions.range(functions.start, &image.pe)?.start;
            let end = image.functions.range(last, &image.pe)?.end;
            (start < end).then_some(start..end)
        })
    }
}
