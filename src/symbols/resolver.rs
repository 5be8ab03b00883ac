//! From the addresses that samples hit to their functions, module by module.
//!
//! Symbols are looked for after the recording has been read, only for modules that samples hit, the biggest share
//! first. Files are found (and fetched) in parallel, then modules are resolved in parallel; each distinct address is
//! looked up once. Whatever comes of a module is its [`Verdict`].
//!
//! This machine is searched for the image first. It bounds public symbols, which have no size, it may name the PDB, and
//! precompiled .NET code it names by itself, with the IL that may lie in [other files](super::il_images): no server is
//! asked for the PDB of such an image. For others the PDB comes next, and where there is none, servers are asked for the
//! image, for its exports.
//!
//! Of all that these files say of an address, the best [`Evidence`] is taken.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::find::key::FileKey;
use super::find::lookup::{Attempt, Found, Lookup};
use super::find::request::{OnProgress, Request};
use super::find::store::Store;
use super::find::verify::{self, ImageFacts};
use super::il_images::{self, IlImage};
use super::il_pdbs::{IlPdbReport, IlPdbs, WantedPdb};
use super::image_facts;
use super::named::Named;
use super::names::{Function, Hit, IlPlace, Names, Siblings, Wanted};
use super::parallel::{guarded, in_parallel, processors};
use super::read::dotnet::lines::SourceLine;
use super::read::dotnet::r2r::{R2rImage, own_metadata};
use super::read::limits::Limits;
use super::read::location::{Evidence, Location};
use super::read::native::{NativeError, NativeSymbols};
use super::read::pe::{Image, PdbReference};
use super::read::precompiled;
use super::verdict::Verdict;
use crate::debug_id::DebugId;
use crate::mmap::Mapped;
use crate::trace::code::ManagedModuleId;
use crate::trace::{Module, ModuleId, Trace};

/// How much to resolve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Skip modules with a smaller share, in percent.
    pub min_share: f64,
    /// Find the source lines of .NET methods too.
    pub lines: bool,
    /// How much to keep of what symbols say.
    pub limits: Limits,
    /// How many threads may work; `None` for as many as there are processors. What comes of it is the same.
    pub jobs: Option<NonZeroUsize>,
}

impl Options {
    fn threads(&self) -> usize {
        self.jobs.map_or_else(processors, NonZeroUsize::get)
    }
}

/// The names of a trace, and what became of its modules.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    functions: Arc<FxHashMap<ModuleId, Named>>,
    lines: Arc<FxHashMap<(ManagedModuleId, IlPlace), SourceLine>>,
    /// One for each hit module, biggest share first.
    pub modules: Vec<ModuleReport>,
    /// One for each PDB of IL that source lines were wanted of.
    pub il_pdbs: Vec<IlPdbReport>,
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
    /// Every place that was asked for its PDB, then for its image if that was needed, then for the IL of its code if that
    /// lies apart, with the answers.
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

    fn siblings(&self, module: ModuleId) -> &[Siblings] {
        self.functions.get(&module).map_or(&[], |of_module| &of_module.siblings)
    }

    fn source(&self, module: ManagedModuleId, place: IlPlace) -> Option<&SourceLine> {
        self.lines.get(&(module, place))
    }
}

impl Symbols {
    /// Whether an address has a name; that its function begins somewhere is none.
    pub fn is_named(&self, module: ModuleId, rva: u64) -> bool {
        self.functions.get(&module).is_some_and(|of_module| of_module.contains(rva))
    }
}

