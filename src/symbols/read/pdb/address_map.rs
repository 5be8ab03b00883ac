//! From an RVA to section and offset as the linker left them.
//!
//! Symbols state section and offset. A tool that re-orders an image after linking (Microsoft's BBT, Syzygy) leaves
//! them alone and adds OMAP tables: pairs of RVAs, sorted by the first, each valid up to the next. "To source"
//! leads from the image's RVA to the linker's; zero, or a set top bit, says that the linker never had that code.
//! Microsoft's tools add the linker's section headers too; in Syzygy's PDBs the only ones are the linker's.
//! (verified on omap_reorder_funcs.pdb, omap_stretched.pdb: Microsoft's own reader maps the same)

use super::Place;
use super::read_at::ReadAt;
use super::stream::Stream;

const SECTION_HEADER_SIZE: usize = 40;
const CODE: u32 = 0x20;
const EXECUTE: u32 = 0x2000_0000;

/// A section as the linker laid it out.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionExtent {
    pub(super) start: u32,
    pub(super) size: u32,
    pub(super) executable: bool,
}

impl SectionExtent {
    /// Reads the headers of a PE section table.
    pub(super) fn table(headers: &[u8]) -> Vec<SectionExtent> {
        let section = |header: &[u8]| {
            Some(SectionExtent {
                start: header.u32_at(12)?,
                size: header.u32_at(8)?.max(header.u32_at(16)?),
                executable: header.u32_at(36)? & (CODE | EXECUTE) != 0,
            })
        };
        headers.chunks_exact(SECTION_HEADER_SIZE).filter_map(section).collect()
    }
}

/// The way from RVAs to places.
#[derive(Debug)]
pub(super) struct AddressMap<'a> {
    /// Section N is at N - 1.
    pub(super) sections: Vec<SectionExtent>,
    /// The OMAP table "to source" of a re-ordered image.
    pub(super) to_source: Option<Stream<'a>>,
}

impl AddressMap<'_> {
    /// Where the linker had put the code that is at `rva`; `None` outside of code.
    pub(super) fn place_of(&self, rva: u32) -> Option<Place> {
        let rva = match &self.to_source {
            Some(table) => source_of(table, rva)?,
            None => rva,
        };
        let holds =
            |section: &SectionExtent| rva.checked_sub(section.start).is_some_and(|at| at < section.size);
        let index = self.sections.iter().position(holds)?;
        let section = self.sections.get(index).filter(|section| section.executable)?;
        Some(Place { section: u16::try_from(index + 1).ok()?, offset: rva - section.start })
    }
}

fn source_of(table: &Stream<'_>, rva: u32) -> Option<u32> {
    let (mut low, mut high) = (0, table.len() / 8);
    while low < high {
        let middle = low + (high - low) / 2;
        if table.u32(8 * middle)? <= rva { low = middle + 1 } else { high = middle }
    }
    let entry = 8 * low.checked_sub(1)?;
    let (from, to) = (table.u32(entry)?, table.u32(entry + 4)?);
    (to != 0 && to < 0x8000_0000).then_some(to)?.checked_add(rva.checked_sub(from)?)
}
