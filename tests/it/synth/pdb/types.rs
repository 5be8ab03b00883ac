//! The two streams of types: one for the type of every procedure, one for the names of inlined functions.
//! (llvm.org/docs/PDB/TpiStream.html; records: cvinfo.h, `lfArgList`, `lfProc`, `lfStringId`, `lfFuncId`)

use super::{Bytes, bytes, record};

const LF_PROCEDURE: u16 = 0x1008;
const LF_ARGLIST: u16 = 0x1201;
const LF_FUNC_ID: u16 = 0x1601;
const LF_STRING_ID: u16 = 0x1605;

const FIRST: u32 = 0x1000;
const VOID: u32 = 3;
const BUCKETS: u32 = 0x3FFFF;

/// `void ()`, behind its empty list of parameters.
pub(super) const PROCEDURE: u32 = FIRST + 1;

fn filled(kind: u16, contents: Bytes) -> Vec<u8> {
    // LF_PAD3, LF_PAD2, LF_PAD1.
    record(kind, contents, |bytes, missing| (0..missing).rev().fold(bytes, |b, left| b.u8(0xF1 + left as u8)))
}

/// The records of the one type.
pub(super) fn procedure_type() -> Vec<Vec<u8>> {
    let parameters = filled(LF_ARGLIST, bytes().u32(0));
    let procedure = filled(LF_PROCEDURE, bytes().u32(VOID).u8(0).u8(0).u16(0).u32(FIRST));
    vec![parameters, procedure]
}

/// The ids of functions that were inlined.
#[derive(Default)]
pub(super) struct Ids(Vec<Vec<u8>>);

impl Ids {
    /// The id of `scope::name`.
    pub(super) fn function(&mut self, name: &str) -> u32 {
        let (scope, name) = match name.rsplit_once("::") {
            Some((scope, name)) => (self.put(filled(LF_STRING_ID, bytes().u32(0).ansiz(scope))), name),
            None => (0, name),
        };
        self.put(filled(LF_FUNC_ID, bytes().u32(scope).u32(PROCEDURE).ansiz(name)))
    }

    fn put(&mut self, record: Vec<u8>) -> u32 {
        let known = self.0.iter().position(|known| *known == record);
        let index = known.unwrap_or_else(|| {
            self.0.push(record);
            self.0.len() - 1
        });
        FIRST + index as u32
    }

    pub(super) fn records(self) -> Vec<Vec<u8>> {
        self.0
    }
}

/// Header and records; and for stream `hashes` a hash for each record, and where counting may start.
pub(super) fn streams(records: &[Vec<u8>], hashes: u16) -> (Vec<u8>, Vec<u8>) {
    let contents = records.concat();
    let values = records.iter().fold(bytes(), |bytes, record| bytes.u32(crc(record) % BUCKETS)).finish();
    let milestone = if records.is_empty() { bytes() } else { bytes().u32(FIRST).u32(0) }.finish();
    let end = FIRST + records.len() as u32;
    let header = bytes().u32(20_040_203).u32(56).u32(FIRST).u32(end).u32(contents.len() as u32);
    let header = header.u16(hashes).u16(0xFFFF).u32(4).u32(BUCKETS);
    let header = header.u32(0).u32(values.len() as u32).u32(values.len() as u32).u32(milestone.len() as u32);
    let header = header.u32((values.len() + milestone.len()) as u32).u32(0);
    (header.raw(&contents).finish(), [values, milestone].concat())
}

/// CRC-32 as the format has it: from zero, and not inverted at the end.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    };
    bytes.iter().fold(0, step)
}
