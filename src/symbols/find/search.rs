//! One search: place after place until a file matches, with a note of every answer.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::Duration;

use super::archive::Archive;
use super::cabinet::{self, CabinetError, CabinetLimits};
use super::cache::{Cache, Partial, first_tier, is_two_tier};
use super::download::not_stored;
use super::element::is_foreign;
use super::failures;
use super::key::FileKey;
use super::listing::Listings;
use super::lookup::{Checked, Found, Lookup, Outcome, Place};
use super::request::Request;
use super::route::{Link, Route, Stop};
use super::server::{Answer, Pointer, Server, read_text};
use super::tree::Tree;
use super::verify::identity;
use crate::mmap::openable;

/// A search at work.
pub(super) struct Search<'s> {
    route: &'s Route,
    request: &'s Request<'s>,
    arrived: &'s mut dyn FnMut(u64, Option<u64>),
    lookup: Lookup,
    /// Servers already asked for this file: a path may name one twice.
    asked: Vec<&'s str>,
    /// Stores already looked into, likewise.
    stores: Vec<&'s Path>,
}

/// How a store holds a file.
enum Entry {
    Plain(PathBuf),
    Compressed(PathBuf),
    Pointer(PathBuf),
}

impl<'s> Search<'s> {
    pub(super) fn new(
        route: &'s Route,
        request: &'s Request<'s>,
        arrived: &'s mut dyn FnMut(u64, Option<u64>),
    ) -> Search<'s> {
        Search { route, request, arrived, lookup: Lookup::default(), asked: Vec::new(), stores: Vec::new() }
    }

    pub(super) fn run(mut self) -> Lookup {
        self.lookup.found = self.found();
        self.lookup
    }

    fn found(&mut self) -> Option<Found> {
        for hint in &self.request.hints {
            let outcome = refused_hint(hint).unwrap_or_else(|| self.judge(hint));
            if self.note(Place::Path(hint.clone()), outcome) {
                return Some(in_place(hint.clone()));
            }
        }
        let name = match self.request.key.name() {
            Ok(name) => name,
            Err(why) => {
                let recorded = Place::Name(self.request.key.recorded().to_owned());
                self.lookup.note(recorded, Outcome::RefusedName(why));
                return None;
            }
        };
        let (stored, index) = (self.request.key.stored_name(name), self.request.key.index());
        let route = self.route;
        route.stops.iter().find_map(|stop| match stop {
            Stop::Folder(folder, in_front) => self.in_folder(folder, in_front, name, (&stored, &index)),
            Stop::Tree(tree) => self.in_tree(tree, name),
            Stop::Archive(archive) => self.in_archive(archive, name),
            Stop::Chain(links) => self.in_chain(links, &stored, &index),
        })
    }

    /// Notes an answer; whether it was the file.
    fn note(&mut self, place: Place, outcome: Outcome) -> bool {
        let found = outcome == Outcome::Found;
        self.lookup.note(place, outcome);
        found
    }

    /// Lets `look` look, and notes that nothing is at `place` if it has nothing to note.
    fn noting(
        &mut self,
        place: impl FnOnce() -> PathBuf,
        look: impl FnOnce(&mut Self) -> Option<Found>,
    ) -> Option<Found> {
        let before = self.lookup.attempts.len();
        let found = look(self);
        if self.lookup.attempts.len() == before {
            self.lookup.note(Place::Path(place()), Outcome::NotThere);
        }
        found
    }

    /// A folder of symbol files, or a store.
    fn in_folder(
        &mut self,
        folder: &'s Path,
        in_front: &[Link],
        name: &str,
        (stored, index): (&str, &str),
    ) -> Option<Found> {
        if is_foreign(folder) {
            self.lookup.note(Place::Path(folder.to_owned()), Outcome::OtherSystem);
            return None;
        }
        let place = || folder.join(name);
        self.noting(place, |search| {
            let loose = search.among_files(folder, in_front, name, (stored, index));
            loose.or_else(|| search.in_layout(folder, in_front, stored, index))
        })
    }

    /// Files as they are, or sorted as debuggers know it. A folder of that name is no such file: it is a store's.
    fn among_files(
        &mut self,
        folder: &Path,
        in_front: &[Link],
        name: &str,
        (stored, index): (&str, &str),
    ) -> Option<Found> {
        let listings = &self.route.listings;
        let sorted = self.request.key.sorted_below(name);
        let here = || std::iter::once(folder.to_owned());
        let parents = here().chain(listings.named(folder.to_owned(), "symbols"));
        let folders = parents
            .flat_map(|parent| sorted.iter().flat_map(move |ending| listings.named(parent.clone(), ending)));
        let mut files = here()
            .chain(folders)
            .flat_map(|folder| listings.named(folder, name))
            .filter(|file| !file.is_dir());
        files.find_map(|file| {
            let outcome = self.judge(&file);
            let from = Place::Path(file.clone());
            if !self.note(from.clone(), outcome) {
                return None;
            }
            // The place in a store is the key's, which no store has vouched for.
            let is_keys = !in_front.is_empty() && identity(&file) == Some(self.request.key.id());
            let path = if is_keys { self.fill(in_front, file, stored, index) } else { file };
            Some(Found { path, from, inside: None })
        })
    }

    /// The first file of the name that matches.
    fn in_tree(&mut self, tree: &Tree, name: &str) -> Option<Found> {
        let files = tree.named(name);
        if files.is_empty() {
            self.lookup.note(Place::Path(tree.root().join(name)), Outcome::NotThere);
        }
        let file = files.iter().find(|file| {
            let outcome = self.judge(file);
            self.note(Place::Path((*file).clone()), outcome)
        });
        file.cloned().map(in_place)
    }

    /// The same in an archive. That it has none is no news: few have symbols.
    fn in_archive(&mut self, archive: &Archive, name: &str) -> Option<Found> {
        archive.named(name).into_iter().find_map(|member| {
            let outcome = self.judge(&member.unpacked);
            let from = Place::Path(member.inside.clone());
            let matches = self.note(from.clone(), outcome);
            matches.then_some(Found { path: member.unpacked, from, inside: Some(member.inside) })
        })
    }

    fn in_chain(&mut self, links: &'s [Link], name: &str, index: &str) -> Option<Found> {
        links.iter().enumerate().find_map(|(i, link)| {
            let in_front = links.get(..i).unwrap_or_default();
            match link {
                Link::Store(store) => self.in_store(store, in_front, name, index),
                Link::Server(server) => self.on_server(server, in_front, name, index),
            }
        })
    }

    fn in_store(&mut self, store: &'s Cache, in_front: &[Link], name: &str, index: &str) -> Option<Found> {
        let root = store.root();
        if self.stores.contains(&root) {
            return None;
        }
        if is_foreign(root) {
            self.stores.push(root);
            self.lookup.note(Place::Path(root.to_owned()), Outcome::OtherSystem);
            return None;
        }
        self.noting(|| store.place(name, index), |search| search.in_layout(root, in_front, name, index))
    }

    /// What a folder has in the layout of a store.
    fn in_layout(&mut self, root: &'s Path, in_front: &[Link], name: &str, index: &str) -> Option<Found> {
        if self.stores.contains(&root) {
            return None;
        }
        self.stores.push(root);
        let mut entries = entries(&self.route.listings, root, name, index);
        entries.find_map(|entry| self.take(entry, in_front, name, index))
    }

    /// Takes what a folder store holds: a plain file as it lies, the rest by way of a cache.
    fn take(&mut self, entry: Entry, in_front: &[Link], name: &str, index: &str) -> Option<Found> {
        let file = match entry {
            Entry::Plain(file) | Entry::Compressed(file) => file,
            Entry::Pointer(pointer) => match follow(&pointer) {
                Ok(file) => file,
                Err(outcome) => {
                    self.lookup.note(Place::Path(pointer), outcome);
                    return None;
                }
            },
        };
        let place = Place::Path(file.clone());
        let starts_as_cabinet = fs::metadata(&file).is_ok_and(|m| m.is_file())
            && File::open(&file)
                .and_then(|mut f| begins(&mut f))
                .is_ok_and(|start| cabinet::is_cabinet(&start));
        if !starts_as_cabinet {
            let outcome = self.judge(&file);
            let matches = self.note(place.clone(), outcome);
            return matches.then(|| Found {
                path: self.fill(in_front, file, name, index),
                from: place,
                inside: None,
            });
        }
        let limit = self.route.options.limits.file;
        self.receive(in_front, place.clone(), name, index, &mut |_, partial| {
            (place.clone(), copy(&file, partial, limit))
        })
    }

    fn on_server(&mut self, server: &'s Server, in_front: &[Link], name: &str, index: &str) -> Option<Found> {
        if !self.request.ask_servers || self.asked.contains(&server.base()) {
            return None;
        }
        self.asked.push(server.base());
        let place = Place::Url(server.url(name, index));
        let (route, options) = (self.route, &self.route.options);
        if options.offline {
            self.lookup.note(place, Outcome::Offline);
            return None;
        }
        let memory = route.user_cache.as_deref();
        if !options.retry_failed
            && let Some(past) = memory.and_then(|m| failures::recall(m, name, index, server.base()))
        {
            self.lookup.note(place, Outcome::Remembered { cause: past.cause, at: past.at });
            return None;
        }
        (self.arrived)(0, None);
        let found = self.receive(in_front, place, name, index, &mut |search, partial| {
            let limit = options.limits.file;
            server.fetch(&route.client, &route.budget, (name, index), partial, limit, search.arrived)
        });
        if let Some(memory) = memory {
            let cause = self.lookup.attempts.last().map(|a| &a.outcome);
            match cause.and_then(|c| Some((c, hold(c, options.remember_missing, options.remember_trouble)?)))
            {
                Some((cause, hold)) if found.is_none() => {
                    failures::remember(memory, name, index, server.base(), &cause.to_string(), hold);
                }
                _ => failures::forget(memory, name, index, server.base()),
            }
        }
        found
    }

    /// Lets `produce` write the file into the nearest cache in front that can be written to, checks it there, and
    /// fills the caches before. The last note is of the place that the file came from.
    fn receive(
        &mut self,
        in_front: &[Link],
        mut place: Place,
        name: &str,
        index: &str,
        produce: &mut dyn FnMut(&mut Self, &mut File) -> Answer,
    ) -> Option<Found> {
        let mut produced = || -> Result<(usize, PathBuf), Outcome> {
            let (depth, cache, mut partial) = self.begin(in_front)?;
            let (from, result) = produce(self, partial.file().map_err(not_stored)?);
            place = from;
            result?;
            let mut partial = self.expanded(&cache, partial, name)?;
            partial.close().map_err(not_stored)?;
            match self.judge(partial.path()) {
                Outcome::Found => {}
                other => return Err(other),
            }
            let settled = cache.place(name, index);
            partial.commit(&settled, &|| self.judge(&settled) == Outcome::Found).map_err(not_stored)?;
            Ok((depth, settled))
        };
        match produced() {
            Err(outcome) => {
                self.lookup.note(place, outcome);
                None
            }
            Ok((depth, settled)) => {
                let before = in_front.get(..depth).unwrap_or_default();
                let path = self.fill(before, settled, name, index);
                self.lookup.note(place.clone(), Outcome::Found);
                Some(Found { path, from: place, inside: None })
            }
        }
    }

    /// Begins a file in the cache nearest to the origin that can be written to, at last in the user's own. The
    /// number is that of the caches in front of it.
    fn begin(&mut self, in_front: &[Link]) -> Result<(usize, std::sync::Arc<Cache>, Partial), Outcome> {
        let caches = in_front.iter().enumerate().rev().filter_map(|(depth, link)| match link {
            Link::Store(cache) => Some((depth, cache)),
            Link::Server(_) => None,
        });
        let mut failure = Outcome::NotStored("no cache folder is set".to_owned());
        for (depth, cache) in caches.chain(self.route.user_cache.iter().map(|cache| (0, cache))) {
            if is_foreign(cache.root()) {
                continue;
            }
            match cache.begin() {
                Ok(partial) => return Ok((depth, std::sync::Arc::clone(cache), partial)),
                Err(e) => failure = Outcome::NotStored(format!("{}: {e}", cache.root().display())),
            }
        }
        Err(failure)
    }

    /// The same file, or what a cabinet holds.
    fn expanded(&self, cache: &Cache, mut partial: Partial, name: &str) -> Result<Partial, Outcome> {
        let start = partial.file().and_then(begins).map_err(not_stored)?;
        if start.starts_with(b"Microsoft MSFZ") {
            return Err(Outcome::Unreadable(
                "compressed in the MSFZ format, which is not supported".to_owned(),
            ));
        }
        if !cabinet::is_cabinet(&start) {
            return Ok(partial);
        }
        let limits = self.route.options.limits;
        let limits = CabinetLimits { size: limits.file, ratio: limits.cabinet_ratio };
        let mut whole = cache.begin().map_err(not_stored)?;
        let input = partial.file().map_err(not_stored)?;
        let mut output = BufWriter::new(whole.file().map_err(not_stored)?);
        let result = cabinet::expand(&mut BufReader::new(input), name, limits, &mut output);
        result.map_err(|error| match error {
            CabinetError::OverLimit { size, limit } => Outcome::OverLimit { size, limit },
            CabinetError::Write(e) => not_stored(e),
            other => Outcome::Unreadable(other.to_string()),
        })?;
        output.flush().map_err(not_stored)?;
        drop(output);
        Ok(whole)
    }

    /// Copies a verified file into all caches in front; the path in the first of them, or in the last that could
    /// be written.
    fn fill(&mut self, in_front: &[Link], mut file: PathBuf, name: &str, index: &str) -> PathBuf {
        for link in in_front.iter().rev() {
            let Link::Store(cache) = link else { continue };
            let place = cache.place(name, index);
            if is_foreign(cache.root()) || place == file {
                continue;
            }
            let copied = cache.begin().map_err(not_stored).and_then(|mut partial| {
                copy(&file, partial.file().map_err(not_stored)?, u64::MAX)?;
                partial.close().map_err(not_stored)?;
                match self.judge(partial.path()) {
                    Outcome::Found => {
                        let is_there = || self.judge(&place) == Outcome::Found;
                        partial.commit(&place, &is_there).map_err(not_stored)
                    }
                    other => Err(other),
                }
            });
            match copied {
                Ok(()) => file = place,
                Err(outcome) => self.lookup.note(Place::Path(place), outcome),
            }
        }
        file
    }

    /// Whether a file is the one. Only ordinary files are opened: a pipe or device could block for ever.
    fn judge(&self, file: &Path) -> Outcome {
        match fs::metadata(openable(file)) {
            Ok(about) if about.is_file() => match (self.request.verify)(file) {
                Checked::Matches => Outcome::Found,
                Checked::Differs(found) => {
                    Outcome::WrongFile { found, wanted: self.request.key.id().to_string() }
                }
                Checked::Unreadable(why) => Outcome::Unreadable(why),
            },
            Ok(about) if about.is_dir() => Outcome::NotThere,
            Ok(_) => Outcome::Unreadable("not a regular file".to_owned()),
            Err(e) => missing(e),
        }
    }
}

