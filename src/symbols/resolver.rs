//! From the addresses that samples hit to their functions, module by module.
//!
//! Symbols are looked for after the recording has been read, only for modules that samples hit, the biggest share
//! first. Files are found (and fetched) in parallel, then modules are resolved in parallel; each distinct address is
//! looked up once. Whatever comes of a module is its [`Verdict`].

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustc_hash::FxHashMap;

use super::debug_id::DebugId;
use super::identity;
use super::key::FileKey;
use super::lookup::Lookup;
use super::names::{Function, Names};
use super::native::{Location, NativeSymbols, Source};
use super::pe::{Image, PdbKind};
use super::store::{Progress, Request, Store};
use super::verdict::Verdict;
use crate::mmap::Mapped;
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
}

/// The names of a trace, and what became of its modules.
#[derive(Debug, Default)]
pub struct Symbols {
    functions: FxHashMap<ModuleId, FxHashMap<u64, Vec<Function>>>,
    /// One for each hit module, biggest share first.
    pub modules: Vec<ModuleReport>,
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
    /// Why.
    pub verdict: Verdict,
}

impl Names for Symbols {
    fn functions(&self, module: ModuleId, rva: u64) -> &[Function] {
        self.functions.get(&module).and_then(|of_module| of_module.get(&rva)).map_or(&[], Vec::as_slice)
    }
}

