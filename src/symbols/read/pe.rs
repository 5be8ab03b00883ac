//! Windows images (PE/COFF), as far as naming addresses needs them.
//!
//! An image is a list of **sections**: pieces of the file with the RVA (offset from the load address) at which
//! the loader places them. Beside it stand the **data directories**, each an RVA and a size:
//! exports (0), the exception table `.pdata` (3), debug records (6), the CLR header (14).
//! Public reference: "PE Format", learn.microsoft.com/windows/win32/debug/pe-format.
//!
//! A debug record of type CodeView (2) with the signature `RSDS` names the PDB: GUID, age, path. The minor version
//! `0x504D` ("PM") on the record marks a *portable* PDB (.NET), whose age takes no part in matching. A type 17
//! record holds a portable PDB inside the image, type 16 says that the build is reproducible, so that the
//! time stamp is a hash. (PE/COFF additions of .NET: dotnet/runtime, docs/design/specs/PE-COFF.md.)

use std::borrow::Cow;

use object::LittleEndian as LE;
use object::pe as format;
use object::read::pe::{ExportTable, ImageNtHeaders, ImageOptionalHeader};

use crate::debug_id::DebugId;
use crate::guid::Guid;
use crate::winpath;

/// Names are cut here, so that a damaged table cannot make each of its names as long as the file.
const MAX_NAME: usize = 4096;

/// Why an image cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PeError {
    /// No `MZ` and `PE` signatures where they belong.
    #[error("not a Windows image (no MZ/PE header)")]
    NotAnImage,
    /// The header begins well and then goes beyond the file or contradicts itself.
    #[error("damaged image header: {0}")]
    Header(&'static str),
}

/// The processor an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// 32-bit x86.
    X86,
    /// AMD64.
    X64,
    /// ARM64, also ARM64EC and ARM64X images, which carry x64 or both.
    Arm64,
    /// Anything else, by its number in the COFF header.
    Other(u16),
}

impl From<u16> for Machine {
    fn from(number: u16) -> Self {
        match number {
            0x014c => Machine::X86,
            0x8664 => Machine::X64,
            0xaa64 => Machine::Arm64,
            other => Machine::Other(other),
        }
    }
}

/// An RVA and a size in bytes, as data directories give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Where the data begins, in bytes from the load address.
    pub rva: u32,
    /// How long it is, in bytes.
    pub size: u32,
}

/// Index of a data directory: exports.
pub const EXPORT_DIRECTORY: usize = 0;
/// Index of a data directory: the exception table (`.pdata`).
pub const EXCEPTION_DIRECTORY: usize = 3;
/// Index of a data directory: debug records.
pub const DEBUG_DIRECTORY: usize = 6;
/// Index of a data directory: thread local storage.
pub const TLS_DIRECTORY: usize = 9;
/// Index of a data directory: the load configuration.
pub const LOAD_CONFIG_DIRECTORY: usize = 10;
/// Index of a data directory: the CLR (COM+) header of managed images.
pub const CLR_DIRECTORY: usize = 14;

/// One section of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `.text` and the like, at most eight bytes, without the padding.
    pub name: String,
    /// First RVA.
    pub rva: u32,
    /// Size in memory, in bytes.
    pub virtual_size: u32,
    /// Where its bytes begin in the file.
    pub file_offset: u32,
    /// How many bytes the file has of it.
    pub file_size: u32,
    /// The `IMAGE_SCN_*` bits.
    pub characteristics: u32,
}

impl Section {
    /// Whether code may run in it.
    pub fn is_executable(&self) -> bool {
        self.characteristics & format::IMAGE_SCN_MEM_EXECUTE.0 != 0
    }

    /// The first RVA behind it.
    pub fn end(&self) -> u32 {
        self.rva.saturating_add(self.virtual_size.max(self.file_size))
    }

    /// Whether `rva` lies in it.
    pub fn contains(&self, rva: u32) -> bool {
        (self.rva..self.end()).contains(&rva)
    }
}

/// What kind of PDB an `RSDS` record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PdbKind {
    /// The Windows format (MSF): native code, C++/CLI, old C# compilers, NGEN.
    Windows,
    /// ECMA-335 metadata of .NET: sequence points and local names of IL.
    Portable,
}

/// A PDB that an image names as its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbReference {
    /// The path or bare file name, as the linker wrote it.
    pub path: String,
    /// What the PDB must carry to be the right one.
    pub id: DebugId,
    /// Windows or portable.
    pub kind: PdbKind,
}

impl PdbReference {
    /// The file name without folders, whichever slashes the builder used.
    pub fn file_name(&self) -> &str {
        winpath::file_name(&self.path)
    }
}

/// A name that the image gives to other images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// What it points to.
    pub rva: u32,
    /// As written, that is, decorated where the builder exported it so.
    pub name: Cow<'a, str>,
}