/// How long a failure is remembered; `None` when it says nothing about the next run.
fn hold(outcome: &Outcome, missing: Duration, trouble: Duration) -> Option<Duration> {
    match outcome {
        Outcome::NotThere
        | Outcome::WrongFile { .. }
        | Outcome::OverLimit { .. }
        | Outcome::RefusedPath(_) => Some(missing),
        // Denied is what some servers say of a file that they do not have, and others to who is not logged in.
        Outcome::Forbidden(_)
        | Outcome::Unreadable(_)
        | Outcome::ServerError { .. }
        | Outcome::TimedOut { .. }
        | Outcome::CutShort { .. } => Some(trouble),
        // Of the server, the network or a portal before it, and not of the file.
        _ => None,
    }
}

/// Why a path that a trace may name is not opened.
fn refused_hint(hint: &Path) -> Option<Outcome> {
    if is_foreign(hint) {
        return Some(Outcome::OtherSystem);
    }
    match hint.components().next() {
        // Windows would log in to whatever machine the trace names.
        Some(Component::Prefix(p)) if !matches!(p.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)) => {
            Some(Outcome::RefusedHint("the trace names a path on the network or a device"))
        }
        _ if !hint.is_absolute() => Some(Outcome::RefusedHint("not a full path")),
        _ => None,
    }
}

