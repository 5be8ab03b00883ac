//! The answer to a search: the file, and every place that was asked with what it said.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::key::RefusedName;

/// What the caller's check says of a candidate file.
///
/// The check reads the identity out of the file itself and should also see that the file is whole, as far as its
/// format tells (the page count of a PDB, the sections of an image).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is the file that was asked for.
    Matches,
    /// It is another file of the same name; the text is the identity found.
    Differs(String),
    /// It is no such file, or damaged; the text says how.
    Unreadable(String),
}

/// Reads a candidate file and says whether it is the one wanted. Called from several threads.
pub type Verify<'a> = dyn Fn(&Path) -> Checked + Sync + 'a;

/// One search: the file if it was found, and all that was tried, in order.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The file, on this machine, verified.
    pub found: Option<Found>,
    /// Every place asked, with its answer.
    pub attempts: Vec<Attempt>,
}

/// A file that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it lies now.
    pub path: PathBuf,
    /// Where it was found: the same file, or the server or store that it was fetched from.
    pub from: Place,
    /// Of a file that is unpacked only for now: the archive, and its name there.
    pub inside: Option<PathBuf>,
}

impl Found {
    /// The path to show: one that is still good when the program has ended.
    pub fn shown(&self) -> &Path {
        self.inside.as_deref().unwrap_or(&self.path)
    }
}

/// One place asked.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Where.
    pub place: Place,
    /// What came of it.
    pub outcome: Outcome,
}

