//! Names of inlined functions, from the type streams.
//!
//! An inline site names its function by an index into the id stream (IPI): a free function with its scope, or
//! a member function with its class, whose record is in the type stream (TPI). Both streams are lists of
//! records of varying length, numbered from the header's first index, so finding number N means counting; but their
//! hash streams hold the offset of about every hundredth record, and counting starts there.
//! (microsoft-pdb, PDB/dbi/tpi.h: `HDR`, `TpiHash`; cvinfo.h: `LF_*`.)

use std::borrow::Cow;
use std::collections::HashMap;

use super::read_at::ReadAt;
use super::stream::Stream;
use crate::symbols::read::limits::{shortened, shortened_to};

const LF_CLASS: u16 = 0x1504;
const LF_STRUCTURE: u16 = 0x1505;
const LF_UNION: u16 = 0x1506;
const LF_ENUM: u16 = 0x1507;
const LF_INTERFACE: u16 = 0x1519;
const LF_FUNC_ID: u16 = 0x1601;
const LF_MFUNC_ID: u16 = 0x1602;
const LF_STRING_ID: u16 = 0x1605;
const LF_CLASS2: u16 = 0x1608;
const LF_STRUCTURE2: u16 = 0x1609;
const LF_UNION2: u16 = 0x160a;
const LF_INTERFACE2: u16 = 0x160b;

/// Scopes nest by their names, not by records, so more than a few steps are damage.
const MAX_SCOPES: usize = 16;

/// One of the two type streams, with the offsets at which counting may start.
#[derive(Debug, Default)]
pub(super) struct Records<'a> {
    stream: Stream<'a>,
    first_index: u32,
    end_index: u32,
    /// (index, offset in the stream), ascending.
    milestones: Vec<(u32, usize)>,
}

impl<'a> Records<'a> {
    /// Reads the header; `hash` gives the hash stream by its number.
    pub(super) fn new(stream: Stream<'a>, hash: impl FnOnce(u16) -> Option<Stream<'a>>) -> Option<Self> {
        let header_size = stream.u32(4)? as usize;
        let (first_index, end_index) = (stream.u32(8)?, stream.u32(12)?);
        let mut milestones = vec![(first_index, header_size)];
        if let (Some(number), Some(offset), Some(len)) = (stream.u16(20), stream.u32(40), stream.u32(44)) {
            let pairs = hash(number).and_then(|hash| hash.bytes(offset as usize, len as usize));
            for pair in pairs.as_deref().unwrap_or_default().chunks_exact(8) {
                let (index, offset) = (pair.u32_at(0)?, header_size.checked_add(pair.u32_at(4)? as usize)?);
                // Out of order would send the search astray; without it counting only takes longer.
                if milestones.last().is_none_or(|last| last.0 < index && last.1 < offset) {
                    milestones.push((index, offset));
                }
            }
        }
        Some(Records { stream, first_index, end_index, milestones })
    }

    /// Kind and contents of record number `index`.
    fn get(&self, index: u32) -> Option<(u16, Cow<'a, [u8]>)> {
        if !(self.first_index..self.end_index).contains(&index) {
            return None;
        }
        let next = self.milestones.partition_point(|(milestone, _)| *milestone <= index);
        let (mut current, mut offset) = *self.milestones.get(next.checked_sub(1)?)?;
        while current < index {
            offset = offset.checked_add(2 + usize::from(self.stream.u16(offset)?))?;
            current += 1;
        }
        let (kind, body, _) = self.stream.record(offset)?;
        Some((kind, body))
    }
}

/// Names functions by their id, each once.
#[derive(Debug, Default)]
pub(super) struct FunctionNames<'a> {
    pub(super) types: Records<'a>,
    pub(super) ids: Records<'a>,
    names: HashMap<u32, Option<String>, rustc_hash::FxBuildHasher>,
    /// Bytes of names that may still be kept in full: many may have one long scope.
    full: usize,
}

/// Names take no more than so many times the space of the records, and never less than so many bytes.
const FULL_NAMES_FACTOR: usize = 4;
const FULL_NAMES_FLOOR: usize = 8 << 20;
/// And then are cut to so many.
const CUT_NAME: usize = 64;

impl<'a> FunctionNames<'a> {
    pub(super) fn new(types: Records<'a>, ids: Records<'a>) -> Self {
        let records = types.stream.len() + ids.stream.len();
        let full = FULL_NAMES_FLOOR.max(FULL_NAMES_FACTOR * records);
        FunctionNames { types, ids, names: HashMap::default(), full }
    }

    /// The function's name with its scope, without parameters.
    pub(super) fn get(&mut self, id: u32) -> Option<&str> {
        let (types, ids) = (&self.types, &self.ids);
        let full = &mut self.full;
        let read = || {
            let name = id_name(types, ids, id, MAX_SCOPES)?;
            *full = full.saturating_sub(name.len());
            Some(if *full > 0 { name } else { shortened_to(name, CUT_NAME) })
        };
        self.names.entry(id).or_insert_with(read).as_deref()
    }
}

fn id_name(types: &Records<'_>, ids: &Records<'_>, id: u32, scopes: usize) -> Option<String> {
    let (kind, body) = ids.get(id)?;
    let scope = || Some(body.u32_at(0)?).filter(|scope| *scope != 0 && scopes > 0);
    let (scope, name) = match kind {
        LF_FUNC_ID => (scope().and_then(|scope| id_name(types, ids, scope, scopes - 1)), body.cstr_at(8)?),
        LF_MFUNC_ID => (scope().and_then(|class| type_name(types, class)), body.cstr_at(8)?),
        LF_STRING_ID => (None, body.cstr_at(4)?),
        _ => return None,
    };
    let name = String::from_utf8_lossy(name);
    Some(shortened(match scope {
        Some(scope) => format!("{scope}::{name}"),
        None => name.into_owned(),
    }))
}

fn type_name(types: &Records<'_>, index: u32) -> Option<String> {
    let (kind, body) = types.get(index)?;
    let name = match kind {
        LF_CLASS | LF_STRUCTURE | LF_INTERFACE => after_number(&body, 16)?,
        LF_UNION => after_number(&body, 8)?,
        LF_ENUM => 12,
        LF_CLASS2 | LF_STRUCTURE2 | LF_INTERFACE2 => after_number(&body, 18)?,
        LF_UNION2 => after_number(&body, 10)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(body.cstr_at(name)?).into_owned())
}

/// The offset behind a number of varying size: 16 bits, or a kind (0x8000 and up) and as much as the kind needs.
fn after_number(body: &[u8], offset: usize) -> Option<usize> {
    let len = match body.u16_at(offset)? {
        ..0x8000 => 0,
        0x8000 => 1,
        0x8001 | 0x8002 => 2,
        0x8003 | 0x8004 => 4,
        0x8009 | 0x800a => 8,
        _ => return None,
    };
    Some(offset + 2 + len)
}
