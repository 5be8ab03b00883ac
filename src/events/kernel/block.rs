//! Blocks that several kernel events share.

use crate::bytes::Reader;
use crate::event::Pointer;

/// A SID block: four zero bytes for none; else a TOKEN_USER of two pointers, whose contents mean nothing, and the SID.
/// Gives the SID's bytes (verified on 64-bit files).
///
/// The pointer in TOKEN_USER may be zero all the same (Vista fixtures); then the SID's own head tells it.
pub(super) fn sid<'a>(r: &mut Reader<'a>, pointer: Pointer) -> Option<&'a [u8]> {
    let mut ahead = *r;
    if ahead.u32()? == 0 && !sid_follows(*r, pointer) {
        *r = ahead;
        return Some(&[]);
    }
    r.skip(2 * pointer.bytes())?;
    let mut ahead = *r;
    ahead.skip(1)?;
    let authorities = usize::from(ahead.u8()?);
    r.take(8 + 4 * authorities)
}

/// True if two empty pointers and the head of a SID come next: revision 1, at most 15 authorities.
fn sid_follows(mut r: Reader<'_>, pointer: Pointer) -> bool {
    let empty = r.take(2 * pointer.bytes()).is_some_and(|user| user.iter().all(|byte| *byte == 0));
    empty && r.u8() == Some(1) && r.u8().is_some_and(|count| count <= 15)
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
