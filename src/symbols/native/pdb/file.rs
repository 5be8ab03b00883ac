//! The file around the symbols: container, identity, headers, address map. All of it by way of the `pdb2` crate.

use std::hash::BuildHasher;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pdb2::{FallibleIterator, SourceSlice, SourceView, StreamIndex};

use super::address_map::{AddressMap, SectionExtent};
use super::read_at::ReadAt;
use super::stream::Stream;
use super::{PdbError, Place};
use crate::guid::Guid;
use crate::symbols::debug_id::DebugId;
use crate::symbols::pe::Machine;

/// The stream of debug information (`NewDBIHdr` in microsoft-pdb, PDB/dbi/dbi.h) and the size of its header.
const INFORMATION_STREAM: u16 = 1;
const DEBUG_STREAM: u16 = 3;
const DEBUG_HEADER_SIZE: usize = 64;

const STRINGS_HEADER_SIZE: usize = 12;
/// Paths are shorter.
const MAX_STRING: usize = 4096;

/// Indices in the optional header, a list of stream numbers.
const OMAP_TO_SOURCE: usize = 3;
const ORIGINAL_SECTIONS: usize = 10;

/// What the file says about itself, read once, and the way to its streams.
#[derive(Debug)]
pub(super) struct PdbFile<'a> {
    pdb: pdb2::PDB<'a, MappedFile<'a>>,
    pieces: Arc<Mutex<Wanted>>,
    file: &'a [u8],
    pub(super) id: DebugId,
    pub(super) machine: Machine,
    strings: Option<Strings<'a>>,
    pub(super) address_map: AddressMap<'a>,
    pub(super) compilands: Vec<CompilandHeader>,
    /// Sorted by start, executable sections only.
    pub(super) contributions: Vec<Contribution>,
    public_stream: u16,
    record_stream: u16,
}

/// Where the symbols of one compiland (object file; "module" in the PDB's own words) are.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompilandHeader {
    pub(super) stream: u16,
    pub(super) symbols_size: u32,
    pub(super) c11_size: u32,
    pub(super) c13_size: u32,
    /// Of its name, by which others refer to it.
    pub(super) name_hash: u64,
}

/// A piece of a section that the linker took from one compiland.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contribution {
    pub(super) start: Place,
    pub(super) size: u32,
    pub(super) compiland: usize,
}

impl<'a> PdbFile<'a> {
    pub(super) fn open(file: &'a [u8]) -> Result<Self, PdbError> {
        guarded(|| Self::open_unguarded(file))
    }

    fn open_unguarded(file: &'a [u8]) -> Result<Self, PdbError> {
        let pieces = Arc::default();
        let mut pdb = pdb2::PDB::open(MappedFile { file, pieces: Arc::clone(&pieces) })?;
        let information = pdb.pdb_information()?;
        let debug = pdb.debug_information()?;
        let age = debug.age().unwrap_or(information.age);
        let id = DebugId { guid: Guid::from_bytes(&information.guid.to_bytes_le()), age };
        let sections = pdb.sections()?.unwrap_or_default();

        let mut compilands = Vec::new();
        let mut modules = debug.modules()?;
        while let Some(module) = modules.next()? {
            let info = module.info();
            compilands.push(CompilandHeader {
                stream: info.stream.0,
                symbols_size: info.symbols_size,
                c11_size: info.lines_size,
                c13_size: info.c13_lines_size,
                name_hash: name_hash(&module.module_name()),
            });
        }

        let mut contributions = Vec::new();
        let mut items = debug.section_contributions()?;
        while let Some(item) = items.next()? {
            let start = Place { section: item.offset.section, offset: item.offset.offset };
            contributions.push(Contribution { start, size: item.size, compiland: item.module });
        }

        let mut opened = PdbFile {
            machine: Machine::from(debug.machine_type()? as u16),
            pdb,
            pieces,
            file,
            id,
            strings: None,
            address_map: AddressMap { sections: extents(&sections), to_source: None },
            compilands,
            contributions: Vec::new(),
            public_stream: u16::MAX,
            record_stream: u16::MAX,
        };
        opened.read_debug_header().ok_or(PdbError::Truncated)?;
        contributions.retain(|item| item.size != 0 && opened.address_map.is_executable(item.start.section));
        contributions.sort_by_key(|contribution| contribution.start);
        opened.contributions = contributions;
        opened.strings = opened.named_stream(b"/names").map(Strings);
        Ok(opened)
    }