/// Finds the symbols of `hits` and names their addresses. `progress` is told of each file that is looked for.
pub fn resolve(
    trace: &Trace,
    mut hits: Vec<Hit>,
    store: &Store,
    options: &Options,
    progress: &(dyn Fn(&str, Progress<'_>) + Sync),
) -> Symbols {
    hits.sort_by_key(|hit| (std::cmp::Reverse(hit.samples), hit.module));
    let mut work: Vec<Work<'_>> = hits.iter().filter_map(|hit| Work::new(trace, hit, options)).collect();
    find_pdbs(&mut work, store, progress);
    find_images(&mut work, store, progress);
    // An image may tell the PDB that the trace does not.
    find_pdbs(&mut work, store, progress);
    let resolved = in_parallel(&work, |work| work.resolve());
    let mut symbols = Symbols::default();
    for (work, (functions, verdict)) in work.into_iter().zip(resolved) {
        symbols.modules.push(ModuleReport {
            module: work.hit.module,
            samples: work.hit.samples,
            addresses: work.hit.rvas.len(),
            named: functions.len(),
            verdict,
        });
        symbols.functions.insert(work.hit.module, functions);
    }
    symbols
}

/// One module on its way.
struct Work<'a> {
    hit: &'a Hit,
    module: &'a Module,
    percent: f64,
    skipped: bool,
    pdb_key: Option<(FileKey, DebugId)>,
    pdb: Option<Lookup>,
    image: Option<Lookup>,
}

type Named = FxHashMap<u64, Vec<Function>>;

impl<'a> Work<'a> {
    fn new(trace: &'a Trace, hit: &'a Hit, options: &Options) -> Option<Work<'a>> {
        let module = trace.module(hit.module)?;
        let percent = 100.0 * hit.samples as f64 / options.samples.max(1) as f64;
        let pdb_key = module.pdb.as_ref().map(|pdb| {
            (FileKey::pdb(&pdb.name, pdb.guid.to_bytes(), pdb.age), DebugId { guid: pdb.guid, age: pdb.age })
        });
        let skipped = percent < options.min_share;
        Some(Work { hit, module, percent, skipped, pdb_key, pdb: None, image: None })
    }

    fn found_pdb(&self) -> Option<&PathBuf> {
        Some(&self.pdb.as_ref()?.found.as_ref()?.path)
    }

    fn found_image(&self) -> Option<&PathBuf> {
        Some(&self.image.as_ref()?.found.as_ref()?.path)
    }

    /// The recorded path of the PDB, and its name beside the image.
    fn pdb_hints(&self) -> Vec<PathBuf> {
        let Some((key, _)) = &self.pdb_key else { return Vec::new() };
        let recorded = key.recorded();
        let mut hints = Vec::new();
        if recorded.contains(['\\', '/']) {
            hints.push(PathBuf::from(recorded));
        }
        let folder = self.module.path.len() - self.module.file_name().len();
        if let (Some(folder), Ok(name)) =
            (self.module.path.get(..folder).filter(|f| !f.is_empty()), key.name())
        {
            hints.push(PathBuf::from(format!("{folder}{name}")));
        }
        hints
    }

    fn image_key(&self) -> Option<(FileKey, u32, u32)> {
        let size = u32::try_from(self.module.size).ok()?;
        let timestamp = Some(self.module.timestamp).filter(|timestamp| *timestamp != 0)?;
        Some((FileKey::image(&self.module.path, timestamp, size), timestamp, size))
    }

    /// A PDB of machine code is all that names need. Without one, or with one of IL, the image may help.
    fn needs_image(&self) -> bool {
        let portable = || {
            let path = self.found_pdb()?;
            Some(identity::is_portable_pdb(&Mapped::open(path).ok()?))
        };
        !self.skipped && self.image.is_none() && portable().unwrap_or(true)
    }

    /// Names the addresses with what was found.
    fn resolve(&self) -> (Named, Verdict) {
        let none = Named::default();
        if self.skipped {
            return (none, Verdict::Skipped { percent: self.percent });
        }
        let unreadable = |path: &PathBuf, reason: &dyn std::fmt::Display| Verdict::Unreadable {
            file: path.display().to_string(),
            reason: reason.to_string(),
        };
        let open = |path: Option<&PathBuf>| {
            path.map(|path| Mapped::open(path).map_err(|error| unreadable(path, &error)))
        };
        let (pdb_file, image_file) =
            match (open(self.found_pdb()).transpose(), open(self.found_image()).transpose()) {
                (Err(verdict), _) | (_, Err(verdict)) => return (none, verdict),
                (Ok(pdb), Ok(image)) => (pdb, image),
            };
        let pdb = pdb_file.as_deref().filter(|bytes| !identity::is_portable_pdb(bytes));
        let image = match image_file.as_deref().map(Image::parse).transpose() {
            Ok(image) => image,
            Err(error) => {
                let path = self.found_image().cloned().unwrap_or_default();
                return (none, unreadable(&path, &error));
            }
        };
        let from = match (pdb, image.is_some()) {
            (Some(_), _) => self.found_pdb(),
            (None, true) => self.found_image(),
            (None, false) => return (none, self.missing()),
        };
        let from = from.cloned().unwrap_or_default();
        let mut symbols = match NativeSymbols::open(image.as_ref(), pdb) {
            Ok(symbols) => symbols,
            Err(error) => return (none, unreadable(&from, &error)),
        };
        let mut named = Named::default();
        let mut best = None;
        for rva in &self.hit.rvas {
            let location = u32::try_from(*rva).ok().and_then(|rva| symbols.lookup(rva));
            if let Some(location) = location {
                best = best.max(Some(rank(location.source)));
                named.insert(*rva, functions(location));
            }
        }
        let from = from.display().to_string();
        let verdict = match best {
            Some(Rank::Full) => Verdict::Resolved { from },
            Some(Rank::Public) => Verdict::PublicOnly { from },
            Some(Rank::Export) => Verdict::ExportsOnly { from, pdb: self.pdb.clone() },
            None if pdb.is_some() => Verdict::NoNames { from },
            None => self.missing(),
        };
        (named, verdict)
    }

    /// Why there is nothing to name the module with.
    fn missing(&self) -> Verdict {
        match (&self.pdb, &self.image) {
            (Some(lookup), _) => Verdict::NotFound { lookup: lookup.clone() },
            (None, Some(image)) if self.pdb_key.is_none() => Verdict::NoId { image: image.clone() },
            (None, image) => Verdict::NotFound { lookup: image.clone().unwrap_or_default() },
        }
    }
}

/// How good a name is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Export,
    Public,
    Full,
}

