//! The bytecode of an inline site: which code of the procedure came from which line of the inlined function.
//!
//! Each operation is a number and its operands, all packed into one, two or four bytes by their leading bits. It
//! moves a cursor (code offset, line, file); some operations also say that a row begins at the cursor. A row lasts
//! until the next one begins unless its length is given. (`CodeViewAnnotation`: cvinfo.h, `BA_OP_*`.)

use std::iter::Peekable;

/// Code from one line of the inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// First byte, counted from the start of the procedure.
    pub(super) start: u32,
    /// The byte behind its last.
    pub(super) end: u32,
    /// Offset in the file table, when the site leaves the file in which the function begins.
    pub(super) file: Option<u32>,
    /// Lines below (or above) the function's first line.
    pub(super) line: i32,
}

impl Row {
    pub(super) fn contains(&self, offset: u32) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

/// Decodes the rows of one inline site.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    operations: Peekable<Operations<'a>>,
    base: u32,
    offset: u32,
    file: Option<u32>,
    line: i32,
    pending: Option<Row>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(code: &'a [u8]) -> Self {
        let operations = Operations { code }.peekable();
        Rows { operations, base: 0, offset: 0, file: None, line: 0, pending: None }
    }

    /// Begins a row at the cursor and gives the one before it, ended here if it was still open.
    fn begin(&mut self, len: Option<u32>) -> Option<Row> {
        let start = self.base.wrapping_add(self.offset);
        let end = len.map_or(OPEN, |len| start.saturating_add(len));
        let before = self.pending.replace(Row { start, end, file: self.file, line: self.line });
        before.map(|row| if row.end == OPEN { Row { end: start, ..row } } else { row })
    }
}

/// The end of a row that nothing has ended yet.
const OPEN: u32 = u32::MAX;

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        while let Some((operation, first, second)) = self.operations.next() {
            let before = match operation {
                1 => {
                    self.offset = first;
                    None
                }
                2 => {
                    self.base = first;
                    None
                }
                3 => {
                    self.offset = self.offset.wrapping_add(first);
                    self.begin(None)
                }
                4 => {
                    // The length of the row that is open; the cursor goes behind it.
                    if let Some(row) = self.pending.as_mut().filter(|row| row.end == OPEN) {
                        row.end = row.start.saturating_add(first);
                    }
                    self.offset = self.offset.wrapping_add(first);
                    None
                }
                5 => {
                    self.file = Some(first);
                    None
                }
                6 => {
                    self.line = self.line.wrapping_add(signed(first));
                    None
                }
                0xb => {
                    self.offset = self.offset.wrapping_add(first & 0xf);
                    self.line = self.line.wrapping_add(signed(first >> 4));
                    self.begin(None)
                }
                0xc => {
                    self.offset = self.offset.wrapping_add(second);
                    self.begin(Some(first))
                }
                // Columns and range kinds.
                _ => None,
            };
            if before.is_some() {
                return before;
            }
        }
        // A last row without a length has none that we could know.
        self.pending.take().filter(|row| row.end != OPEN)
    }
}

fn signed(packed: u32) -> i32 {
    let magnitude = (packed >> 1) as i32;
    if packed & 1 == 0 { magnitude } else { -magnitude }
}

/// Operation number and up to two operands.
#[derive(Debug)]
struct Operations<'a> {
    code: &'a [u8],
}

impl Operations<'_> {
    fn number(&mut self) -> Option<u32> {
        let (value, rest) = match *self.code {
            [a, ref rest @ ..] if a & 0x80 == 0 => (u32::from(a), rest),
            [a, b, ref rest @ ..] if a & 0xc0 == 0x80 => (u32::from_be_bytes([0, 0, a & 0x3f, b]), rest),
            [a, b, c, d, ref rest @ ..] if a & 0xe0 == 0xc0 => {
                (u32::from_be_bytes([a & 0x1f, b, c, d]), rest)
            }
            _ => return None,
        };
        self.code = rest;
        Some(value)
    }
}

impl Iterator for Operations<'_> {
    type Item = (u32, u32, u32);

    fn next(&mut self) -> Option<Self::Item> {
        // Zero is padding up to the record's end.
        let operation = self.number().filter(|operation| *operation != 0)?;
        let first = self.number()?;
        let second = if operation == 0xc { self.number()? } else { 0 };
        Some((operation, first, second))
    }
}