    /// What pdb2 keeps to itself: the streams of public symbols and records, and the OMAP tables, which it passes
    /// over when the PDB has no second set of section headers.
    fn read_debug_header(&mut self) -> Option<()> {
        let debug = self.stream(DEBUG_STREAM)?;
        self.public_stream = debug.u16(16)?;
        self.record_stream = debug.u16(20)?;
        // The sizes of the parts between the header and the optional header at the end: all but the last but one,
        // which is the optional header's own.
        let part = |index: usize| debug.u32(24 + 4 * index).map(|size| size as usize);
        let mut start = DEBUG_HEADER_SIZE;
        for index in [0, 1, 2, 3, 4, 7] {
            start = start.checked_add(part(index)?)?;
        }
        let size = part(6)?;
        let mut optional = |index: usize| {
            let is_there = 2 * index < size;
            let number = debug.u16(start.checked_add(2 * index)?).filter(|_| is_there)?;
            self.stream(number).filter(|stream| stream.len() != 0)
        };
        let (to_source, sections) = (optional(OMAP_TO_SOURCE), optional(ORIGINAL_SECTIONS));
        self.address_map.to_source = to_source;
        if let Some(sections) = sections {
            self.address_map.sections = SectionExtent::table(&sections.bytes(0, sections.len())?);
        }
        Some(())
    }

    /// A stream by its number, `None` when there is none.
    pub(super) fn stream(&mut self, number: u16) -> Option<Stream<'a>> {
        if number == u16::MAX {
            return None;
        }
        self.wanted().locating = true;
        // The source refuses the view, so this is an error; the pieces that it was asked for are what we want.
        let _refused = guarded(|| Ok(self.pdb.raw_stream(StreamIndex(number)).map(drop)?));
        let mut wanted = self.wanted();
        wanted.locating = false;
        let pieces = std::mem::take(&mut wanted.pieces)?;
        drop(wanted);
        let pieces: Option<Vec<_>> = pieces.iter().map(|piece| piece_of(self.file, piece)).collect();
        Some(Stream::from_pieces(pieces?))
    }

    /// A stream by its name, from the table in the information stream: names, then pairs of an offset into the names
    /// and a stream number. (`NMTNI` in microsoft-pdb, PDB/include/nmtni.h.)
    pub(super) fn named_stream(&mut self, wanted: &[u8]) -> Option<Stream<'a>> {
        let information = self.stream(INFORMATION_STREAM)?;
        let information = information.bytes(0, information.len())?;
        let names = information.get(32..)?;
        let (names, table) = names.split_at_checked(information.u32_at(28)? as usize)?;
        // Two bit sets, each with its length in words before it.
        let present = 8;
        let deleted = table.u32_at(present)?.checked_mul(4)?.checked_add(present as u32 + 4)? as usize;
        let pairs = deleted.checked_add(4 + table.u32_at(deleted)?.checked_mul(4)? as usize)?;
        let pairs = table.get(pairs..)?.chunks_exact(8).take(table.u32_at(0)? as usize);
        let number = pairs.into_iter().find_map(|pair| {
            let name = names.cstr_at(pair.u32_at(0)? as usize)?;
            (name == wanted).then(|| pair.u16_at(4)).flatten()
        });
        self.stream(number?)
    }

    /// A string of the file's string table, by its offset.
    pub(super) fn string(&self, offset: u32) -> Option<String> {
        self.strings.as_ref()?.get(offset)
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, Wanted> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True for what the CLR writes for an NGEN image: no object files, and a public symbol for every method that was
    /// compiled, so that each ends where the next begins.
    pub(super) fn is_method_list(&self) -> bool {
        self.compilands.is_empty() && self.contributions.is_empty()
    }

    pub(super) fn public_symbols(&mut self) -> Option<Stream<'a>> {
        self.stream(self.public_stream)
    }

    pub(super) fn symbol_records(&mut self) -> Option<Stream<'a>> {
        self.stream(self.record_stream)
    }
}

