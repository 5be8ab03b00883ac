//! From the addresses that samples hit to their functions, module by module.
//!
//! Symbols are looked for after the recording has been read, only for modules that samples hit, the biggest share
//! first. Files are found (and fetched) in parallel, then modules are resolved in parallel; each distinct address is
//! looked up once. Whatever comes of a module is its [`Verdict`].
//!
//! The PDB comes first: the trace names it, or the image on this machine does. An image is fetched only where there
//! is no PDB, for its exports. Where there is one, an image that is here already helps: its exception table bounds
//! public symbols, which have no size.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::debug_id::DebugId;
use super::identity::{self, ImageEvidence};
use super::key::FileKey;
use super::limits::Limits;
use super::lookup::{Attempt, Found, Lookup};
use super::managed::source::SourceLine;
use super::named::Named;
use super::names::{Function, IlPlace, Names};
use super::native::{Location, NativeError, NativeSymbols, Source};
use super::parallel::{guarded, in_parallel};
use super::pe::Image;
use super::precompiled;
use super::sources::{SourceReport, Sources, Wanted};
use super::store::{Progress, Request, Store};
use super::verdict::Verdict;
use crate::mmap::Mapped;
use crate::trace::code::ManagedModuleId;
use crate::trace::{Module, ModuleId, Trace};

/// A module that samples hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The module.
    pub module: ModuleId,
    /// Samples with a frame in it.
    pub samples: u64,
    /// The addresses to name, as RVAs.
    pub rvas: Vec<u64>,
}

/// How much to resolve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// All kept samples: what shares are of.
    pub samples: u64,
    /// Skip modules with a smaller share, in percent.
    pub min_share: f64,
    /// Find the source lines of .NET methods too.
    pub lines: bool,
    /// How much to keep of what symbols say.
    pub limits: Limits,
}

/// The names of a trace, and what became of its modules.
#[derive(Debug, Default)]
pub struct Symbols {
    functions: FxHashMap<ModuleId, Named>,
    lines: FxHashMap<(ManagedModuleId, IlPlace), SourceLine>,
    /// One for each hit module, biggest share first.
    pub modules: Vec<ModuleReport>,
    /// One for each PDB of IL that source lines were wanted of.
    pub sources: Vec<SourceReport>,
}

/// What became of one module.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// The module.
    pub module: ModuleId,
    /// Samples with a frame in it.
    pub samples: u64,
    /// Distinct addresses.
    pub addresses: usize,
    /// Of these, how many have a name.
    pub named: usize,
    /// Inlined calls beyond [`Limits`] that were left out, over all addresses.
    pub left_out: u64,
    /// Why.
    pub verdict: Verdict,
    /// Every place that was asked for its PDB, then for its image if that was needed, with the answers.
    pub attempts: Vec<Attempt>,
}

impl ModuleReport {
    /// Files of other builds: they were found at a place of its files and not used.
    pub fn wrong_files(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.outcome.is_wrong_file())
    }
}

impl Names for Symbols {
    fn functions(&self, module: ModuleId, rva: u64) -> Vec<&Function> {
        self.functions.get(&module).map(|of_module| of_module.get(rva)).unwrap_or_default()
    }

    fn source(&self, module: ManagedModuleId, place: IlPlace) -> Option<&SourceLine> {
        self.lines.get(&(module, place))
    }
}

impl Symbols {
    /// Whether anything is known of an address.
    pub fn is_named(&self, module: ModuleId, rva: u64) -> bool {
        self.functions.get(&module).is_some_and(|of_module| of_module.contains(rva))
    }
}

/// Told of each file that is looked for, by its name. Called from several threads.
pub type OnProgress<'a> = dyn Fn(&str, Progress<'_>) + Sync + 'a;

