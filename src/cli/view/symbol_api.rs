//! The API by which the Firefox Profiler asks a symbol server: `symbolicate/v5` (Tecken's documentation, "Symbolication
//! API"), and `source/v1` and `asm/v1` (profiler-get-symbols' API.md), for the modules of one recording.
//!
//! The questions come from a public page. So a source file is given out only if the profile names it, or the symbols at
//! the address that is asked with it; and only if `etwprof lines` would read it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use etwprof::Analysis;
use etwprof::mmap::Mapped;
use etwprof::report::one_line;
use etwprof::symbols::read::assembly::{AssemblyError, assembly};
use etwprof::symbols::read::location::Location;
use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::precompiled;
use etwprof::symbols::{Hit, Limits, Store, resolver};
use etwprof::trace::{ModuleId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cli::source::Sources;

/// An answer, bytes. A question can repeat a long name for each of its addresses.
const LONGEST_ANSWER: usize = 128 << 20;

/// What answers.
pub(super) struct SymbolApi {
    trace: Arc<Trace>,
    store: Store,
    limits: Limits,
    /// Names as the symbols spell them.
    raw: bool,
    /// The modules by the digits of their PDBs' ids, and by the ids that symbol servers know images by; in capital letters.
    modules: FxHashMap<String, ModuleId>,
    /// The source files that the profile names.
    named: FxHashSet<Arc<str>>,
    /// Where source files are looked for.
    folders: Vec<PathBuf>,
    /// One question after the other: each may read large files.
    turn: Mutex<()>,
}

/// Why there is no answer; the viewer shows it.
#[derive(Debug, thiserror::Error)]
enum ApiError {
    #[error("the question cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the recording has no module {0}")]
    NoModule(String),
    #[error("neither the profile nor the symbols at this address name the file {0}")]
    NotNamed(String),
    #[error("the source {0} is not here; --source DIR names a folder that has it")]
    NoSource(String),
    #[error("the image of {0} is not here; --images DIR names a folder that has it")]
    NoImage(String),
    #[error("the image of {0} cannot be read")]
    BadImage(String),
    #[error("the answer would be larger than {} MB; ask for less at once", LONGEST_ANSWER >> 20)]
    TooMuch,
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Symbolicate {
    Jobs { jobs: Vec<Job> },
    One(Job),
}

#[derive(Deserialize)]
struct Job {
    /// Names and ids.
    #[serde(rename = "memoryMap")]
    modules: Vec<(String, String)>,
    /// Numbers of modules, and RVAs in them.
    stacks: Vec<Vec<(i64, u64)>>,
}

#[derive(Serialize)]
struct Results<'j> {
    results: Vec<JobResult<'j>>,
}

#[derive(Serialize)]
struct JobResult<'j> {
    stacks: Vec<Vec<Named<'j>>>,
    /// By `name/id` whether anything is known of it; null for one that was not asked for.
    found_modules: BTreeMap<String, Option<bool>>,
}

#[derive(Serialize)]
struct Named<'j> {
    frame: usize,
    module: &'j str,
    #[serde(serialize_with = "hex")]
    module_offset: u64,
    #[serde(flatten)]
    function: Option<Shared>,
}

/// A function at many addresses.
#[derive(Clone)]
struct Shared(Rc<Function>);

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Function {
    function: String,
    #[serde(serialize_with = "hex")]
    function_offset: u64,
    #[serde(flatten)]
    source: SourceLine,
    /// From the innermost one outwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<Inlined>,
}

#[derive(Serialize)]
struct Inlined {
    function: String,
    #[serde(flatten)]
    source: SourceLine,
}

