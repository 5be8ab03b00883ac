//! The symbol path: the list of folders, caches and servers in the syntax of `_NT_SYMBOL_PATH`.
//!
//! Elements stand between `;`, blanks around them do not count, keywords are of either case:
//!
//! | element | meaning |
//! |---|---|
//! | `FOLDER` | a folder with symbol files in it, or in the layout of a symbol store |
//! | `srv*A*B*URL` | asked from left to right; what is found further right is copied into all to its left |
//! | `srv*URL` | the same with the user's own cache in front, as an empty part also means |
//! | `srv*` | the user's own cache, then Microsoft's public server |
//! | `symsrv*symsrv.dll*…` | the long form of `srv*…` |
//! | `cache*FOLDER` | a cache in front of every server to the right of it; `cache*` is the user's own |
//! | `URL` | alone: `srv*URL` |
//!
//! Colons never separate: a Windows path and a URL hold them, and so may a Unix path.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Microsoft's public symbol server.
pub const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";

/// Where to look for symbol files, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    elements: Vec<Element>,
}

/// One element of a symbol path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A folder whose files are used where they lie.
    Folder(PathBuf),
    /// A folder with everything below it, whose files are used where they lie. It has no form as text.
    Tree(PathBuf),
    /// An archive, whose files are unpacked when they are asked for. It has no form as text.
    Archive(PathBuf),
    /// A cache for the servers to the right.
    Cache(Tier),
    /// `srv*`: stores, nearest first. The last is the origin, those before it are caches.
    Server(Vec<Tier>),
}

/// One store of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The cache of this user.
    UserCache,
    /// A folder in the layout of a symbol store.
    Folder(PathBuf),
    /// A symbol server, without a slash at the end.
    Url(String),
}

/// A symbol path that cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("symbol path element `{element}`: {reason}")]
pub struct SymbolPathError {
    /// The element as given.
    pub element: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl SymbolPath {
    /// Reads a symbol path. Empty elements are skipped, so an empty text is an empty path.
    ///
    /// # Errors
    /// The first element that is none of the forms above.
    pub fn parse(text: &str) -> Result<SymbolPath, SymbolPathError> {
        let elements = text.split(';').map(str::trim).filter(|e| !e.is_empty()).map(Element::parse);
        Ok(SymbolPath { elements: elements.collect::<Result<_, _>>()? })
    }

    /// The path of a run: the elements that the user added, then `_NT_SYMBOL_PATH`, or where that is not set
    /// Microsoft's public server with the user's own cache.
    ///
    /// # Errors
    /// As [`SymbolPath::parse`].
    pub fn of_run(
        added: &[impl AsRef<str>],
        nt_symbol_path: Option<&str>,
    ) -> Result<SymbolPath, SymbolPathError> {
        let mut path = SymbolPath::default();
        for text in added {
            path.elements.extend(SymbolPath::parse(text.as_ref())?.elements);
        }
        let rest = SymbolPath::parse(nt_symbol_path.unwrap_or_default())?.elements;
        if rest.is_empty() {
            path.elements.push(Element::Server(vec![Tier::UserCache, Tier::Url(MICROSOFT.to_owned())]));
        }
        path.elements.extend(rest);
        Ok(path)
    }

    /// This path behind a folder.
    #[must_use]
    pub fn behind(mut self, folder: PathBuf) -> SymbolPath {
        self.elements.insert(0, Element::Folder(folder));
        self
    }

    /// This path behind folders with everything below them.
    #[must_use]
    pub fn behind_trees(mut self, folders: impl IntoIterator<Item = PathBuf>) -> SymbolPath {
        self.elements.splice(0..0, folders.into_iter().map(Element::Tree));
        self
    }

    /// This path behind archives.
    #[must_use]
    pub fn behind_archives(mut self, archives: impl IntoIterator<Item = PathBuf>) -> SymbolPath {
        self.elements.splice(0..0, archives.into_iter().map(Element::Archive));
        self
    }

    /// The elements, in order.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }
}

impl Element {
    fn parse(text: &str) -> Result<Element, SymbolPathError> {
        let fail = |reason| SymbolPathError { element: text.to_owned(), reason };
        if text.contains('\0') {
            return Err(fail("it holds a NUL character"));
        }
        let Some((keyword, rest)) = text.split_once('*') else {
            return match Tier::parse(text).map_err(fail)? {
                Tier::Folder(folder) => Ok(Element::Folder(folder)),
                server => Ok(Element::Server(vec![Tier::UserCache, server])),
            };
        };
        if keyword.eq_ignore_ascii_case("srv") {
            Element::chain(rest).map_err(fail)
        } else if keyword.eq_ignore_ascii_case("symsrv") {
            match rest.split_once('*') {
                Some((dll, rest)) if dll.eq_ignore_ascii_case("symsrv.dll") => {
                    Element::chain(rest).map_err(fail)
                }
                _ => Err(fail("only symsrv*symsrv.dll*… is known")),
            }
        } else if keyword.eq_ignore_ascii_case("cache") {
            match Tier::parse(rest.trim_end_matches('*')).map_err(fail)? {
                Tier::Url(_) => Err(fail("a cache is a folder")),
                _ if rest.trim_end_matches('*').contains('*') => {
                    Err(fail("one cache*FOLDER names one folder"))
                }
                folder => Ok(Element::Cache(folder)),
            }
        } else {
            Err(fail("before `*` stands srv, symsrv or cache"))
        }
    }

    fn chain(text: &str) -> Result<Element, &'static str> {
        let mut tiers = text.split('*').map(Tier::parse).collect::<Result<Vec<_>, _>>()?;
        // An empty part is the user's cache; as the origin it stands for Microsoft's server behind that cache.
        if tiers.last() == Some(&Tier::UserCache) {
            tiers.push(Tier::Url(MICROSOFT.to_owned()));
        }
        // What a server sends must be kept somewhere.
        if let Some(Tier::Url(_)) = tiers.first() {
            tiers.insert(0, Tier::UserCache);
        }
        Ok(Element::Server(tiers))
    }
}

impl Tier {
    fn parse(text: &str) -> Result<Tier, &'static str> {
        let text = text.trim();
        let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        if text.is_empty() {
            return Ok(Tier::UserCache);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Tier::Folder(PathBuf::from(text)));
        };
        if !["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s)) {
            return Err("a server's address begins with https:// or http://");
        }
        if rest.trim_start_matches('/').is_empty() || rest.starts_with('/') {
            return Err("the address has no host");
        }
        if rest.contains(['?', '#']) {
            return Err("the address of a server has no `?` and no `#`");
        }
        if rest.split('/').next().unwrap_or_default().contains('@') {
            return Err("a password in an address would be shown in messages; it is not supported");
        }
        Ok(Tier::Url(format!("{}://{}", scheme.to_ascii_lowercase(), rest.trim_end_matches('/'))))
    }
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

/// A path that [`SymbolPath::parse`] reads back to the same elements.
impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.elements.iter().enumerate() {
            if i > 0 {
                f.write_str(";")?;
            }
            element.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Folder(folder) => write!(f, "{}", folder.display()),
            Element::Tree(folder) => write!(f, "{} and below", folder.display()),
            Element::Archive(file) => write!(f, "inside {}", file.display()),
            Element::Cache(tier) => write!(f, "cache*{tier}"),
            Element::Server(tiers) => {
                f.write_str("srv")?;
                tiers.iter().try_for_each(|tier| write!(f, "*{tier}"))
            }
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tier::UserCache => Ok(()),
            Tier::Folder(folder) => write!(f, "{}", folder.display()),
            Tier::Url(url) => f.write_str(url),
        }
    }
}