/// Finds the symbols of `hits` and names their addresses, and the lines of `places` if the options say so.
pub fn resolve(
    trace: &Trace,
    mut hits: Vec<Hit>,
    places: &FxHashMap<ManagedModuleId, Vec<IlPlace>>,
    store: &Store,
    options: &Options,
    progress: &OnProgress<'_>,
) -> Symbols {
    hits.sort_by_key(|hit| (std::cmp::Reverse(hit.samples), hit.module));
    let mut work: Vec<Work<'_>> = hits.iter().filter_map(|hit| Work::new(trace, hit, options)).collect();
    find_pdbs(&mut work, store, progress);
    find_images(&mut work, store, progress);
    // An image may have told the PDB that the trace does not.
    find_pdbs(&mut work, store, progress);
    let mut sources = Sources::default();
    if options.lines {
        sources.want(work.iter().filter_map(Work::il_pdb));
        sources.want_of(trace, places.keys());
        sources.find(store, progress);
    }
    let resolved = in_parallel(&work, |work| work.resolve(&sources, options.limits));
    let mut symbols = Symbols { lines: sources.lines(places), ..Symbols::default() };
    for (work, resolved) in work.into_iter().zip(resolved) {
        let Resolved { named: functions, left_out, verdict } = resolved;
        let named = functions.len();
        symbols.functions.insert(work.hit.module, functions);
        symbols.modules.push(ModuleReport {
            module: work.hit.module,
            samples: work.hit.samples,
            addresses: work.hit.rvas.len(),
            named,
            left_out,
            verdict,
            attempts: work.attempts(),
        });
    }
    symbols.sources = sources.into_reports();
    symbols
}

/// One module on its way.
struct Work<'a> {
    hit: &'a Hit,
    module: &'a Module,
    percent: f64,
    skipped: bool,
    evidence: Option<ImageEvidence>,
    pdb_key: Option<(FileKey, DebugId)>,
    /// `None` until it was looked for.
    pdb: Option<Lookup>,
    image: Option<Lookup>,
}

