//! The symbols of one compiland: which functions it has and where, and the functions inlined into each.
//!
//! The stream is a list of CodeView symbol records (`CodeView Symbols`, Microsoft's microsoft-pdb repository,
//! `include/cvinfo.h`). Records nest: a procedure ends at the record its `end` field points to, and between the two
//! stand its inline sites, each of which ends the same way. An inline site says which function was inlined
//! and, in a small bytecode ("binary annotations"), which code came from which of its lines.
//!
//! Of a stream only an index of the procedures is kept; the records are read again where they lie when an address needs
//! them. A PDB can have gigabytes of them.

use super::Place;
use super::annotations::Rows;
use super::lines::LineTable;
use super::read_at::ReadAt;
use super::stream::Stream;

const S_TRAMPOLINE: u16 = 0x112c;
const S_SEPCODE: u16 = 0x1132;
const S_THUNK32: u16 = 0x1102;
const S_THUNK32_ST: u16 = 0x0206;
const S_LPROC32_ST: u16 = 0x100a;
const S_GPROC32_ST: u16 = 0x100b;
const S_LPROC32: u16 = 0x110f;
const S_GPROC32: u16 = 0x1110;
const S_LPROC32_ID: u16 = 0x1146;
const S_GPROC32_ID: u16 = 0x1147;
const S_LPROC32_DPC: u16 = 0x1155;
const S_LPROC32_DPC_ID: u16 = 0x1156;
const S_INLINESITE: u16 = 0x114d;
const S_INLINESITE2: u16 = 0x115d;
const S_INLINESITE_END: u16 = 0x114e;

/// Deeper nesting is damage: real code inlines a few dozen levels at most.
const MAX_INLINE_DEPTH: usize = 512;

/// A stretch of code and the record that names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Procedure {
    pub(super) start: Place,
    pub(super) len: u32,
    /// Offset of its symbol record in the compiland's stream.
    record: u32,
}

impl Procedure {
    pub(super) fn contains(&self, place: Place) -> bool {
        self.start.section == place.section
            && place.offset.checked_sub(self.start.offset).is_some_and(|offset| offset < self.len)
    }
}

/// One function inlined at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlinedCall {
    /// Index of the function in the id stream.
    pub(super) inlinee: u32,
    /// Offset of the file in the file table, and line; `None` where no line covers the address.
    pub(super) line: Option<(u32, u32)>,
}

/// The symbol stream of one compiland with an index of its procedures.
#[derive(Debug)]
pub(super) struct Compiland<'a> {
    symbols: Stream<'a>,
    /// Sorted by start.
    procedures: Vec<Procedure>,
    pub(super) lines: LineTable<'a>,
}

impl<'a> Compiland<'a> {
    pub(super) fn new(symbols: Stream<'a>, lines: LineTable<'a>) -> Self {
        let mut procedures = Vec::new();
        // The first four bytes are the format's signature.
        let mut offset = 4;
        while let Some((kind, body, next)) = symbols.record(offset) {
            let end = extent(kind, &body).map(|(start, len)| {
                procedures.push(Procedure { start, len, record: offset as u32 });
                // Whatever nests in a procedure is looked at when an address of it is.
                body.u32_at(4).map_or(0, |end| end as usize)
            });
            offset = next.max(end.filter(|end| kind != S_TRAMPOLINE && *end < symbols.len()).unwrap_or(0));
        }
        procedures.sort_by_key(|procedure| procedure.start);
        procedures.shrink_to_fit();
        Compiland { symbols, procedures, lines }
    }

    /// The procedure whose code holds `place`.
    pub(super) fn procedure_at(&self, place: Place) -> Option<Procedure> {
        let next = self.procedures.partition_point(|procedure| procedure.start <= place);
        let before = self.procedures.get(..next)?;
        // Folded functions and fragments share a start; an outer one may begin a little earlier.
        let found = before.iter().rev().take(8).find(|procedure| procedure.contains(place))?;
        let first = before.partition_point(|procedure| procedure.start < found.start);
        before.get(first..)?.iter().find(|procedure| procedure.contains(place)).copied()
    }

    /// The last procedure of the section that begins at or before `place`, whether it holds it or not.
    pub(super) fn last_before(&self, place: Place) -> Option<Procedure> {
        let next = self.procedures.partition_point(|procedure| procedure.start <= place);
        let before = self.procedures.get(next.checked_sub(1)?).copied();
        before.filter(|before| before.start.section == place.section)
    }

