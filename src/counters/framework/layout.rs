//! Where the counters stand in shared memory, and what is checked before they are believed.

use thiserror::Error;

use super::facts::{Counters, Exceptions, Gc, Interop, Jit, Loading, Locks, Remoting, Runtime, Security};
use crate::bytes::Reader;
use crate::event::Pointer;

/// The bytes of the memory that the runtimes of version 4 share; the older one's has less.
pub const MOST_BYTES: usize = BLOCKS * BLOCK;

/// Each runtime of a process has a block. A free one may stand before one that is used.
const BLOCKS: usize = 32;
const BLOCK: usize = 2_048;

/// The last layout that is known.
const NEWEST: u16 = 4;

/// Flags of a block: it has flags at all, it is set up, it is of a 32-bit runtime.
const USES_FLAGS: u16 = 1;
const IS_SET_UP: u16 = 2;
const IS_32_BIT: u16 = 4;

/// How often a block is copied that changes meanwhile.
const TRIES: u32 = 8;

/// The bytes of the older runtime's block, 32-bit and 64-bit, which has no flags.
const LEGACY_32: u32 = 0x134;
const LEGACY_64: u32 = 0x1a0;

/// Why a block is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockError {
    /// The memory ends in it.
    #[error("it is cut short")]
    Short,
    /// It changed each time it was copied.
    #[error("it changes all the time")]
    Busy,
    /// Its runtime has only begun.
    #[error("its runtime has not set it up yet")]
    NotSetUp,
    /// Its layout is not known.
    #[error("its version, {0}, is not known")]
    Version(u16),
    /// Its length is not known.
    #[error("it has {0} bytes, and no such block is known")]
    Length(u32),
    /// It has no counters.
    #[error("it has no counters")]
    Empty,
    /// The counters have a size that is not known.
    #[error("its counters have {0} bytes, and no such layout is known")]
    Size(u32),
    /// The counters lie outside.
    #[error("its counters lie outside of it")]
    Outside,
    /// It is of another process.
    #[error("it is of another process, {0}")]
    Process(u64),
}

/// The runtimes of version 4 in a process. `copy` fills its second argument from this offset in the memory that they share,
/// and says false where the memory ends before. One [`BlockError`] for each used block that is not believed.
pub fn runtimes(
    pid: u32,
    copy: &mut dyn FnMut(usize, &mut [u8]) -> bool,
) -> Vec<Result<Runtime, BlockError>> {
    let mut found = Vec::new();
    for at in (0..BLOCKS).map(|number| number * BLOCK) {
        match settled(at, copy).and_then(|block| of_block(&block, pid)) {
            Ok(None) => {}
            Ok(Some(runtime)) => found.push(Ok(runtime)),
            Err(error) => found.push(Err(error)),
        }
        if found.last() == Some(&Err(BlockError::Short)) {
            break;
        }
    }
    found
}

/// A copy during which the block's owner did not change its header: the counter in front is odd while it does, and another
/// one afterwards. The numbers behind the header change freely.
fn settled(at: usize, copy: &mut dyn FnMut(usize, &mut [u8]) -> bool) -> Result<[u8; BLOCK], BlockError> {
    let mut block = [0; BLOCK];
    let [mut before, mut after] = [[0; 4]; 2];
    for _ in 0..TRIES {
        if !(copy(at, &mut before) && copy(at, &mut block) && copy(at, &mut after)) {
            return Err(BlockError::Short);
        }
        if before == after && u32::from_le_bytes(before) % 2 == 0 {
            return Ok(block);
        }
        std::thread::yield_now();
    }
    Err(BlockError::Busy)
}

/// The runtime of a block; `None` if the block is free.
fn of_block(block: &[u8], pid: u32) -> Result<Option<Runtime>, BlockError> {
    let mut reader = Reader::new(block);
    let mut header = || {
        let (sequence, id) = (reader.u32()?, reader.u32()?);
        reader.skip(8)?;
        let (version, flags, _length) = (reader.u16()?, reader.u16()?, reader.u32()?);
        let build = (reader.u16()?, reader.u16()?);
        Some((sequence, id, version, flags, build, reader.u32()?, reader.u32()?, reader.u32()?))
    };
    let (sequence, id, version, flags, build, entries, offset, size) = header().ok_or(BlockError::Short)?;
    if sequence == 0 || id == 0 {
        return Ok(None);
    }
    if flags & USES_FLAGS == 0 || flags & IS_SET_UP == 0 {
        return Err(BlockError::NotSetUp);
    }
    if version > NEWEST {
        return Err(BlockError::Version(version));
    }
    if entries == 0 {
        return Err(BlockError::Empty);
    }
    let pointer = if flags & IS_32_BIT == 0 { Pointer::Bits64 } else { Pointer::Bits32 };
    let (attributes, counters) = entry(block, u64::from(offset), size, pointer)?;
    runtime(&counters, pid, Some(id), build, attributes).map(Some)
}

