//! Is this the file that was asked for? The checks that every file passes before it is used or cached.

use std::path::Path;

use super::debug_id::DebugId;
use super::key::PORTABLE_AGE;
use super::lookup::Verdict;
use super::native::pdb;
use super::pe::Image;
use crate::guid::Guid;
use crate::mmap::Mapped;

/// A portable PDB begins as all ECMA-335 metadata does.
const METADATA: &[u8] = b"BSJB";

/// Checks a candidate for the PDB with this GUID and age.
pub(super) fn check_pdb(path: &Path, wanted: DebugId) -> Verdict {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Verdict::Unreadable(error.to_string()),
    };
    if bytes.starts_with(METADATA) {
        return match portable_guid(&bytes) {
            Some(guid) if guid == wanted.guid => Verdict::Matches,
            Some(guid) => Verdict::Differs(format!("{guid} (portable)")),
            None => Verdict::Unreadable("a portable PDB without its #Pdb stream".to_owned()),
        };
    }
    match pdb::id(&bytes) {
        Ok(id) if id == wanted || id.guid == wanted.guid && wanted.age == PORTABLE_AGE => Verdict::Matches,
        Ok(id) => Verdict::Differs(id.to_string()),
        Err(error) => Verdict::Unreadable(error.to_string()),
    }
}

/// Checks a candidate for the image with this time stamp and size.
pub(super) fn check_image(path: &Path, timestamp: u32, size: u32) -> Verdict {
    let bytes = match Mapped::open(path) {
        Ok(bytes) => bytes,
        Err(error) => return Verdict::Unreadable(error.to_string()),
    };
    match Image::parse(&bytes) {
        Ok(image) if image.timestamp == timestamp && image.size_of_image == size => Verdict::Matches,
        Ok(image) => Verdict::Differs(format!("{:08X}{:x}", image.timestamp, image.size_of_image)),
        Err(error) => Verdict::Unreadable(error.to_string()),
    }
}

/// True for the bytes of a portable PDB.
pub(super) fn is_portable_pdb(bytes: &[u8]) -> bool {
    bytes.starts_with(METADATA)
}

/// The GUID of a portable PDB: the first 16 bytes of its `#Pdb` stream (the Portable PDB format, "#Pdb stream").
///
/// The metadata root (ECMA-335 II.24.2.1) is: signature, version, reserved, the length of a version text and the
/// text, flags, the number of streams; then for each its offset, size, and name padded to 4 bytes.
fn portable_guid(bytes: &[u8]) -> Option<Guid> {
    use crate::bytes::Reader;
    let mut r = Reader::new(bytes);
    r.skip(12)?;
    let version = r.u32()?;
    r.skip(usize::try_from(version).ok()?)?;
    r.skip(2)?;
    for _ in 0..r.u16()? {
        let (offset, _size) = (r.u32()?, r.u32()?);
        let before = r.rest().len();
        let name = r.ansi();
        let taken = before - r.rest().len();
        r.skip(taken.next_multiple_of(4) - taken)?;
        if name.0 == b"#Pdb" {
            return Reader::at(bytes, usize::try_from(offset).ok()?).guid();
        }
    }
    None
}
