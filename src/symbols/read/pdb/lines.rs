//! The line numbers of one compiland (C13 debug subsections, `DEBUG_S_*` in cvinfo.h).
//!
//! Subsections of interest: *lines* (code to line, one for each function), *inlinee lines* (where each inlined
//! function begins), *file checksums* (the compiland's file table; files are named by their offset in it), and the
//! *cross scope* imports and exports of link-time code generation.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::Place;
use super::read_at::ReadAt;
use super::stream::Stream;

const LINES: u32 = 0xf2;
const FILE_CHECKSUMS: u32 = 0xf4;
const INLINEE_LINES: u32 = 0xf6;
const CROSS_SCOPE_IMPORTS: u32 = 0xf7;
const CROSS_SCOPE_EXPORTS: u32 = 0xf8;

/// Line numbers that tell a debugger to step over, and name no line.
const MARKERS: [u32; 2] = [0xfe_efee, 0xf0_0f00];

/// What a subsection of lines begins with: place and length of the code.
const BLOCK_HEADER_SIZE: usize = 12;

/// Where an inlined function begins in its source: its id, offset of the file in the file table, line.
const INLINEE_SIZE: usize = 12;

/// A subsection by its place in the data.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: usize,
    len: usize,
}

/// The lines of one stretch of code.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: Place,
    len: u32,
    span: Span,
}

/// The line information of one compiland.
#[derive(Debug, Default)]
pub(super) struct LineTable<'a> {
    data: Stream<'a>,
    /// Sorted by start.
    blocks: Vec<Block>,
    inlinee_spans: Vec<Span>,
    /// Where they are in the data, ascending by id.
    inlinees: OnceCell<Vec<u32>>,
    checksums: Span,
    imports: Span,
    exports: Span,
}

impl<'a> LineTable<'a> {
    pub(super) fn new(data: Stream<'a>) -> Self {
        let mut table = LineTable { data, ..LineTable::default() };
        let mut offset = 0;
        while let (Some(kind), Some(len)) = (table.data.u32(offset), table.data.u32(offset + 4)) {
            let span = Span { start: offset + 8, len: len as usize };
            if span.start + span.len > table.data.len() {
                break;
            }
            match kind {
                LINES => table.blocks.extend(table.block(span)),
                FILE_CHECKSUMS => table.checksums = span,
                INLINEE_LINES => table.inlinee_spans.push(span),
                CROSS_SCOPE_IMPORTS => table.imports = span,
                CROSS_SCOPE_EXPORTS => table.exports = span,
                _ => {}
            }
            offset = (span.start + span.len).next_multiple_of(4);
        }
        table.blocks.sort_by_key(|block| block.start);
        table.blocks.shrink_to_fit();
        table
    }

    fn block(&self, span: Span) -> Option<Block> {
        let head = self.data.bytes(span.start, BLOCK_HEADER_SIZE.min(span.len))?;
        let start = Place { section: head.u16_at(4)?, offset: head.u32_at(0)? };
        Some(Block { start, len: head.u32_at(8)?, span })
    }

    fn bytes(&self, span: Span) -> Option<Cow<'a, [u8]>> {
        self.data.bytes(span.start, span.len)
    }

    /// File (offset in the file table) and line of the code at `place`, of the function that has the code, not of
    /// the functions inlined there.
    pub(super) fn line_at(&self, place: Place) -> Option<(u32, u32)> {
        let next = self.blocks.partition_point(|block| block.start <= place);
        let block = self.blocks.get(..next)?.iter().rev().take(8).find(|block| block.contains(place))?;
        let code_offset = place.offset - block.start.offset;
        let block = self.bytes(block.span)?;
        let mut rest = block.get(BLOCK_HEADER_SIZE..)?;
        let mut best: Option<(u32, u32, u32)> = None;
        while let (Some(file), Some(count), Some(size)) = (rest.u32_at(0), rest.u32_at(4), rest.u32_at(8)) {
            let entries = rest.get(12..)?.chunks_exact(8).take(count as usize);
            for entry in entries {
                let (Some(offset), Some(flags)) = (entry.u32_at(0), entry.u32_at(4)) else { break };
                let line = flags & 0xff_ffff;
                let is_later = best.is_none_or(|(best, ..)| offset >= best);
                if offset <= code_offset && is_later && !MARKERS.contains(&line) {
                    best = Some((offset, file, line));
                }
            }
            // The stated size counts its own header; without that this would not move on.
            rest = rest.get((size as usize).max(12)..)?;
        }
        best.map(|(_, file, line)| (file, line))
    }

    /// File and line of an inlined function's row.
    pub(super) fn inlined_line(&self, id: u32, file: Option<u32>, line: i32) -> Option<(u32, u32)> {
        let inlinees = self.inlinees.get_or_init(|| self.inlinees_by_id());
        let index = inlinees.binary_search_by_key(&Some(id), |at| self.data.u32(*at as usize)).ok()?;
        let inlinee = self.data.bytes(*inlinees.get(index)? as usize, INLINEE_SIZE)?;
        Some((file.or(inlinee.u32_at(4))?, inlinee.u32_at(8)?.checked_add_signed(line)?))
    }

    fn inlinees_by_id(&self) -> Vec<u32> {
        let mut inlinees = Vec::new();
        for span in &self.inlinee_spans {
            let has_extra_files = self.data.u32(span.start) == Some(1);
            let end = span.start + span.len;
            let mut at = span.start + 4;
            while at + INLINEE_SIZE <= end {
                inlinees.push(at as u32);
                let extra = self.data.u32(at + INLINEE_SIZE).filter(|_| has_extra_files);
                at += INLINEE_SIZE + extra.map_or(0, |count| 4 + 4 * count as usize);
            }
        }
        inlinees.sort_by_key(|at| self.data.u32(*at as usize));
        inlinees.shrink_to_fit();
        inlinees
    }

    /// Offset in the PDB's string table of the name of a file.
    pub(super) fn file_name(&self, file: u32) -> Option<u32> {
        self.data.part(self.checksums.start, self.checksums.len)?.u32(file as usize)
    }

    /// Whose id an imported id is: the name of that compiland as an offset in the string table, and the id there.
    pub(super) fn import(&self, id: u32) -> Option<(u32, u32)> {
        let (module, index) = ((id >> 20) & 0x7ff, (id & 0xf_ffff) as usize);
        let imports = self.bytes(self.imports)?;
        let mut rest = &*imports;
        for _ in 0..module {
            rest = rest.get(8 + 4 * rest.u32_at(4)? as usize..)?;
        }
        (index < rest.u32_at(4)? as usize).then_some(())?;
        Some((rest.u32_at(0)?, rest.u32_at(8 + 4 * index)?))
    }

    /// The PDB-wide id of an id of this compiland.
    pub(super) fn export(&self, local: u32) -> Option<u32> {
        let exports = self.bytes(self.exports)?;
        exports.chunks_exact(8).find(|pair| pair.u32_at(0) == Some(local))?.u32_at(4)
    }
}

impl Block {
    fn contains(&self, place: Place) -> bool {
        self.start.section == place.section
            && place.offset.checked_sub(self.start.offset).is_some_and(|offset| offset < self.len)
    }
}