/// Where a file was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or a store folder.
    Path(PathBuf),
    /// The address of a file on a server.
    Url(String),
    /// No place yet: the name as the trace has it.
    Name(String),
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The file is there and matches.
    Found,
    /// There is no such file.
    NotThere,
    /// The server or the file system denies access. The number is the HTTP status.
    Forbidden(Option<u16>),
    /// The server answered with an error.
    ServerError {
        /// The HTTP status.
        status: u16,
        /// Requests sent.
        tries: u32,
    },
    /// No answer, or a stalled one, within the time set.
    TimedOut {
        /// What was waited for.
        phase: &'static str,
        /// Requests sent.
        tries: u32,
    },
    /// Nothing arrived from any server for so long, and this one is not asked again in this run.
    Silent {
        /// The time waited for this server.
        waited: Duration,
    },
    /// Not asked: the servers' time for silence was used up.
    NoTime,
    /// Not asked, or cut off: the time for all servers was used up.
    TimeUp {
        /// That time.
        after: Duration,
    },
    /// The server, a proxy or the network wants a log-in.
    LogIn {
        /// The HTTP status.
        status: u16,
        /// The ways to log in that it offers, such as `Negotiate` and `Basic`.
        schemes: Vec<String>,
    },
    /// A page for people in place of the file: a log-in page, or that of a proxy.
    WebPage,
    /// No connection: name not found, refused, TLS or proxy failure.
    Unreachable(String),
    /// The connection ended in the middle of the file.
    CutShort {
        /// Bytes that came, before decoding.
        received: u64,
        /// Bytes promised, if any.
        promised: Option<u64>,
    },
    /// Too many redirects, or one that leads where none is followed.
    BadRedirect(String),
    /// A file of that name, but with another identity.
    WrongFile {
        /// The identity in the file.
        found: String,
        /// The identity asked for.
        wanted: String,
    },
    /// Not a file of that kind, damaged, or compressed in a way that is not known.
    Unreadable(String),
    /// The name in the trace is none that a file may have.
    RefusedName(RefusedName),
    /// The path in a `file.ptr` leads where none from outside is followed.
    RefusedPath(&'static str),
    /// The same of a path in the trace.
    RefusedHint(&'static str),
    /// Larger than the limits allow.
    OverLimit {
        /// The size announced or reached, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// It could not be written to the cache.
    NotStored(String),
    /// It failed before, and that is remembered for a while.
    Remembered {
        /// What came of it then.
        cause: String,
        /// When.
        at: SystemTime,
    },
    /// A server, while offline.
    Offline,
    /// A path of Windows that this system cannot open.
    OtherSystem,
}

impl Outcome {
    /// True for a file of another build.
    pub fn is_wrong_file(&self) -> bool {
        matches!(self, Outcome::WrongFile { .. })
    }

    /// True where a server, or the way to it, failed: the file may be there all the same.
    pub fn is_trouble(&self) -> bool {
        match self {
            Outcome::Unreachable(_)
            | Outcome::TimedOut { .. }
            | Outcome::Silent { .. }
            | Outcome::NoTime
            | Outcome::TimeUp { .. }
            | Outcome::ServerError { .. }
            | Outcome::CutShort { .. }
            | Outcome::LogIn { .. }
            | Outcome::WebPage => true,
            Outcome::Remembered { cause, .. } => TROUBLE.iter().any(|trouble| cause.starts_with(trouble)),
            _ => false,
        }
    }
}

/// How the words for failures of servers begin, of those that are remembered.
const TROUBLE: [&str; 3] = [TIMED_OUT, SERVER_FAILED, CONNECTION_ENDED];
const TIMED_OUT: &str = "timed out";
const SERVER_FAILED: &str = "the server failed";
const CONNECTION_ENDED: &str = "the connection ended";

impl Lookup {
    pub(super) fn note(&mut self, place: Place, outcome: Outcome) {
        self.attempts.push(Attempt { place, outcome });
    }

    /// The most telling failure: a wrong file or a server's trouble says more than "not there", and a server that does
    /// not have it says more than a folder.
    pub fn reason(&self) -> Option<&Attempt> {
        most_telling(&self.attempts)
    }
}

/// The most telling of the answers.
pub(in crate::symbols) fn most_telling(attempts: &[Attempt]) -> Option<&Attempt> {
    let rank = |attempt: &Attempt| match (&attempt.outcome, &attempt.place) {
        (Outcome::Found, _) => 0,
        // Paths that the trace happens to name.
        (Outcome::OtherSystem | Outcome::RefusedHint(_), _) => 1,
        (Outcome::NotThere, Place::Path(_) | Place::Name(_)) => 2,
        (Outcome::NotThere, Place::Url(_)) => 3,
        (Outcome::Offline, _) => 4,
        (Outcome::Remembered { .. }, _) => 5,
        _ => 6,
    };
    // The first of the highest rank: `max_by_key` would give the last.
    attempts.iter().rev().max_by_key(|attempt| rank(attempt))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Path(path) => write!(f, "{}", path.display()),
            Place::Url(url) => f.write_str(url),
            Place::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// `https://…/ntdll.pdb: not there`.
impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Found => f.write_str("found"),
            Outcome::NotThere => f.write_str("not there"),
            Outcome::Forbidden(None) => f.write_str("access denied"),
            Outcome::Forbidden(Some(status)) => write!(f, "access denied (HTTP {status})"),
            Outcome::ServerError { status, tries } => {
                write!(f, "{SERVER_FAILED} (HTTP {status}{})", times(*tries))
            }
            Outcome::TimedOut { phase, tries } => write!(f, "{TIMED_OUT} while {phase}{}", times(*tries)),
            Outcome::Silent { waited } => {
                let waited = humantime::format_duration(Duration::from_secs(waited.as_secs().max(1)));
                write!(f, "timed out: no answer for {waited}")
            }
            Outcome::NoTime => f.write_str("not asked: no server answered for too long"),
            Outcome::TimeUp { after } => {
                write!(f, "symbol time is up after {}", humantime::format_duration(*after))
            }
            Outcome::LogIn { status, schemes } => {
                let who = if *status == 407 { "the proxy" } else { "the server" };
                write!(f, "{who} wants a log-in (HTTP {status}")?;
                match schemes.as_slice() {
                    [] => f.write_str(")"),
                    schemes if knows_one_of(schemes) => write!(f, ", by {})", schemes.join(" or ")),
                    schemes => write!(f, ", by {}, which is not supported)", schemes.join(" or ")),
                }
            }
            Outcome::WebPage => {
                f.write_str("a web page in place of the file, as a log-in or a proxy sends it")
            }
            Outcome::Unreachable(why) => write!(f, "unreachable: {why}"),
            Outcome::CutShort { received, promised: Some(promised) } => {
                write!(f, "{CONNECTION_ENDED} after {received} of {promised} bytes")
            }
            Outcome::CutShort { received, promised: None } => {
                write!(f, "{CONNECTION_ENDED} early, after {received} bytes")
            }
            Outcome::BadRedirect(why) => write!(f, "redirect not followed: {why}"),
            Outcome::WrongFile { found, wanted } => write!(f, "wrong file: found {found}, need {wanted}"),
            Outcome::Unreadable(why) => write!(f, "unusable: {why}"),
            Outcome::RefusedName(why) => write!(f, "not looked up: as a file name, {why}"),
            Outcome::RefusedPath(why) | Outcome::RefusedHint(why) => write!(f, "not opened: {why}"),
            Outcome::OverLimit { size, limit } => write!(f, "{size} bytes exceed the limit of {limit}"),
            Outcome::NotStored(why) => write!(f, "cannot be stored: {why}"),
            Outcome::Remembered { cause, at } => {
                let age = SystemTime::now().duration_since(*at).unwrap_or_default();
                let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
                write!(f, "not retried: {age} ago it was {cause}")
            }
            Outcome::Offline => f.write_str("not asked: offline"),
            Outcome::OtherSystem => f.write_str("a Windows path, which cannot be opened on this system"),
        }
    }
}

/// Whether there is a way to log in that can be gone: with a user and a password, or with a header that was given.
pub(in crate::symbols) fn knows_one_of(schemes: &[String]) -> bool {
    let unknown = ["Negotiate", "NTLM", "Kerberos", "Digest"];
    schemes.iter().any(|scheme| !unknown.iter().any(|other| scheme.eq_ignore_ascii_case(other)))
}

fn times(tries: u32) -> String {
    if tries > 1 { format!(", {tries} times") } else { String::new() }
}