impl<'a> Work<'a> {
    fn new(trace: &'a Trace, hit: &'a Hit, options: &Options) -> Option<Work<'a>> {
        let module = trace.module(hit.module)?;
        let percent = 100.0 * hit.samples as f64 / options.samples.max(1) as f64;
        let evidence = ImageEvidence::of(trace, hit.module);
        let pdb_id = |pdb: &crate::trace::PdbId| DebugId { guid: pdb.guid, age: pdb.age };
        Some(Work {
            hit,
            module,
            percent,
            skipped: percent < options.min_share,
            evidence,
            pdb_key: module.pdb.as_ref().map(|pdb| (FileKey::of_pdb(&pdb.name, pdb_id(pdb)), pdb_id(pdb))),
            pdb: None,
            image: None,
        })
    }

    fn found_pdb(&self) -> Option<&Path> {
        Some(&self.pdb.as_ref()?.found.as_ref()?.path)
    }

    fn found_image(&self) -> Option<&Path> {
        Some(&self.image.as_ref()?.found.as_ref()?.path)
    }

    /// The recorded path of the PDB, and its name beside the image.
    fn pdb_hints(&self) -> Vec<PathBuf> {
        let Some((key, _)) = &self.pdb_key else { return Vec::new() };
        let recorded = Some(key.recorded()).filter(|recorded| recorded.contains(['\\', '/']));
        let folder =
            self.module.path.strip_suffix(self.module.file_name()).filter(|folder| !folder.is_empty());
        let beside = folder.zip(key.name().ok()).map(|(folder, name)| format!("{folder}{name}"));
        recorded.map(PathBuf::from).into_iter().chain(beside.map(PathBuf::from)).collect()
    }

    /// A PDB of machine code is all that names need. Without one, or with one of IL, the image may help.
    fn needs_image(&self) -> bool {
        self.found_pdb().is_none_or(identity::is_portable_pdb)
    }

    /// Names the addresses with what was found.
    fn resolve(&self, sources: &Sources, limits: Limits) -> Resolved {
        if self.skipped {
            return Resolved::nothing(Verdict::Skipped { percent: self.percent });
        }
        guarded(|| self.name_addresses(sources, limits))
            .unwrap_or_else(|reason| Resolved::nothing(self.unreadable(&reason)))
    }

    fn name_addresses(&self, sources: &Sources, limits: Limits) -> Result<Resolved, String> {
        let open = |path: &Path| Mapped::open(path).map_err(|error| error.to_string());
        let pdb_path = self.found_pdb().filter(|path| !identity::is_portable_pdb(path));
        let pdb = pdb_path.map(open).transpose()?;
        // The image was read when it was found; gone since, it is as if it had never been here.
        let image = self.found_image().and_then(|path| Mapped::open(path).ok());
        let image = image.as_deref().and_then(|bytes| Image::parse(bytes).ok());
        let from = if pdb.is_some() { &self.pdb } else { &self.image };
        let from = from.as_ref().and_then(|lookup| lookup.found.as_ref()).map(Found::shown);
        let Some(from) = from.filter(|_| pdb.is_some() || image.is_some()) else {
            return Ok(Resolved::nothing(self.without_names()));
        };
        let symbols = match NativeSymbols::open(image.as_ref(), pdb.as_deref()) {
            // The trace tells the PDB; a tool may have changed what the image says of itself.
            Err(NativeError::Mismatch { .. }) => NativeSymbols::open(None, pdb.as_deref()),
            other => other,
        };
        let mut symbols = symbols.map_err(|error| error.to_string())?.limited(limits);
        let (mut named, mut left_out) = (Named::default(), 0);
        let mut best = None;
        let rvas = || self.hit.rvas.iter().filter_map(|rva| u32::try_from(*rva).ok());
        let image = image.as_ref().filter(|image| pdb.is_none() && image.is_managed());
        let precompiled =
            image.map(|image| sources.ask(image, |pdb| precompiled::locations(image, rvas(), pdb)));
        let (mut precompiled, reason) = match precompiled {
            Some(Ok(locations)) => (locations, None),
            Some(Err(error)) => (FxHashMap::default(), Some(error.to_string())),
            None => (FxHashMap::default(), None),
        };
        for rva in rvas() {
            if let Some(location) = precompiled.remove(&rva).or_else(|| symbols.lookup(rva)) {
                best = best.max(Some(Quality::of(&location)));
                left_out += location.left_out as u64;
                named.insert(u64::from(rva), location);
            }
        }
        let from = from.to_owned();
        let verdict = match best {
            Some(Quality::Full | Quality::Bare) => Verdict::Resolved { from },
            Some(Quality::Public) => Verdict::PublicOnly { from },
            Some(Quality::Export) => {
                let failed = self.pdb.as_ref().filter(|search| search.found.is_none());
                Verdict::ExportsOnly { from, pdb: failed.and_then(Lookup::reason).cloned() }
            }
            None if pdb.is_some() || self.pdb.is_none() || reason.is_some() => {
                Verdict::NoNames { from, reason }
            }
            None => self.without_names(),
        };
        Ok(Resolved { named, left_out, verdict })
    }

    /// The PDB of the IL that a precompiled image was made from.
    fn il_pdb(&self) -> Option<Wanted> {
        let path = self.found_image()?;
        let bytes = Mapped::open(path).ok()?;
        let image = Image::parse(&bytes).ok().filter(Image::is_managed)?;
        let wanted = Wanted::of_image(&image, path.to_owned())?;
        Some(Wanted { image: self.module.path.clone(), ..wanted })
    }

    /// Why no address has a name.
    fn without_names(&self) -> Verdict {
        if let Some(portable) = self.found_pdb() {
            return Verdict::NoNames { from: portable.to_owned(), reason: None };
        }
        let searched = if self.pdb_key.is_some() { &self.pdb } else { &self.image };
        match Verdict::of_failed(searched.as_ref()) {
            Verdict::NotFound { reason } if self.pdb_key.is_none() => Verdict::NoId { image: reason },
            verdict => verdict,
        }
    }

    fn unreadable(&self, reason: &str) -> Verdict {
        let file = self.found_pdb().or(self.found_image());
        let file = file.map_or_else(|| self.module.path.clone(), |path| path.display().to_string());
        Verdict::Unreadable { file, reason: reason.to_owned() }
    }

    fn attempts(self) -> Vec<Attempt> {
        let image = if self.needs_image() { self.image } else { None };
        self.pdb.into_iter().chain(image).flat_map(|lookup| lookup.attempts).collect()
    }
}

