//! Exceptions that were thrown.

use crate::bytes::{Reader, Utf16};
use crate::event::Pointer;

/// An exception was thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exception<'a> {
    /// The full name of its type.
    pub type_name: Utf16<'a>,
    /// Its message.
    pub message: Utf16<'a>,
    /// Its HRESULT.
    pub hresult: Option<u32>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Since version 1: type name, message, address pointer, HRESULT u32, flags u16, instance u16. Version 0 is empty. Verified
/// on net.4.5.2.x64.etl.
pub(super) fn decode<'a>(r: &mut Reader<'a>, pointer: Pointer) -> Exception<'a> {
    let (type_name, message) = (r.utf16(), r.utf16());
    let _address = pointer.read(r);
    let (hresult, _flags) = (r.u32(), r.u16());
    Exception { type_name, message, hresult, instance: r.u16() }
}
