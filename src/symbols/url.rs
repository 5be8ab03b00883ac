//! What may stand in an address as it is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// All but letters, digits and `-._~` is escaped (RFC 3986, 2.3).
pub(super) const UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