/// Finds the symbols of the modules in `wanted` and names their addresses, and finds lines if the options say so.
pub fn resolve(
    trace: &Trace,
    wanted: &Wanted,
    store: &Store,
    options: &Options,
    progress: &OnProgress<'_>,
) -> Symbols {
    let mut hits: Vec<&Hit> = wanted.hits.iter().collect();
    hits.sort_by_key(|hit| (std::cmp::Reverse(hit.samples), hit.module));
    let work = hits.into_iter().filter_map(|hit| Work::new(trace, hit, wanted.samples, options));
    let mut work: Vec<Work<'_>> = work.collect();
    let threads = options.threads();
    find_files(&mut work, trace, store, threads, progress);
    let mut il_pdbs = IlPdbs::default();
    if options.lines {
        il_pdbs.want(in_parallel(threads, &work, Work::wanted_il_pdbs).into_iter().flatten());
        il_pdbs.want_of(trace, wanted.lines.keys());
        il_pdbs.find(store, progress);
    }
    let resolved = in_parallel(threads, &work, |work| work.resolve(&il_pdbs, options.limits));
    let lines = il_pdbs.lines(&wanted.lines, threads);
    let (mut functions, mut modules) = (FxHashMap::default(), Vec::new());
    for (work, resolved) in work.into_iter().zip(resolved) {
        let Resolved { named, left_out, verdict } = resolved;
        let module = work.hit.module;
        modules.push(ModuleReport {
            module,
            samples: work.hit.samples,
            addresses: work.hit.rvas.len(),
            named: named.len(),
            left_out,
            verdict,
            attempts: work.attempts(),
        });
        functions.insert(module, named);
    }
    let il_pdbs = il_pdbs.into_reports();
    Symbols { functions: Arc::new(functions), lines: Arc::new(lines), modules, il_pdbs }
}

/// What symbols say of the addresses in `hit`, in full and in ascending order: for whoever asks for more than names, and
/// for one module after the other. An address of which nothing is known is left out.
pub fn locations(
    trace: &Trace,
    hit: &Hit,
    store: &Store,
    limits: Limits,
    progress: &OnProgress<'_>,
) -> Vec<(u32, Location)> {
    let options = Options { min_share: 0.0, lines: true, limits, jobs: None };
    let mut work: Vec<Work<'_>> = Work::new(trace, hit, hit.samples, &options).into_iter().collect();
    find_files(&mut work, trace, store, options.threads(), progress);
    let mut il_pdbs = IlPdbs::default();
    il_pdbs.want(work.iter().flat_map(Work::wanted_il_pdbs));
    il_pdbs.find(store, progress);
    let mut found = Vec::new();
    for work in &work {
        let keep = &mut |rva, location: &Location| found.push((rva, location.clone()));
        // Why there are no names, the verdict of the whole trace says.
        let _verdict = guarded(|| work.name_addresses(&il_pdbs, limits, keep));
    }
    found.sort_by_key(|(rva, _)| *rva);
    found
}

/// The image of a module: where it lies on this machine, or was kept when it came from a server. No server is asked.
pub fn image(trace: &Trace, module: ModuleId, store: &Store) -> Option<Found> {
    let hit = Hit { module, samples: 0, rvas: Vec::new() };
    let options = Options { min_share: 0.0, lines: false, limits: Limits::default(), jobs: None };
    let request = Work::new(trace, &hit, 0, &options)?.image_request(false)?;
    store.find_all(&[request], &|_, _| ()).pop()?.found
}

/// One module on its way.
struct Work<'a> {
    hit: &'a Hit,
    module: &'a Module,
    percent: f64,
    skipped: bool,
    facts: Option<ImageFacts>,
    pdb_key: Option<(FileKey, DebugId)>,
    /// `None` until it was looked for.
    pdb: Option<Lookup>,
    image: Option<Lookup>,
    /// Whether the image that was found has precompiled .NET methods at these addresses, which it names by itself.
    is_precompiled: bool,
    /// The IL of other files that its names need.
    il: Vec<IlImage>,
}

