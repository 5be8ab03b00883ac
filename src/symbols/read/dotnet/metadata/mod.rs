//! ECMA-335 metadata, read in place: tables, heaps, and the names and signatures in them.
//!
//! The COR header points to a *metadata root* (II.24.2.1): a small directory of streams. `#~` holds tables of fixed
//! width rows, `#Strings` the UTF-8 names, `#Blob` the signatures. A column's width depends on how many rows the
//! tables it points to have, so the widths are computed once ([`tables`]) and then each cell is a few bytes at a
//! known place. Nothing is copied: a [`Metadata`] is a few slices and two small arrays.
//!
//! A portable PDB is metadata too. Its tables point into those of the assembly's file, so a stream `#Pdb` says how many
//! rows those have, and which build it belongs to.
//!
//! A *token* names a row: the table in the high byte, the row (counted from 1) below.

pub(crate) mod names;
pub(crate) mod signature;
pub mod tables;
#[cfg(test)]
mod tests;

pub(crate) use signature::Modules;
use tables::{RowCounts, Table, Tables, row_counts};

use super::cursor::Cursor;
use crate::guid::Guid;

/// What metadata begins with, and so a portable PDB.
pub const MAGIC: &[u8; 4] = b"BSJB";

/// Names are 1,023 bytes at most by the compilers' own rule; this leaves room for those that have another.
const MAX_STRING: usize = 4096;

/// Why bytes are not metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The root does not begin with `BSJB`.
    #[error("no metadata signature")]
    Signature,
    /// The root or its stream directory is cut.
    #[error("metadata root cut at byte {0}")]
    Cut(usize),
    /// No `#~` stream, hence no tables.
    #[error("no table stream")]
    NoTables,
    /// The table stream is cut before its row counts end.
    #[error("table stream cut in its header")]
    TablesCut,
    /// The stream that makes it a portable PDB is cut.
    #[error("#Pdb stream cut")]
    PdbCut,
}

/// One assembly's metadata, borrowed from the image.
#[derive(Debug, Clone)]
pub struct Metadata<'d> {
    tables: Tables<'d>,
    strings: &'d [u8],
    blobs: &'d [u8],
    guids: &'d [u8],
    /// Which build a portable PDB belongs to.
    pdb_id: Option<Guid>,
}

impl<'d> Metadata<'d> {
    /// Reads the root at the start of `root`; ECMA-335 II.24.2.
    pub fn parse(root: &'d [u8]) -> Result<Self, MetadataError> {
        let mut cursor = Cursor::new(root, 0);
        if cursor.take(MAGIC.len()) != Some(MAGIC) {
            return Err(MetadataError::Signature);
        }
        let streams = Streams::read(root, &mut cursor).ok_or(MetadataError::Cut(cursor.pos()))?;
        let tables = streams.tables.ok_or(MetadataError::NoTables)?;
        let pdb = match streams.pdb {
            Some(stream) => Some(PdbStream::read(stream).ok_or(MetadataError::PdbCut)?),
            None => None,
        };
        let elsewhere = pdb.as_ref().map_or([0; 64], |pdb| pdb.rows);
        Ok(Metadata {
            tables: Tables::parse(tables, &elsewhere).ok_or(MetadataError::TablesCut)?,
            strings: streams.strings,
            blobs: streams.blobs,
            guids: streams.guids,
            pdb_id: pdb.map(|pdb| pdb.id),
        })
    }

    /// Which build this belongs to, if it is a portable PDB.
    pub fn pdb_id(&self) -> Option<Guid> {
        self.pdb_id
    }