fn in_place(path: PathBuf) -> Found {
    Found { from: Place::Path(path.clone()), path, inside: None }
}

/// What a folder in the layout of a store holds for a key, in whatever case. Compressed files and pointers come second,
/// as with servers.
fn entries<'a>(
    listings: &'a Listings,
    root: &Path,
    name: &'a str,
    index: &'a str,
) -> impl Iterator<Item = Entry> + use<'a> {
    let tiers: Vec<PathBuf> = match is_two_tier(root) {
        true => listings.named(root.to_owned(), &first_tier(name)).collect(),
        false => Vec::new(),
    };
    let roots = tiers.into_iter().chain([root.to_owned()]);
    let of_name = roots.flat_map(|root| listings.named(root, name));
    let of_index = of_name.flat_map(|folder| listings.named(folder, index));
    of_index.filter_map(|folder| {
        let first = |name: &str| listings.named(folder.clone(), name).next();
        first(name)
            .map(Entry::Plain)
            .or_else(|| first(&FileKey::compressed(name)).map(Entry::Compressed))
            .or_else(|| first("file.ptr").map(Entry::Pointer))
    })
}

/// The file that a `file.ptr` of a folder store names. The folder is one that the user named.
fn follow(pointer: &Path) -> Result<PathBuf, Outcome> {
    let mut file = File::open(pointer).map_err(missing)?;
    match Pointer::read(&read_text(&mut file)?) {
        Pointer::Message(text) => Err(Outcome::Unreadable(format!("the store says instead: {text}"))),
        Pointer::File(to) if to.contains("://") => {
            Err(Outcome::RefusedPath("the store's file.ptr names an address, not a path"))
        }
        Pointer::File(to) if is_foreign(Path::new(to)) => Err(Outcome::OtherSystem),
        Pointer::File(to) => Ok(pointer.parent().unwrap_or(Path::new("")).join(to)),
    }
}

fn missing(error: io::Error) -> Outcome {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Outcome::NotThere,
        io::ErrorKind::PermissionDenied => Outcome::Forbidden(None),
        _ => Outcome::Unreadable(error.to_string()),
    }
}

/// The first bytes of a file, which is then at its beginning again.
fn begins(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    (&mut *file).take(16).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(start)
}

fn copy(from: &Path, to: &mut File, limit: u64) -> Result<(), Outcome> {
    let from = File::open(from).map_err(missing)?;
    let size = from.metadata().map_err(missing)?.len();
    if size > limit {
        return Err(Outcome::OverLimit { size, limit });
    }
    io::copy(&mut from.take(limit), to).map(drop).map_err(not_stored)
}
