//! The line numbers of one compiland (C13 debug subsections, `DEBUG_S_*` in cvinfo.h).
//!
//! Subsections of interest: *lines* (code to line, one for each function), *inlinee lines* (where each inlined
//! function begins), *file checksums* (the compiland's file table; files are named by their offset in it), and the
//! *cross scope* imports and exports of link-time code generation.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::Place;
use super::read_at::ReadAt;

const LINES: u32 = 0xf2;
const FILE_CHECKSUMS: u32 = 0xf4;
const INLINEE_LINES: u32 = 0xf6;
const CROSS_SCOPE_IMPORTS: u32 = 0xf7;
const CROSS_SCOPE_EXPORTS: u32 = 0xf8;

/// Line numbers that tell a debugger to step over, and name no line.
const MARKERS: [u32; 2] = [0xfe_efee, 0xf0_0f00];

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

/// Where an inlined function begins in its source.
#[derive(Clone, Copy, Debug)]
struct Inlinee {
    id: u32,
    file: u32,
    line: u32,
}

/// The line information of one compiland.
#[derive(Debug, Default)]
pub(super) struct LineTable<'a> {
    data: Cow<'a, [u8]>,
    /// Sorted by start.
    blocks: Vec<Block>,
    inlinee_spans: Vec<Span>,
    inlinees: OnceCell<Vec<Inlinee>>,
    checksums: Span,
    imports: Span,
    exports: Span,
}

impl<'a> LineTable<'a> {
    pub(super) fn new(data: Cow<'a, [u8]>) -> Self {
        let mut table = LineTable { data, ..LineTable::default() };
        let mut offset = 0;
        while let (Some(kind), Some(len)) = (table.data.u32_at(offset), table.data.u32_at(offset + 4)) {
            let span = Span { start: offset + 8, len: len as usize };
            let Some(body) = table.bytes(span) else { break };
            match kind {
                LINES => table.blocks.extend(Block::parse(body, span)),
                FILE_CHECKSUMS => table.checksums = span,
                INLINEE_LINES => table.inlinee_spans.push(span),
                CROSS_SCOPE_IMPORTS => table.imports = span,
                CROSS_SCOPE_EXPORTS => table.exports = span,
                _ => {}
            }
            offset = (span.start + span.len).next_multiple_of(4);
        }
        table.blocks.sort_by_key(|block| block.start);
        table
    }

    fn bytes(&self, span: Span) -> Option<&[u8]> {
        self.data.get(span.start..)?.get(..span.len)
    }

    /// File (offset in the file table) and line of the code at `place`, of the function that has the code, not of
    /// the functions inlined there.
    pub(super) fn line_at(&self, place: Place) -> Option<(u32, u32)> {
        let next = self.blocks.partition_point(|block| block.start <= place);
        let block = self.blocks.get(..next)?.iter().rev().take(8).find(|block| block.contains(place))?;
        let code_offset = place.offset - block.start.offset;
        let mut rest = self.bytes(block.span)?.get(12..)?;
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
        let inlinees = self.inlinees.get_or_init(|| self.read_inlinees());
        let index = inlinees.binary_search_by_key(&id, |inlinee| inlinee.id).ok()?;
        let inlinee = inlinees.get(index)?;
        Some((file.unwrap_or(inlinee.file), inlinee.line.checked_add_signed(line)?))
    }

    fn read_inlinees(&self) -> Vec<Inlinee> {
        let mut inlinees = Vec::new();
        for span in &self.inlinee_spans {
            let Some((signature, mut rest)) =
                self.bytes(*span).and_then(|body| body.split_first_chunk::<4>())
            else {
                continue;
            };
            let has_extra_files = u32::from_le_bytes(*signature) == 1;
            while let (Some(id), Some(file), Some(line)) = (rest.u32_at(0), rest.u32_at(4), rest.u32_at(8)) {
                inlinees.push(Inlinee { id, file, line });
                let extra = if has_extra_files {
                    rest.u32_at(12).map_or(0, |count| 4 + 4 * count as usize)
                } else {
                    0
                };
                rest = rest.get(12 + extra..).unwrap_or_default();
            }
        }
        inlinees.sort_by_key(|inlinee| inlinee.id);
        inlinees
    }

    /// Offset in the PDB's string table of the name of a file.
    pub(super) fn file_name(&self, file: u32) -> Option<u32> {
        self.bytes(self.checksums)?.u32_at(file as usize)
    }

    /// Whose id an imported id is: the name of that compiland as an offset in the string table, and the id there.
    pub(super) fn import(&self, id: u32) -> Option<(u32, u32)> {
        let (module, index) = ((id >> 20) & 0x7ff, (id & 0xf_ffff) as usize);
        let mut rest = self.bytes(self.imports)?;
        for _ in 0..module {
            rest = rest.get(8 + 4 * rest.u32_at(4)? as usize..)?;
        }
        (index < rest.u32_at(4)? as usize).then_some(())?;
        Some((rest.u32_at(0)?, rest.u32_at(8 + 4 * index)?))
    }

    /// The PDB-wide id of an id of this compiland.
    pub(super) fn export(&self, local: u32) -> Option<u32> {
        let pairs = self.bytes(self.exports)?.chunks_exact(8);
        pairs.into_iter().find(|pair| pair.u32_at(0) == Some(local))?.u32_at(4)
    }
}

impl Block {
    fn parse(body: &[u8], span: Span) -> Option<Self> {
        let start = Place { section: body.u16_at(4)?, offset: body.u32_at(0)? };
        Some(Block { start, len: body.u32_at(8)?, span })
    }

    fn contains(&self, place: Place) -> bool {
        self.start.section == place.section
            && place.offset.checked_sub(self.start.offset).is_some_and(|offset| offset < self.len)
    }
}
