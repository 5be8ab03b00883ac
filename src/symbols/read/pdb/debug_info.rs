//! The stream of debug information: a header, the lists that the linker made, and the numbers of further streams.
//!
//! After the header follow the compilands, the section contributions, the section map and parts that nobody here
//! needs; at the end the *optional header*, a list of stream numbers. (`NewDBIHdr` in microsoft-pdb, PDB/dbi/dbi.h;
//! llvm.org/docs/PDB/DbiStream.html.)

use std::hash::BuildHasher;

use super::PdbError;
use super::address_map::SectionExtent;
use super::contributions::Contributions;
use super::read_at::ReadAt;
use super::stream::Stream;
use crate::symbols::read::pe::Machine;

/// What the header begins with, and its size.
const SIGNATURE: u32 = u32::MAX;
const HEADER_SIZE: usize = 64;

/// The parts between the headers, in their order, by the place of their size in the header.
const COMPILANDS: usize = 24;
const CONTRIBUTIONS: usize = 28;
const SECTION_MAP: usize = 32;
const SOURCES: usize = 36;
const TYPE_SERVERS: usize = 40;
const EDIT_AND_CONTINUE: usize = 52;
const PARTS: [usize; 6] = [COMPILANDS, CONTRIBUTIONS, SECTION_MAP, SOURCES, TYPE_SERVERS, EDIT_AND_CONTINUE];
/// Where the size of the optional header is, and indices in it.
const OPTIONAL: usize = 48;
const OMAP_TO_SOURCE: usize = 3;
const SECTIONS: usize = 5;
const ORIGINAL_SECTIONS: usize = 10;

/// The part of an item of the list of compilands before its two names.
const COMPILAND_SIZE: usize = 64;

/// The stream of debug information.
#[derive(Debug)]
pub(super) struct DebugInfo<'a> {
    stream: Stream<'a>,
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

impl<'a> DebugInfo<'a> {
    pub(super) fn new(stream: Stream<'a>) -> Result<Self, PdbError> {
        let signature = stream.u32(0).filter(|_| stream.len() >= HEADER_SIZE).ok_or(PdbError::Truncated)?;
        // Before 1996 the stream began with other fields.
        if signature == SIGNATURE { Ok(DebugInfo { stream }) } else { Err(PdbError::Damaged) }
    }

    /// How often the file was written by the linker; `None` where it does not say.
    pub(super) fn age(&self) -> Option<u32> {
        self.stream.u32(8).filter(|age| *age != 0)
    }

    pub(super) fn machine(&self) -> Machine {
        Machine::from(self.stream.u16(58).unwrap_or_default())
    }

    /// Numbers of the streams of public symbols and of their records.
    pub(super) fn symbol_streams(&self) -> Option<(u16, u16)> {
        Some((self.stream.u16(16)?, self.stream.u16(20)?))
    }

    /// The number of the OMAP table "to source".
    pub(super) fn omap_to_source(&self) -> Option<u16> {
        self.optional(OMAP_TO_SOURCE)
    }

    /// The numbers of the streams with section headers: the linker's own where a tool re-ordered the image, and the
    /// image's.
    pub(super) fn section_headers(&self) -> [Option<u16>; 2] {
        [self.optional(ORIGINAL_SECTIONS), self.optional(SECTIONS)]
    }

    fn optional(&self, index: usize) -> Option<u16> {
        let list = self.stream.part(self.start_of(PARTS.len())?, self.stream.u32(OPTIONAL)? as usize)?;
        list.u16(2 * index).filter(|number| *number != u16::MAX)
    }

    fn start_of(&self, part: usize) -> Option<usize> {
        let sizes = PARTS.iter().take(part).map(|at| self.stream.u32(*at));
        sizes.into_iter().try_fold(HEADER_SIZE, |start, size| start.checked_add(size? as usize))
    }

    fn part(&self, size_at: usize) -> Option<Stream<'a>> {
        let part = PARTS.iter().position(|at| *at == size_at)?;
        self.stream.part(self.start_of(part)?, self.stream.u32(size_at)? as usize)
    }

    pub(super) fn contributions(&self) -> Option<Contributions<'a>> {
        Some(Contributions::new(self.part(CONTRIBUTIONS)?))
    }

    /// All compilands, by their index. Each item is as long as the names in it.
    pub(super) fn compilands(&self) -> Option<Vec<CompilandHeader>> {
        let list = self.part(COMPILANDS)?;
        list.will_be_read();
        let mut compilands = Vec::new();
        let mut at = 0;
        while at + COMPILAND_SIZE <= list.len() {
            let item = list.bytes(at, COMPILAND_SIZE)?;
            let name = list.cstr(at + COMPILAND_SIZE)?;
            compilands.push(CompilandHeader {
                stream: item.u16_at(34)?,
                symbols_size: item.u32_at(36)?,
                c11_size: item.u32_at(40)?,
                c13_size: item.u32_at(44)?,
                name_hash: name_hash(&name),
            });
            let object = at + COMPILAND_SIZE + name.len() + 1;
            at = (object + list.cstr(object)?.len() + 1).next_multiple_of(4);
        }
        Some(compilands)
    }

    /// Where the sections lie by the section map, which states only how large each is: for the PDB of an NGEN image, which
    /// has no section headers. The loader begins each section on a page of its own (verified on mscorlib.ni.pdb,
    /// System.ni.pdb and System.Xml.ni.pdb: so laid out, the last ends where their images end in PerfViewData.etl).
    pub(super) fn sections_by_size(&self) -> Option<Vec<SectionExtent>> {
        const PAGE: u32 = 0x1000;
        const EXECUTE: u16 = 4;
        const SELECTOR: u16 = 0x100;
        const ITEM_SIZE: usize = 20;
        let map = self.part(SECTION_MAP)?;
        let map = map.bytes(4, map.len().checked_sub(4)?)?;
        let mut start = Some(PAGE);
        let mut extents = Vec::new();
        for item in map.chunks_exact(ITEM_SIZE) {
            let (flags, size) = (item.u16_at(0)?, item.u32_at(16)?);
            // The last is not a section: absolute symbols, without an end.
            if flags & 0xff00 == SELECTOR && size != u32::MAX {
                let (at, executable) = (start.unwrap_or(u32::MAX), flags & EXECUTE != 0);
                extents.push(SectionExtent { start: at, size, executable });
                start = start.and_then(|start| start.checked_add(size)?.checked_next_multiple_of(PAGE));
            }
        }
        Some(extents)
    }
}

/// Compilands are named in cross references, in lower case; a hash of the name is enough to find them again.
pub(super) fn name_hash(name: &[u8]) -> u64 {
    rustc_hash::FxBuildHasher.hash_one(name.to_ascii_lowercase())
}
