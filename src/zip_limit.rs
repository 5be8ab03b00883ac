//! How much a zip archive may unpack to.

/// Bytes that the members of an archive of `archive` bytes may unpack to, together. Deflate packs up to 1032 times, and
/// members may overlap to pack far more; recordings are packed 5 to 20 times, and small ones with much fill some 100
/// times.
pub(crate) fn zip_limit(archive: u64) -> u64 {
    (256 << 20) + 128 * archive
}