/// An image in memory: a file's bytes (not a loaded image) with its headers read.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    data: &'a [u8],
    /// Seconds since 1970 when it was linked, or a hash of the contents (see [`Image::is_reproducible`]).
    /// With [`Image::size_of_image`] this is its identity on a symbol server.
    pub timestamp: u32,
    /// Bytes of address space it takes when loaded.
    pub size_of_image: u32,
    /// Of the file's bytes; 0 where the linker was not asked for one.
    pub checksum: u32,
    /// The load address it was linked for.
    pub image_base: u64,
    entry_point: u32,
    /// The processor.
    pub machine: Machine,
    /// The sections, in the order of the header; the index plus one is what PDBs call "segment".
    pub sections: Vec<Section>,
    directories: Vec<Directory>,
}

impl<'a> Image<'a> {
    /// Reads the headers of an image file.
    ///
    /// # Errors
    /// [`PeError`] when the signatures are missing or a header goes beyond the end of the file. Sections may: what
    /// the file lacks of them is simply not there.
    pub fn parse(data: &'a [u8]) -> Result<Self, PeError> {
        let magic = object::read::pe::optional_header_magic(data).map_err(|_| PeError::NotAnImage)?;
        match magic {
            0x10b => Self::with_headers::<format::ImageNtHeaders32>(data),
            0x20b => Self::with_headers::<format::ImageNtHeaders64>(data),
            _ => Err(PeError::Header("unknown optional header")),
        }
    }

    fn with_headers<Headers: ImageNtHeaders>(data: &'a [u8]) -> Result<Self, PeError> {
        let mut offset =
            format::ImageDosHeader::parse(data).map_err(|_| PeError::NotAnImage)?.nt_headers_offset().into();
        let (headers, directories) =
            Headers::parse(data, &mut offset).map_err(|_| PeError::Header("optional header"))?;
        let table = headers.sections(data, offset).map_err(|_| PeError::Header("section table"))?;
        let sections = table.iter().map(|section| Section {
            name: String::from_utf8_lossy(section.raw_name()).into_owned(),
            rva: section.virtual_address.get(LE),
            virtual_size: section.virtual_size.get(LE),
            file_offset: section.pointer_to_raw_data.get(LE),
            file_size: section.size_of_raw_data.get(LE),
            characteristics: section.characteristics.get(LE).0,
        });
        let directories = directories
            .iter()
            .map(|entry| Directory { rva: entry.virtual_address.get(LE), size: entry.size.get(LE) });
        Ok(Image {
            data,
            timestamp: headers.file_header().time_date_stamp.get(LE),
            size_of_image: headers.optional_header().size_of_image(),
            checksum: headers.optional_header().check_sum(),
            image_base: headers.optional_header().image_base(),
            entry_point: headers.optional_header().address_of_entry_point(),
            machine: headers.file_header().machine.get(LE).0.into(),
            sections: sections.collect(),
            directories: directories.collect(),
        })
    }