fn rank(source: Source) -> Rank {
    match source {
        Source::Export => Rank::Export,
        Source::Public => Rank::Public,
        _ => Rank::Full,
    }
}

/// Outermost first.
fn functions(location: Location) -> Vec<Function> {
    let Location { function, file, line, inlined, approximate, .. } = location;
    let mut chain = vec![Function { name: function, file, line, inlined: false, approximate }];
    chain.extend(inlined.into_iter().rev().map(|inlined| Function {
        name: inlined.function,
        file: inlined.file,
        line: inlined.line,
        inlined: true,
        approximate: false,
    }));
    chain
}

/// Looks for the PDB of every module that names one and has not been looked for.
fn find_pdbs(work: &mut [Work<'_>], store: &Store, progress: &(dyn Fn(&str, Progress<'_>) + Sync)) {
    let wanted: Vec<usize> =
        indices(work, |work| !work.skipped && work.pdb.is_none() && work.pdb_key.is_some());
    let searches: Vec<_> = wanted
        .iter()
        .filter_map(|index| {
            let work = work.get(*index)?;
            let (key, id) = work.pdb_key.as_ref()?;
            let id = *id;
            Some((key, work.pdb_hints(), move |path: &std::path::Path| identity::check_pdb(path, id)))
        })
        .collect();
    let requests: Vec<Request<'_>> =
        searches.iter().map(|(key, hints, verify)| Request { key, hints, verify }).collect();
    let name = |index: usize| searches.get(index).map_or("", |(key, ..)| key.name().unwrap_or("?"));
    let found = store.find_all(&requests, &|index, state| progress(name(index), state));
    drop(requests);
    for (index, lookup) in wanted.into_iter().zip(found) {
        if let Some(work) = work.get_mut(index) {
            work.pdb = Some(lookup);
        }
    }
}

/// Looks for the images of modules that have no usable PDB, and takes PDB ids from them.
fn find_images(work: &mut [Work<'_>], store: &Store, progress: &(dyn Fn(&str, Progress<'_>) + Sync)) {
    let wanted: Vec<usize> = indices(work, |work| work.needs_image());
    let searches: Vec<_> = wanted
        .iter()
        .filter_map(|index| {
            let work = work.get(*index)?;
            let (key, timestamp, size) = work.image_key()?;
            let hints = vec![PathBuf::from(&work.module.path)];
            let verify = move |path: &std::path::Path| identity::check_image(path, timestamp, size);
            Some((*index, key, hints, verify))
        })
        .collect();
    let requests: Vec<Request<'_>> =
        searches.iter().map(|(_, key, hints, verify)| Request { key, hints, verify }).collect();
    let name = |index: usize| searches.get(index).map_or("", |(_, key, ..)| key.name().unwrap_or("?"));
    let found = store.find_all(&requests, &|index, state| progress(name(index), state));
    drop(requests);
    for (search, lookup) in searches.iter().map(|(index, ..)| *index).zip(found) {
        let Some(work) = work.get_mut(search) else { continue };
        if work.pdb_key.is_none()
            && let Some(found) = &lookup.found
            && let Ok(bytes) = Mapped::open(&found.path)
            && let Ok(image) = Image::parse(&bytes)
        {
            let pdb = image.pdbs().into_iter().find(|pdb| pdb.kind == PdbKind::Windows);
            work.pdb_key =
                pdb.map(|pdb| (FileKey::pdb(&pdb.path, pdb.id.guid.to_bytes(), pdb.id.age), pdb.id));
        }
        work.image = Some(lookup);
    }
}

fn indices(work: &[Work<'_>], wanted: impl Fn(&Work<'_>) -> bool) -> Vec<usize> {
    (0..).zip(work).filter(|(_, work)| wanted(work)).map(|(index, _)| index).collect()
}

/// Does the work over all processors; answers are in the order of the work.
fn in_parallel<W: Sync, R: Send>(work: &[W], each: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(work.len().max(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = work.get(index) else { return };
                    let result = each(item);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
