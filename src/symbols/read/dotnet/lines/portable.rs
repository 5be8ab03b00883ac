//! Portable PDBs: ECMA-335 metadata whose tables are about source instead of types (dotnet/runtime,
//! docs/design/specs/PortablePdb-Metadata.md).
//!
//! - *Document*: a source file; its name is cut at the folders, and each piece stored once.
//! - *MethodDebugInformation*: a row for each row of the assembly's MethodDef table, in the same order, so that a method's
//!   token leads straight to its sequence points. They are one blob, each written as the difference to the one before.
//! - *CustomDebugInformation*: anything else, told apart by a GUID. SourceLink's is one of them.

use super::super::cursor::Cursor;
use super::super::metadata::Metadata;
use super::super::metadata::tables::Table;
use super::{ManagedPdbError, SourceLine};
use crate::guid::Guid;

const SOURCE_LINK: Guid = Guid::from_u128(0xCC110556_A091_4D38_9FEC_25AB9A351A6A);

/// The first row of the Module table, as a HasCustomDebugInformation index.
const MODULE: u32 = 1 << 5 | 7;

/// No system has longer paths, bytes.
const MAX_PATH: usize = 1 << 15;

pub(super) struct PortablePdb<'d> {
    metadata: Metadata<'d>,
    id: Guid,
}

impl<'d> PortablePdb<'d> {
    pub(super) fn open(bytes: &'d [u8]) -> Result<Self, ManagedPdbError> {
        let metadata = Metadata::parse(bytes)?;
        let id = metadata.pdb_id().ok_or(ManagedPdbError::NotAPdb)?;
        Ok(PortablePdb { metadata, id })
    }

    pub(super) fn id(&self) -> Guid {
        self.id
    }

    /// The line of an IL offset in the method of this row. `None` too when the sequence points are damaged before there.
    pub(super) fn line(&self, row: u32, il_offset: u32) -> Option<SourceLine> {
        let mut points = SequencePoints::of(&self.metadata, row)?;
        let mut found = None;
        while let Some(point) = points.next()? {
            if point.il_offset > il_offset {
                break;
            }
            if let Some(line) = point.line {
                found = Some((point.document, line));
            }
        }
        let (document, line) = found?;
        Some(SourceLine { file: self.document_name(document)?, line })
    }

    /// The path of a source file: a separator and the pieces between which it stands, each a blob of its own.
    fn document_name(&self, row: u32) -> Option<String> {
        let name = self.metadata.blob(self.metadata.tables().cell(Table::Document, row, 0)?)?;
        let (&separator, pieces) = name.split_first()?;
        let mut pieces = Cursor::new(pieces, 0);
        let mut path = Vec::new();
        let mut first = true;
        while pieces.remaining() > 0 {
            if !first && separator != 0 {
                path.push(separator);
            }
            first = false;
            // Piece 0 is empty: a path that begins with a separator.
            match pieces.compressed()? {
                0 => {}
                piece => path.extend_from_slice(self.metadata.blob(piece)?),
            }
            if path.len() > MAX_PATH {
                return None;
            }
        }
        Some(String::from_utf8_lossy(&path).into_owned()).filter(|path| !path.is_empty())
    }

    /// The JSON of SourceLink.
    pub(super) fn source_links(&self) -> Option<&'d [u8]> {
        let tables = self.metadata.tables();
        let rows = 1..=tables.rows(Table::CustomDebugInformation);
        rows.into_iter().find_map(|row| {
            let cell = |column| tables.cell(Table::CustomDebugInformation, row, column);
            let wanted = cell(0)? == MODULE && self.metadata.guid(cell(1)?)? == SOURCE_LINK;
            wanted.then(|| self.metadata.blob(cell(2)?))?
        })
    }
}

/// A place in the IL where something begins.
struct SequencePoint {
    il_offset: u32,
    /// Row of the Document table.
    document: u32,
    /// `None`: hidden.
    line: Option<u32>,
}

/// A method's sequence points, decoded one by one.
///
/// The blob begins with the method's local signature, and the document if the row names none. A point is: IL offset,
/// how many lines and columns it spans, line, column; each less that of the point before, the first in full. No span
/// means hidden, and then line and column are left out. No difference in IL offset means no point, but that
/// another document follows.
struct SequencePoints<'d> {
    blob: Cursor<'d>,
    document: u32,
    il_offset: Option<u32>,
    /// Of the last point that was not hidden.
    line: Option<u32>,
}

impl<'d> SequencePoints<'d> {
    fn of(metadata: &Metadata<'d>, row: u32) -> Option<Self> {
        let cell = |column| metadata.tables().cell(Table::MethodDebugInformation, row, column);
        let mut blob = Cursor::new(metadata.blob(cell(1)?).filter(|blob| !blob.is_empty())?, 0);
        blob.compressed()?; // local signature
        let document = match cell(0)? {
            0 => blob.compressed()?,
            document => document,
        };
        Some(SequencePoints { blob, document, il_offset: None, line: None })
    }

    /// The next point, `Some(None)` at the end, `None` where the blob is damaged.
    fn next(&mut self) -> Option<Option<SequencePoint>> {
        loop {
            if self.blob.remaining() == 0 {
                return Some(None);
            }
            let difference = self.blob.compressed()?;
            match self.il_offset {
                None => self.il_offset = Some(difference),
                Some(_) if difference == 0 => {
                    self.document = self.blob.compressed()?;
                    continue;
                }
                Some(before) => self.il_offset = Some(before.checked_add(difference)?),
            }
            break;
        }
        let lines = self.blob.compressed()?;
        let columns =
            if lines == 0 { self.blob.compressed()? as i32 } else { self.blob.compressed_signed()? };
        let mut point = SequencePoint { il_offset: self.il_offset?, document: self.document, line: None };
        if lines != 0 || columns != 0 {
            let line = match self.line {
                None => {
                    let line = self.blob.compressed()?;
                    self.blob.compressed()?; // column
                    line
                }
                Some(before) => {
                    let line = before.checked_add_signed(self.blob.compressed_signed()?)?;
                    self.blob.compressed_signed()?; // column
                    line
                }
            };
            self.line = Some(line);
            point.line = Some(line);
        }
        Some(Some(point))
    }
}