#[derive(Serialize)]
struct SourceLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceQuestion {
    debug_id: String,
    #[serde(deserialize_with = "unhex")]
    module_offset: u32,
    file: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceAnswer {
    /// Dates that nobody has.
    symbols_last_modified: Option<String>,
    source_last_modified: Option<String>,
    file: String,
    source: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AsmQuestion {
    /// The name of the image.
    name: Option<String>,
    /// Of an image without a PDB, zeros.
    debug_id: Option<String>,
    code_id: Option<String>,
    #[serde(deserialize_with = "unhex")]
    start_address: u32,
    #[serde(deserialize_with = "unhex")]
    size: u32,
    #[serde(default)]
    continue_until_function_end: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AsmAnswer {
    #[serde(serialize_with = "hex")]
    start_address: u64,
    #[serde(serialize_with = "hex")]
    size: u64,
    arch: &'static str,
    syntax: [&'static str; 1],
    instructions: Vec<(u32, String)>,
}

#[derive(Serialize)]
struct Failed {
    error: String,
}

impl SymbolApi {
    /// Answers for the recording of `analysis`, with what is in `store`.
    pub(super) fn new(
        analysis: &Analysis,
        store: Store,
        limits: Limits,
        raw: bool,
        folders: Vec<PathBuf>,
    ) -> SymbolApi {
        let trace = Arc::clone(&analysis.profile.trace);
        let mut modules = FxHashMap::default();
        for (number, module) in (0..).zip(&trace.modules) {
            let pdbs = module.pdb.iter().chain(&module.managed_pdb);
            let image = (module.timestamp != 0).then(|| format!("{:08X}{:X}", module.timestamp, module.size));
            for id in pdbs.map(|pdb| pdb.id.digits()).chain(image) {
                modules.entry(id).or_insert(ModuleId(number));
            }
        }
        let frames = analysis.profile.stacks.frames().iter();
        let named = frames.filter_map(|frame| Some(Arc::clone(&frame.line.as_ref()?.file))).collect();
        SymbolApi { trace, store, limits, raw, modules, named, folders, turn: Mutex::default() }
    }

    /// The answer to `question` at `path`; `None` where nothing is answered.
    pub(super) fn answer(&self, path: &str, question: &[u8]) -> Option<Vec<u8>> {
        let answer = match path {
            "/symbolicate/v5" => self.symbolicate(question),
            "/source/v1" => self.source(question),
            "/asm/v1" => self.asm(question),
            _ => return None,
        };
        let failed = |error: ApiError| {
            let error = one_line(&error.to_string()).into_owned();
            serde_json::to_vec(&Failed { error }).unwrap_or_default()
        };
        Some(answer.unwrap_or_else(failed))
    }

    fn symbolicate(&self, question: &[u8]) -> Result<Vec<u8>, ApiError> {
        let jobs = match serde_json::from_slice(question)? {
            Symbolicate::Jobs { jobs } => jobs,
            Symbolicate::One(job) => vec![job],
        };
        let results = jobs.iter().map(|job| self.job(job)).collect();
        let mut answer = Bounded(Vec::new());
        match serde_json::to_writer(&mut answer, &Results { results }) {
            Err(error) if error.is_io() => Err(ApiError::TooMuch),
            written => Ok(written.map(|()| answer.0)?),
        }
    }

    fn job<'j>(&self, job: &'j Job) -> JobResult<'j> {
        let mut wanted: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let number = |module: i64| usize::try_from(module).ok();
        for (module, rva) in job.stacks.iter().flatten() {
            wanted.entry(number(*module).unwrap_or(usize::MAX)).or_default().insert(*rva);
        }
        let mut found = FxHashMap::default();
        let mut found_modules = BTreeMap::new();
        for (number, (name, id)) in job.modules.iter().enumerate() {
            let rvas = wanted.remove(&number);
            let is_known = rvas.map(|rvas| {
                let named = self.module(id).map(|module| self.locations(module, rvas)).unwrap_or_default();
                let is_known = !named.is_empty();
                let functions = named
                    .into_iter()
                    .map(|(rva, location)| ((number, rva), Shared(Rc::new(function(location)))));
                found.extend(functions);
                is_known
            });
            found_modules.insert(format!("{name}/{id}"), is_known);
        }
        let name = |module: i64| number(module).and_then(|module| job.modules.get(module));
        let named = |(frame, (module, rva)): (usize, &(i64, u64))| Named {
            frame,
            module: name(*module).map_or("", |(name, _)| name),
            module_offset: *rva,
            function: number(*module).and_then(|module| found.get(&(module, *rva)).cloned()),
        };
        let stacks = job.stacks.iter().map(|stack| stack.iter().enumerate().map(named).collect()).collect();
        JobResult { stacks, found_modules }
    }

    fn source(&self, question: &[u8]) -> Result<Vec<u8>, ApiError> {
        let SourceQuestion { debug_id, module_offset, file } = serde_json::from_slice(question)?;
        let is_named_there = || {
            let module = self.module(&debug_id)?;
            let mut there = self.locations(module, [u64::from(module_offset)].into()).into_iter();
            let (_, location) = there.next()?;
            let inlined = location.inlined.iter().filter_map(|call| call.file.as_ref());
            Some(location.file.iter().chain(inlined).any(|named| *named == file))
        };
        if !self.named.contains(file.as_str()) && is_named_there() != Some(true) {
            return Err(ApiError::NotNamed(file));
        }
        let sources = Sources::new(&self.folders).ok();
        let text = sources.and_then(|sources| sources.of(&[], &[]).find(&file).text);
        let Some(source) = text else { return Err(ApiError::NoSource(file)) };
        let answer = SourceAnswer { symbols_last_modified: None, source_last_modified: None, file, source };
        Ok(serde_json::to_vec(&answer)?)
    }

    fn asm(&self, question: &[u8]) -> Result<Vec<u8>, ApiError> {
        let question: AsmQuestion = serde_json::from_slice(question)?;
        let ids = || [&question.debug_id, &question.code_id].into_iter().flatten();
        let name = || question.name.as_ref().or(ids().next()).cloned().unwrap_or_default();
        let module = ids().find_map(|id| self.module(id)).ok_or_else(|| ApiError::NoModule(name()))?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            resolver::image(&self.trace, module, &self.store).ok_or_else(|| ApiError::NoImage(name()))?;
        let bytes = Mapped::open(&found.path).map_err(|_| ApiError::BadImage(name()))?.for_lookups();
        let image = Image::parse(&bytes).map_err(|_| ApiError::BadImage(name()))?;
        let whole = question.continue_until_function_end;
        let code = assembly(&image, question.start_address, question.size, whole)?;
        let answer = AsmAnswer {
            start_address: code.start.into(),
            size: code.size.into(),
            arch: if code.bits == 64 { "x86_64" } else { "i686" },
            syntax: ["Intel"],
            instructions: code.instructions,
        };
        Ok(serde_json::to_vec(&answer)?)
    }

    fn module(&self, id: &str) -> Option<ModuleId> {
        self.modules.get(&id.to_ascii_uppercase()).copied()
    }

    /// What is at the addresses that have a name, as `etwprof symbolize` says it.
    fn locations(&self, module: ModuleId, rvas: BTreeSet<u64>) -> Vec<(u64, Location)> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let hit = Hit { module, samples: 1, rvas: rvas.into_iter().collect() };
        let mut found = resolver::locations(&self.trace, &hit, &self.store, self.limits, &|_, _| ());
        let locations = found.iter_mut().map(|(_, location)| location);
        if self.raw {
            precompiled::keep_raw(locations);
        } else {
            precompiled::make_readable(locations);
            found.iter_mut().for_each(|(_, location)| location.shorten());
        }
        found.into_iter().map(|(rva, location)| (rva.into(), location)).collect()
    }
}

/// Bytes up to [`LONGEST_ANSWER`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST_ANSWER {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn function(location: Location) -> Function {
    let about = if location.approximate { "~" } else { "" };
    let inlined = location.inlined.into_iter();
    Function {
        function: format!("{about}{}", location.function),
        function_offset: location.offset.into(),
        source: SourceLine { file: location.file, line: location.line },
        inlines: inlined
            .map(|call| Inlined {
                function: call.function,
                source: SourceLine { file: call.file, line: call.line },
            })
            .collect(),
    }
}

fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}

fn unhex<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| serde::de::Error::custom("expected up to 8 hexadecimal digits behind 0x"))
}
