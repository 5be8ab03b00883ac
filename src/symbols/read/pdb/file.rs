//! The file around the symbols: identity, address map, strings, the way to each stream.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdb2::{SourceSlice, SourceView};

use super::PdbError;
use super::address_map::{AddressMap, SectionExtent};
use super::contributions::Contributions;
use super::debug_info::{CompilandHeader, DebugInfo};
use super::msf::Msf;
use super::read_at::ReadAt;
use super::stream::Stream;
use crate::debug_id::DebugId;
use crate::guid::Guid;
use crate::symbols::read::pe::Machine;

/// The streams that have fixed numbers.
const INFORMATION_STREAM: u16 = 1;
const DEBUG_STREAM: u16 = 3;

const STRINGS_HEADER_SIZE: usize = 12;
/// Paths are shorter.
const MAX_STRING: usize = 4096;

/// What the file says about itself, and the way to its streams.
#[derive(Debug)]
pub(super) struct PdbFile<'a> {
    msf: Msf<'a>,
    pub(super) id: DebugId,
    pub(super) machine: Machine,
    strings: Option<Strings<'a>>,
    pub(super) address_map: AddressMap<'a>,
    pub(super) compilands: Vec<CompilandHeader>,
    pub(super) contributions: Contributions<'a>,
    public_stream: u16,
    record_stream: u16,
}

/// The identity of a PDB. Its age is the debug information's, which images and symbol servers name, where it has
/// one: the file's own age also counts later changes. Nothing but headers is read.
pub(super) fn identity(file: &[u8]) -> Result<DebugId, PdbError> {
    headers(file).map(|(id, ..)| id)
}

fn headers(file: &[u8]) -> Result<(DebugId, Msf<'_>, DebugInfo<'_>), PdbError> {
    // First, because it also refuses pages so small that lists of them would be larger than the file.
    let DebugId { guid, age } = information(file)?;
    let msf = Msf::open(file).ok_or(PdbError::Damaged)?;
    let debug = DebugInfo::new(msf.stream(DEBUG_STREAM).ok_or(PdbError::Truncated)?)?;
    Ok((DebugId { guid, age: debug.age().unwrap_or(age) }, msf, debug))
}

impl<'a> PdbFile<'a> {
    pub(super) fn open(file: &'a [u8]) -> Result<Self, PdbError> {
        let (id, msf, debug) = headers(file)?;
        let there = |number: u16| msf.stream(number).filter(|stream| stream.len() != 0);
        let headers = debug.section_headers().into_iter().flatten().find_map(there);
        let sections = match headers {
            Some(headers) => {
                SectionExtent::table(&headers.bytes(0, headers.len()).ok_or(PdbError::Truncated)?)
            }
            None => debug.sections_by_size().unwrap_or_default(),
        };
        let to_source = debug.omap_to_source().and_then(there);
        let (public_stream, record_stream) = debug.symbol_streams().ok_or(PdbError::Truncated)?;
        let mut opened = PdbFile {
            id,
            machine: debug.machine(),
            strings: None,
            address_map: AddressMap { sections, to_source },
            compilands: debug.compilands().ok_or(PdbError::Truncated)?,
            contributions: debug.contributions().ok_or(PdbError::Truncated)?,
            public_stream,
            record_stream,
            msf,
        };
        opened.strings = opened.named_stream(b"/names").map(Strings);
        Ok(opened)
    }

    /// A stream by its number, `None` when there is none.
    pub(super) fn stream(&self, number: u16) -> Option<Stream<'a>> {
        self.msf.stream(number)
    }

    /// A stream by its name, from the table in the information stream: names, then pairs of an offset into the names
    /// and a stream number. (`NMTNI` in microsoft-pdb, PDB/include/nmtni.h.)
    pub(super) fn named_stream(&self, wanted: &[u8]) -> Option<Stream<'a>> {
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

    /// True for what the CLR writes for an NGEN image: no object files, and a public symbol for every method that was
    /// compiled, so that each ends where the next begins.
    pub(super) fn is_method_list(&self) -> bool {
        self.compilands.is_empty() && self.contributions.is_empty()
    }

    pub(super) fn public_symbols(&self) -> Option<Stream<'a>> {
        self.stream(self.public_stream)
    }

    pub(super) fn symbol_records(&self) -> Option<Stream<'a>> {
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

/// GUID and age of the information stream, as `pdb2` reads them.
///
/// It keeps its promises to itself with assertions. This is the one place where such a panic becomes an error.
fn information(file: &[u8]) -> Result<DebugId, PdbError> {
    let read = || {
        let information = pdb2::PDB::open(MappedFile(file))?.pdb_information()?;
        Ok(DebugId { guid: Guid::from_bytes(&information.guid.to_bytes_le()), age: information.age })
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(PdbError::Damaged))
}

fn piece_of<'a>(file: &'a [u8], piece: &SourceSlice) -> Option<&'a [u8]> {
    let start = usize::try_from(piece.offset).ok()?;
    file.get(start..start.checked_add(piece.size)?)
}

/// The file as `pdb2` sees it. What it reads of a stream is a copy, which is fine for a header.
#[derive(Debug)]
struct MappedFile<'a>(&'a [u8]);

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
        if len.is_none_or(|len| len > self.0.len().max(MSF_HEADER_VIEW)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let pieces: Option<Vec<_>> = slices.iter().map(|piece| piece_of(self.0, piece)).collect();
        let pieces = pieces.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(Box::new(Copied(pieces.concat())))
    }
}

/// `pdb2` looks at the first page before it knows the page size.
const MSF_HEADER_VIEW: usize = 4096;
