//! The symbol path: the list of folders, caches and servers in the syntax of `_NT_SYMBOL_PATH`.
//!
//! Elements stand between `;`. Blanks and quotes around them do not count, keywords are of either case:
//!
//! | element | meaning |
//! |---|---|
//! | `FOLDER` | a folder with symbol files in it, or in the layout of a symbol store |
//! | `srv*A*B*URL` | asked from left to right; what is found further right is copied into all to its left |
//! | `srv*A*` | the same, with the user's own cache at the end; an empty part is always that cache |
//! | `srv*` | Microsoft's public server |
//! | `symsrv*symsrv.dll*…` | the long form of `srv*…` |
//! | `A*B*URL` | the same without the keyword, if A is a folder |
//! | `cache*FOLDER` | a store in front of everything to its right; `cache*` is the user's own cache |
//! | `URL` | alone: `srv*URL` |
//!
//! A server with nothing in front has the user's own cache there. Colons never separate: a Windows path and a URL hold
//! them, and so may a Unix path.
//!
//! Sources: Microsoft's pages "Symbol path for Windows debuggers", "Advanced SymSrv use", "Using SymSrv", "Symbol paths"
//! and "IDebugEngine3::SetSymbolPath". docs/symbol-paths.md has them row by row.

use std::fmt;
use std::path::{Path, PathBuf};

pub use super::element::{Depot, Element, MICROSOFT, NotUnderstood, Reason};
pub use super::login::Login;

/// The environment variables with a symbol path, in the order in which they are used.
pub const VARIABLES: [&str; 2] = ["_NT_ALT_SYMBOL_PATH", "_NT_SYMBOL_PATH"];

/// Where to look for symbol files, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    elements: Vec<Element>,
    logins: Vec<Login>,
}

/// An element of an environment variable that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedElement {
    /// The variable, one of [`VARIABLES`].
    pub variable: &'static str,
    /// The element, and why.
    pub cause: NotUnderstood,
}

/// A server of a path, and what keeps the files that it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptIn {
    /// The server's address.
    pub server: String,
    /// Folders, the one that files are used from first. Empty if there is none.
    pub folders: Vec<PathBuf>,
}

impl SymbolPath {
    /// Reads a symbol path. Empty elements are skipped, so an empty text is an empty path.
    ///
    /// # Errors
    /// The first element that is none of the forms above.
    pub fn parse(text: &str) -> Result<SymbolPath, NotUnderstood> {
        let mut path = SymbolPath::default();
        match path.add(text).into_iter().next() {
            None => Ok(path),
            Some(error) => Err(error),
        }
    }

    /// Adds the elements of a text; returns those that are none of the forms above.
    fn add(&mut self, text: &str) -> Vec<NotUnderstood> {
        let mut skipped = Vec::new();
        for element in elements(text) {
            match Element::parse(element, &mut self.logins) {
                Ok(element) => self.elements.push(element),
                Err(error) => skipped.push(error),
            }
        }
        skipped
    }

    /// The path of a run: the elements that the user added, then those of the environment variables, or where none of
    /// these has any, Microsoft's public server. What is not understood in a variable is skipped, as Windows' tools do:
    /// it was set for other programs.
    ///
    /// # Errors
    /// As [`SymbolPath::parse`], of what the user added.
    pub fn of_run(
        added: &[impl AsRef<str>],
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<(SymbolPath, Vec<SkippedElement>), NotUnderstood> {
        let mut path = SymbolPath::default();
        for text in added {
            if let Some(error) = path.add(text.as_ref()).into_iter().next() {
                return Err(error);
            }
        }
        let mut skipped = Vec::new();
        let texts = VARIABLES.map(|name| (name, variable(name).unwrap_or_default()));
        for (name, text) in &texts {
            let causes = path.add(text).into_iter();
            skipped.extend(causes.map(|cause| SkippedElement { variable: name, cause }));
        }
        // Who set a path named the servers that may hear of their modules, even if it is not understood.
        if texts.iter().all(|(_, text)| elements(text).next().is_none()) {
            path.elements.push(Element::Server(vec![Depot::Url(MICROSOFT.to_owned())]));
        }
        Ok((path, skipped))
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

    /// The logins that addresses had. No text of a path shows them.
    pub fn logins(&self) -> &[Login] {
        &self.logins
    }

    /// Each element with the stores that keep what it has, nearest first: the caches to its left, then its own.
    pub(super) fn chains(&self) -> impl Iterator<Item = (&Element, Vec<&Depot>)> {
        let mut in_front: Vec<&Depot> = Vec::new();
        self.elements.iter().map(move |element| {
            let own = match element {
                Element::Server(depots) => depots.as_slice(),
                Element::Cache(depot) => std::slice::from_ref(depot),
                _ => &[],
            };
            let mut chain = in_front.clone();
            for depot in own {
                // What a server sends must be kept somewhere, and found there by the next run.
                if let Depot::Url(_) = depot
                    && !chain.iter().any(|depot| depot.can_keep())
                {
                    chain.push(&Depot::UserCache);
                }
                if !chain.contains(&depot) {
                    chain.push(depot);
                }
            }
            if let Element::Cache(_) = element {
                in_front.clone_from(&chain);
            }
            (element, chain)
        })
    }

    /// The servers, each once, with the folders that keep their files.
    pub fn kept_in(&self, user_cache: Option<&Path>) -> Vec<KeptIn> {
        let mut servers: Vec<KeptIn> = Vec::new();
        for (_, chain) in self.chains() {
            for (at, depot) in chain.iter().enumerate() {
                let Depot::Url(server) = depot else { continue };
                let in_front = chain.iter().take(at).filter_map(|depot| match depot {
                    Depot::UserCache => user_cache,
                    Depot::Folder(folder) if depot.can_keep() => Some(folder.as_path()),
                    Depot::Folder(_) | Depot::Url(_) => None,
                });
                let folders = in_front.map(Path::to_owned).collect();
                if !servers.iter().any(|known| known.server == *server) {
                    servers.push(KeptIn { server: server.clone(), folders });
                }
            }
        }
        servers
    }
}

/// The elements of a text that are not empty.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .filter(|element| !element.trim_matches(|c: char| c == '"' || c.is_whitespace()).is_empty())
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