/// The runtime of version 2.0, 3.0 or 3.5 in a process; `copy` is that of [`runtimes`]. There is no more than one.
///
/// # Errors
/// The block is not believed.
pub fn legacy(pid: u32, copy: &mut dyn FnMut(usize, &mut [u8]) -> bool) -> Result<Runtime, BlockError> {
    let mut room = [0; LEGACY_64 as usize];
    let head = room.get_mut(..8).ok_or(BlockError::Short)?;
    if !copy(0, head) {
        return Err(BlockError::Short);
    }
    let length = Reader::at(head, 4).u32().ok_or(BlockError::Short)?;
    // What the handle of the module takes up says where all behind it stands.
    let (pointer, rest) = match length {
        LEGACY_32 => (Pointer::Bits32, 12),
        LEGACY_64 => (Pointer::Bits64, 16),
        _ => return Err(BlockError::Length(length)),
    };
    let block = room.get_mut(..length as usize).ok_or(BlockError::Short)?;
    if !copy(0, block) {
        return Err(BlockError::Short);
    }
    let version = Reader::new(block).u16().ok_or(BlockError::Short)?;
    if version > NEWEST {
        return Err(BlockError::Version(version));
    }
    let mut reader = Reader::at(block, rest);
    let mut header = || Some(((reader.u16()?, reader.u16()?), reader.u32()?, reader.u32()?, reader.u32()?));
    let (build, entries, offset, size) = header().ok_or(BlockError::Short)?;
    if entries == 0 {
        return Err(BlockError::Empty);
    }
    // A 32-bit runtime counts from the end of the table, a 64-bit one from the beginning of the block.
    let base = if pointer == Pointer::Bits32 { 0x14 + 8 * u64::from(entries) } else { 0 };
    let (attributes, counters) = entry(block, base + u64::from(offset), size, pointer)?;
    runtime(&counters, pid, None, build, attributes)
}

/// The counters at a place, with their attributes. They begin with their size.
fn entry(block: &[u8], offset: u64, size: u32, pointer: Pointer) -> Result<(u16, Counters<'_>), BlockError> {
    let known = if pointer == Pointer::Bits32 { 280 } else { 384 };
    if size != known {
        return Err(BlockError::Size(size));
    }
    let bytes = usize::try_from(offset).ok().and_then(|at| block.get(at..)?.get(..known as usize));
    let bytes = bytes.ok_or(BlockError::Outside)?;
    let mut reader = Reader::new(bytes);
    match (reader.u16(), reader.u16()) {
        (Some(said), Some(attributes)) if u32::from(said) == known => {
            Ok((attributes, Counters { bytes, pointer }))
        }
        (said, _) => Err(BlockError::Size(said.unwrap_or_default().into())),
    }
}

fn runtime(
    counters: &Counters<'_>,
    pid: u32,
    id: Option<u32>,
    version: (u16, u16),
    attributes: u16,
) -> Result<Runtime, BlockError> {
    let gc = Gc::read(counters).ok_or(BlockError::Outside)?;
    if gc.process_id != 0 && gc.process_id != u64::from(pid) {
        return Err(BlockError::Process(gc.process_id));
    }
    let rest = || {
        Some(Runtime {
            id,
            version,
            pointer: counters.pointer,
            attributes,
            // The end of the first collection sets it.
            gc: (gc.process_id != 0).then_some(gc),
            remoting: Remoting::read(counters)?,
            interop: Interop::read(counters)?,
            loading: Loading::read(counters)?,
            exceptions: Exceptions::read(counters)?,
            locks: Locks::read(counters)?,
            jit: Jit::read(counters)?,
            security: Security::read(counters)?,
        })
    };
    rest().ok_or(BlockError::Outside)
}
