//! Why a module's frames have names, or have none.

use std::fmt;
use std::path::PathBuf;

use super::lookup::{Attempt, Lookup, Outcome, Place};

/// What became of one module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Its functions are named.
    Resolved {
        /// The symbol file, or the image with symbols inside.
        from: PathBuf,
    },
    /// The names are public symbols: no lines, no inlined functions, static functions missing.
    PublicOnly {
        /// The PDB, or the image with a symbol table.
        from: PathBuf,
    },
    /// Names are those of the nearest export; there is no PDB.
    ExportsOnly {
        /// The image.
        from: PathBuf,
        /// The most telling answer to the search for its PDB; `None` for an image that has none.
        pdb: Option<Attempt>,
    },
    /// The symbols were found, and name none of the addresses.
    NoNames {
        /// The symbol file, or the image.
        from: PathBuf,
        /// Why, where the tables of a .NET image tell.
        reason: Option<String>,
    },
    /// The trace does not say which PDB belongs to it, as it was never merged; the image could tell.
    NoId {
        /// The most telling answer to the search for the image.
        image: Option<Attempt>,
    },
    /// Neither symbols nor image were found.
    NotFound {
        /// The most telling answer; `None` if there was nowhere to look.
        reason: Option<Attempt>,
    },
    /// All that was found is a file of another build, which is never used.
    Mismatch {
        /// The file and its identity.
        file: Attempt,
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
    /// The verdict on a module for which a search found nothing.
    pub(super) fn of_failed(search: Option<&Lookup>) -> Verdict {
        let reason = search.and_then(Lookup::reason).cloned();
        match reason {
            Some(file @ Attempt { outcome: Outcome::WrongFile { .. }, .. }) => Verdict::Mismatch { file },
            Some(Attempt { place, outcome: Outcome::Unreadable(reason) }) => {
                Verdict::Unreadable { file: place.to_string(), reason }
            }
            reason => Verdict::NotFound { reason },
        }
    }

    /// One word for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Resolved { .. } => "resolved",
            Verdict::PublicOnly { .. } => "public",
            Verdict::ExportsOnly { .. } => "exports",
            Verdict::NoNames { .. } => "no_names",
            Verdict::NoId { .. } => "no_id",
            Verdict::NotFound { .. } => "not_found",
            Verdict::Mismatch { .. } => "mismatch",
            Verdict::Unreadable { .. } => "unreadable",
            Verdict::Skipped { .. } => "skipped",
        }
    }

    /// True if it names functions for sure.
    pub fn is_named(&self) -> bool {
        matches!(self, Verdict::Resolved { .. } | Verdict::PublicOnly { .. })
    }

    /// What the user can do about it.
    pub fn cure(&self) -> Option<&'static str> {
        let reason = match self {
            Verdict::NotFound { reason } | Verdict::ExportsOnly { pdb: reason @ Some(_), .. } => {
                reason.as_ref()
            }
            Verdict::Mismatch { file } => Some(file),
            Verdict::NoId { .. } => {
                return Some(
                    "merge the trace where it was recorded, convert it there, or name the folder of its image by \
                     --images",
                );
            }
            Verdict::Unreadable { .. } => return Some("get the file anew"),
            Verdict::Skipped { .. } => return Some("lower --min-module-share"),
            _ => return None,
        };
        Some(match reason.map(|attempt| &attempt.outcome) {
            Some(Outcome::Offline) => {
                "leave out --offline, or run `etwprof symbols --fetch` where there is a network"
            }
            Some(Outcome::Remembered { .. }) => "--retry-failed asks again",
            Some(Outcome::Unreachable(_) | Outcome::TimedOut { .. } | Outcome::ServerError { .. }) => {
                "try again later, or name another server by --symbols"
            }
            Some(Outcome::WrongFile { .. }) => "get the file of this very build",
            _ => {
                "name the folder or server that has its PDB by --symbols, or the folder of its image by --images"
            }
        })
    }
}

/// An answer in few words: of a server its name is enough.
struct Short<'a>(&'a Attempt);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attempt { place: Place::Url(url), outcome } => {
                let host = url.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(url);
                write!(f, "{host}: {outcome}")
            }
            attempt => attempt.fmt(f),
        }
    }
}

/// One sentence.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Resolved { from } => write!(f, "resolved from {}", from.display()),
            Verdict::PublicOnly { from } => write!(f, "public symbols only, from {}", from.display()),
            Verdict::ExportsOnly { from, pdb: None } => {
                write!(f, "nearest exports of {}; it has no PDB", from.display())
            }
            Verdict::ExportsOnly { from, pdb: Some(reason) } => {
                write!(f, "nearest exports of {}; no PDB: {}", from.display(), Short(reason))
            }
            Verdict::NoNames { from, reason: None } => {
                write!(f, "{} names none of its addresses", from.display())
            }
            Verdict::NoNames { from, reason: Some(reason) } => {
                write!(f, "{} names none of its addresses: {reason}", from.display())
            }
            Verdict::NoId { image: None } => f.write_str("the trace does not tell its PDB, nor its image"),
            Verdict::NoId { image: Some(reason) } => {
                write!(f, "the trace does not tell its PDB, and its image was not found: {}", Short(reason))
            }
            Verdict::NotFound { reason: None } => f.write_str("not found: nowhere to look"),
            Verdict::NotFound { reason: Some(reason) } => write!(f, "not found: {}", Short(reason)),
            Verdict::Mismatch { file } => write!(f, "not used: {}", Short(file)),
            Verdict::Unreadable { file, reason } => write!(f, "{file} cannot be read: {reason}"),
            Verdict::Skipped { percent } => write!(f, "skipped, {percent:.2} % of the samples"),
        }
    }
}