/// What came of one module.
struct Resolved {
    named: Named,
    left_out: u64,
    verdict: Verdict,
}

impl Resolved {
    fn nothing(verdict: Verdict) -> Self {
        Resolved { named: Named::default(), left_out: 0, verdict }
    }
}

/// What a name tells of the symbols that it is from, by how much that counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Quality {
    /// The image alone.
    Export,
    /// A procedure without lines. PDBs without private symbols have some of these too.
    Bare,
    /// A public symbol.
    Public,
    /// Lines: full symbols.
    Full,
}

impl Quality {
    fn of(location: &Location) -> Quality {
        match (location.source, location.line) {
            (Source::Export, _) => Quality::Export,
            (_, Some(_)) => Quality::Full,
            // The PDB of an NGEN image lists every method.
            (Source::Public, None) if location.method.is_some() => Quality::Bare,
            (Source::Public, None) => Quality::Public,
            (_, None) => Quality::Bare,
        }
    }
}

/// Looks for the PDB of every module that names one and has not been looked for.
fn find_pdbs(work: &mut [Work<'_>], store: &Store, progress: &OnProgress<'_>) {
    let wanted = (0..).zip(&*work).filter(|(_, work)| !work.skipped && work.pdb.is_none());
    let searches: Vec<_> = wanted
        .filter_map(|(index, work)| {
            let (key, id) = work.pdb_key.clone()?;
            let verify = move |path: &Path| identity::check_pdb(path, id);
            Some(Search { index, key, hints: work.pdb_hints(), ask_servers: true, verify })
        })
        .collect();
    for (index, lookup) in find_all(&searches, store, progress) {
        if let Some(work) = work.get_mut(index) {
            work.pdb = Some(lookup);
        }
    }
}

/// Looks for the images, and takes PDB ids from those of modules without one.
fn find_images(work: &mut [Work<'_>], store: &Store, progress: &OnProgress<'_>) {
    let wanted = (0..).zip(&*work).filter(|(_, work)| !work.skipped);
    let searches: Vec<_> = wanted
        .filter_map(|(index, work)| {
            let evidence = work.evidence.clone()?;
            Some(Search {
                index,
                key: FileKey::image(&work.module.path, evidence.timestamp.unwrap_or(0), evidence.size),
                hints: vec![evidence.path.clone()],
                // Servers know images by their time stamp.
                ask_servers: evidence.timestamp.is_some() && work.needs_image(),
                verify: move |path: &Path| evidence.check(path),
            })
        })
        .collect();
    for (index, lookup) in find_all(&searches, store, progress) {
        let Some(work) = work.get_mut(index) else { continue };
        work.image = Some(lookup);
        if work.pdb_key.is_none()
            && let Some(bytes) = work.found_image().and_then(|path| Mapped::open(path).ok())
            && let Ok(image) = Image::parse(&bytes)
        {
            work.pdb_key = image.native_pdb().map(|pdb| (FileKey::of_pdb(&pdb.path, pdb.id), pdb.id));
        }
    }
}

/// A file to find for the thing at an index.
pub(super) struct Search<V> {
    pub(super) index: usize,
    pub(super) key: FileKey,
    pub(super) hints: Vec<PathBuf>,
    pub(super) ask_servers: bool,
    pub(super) verify: V,
}

pub(super) fn find_all<V: Fn(&Path) -> super::lookup::Verdict + Sync>(
    searches: &[Search<V>],
    store: &Store,
    progress: &OnProgress<'_>,
) -> Vec<(usize, Lookup)> {
    let request = |search| -> Request<'_> {
        let Search { key, hints, ask_servers, verify, .. }: &Search<V> = search;
        Request { key, hints, ask_servers: *ask_servers, verify }
    };
    let requests: Vec<Request<'_>> = searches.iter().map(request).collect();
    let name = |number: usize| searches.get(number).map_or("", |search| search.key.name().unwrap_or("?"));
    let found = store.find_all(&requests, &|number, state| progress(name(number), state));
    searches.iter().map(|search| search.index).zip(found).collect()
}