/// The file's string table: a header of 12 bytes, then strings that end with a zero.
#[derive(Debug)]
struct Strings<'a>(Stream<'a>);

impl Strings<'_> {
    fn get(&self, offset: u32) -> Option<String> {
        let start = STRINGS_HEADER_SIZE.checked_add(offset as usize)?;
        let len = self.0.len().checked_sub(start)?.min(MAX_STRING);
        let bytes = self.0.bytes(start, len)?;
        Some(String::from_utf8_lossy(bytes.cstr_at(0)?).into_owned())
    }
}

/// Compilands are named in cross references, in lower case; a hash of the name is enough to find them again.
pub(super) fn name_hash(name: &str) -> u64 {
    rustc_hash::FxBuildHasher.hash_one(name.to_ascii_lowercase())
}

/// Where the sections lie. The PDB of an NGEN image has no section headers; `pdb2` makes some from the section map,
/// which tells sizes only, and puts them one directly behind the other. The loader begins each on a page of its own
/// (verified on mscorlib.ni.pdb, System.ni.pdb and System.Xml.ni.pdb: so laid out, the last section ends where their
/// images end in PerfViewData.etl).
fn extents(sections: &[pdb2::ImageSectionHeader]) -> Vec<SectionExtent> {
    const PAGE: u32 = 0x1000;
    let mut extents: Vec<_> = sections.iter().map(extent).collect();
    // A real header has a name.
    if sections.iter().all(|section| section.name == [0; 8]) {
        let mut start = Some(PAGE);
        for extent in &mut extents {
            extent.start = start.unwrap_or(u32::MAX);
            start = start.and_then(|start| start.checked_add(extent.size)?.checked_next_multiple_of(PAGE));
        }
    }
    extents
}

fn extent(section: &pdb2::ImageSectionHeader) -> SectionExtent {
    SectionExtent {
        start: section.virtual_address,
        size: section.virtual_size.max(section.size_of_raw_data),
        executable: section.characteristics.execute() || section.characteristics.executable(),
    }
}

/// Calls into `pdb2`, for which some damaged files are a broken promise (a slice out of range, an overflow) and not
/// an error. This is the one place where such a panic becomes one.
fn guarded<T>(call: impl FnOnce() -> Result<T, PdbError>) -> Result<T, PdbError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(PdbError::Damaged))
}

fn piece_of<'a>(file: &'a [u8], piece: &SourceSlice) -> Option<&'a [u8]> {
    let start = usize::try_from(piece.offset).ok()?;
    file.get(start..start.checked_add(piece.size)?)
}

/// The pieces of the file that a stream is made of, while one is being located.
#[derive(Debug, Default)]
struct Wanted {
    locating: bool,
    pieces: Option<Vec<SourceSlice>>,
}

/// The file as `pdb2` sees it: every stream it reads is a copy, which is fine for headers. While a stream is being
/// located, nothing is copied: its pieces are noted and the view refused.
#[derive(Debug)]
struct MappedFile<'a> {
    file: &'a [u8],
    pieces: Arc<Mutex<Wanted>>,
}

#[derive(Debug)]
struct Copied(Vec<u8>);

impl SourceView<'_> for Copied {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> pdb2::Source<'a> for MappedFile<'a> {
    fn view(&mut self, slices: &[SourceSlice]) -> io::Result<Box<dyn SourceView<'a> + Send + Sync>> {
        // Pages belong to one stream, so a stream is never longer than the file. A damaged directory that says so
        // would otherwise make us allocate what it says.
        let len = slices.iter().try_fold(0usize, |len, slice| len.checked_add(slice.size));
        if len.is_none_or(|len| len > self.file.len().max(MSF_HEADER_VIEW)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut wanted = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.locating {
            wanted.pieces = Some(slices.to_vec());
            return Err(io::ErrorKind::Other.into());
        }
        let pieces: Option<Vec<_>> = slices.iter().map(|piece| piece_of(self.file, piece)).collect();
        let pieces = pieces.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(Box::new(Copied(pieces.concat())))
    }
}

/// `pdb2` looks at the first page before it knows the page size.
const MSF_HEADER_VIEW: usize = 4096;
