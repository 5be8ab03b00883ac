//! Why a module's frames have names, or have none.

use std::fmt;
use std::path::PathBuf;

use super::find::lookup::{Attempt, Lookup, Outcome, Place, knows_one_of};

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
        /// Why, where the tables of a .NET image show it.
        reason: Option<String>,
    },
    /// The image has the code of other files' methods, and without these files no address has a name.
    NoIl {
        /// The image.
        from: PathBuf,
        /// The simple names of the assemblies whose files are missing.
        assemblies: Vec<String>,
        /// The most telling answer to the search for one of them.
        reason: Option<Attempt>,
    },
    /// The trace does not say which PDB belongs to it, as it was never merged; the image would.
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
            Verdict::NoIl { .. } => "no_il",
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

    /// What would help.
    pub fn cure(&self) -> Option<Cure> {
        let reason = match self {
            Verdict::NotFound { reason } | Verdict::ExportsOnly { pdb: reason @ Some(_), .. } => {
                reason.as_ref()
            }
            Verdict::Mismatch { file } => Some(file),
            Verdict::NoIl { .. } => return Some(Cure::Il),
            Verdict::NoId { .. } => return Some(Cure::Image),
            Verdict::Unreadable { .. } => return Some(Cure::FetchAgain),
            Verdict::Skipped { .. } => return Some(Cure::LowerShare),
            _ => return None,
        };
        Some(match reason.map(|attempt| &attempt.outcome) {
            Some(Outcome::Offline) => Cure::AskServers,
            Some(Outcome::Remembered { .. }) => Cure::Retry,
            Some(
                Outcome::Unreachable(_)
                | Outcome::TimedOut { .. }
                | Outcome::Silent { .. }
                | Outcome::NoTime
                | Outcome::ServerError { .. },
            ) => Cure::Wait,
            Some(Outcome::TimeUp { .. }) => Cure::MoreTime,
            Some(Outcome::LogIn { schemes, .. }) if !schemes.is_empty() && !knows_one_of(schemes) => {
                Cure::OtherLogIn
            }
            Some(Outcome::LogIn { status: 407, .. }) => Cure::LogInToProxy,
            Some(Outcome::LogIn { .. } | Outcome::WebPage) => Cure::LogIn,
            Some(Outcome::WrongFile { .. }) => Cure::ExactBuild,
            _ => Cure::AnotherPlace,
        })
    }
}

/// What would give a module its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cure {
    /// To ask the symbol servers, which were not asked.
    AskServers,
    /// To ask a server again for what it did not have lately.
    Retry,
    /// To try later, or another server.
    Wait,
    /// More time for the symbol servers.
    MoreTime,
    /// A log-in to the server.
    LogIn,
    /// A log-in to the proxy.
    LogInToProxy,
    /// Another way to log in than those that the server offers.
    OtherLogIn,
    /// The file of the same build, in place of the one that was found.
    ExactBuild,
    /// To fetch the file again, which is damaged.
    FetchAgain,
    /// A folder or server that has the PDB, or a folder that has the image.
    AnotherPlace,
    /// The image, or a recording that was merged, as either knows the PDB.
    Image,
    /// The assemblies' own files, of the same build as the image.
    Il,
    /// To look for modules with so few samples too.
    LowerShare,
}

impl Verdict {
    /// The cause in words that name no file of the module, so that modules with the same cause can be reported as one;
    /// `None` if the file is what matters.
    pub fn cause(&self) -> Option<String> {
        let answer = |attempt: &Attempt| match (&attempt.place, &attempt.outcome) {
            (Place::Url(url), Outcome::Remembered { .. }) => {
                format!("{}: failed before, not retried", host(url))
            }
            (Place::Url(url), outcome) => format!("{}: {outcome}", host(url)),
            (_, outcome) => outcome.to_string(),
        };
        Some(match self {
            Verdict::NotFound {
                reason: Some(Attempt { place: Place::Path(_), outcome: Outcome::NotThere }),
            } => "not found".to_owned(),
            Verdict::NotFound { reason: Some(reason) } => format!("not found: {}", answer(reason)),
            Verdict::ExportsOnly { pdb: Some(reason), .. } => {
                format!("nearest exports; no PDB: {}", answer(reason))
            }
            Verdict::ExportsOnly { pdb: None, .. } => "nearest exports; no PDB exists".to_owned(),
            Verdict::NoId { image: Some(_) } => {
                "the trace does not identify the PDB, and the image was not found".to_owned()
            }
            Verdict::NoNames { reason: None, .. } => "the symbols name none of the addresses".to_owned(),
            Verdict::NoNames { reason: Some(reason), .. } => {
                format!("the symbols name none of the addresses: {reason}")
            }
            Verdict::Skipped { .. } => "skipped".to_owned(),
            Verdict::NoIl { assemblies, .. } => {
                format!("the IL of its code was not found: {}", listed(assemblies))
            }
            Verdict::NotFound { reason: None } | Verdict::NoId { image: None } => self.to_string(),
            Verdict::Mismatch { .. } | Verdict::Unreadable { .. } => return None,
            Verdict::Resolved { .. } | Verdict::PublicOnly { .. } => return None,
        })
    }
}

/// The first of several names.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.get(..SHOWN).unwrap_or(names).join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn host(url: &str) -> &str {
    url.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(url)
}

/// An answer in few words: of a server its name is enough.
struct Short<'a>(&'a Attempt);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attempt { place: Place::Url(url), outcome } => write!(f, "{}: {outcome}", host(url)),
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
            Verdict::NoIl { from, assemblies, reason } => {
                write!(
                    f,
                    "{} has no names for its code; the IL of {} was not found",
                    from.display(),
                    listed(assemblies)
                )?;
                reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {}", Short(reason)))
            }
            Verdict::NoId { image: None } => {
                f.write_str("the trace identifies neither its PDB nor its image")
            }
            Verdict::NoId { image: Some(reason) } => {
                write!(
                    f,
                    "the trace does not identify its PDB, and its image was not found: {}",
                    Short(reason)
                )
            }
            Verdict::NotFound { reason: None } => f.write_str("not found: nowhere to look"),
            Verdict::NotFound { reason: Some(reason) } => write!(f, "not found: {}", Short(reason)),
            Verdict::Mismatch { file } => write!(f, "not used: {}", Short(file)),
            Verdict::Unreadable { file, reason } => write!(f, "{file} cannot be read: {reason}"),
            Verdict::Skipped { percent } => write!(f, "skipped: {percent:.2}% of the samples"),
        }
    }
}
