//! Blocks that several kernel events share.

use crate::bytes::Reader;
use crate::event::Pointer;

/// A SID block: four zero bytes for none; else a TOKEN_USER of two pointers, whose contents mean nothing, and the SID.
/// Gives the SID's bytes (verified on 64-bit files).
pub(super) fn sid<'a>(r: &mut Reader<'a>, pointer: Pointer) -> Option<&'a [u8]> {
    let mut ahead = *r;
    if ahead.u32()? == 0 {
        *r = ahead;
        return Some(&[]);
    }
    r.skip(2 * pointer.bytes())?;
    let mut ahead = *r;
    ahead.skip(1)?;
    let authorities = usize::from(ahead.u8()?);
    r.take(8 + 4 * authorities)
}

/// A SID as Windows prints it: `S-1-5-18`; `None` if the bytes are not one.
pub fn sid_text(sid: &[u8]) -> Option<String> {
    use std::fmt::Write;
    let mut r = Reader::new(sid);
    let (revision, count) = (r.u8()?, r.u8()?);
    let [a, b, c, d, e, f] = r.array()?;
    let authority = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let mut text = format!("S-{revision}-{authority}");
    for _ in 0..count {
        let _infallible = write!(text, "-{}", r.u32()?);
    }
    Some(text)
}