    /// The whole file.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The section that holds `rva`.
    pub fn section_at(&self, rva: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.contains(rva))
    }

    /// The file's bytes from `rva` to the end of what the file has of that section.
    pub fn bytes_from(&self, rva: u32) -> Option<&'a [u8]> {
        let section = self.section_at(rva)?;
        let skip = rva - section.rva;
        let start = (section.file_offset as usize).checked_add(skip as usize)?;
        let len = section.file_size.checked_sub(skip)? as usize;
        let rest = self.data.get(start..)?;
        rest.get(..len).or(Some(rest))
    }

    /// `len` bytes at `rva`; `None` unless the file has all of them.
    pub fn bytes_at(&self, rva: u32, len: usize) -> Option<&'a [u8]> {
        self.bytes_from(rva)?.get(..len)
    }

    /// Where the loader starts the image; a library may have no such place.
    pub fn entry_point(&self) -> Option<u32> {
        Some(self.entry_point).filter(|rva| *rva != 0)
    }

    /// The RVA of an address in the image, as it was linked.
    pub(super) fn rva_of(&self, address: u64) -> Option<u32> {
        u32::try_from(address.checked_sub(self.image_base)?).ok()
    }

    /// A data directory by its index, `None` when absent or empty.
    pub fn directory(&self, index: usize) -> Option<Directory> {
        self.directories.get(index).copied().filter(|entry| entry.rva != 0 && entry.size != 0)
    }

    /// The bytes of a data directory, as many of them as the file has.
    pub fn directory_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let directory = self.directory(index)?;
        let bytes = self.bytes_from(directory.rva)?;
        bytes.get(..directory.size as usize).or(Some(bytes))
    }

    /// Whether the image has managed code: a CLR header.
    pub fn is_managed(&self) -> bool {
        self.directory(CLR_DIRECTORY).is_some()
    }

    fn debug_records(&self) -> impl Iterator<Item = (&'a format::ImageDebugDirectory, &'a [u8])> + '_ {
        let bytes = self.directory_bytes(DEBUG_DIRECTORY).unwrap_or_default();
        let count = bytes.len() / size_of::<format::ImageDebugDirectory>();
        let records = object::slice_from_bytes::<format::ImageDebugDirectory>(bytes, count);
        records.map_or(&[][..], |(records, _)| records).iter().filter_map(|record| {
            let start = record.pointer_to_raw_data.get(LE) as usize;
            let end = start.checked_add(record.size_of_data.get(LE) as usize)?;
            Some((record, self.data.get(start..end)?))
        })
    }

    /// The PDBs that the image names, in the order of its debug records. A managed image with native code made from
    /// it (NGEN) names two: its IL's and its native code's.
    pub fn pdbs(&self) -> Vec<PdbReference> {
        let rsds = self.debug_records().filter(|(record, _)| record.typ.get(LE).0 == 2);
        rsds.filter_map(|(record, data)| {
            let (guid, rest) = data.strip_prefix(b"RSDS")?.split_first_chunk::<16>()?;
            let (age, path) = rest.split_first_chunk::<4>()?;
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            let portable = record.minor_version.get(LE) == 0x504d;
            Some(PdbReference {
                path: String::from_utf8_lossy(path).into_owned(),
                id: DebugId { guid: Guid::from_bytes(guid), age: u32::from_le_bytes(*age) },
                kind: if portable { PdbKind::Portable } else { PdbKind::Windows },
            })
        })
        .collect()
    }

    /// The Windows PDB of the machine code; of an NGEN image that is not the IL's.
    pub fn native_pdb(&self) -> Option<PdbReference> {
        let windows = self.pdbs().into_iter().filter(|pdb| pdb.kind == PdbKind::Windows);
        windows.min_by_key(|pdb| !pdb.file_name().to_ascii_lowercase().ends_with(".ni.pdb"))
    }

    /// The PDB of the IL of a .NET image, portable or not.
    pub fn il_pdb(&self) -> Option<PdbReference> {
        let of_il = |pdb: &PdbReference| !pdb.file_name().to_ascii_lowercase().ends_with(".ni.pdb");
        let pdbs = self.pdbs().into_iter().filter(|pdb| pdb.kind == PdbKind::Portable || of_il(pdb));
        pdbs.min_by_key(|pdb| pdb.kind != PdbKind::Portable)
    }

    /// The portable PDB inside the image: its size when inflated, in bytes, and its raw deflate stream.
    pub fn embedded_pdb(&self) -> Option<(u32, &'a [u8])> {
        self.debug_records().filter(|(record, _)| record.typ.get(LE).0 == 17).find_map(|(_, data)| {
            let (size, stream) = data.strip_prefix(b"MPDB")?.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*size), stream))
        })
    }

    /// Whether [`Image::timestamp`] is a hash of the contents and no time.
    pub fn is_reproducible(&self) -> bool {
        self.debug_records().any(|(record, _)| record.typ.get(LE).0 == 16)
    }

    /// The named exports that are addresses (not forwards to other images), sorted by RVA.
    pub fn exports(&self) -> Vec<Export<'a>> {
        let export = |(rva, name)| Export { rva, name: String::from_utf8_lossy(until_zero(name)) };
        let mut exports: Vec<_> = self.raw_exports().map(export).collect();
        exports.sort_by_key(|export| export.rva);
        exports
    }

    /// What all exports point to, with a name or without one.
    pub(super) fn export_addresses(&self) -> Vec<u32> {
        let Some(directory) = self.directory(EXPORT_DIRECTORY) else { return Vec::new() };
        let forwards = directory.rva..directory.rva.saturating_add(directory.size);
        let bytes = self.bytes_from(directory.rva).unwrap_or_default();
        let table = ExportTable::parse(bytes, directory.rva);
        let addresses = table.iter().flat_map(|table| table.addresses()).map(|address| address.get(LE));
        addresses.filter(|rva| *rva != 0 && !forwards.contains(rva)).collect()
    }

    /// The same in the order of the table. Of each name there is as much as it may be long, so up to the zero and on.
    pub(super) fn raw_exports(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let directory = self.directory(EXPORT_DIRECTORY);
        // The names may lie outside the directory's stated size, so the table gets all of the section.
        let table = directory.and_then(|directory| {
            let bytes = self.bytes_from(directory.rva)?;
            Some((directory, bytes, ExportTable::parse(bytes, directory.rva).ok()?))
        });
        table.into_iter().flat_map(|(directory, bytes, table)| {
            let forwards = directory.rva..directory.rva.saturating_add(directory.size);
            // The iterator borrows the table, so the pairs are taken out first: eight bytes for six in the file.
            let pairs: Vec<_> = table.name_iter().collect();
            pairs.into_iter().filter_map(move |(name, index)| {
                let rva = table.address_by_index(index).ok()?;
                if rva == 0 || forwards.contains(&rva) {
                    return None;
                }
                let name = bytes.get(name.checked_sub(directory.rva)? as usize..)?;
                Some((rva, name.get(..MAX_NAME).unwrap_or(name)))
            })
        })
    }
}

/// A text up to its zero.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
