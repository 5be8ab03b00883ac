//! The bytes of the debug sections, as `gimli` reads them.

use gimli::LittleEndian;

pub(super) type Reader<'a> = gimli::EndianSlice<'a, LittleEndian>;
pub(super) type Unit<'a> = gimli::Unit<Reader<'a>>;
pub(super) type UnitRef<'u, 'a> = gimli::UnitRef<'u, Reader<'a>>;
