//! One element of a symbol path: its forms, read and printed.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::login::Login;

/// Microsoft's public symbol server.
pub const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";

/// One element of a symbol path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A folder whose files are used where they lie.
    Folder(PathBuf),
    /// A folder with everything below it, whose files are used where they lie. It has no form as text.
    Tree(PathBuf),
    /// An archive, whose files are unpacked when they are asked for. It has no form as text.
    Archive(PathBuf),
    /// A store that is searched, and that keeps what elements to its right have.
    Cache(Depot),
    /// `srv*`: stores, nearest first. Each keeps what those to its right have.
    Server(Vec<Depot>),
}

/// One store of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Depot {
    /// The cache of this user: the default downstream store.
    UserCache,
    /// A folder in the layout of a symbol store.
    Folder(PathBuf),
    /// A symbol server, without a slash at the end and without a login.
    Url(String),
}

/// An element that is none of the forms of a symbol path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{element}`: {reason}")]
pub struct NotUnderstood {
    /// The element as given, without a login.
    pub element: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with an element.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// No system has such a path.
    #[error("it contains a NUL character")]
    Nul,
    /// What stands before the first `*` is neither a keyword nor a folder.
    #[error("its first part is neither a keyword nor a folder")]
    Keyword,
    /// `symsrv*` with a library that only its maker's tools can load.
    #[error("its symbol server library is not symsrv.dll")]
    Library,
    /// `symsrv*` without a library or without a store.
    #[error("it names no store")]
    NoStore,
    /// An address of another protocol.
    #[error("the address begins with neither https:// nor http://")]
    Protocol,
    /// An address such as `https:///symbols`.
    #[error("the address has no host")]
    NoHost,
    /// The host or its port is none, or a character cannot stand in an address.
    #[error("it is not an address")]
    Malformed,
    /// A login that is not escaped makes a host of its beginning.
    #[error("the address has an `@` behind its host")]
    At,
    /// The name of a file cannot be appended to it.
    #[error("the address contains `?` or `#`")]
    Query,
    /// A server cannot be written to.
    #[error("the cache is not a folder")]
    CacheNotFolder,
    /// `cache*A*B`.
    #[error("`cache*` is followed by more than one folder")]
    SeveralCaches,
}

impl Element {
    /// Reads one element; the logins in its addresses go to `logins`.
    pub(super) fn parse(text: &str, logins: &mut Vec<Login>) -> Result<Element, NotUnderstood> {
        let text = unquoted(text);
        let fail = |reason| NotUnderstood { element: without_logins(text), reason };
        if text.contains('\0') {
            return Err(fail(Reason::Nul));
        }
        let Some((first, rest)) = text.split_once('*') else {
            return match Depot::parse(text, logins).map_err(fail)? {
                Depot::Folder(folder) => Ok(Element::Folder(folder)),
                server => Ok(Element::Server(vec![server])),
            };
        };
        let first = unquoted(first);
        if first.eq_ignore_ascii_case("srv") {
            Element::chain(rest, logins).map_err(fail)
        } else if first.eq_ignore_ascii_case("symsrv") {
            let (library, rest) = rest.split_once('*').ok_or_else(|| fail(Reason::NoStore))?;
            if !is_symsrv(unquoted(library)) {
                return Err(fail(Reason::Library));
            }
            Element::chain(rest, logins).map_err(fail)
        } else if first.eq_ignore_ascii_case("cache") {
            let folder = rest.trim_end_matches('*');
            match Depot::parse(folder, logins).map_err(fail)? {
                Depot::Url(_) => Err(fail(Reason::CacheNotFolder)),
                _ if folder.contains('*') => Err(fail(Reason::SeveralCaches)),
                folder => Ok(Element::Cache(folder)),
            }
        } else if is_place(first) {
            // As Visual Studio writes it: caches, then the store, without a keyword (IDebugEngine3::SetSymbolPath).
            Element::chain(text, logins).map_err(fail)
        } else {
            Err(fail(Reason::Keyword))
        }
    }

    fn chain(text: &str, logins: &mut Vec<Login>) -> Result<Element, Reason> {
        // `srv*` and nothing else is the default store, which is Microsoft's server. In every other chain a part that
        // is empty, also the last, is the default downstream store.
        if unquoted(text).is_empty() {
            return Ok(Element::Server(vec![Depot::Url(MICROSOFT.to_owned())]));
        }
        let depots = text.split('*').map(|part| Depot::parse(part, logins));
        let mut depots = depots.collect::<Result<Vec<_>, _>>()?;
        depots.dedup();
        Ok(Element::Server(depots))
    }
}

