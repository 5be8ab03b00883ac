//! Readable names.

/// The parameter list of a runtime signature, from its bracket on; empty when there is none.
pub(crate) fn parameters_of(signature: &str) -> &str {
    signature.find('(').and_then(|at| signature.get(at..)).unwrap_or_default()
}