impl<'a> Work<'a> {
    fn new(trace: &'a Trace, hit: &'a Hit, samples: u64, options: &Options) -> Option<Work<'a>> {
        let module = trace.module(hit.module)?;
        let percent = 100.0 * hit.samples as f64 / samples.max(1) as f64;
        let facts = image_facts::of_module(trace, hit.module);
        let original = || image_facts::original(trace, module)?.pdb.as_ref();
        let pdb = module.pdb.as_ref().or_else(original);
        Some(Work {
            hit,
            module,
            percent,
            skipped: percent < options.min_share,
            facts,
            pdb_key: pdb.map(|pdb| (FileKey::pdb(&pdb.name, pdb.id), pdb.id)),
            pdb: None,
            image: None,
            is_precompiled: false,
            il: Vec::new(),
        })
    }

    fn found_pdb(&self) -> Option<&Path> {
        Some(&self.pdb.as_ref()?.found.as_ref()?.path)
    }

    fn found_image(&self) -> Option<&Path> {
        Some(&self.image.as_ref()?.found.as_ref()?.path)
    }

    /// What the image that was found says of itself.
    fn inside_image(&self, trace: &Trace) -> Option<Inside> {
        let path = self.found_image()?;
        let bytes = Mapped::open(path).ok()?;
        let image = Image::parse(&bytes).ok()?;
        let look = || {
            let tables = R2rImage::parse(&image).map_err(|error| error.to_string())?;
            let told = LazyCell::new(|| il_images::told_by(trace, self.hit.module));
            let told = |name: &str| told.get(&name.to_ascii_lowercase()).cloned().unwrap_or_default();
            let rvas = || self.hit.rvas.iter().filter_map(|rva| u32::try_from(*rva).ok());
            let has_methods = rvas().any(|rva| tables.lookup(rva).is_some());
            Ok((has_methods, IlImage::wanted(&tables, path, self.module.file_name(), rvas(), told)))
        };
        // What cannot be read there is reported when the addresses are named.
        let (is_precompiled, il) = guarded(look).unwrap_or_default();
        Some(Inside { native_pdb: image.native_pdb(), is_precompiled, il })
    }

    fn take_inside(&mut self, inside: Inside) {
        if self.pdb_key.is_none() {
            self.pdb_key = inside.native_pdb.map(|pdb| (FileKey::pdb(&pdb.path, pdb.id), pdb.id));
        }
        (self.is_precompiled, self.il) = (inside.is_precompiled, inside.il);
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

    fn pdb_request(&self) -> Option<Request<'static>> {
        let (key, id) = self.pdb_key.clone()?;
        let verify = Box::new(move |path: &Path| verify::check_pdb(path, id));
        Some(Request { key, hints: self.pdb_hints(), ask_servers: !self.names_itself(), verify })
    }

    /// Precompiled code of which nothing is missing.
    fn names_itself(&self) -> bool {
        self.is_precompiled && self.il.iter().all(|il| il.path().is_some())
    }

    fn image_request(&self, ask_servers: bool) -> Option<Request<'static>> {
        let facts = self.facts.clone()?;
        Some(Request {
            key: FileKey::image(&facts.path.to_string_lossy(), facts.timestamp.unwrap_or(0), facts.size),
            hints: vec![facts.path.clone()],
            // Servers know images by their time stamp.
            ask_servers: ask_servers && facts.timestamp.is_some(),
            verify: Box::new(move |path| facts.check(path)),
        })
    }

    /// A PDB of machine code is all that the names of native code need. Without one, or with one of IL, the image may help.
    fn needs_image(&self) -> bool {
        self.is_precompiled || self.found_pdb().is_none_or(verify::is_portable_pdb)
    }

    /// Names the addresses with what was found.
    fn resolve(&self, il_pdbs: &IlPdbs, limits: Limits) -> Resolved {
        if self.skipped {
            return Resolved::nothing(Verdict::Skipped { percent: self.percent });
        }
        guarded(|| self.name_addresses(il_pdbs, limits, &mut |_, _| ()))
            .unwrap_or_else(|reason| Resolved::nothing(self.unreadable(&reason)))
    }

    /// The same; `keep` gets all that is known of each address.
    fn name_addresses(
        &self,
        il_pdbs: &IlPdbs,
        limits: Limits,
        keep: &mut dyn FnMut(u32, &Location),
    ) -> Result<Resolved, String> {
        let open = |path: &Path| Mapped::open(path).map_err(|error| error.to_string());
        let pdb_path = self.found_pdb().filter(|path| !verify::is_portable_pdb(path));
        let pdb = pdb_path.map(open).transpose()?.map(Mapped::for_lookups);
        // An image was read when it was found; gone since, it is as if it had never been here.
        let image = self.found_image().and_then(|path| Mapped::open(path).ok());
        let image = image.as_deref().and_then(|bytes| Image::parse(bytes).ok());
        let il: Vec<Mapped> =
            self.il.iter().filter_map(|il| il.path()).filter_map(|path| Mapped::open(path).ok()).collect();
        let il: Vec<Image<'_>> = il.iter().filter_map(|bytes| Image::parse(bytes).ok()).collect();
        let tables = image.as_ref().map(|image| self.tables(image, &il)).transpose();
        let (tables, reason) = match tables {
            Ok(tables) => (tables, None),
            Err(reason) => (None, reason.filter(|_| pdb.is_none())),
        };
        let from_image = pdb.is_none() || tables.is_some();
        let from = if from_image { &self.image } else { &self.pdb };
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
        let images = image.iter().chain(&il);
        let mut precompiled = match &tables {
            Some(tables) => precompiled::locations(tables, rvas(), &il_pdbs.of_images(images)),
            None => HashMap::new(),
        };
        for rva in rvas() {
            if let Some(location) = symbols.better(rva, precompiled.remove(&rva)) {
                best = best.max(Quality::of(&location));
                left_out += location.left_out as u64;
                keep(rva, &location);
                named.insert(u64::from(rva), location);
            } else if let Some(start) = symbols.function_start(rva) {
                named.insert_start(u64::from(rva), start);
            }
        }
        let types = named.types();
        if !types.is_empty() {
            named.siblings = match &tables {
                Some(tables) => {
                    let all = precompiled::methods_of(tables, &types).into_iter();
                    all.map(|(assembly, methods)| Siblings { assembly, methods }).collect()
                }
                None => vec![Siblings { assembly: None, methods: symbols.methods_of(&types) }],
            };
        }
        let verdict = self.verdict(best, from.to_owned(), reason, pdb.is_some());
        Ok(Resolved { named, left_out, verdict })
    }

    /// What became of the module, by the best of its names. `reason`: why the image has no tables of .NET methods.
    fn verdict(
        &self,
        best: Option<Quality>,
        from: PathBuf,
        reason: Option<String>,
        has_pdb: bool,
    ) -> Verdict {
        let missing = || self.il.iter().filter(|il| il.path().is_none());
        match best {
            Some(Quality::Full | Quality::Bare) => Verdict::Resolved { from },
            Some(Quality::Public) => Verdict::PublicOnly { from },
            Some(Quality::Export) => {
                let failed = self.pdb.as_ref().filter(|search| search.found.is_none());
                Verdict::ExportsOnly { from, pdb: failed.and_then(Lookup::reason).cloned() }
            }
            None if missing().next().is_some() => Verdict::NoIl {
                from,
                assemblies: missing().map(|il| il.assembly().to_owned()).collect(),
                reason: missing().find_map(IlImage::reason).cloned(),
            },
            None if has_pdb || self.pdb.is_none() || reason.is_some() => Verdict::NoNames { from, reason },
            None => self.without_names(),
        }
    }

    /// The tables of precompiled .NET code in an image, with what its IL in other files adds; or why a .NET image has none
    /// that help.
    fn tables<'d>(&self, image: &Image<'d>, il: &[Image<'d>]) -> Result<R2rImage<'d>, Option<String>> {
        let mut tables =
            R2rImage::parse(image).map_err(|error| image.is_managed().then(|| error.to_string()))?;
        for metadata in il.iter().filter_map(|il| own_metadata(il).ok()) {
            tables.add_reference(metadata);
        }
        Ok(tables)
    }

    /// The PDBs of the IL that precompiled code was made from.
    fn wanted_il_pdbs(&self) -> Vec<WantedPdb> {
        let own = self.found_image().map(|path| (path, self.module.path.clone()));
        let apart = self.il.iter().filter_map(|il| Some((il.path()?, String::new())));
        let wanted = own.into_iter().chain(apart).filter_map(|(path, recorded)| {
            let bytes = Mapped::open(path).ok()?;
            let image = Image::parse(&bytes).ok().filter(Image::is_managed)?;
            Some(WantedPdb { image: recorded, ..WantedPdb::of_image(&image, path.to_owned())? })
        });
        wanted.collect()
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
        let files = self.pdb.into_iter().chain(image).flat_map(|lookup| lookup.attempts);
        files.chain(self.il.into_iter().flat_map(IlImage::into_attempts)).collect()
    }
}