impl Depot {
    /// Whether files can be put there on this system.
    pub(super) fn can_keep(&self) -> bool {
        match self {
            Depot::UserCache => true,
            Depot::Folder(folder) => !is_foreign(folder),
            Depot::Url(_) => false,
        }
    }

    fn parse(text: &str, logins: &mut Vec<Login>) -> Result<Depot, Reason> {
        let text = unquoted(text);
        if text.is_empty() {
            return Ok(Depot::UserCache);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Depot::Folder(PathBuf::from(text)));
        };
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(Reason::Protocol);
        }
        let (address, login) = Login::split(&scheme, rest.trim_end_matches('/'));
        let rest = address.get(scheme.len() + "://".len()..).unwrap_or_default();
        if rest.is_empty() || rest.starts_with('/') {
            return Err(Reason::NoHost);
        }
        if rest.contains(['?', '#']) {
            return Err(Reason::Query);
        }
        let host = rest.split('/').next().unwrap_or_default();
        if rest.contains('@') {
            return Err(Reason::At);
        }
        if !is_host(host) || rest.contains(|c: char| c.is_whitespace() || "<>\\^`{|}".contains(c)) {
            return Err(Reason::Malformed);
        }
        logins.extend(login);
        Ok(Depot::Url(address))
    }
}

/// Whether this is a host with or without a port: `symbols.example.com:8080`, `[::1]`.
fn is_host(text: &str) -> bool {
    let end = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match text.get(end..).and_then(|rest| rest.rfind(':')) {
        Some(colon) => (text.get(..end + colon), text.get(end + colon + 1..)),
        None => (Some(text), None),
    };
    let is_name = |host: &str| match host.strip_prefix('[') {
        Some(inside) => inside.ends_with(']'),
        None => !host.is_empty() && !host.contains(':'),
    };
    host.is_some_and(is_name) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Without the blanks and quotes around it. `set X="srv*…"` makes the quotes part of the value.
fn unquoted(text: &str) -> &str {
    text.trim_matches(|c: char| c == '"' || c.is_whitespace())
}

/// Whether a library's name or path is that of Microsoft's symbol server.
fn is_symsrv(library: &str) -> bool {
    let name = crate::winpath::file_name(library).to_ascii_lowercase();
    name.strip_suffix(".dll").unwrap_or(&name) == "symsrv"
}

/// Whether this is surely a folder or an address, and no misspelt keyword.
fn is_place(text: &str) -> bool {
    text.contains(['/', '\\']) || matches!(text.as_bytes(), [drive, b':'] if drive.is_ascii_alphabetic())
}

/// An element without what is before an `@` in its addresses: messages show elements. A login that is not escaped may
/// have any character, so all is hidden up to the last `@`.
fn without_logins(element: &str) -> String {
    let mut parts = element.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("://");
        shown.push_str(part.rsplit('@').next().unwrap_or_default());
    }
    shown
}

/// Whether a path has a form that only Windows can open: a drive or a network share.
///
/// Elsewhere such a path would be a strange file name in the current folder.
pub(super) fn is_foreign(path: &Path) -> bool {
    if cfg!(windows) {
        return false;
    }
    let text = path.as_os_str().as_encoded_bytes();
    matches!(text, [b'\\', b'\\', ..] | [b'a'..=b'z' | b'A'..=b'Z', b':'])
        || matches!(text, [b'a'..=b'z' | b'A'..=b'Z', b':', b'\\' | b'/', ..])
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Folder(folder) => write!(f, "{}", folder.display()),
            Element::Tree(folder) => write!(f, "{} and below", folder.display()),
            Element::Archive(file) => write!(f, "inside {}", file.display()),
            Element::Cache(depot) => write!(f, "cache*{depot}"),
            // `srv*` would be Microsoft's server.
            Element::Server(depots) if depots == &[Depot::UserCache] => f.write_str("srv**"),
            Element::Server(depots) => {
                f.write_str("srv")?;
                depots.iter().try_for_each(|depot| write!(f, "*{depot}"))
            }
        }
    }
}

impl fmt::Display for Depot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depot::UserCache => Ok(()),
            Depot::Folder(folder) => write!(f, "{}", folder.display()),
            Depot::Url(url) => f.write_str(url),
        }
    }
}
