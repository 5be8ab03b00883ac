//! The PDB of IL: what C# and Visual Basic compilers wrote before portable PDBs, and still write when told to.
//!
//! The container and the records are those of native code, with other meaning. A compiland is a type. A method's
//! symbol (`MANPROCSYM` in cvinfo.h) carries its metadata token; its section and offset are no place in the image, but
//! a place that the compiler made up, where a method takes as many bytes as its IL has. The line blocks use the
//! same places, so that an offset in a block is an IL offset.

use rustc_hash::FxHashMap;

use super::file::PdbFile;
use super::lines::LineTable;
use super::read_at::ReadAt;
use super::{PdbError, Place};
use crate::debug_id::DebugId;

const S_GMANPROC: u16 = 0x112a;
const S_LMANPROC: u16 = 0x112b;

/// The lines of IL in a Windows PDB.
pub(in crate::symbols) struct IlPdb<'a> {
    file: PdbFile<'a>,
    /// By token.
    methods: FxHashMap<u32, Method>,
    /// Of the compilands that have methods.
    lines: Vec<LineTable<'a>>,
}

struct Method {
    start: Place,
    /// Bytes of IL.
    len: u32,
    lines: usize,
}

impl<'a> IlPdb<'a> {
    pub(in crate::symbols) fn open(bytes: &'a [u8]) -> Result<Self, PdbError> {
        let mut pdb = IlPdb { file: PdbFile::open(bytes)?, methods: FxHashMap::default(), lines: Vec::new() };
        // A page belongs to one stream, so all streams together are no larger than the file. Without this check a
        // small file whose streams share their pages could take a lot of memory.
        let mut rest = bytes.len();
        for index in 0..pdb.file.compilands.len() {
            let taken = pdb.add_compiland(index, rest).unwrap_or(0);
            rest = rest.checked_sub(taken).ok_or(PdbError::Damaged)?;
        }
        Ok(pdb)
    }

    pub(in crate::symbols) fn id(&self) -> DebugId {
        self.file.id
    }

    /// The JSON of SourceLink.
    pub(in crate::symbols) fn source_links(&mut self) -> Option<Vec<u8>> {
        let stream = self.file.named_stream(b"sourcelink")?;
        Some(stream.bytes(0, stream.len())?.into_owned())
    }

    /// File and line of an IL offset in a method.
    pub(in crate::symbols) fn line(&self, token: u32, il_offset: u32) -> Option<(String, u32)> {
        let method = self.methods.get(&token).filter(|method| il_offset < method.len)?;
        let lines = self.lines.get(method.lines)?;
        let (file, line) = lines.line_at(method.start.forward(il_offset))?;
        Some((self.file.string(lines.file_name(file)?)?, line))
    }

    /// Gives how many bytes of the file it read; more than `limit` are not read.
    fn add_compiland(&mut self, index: usize, limit: usize) -> Option<usize> {
        let header = *self.file.compilands.get(index)?;
        let stream = self.file.stream(header.stream)?;
        let (symbols_len, lines_len) = (header.symbols_size as usize, header.c13_size as usize);
        let taken = symbols_len.checked_add(lines_len)?;
        if taken > limit {
            return Some(taken);
        }
        let symbols = stream.part(0, symbols_len)?;
        let lines = self.lines.len();
        let before = self.methods.len();
        // The first four bytes are the format's signature.
        let mut offset = 4;
        while let Some((kind, body, next)) = symbols.record(offset) {
            if let (S_GMANPROC | S_LMANPROC, Some((token, start, len))) = (kind, method(&body)) {
                self.methods.insert(token, Method { start, len, lines });
            }
            offset = next;
        }
        if self.methods.len() > before {
            let lines_start = symbols_len.checked_add(header.c11_size as usize)?;
            self.lines.push(LineTable::new(stream.part(lines_start, lines_len).unwrap_or_default()));
        }
        Some(taken)
    }
}

/// Token, made-up place and length of IL of a method's symbol.
fn method(body: &[u8]) -> Option<(u32, Place, u32)> {
    let start = Place { section: body.u16_at(32)?, offset: body.u32_at(28)? };
    Some((body.u32_at(24)?, start, body.u32_at(12)?))
}