/// What an image says of itself.
struct Inside {
    native_pdb: Option<PdbReference>,
    is_precompiled: bool,
    il: Vec<IlImage>,
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

/// What a name tells of the symbols that it is from, by how much that counts for the [`Verdict`]: one line shows that a
/// PDB has all. (Which of two names is taken is another matter: [`Evidence`].)
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
    /// `None` for what is no name.
    fn of(location: &Location) -> Option<Quality> {
        Some(match (location.evidence, location.line) {
            (evidence, _) if !evidence.is_name() => return None,
            (Evidence::Export, _) => Quality::Export,
            (_, Some(_)) => Quality::Full,
            (Evidence::Public, None) => Quality::Public,
            (_, None) => Quality::Bare,
        })
    }
}

/// Looks for all files that names come from.
fn find_files(
    work: &mut [Work<'_>],
    trace: &Trace,
    store: &Store,
    threads: usize,
    progress: &OnProgress<'_>,
) {
    let find_images = |work: &mut [Work<'_>], ask_servers| {
        let found = find_images(work, store, ask_servers, progress);
        let inside = in_parallel(threads, &found, |work| work.inside_image(trace));
        for (work, inside) in found.into_iter().zip(inside) {
            inside.into_iter().for_each(|inside| work.take_inside(inside));
        }
    };
    find_images(work, false);
    find_il(work, store, false, progress);
    find_pdbs(work, store, progress);
    find_images(work, true);
    // An image from a server may name the PDB that the trace does not, and may lack its IL.
    find_pdbs(work, store, progress);
    find_il(work, store, true, progress);
}

/// Looks for the PDB of every module that names one and has not been looked for.
fn find_pdbs(work: &mut [Work<'_>], store: &Store, progress: &OnProgress<'_>) {
    let wanted = work.iter_mut().filter(|work| !work.skipped && work.pdb.is_none());
    let (wanted, requests): (Vec<_>, Vec<_>) =
        wanted.filter_map(|work| work.pdb_request().map(|request| (work, request))).unzip();
    for (work, lookup) in wanted.into_iter().zip(store.find_all(&requests, progress)) {
        work.pdb = Some(lookup);
    }
}

/// Looks for the images: on this machine those of all modules, on servers those that are missed there. Gives the modules
/// that were looked for: an image may name the PDB that the trace does not, and its code may be precompiled.
fn find_images<'w, 'a>(
    work: &'w mut [Work<'a>],
    store: &Store,
    ask_servers: bool,
    progress: &OnProgress<'_>,
) -> Vec<&'w mut Work<'a>> {
    let wanted = work.iter_mut().filter(|work| !work.skipped && work.found_image().is_none());
    let wanted = wanted.filter(|work| !ask_servers || work.needs_image());
    let (mut wanted, requests): (Vec<_>, Vec<_>) =
        wanted.filter_map(|work| work.image_request(ask_servers).map(|request| (work, request))).unzip();
    for (work, lookup) in wanted.iter_mut().zip(store.find_all(&requests, progress)) {
        work.image = Some(lookup);
    }
    wanted
}

/// Looks for the IL that lies apart from the images that were found.
fn find_il(work: &mut [Work<'_>], store: &Store, ask_servers: bool, progress: &OnProgress<'_>) {
    IlImage::find(work.iter_mut().flat_map(|work| &mut work.il), store, ask_servers, progress);
}