    /// The tables themselves.
    pub fn tables(&self) -> &Tables<'d> {
        &self.tables
    }

    /// The string at an offset of the `#Strings` heap. Not valid UTF-8, out of the heap, cut or absurdly long:
    /// `None`.
    pub fn string(&self, offset: u32) -> Option<&'d str> {
        let bytes = self.strings.get(offset as usize..)?;
        let bytes = bytes.get(..MAX_STRING).unwrap_or(bytes);
        let end = bytes.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(bytes.get(..end)?).ok()
    }

    /// The bytes at an offset of the `#Blob` heap.
    pub fn blob(&self, offset: u32) -> Option<&'d [u8]> {
        let mut cursor = Cursor::new(self.blobs, offset as usize);
        let len = cursor.compressed()?;
        cursor.take(len as usize)
    }

    /// A GUID of the `#GUID` heap, by its number from 1.
    pub fn guid(&self, number: u32) -> Option<Guid> {
        let start = (number.checked_sub(1)? as usize).checked_mul(16)?;
        Some(Guid::from_bytes(self.guids.get(start..)?.first_chunk()?))
    }

    /// The assembly's simple name; `None` in a netmodule.
    pub fn assembly_name(&self) -> Option<&'d str> {
        self.string(self.tables.cell(Table::Assembly, 1, 7)?)
    }

    /// The module's MVID: another one for each build (II.22.30).
    pub fn mvid(&self) -> Option<Guid> {
        self.guid(self.tables.cell(Table::Module, 1, 2)?)
    }

    /// The assembly's version: major, minor, build, revision.
    pub fn assembly_version(&self) -> Option<[u16; 4]> {
        self.version(Table::Assembly, 1, 1)
    }

    /// The version of a referenced assembly, by its row from 1.
    pub fn assembly_ref_version(&self, row: u32) -> Option<[u16; 4]> {
        self.version(Table::AssemblyRef, row, 0)
    }

    /// Four columns of two bytes, from `column` on.
    fn version(&self, table: Table, row: u32, column: usize) -> Option<[u16; 4]> {
        let part = |at: usize| u16::try_from(self.tables.cell(table, row, column + at)?).ok();
        Some([part(0)?, part(1)?, part(2)?, part(3)?])
    }

    /// How many assemblies this one refers to.
    pub fn assembly_ref_count(&self) -> u32 {
        self.tables.rows(Table::AssemblyRef)
    }

    /// The simple name of a referenced assembly, by its row from 1.
    pub fn assembly_ref_name(&self, row: u32) -> Option<&'d str> {
        self.string(self.tables.cell(Table::AssemblyRef, row, 6)?)
    }
}

/// The streams that names and source lines come from.
#[derive(Default)]
struct Streams<'d> {
    tables: Option<&'d [u8]>,
    pdb: Option<&'d [u8]>,
    strings: &'d [u8],
    blobs: &'d [u8],
    guids: &'d [u8],
}

impl<'d> Streams<'d> {
    /// Reads the directory behind the signature. A stream cut by the end of the file keeps what is there.
    fn read(root: &'d [u8], cursor: &mut Cursor<'d>) -> Option<Self> {
        cursor.take(8)?; // versions, reserved
        let version_len = cursor.u32()?;
        cursor.take(version_len as usize)?;
        cursor.u16()?; // flags
        let mut streams = Streams::default();
        for _ in 0..cursor.u16()? {
            let start = cursor.u32()? as usize;
            let len = cursor.u32()? as usize;
            let name = stream_name(cursor)?;
            let bytes = root.get(start..).unwrap_or_default();
            let bytes = bytes.get(..len).unwrap_or(bytes);
            match name {
                b"#~" | b"#-" => streams.tables = Some(bytes),
                b"#Strings" => streams.strings = bytes,
                b"#Blob" => streams.blobs = bytes,
                b"#GUID" => streams.guids = bytes,
                b"#Pdb" => streams.pdb = Some(bytes),
                _ => {}
            }
        }
        Some(streams)
    }
}

/// The `#Pdb` stream: which build the PDB belongs to, and how many rows the assembly's tables have.
struct PdbStream {
    id: Guid,
    rows: RowCounts,
}

impl PdbStream {
    fn read(stream: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(stream, 0);
        let id = Guid::from_bytes(cursor.take(16)?.first_chunk()?);
        cursor.take(8)?; // time stamp, entry point
        let present = cursor.u64()?;
        Some(PdbStream { id, rows: row_counts(&mut cursor, present)? })
    }
}

/// A stream's name: zero-terminated, padded to 4 bytes, 32 at most (II.24.2.2).
fn stream_name<'d>(cursor: &mut Cursor<'d>) -> Option<&'d [u8]> {
    let mut name: &[u8] = &[];
    let start = *cursor;
    for words in 1..=8 {
        cursor.take(4)?;
        name = start.clone().take(4 * words)?;
        if let Some(end) = name.iter().position(|&byte| byte == 0) {
            return name.get(..end);
        }
    }
    Some(name)
}