    /// The name of a procedure, as written: with its scope, without parameters, or decorated.
    pub(super) fn name(&self, procedure: Procedure) -> Option<String> {
        let (kind, body, _) = self.symbols.record(procedure.record as usize)?;
        let name = match kind {
            S_SEPCODE => {
                let parent = Place { section: body.u16_at(26)?, offset: body.u32_at(20)? };
                let parent = self.procedure_at(parent)?;
                let (kind, ..) = self.symbols.record(parent.record as usize)?;
                return if kind == S_SEPCODE { None } else { self.name(parent) };
            }
            S_TRAMPOLINE => return None,
            S_THUNK32 => body.cstr_at(21)?,
            S_THUNK32_ST => pascal_at(&body, 21)?,
            S_LPROC32_ST | S_GPROC32_ST => pascal_at(&body, 35)?,
            _ => body.cstr_at(35)?,
        };
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }

    /// Where a jump of an incremental link leads, when `procedure` is one.
    pub(super) fn trampoline_target(&self, procedure: Procedure) -> Option<Place> {
        let (kind, body, _) = self.symbols.record(procedure.record as usize)?;
        (kind == S_TRAMPOLINE).then_some(())?;
        Some(Place { section: body.u16_at(14)?, offset: body.u32_at(8)? })
    }

    /// The calls that were inlined at `place`, outermost first.
    pub(super) fn inlined_at(&self, procedure: Procedure, place: Place) -> Vec<InlinedCall> {
        let Some((kind, body, next)) = self.symbols.record(procedure.record as usize) else {
            return Vec::new();
        };
        let is_procedure = !matches!(kind, S_THUNK32 | S_THUNK32_ST | S_TRAMPOLINE | S_SEPCODE);
        let Some(end) = body.u32_at(4).filter(|_| is_procedure) else { return Vec::new() };
        let code_offset = place.offset - procedure.start.offset;

        // The sites around the current record, and the deepest chain that holds the address.
        let mut open: Vec<InlinedCall> = Vec::new();
        // Sites beyond the depth are passed over together with their ends.
        let mut deeper = 0usize;
        let mut found: Vec<InlinedCall> = Vec::new();
        let mut offset = next;
        while let Some((kind, body, next)) = self.symbols.record(offset) {
            if offset >= end as usize {
                break;
            }
            match kind {
                S_INLINESITE | S_INLINESITE2 if open.len() < MAX_INLINE_DEPTH => {
                    let code = body.get(if kind == S_INLINESITE { 12 } else { 16 }..).unwrap_or_default();
                    let inlinee = body.u32_at(8).unwrap_or_default();
                    let row = Rows::new(code).find(|row| row.contains(code_offset));
                    let line = row.and_then(|row| self.lines.inlined_line(inlinee, row.file, row.line));
                    open.push(InlinedCall { inlinee, line });
                    if row.is_some() && open.len() > found.len() {
                        found.clone_from(&open);
                    }
                }
                S_INLINESITE | S_INLINESITE2 => deeper += 1,
                S_INLINESITE_END if deeper > 0 => deeper -= 1,
                S_INLINESITE_END => drop(open.pop()),
                _ => {}
            }
            offset = next;
        }
        found
    }
}

/// Start and length of the code that a record is about, when it is about code of its own.
fn extent(kind: u16, body: &[u8]) -> Option<(Place, u32)> {
    let (section, offset, len) = match kind {
        S_LPROC32 | S_GPROC32 | S_LPROC32_ID | S_GPROC32_ID | S_LPROC32_DPC | S_LPROC32_DPC_ID
        | S_LPROC32_ST | S_GPROC32_ST => (body.u16_at(32)?, body.u32_at(28)?, body.u32_at(12)?),
        S_THUNK32 | S_THUNK32_ST => (body.u16_at(16)?, body.u32_at(12)?, body.u16_at(18)?.into()),
        S_SEPCODE => (body.u16_at(24)?, body.u32_at(16)?, body.u32_at(8)?),
        S_TRAMPOLINE => (body.u16_at(12)?, body.u32_at(4)?, body.u16_at(2)?.into()),
        _ => return None,
    };
    Some((Place { section, offset }, len)).filter(|(place, _)| place.section != 0)
}

/// A string with its length in the byte before it, as older records have them.
fn pascal_at(body: &[u8], offset: usize) -> Option<&[u8]> {
    let (len, rest) = body.get(offset..)?.split_first()?;
    rest.get(..usize::from(*len))
}
