//! Blocks in a file, with the names that they need elsewhere.
//!
//! A dump begins with the 16 bytes `etwprof counters`. Then come sections: four letters (`NAME` or `DATA`), four zero
//! bytes, the length of the section as a little-endian `u64`, and so many bytes. `NAME` has the names as `Counter 009` gives
//! them, a `REG_MULTI_SZ` in UTF-16; each `DATA` has one block as Windows gave it. Readers step over sections that they do
//! not know. A file that is a bare block, as other programs save it, is a dump without names.

use std::io::{self, Write};

use thiserror::Error;

use super::block::MOST_BYTES;
use super::{Block, BlockError, Names};
use crate::bytes::Reader;

const MAGIC: &[u8; 16] = b"etwprof counters";
const NAME: &[u8; 4] = b"NAME";
const DATA: &[u8; 4] = b"DATA";

/// The texts of a machine with many products have 2 MB.
const MOST_NAMES: usize = 64 << 20;

/// Blocks in the order in which they were taken, and the names of what is in them.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    /// The names.
    pub names: Names,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// Why a file is no dump of counters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DumpError {
    /// It is something else.
    #[error("no performance counters: it is neither a dump of counters nor a block of performance data")]
    Unknown,
    /// It ends inside a section.
    #[error("the dump was cut: a section at byte {0} is longer than the rest of the file")]
    Cut(usize),
    /// Its names or a block are longer than any real ones.
    #[error("a section of {0} bytes is longer than any real one")]
    TooLong(u64),
    /// One of its blocks is damaged.
    #[error("block {number}: {cause}")]
    Block {
        /// Which, from 1 on.
        number: usize,
        /// What is wrong with it.
        cause: BlockError,
    },
}

impl Dump {
    /// Reads a dump, or a bare block.
    ///
    /// # Errors
    /// The file is no dump, was cut, or has a damaged block.
    pub fn parse(data: &[u8]) -> Result<Dump, DumpError> {
        let mut dump = Dump::default();
        let mut reader = Reader::new(data);
        if reader.array() != Some(*MAGIC) {
            let cause = |cause| match cause {
                BlockError::Signature => DumpError::Unknown,
                cause => DumpError::Block { number: 1, cause },
            };
            let length = data.len().min(MOST_BYTES);
            dump.blocks.push(Block::parse(data.get(..length).unwrap_or_default().to_vec()).map_err(cause)?);
            return Ok(dump);
        }
        while !reader.rest().is_empty() {
            let cut = DumpError::Cut(data.len() - reader.rest().len());
            let (kind, zero, length) = (reader.array::<4>(), reader.u32(), reader.u64());
            let (Some(kind), Some(_), Some(length)) = (kind, zero, length) else { return Err(cut) };
            let section = usize::try_from(length).ok().and_then(|length| reader.take(length));
            let section = section.ok_or(cut)?;
            let most = if &kind == NAME { MOST_NAMES } else { MOST_BYTES };
            if section.len() > most {
                return Err(DumpError::TooLong(length));
            }
            if &kind == NAME {
                dump.names = Names::parse(section);
            } else if &kind == DATA {
                let number = dump.blocks.len() + 1;
                let block = Block::parse(section.to_vec());
                dump.blocks.push(block.map_err(|cause| DumpError::Block { number, cause })?);
            }
        }
        Ok(dump)
    }

    /// Begins a dump with the names as Windows gave them.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(out: &mut impl Write, names: &[u8]) -> io::Result<()> {
        out.write_all(MAGIC)?;
        section(out, NAME, names)
    }

    /// Adds a block to a dump.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn add(out: &mut impl Write, block: &[u8]) -> io::Result<()> {
        section(out, DATA, block)
    }
}

fn section(out: &mut impl Write, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
    out.write_all(kind)?;
    out.write_all(&[0; 4])?;
    out.write_all(&(data.len() as u64).to_le_bytes())?;
    out.write_all(data)
}
