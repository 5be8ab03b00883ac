//! Why a module's frames have names, or have none.

use std::fmt;

use super::lookup::{Attempt, Lookup, Outcome, Place};

/// What became of one module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Its functions are named.
    Resolved {
        /// The symbol file, or the image with symbols inside.
        from: String,
    },
    /// The PDB has public symbols only: no lines, no inlined functions, names of static functions missing.
    PublicOnly {
        /// The PDB.
        from: String,
    },
    /// Names are those of the nearest export; the PDB was not found.
    ExportsOnly {
        /// The image.
        from: String,
        /// Where its PDB was looked for.
        pdb: Option<Lookup>,
    },
    /// The symbols were found, and name none of the addresses.
    NoNames {
        /// The symbol file.
        from: String,
    },
    /// The trace does not say which PDB belongs to it, as it was never merged; the image could tell.
    NoId {
        /// Where the image was looked for.
        image: Lookup,
    },
    /// Neither symbols nor image were found.
    NotFound {
        /// Where the PDB was looked for, or the image where the module names no PDB.
        lookup: Lookup,
    },
    /// A file was found and cannot be read.
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Too few samples hit it to be worth the look.
    Skipped {
        /// Its share of the samples, in percent.
        percent: f64,
    },
}

impl Verdict {
    /// One word for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Resolved { .. } => "resolved",
            Verdict::PublicOnly { .. } => "public",
            Verdict::ExportsOnly { .. } => "exports",
            Verdict::NoNames { .. } => "no_names",
            Verdict::NoId { .. } => "no_id",
            Verdict::NotFound { lookup } if mismatch(lookup) => "mismatch",
            Verdict::NotFound { .. } => "not_found",
            Verdict::Unreadable { .. } => "unreadable",
            Verdict::Skipped { .. } => "skipped",
        }
    }

    /// True if it names functions for sure.
    pub fn is_named(&self) -> bool {
        matches!(self, Verdict::Resolved { .. } | Verdict::PublicOnly { .. })
    }

    /// The places that were asked, with their answers; empty where that is not the point.
    pub fn attempts(&self) -> impl Iterator<Item = String> + '_ {
        let lookup = match self {
            Verdict::NotFound { lookup } | Verdict::NoId { image: lookup } => Some(lookup),
            Verdict::ExportsOnly { pdb, .. } => pdb.as_ref(),
            _ => None,
        };
        lookup.into_iter().flat_map(|lookup| lookup.attempts.iter().map(ToString::to_string))
    }

    /// What the user can do about it.
    pub fn cure(&self) -> Option<&'static str> {
        let lookup = match self {
            Verdict::NotFound { lookup } | Verdict::ExportsOnly { pdb: Some(lookup), .. } => lookup,
            Verdict::NoId { .. } => {
                return Some("merge the trace where it was recorded, or convert it there");
            }
            Verdict::Skipped { .. } => return Some("lower --min-module-share"),
            _ => return None,
        };
        Some(match lookup.reason().map(|attempt| &attempt.outcome) {
            Some(Outcome::Offline) => {
                "leave out --offline, or run `etwprof symbols --fetch` where there is a network"
            }
            Some(Outcome::Remembered { .. }) => "--retry-failed asks again",
            Some(Outcome::Unreachable(_) | Outcome::TimedOut { .. } | Outcome::ServerError { .. }) => {
                "try again later, or name another server by --symbols"
            }
            Some(Outcome::WrongFile { .. }) => "get the PDB of this very build",
            _ => "name the folder or server that has its PDB by --symbols",
        })
    }
}

fn mismatch(lookup: &Lookup) -> bool {
    lookup.attempts.iter().any(|attempt| matches!(attempt.outcome, Outcome::WrongFile { .. }))
}

/// The server in an address.
fn host(url: &str) -> &str {
    url.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(url)
}

/// One sentence.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Resolved { from } => write!(f, "resolved from {from}"),
            Verdict::PublicOnly { from } => write!(f, "public symbols only, from {from}"),
            Verdict::ExportsOnly { from, .. } => write!(f, "nearest exports of {from}; no PDB found"),
            Verdict::NoNames { from } => write!(f, "{from} names none of its addresses"),
            Verdict::NoId { .. } => f.write_str("the trace does not tell its PDB, and its image is not here"),
            Verdict::NotFound { lookup } => match lookup.reason() {
                Some(Attempt { place: Place::Url(url), outcome }) => {
                    write!(f, "not found: {}: {outcome}", host(url))
                }
                Some(attempt) => write!(f, "not found: {attempt}"),
                None => f.write_str("not found: nowhere to look"),
            },
            Verdict::Unreadable { file, reason } => write!(f, "{file} cannot be read: {reason}"),
            Verdict::Skipped { percent } => write!(f, "skipped, {percent:.2} % of the samples"),
        }
    }
}
