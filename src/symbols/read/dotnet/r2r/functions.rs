//! The runtime-function table: pieces of code with their unwind data.
//!
//! x64 rows are begin, end, unwind data (12 bytes). The others are begin and unwind data (8 bytes), and the length is
//! in the unwind data: packed into the word itself or in the record it points to (learn.microsoft.com, ARM and ARM64
//! exception handling); ReadyToRun's x86 record is just the length.

use std::ops::Range;

use super::super::cursor::Cursor;
use super::R2rError;
use super::header::{self, Header, SectionKind};
use crate::symbols::read::pe::{Image, Machine};

/// The forms of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    X64,
    X86,
    Arm,
    Arm64,
}

/// Machine numbers of 32-bit ARM and, XORed into the number, of the systems other than Windows: Linux, Apple,
/// FreeBSD, NetBSD, SunOS (dotnet/runtime, pedecoder.h; Linux verified on System.ComponentModel.EventBasedAsync.dll,
/// 0xFD1D = 0x8664 ^ 0x7B79).
const ARM: u16 = 0x01C4;
const OS_MARKS: [u16; 5] = [0x7B79, 0x4644, 0xADC4, 0x1993, 0x1992];

impl Form {
    fn of(machine: Machine) -> Option<Self> {
        match machine {
            Machine::X64 => Some(Form::X64),
            Machine::X86 => Some(Form::X86),
            Machine::Arm64 => Some(Form::Arm64),
            Machine::Other(ARM) => Some(Form::Arm),
            Machine::Other(number) => OS_MARKS.iter().find_map(|mark| match Machine::from(number ^ mark) {
                Machine::Other(ARM) => Some(Form::Arm),
                Machine::Other(_) => None,
                known => Form::of(known),
            }),
        }
    }

    fn row_len(self) -> usize {
        if self == Form::X64 { 12 } else { 8 }
    }
}

/// The table, borrowed.
pub(super) struct Functions<'d> {
    rows: &'d [u8],
    form: Form,
    count: u32,
}

impl<'d> Functions<'d> {
    pub(super) fn find(pe: &Image<'d>, header: &Header) -> Result<Self, R2rError> {
        let form = Form::of(pe.machine).ok_or(R2rError::Machine(pe.machine))?;
        let rows = match header.section(SectionKind::RuntimeFunctions) {
            Some((rva, size)) => header::bytes(pe, (rva, size))
                .ok_or(R2rError::Cut { what: "the runtime-function table", rva })?,
            None => &[],
        };
        let mut functions = Functions { rows, form, count: 0 };
        functions.count = u32::try_from(rows.len() / form.row_len()).unwrap_or(u32::MAX);
        // The last row may be an end mark of all ones.
        if functions.count > 0 && functions.begin(functions.count - 1).is_none() {
            functions.count -= 1;
        }
        Ok(functions)
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    fn row(&self, index: u32) -> Option<Cursor<'d>> {
        let len = self.form.row_len();
        let start = (index as usize).checked_mul(len)?;
        let row = self.rows.get(start..start.checked_add(len)?)?;
        Some(Cursor::new(row, 0))
    }

    fn begin(&self, index: u32) -> Option<u32> {
        let begin = self.row(index)?.u32().filter(|&begin| begin != u32::MAX)?;
        // Thumb code is marked by the low bit.
        Some(if self.form == Form::Arm { begin & !1 } else { begin })
    }

    /// The RVA range of a function; never beyond the start of the next one.
    pub(super) fn range(&self, index: u32, pe: &Image<'_>) -> Option<Range<u32>> {
        if index >= self.count {
            return None;
        }
        let begin = self.begin(index)?;
        let next = index.checked_add(1).and_then(|next| self.begin(next)).filter(|&next| next > begin);
        let end = match self.form {
            Form::X64 => {
                let mut row = self.row(index)?;
                row.u32()?;
                row.u32()
            }
            _ => self.unwind_length(index, pe).and_then(|length| begin.checked_add(length)),
        };
        // Unwind data that cannot be read leaves the next function's start as the only evidence.
        let end = end.filter(|&end| end > begin).or(next)?;
        Some(begin..next.map_or(end, |next| end.min(next)))
    }

    /// The code length in the unwind data, bytes.
    fn unwind_length(&self, index: u32, pe: &Image<'_>) -> Option<u32> {
        let mut row = self.row(index)?;
        row.u32()?;
        let unwind = row.u32()?;
        let unit = match self.form {
            Form::X64 => return None,
            Form::X86 => return Cursor::new(pe.bytes_from(unwind)?, 0).gc_unsigned(),
            Form::Arm => 2,
            Form::Arm64 => 4,
        };
        // Low bits 0: the RVA of a record with an 18-bit length; else the record is packed here, 11 bits of length.
        if unwind & 3 == 0 {
            Some((Cursor::new(pe.bytes_from(unwind)?, 0).u32()? & 0x3_FFFF) * unit)
        } else {
            Some((unwind >> 2 & 0x7FF) * unit)
        }
    }

    /// The function that covers `rva`.
    pub(super) fn containing(&self, rva: u32, pe: &Image<'_>) -> Option<u32> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin(middle)? <= rva {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        self.range(index, pe)?.contains(&rva).then_some(index)
    }
}

/// The index of the first runtime function in an entry point. Its low bit says that fix-ups follow, the second then
/// that they stand elsewhere.
pub(super) fn entry_function(mut cursor: Cursor<'_>) -> Option<u32> {
    let id = cursor.native_unsigned()?;
    Some(if id & 1 != 0 { id >> 2 } else { id >> 1 })
}

/// The hot/cold map: (first cold function, first hot function) of each split method, by the first.
pub(super) fn cold_parts(pe: &Image<'_>, header: &Header) -> Vec<(u32, u32)> {
    let map = header.section(SectionKind::HotColdMap).and_then(|extent| header::bytes(pe, extent));
    let pairs = map.unwrap_or_default().chunks_exact(8);
    let mut parts: Vec<_> = pairs
        .filter_map(|pair| {
            let mut cursor = Cursor::new(pair, 0);
            Some((cursor.u32()?, cursor.u32()?))
        })
        .collect();
    parts.sort_unstable();
    parts
}
